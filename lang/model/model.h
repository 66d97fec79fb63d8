/* model: a checked model, its names resolved, its formulas lowered to IR.  A model used as a part is a class:
   all its instances in one set of families, the instance number being the first index.  Built by elab.c; read
   by assemble (-> program), show and the session. */
#ifndef CDL_MODEL_H
#define CDL_MODEL_H
#include "value/eval.h"

typedef struct model model;
typedef struct mclass mclass;

/* The indices a family runs over.  where: condition on the indices, or IR_NONE. */
typedef struct index_names {
    int n;
    sym name[MAX_INDEX];
    index_set set;
    ir_ref where;
} index_names;

/* A parameter's values lie side by side for all instances of its class: element k of instance i is at offset
 * + i*size + k. */
typedef struct mparam {
    sym name;
    const char *doc;
    span at;
    const ast *decl;
    int32_t offset, size;
    int32_t n[2];
    uint8_t rank;
    dim unit;
    double lo, hi;
    bool has_default, structural;
    double fixed;
    /* An input, set by the calling program during a run, is a cubic in time: element k is value + s*(c[3*k] +
       s*(c[3*k + 1] + s*c[3*k + 2])), s = t - c[3*size], where c begins at parameter `input`. 0: it is not an
       input. */
    int32_t input;
} mparam;
typedef struct mdof {
    sym name;
    const char *doc;
    span at;
    const ast *decl;
    int ndim;
    int32_t lo[MAX_INDEX], n[MAX_INDEX];
    int32_t comp;  /* components of a vector dof (`in R2`), 0: scalar */
    bool rotation; /* `in SO3`: the components are those of a small rotation, see base/rotation.h */
    int32_t offset, size;
    dim unit;
    mclass *of;
    bool has_init[2];
} mdof;
typedef struct mlet {
    const ast *decl;
    int state;
    value v;
} mlet;
/* A convex set attached to a body: the hull of points with a round each. They are parameters: dim
   coordinates and the round, point after point, from table on, `size` numbers for each instance; for an
   ellipsoid followed by its matrix. */
typedef struct mshape {
    sym name;
    const ast *decl; /* NULL: a set that is part of a constraint */
    span at;
    const char *set; /* "box" */
    shape_kind kind;
    int dim, npoint;
    int32_t table, size;
    int number;      /* among model.shapes, from 1; 0: in no pair so far */
    mclass *of;      /* whose instances carry it; NULL: a set that is part of a constraint */
    ir_ref pose[12]; /* place and attitude, dim + dim^2 formulas over the instances */
    enum { SHAPE_NEW, SHAPE_BUSY, SHAPE_WRONG, SHAPE_KNOWN } state; /* busy: being made */
    value fixed; /* without decl, and where it was read from a file */
    bool meshed;
} mshape;
/* instance = first + k*per + (i - lo) */
typedef struct mpart {
    sym name;
    const ast *decl;
    mclass *of;
    int32_t first, per, lo, n;
    bool indexed;
} mpart;

struct mclass {
    sym name;
    const ast *decl;
    model *m;
    int32_t ninst;        /* instances of it in the whole model */
    int32_t qbase, qsize; /* dof d of instance k is at qbase + k*qsize + d.offset */
    map64 names;          /* sym -> mdecl * */
    vec(mparam *) params;
    vec(mdof *) dofs;
    vec(mpart *) parts;
    scope *outer;     /* the scope that contains the model */
    index_names inst; /* the instance as an index; n == 0 when there is one instance only */
    void *work;       /* of the elaboration */
};

/* What a name of a class denotes. */
typedef enum {
    DECL_PARAM,
    DECL_LET,
    DECL_FN,
    DECL_DOF,
    DECL_CONSTRAINT,
    DECL_PART,
    DECL_COORD,
    DECL_FIELD,
    DECL_ROD,
    DECL_SHAPE
} decl_kind;
typedef struct mdecl {
    decl_kind kind;
    sym name;
    span at;
    const ast *node; /* PARAM_ITEM, BIND, FN, DOF_ITEM, CONSTRAINT, PART, INDEX, FIELD_ITEM, ROD, SHAPE */
    /* number: of the coordinate, field or rod */
    union {
        mparam *param;
        mdof *dof;
        mpart *part;
        mlet *let;
        mshape *shape;
        int32_t number;
    };
} mdecl;
const mdecl *class_find(const mclass *c, sym name);

