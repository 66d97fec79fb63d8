/* gate: checks a motion from its stored states. It runs the kernels of the program and no code of the
   solvers, so it is independent of them. */
#ifndef CDL_GATE_H
#define CDL_GATE_H
#include "clock/backend.h"

/* A program at an instant, evaluated by its kernels alone. */
typedef struct gate gate;
gate *gate_new(arena *a, const program *p, const double *param);
void gate_at(gate *g, double t, const double *q, const double *v);
/* Can the gap or the friction bound be computed from t and q alone? Not if they read the past, or a speed. */
bool gate_knows_gap(const gate *g, size_t of);
bool gate_knows_rate(const gate *g, size_t of); /* of the quantity that a constraint on rates bounds */
bool gate_knows_bound(const gate *g, size_t of);
/* Values at the start, as given by the model. */
void gate_initial(gate *g, double *q, double *v);
int64_t gate_members(const gate *g, size_t of);
const double *gate_gaps(gate *g, size_t of); /* of all members */
double gate_gap(gate *g, size_t of, int64_t member);
/* Bound of the friction force of a member with the normal force rn, kinetic or static. */
double gate_bound(gate *g, size_t of, int64_t member, double rn, bool slips);
double gate_adhesion(gate *g, size_t of, int64_t member); /* the largest pull; 0: none */
/* Scale of a gap: |gradient| times these sizes of the dofs. */
double gate_length(gate *g, size_t of, int64_t member, const double *sizes);
/* Gives a dof that stays at 0 a size: rounding of the others. */
void gate_sizes(double *sizes, int n);
/* A sum, and the sum of the sizes of its terms. */
typedef struct gate_total {
    double is, size;
} gate_total;
gate_total gate_energy(gate *g);  /* kinetic (as the model defines it) and potential energy */
gate_total gate_audited(gate *g); /* q'.M q'/2 and potential energy: the balance with work and dissipation */
/* The slip of a member along its surface, component by component, and the size of its terms; false: it cannot
   be computed from t, q and q' alone. */
bool gate_slip(gate *g, size_t of, int64_t member, double *slip, double *size);
const program *gate_program(const gate *g);
/* Numbers for all dofs, each with the sum of the sizes of its terms. */
typedef struct gate_sum {
    double *at, *size;
} gate_sum;
/* Provides the past of a run from its samples, and its reactions, so that forces that read them can be
   computed. Not the past if rates jumped, because samples do not show when. */
void gate_recall(gate *g, const results *r);
/* Provides the reactions of a sample to formulas; they are means over the step that ends there. */
void gate_reactions(gate *g, const results *r, int64_t at);
bool gate_reads_reactions(const gate *g);
/* Equations of motion: can masses, forces and rows be computed from t, q and q' alone? The functions below
   add forces, M x, and the reactions of a member to sums. */
bool gate_knows_motion(const gate *g);
/* What is the same at all instants. */
typedef struct gate_still {
    bool masses, forces, rows;
} gate_still;
gate_still gate_stays(const gate *g);
void gate_force(gate *g, gate_sum *sum);
void gate_mass_diagonal(gate *g, double *diagonal);
void gate_mass_times(gate *g, const double *x, gate_sum *sum);
/* Marks the dofs that rows of a member may push. */
void gate_reach(gate *g, size_t of, int64_t member, bool *dofs);
void gate_react(gate *g, size_t of, int64_t member, double rn, const double *rt, gate_sum *sum);
/* normal reactions of all members */
void gate_react_all(gate *g, size_t of, const double *rn, gate_sum *sum);
/* The gradient of a gap for all dofs. Returns the rate of the gap if nothing moves. */
double gate_row(gate *g, size_t of, int64_t member, double *H);
/* Constraints that no motion can satisfy together during a time from this state, reduced to those that the
   proof needs: a message (in `a`), and the place of the first one; NULL: none were found. */
const char *gate_excludes(gate *g, double t, double over, const double *q, const double *v, arena *scratch,
                          arena *a, span *at);
const char *gate_name(gate *g, size_t of, int64_t member, arena *a);

/* Families of very many pairs of points whose gap is their distance minus a sum of radii (gate_pairs.c):
   finds the members that may overlap at q. NULL: not such a family; false: points are not finite. */
typedef struct gate_pairs gate_pairs;
gate_pairs *gate_pairs_new(arena *a, const contact_family *f, const double *param);
double gate_pairs_points(const gate_pairs *p);
bool gate_pairs_find(gate_pairs *p, const double *q, const int64_t **members, size_t *n);

/* Pairs of shapes, from their points and poses alone (gate_shapes.c). NULL: there are none. */
typedef struct gate_shapes gate_shapes;
typedef struct shapes_apart {
    double gap;  /* negative: an upper bound of the overlap */
    double way;  /* the largest distances that their points moved between the last two placements, added up */
    double size; /* of both shapes */
} shapes_apart;
gate_shapes *gate_shapes_new(arena *a, const program *p, const double *param);
void gate_shapes_place(gate_shapes *g, const inputs *in);
shapes_apart gate_shapes_pair(const gate_shapes *g, size_t of, const int32_t *index);
/* Calls `look` for the pairs of a listed family whose bounding balls overlap along an axis, with their
   indices including the first point. Stops when `look` returns false, and returns that. */
bool gate_shapes_each(gate_shapes *g, size_t of, bool (*look)(void *ud, const int32_t *index), void *ud);
/* Does the constraint bound the distance of its shapes, without further terms? */
bool gate_shapes_plain(gate_shapes *g, size_t of, const int32_t *index, const inputs *in);
/* The same in the current state of the gate: bodies are placed. Is the family one of shapes, with such a
   constraint? */
void gate_place(const gate *g, gate_shapes *bodies);
bool gate_plain(const gate *g, gate_shapes *bodies, size_t of);

/* The equations of motion of a run: balance_step checks the step that ends at a sample, if all steps are
   stored; balance_instant checks a sample, if its reactions are those of the instant. Call it in the order of
   time, then balance_holds; false: the run has failed. */
typedef struct balance balance;
balance *balance_new(gate *g, results *r, arena *a);
void balance_step(balance *b, int64_t at);
void balance_instant(balance *b, int64_t at);
/* text of what could not be checked; NULL: nothing */
const char *balance_unchecked(const balance *b, arena *a);
bool balance_holds(balance *b);

/* Checks the stored motion: values are finite, constraints hold, reactions push, lie in their cones, and act
   only where bodies touch. Otherwise the run fails, with the place in the model and the time. max_penetration
   and residual are raised to the values found. If the run failed at constraints that provably exclude each
   other, the message says so. */
void gate_check(results *r, const run_options *o);
#endif
