/* program: what a model is compiled to.  Immutable; owned by its arena.  A kernel is a tape (straight-line
   code over registers) with the map of its inputs and outputs, run over the members of an index set. */
#ifndef CDL_PROGRAM_H
#define CDL_PROGRAM_H
#include <stdbool.h>
#include "base/arena.h"
#include "base/diag.h"
#include "base/op.h"

enum { MAX_INDEX = 4, MAX_SLIP = 3 };
enum { REACT = 1 + MAX_SLIP }; /* numbers of a reaction that formulas read: rn, components of rt */

/* What a kernel may read.  `base` of the address counts: */
typedef enum {
    IN_TIME,      /* t; base 0 */
    IN_PARAM,     /* the parameter vector (declared and derived parameters) */
    IN_Q,         /* degrees of freedom */
    IN_V,         /* their rates, right limits */
    IN_A,         /* second derivatives */
    IN_PRE,       /* left limits of the rates: pre(y') */
    IN_PAST_Q,    /* dof at the time `arg` */
    IN_PAST_V,    /* its rate at that time */
    IN_PAST_BASE, /* base of a rotation then, addressed as IN_BASE */
    IN_INDEX,     /* the value of index number `base` of the family */
    IN_SPEED,     /* |slip| of the contact, in a friction coefficient; speed of approach, in a restitution
                   */
    IN_BOUND,     /* bound variable number `base`: of an integral, or the argument of a history */
    IN_INTEGRAL,  /* the integral number `base` of the model */
    IN_SET,       /* a selection of the set-valued term number `base` (Sgn, normal cone …) */
    IN_COORD,     /* coordinate number `base` of the domain, or the arc length of a rod */
    IN_FIELD,     /* field number `base`; stride[0], stride[1]: how often differentiated in each coordinate */
    IN_ROD,       /* a quantity of a rod (self_gap, …) number `base` */
    IN_REACT,     /* reactions: those of reaction k of the program are the REACT numbers from REACT k on */
    IN_BASE,      /* bases of rotations: those of the rotation at dof k are the 9 numbers from 3 k on */
    IN_FEATURE,   /* where two shapes touch, FEATURE_NUMBERS per point (shapes.h) */
    IN_KINDS
} in_kind;

typedef struct {
    int32_t base, stride[MAX_INDEX];
} slot_map;
typedef struct {
    in_kind kind;
    slot_map at;
} slot;

/* Index set: index k runs from lo to hi (inclusive), both affine in the indices before it. */
typedef struct {
    int32_t lo, hi, lo_stride[MAX_INDEX], hi_stride[MAX_INDEX];
} index_range;
/* n == 0: one member */
typedef struct {
    int n;
    index_range r[MAX_INDEX];
    int64_t count;
} index_set;

/* Straight-line code. Registers: inputs first, then constants, then temporaries. Code writes only
   temporaries, and an output's register keeps its value to the end; so inputs and constants do not change.
   Operations of code: those of opcodes.def, fused pairs of them (fused.def), SINCOS (dst = sin a and register
   b = cos a), END after the last. */
typedef enum {
    TAPE_PLAIN = OP_COUNT - 1, /* up to here an op_code */
#define X(id, arity, value, outer, side, inner) TAPE_##id,
#include "base/fused.def"
#undef X
    TAPE_SINCOS,
    TAPE_END
} tape_op;
enum { SIDE_LEFT, SIDE_RIGHT, SIDE_EITHER };
typedef struct {
    uint8_t outer, side, inner;
} tape_pair;
extern const tape_pair tape_pairs[TAPE_SINCOS - OP_COUNT]; /* what the fused ones are made of */
/* unused operands are 0 */
typedef struct {
    uint32_t op, dst, a, b, c;
} instr;
typedef struct tape {
    uint32_t nin, nconst, nreg, ncode, nout;
    /* of ncode: the first ones, that give the same for all members of a family; their registers stay */
    uint32_t nhead;
    uint32_t nmore; /* doubles of work space in addition to the registers of a batch: for kernel.where */
    const double *constant;
    const instr *code;   /* ncode, and END */
    const uint32_t *out; /* register of each output (may be an input's or a constant's) */
} tape;

