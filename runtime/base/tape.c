/* tape: members of a kernel one at a time: index sets, gathering of inputs, and the machine that runs
   straight-line code over doubles. */
#include <math.h>
#include <string.h>
#include "program/program.h"

/* ---- index sets ---- */
/* The next prefix in order: the last of the k first indices that can still grow does; *k is how many are set
 * then. */
static bool index_grow(const index_set *s, int32_t *index, int *k)
{
    while (*k > 0) {
        int j = *k - 1;
        if (index[j] < range_hi(s, index, j)) {
            index[j]++;
            return true;
        }
        *k = j;
    }
    return false;
}

/* The first member at or after the prefix of k indices; ranges may be empty on the way. */
static bool index_fill(const index_set *s, int32_t *index, int k)
{
    while (k < s->n) {
        int64_t lo = range_lo(s, index, k);
        if (lo <= range_hi(s, index, k))
            index[k++] = (int32_t)lo;
        else if (!index_grow(s, index, &k))
            return false;
    }
    return true;
}

bool index_first(const index_set *s, int32_t *index)
{
    return index_fill(s, index, 0);
}

bool index_next(const index_set *s, int32_t *index)
{
    int k = s->n;
    return index_grow(s, index, &k) && index_fill(s, index, k);
}

/* Counted by rows: the last range is not walked. */
int64_t index_count(const index_set *s)
{
    if (s->n == 0)
        return 1;
    index_set rows = *s;
    int last = --rows.n;
    int64_t count = 0;
    int32_t index[MAX_INDEX];
    for (bool any = index_first(&rows, index); any; any = index_next(&rows, index)) {
        int64_t n = range_hi(s, index, last) - range_lo(s, index, last) + 1;
        if (n > 0)
            count += n;
    }
    return count;
}

bool kernel_member(const kernel *k, const int32_t *index, double *reg)
{
    const tape *w = k->where;
    if (!w)
        return true;
    tape_start(w, reg);
    for (uint32_t i = 0; i < w->nin; i++)
        reg[i] = index[i];
    tape_run(w, reg);
    return reg[w->out[0]] != 0;
}

/* ---- running ---- */
/* The value if there is no address, otherwise the value that is already there. */
static double gather_other(const slot *s, const inputs *in, const int32_t *index, double else_)
{
    switch (s->kind) {
    case IN_TIME:
        return in->t;
    case IN_SPEED:
        return in->speed;
    case IN_INDEX:
        return index[s->at.base];
    default:
        return else_;
    }
}

void kernel_gather(const kernel *k, const inputs *in, const int32_t *index, double *reg)
{
    int n = k->over.n;
    const slot *s = k->in;
    for (double *end = reg + k->tape.nin; reg < end; reg++, s++) {
        const double *from = in->from[s->kind];
        *reg = from ? from[slot_at(&s->at, index, n)] : gather_other(s, in, index, *reg);
    }
}

void tape_start(const tape *t, double *reg)
{
    for (uint32_t i = 0; i < t->nconst; i++)
        reg[t->nin + i] = t->constant[i];
}

/* Threaded code: each operation jumps to the next one's. */
void tape_run(const tape *t, double *reg)
{
    static const void *const at[] = {
#define X(id, name, arity, value, deriv, unit, doc) &&do_##id,
#include "opcodes.def"
#undef X
#define X(id, arity, value, outer, side, inner) &&do_##id,
#include "fused.def"
#undef X
        &&do_SINCOS, &&do_END
    };
    const instr *p = t->code;
    goto *at[p->op];
#define RUN(id, value)                                            \
    do_##id:                                                      \
    {                                                             \
        const double a = reg[p->a], b = reg[p->b], c = reg[p->c]; \
        (void)a, (void)b, (void)c;                                \
        reg[p->dst] = value;                                      \
        goto *at[(++p)->op];                                      \
    }
#define X(id, name, arity, value, deriv, unit, doc) RUN(id, value)
#include "opcodes.def"
#undef X
#define X(id, arity, value, outer, side, inner) RUN(id, value)
#include "fused.def"
#undef X
#undef RUN
do_SINCOS : {
    double sine, cosine;
    trig_sincos(reg[p->a], &sine, &cosine);
    reg[p->dst] = sine;
    reg[p->b] = cosine;
    goto *at[(++p)->op];
}
do_END:
    return;
}

/* ---- without fused operations ---- */
const tape_pair tape_pairs[] = {
#define X(id, arity, value, outer, side, inner) { OP_##outer, SIDE_##side, OP_##inner },
#include "fused.def"
#undef X
};

/* Two instructions for one; register t is free. */
static void pair_split(const instr *p, uint32_t t, instr *two)
{
    const tape_pair *f = &tape_pairs[p->op - OP_COUNT];
    bool binary = op_arity((op_code)f->inner) == 2;
    uint32_t other = op_arity((op_code)f->outer) == 1 ? 0 : binary ? p->c : p->b;
    two[0] = (instr){ f->inner, t, p->a, binary ? p->b : 0, 0 };
    two[1] = (instr){ f->outer, p->dst, t, other, 0 };
    if (f->side == SIDE_RIGHT) {
        two[1].a = other;
        two[1].b = t;
    }
}

/* The sine or cosine that overwrites the operand comes last. */
static void sincos_split(const instr *p, instr *two)
{
    int sin_at = p->dst == p->a;
    two[sin_at] = (instr){ OP_SIN, p->dst, p->a, 0, 0 };
    two[!sin_at] = (instr){ OP_COS, p->b, p->a, 0, 0 };
}

tape tape_plain(const tape *t, arena *a)
{
    tape plain = *t;
    instr *code = arena_array(a, instr, 2 * (size_t)t->ncode + 1), *end = code;
    for (const instr *p = t->code; p->op != TAPE_END; p++) {
        if (p == t->code + t->nhead)
            plain.nhead = (uint32_t)(end - code);
        if (p->op < OP_COUNT) {
            *end++ = *p;
            continue;
        }
        if (p->op == TAPE_SINCOS)
            sincos_split(p, end);
        else
            pair_split(p, t->nreg, end);
        end += 2;
    }
    end->op = TAPE_END;
    plain.code = code;
    plain.ncode = (uint32_t)(end - code);
    if (t->nhead == t->ncode)
        plain.nhead = plain.ncode;
    plain.nreg++;
    return plain;
}
