/* impulses: the step problem of many contacts. A list of contacts with local rows: rates u = J v + b, where
   reactions r change v by K^T r; K is M^-1 times the rows along which reactions act. Each contact has its
   cone. Groups are solved one by one: a single contact in closed form, chains by their band, the rest by
   sweeps or, if these are too slow, as a sparse problem (pile.h). */
#ifndef CDL_IMPULSES_H
#define CDL_IMPULSES_H
#include "band.h"

/* Contacts in order, one array for each quantity. */
typedef struct contact_list {
    int n, rows, cap;
    cone *cone;          /* cone.row: its first row */
    int *dof_at, *dof;   /* n + 1; the dofs of contact c are dof[dof_at[c]] .. */
    size_t *J_at, *A_at; /* n + 1 */
    double *J, *K, *A;   /* rows; effect of reactions along them on the rates; J K^T of one contact */
    /* By row: offset of J v (rates of surfaces, gap/h, restitution); impulse. */
    double *b, *r;
    bool *loose;  /* of each contact: its island may be accepted with a residual above the tolerance */
    double *unit; /* by row: unit of its reaction, if not all are 1 (equal.h) */
    bool equal;   /* rows are in these units, and so are b, r and the cones while the list is solved */
    /* Columns of K^T, dof by dof, if the list is fixed. */
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
    arena *a, *scratch; /* a: kept from step to step; scratch: released after each step */
    int n;              /* dofs */
    contact_list act;
    islands isl;
    bool fixed; /* the list and its islands are those of the last problem; only b, r and the cones change */
    double *v1; /* rates: without reactions on entry, with reactions on return */
    const double *root; /* M^-1/2 if K is M^-1 J^T with a diagonal M; otherwise NULL */
    double *move;       /* n doubles of work */
    double *local;      /* temporary, one number per dof of a contact */
    int *marked, mark;  /* dofs visited in the search with number `mark` */
    int *number;        /* of dofs: number within a group */
    double tol;
    double enough; /* a residual that is accepted for islands with a loose contact; 0: none */
    solver_effort effort;
    /* Results. */
    double residual;
    bool taken; /* the residual of each island is accepted */
    int worst;
    int64_t iterations, swept;
    int by; /* slowest solver used so far */
    const char *solver;
} impulses;

void impulses_init(impulses *w, arena *a, arena *scratch, int n);
/* Allocates room for this number of contacts in total, with at most `rows` rows and `dofs` dofs each. */
void list_room(impulses *w, int contacts, int rows, int dofs);
/* Adds the contact at the end of the list, which has its cone, dofs, J and K: computes its block. */
void list_take(impulses *w);
/* Fixes the list: columns by dof, islands in order. False: it is not a chain. */
bool list_fix(impulses *w);
/* Solves to the tolerance; false: not reached (see residual, worst). */
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
/* v += K^T dr for one contact. */
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

/* islands.c: groups of contacts that share dofs. order: contacts of a group are put in Cuthill-McKee order,
   and kb is its bandwidth; otherwise they stay in the order of the list and kb = -1. */
void islands_find(islands *g, const contact_list *l, int ndof, bool order, arena *a, arena *scratch);
contact_problem *island_band(const islands *g, const island *i, const contact_list *l, bool symmetric,
                             arena *a);

/* relax.c: sweeps with conjugate directions (plain: without) over the contacts at[0..n), with at most two
   rows each; returns the residual relative to the largest impulse. */
bool relax_fits(const impulses *w, const int *at, int n);
double relax_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst);
/* balls.c: the same for contacts of balls in space; false: they are not balls, and nothing has changed. */
bool balls_solve(impulses *w, const int *at, int n, int most, bool plain, int *worst, double *residual);
#endif