typedef struct kernel {
    tape tape;
    const slot *in; /* nin */
    /* of each output: where it goes; col only for matrices; NULL when not scattered */
    const slot_map *row, *col;
    index_set over;
    /* members for which this is 0 are left out; register k is index k; NULL: all.  See kernel_member */
    const tape *where;
    span at;
} kernel;
typedef struct {
    kernel *at;
    size_t n;
} kernels;

/* What kernels read from at one instant: a pointer for each kind (NULL when it does not occur). */
typedef struct inputs {
    double t;
    const double *from[IN_KINDS];
    double speed;
} inputs;

/* ---- running kernels (tape.c, batch.c) ---- */
void tape_start(const tape *t, double *reg); /* sets the constants; once for a register file */
void tape_run(const tape *t, double *reg);   /* reg[0..nin) set; computes all */
/* The same with the operations of opcodes.def only, for other algebras than doubles: one instruction for
 * each, one more register. */
tape tape_plain(const tape *t, arena *a);
/* Inputs of a kind that has no source in `in` are left as they are: the caller puts them. */
void kernel_gather(const kernel *k, const inputs *in, const int32_t *index, double *reg);
/* One member; outputs are left in reg[tape.out[i]]. */
static inline void kernel_run(const kernel *k, const inputs *in, const int32_t *index, double *reg)
{
    kernel_gather(k, in, index, reg);
    tape_run(&k->tape, reg);
}
/* Members one after the other (the order of nested loops).  start: index[] set to the first member or false;
   next: false at the end. Neither knows `where`: whoever runs members one by one calls kernel_member (reg:
   where->nreg doubles, nothing put). */
bool index_first(const index_set *s, int32_t *index);
bool index_next(const index_set *s, int32_t *index);
int64_t index_count(const index_set *s);
/* The count that is kept, a lone member being one whatever is kept. */
static inline int64_t index_members(const index_set *s)
{
    return s->n == 0 ? 1 : s->count;
}
bool kernel_member(const kernel *k, const int32_t *index, double *reg);
static inline int64_t range_end(int32_t base, const int32_t *stride, const int32_t *index, int n)
{
    int64_t at = base;
    for (int k = 0; k < n; k++)
        at += (int64_t)stride[k] * index[k];
    return at;
}
/* Bounds of index k, given those before it. */
static inline int64_t range_lo(const index_set *s, const int32_t *index, int k)
{
    return range_end(s->r[k].lo, s->r[k].lo_stride, index, k);
}
static inline int64_t range_hi(const index_set *s, const int32_t *index, int k)
{
    return range_end(s->r[k].hi, s->r[k].hi_stride, index, k);
}
static inline int32_t slot_at(const slot_map *m, const int32_t *index, int n)
{
    int32_t at = m->base;
    for (int k = 0; k < n; k++)
        at += m->stride[k] * index[k];
    return at;
}

/* Is it the same for all members? */
static inline bool slot_uniform(const slot *s)
{
    for (int k = 0; k < MAX_INDEX; k++)
        if (s->at.stride[k])
            return false;
    return s->kind != IN_INDEX;
}

enum { LANES = 192 }; /* members in a batch */
/* n members (n <= LANES) given by their indices, index[k*LANES + lane]; reg is [nreg][LANES] and some more,
   with constants set by batch_start. Outputs are left in reg[tape.out[i]*LANES + lane]. Ignores `where`. */
size_t batch_regs(const tape *t); /* doubles needed */
void batch_start(const tape *t, double *reg);
void batch_run(const kernel *k, const inputs *in, const int32_t *index, int n, double *reg);
/* All members in order, in batches; out[member*nout + i]; members excluded by `where` keep their place and
   give 0. work: batch_regs doubles, without initial values. All kinds that are read need a source, which must
   not be out. */
void kernel_run_all(const kernel *k, const inputs *in, double *work, double *out);

/* ---- what a dynamic system is made of ---- */
typedef enum { FRICTION_NONE, FRICTION_COULOMB, FRICTION_TRESCA } friction_law;
typedef enum { IMPACT_NEWTON, IMPACT_POISSON } impact_law;
/* gap >= 0; gap = 0; always closed, with given normal force. For constraints on rates: the same for the
   bounded quantity. */
