/* sweep_emit: writes a run of sweeping as C, for `cdl emit c` and for compiled steps. */
#ifndef CDL_SWEEP_EMIT_H
#define CDL_SWEEP_EMIT_H
#include "base/diag.h"

/* Source files that are part of the output, line by line (runtime/native/texts.awk). */
extern const char *const emitted_tolerances_h[];
extern const char *const emitted_trig_h[];
extern const char *const emitted_linalg_h[];
extern const char *const emitted_linalg_c[];
extern const char *const emitted_cone_h[];
extern const char *const emitted_cone_c[];
extern const char *const emitted_problem_h[];
extern const char *const emitted_problem_c[];
extern const char *const emitted_speed_c[];
extern const char *const emitted_equal_h[];
extern const char *const emitted_equal_c[];
extern const char *const emitted_active_h[];
extern const char *const emitted_active_c[];
extern const char *const emitted_sweeps_h[];
extern const char *const emitted_sweeps_c[];
extern const char *const emitted_small_h[];
extern const char *const emitted_rows_c[];
extern const char *const emitted_plain_c[];
extern const char *const emitted_step_c[];
extern const char *const emitted_fmu_c[];
extern const char *const emitted_view_h[];
extern const char *const emitted_enter_c[];

struct sweep;
struct run_clock;
/* A contact of the output: its name and the number of shown components of friction. */
typedef struct emitted_contact {
    const char *name;
    int shown;
} emitted_contact;
/* An element of an input: indices of the parameters that contain its value, its three coefficients, and the
   time at which they start. */
typedef struct emitted_input {
    int32_t at, slope, origin;
} emitted_input;
/* Where a run is written instead of being computed; if it cannot be written, why. */
typedef struct emitted_run {
    text out;
    bool unit; /* with the functions of FMI, for `cdl emit fmu`; FMU_GUID is added later */
    const emitted_input *input;
    size_t ninput;
    vec(emitted_contact) contacts;
    const bool *settable; /* of each parameter: it may be changed before the motion starts */
    const char *why;      /* NULL: written */
    span at;              /* place of what prevents it */
    double duration;
} emitted_run;
/* The whole run, from its initial state. */
void sweep_emit_run(struct sweep *w, const struct run_clock *c, emitted_run *to);
/* Only the plain steps of a run; parameters and numbers of the run remain variables. Writes the part that
   depends on the model, with a hash of the rest; false: there are no plain steps. sweep_emit_rest writes the
   rest, for a compiler. */
bool sweep_emit_plain(struct sweep *w, text *out);
void sweep_emit_rest(text *out);
#endif
