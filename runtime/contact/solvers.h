/* solvers: the table of solvers of contact problems. Each starts from the current reactions and leaves the
   best ones that it found. */
#ifndef CDL_SOLVERS_H
#define CDL_SOLVERS_H
#include "problem.h"

typedef enum {
    SOLVER_SWEEPS,        /* Gauss-Seidel as the gradient of conjugate directions */
    SOLVER_PLAIN_SWEEPS,  /* Gauss-Seidel alone */
    SOLVER_POLISH,        /* Newton's method with a very weak proximal term: from a close start */
    SOLVER_PROXIMAL,      /* the same with a stronger term */
    SOLVER_PROXIMAL_FEW,  /* a few such steps */
    SOLVER_PROXIMAL_LONG, /* and many steps */
    SOLVER_PROXIMAL_FIRM, /* and the strongest term */
    /* interior point method for Coulomb's law in the plane, starting at some distance from the reactions */
    SOLVER_DAMPED,
    SOLVER_DAMPED_CLOSE, /* from closer to it */
    SOLVER_DAMPED_COLD,  /* starting from no reactions: another path, if the first two stall */
    SOLVER_PIECES,       /* along the pieces of the piecewise linear map, in the plane */
    SOLVER_PIECES_FEW,   /* the same with few factorisations */
    SOLVER_PIECES_MORE,  /* and a longer one */
    SOLVER_CENTRAL,      /* the central path, followed by arc length */
    SOLVER_INTERIOR,     /* interior point method with Coulomb cones */
    SOLVER_LEMKE,        /* Lemke's pivots in double, long double, 128 bits */
    SOLVER_LEMKE_LONG,
    SOLVER_LEMKE_QUAD,
    /* W in full, without friction: the active set by pivots, its reactions as in SOLVER_ACTIVE */
    SOLVER_LEMKE_SET,
    SOLVER_ACTIVE,    /* W in full: active sets, without friction */
    SOLVER_GAUSS,     /* Gauss-Seidel with updated velocities */
    SOLVER_GAUSS_FEW, /* a few sweeps of that */
    SOLVER_TURNS,     /* Gauss-Seidel and Newton's method with shortest steps in turn */
    SOLVER_NEWTON,    /* Newton's method with shortest steps */
    SOLVER_UZAWA,     /* Uzawa's method */
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
