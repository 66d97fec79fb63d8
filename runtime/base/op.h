/* op: the list of operations (opcodes.def) as an enumeration, with names, arities and values. */
#ifndef CDL_OP_H
#define CDL_OP_H
#include <stdbool.h>
#include "trig.h" /* values of opcodes.def are in its words and those of math.h */

typedef enum {
#define X(id, name, arity, value, deriv, unit, doc) OP_##id,
#include "opcodes.def"
#undef X
    OP_COUNT,
    OP_NONE = OP_COUNT
} op_code;

typedef enum {
    UNIT_SAME,
    UNIT_MUL,
    UNIT_DIV,
    UNIT_POW,
    UNIT_SQR,
    UNIT_SQRT,
    UNIT_NONE,
    UNIT_SAMEB,
    UNIT_ZERO,
    UNIT_BOOL,
    UNIT_SELECT,
    UNIT_ANGLE
} op_unit;

const char *op_name(op_code op);
int op_arity(op_code op);
op_unit op_unit_rule(op_code op);
const char *op_doc(op_code op);
double op_value(op_code op, double a, double b, double c);
/* <, <=, >, >=, ==, !=: two numbers compared */
static inline bool op_compares(uint32_t op)
{
    return op >= OP_LT && op <= OP_NE;
}
/* comparisons, and, or, not: the result is a truth value */
static inline bool op_decides(uint32_t op)
{
    return op >= OP_LT && op <= OP_NOT;
}
/* by function name ("sin"); operators by sign give the binary one; OP_NONE when unknown */
op_code op_find(const char *name);
#endif