typedef struct mfamily { /* outputs over an index set */
    index_names over;
    /* row: the dof or parameter that an output belongs to (NULL for energies) */
    ir_ref *out;
    address *row;
    int nout;
    span at;
    const ast *decl;
    mclass *of;
    bool moments; /* an equation of three moments: its rows are those of a rotation */
} mfamily;
typedef vec(mfamily) mfamilies;

/* Two shapes that move, or may move: their instances, and the place of the data of their points. listed:
   pairs are added and removed; their place is an index after that of the point. */
typedef struct mpair {
    mshape *first, *second; /* NULL: there are none */
    address first_of, second_of, features;
    bool listed;
} mpair;

typedef struct mcontact {
    /* "big.ground" */
    sym name;
    const char *path;
    const ast *decl;
    span at;
    mclass *of;
    /* the last `own` indices are the user's */
    index_names over;
    int own;
    /* a member that was written out: its `own` indices and its class's instance, `over` has none */
    bool one;
    int32_t index[MAX_INDEX], inst;
    contact_relation relation;
    friction_law friction;
    impact_law impact;
    /* gap >= 0 admissible; mu is tan(angle) when an angle was given; IR_NONE when absent */
    ir_ref gap, normal, mu, e;
    const ast *fed_by; /* the constraint whose rn is its normal force; NULL: none */
    ir_ref mu_static, et,
        adhesion; /* static coefficient, tangential restitution, tension that it can carry */
    bool cascade; /* simultaneous impacts are computed one after the other */
    ir_ref slip[MAX_SLIP];
    int nslip;
    bool slip_given;
    /* between shapes: number of points that may touch, then the last index of `over`; 0 if there is only one.
       Their places and the normal there, dim formulas each. */
    int slots, dim;
    ir_ref *point, *facing;
    mpair pair;
    bool of_rates; /* the gap holds rates, which it bounds */
    span mu_at, e_at, et_at, slip_at, adhesion_at;
} mcontact;

/* indices behind those that the user wrote */
static inline int contact_hidden(const mcontact *c)
{
    return (c->slots > 0) + c->pair.listed;
}

typedef struct mreact {
    const ast *decl;
    span at;
} mreact;

/* left - right of each comparison */
typedef struct mevent {
    span at;
    const ast *decl;
    bool stop;
    index_names over;
    ir_ref when;
    ir_ref *switches;
    int nswitch;
    address *target;
    bool *rate;
    ir_ref *value;
    int nset;
} mevent;
typedef struct mintegral {
    ir_ref lo, hi, integrand;
    int bound;
    span at;
} mintegral;
typedef enum { SET_SGN, SET_NORMAL_CONE, SET_INTERVAL } set_kind;
/* selections first .. first + narg - 1 */
typedef struct mset {
    set_kind kind;
    value of;
    ir_ref *arg;
    int narg;
    int first;
    span at;
} mset;
typedef struct mcoord {
    sym name;
    ir_ref lo, hi;
    span at;
} mcoord;
typedef struct mfield {
    sym name;
    const char *doc;
    int ncoord;
    int coord[2];
    span at;
} mfield;
/* gap >= 0; sense +1: u >= psi, -1: u <= psi */
typedef struct mobstacle {
    int field;
    ir_ref gap;
    int sense;
    span at;
} mobstacle;
/* a flux whose coefficient has cases, and its derivative written out */
typedef struct mflux {
    ir_ref flux, derivative;
    int coord;
    span at;
} mflux;
/* coord < 0: on the whole boundary (where a condition or IR_NONE) */
typedef struct mcondition {
    int coord;
    ir_ref where, residual;
    span at;
} mcondition;
typedef struct mrodattr {
    sym key;
    value v;
    span at;
} mrodattr;
typedef struct mrod {
    sym name;
    const char *doc;
    span at;
    vec(mrodattr) attr;
} mrod;
/* b < 0: against a body, which is a set */
typedef struct mrodpair {
    int a, b;
    value body;
    bool inside;
    span at;
} mrodpair;
/* the section of rod b at sb is joined to that of rod a at sa: "rigid", "ball", "hinge" with its axis */
typedef struct mrodjoint {
    sym what;
    int a, b;
    ir_ref sa, sb;
    value axis;
    span at;
} mrodjoint;
typedef struct mrodlinks {
    vec(mrodpair) pairs;
    vec(mrodjoint) joints;
} mrodlinks;
/* position, frame, moment at s; force at s or distributed */
typedef struct mrodload {
    int rod;
    ir_ref s;
    bool point;
    sym what;
    value v;
    span at;
    bool follower;
} mrodload;