typedef enum { REL_GAP, REL_BILATERAL, REL_CLOSED } contact_relation;

/* Two shapes that move, see shapes.h: their numbers, which instance of each (of the indices but the point),
   where what is held of each point lies. */
typedef struct shape_pair {
    bool touch; /* the constraint is one between such shapes */
    /* pairs are added and removed as they come near (near.h): the last index, 0 in the index set, is the
       place of the data of a pair */
    bool listed;
    int first, second;
    slot_map first_of, second_of, features;
} shape_pair;

typedef struct contact_family {
    const char *name; /* "floor", "big.ground" */
    span at;
    int32_t nindex; /* indices the user wrote, and the point: see index_first_own (parts come first) */
    int32_t slots;  /* of shapes that may touch in several points: how many, the last index; 0: it has none */
    index_set over;
    contact_relation relation;
    friction_law friction;
    impact_law impact;
    bool of_rates;    /* it bounds rates: no gap, `gradient` and `rate` are the parts of what it bounds */
    bool slip_given;  /* else friction acts in the whole tangent space, in the kinetic metric */
    bool mu_of_speed; /* the coefficient reads IN_SPEED */
    bool e_of_speed;  /* the restitution reads IN_SPEED: that of approach */
    bool fed;         /* its normal force depends on reactions: */
    int32_t read_as;  /* its reaction is this one of those that formulas read, from 1; 0: none does */
    span read_at;     /* the first formula that does */
    int32_t fed_by;   /* the reaction of the same member of this family; -1: given by its formula */
    bool cascade;     /* simultaneous impacts are computed one after the other */
    bool gap_linear, gap_constant_gradient; /* gap affine in q (and t); gradient free of q and t */
    int nslip;                              /* components of slip (0 .. MAX_SLIP) */
    /* kernels over the same index set, in the same slot order; absent ones have nout == 0 */
    kernel gap;         /* out: gap */
    kernel gradient;    /* out: d gap / d q, row = the dof */
    kernel rate;        /* out: d gap / d t (partial) */
    kernel bias;        /* out: d^2 gap/dt^2 with q'' = 0: dot(H) q' + d/dt(gap_t) */
    kernel slip;        /* out: nslip components at the given q, q', t */
    kernel slip_map;    /* out: d slip_k / d q', col = the dof, row.base = k */
    kernel slip_offset; /* out: nslip components of the slip at q' = 0 */
    kernel slip_bias;   /* out: nslip components of d slip/dt with q'' = 0 */
    kernel normal;      /* out: given normal force (REL_CLOSED) */
    kernel mu;          /* out: mu (coulomb; tan of the angle) or the bound s (tresca); may read IN_SPEED */
    kernel mu_static;   /* out: the coefficient at rest, where it is another one */
    kernel e;           /* out: restitution; may read IN_SPEED */
    kernel et;          /* out: tangential restitution */
    kernel adhesion;    /* out: the tension that a closed contact can carry */
    kernel points;      /* between shapes: where they touch, and the normal there */
    /* pairs found by a cell list: gap = norm(x[i] - x[j]) - c: NULL-sized when not of that form */
    int near_dim;                  /* 0, or 2 or 3: dimension of the points */
    slot_map near_a[3], near_b[3]; /* addresses of their coordinates */
    kernel near_reach;             /* out: c, at most this distance apart counts as touching */
    shape_pair pair;
} contact_family;
enum { KEPT_MEMBERS = 4096 }; /* of a family: more are counted and measured, not kept sample by sample */
/* the first index that the user wrote */
static inline int index_first_own(const contact_family *f)
{
    return f->over.n - f->nindex - f->pair.listed;
}
/* which index is the point, where shapes touch in several */
static inline int index_of_point(const contact_family *f)
{
    return f->over.n - 1 - f->pair.listed;
}

/* The round of the points of a shape: balls, disks across its axis, an ellipsoid. */
typedef enum { SHAPE_BALL, SHAPE_CYLINDER, SHAPE_ELLIPSOID, SHAPE_HALFSPACE } shape_kind;

