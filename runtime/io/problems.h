/* problems: contact problems of steps as files, for other solvers: in the layout of FCLIB, and as text. */
#ifndef CDL_PROBLEMS_H
#define CDL_PROBLEMS_H
#include "contact/problem.h"

/* A problem as it was posed, W in full or by rows, with the initial guess in `p.r`, and its solution. */
typedef struct step_problem {
    contact_problem p;
    const double *solution; /* reactions by row, or where the search ended */
    bool solved, impact;    /* impact: of an instant, reactions are those of a shock */
    double t, h;            /* the end of the step; its size, 0 for an impact */
    double tolerance, residual;
    const char *solver;
} step_problem;

/* Called for each problem of a run; what it points to is gone afterwards. */
typedef struct problem_watch {
    void (*see)(void *ud, const step_problem *x, arena *scratch);
    void *ud;
} problem_watch;

/* An HDF5 file with the groups of FCLIB 3:
       fclib_local: spacedim, W (by columns), vectors (q, mu), info (title, description); with V, R and
           vectors/s where rows are held: u = W r + V l + q, 0 = V^T r + R l + s, normal row first
       guesses/1: r, u, l where the search began
       solution: r, u, l
   Contacts of fewer rows than spacedim get rows that couple to nothing.  FCLIB knows no bound of friction of
   its own, no friction where a contact is held, no given direction of slip and two tangents at most: false
   for problems with these. */
bool problem_fclib(const step_problem *x, const char *title, text *out, arena *a);
/* Lines of text, numbers with all digits:
       contacts N rows M tolerance T least L
       cone KIND TANGENTS MU RADIUS        N lines, rows one after the other; unilateral, bilateral or given
       b ...    r ...    solution ...      M numbers each; r is the start
       W ROW COUNT COLUMN VALUE ...        M lines
   False: a contact has a given direction of slip. */
bool problem_lines(const step_problem *x, text *out);

#endif
