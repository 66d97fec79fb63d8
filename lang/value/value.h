/* value: what an expression denotes, while compiling (parts of it symbolic: IR nodes) and in a session
   (numbers, series, results). One evaluator works on both, so a formula means the same in a model and in an
   expectation. */
#ifndef CDL_VALUE_H
#define CDL_VALUE_H
#include "syntax/ast.h"
#include "ir.h"
#include "units.h"

typedef enum {
    V_ERROR, /* already reported; everything computed from it is V_ERROR too */
    V_NUM,   /* real scalar, vector or matrix */
    V_BOOL,  /* truth value (d is 0 or 1, or symbolic) */
    V_STRING,
    V_RANGE,  /* a..b */
    V_LIST,   /* list of values that are not all scalars */
    V_FN,     /* user function or built-in */
    V_SET,    /* ball(c, r), box, halfspace …: a set description */
    V_SERIES, /* numbers over the samples of a run */
    V_MODEL,  /* a model declaration: fn.fn is its AST, fn.in its scope */
    V_OBJECT, /* a part, a constraint, a run, a rod …: has members, answered by its scope */
    V_DOFS,   /* a whole family of dofs, not yet subscripted */
    V_WORD    /* a bare name used as an option value (contact = find) */
} value_kind;

typedef struct value value;
typedef struct scope scope;
typedef struct builtin builtin;

/* Numbers: rank 0, 1, 2.  n[0] rows, n[1] columns.  d has the constant parts; r (NULL when all are constant)
 * the nodes: r[k] == IR_NONE means d[k]. */
typedef struct {
    uint8_t rank;
    int32_t n[2];
    /* rank > 0 */
    double *d;
    ir_ref *r;
    /* rank 0 */
    double d0;
    ir_ref r0;
    dim unit;
} num;

struct value {
    value_kind kind;
    union {
        num num; /* V_NUM, V_BOOL (rank 0) */
        /* V_STRING, V_WORD */
        struct {
            const char *at;
            size_t len;
        } str;
        /* scalars */
        struct {
            value *lo, *hi;
        } range;
        struct {
            value *at;
            size_t n;
        } list;
        /* V_FN, V_MODEL */
        struct {
            const ast *fn;
            scope *in;
            const builtin *built;
        } fn;
        struct {
            const char *kind;
            value *arg;
            size_t n;
        } set;
        struct {
            const double *t, *y;
            int64_t n, stride;
            dim unit;
            const struct series_ops *ops;
            void *of;
            int32_t column;
            int32_t order;
        } series;
        /* members are looked up in the scope */
        struct {
            scope *in;
            void *of;
        } object;
        struct {
            const struct mdof *dof;
            address at;
            uint8_t primes;
            uint8_t given;
        } dofs;
    };
};

/* The functions for y(1.5), y' and y'' of a series: supplied by the results. */
typedef struct series_ops {
    double (*at)(void *of, int32_t column, int order, double t);
    bool (*derivative)(const value *y, value *out); /* y' */
} series_ops;

static inline value v_error(void)
{
    return (value){ .kind = V_ERROR };
}
value v_num(double d); /* a bare number: fits any dimension */
value v_num_unit(double d, dim u);
value v_node(ir_ref r, dim u);
value v_bool(bool b);
value v_string(arena *a, const char *s, size_t n);
value v_vector(arena *a, int32_t n); /* zeros, all constant */
value v_matrix(arena *a, int32_t rows, int32_t cols);
bool v_scalar(const value *v, double *d);   /* a constant scalar number or truth value? */
bool v_is_scalar(const value *v);           /* scalar number, symbolic or not */
value v_element(const value *v, int32_t k); /* scalar number k (from 0, row-major) of a vector or matrix */
void v_set(arena *a, value *v, int32_t k, const value *x); /* x scalar */
ir_ref v_ref(ir *g, const value *v);                       /* scalar as a node */
int32_t v_count(const value *v);                           /* scalars in a V_NUM */
/* "a vector of 3 numbers", "a truth value": for messages and :type */
const char *v_kind_text(arena *a, const value *v);
/* As the user would write it; exact numbers. */
void v_print(text *out, const value *v);
void v_print_json(text *out, const value *v);
#endif
