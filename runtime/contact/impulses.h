/* impulses: the step problem of many contacts.  A list of contacts with local rows: rates u = J v + b, where
   reactions r change v by K^T r; K is M^-1 times the rows along which reactions act.  Each contact keeps its
   cone.  It is solved group by group: one contact in closed form, chains by their band, the rest by sweeps
   and, where these are too slow, as a sparse problem (pile.h). */
#ifndef CDL_IMPULSES_H
#define CDL_IMPULSES_H
#include "band.h"

/* Contacts in order, one array for each quantity. */
typedef struct contact_list {
    int n, rows, cap;
    cone *cone;          /* cone.row: its first row */
    int *dof_at, *dof;   /* n + 1; the dofs of contact c are dof[dof_at[c]] .. */
    size_t *J_at, *A_at; /* n + 1 */
    double *J, *K, *A;   /* rows; what reactions along them do to the rates; J K^T of one contact */
    /* by row: added to J v (rates of surfaces, gap/h, restitution); impulse */
    double *b, *r;
    bool *loose;  /* of each contact: its island may be taken with a residual above the tolerance */
    double *unit; /* by row: of its reaction, where not all are 1 (equal.h) */
    bool equal;   /* rows are in these units, and so are b, r and the cones while the list is solved */
    /* columns of K^T, dof by dof, where the list is fixed */
    int *at_dof, *row_of;
    double *K_of;
} contact_list;

/* A row of a chain without friction: its one or two dofs (one: b = a and J[1] = 0), and its place in the
 * list.
 */
typedef struct chain_row {
    int a, b, row;
    double J[2];
} chain_row;

/* Contacts that are connected through dofs: at[first..first + n), in an order that keeps neighbours close. */
typedef struct island {
    int first, n, kb;
    contact_problem *band;
    const chain_row *rows; /* of the band, where they are that short and never change */
} island;
typedef struct islands {
    int n, cap;
    island *of;
    int *at; /* contacts, island after island */
} islands;

typedef struct impulses {
    arena *a, *scratch; /* a: kept from step to step; scratch: emptied after each */
    int n;              /* dofs */
    contact_list act;
    islands isl;
    bool fixed; /* the list and its islands are those of the last problem; only b, r and the cones change */
    double *v1; /* rates: come in free of reactions, go out with them */
    const double *root; /* M^-1/2 where K is M^-1 J^T with a diagonal M; else NULL */
    double *move;       /* n doubles of work */
    double *local;      /* as many as a contact has dofs */
    int *marked, mark;  /* dofs met in the walk number `mark` */
    int *number;        /* of dofs among those of a group */
    double tol;
    double enough; /* a residual that is taken of islands with a contact that is loose; 0: none */
    solver_effort effort;
    /* outcome */
    double residual;
    bool taken; /* each island has a residual with which it is taken */
    int worst;
    int64_t iterations, swept;
    int by; /* heaviest solver so far */
    const char *solver;
} impulses;

void impulses_init(impulses *w, arena *a, arena *scratch, int n);
/* Room for that many contacts in all, of at most `rows` rows and `dofs` dofs each. */
void list_room(impulses *w, int contacts, int rows, int dofs);
/* The contact at the end of the list has its cone, dofs, J and K: its block is made, and it counts. */
void list_take(impulses *w);
/* The same list from now on: columns by dof, islands in order.  False: it is not a chain. */
bool list_fix(impulses *w);
/* Solves to the tolerance; false when it was not reached (residual, worst). */
bool impulses_solve(impulses *w);

static inline int list_rows(const contact_list *l, int c)
{
    return cone_rows(&l->cone[c]);
}
static inline double list_rate(const contact_list *l, int c, int row, const double *v)
{
    int n = l->dof_at[c + 1] - l->dof_at[c];
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c] + row * n;
    double u = 0;
    for (int k = 0; k < n; k++)
        u += J[k] * v[dof[k]];
    return u;
}
/* v += K^T dr for one contact */
static inline void list_push(const contact_list *l, int c, const double *dr, double *v)
{
    int n = l->dof_at[c + 1] - l->dof_at[c], m = list_rows(l, c);
    const int *dof = l->dof + l->dof_at[c];
    const double *K = l->K + l->J_at[c];
    for (int k = 0; k < n; k++) {
        double x = 0;
        for (int a = 0; a < m; a++)
            x += dr[a] * K[a * n + k];
        v[dof[k]] += x;
    }
}

/* islands.c: groups of contacts that share dofs.  order: contacts of a group in the order of Cuthill and
 * McKee, and kb its band; else as listed and kb = -1. */
void islands_find(islands *g, const contact_list *l, int ndof, bool order, arena *a, arena *scratch);
contact_problem *island_band(const islands *g, const island *i, const contact_list *l, bool symmetric,
                             arena *a);

/* relax.c: sweeps with conjugate directions (plain: without) over the contacts at[0..n), two rows each at
 * most; the residual, over the largest impulse */
bool relax_fits(const impulses *w, const int *at, int n);
double relax_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst);
/* balls.c: the same for contacts of balls in space; false: they are none, and nothing has changed */
bool balls_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst, double *residual);
#endif
