#include "plans.h"
#include <limits.h>

/* contacts: that pivots solve with all digits, with more, before others, when all else fails; above FEW
   others are sooner there; a second and third damped start solve no more above */
enum { LEMKE_FEW = 20, LEMKE_ALL = 16, LEMKE_MORE = 40, LEMKE_MOST = 100, LEMKE_LAST = 300, DAMPED = 1000 };
enum { ANY = INT_MAX, NEVER = INT_MAX };

#define PLAN(name, ...)                                      \
    static const plan_step name##_steps[] = { __VA_ARGS__ }; \
    const solver_plan plan_##name = { name##_steps, sizeof name##_steps / sizeof *name##_steps }

/* Pivots find the set where the active set goes round in circles. */
PLAN(smooth, { SOLVER_ACTIVE, 0, ANY, NEVER, 0 }, { SOLVER_LEMKE_SET, 0, ANY, NEVER, 0 },
     { BY_ISLANDS, 0, ANY, NEVER, 0 });

/* Gauss-Seidel from the start at hand, then what is exact */
PLAN(rough, { SOLVER_GAUSS_FEW, 0, ANY, NEVER, 0 }, { BY_ISLANDS, 0, ANY, NEVER, 0 },
     { SOLVER_TURNS, 0, ANY, NEVER, 0 });
PLAN(speed, { SOLVER_GAUSS_FEW, 0, ANY, NEVER, 0 }, { SOLVER_TURNS, 0, ANY, NEVER, 0 });

/* Sweeps are the best start for everything behind them; in the plane interior points come next, in space
   Newton's method. */
PLAN(plane, { SOLVER_SWEEPS, LEMKE_FEW, ANY, NEVER, 0 }, { SOLVER_POLISH, LEMKE_FEW, ANY, NEVER, 0 },
     { SOLVER_DAMPED, LEMKE_FEW, ANY, NEVER, 0 }, { SOLVER_PIECES, LEMKE_FEW, ANY, NEVER, 0 },
     { SOLVER_SWEEPS, LEMKE_FEW, ANY, NEVER, 0 }, { SOLVER_DAMPED_CLOSE, LEMKE_FEW, DAMPED, NEVER, 0 },
     { SOLVER_DAMPED_COLD, LEMKE_FEW, DAMPED, NEVER, 0 }, { SOLVER_CENTRAL, LEMKE_FEW, ANY, NEVER, 0 },
     { SOLVER_LEMKE, 0, LEMKE_MOST, NEVER, 0 }, { SOLVER_LEMKE_LONG, 0, LEMKE_MORE, NEVER, 0 },
     { SOLVER_LEMKE_QUAD, 0, LEMKE_ALL, NEVER, 0 }, { SOLVER_PROXIMAL_FEW, 0, ANY, LEMKE_MOST, 0 },
     { SOLVER_INTERIOR, 0, ANY, NEVER, 2 }, { SOLVER_LEMKE, LEMKE_MOST, LEMKE_LAST, NEVER, 12 },
     { SOLVER_PROXIMAL_LONG, 0, ANY, NEVER, 0 }, { SOLVER_PROXIMAL_FIRM, 0, ANY, NEVER, 0 });
PLAN(space, { SOLVER_SWEEPS, 0, ANY, NEVER, 0 }, { SOLVER_POLISH, 0, ANY, NEVER, 0 },
     { SOLVER_SWEEPS, 0, ANY, NEVER, 0 }, { SOLVER_PROXIMAL, 0, ANY, NEVER, 0 },
     { SOLVER_INTERIOR, 0, ANY, NEVER, 0 }, { SOLVER_PROXIMAL_LONG, 0, ANY, NEVER, 0 },
     { SOLVER_PROXIMAL_FIRM, 0, ANY, NEVER, 0 });
PLAN(calm, { SOLVER_SWEEPS, 0, ANY, NEVER, 0 }, { SOLVER_PROXIMAL_FEW, 0, ANY, NEVER, 0 });

/* Chains by their band.  A loose tolerance is reached by sweeps, sooner than W is formed; a tight one by the
   plan of islands, which begins with sweeps too.  Halves of a step are tried before long ways. */
PLAN(group_loose, { SOLVER_BAND, 0, ANY, NEVER, 0 }, { BY_LIST_SWEEPS, 0, ANY, NEVER, 0 },
     { BY_ISLANDS, 0, ANY, NEVER, 0 }, { BY_LIST_PLAIN, 0, ANY, 0, 0 }, { BY_ISLANDS, 0, ANY, NEVER, 0 });
PLAN(group_tight, { SOLVER_BAND, 0, ANY, NEVER, 0 }, { BY_ISLANDS, 0, ANY, NEVER, 0 },
     { BY_LIST_PLAIN, 0, ANY, 0, 0 }, { BY_ISLANDS, 0, ANY, NEVER, 0 });
