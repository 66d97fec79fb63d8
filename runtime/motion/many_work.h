/* many_work: what the files of the step for many contacts share: the list of contacts at hand, their graph,
 * pairs of near points. */
#ifndef CDL_MANY_WORK_H
#define CDL_MANY_WORK_H
#include "many.h"
#include "contact/band.h"
#include "program/system.h"

enum { LOCAL = 24, MAX_ROWS = 1 + MAX_SLIP }; /* dofs and rows of one contact at most */

/* Where the rows of a family's members go: local dof k is global slot_at(&dof[k], index). */
typedef struct pattern {
    family *fam;
    int n;
    slot_map dof[LOCAL];
    int *grad, *slip; /* local dof of each output */
    int first;        /* index whose points are of kind A (near families); -1: all members are looked at */
    double reach;     /* largest distance that counts as touching */
    /* near pairs found last: members with a gap below the skin */
    vec(int32_t) pair;  /* index 0 and 1, one after the other */
    int64_t *row_start; /* member number of the first pair of each index 0 */
    int32_t lo0, n0, lo1, n1;
} pattern;

typedef struct {
    pattern *pat;
    int64_t member;
    int32_t index[MAX_INDEX];
} contact_of;

/* Contacts in the order of families and members, one array for each quantity. */
typedef struct contact_list {
    int n, rows, cap;
    contact_of *of;
    cone *cone;          /* cone.row: its first row */
    int *dof_at, *dof;   /* n + 1; the dofs of contact c are dof[dof_at[c]] .. */
    size_t *J_at, *A_at; /* n + 1 */
    double *J, *K, *A;   /* rows; rows times M^-1; J K^T of one contact */
    /* by row: added to J v (rates of surfaces, gap/h, restitution); impulse; conjugate direction; rate free
     * of q' */
    double *b, *r, *p, *off;
    double *gap, *un, *e; /* by contact: gap, its rate before, restitution */
    double *l, *l0, *lp;  /* move that opens it, as before, its conjugate direction */
    bool *was;            /* pressed in the last step too */
    /* tangent directions in the components of slip as given, MAX_SLIP^2 each; only where there is friction */
    double *frame;
    /* fixed: columns of K^T, dof by dof */
    int *at_dof, *row_of;
    double *K_of;
    /* gap = base + J q, where the list is fixed and affine says so */
    double *base;
    bool *affine;
} contact_list;

/* Contacts that hang together: at[first..first + n), in an order that keeps neighbours close. */
typedef struct island {
    int first, n, kb;
    band_problem *band;
} island;
typedef struct islands {
    int n, cap;
    island *of;
    int *at; /* contacts, island after island */
} islands;

typedef struct many {
    const program *p;
    const run_options *o;
    results *r;
    system_t *s;
    arena *a, *scratch; /* scratch: emptied after each step */
    int n, rows_most, dofs_most;
    double h, theta, tol, t;
    double *q, *v, *q1, *v1, *f, *minv, *M, *qmid, *seen, *acc, *move;
    uint8_t *touched;
    int *marked, mark; /* dofs met in the walk number `mark` */
    pattern *pat;
    contact_list act, old;
    islands isl;
    double *energies; /* room for kernels run over all members */
    size_t energies_cap;
    double opened;     /* work of the smooth forces while overlaps were pushed open in this step */
    bool may_cut, cut; /* a step that is not solved is tried in halves; it was not */
    bool fixed;        /* all members are listed once for all: rows never change, few meet at one dof */
    double law_step;   /* fixed: the step that bounds of friction belong to */
    int32_t *cell, *next, *list;
    size_t cells_cap;
    double wf, dissipated, kinetic0, potential0, top;
    double overlap; /* largest at q1 */
    bool kinetic_is_mass;
    double skin, far, length; /* length: what overlaps are measured by */
    /* overlaps below `small` are let be; margin: how far contacts are looked for, in steps */
    double small, margin;
    size_t walk;
    int by; /* heaviest solver so far */
    bool pairs_known;
} many;

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}
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
/* v += M^-1 J^T dr for one contact */
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

/* near.c: pairs of near points from a cell list */
void near_pattern(many *w, pattern *p);
void near_keep(many *w);

/* islands.c: groups of contacts that share dofs.  order: contacts of a group in the order of Cuthill and
 * McKee, and kb its band; else as listed and kb = -1. */
void islands_find(islands *g, const contact_list *l, int ndof, bool order, arena *a, arena *scratch);
band_problem *island_band(const islands *g, const island *i, const contact_list *l, arena *a);

/* relax.c: sweeps with conjugate directions (plain: without) over the contacts at[0..n), two rows each at
 * most; the residual, over the largest impulse */
bool relax_fits(const contact_list *l, const int *at, int n);
double relax_solve(many *w, const int *at, int n, int most, bool plain, int *worst);

/* impulses.c: the step problem; false: not solved */
bool impulses_solve(many *w, double t);

/* many_list.c: patterns, and the list.  A contact is put at the end of it with its normal row, then filled,
 * then taken. */
typedef bool (*member_fn)(many *w, pattern *p, int64_t member, const int32_t *index);
bool list_patterns(many *w);
/* all members that may matter, in the order of families and members, until one says false */
bool each_member(many *w, member_fn f);
int list_next(many *w, pattern *p, int64_t member, const int32_t *index);
void list_fill(many *w, int c);
void list_take(many *w, int c);
void offsets_put(many *w, int c);
/* restitution, and the bounds of friction as impulses over `step` */
void law_put(many *w, int c, double step);
double slip_speed(const many *w, int c, const double *v);

/* many_positions.c: from q to q1 by the rates of the step, to time t; overlaps are pushed open */
void positions_go(many *w, double t);
void positions_open(many *w, double t);

/* many_start.c, in this order: masses and forces; lengths; chains; accelerations and the first sample */
bool start_begin(many *w);
void start_lengths(many *w);
void start_fixed(many *w);
bool start_gauss(many *w);

/* many_samples.c: over: 1 / size of the step that impulses belong to */
void many_sample(many *w, double over);
bool many_kinetic(many *w);

bool many_fail(many *w, span at, const char *message);
#endif
