/* op: the rows of opcodes.def read as tables. */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "op.h"

static const struct row {
    const char *name;
    int arity;
    op_unit unit;
    const char *doc;
} rows[] = {
#define X(id, name, arity, value, deriv, unit, doc) { name, arity, UNIT_##unit, doc },
#include "opcodes.def"
#undef X
    { "none", 0, UNIT_NONE, "no operation" }
};

static const struct row *row_of(op_code op)
{
    return &rows[(unsigned)op < OP_COUNT ? op : OP_NONE];
}

const char *op_name(op_code op)
{
    return row_of(op)->name;
}
int op_arity(op_code op)
{
    return row_of(op)->arity;
}
op_unit op_unit_rule(op_code op)
{
    return row_of(op)->unit;
}
const char *op_doc(op_code op)
{
    return row_of(op)->doc;
}

double op_value(op_code op, double a, double b, double c)
{
    switch (op) {
#define X(id, name, arity, value, deriv, unit, doc) \
    case OP_##id:                                   \
        return value;
#include "opcodes.def"
#undef X
    case OP_NONE:
        break;
    }
    return NAN;
}

/* the first row wins, so "-" is the binary one */
op_code op_find(const char *name)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (!strcmp(rows[op].name, name))
            return (op_code)op;
    return OP_NONE;
}