/* A convex body: the hull of points in its own frame, which are parameters from `table` on, `size` for each
   instance: dim coordinates and the round of each.  Of a cylinder the first two are the middles of its ends;
   of an ellipsoid the matrix stands behind its centre. */
typedef struct shape_info {
    const char *name;
    span where;
    shape_kind kind;
    /* number of the class of the model whose instances carry it; -1: it is part of a constraint */
    int32_t of;
    int dim, npoint;
    int32_t table, size, instances;
    kernel pose; /* over the instances: the place and the matrix of the attitude; no output: fixed */
} shape_info;

/* all shapes but half-spaces, first those that may touch each other; and the numbers of IN_FEATURE */
typedef struct shape_list {
    const shape_info *at;
    size_t n, paired;
    int32_t nfeature;
} shape_list;

typedef struct event_rule { /* when cond { target = value … }, stop when cond */
    span at;
    bool stop;
    index_set over;
    kernel when;  /* out: the truth of the condition, then one signed function for each comparison in it */
    kernel reset; /* out: new values; row = address; reset_rate[i]: of a rate, else of a dof */
    const bool *reset_rate;
} event_rule;

typedef struct param_info {
    const char *name;
    const char *doc;
    int32_t at, size;
    double lo, hi;
    bool has_default, structural;
    span where;
} param_info;
typedef struct dof_info {
    const char *name;
    const char *doc;
    int32_t at, size;
    span where;
} dof_info;

/* dofs of the root model; and the name of any dof, those of parts too, from what the program was made of */
typedef struct dof_list {
    const dof_info *at;
    size_t n;
    void (*put)(text *out, const void *source, int32_t dof); /* NULL: not known */
    const void *source;
} dof_list;

/* values at the start */
typedef struct program_start {
    kernels base; /* of rotations; row as for IN_BASE */
    kernels q, v; /* row = dof */
} program_start;

/* rotations A = R C(x), see base/rotation.h: the dofs that are the first of three x, in order */
typedef struct rotation_list {
    const int32_t *at;
    size_t n;
} rotation_list;

typedef struct program {
    const char *model;
    uint64_t hash; /* of the normalised IR */
    int32_t nparam, nq;
    /* of the root model */
    const param_info *param;
    size_t nparam_info;
    dof_list dofs;
    const uint8_t *order; /* of each dof: 2, or 1 (first-order equation) */
    kernels defaults; /* parameter values in order of need; row = parameter; IN_PARAM reads earlier ones */
    kernels derived;  /* the same for values that follow from parameters */
    program_start start;
    rotation_list rotations;
    /* M(q,t) q'' = f(t, q, q'), contributions added up; rows and columns are dofs.  First-order dofs: M is
     * the matrix at q', f the rest. */
    kernels mass, force;
    /* Jacobians of f (matrices); what the mass matrix depends on q is not in them */
    kernels force_dq, force_dv;
    /* force_of_state: f reads q or q' at all */
    bool mass_constant, mass_diagonal, force_linear, force_of_state;
    /* energies, one output each; kinetic is absent for equations: then q'.M q'/2 */
    kernels kinetic, potential;
    /* what changes kinetic + potential energy: the part of f that has no potential (rows), without inertia
       forces; and power that belongs to no dof, one output each */
    kernels driving, power;
    bool potential_whole; /* every smooth force is -dV/dq (audit can be closed without work integrals) */
    const contact_family *contact;
    size_t ncontact;
    const event_rule *event;
    size_t nevent;
    shape_list shapes;
    /* what the model requires of a backend, each with a place for messages; span.file == 0: not required */
    const struct inclusion_program *inclusion; /* inclusion.h; NULL when there is none */
    const struct field_program *field;         /* field.h; NULL when there is none */
    const struct rod_program *rod;             /* rod.h; NULL when there is none */
    span has_delay, has_inclusion, has_field, has_rod, has_event, has_first_order;
    const struct delay_program *delay; /* past values, integrals over the past (history.h); NULL: none */
} program;
#endif
