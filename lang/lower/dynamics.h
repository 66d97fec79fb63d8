/* dynamics: the formulas of a model's motion, before they become kernels: sums of contributions over index
   sets, each place (row, col) of a set once. */
#ifndef CDL_DYNAMICS_H
#define CDL_DYNAMICS_H
#include "model/model.h"

typedef struct entry {
    ir_ref f;
    address row, col;
} entry;
typedef vec(entry) entries;
typedef struct entry_group {
    index_names over;
    span at;
    entries list;
    map64 by_place;
} entry_group;
typedef struct role {
    vec(entry_group) group;
    map64 by_set;
    size_t last;
} role;

typedef struct contact_form {
    entries gradient, slip_map; /* row: the dof;  col: the dof, row.base: the component of slip */
    ir_ref rate, bias;          /* IR_NONE: 0 */
    /* slip_moves: some component is not 0 */
    ir_ref slip_bias[MAX_SLIP];
    bool slip_moves;
    /* the slip at rest: that of a moving surface; slip_carried: some component is not 0 */
    ir_ref slip_offset[MAX_SLIP];
    bool slip_carried;
    bool linear, constant_gradient;
    int near_dim;
    address near_a[3], near_b[3];
    ir_ref near_reach;
} contact_form;

typedef struct dynamics {
    role mass, force, force_dq, force_dv, kinetic, potential;
    /* What changes kinetic + potential energy apart from contacts: forces without potential (rows), and power
       that belongs to no dof. */
    role driving, power;
    bool mass_constant, mass_diagonal, force_linear, force_of_state, potential_whole;
    span first_order;      /* the first equation of first order */
    contact_form *contact; /* of each of m->contacts */
} dynamics;

/* Errors found here: mass structurally singular, slip not linear in the rates, accelerations that enter
   nonlinearly, constraint without dofs. NULL when there were any. */
dynamics *dynamics_of(arena *a, const model *m);
/* Adds to dy->potential the potential of the forces in equations, if it can be recognised (potential.c);
   false: nothing. */
bool potential_of_forces(arena *a, const model *m, dynamics *dy);
/* A force at q = 0, q' = 0 as included in that potential; IR_NONE: it is not. */
ir_ref potential_constant(ir *g, ir_ref force);
#endif