/* shapes of pairs; numbers of IN_FEATURE */
typedef struct mshapes {
    vec(mshape *) list;
    vec(mshape *) solids; /* all of them but half-spaces */
    int32_t nfeature;
} mshapes;

struct model {
    sym name;
    const ast *decl;
    arena *a;
    ir *g;
    diags *d;
    symtab *names;
    vec(mclass *) classes; /* [0] is the model itself, parts after the classes that hold them */
    int32_t nparam, nq, nbound, nset;
    uint8_t *order; /* of each dof: 1 or 2 */
    mfamilies defaults, derived, init_base, init_q, init_v, history;
    mfamilies equation, kinetic, potential, dissipation, force;
    mfamilies inclusion; /* out: lhs - rhs with IN_SET inputs, row = dof */
    vec(mcontact) contacts;
    vec(mreact) reacts; /* constraints whose reactions formulas read */
    mshapes shapes;
    vec(mevent) events;
    vec(mintegral) integrals;
    vec(mset) sets;
    vec(mcoord) coords;
    vec(mfield) fields;
    mfamilies field_equation;
    vec(mobstacle) obstacles;
    vec(mcondition) conditions;
    vec(mflux) fluxes;
    vec(mrod) rods;
    vec(mrodload) loads;
    mrodlinks rod_links;
    span has_delay;
};

/* Overrides that change structure: `run column(N = 50)`. */
typedef struct override {
    sym name;
    double value;
    span at;
    bool input; /* the parameter is an input; value does not count */
} override;

/* Checks and lowers a model with its defaults and the overrides. Errors go to d; NULL if there were any.
   outer: the scope that contains the model. */
model *model_build(arena *a, symtab *names, diags *d, scope *outer, const ast *decl, const override *set,
                   size_t nset);
/* Whether a parameter of the model is structural (its value decides sizes): found while building. */
const mparam *model_param(const model *m, sym name);
/* Which declaration a dof belongs to, and its number in that (may be NULL). */
const mdof *model_dof(const model *m, int32_t q, int32_t *in);
/* an ir_namer; ud: model_namer */
void model_input_name(text *out, const ir *g, const ir_input *in, void *index_names_or_null);
typedef struct model_namer {
    const model *m;
    const index_names *over;
} model_namer;
/* the place of a dof (q) or a parameter; a sum of indices; a value, its symbolic parts as formulas */
void model_place(text *out, const model *m, const index_names *over, const address *at, bool q);
void model_affine(text *out, const model *m, const index_names *over, const address *at);
void model_value(text *out, const model *m, const value *v, void *ud);
const mclass *model_instances(const model *m,
                              const index_names *over); /* whose instances the first index counts */
/* Checks restitution, friction and delays that depend only on parameters, at these parameters; reports to
 * m->d and returns false. */
bool model_check_laws(const model *m, const double *param);
/* Position of a member in the order of nested loops, -1 when it is not one. */
int64_t index_rank(const index_set *s, const int32_t *index);
extern const char *const contact_keys[]; /* attributes of a constraint; NULL at the end */
/* of each: the words that it accepts in addition to laws, or NULL */
extern const char *const *const contact_words[];
extern const char *const dof_spaces[]; /* where degrees of freedom lie; NULL at the end */
const char *shape_set_name(size_t k);  /* sets attached to bodies; NULL after the last */

/* Stable text: declarations, families, formulas (`cdl show model`, `show ir`, `show jacobian`). */
void model_dump(text *out, const model *m);
void model_dump_ir(text *out, const model *m);
void model_dump_jacobian(text *out, const model *m);
void model_dump_equations(text *out, const model *m);
uint64_t model_hash(const model *m);
#endif
