/* sweep_emit: a run of sweeping as C, for `cdl emit c` and for native steps. */
#ifndef CDL_SWEEP_EMIT_H
#define CDL_SWEEP_EMIT_H
#include "base/diag.h"

/* Sources that are part of what is written, line after line (runtime/native/texts.awk). */
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
/* A contact of what was written: its name and how many components of friction are shown. */
typedef struct emitted_contact {
    const char *name;
    int shown;
} emitted_contact;
/* An element of an input: where its value is among the parameters, then its three coefficients, then the time
   that they count from. */
typedef struct emitted_input {
    int32_t at, slope, origin;
} emitted_input;
/* What a run is written to instead of being taken; why not, when it is none for it. */
typedef struct emitted_run {
    text out;
    bool unit; /* with the functions of FMI, for `cdl emit fmu`; FMU_GUID is not in it yet */
    const emitted_input *input;
    size_t ninput;
    vec(emitted_contact) contacts;
    const bool *settable; /* of each parameter: it may have another value when the motion starts */
    const char *why;      /* NULL: written */
    span at;              /* of what is in the way */
    double duration;
} emitted_run;
/* The whole run, from the state at its start. */
void sweep_emit_run(struct sweep *w, const struct run_clock *c, emitted_run *to);
/* The plain steps of a run alone, with parameters and numbers of the run left open: what is the model's own,
   with a hash of the rest; false: it has none.  Then the rest, for a compiler. */
bool sweep_emit_plain(struct sweep *w, text *out);
void sweep_emit_rest(text *out);
#endif
