#include "plans.h"
#include "base/tolerances.h"

/* Numbers of contacts for which pivots are used: with 128 bits, with more digits, before other solvers, after
   all others failed; above LEMKE_FEW other solvers are faster. LARGE: a second and third damped start solve
   no more, and paths take so long that halves of the step are faster, if it can be shortened. */
enum { LEMKE_FEW = 20, LEMKE_ALL = 16, LEMKE_MORE = 40, LEMKE_MOST = 100, LEMKE_LAST = 300, LARGE = 1000 };

#define PLAN(name, ...)                                      \
    static const plan_step name##_steps[] = { __VA_ARGS__ }; \
    const solver_plan plan_##name = { name##_steps, sizeof name##_steps / sizeof *name##_steps }

/* Pivots find the set if the active set cycles. */
PLAN(smooth, { .by = SOLVER_ACTIVE }, { .by = SOLVER_LEMKE_SET }, { .by = BY_ISLANDS });

/* Gauss-Seidel from the current reactions, then exact methods. */
PLAN(rough, { .by = SOLVER_GAUSS_FEW }, { .by = BY_ISLANDS }, { .by = SOLVER_TURNS });
PLAN(speed, { .by = SOLVER_GAUSS_FEW }, { .by = SOLVER_TURNS });

/* Sweeps are the best start for everything behind them; in the plane interior points come next, in space
   Newton's method.  Contacts of a pile at rest share their load in many ways: from the middle of these, where
   the interior point ends, sweeps lead next to a solution, and few contacts are then at a bound that has to
   move, so a short way through the pieces is left. */
PLAN(plane, { .by = SOLVER_SWEEPS, .above = LEMKE_FEW }, { .by = SOLVER_POLISH, .above = LEMKE_FEW },
     { .by = SOLVER_DAMPED, .above = LEMKE_FEW, .little = LEMKE_MOST, .near = SWEEPS_NEAR },
     { .by = SOLVER_PIECES_FEW,
       .above = LEMKE_FEW,
       .cut = LARGE,
       .little = LEMKE_MOST,
       .close = PIECES_CLOSE },
     { .by = SOLVER_INTERIOR, .above = LEMKE_FEW, .cut = LARGE, .close = PIECES_CLOSE },
     { .by = SOLVER_SWEEPS, .goes_on = true }, { .by = SOLVER_PIECES_MORE, .goes_on = true },
     { .by = SOLVER_PIECES, .above = LEMKE_FEW, .cut = LARGE },
     { .by = SOLVER_SWEEPS, .above = LEMKE_FEW, .cut = LARGE },
     { .by = SOLVER_DAMPED_CLOSE, .above = LEMKE_FEW, .most = LARGE },
     { .by = SOLVER_DAMPED_COLD, .above = LEMKE_FEW, .most = LARGE },
     { .by = SOLVER_CENTRAL, .above = LEMKE_FEW, .cut = LEMKE_LAST },
     { .by = SOLVER_LEMKE, .most = LEMKE_MOST }, { .by = SOLVER_LEMKE_LONG, .most = LEMKE_MORE },
     { .by = SOLVER_LEMKE_QUAD, .most = LEMKE_ALL },
     { .by = SOLVER_PROXIMAL_FEW, .cut = LEMKE_MOST, .little = 1 }, { .by = SOLVER_INTERIOR, .patch = 2 },
     { .by = SOLVER_LEMKE, .above = LEMKE_MOST, .most = LEMKE_LAST, .patch = 12 },
     { .by = SOLVER_PROXIMAL_LONG }, { .by = SOLVER_PROXIMAL_FIRM });
PLAN(space, { .by = SOLVER_SWEEPS }, { .by = SOLVER_POLISH }, { .by = SOLVER_SWEEPS },
     { .by = SOLVER_PROXIMAL }, { .by = SOLVER_INTERIOR, .most = LEMKE_LAST }, { .by = SOLVER_PROXIMAL_LONG },
     { .by = SOLVER_PROXIMAL_FIRM });
PLAN(calm, { .by = SOLVER_SWEEPS }, { .by = SOLVER_PROXIMAL_FEW });

/* Chains by their band. Sweeps reach a loose tolerance before W would be formed; a tight one is reached by
   the plan of islands, which also begins with sweeps. Halves of a step are tried before slow methods. */
PLAN(group_loose, { .by = SOLVER_BAND }, { .by = BY_LIST_RATES }, { .by = BY_LIST_SWEEPS },
     { .by = BY_ISLANDS, .cut = LARGE }, { .by = BY_LIST_PLAIN, .cut = 1, .little = 1 },
     { .by = BY_ISLANDS });
PLAN(group_tight, { .by = SOLVER_BAND }, { .by = BY_LIST_RATES }, { .by = BY_ISLANDS },
     { .by = BY_LIST_PLAIN, .cut = 1, .little = 1 }, { .by = BY_ISLANDS });
