/* elab: declarations shared by the files that build a model.  model.c: classes, names, layout.
   elab_init.c: values at the start. elab.c: families and statements.  elab_contact.c: constraints.
   elab_field.c: fields, rods.  match.c: which equation determines which dof. */
#ifndef CDL_ELAB_H
#define CDL_ELAB_H
#include "model.h"

/* The gap between shapes in the current constraint. */
typedef struct touching {
    mclass *of; /* of the current constraint; NULL: there is none */
    const ast *node;
    bool used; /* it contains a gap between shapes: */
    int slots, dim;
    ir_ref slip[MAX_SLIP], *point, *normal;
    ir_ref turn[3]; /* relative angular velocity, in space; in the plane the first is all of it */
    mpair pair;
} touching;

/* A model as a part names it. */
typedef struct model_use {
    const ast *name;
    value model;
} model_use;

typedef struct elab {
    model *m;
    evaluator ev;
    const override *set;
    size_t nset;
    vec(mclass *) found;  /* in the order of discovery */
    vec(mclass *) probes; /* a class for each model that is used as a part */
    vec(model_use) uses;
    const struct nest *loops; /* around the current statement */
    /* the first energy with a dimension: the others have the same */
    const ast *energy;
    dim energy_unit;
    /* a statement has a syntax error: it may contain what seems to be missing */
    bool partial;
    bool moving;  /* from the statements on: inputs are functions of time, before that their first values */
    int of_param; /* the value of a parameter is being evaluated, */
    span of_param_at; /* this one */
    bool inputs;      /* there are some */
    touching touch;
} elab;

/* The scope of one class for one instance, which may be symbolic. */
typedef struct class_scope {
    scope base;
    mclass *c;
    address inst;
    bool own;
} class_scope;
class_scope *class_scope_new(elab *e, mclass *c, address inst, bool own);
address class_own_instance(const mclass *c);
address instance_at(const mclass *c, scope *in); /* the instance of c that a scope inside it is about */

/* Data of each class while it is elaborated. */
typedef struct class_work {
    class_scope *own; /* the scope of its own statements */
    vec(const ast *) statements;
    vec(mparam *) order; /* parameters, those that others need first */
    int state;           /* of the discovery: 1 busy, 2 done */
} class_work;
static inline class_work *work_of(const mclass *c)
{
    return c->work;
}

extern const index_names single_member; /* no index: a family of one */

/* The loops around a statement: indices of its own and of enclosing `for`s. */
typedef struct nest {
    int n;
    const ast *index[MAX_INDEX];
    int nwhere;
    const ast *where[MAX_INDEX];
} nest;
bool nest_add(elab *e, nest *n, const ast *list, const ast *where);
/* Calls body once with symbolic indices; where that cannot be (ev.needs_members), once for each member with
   numbers.  The body adds nothing to the model when ev.needs_members is set. */
typedef void family_body(elab *e, mclass *c, scope *in, const index_names *over, const ast *node);
void over_nest(elab *e, mclass *c, const nest *n, const ast *node, family_body *body);

mfamily *family_add(elab *e, mfamilies *to, mclass *c, const index_names *over, const ast *node, int nout,
                    bool rows);
/* The dof that a scalar value is, as an address: IN_Q or IN_V inputs; false otherwise. */
bool value_address(elab *e, const value *v, in_kind kind, address *at);
bool depends_on(const ir *g, ir_ref r, unsigned kinds); /* kinds: bits BIT(in_kind) */
#define BIT(k) (1u << (k))
/* reports a value that is not known before the run */
enum {
    MOVING = BIT(IN_TIME) | BIT(IN_Q) | BIT(IN_V) | BIT(IN_A) | BIT(IN_PRE) | BIT(IN_PAST_Q) |
             BIT(IN_PAST_V) | BIT(IN_SET) | BIT(IN_COORD) | BIT(IN_FIELD) | BIT(IN_INTEGRAL) | BIT(IN_ROD) |
             BIT(IN_BASE) | BIT(IN_PAST_BASE) | BIT(IN_REACT) | BIT(IN_FEATURE)
};
/* left - right of an equation or a constraint, sizes and dimensions checked */
bool both_sides(elab *e, scope *in, const ast *l, const ast *r, const char *what, span at, value *out);
family_body constraint_body;
/* Friction without a given slip, if there are bodies that the gap does not read. */
void slip_missing_warn(elab *e, const mcontact *k);

void elab_params(elab *e, mclass *c); /* defaults and part arguments -> m->defaults */
void elab_dofs(elab *e, mclass *c);   /* initial values -> m->init_q, init_v */
void elab_init_order(elab *e);        /* initial values that others use come first */
value dof_unit_of(elab *e, mclass *c, mdof *d);
void elab_statements(elab *e, mclass *c);
void elab_field_statement(elab *e, mclass *c, const nest *n, const ast *s);
bool elab_rod_force(elab *e, mclass *c, const ast *s); /* whether it was one */
bool rod_object(const value *v, int32_t *rod);         /* a rod of the model? (model.c) */
/* a reference shape from a file: the set points(matrix), or an error */
value rod_points(elab *e, const ast *x);

/* A file that a text x of the model names, below its folder. */
typedef struct model_file {
    elab *e;
    const char *path, *text;
    size_t len;
    span from;
} model_file;
bool model_file_read(elab *e, const ast *x, model_file *f);
/* Reports an error in the file, which becomes a source so that the place in it can be shown; returns
   false. */
bool model_file_bad(const model_file *f, size_t begin, size_t end, const char *what);
value model_file_points(const model_file *f, const double *x, size_t n); /* as a matrix of three columns */
/* points of a table; path: they follow each other */
value table_points(elab *e, const ast *x, bool path);
/* hull("part.stl"), of .obj and .csv too, hull(table("part.csv")): its points, if the text is one of these;
 * else false */
bool shape_mesh(elab *e, const ast *x, value *out);
value contact_member_value(elab *e, scope *in, const ast *constraint, sym name,
                           span at); /* c.rn in a formula */
value shape_value(elab *e, class_scope *in, const mdecl *d);
value rod_member(elab *e, mclass *c, int32_t rod, sym name, span at);
void elab_fields_check(elab *e);
void match_equations(elab *e);
void check_values(elab *e); /* restitution, friction, delays at the default parameters */
void check_inertias(const model *m, const double *param); /* of rotations, the same */
void resolve_function(elab *e, scope *in, const ast *fn); /* names in a body that nothing calls */
#endif
