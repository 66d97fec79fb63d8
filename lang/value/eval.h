/* eval: AST + scope -> value.  The one evaluator of expressions: constants are computed, what depends on
   dofs, parameters or time becomes IR. Reports located errors to diags and returns V_ERROR; never reports a
   mistake twice. */
#ifndef CDL_EVAL_H
#define CDL_EVAL_H
#include "value.h"

struct evaluator;
typedef enum { LOOK_NO, LOOK_YES, LOOK_ERROR } look;
struct scope {
    scope *up;
    /* the value of a name here (this scope only), or LOOK_NO.  ev->at is where it is used. */
    look (*find)(scope *s, struct evaluator *ev, sym name, span at, value *out);
    void (*names)(scope *s, near *n); /* offers all names for did-you-mean; may be NULL */
    /* what an object of this scope answers to o[i] and o(x); may be NULL */
    value (*subscript)(scope *s, struct evaluator *ev, const value *object, const value *index, size_t n,
                       span at);
    value (*call)(scope *s, struct evaluator *ev, const value *object, const value *arg, size_t n, span at);
    void *of;
};

/* Names bound to values: function arguments, indices, measures, top-level definitions. */
typedef struct {
    scope base;
    map64 at;
    arena *a;
    vec(value) values;
    vec(sym) order;
} table_scope;
table_scope *table_scope_new(arena *a, scope *up);
void table_scope_set(table_scope *s, sym name, value v); /* replaces */

/* conditions on indices that are decided for the current family */
typedef struct assumption {
    const struct assumption *up;
    ir_ref condition;
    bool holds;
} assumption;

typedef struct evaluator {
    arena *a;
    symtab *names;
    diags *d;
    ir *g;                            /* NULL in a session: then all values are numbers */
    const struct index_names *family; /* indices in force while lowering a family, or NULL */
    /* set if a family cannot be kept symbolic (an index that is not affine): its members are then evaluated
     * one by one */
    bool needs_members;
    /* A branch of `if` that a condition on indices alone chooses: an index that is out of range there may
       be out of range only where the condition does not hold. split is then set to the condition, together
       with needs_members; the family is divided into two halves, in each of which the condition is
       known. */
    ir_ref pruned, split;
    const struct assumption *assumed;
    bool inclusion; /* inside an inclusion: set-valued terms are allowed here */
    bool callee;    /* the name looked up is being called: names that cannot be called are ignored */
    int depth;      /* of calls */
    bool deep;      /* whether too deep nesting was reported */
    int nest;       /* of expressions, through calls and definitions: the stack is finite */
    int64_t fuel;   /* elements that unrolled sums and comprehensions may still create */
    int64_t calls;  /* of user functions in the current expression */
    int64_t drawn;  /* calls whose value depends on more than their arguments: random numbers */
    struct known_calls *known; /* values of calls in the current expression, once there are many */
    int bounds;                /* variables of integrals outside of models */
    struct model *model;       /* being compiled, or NULL */
    void *of;                  /* the session, or NULL while a model is compiled */
} evaluator;
enum { EVAL_MAX_DEPTH = 200, EVAL_MAX_NEST = 2500, EVAL_FUEL = 4000000, EVAL_MANY_CALLS = 1000 };

value eval(evaluator *ev, scope *in, const ast *e);
/* as eval, but a family of dofs is kept as a whole, to be indexed */
value eval_keep(evaluator *ev, scope *in, const ast *e);
/* With checks: a scalar number / constant scalar / constant integer / truth value; on failure reports and
 * returns false. `what` names it in messages. */
bool eval_scalar(evaluator *ev, scope *in, const ast *e, const char *what, value *out);
bool eval_constant(evaluator *ev, scope *in, const ast *e, const char *what, double *out);
bool eval_integer(evaluator *ev, scope *in, const ast *e, const char *what, int32_t *out);
/* Operations on values, with units and shapes checked; `at` is the place of messages. */
value eval_op(evaluator *ev, op_code op, const value *a, const value *b, const value *c, span at);
value eval_gen(evaluator *ev, scope *in, const ast *gen); /* all values of a generator: a vector, or a list */
bool eval_is_time(const evaluator *ev, const value *v);   /* exactly t? */
/* positional arguments */
value eval_call(evaluator *ev, scope *in, const value *f, const value *arg, size_t n, span at);
value eval_member(evaluator *ev, const value *object, sym name, span at);
value eval_subscript(evaluator *ev, const value *object, const value *index, size_t n, span at);
/* An index as an address: a constant, or affine in the family's indices; checked against lo..hi. */
bool eval_index(evaluator *ev, const value *ix, int32_t lo, int32_t hi, span at, address *out);
value eval_prime(evaluator *ev, const value *v, span at);
void fn_check_params(diags *d, const ast *fn); /* reports parameters of the same name */
/* Dimensions of two values that must agree; reports with both shown. */
bool eval_same_unit(evaluator *ev, dim a, dim b, const char *what, span at);

/* Shared by the files of the evaluator. */
dim dim_known(dim a, dim b);               /* of two that agree, the one that is not `any` */
value eval_like(arena *a, const value *v); /* zeros of the same shape */
/* A rotation at an address of dofs: its matrix, its angular velocity or acceleration in the body's frame. */
value eval_rotation(evaluator *ev, address at, int primes, dim unit);
address rotation_base(address at); /* where its base is: the first of 9 numbers */
/* The effect of a moment in the body's frame on the three dofs; the rates of these from an angular velocity.
 */
void rotation_moment(ir *g, address at, const ir_ref moment[3], ir_ref to[3]);
void rotation_rates_of(ir *g, address at, const ir_ref w[3], ir_ref to[3]);
value eval_dofs(evaluator *ev, const value *v, span at); /* a dof, or a whole family as a vector or matrix */
value eval_past(evaluator *ev, const value *v, const value *arg, span at); /* x(t - tau) */
bool eval_steady_delay(ir *g, ir_ref s);
value eval_field_at(evaluator *ev, const value *v, const value *arg, size_t n, const ir_input *in, span at);
/* Whether these times reach that one, which is brought between them: ends of runs are rounded. */
bool times_reach(const double *t, int64_t n, double *at);
value eval_series_at(evaluator *ev, const value *v, const value *arg, size_t n, span at);

/* Functions of the language beyond opcodes.def: one table (builtin.c). */
struct builtin {
    const char *name;
    int min, max; /* arguments; max < 0: any number */
    value (*call)(evaluator *ev, scope *in, const ast *call, const value *arg, size_t n);
    bool lazy; /* evaluates its arguments itself, from the call's AST */
    const char *signature, *doc;
};
extern const builtin builtin_list[]; /* ends with name == NULL; a session adds its own through its scope */
extern const builtin op_builtin[];   /* the rows of opcodes.def as functions, by op_code; call is NULL */
const builtin *builtin_find(const char *name);
/* dx/dt, d2x/dt2, where neither name is known: one message for both */
const ast *eval_leibniz(const ast *e);
void eval_leibniz_report(diags *d, const ast *e);
bool eval_unit_behind(const ast *e); /* a unit after an expression, as in (1 + 1) [m] */
void eval_unit_report(diags *d, const ast *e);
const char *eval_name_instead(sym name); /* the CDL form of a name of another language, or NULL */
/* t, pi, inf and the built-in functions: the outermost scope. */
scope *eval_root_scope(evaluator *ev);
#endif
