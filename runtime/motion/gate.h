/* gate: checks of a motion from the states that were kept.  It runs the kernels of the program and nothing of
   the solvers, so what it finds is no opinion of theirs. */
#ifndef CDL_GATE_H
#define CDL_GATE_H
#include "clock/backend.h"

/* A program at an instant, by its kernels alone. */
typedef struct gate gate;
gate *gate_new(arena *a, const program *p, const double *param);
void gate_at(gate *g, double t, const double *q, const double *v);
/* Are gap, bound of friction known from t and q alone?  Not where they read the past, or a speed. */
bool gate_knows_gap(const gate *g, size_t of);
bool gate_knows_rate(const gate *g, size_t of); /* of what a constraint of rates bounds */
bool gate_knows_bound(const gate *g, size_t of);
/* values at the start, as the model gives them */
void gate_initial(gate *g, double *q, double *v);
int64_t gate_members(const gate *g, size_t of);
const double *gate_gaps(gate *g, size_t of); /* of all members */
double gate_gap(gate *g, size_t of, int64_t member);
/* Bound of the friction force of a member at the normal force rn, in slip or at rest. */
double gate_bound(gate *g, size_t of, int64_t member, double rn, bool slips);
double gate_adhesion(gate *g, size_t of, int64_t member); /* the pull that it bears; 0: none */
/* What a gap is measured by: its gradient times these sizes of the dofs. */
double gate_length(gate *g, size_t of, int64_t member, const double *sizes);
/* A dof that rests at 0 is known no better than by rounding of the others. */
void gate_sizes(double *sizes, int n);
/* a sum, and that of the sizes of its parts */
typedef struct gate_total {
    double is, size;
} gate_total;
gate_total gate_energy(gate *g);  /* kinetic, as it is written, and potential */
gate_total gate_audited(gate *g); /* q'.M q'/2 and potential: what work and dissipation add up to */
/* The slip of a member along its surface, as many numbers as it has components, and the size of its terms;
   false: not known from t, q and q' alone. */
bool gate_slip(gate *g, size_t of, int64_t member, double *slip, double *size);
const program *gate_program(const gate *g);
/* Numbers of all dofs, and the sum of the sizes of what was added up to them. */
typedef struct gate_sum {
    double *at, *size;
} gate_sum;
/* The past of a run, from its samples, and its reactions: forces that read them are known from then on.  Not
   the past where rates jumped, as samples do not show when. */
void gate_recall(gate *g, const results *r);
/* Formulas read the reactions of a sample, which are means over the step to it. */
void gate_reactions(gate *g, const results *r, int64_t at);
bool gate_reads_reactions(const gate *g);
/* Equations of motion: are masses, forces and rows known from t, q and q' alone?  Forces, M x, and reactions
   of a member are added. */
bool gate_knows_motion(const gate *g);
/* what is the same at all instants */
typedef struct gate_still {
    bool masses, forces, rows;
} gate_still;
gate_still gate_stays(const gate *g);
void gate_force(gate *g, gate_sum *sum);
void gate_mass_diagonal(gate *g, double *diagonal);
void gate_mass_times(gate *g, const double *x, gate_sum *sum);
/* Dofs that rows of a member may push are marked. */
void gate_reach(gate *g, size_t of, int64_t member, bool *dofs);
void gate_react(gate *g, size_t of, int64_t member, double rn, const double *rt, gate_sum *sum);
void gate_react_all(gate *g, size_t of, const double *rn, gate_sum *sum); /* normal ones of all members */
/* The gradient of a gap at all dofs, and its rate where nothing moves (returned). */
double gate_row(gate *g, size_t of, int64_t member, double *H);
/* Which constraints no motion keeps over a time from a state, as few as prove it, in words (in `a`), and the
   place of the first; NULL: none were found. */
const char *gate_excludes(gate *g, double t, double over, const double *q, const double *v, arena *scratch,
                          arena *a, span *at);
const char *gate_name(gate *g, size_t of, int64_t member, arena *a);

/* Families of very many pairs of points whose gap is their distance less what they reach (gate_pairs.c): the
   members that may overlap at q.  NULL: the family is none; false: points are not finite. */
typedef struct gate_pairs gate_pairs;
gate_pairs *gate_pairs_new(arena *a, const contact_family *f, const double *param);
double gate_pairs_points(const gate_pairs *p);
bool gate_pairs_find(gate_pairs *p, const double *q, const int64_t **members, size_t *n);

/* Pairs of shapes, from their points and poses alone (gate_shapes.c).  NULL: there are none. */
typedef struct gate_shapes gate_shapes;
typedef struct shapes_apart {
    double gap;  /* below 0: how deep they overlap, at most */
    double way;  /* how far their points came at most between the last two placings, added up */
    double size; /* of both */
} shapes_apart;
gate_shapes *gate_shapes_new(arena *a, const program *p, const double *param);
void gate_shapes_place(gate_shapes *g, const inputs *in);
shapes_apart gate_shapes_pair(const gate_shapes *g, size_t of, const int32_t *index);
/* Those pairs of a family that is listed whose balls overlap along an axis: their indices, with the first
 * point.  Ends where `look` says false, and says so. */
bool gate_shapes_each(gate_shapes *g, size_t of, bool (*look)(void *ud, const int32_t *index), void *ud);
/* Does the constraint bound the distance of its shapes as it is? */
bool gate_shapes_plain(gate_shapes *g, size_t of, const int32_t *index, const inputs *in);
/* The same where the gate stands: bodies are placed; is the family one of shapes, with such a constraint? */
void gate_place(const gate *g, gate_shapes *bodies);
bool gate_plain(const gate *g, gate_shapes *bodies, size_t of);

/* Equations of motion of a run: the step that ends at a sample, where all steps are kept; a sample, where its
   reactions are those of the instant.  Steps in the order of time; then, whether they hold: false, the run
   has failed. */
typedef struct balance balance;
balance *balance_new(gate *g, results *r, arena *a);
void balance_step(balance *b, int64_t at);
void balance_instant(balance *b, int64_t at);
const char *balance_unchecked(const balance *b, arena *a); /* for people; NULL: nothing */
bool balance_holds(balance *b);

/* The motion that a run left: finite, constraints hold, reactions push and lie in their cones where something
   touches.  Otherwise the run has failed, at the place in the model and the time.  max_penetration and
   residual are no smaller than what is found.  Of a run that failed at a constraint: where a proof is found
   that constraints exclude each other, that is the message. */
void gate_check(results *r, const run_options *o);
#endif
