/* sweep_emit: a run of sweeping as C, for `cdl emit c` and for native steps. */
#ifndef CDL_SWEEP_EMIT_H
#define CDL_SWEEP_EMIT_H
#include "base/diag.h"

/* Sources that are part of what is written, line after line (runtime/native/texts.awk). */
extern const char *const emitted_tolerances_h[];
extern const char *const emitted_trig_h[],
    *const emitted_linalg_h[],
        *const emitted_linalg_c[],
            *const emitted_cone_h[],
                *const emitted_cone_c[],
                    *const emitted_problem_h[],
                        *const emitted_problem_c[],
                            *const emitted_speed_c[],
                                *const emitted_equal_h[],
                                    *const emitted_equal_c[],
                                        *const emitted_active_h[],
                                            *const emitted_active_c[],
                                                *const emitted_sweeps_h[],
                                                    *const emitted_sweeps_c[],
                                                        *const emitted_small_h[],
                                                            *const emitted_rows_c[],
                                                                *const emitted_plain_c[],
                                                                    *const emitted_step_c[],
                                                                        *const emitted_view_h[],
                                                                            *const emitted_enter_c[];

struct sweep;
struct run_clock;
/* What a run is written to instead of being taken; why not, when it is none for it. */
typedef struct emitted_run {
    text out;
    const char *why; /* NULL: written */
    span at;         /* of what is in the way */
    double duration;
} emitted_run;
/* The whole run, from the state at its start. */
void sweep_emit_run(struct sweep *w, const struct run_clock *c, emitted_run *to);
/* The plain steps of a run alone, with parameters and numbers of the run left open: what is the model's own,
   with a hash of the rest; false: it has none.  Then the rest, for a compiler. */
bool sweep_emit_plain(struct sweep *w, text *out);
void sweep_emit_rest(text *out);
#endif
