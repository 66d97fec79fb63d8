/* solvers: the table of what solves a contact problem.  Each starts at the reactions at hand
   and leaves the best it met. */
#ifndef CDL_SOLVERS_H
#define CDL_SOLVERS_H
#include "problem.h"

typedef enum {
    SOLVER_SWEEPS,        /* Gauss-Seidel as the gradient of conjugate directions */
    SOLVER_PLAIN_SWEEPS,  /* Gauss-Seidel alone */
    SOLVER_POLISH,        /* Newton's method with a proximal term that is hardly there: from a close start */
    SOLVER_PROXIMAL,      /* the same with a stronger term */
    SOLVER_PROXIMAL_FEW,  /* a few steps of that */
    SOLVER_PROXIMAL_LONG, /* and many steps */
    SOLVER_PROXIMAL_FIRM, /* and the strongest term */
    SOLVER_DAMPED,        /* interior point on Coulomb's law in the plane, from some way beside the start */
    SOLVER_DAMPED_CLOSE,  /* from closer to it */
    SOLVER_DAMPED_COLD,   /* from no reactions at all: another way to go where the first two stall */
    SOLVER_PIECES,        /* from corner to corner of the piecewise linear map, in the plane */
    SOLVER_PIECES_FEW,    /* a short way of that */
    SOLVER_PIECES_MORE,   /* and a longer one */
    SOLVER_CENTRAL,       /* the central path by its length */
    SOLVER_INTERIOR,      /* interior point with Coulomb cones */
    SOLVER_LEMKE,         /* pivots in double, long double, 128 bits */
    SOLVER_LEMKE_LONG,
    SOLVER_LEMKE_QUAD,
    SOLVER_LEMKE_SET, /* W in full, without friction: the set by pivots, its reactions by the active set */
    SOLVER_ACTIVE,    /* W in full: active sets, without friction */
    SOLVER_GAUSS,     /* Gauss-Seidel that carries velocities along */
    SOLVER_GAUSS_FEW, /* a few sweeps of that */
    SOLVER_TURNS,     /* that and Newton's method by shortest steps in turn */
    SOLVER_NEWTON,    /* Newton's method by shortest steps */
    SOLVER_UZAWA,     /* multipliers */
    SOLVER_BAND,      /* W by its diagonals: active sets, or Newton's method with friction */
    SOLVER_COUPLED,   /* W never formed: Newton's method on rates and reactions together */
    SOLVERS
} solver_id;

typedef struct contact_solver {
    const char *name;
    bool (*fits)(const contact_problem *p);
    /* False: not solved to the tolerance. */
    bool (*solve)(contact_problem *p, arena *scratch, double tol);
} contact_solver;

extern const contact_solver contact_solvers[SOLVERS];
#endif
