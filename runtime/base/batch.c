/* batch: many members of a kernel at a time.  Each instruction is a loop over lanes that the compiler
   vectorises (build with -O3 -fno-math-errno -fno-trapping-math; values do not depend on it).  A table
   contains the place of the lanes of each register: in the register file or, if all members are run, in the
   caller's own vectors, so that contiguous data are not copied. */
#include <math.h>
#include <string.h>
#include "program/program.h"

/* Rows of the last index shorter than this are combined. */
enum { SHORT_ROW = 32 };

/* ---- the work space: registers, the table, room for `where`; a cache line to spare ---- */
_Static_assert(sizeof(double *) <= sizeof(double), "the table of lanes is kept among doubles");
enum { LINE = 64 };

static double *table_of(const tape *t, double *reg)
{
    return reg + (size_t)t->nreg * LANES;
}

static inline double *lanes_at(const double *table, uint32_t r)
{
    double *p;
    memcpy(&p, &table[r], sizeof p);
    return p;
}

static inline void lanes_put(double *table, uint32_t r, const double *p)
{
    memcpy(&table[r], &p, sizeof p);
}

size_t batch_regs(const tape *t)
{
    return (size_t)t->nreg * (LANES + 1) + t->nmore + LINE / sizeof(double);
}

static void lanes_fill(double *d, double x, int n)
{
    for (int i = 0; i < n; i++)
        d[i] = x;
}

static void table_reset(const tape *t, double *reg)
{
    for (uint32_t r = 0; r < t->nreg; r++)
        lanes_put(table_of(t, reg), r, reg + (size_t)r * LANES);
}

void batch_start(const tape *t, double *reg)
{
    for (uint32_t i = 0; i < t->nconst; i++)
        lanes_fill(reg + (size_t)(t->nin + i) * LANES, t->constant[i], LANES);
    table_reset(t, reg);
}

/* ---- instructions ---- */
/* dst may be an operand's register: lanes never mix.  clang checks this itself, at run time. */
#ifdef __clang__
#define NO_OVERLAP
#else
#define NO_OVERLAP _Pragma("GCC ivdep")
#endif
#define EACH_LANE NO_OVERLAP for (int i = 0; i < n; i++)
#define RUN(value)                                                                                          \
    {                                                                                                       \
        double *d = lanes_at(table, p->dst);                                                                \
        const double *pa = lanes_at(table, p->a), *pb = lanes_at(table, p->b), *pc = lanes_at(table, p->c); \
        EACH_LANE                                                                                           \
        {                                                                                                   \
            const double a = pa[i], b = pb[i], c = pc[i];                                                   \
            (void)a, (void)b, (void)c;                                                                      \
            d[i] = value;                                                                                   \
        }                                                                                                   \
        break;                                                                                              \
    }
/* SIN, COS and SINCOS: the vectorised way, unless an operand is far. */
static inline __attribute__((always_inline)) void trig_run(const instr *p, const double *table, int n)
{
    double unused[LANES];
    const double *pa = lanes_at(table, p->a);
    double *sine = p->op == OP_COS ? unused : lanes_at(table, p->dst);
    double *cosine = p->op == OP_SIN ? unused : lanes_at(table, p->op == OP_COS ? p->dst : p->b);
    int far = 0;
    for (int i = 0; i < n; i++)
        far |= !(fabs(pa[i]) < TRIG_FAR);
    if (far)
        for (int i = 0; i < n; i++) {
            double s, c;
            trig_sincos(pa[i], &s, &c);
            sine[i] = s;
            cosine[i] = c;
        }
    else
        EACH_LANE
        {
            double s, c;
            trig_near(pa[i], &s, &c);
            sine[i] = s;
            cosine[i] = c;
        }
}

static inline __attribute__((always_inline)) void code_run(const instr *p, const instr *end,
                                                           const double *table, int n)
{
    for (; p < end; p++)
        if (p->op == OP_SIN || p->op == OP_COS || p->op == TAPE_SINCOS)
            trig_run(p, table, n);
        else
            switch (p->op) {
#define X(id, name, arity, value, deriv, unit, doc) \
    case OP_##id:                                   \
        RUN(value)
#include "opcodes.def"
#undef X
#define X(id, arity, value, outer, side, inner) \
    case TAPE_##id:                             \
        RUN(value)
#include "fused.def"
#undef X
            }
}
#undef RUN

/* The same code for the basic instruction set and for wider vectors; neither fuses multiply and add, so
 * values are the same. */
#define RUNNER (const instr *p, const instr *end, const double *table, int n)
typedef void(*code_runner) RUNNER;
static void code_run_base RUNNER
{
    code_run(p, end, table, n);
}
#if defined __x86_64__ && defined __GNUC__
__attribute__((target("avx2"))) static void code_run_avx2 RUNNER
{
    code_run(p, end, table, n);
}
static code_runner runner_best(void)
{
    return __builtin_cpu_supports("avx2") ? code_run_avx2 : code_run_base;
}
#else
static code_runner runner_best(void)
{
    return code_run_base;
}
#endif

/* The head is run for one lane; the others get the same. */
static void head_run(code_runner run, const tape *t, double *reg, int n)
{
    const instr *end = t->code + t->nhead;
    run(t->code, end, table_of(t, reg), 1);
    for (const instr *p = t->code; p < end; p++) {
        double *d = reg + (size_t)p->dst * LANES, *cosine = reg + (size_t)p->b * LANES;
        lanes_fill(d, *d, n);
        if (p->op == TAPE_SINCOS)
            lanes_fill(cosine, *cosine, n);
    }
}

static void body_run(code_runner run, const tape *t, double *reg, int n)
{
    run(t->code + t->nhead, t->code + t->ncode, table_of(t, reg), n);
}

/* ---- members given one by one ---- */
static void lanes_gather(const slot *s, int nindex, const double *from, const int32_t *index, int n,
                         double *d)
{
    int32_t at[LANES];
    for (int i = 0; i < n; i++)
        at[i] = s->at.base;
    for (int k = 0; k < nindex; k++) {
        int32_t stride = s->at.stride[k];
        if (stride)
            for (int i = 0; i < n; i++)
                at[i] += stride * index[k * LANES + i];
    }
    for (int i = 0; i < n; i++)
        d[i] = from[at[i]];
}

static void batch_gather(const kernel *k, const inputs *in, const int32_t *index, int n, double *reg)
{
    for (uint32_t r = 0; r < k->tape.nin; r++) {
        const slot *s = &k->in[r];
        double *d = reg + (size_t)r * LANES;
        switch (s->kind) {
        case IN_TIME:
            lanes_fill(d, in->t, n);
            break;
        case IN_SPEED:
            lanes_fill(d, in->speed, n);
            break;
        case IN_INDEX:
            for (int i = 0; i < n; i++)
                d[i] = index[s->at.base * LANES + i];
            break;
        default:
            if (in->from[s->kind])
                lanes_gather(s, k->over.n, in->from[s->kind], index, n, d);
        }
    }
}

void batch_run(const kernel *k, const inputs *in, const int32_t *index, int n, double *reg)
{
    batch_gather(k, in, index, n, reg);
    code_runner run = runner_best();
    head_run(run, &k->tape, reg, n);
    body_run(run, &k->tape, reg, n);
}

/* ---- all members ---- */
typedef struct walk {
    const kernel *k;
    const inputs *in;
    double *reg, *table, *out; /* out: of the next member to be run */
    code_runner run;
    int width;                        /* lanes of the longest chunk of the row */
    bool fresh;                       /* the lanes of inputs contain nothing that can be reused */
    int waiting;                      /* members of short rows not yet run */
    int32_t index[MAX_INDEX * LANES]; /* theirs */
} walk;

static void lanes_stride(double *restrict d, const double *restrict from, ptrdiff_t stride, int n)
{
    switch (stride) {
    case 2:
        for (int i = 0; i < n; i++)
            d[i] = from[2 * i];
        break;
    case 3:
        for (int i = 0; i < n; i++)
            d[i] = from[3 * i];
        break;
    default:
        for (int i = 0; i < n; i++)
            d[i] = from[i * stride];
    }
}

/* A value that is the same for all lanes is written only when it changes. */
static void lanes_hold(const walk *w, double *d, double x)
{
    if (w->fresh || memcmp(d, &x, sizeof x))
        lanes_fill(d, x, w->width);
}

/* Input r of n members that differ in the last index alone, from `index` on. */
static void row_gather(walk *w, uint32_t r, const int32_t *index, int n)
{
    const slot *s = &w->k->in[r];
    double *d = w->reg + (size_t)r * LANES;
    int last = w->k->over.n - 1;
    const double *from = w->in->from[s->kind];
    switch (s->kind) {
    case IN_TIME:
        lanes_hold(w, d, w->in->t);
        return;
    case IN_SPEED:
        lanes_hold(w, d, w->in->speed);
        return;
    case IN_INDEX:
        if (s->at.base != last)
            lanes_hold(w, d, index[s->at.base]);
        else
            for (int i = 0; i < n; i++)
                d[i] = index[last] + i;
        return;
    default:
        break;
    }
    from += slot_at(&s->at, index, last + 1);
    switch (s->at.stride[last]) {
    case 0:
        lanes_hold(w, d, *from);
        return;
    case 1:
        lanes_put(w->table, r, from);
        return;
    default:
        lanes_stride(d, from, s->at.stride[last], n);
    }
}

/* One output is computed in its final place, unless it is an input, a constant or from the head. */
static bool out_in_place(const tape *t)
{
    return t->nout == 1 && t->out[0] >= t->nin + t->nconst && t->nhead < t->ncode;
}

static void lanes_put_two(double *restrict to, size_t step, const double *restrict a,
                          const double *restrict b, int n)
{
    for (int i = 0; i < n; i++, to += step) {
        to[0] = a[i];
        to[1] = b[i];
    }
}

static void out_put(walk *w, int n)
{
    const tape *t = &w->k->tape;
    uint32_t j = 0, nout = t->nout;
    for (; j + 2 <= nout; j += 2)
        lanes_put_two(w->out + j, nout, lanes_at(w->table, t->out[j]), lanes_at(w->table, t->out[j + 1]), n);
    if (j == nout || out_in_place(t))
        return;
    const double *from = lanes_at(w->table, t->out[j]);
    for (int i = 0; i < n; i++)
        w->out[(size_t)i * nout + j] = from[i];
}

/* Members left out give 0. */
static void out_leave(walk *w, const int32_t *index, int step, int n)
{
    const kernel *k = w->k;
    if (!k->where)
        return;
    double *reg = w->table + k->tape.nreg;
    int last = k->over.n - 1;
    for (int i = 0; i < n; i++) {
        int32_t at[MAX_INDEX];
        for (int j = 0; j <= last; j++)
            at[j] = step ? index[j * LANES + i] : index[j] + (j == last ? i : 0);
        if (kernel_member(k, at, reg))
            continue;
        for (uint32_t j = 0; j < k->tape.nout; j++)
            w->out[(size_t)i * k->tape.nout + j] = 0;
    }
}

static void code_do(walk *w, int n)
{
    const tape *t = &w->k->tape;
    if (out_in_place(t))
        lanes_put(w->table, t->out[0], w->out);
    body_run(w->run, t, w->reg, n);
    out_put(w, n);
}

/* Runs the members that wait. */
static void walk_flush(walk *w)
{
    int n = w->waiting;
    if (!n)
        return;
    table_reset(&w->k->tape, w->reg);
    batch_gather(w->k, w->in, w->index, n, w->reg);
    code_do(w, n);
    out_leave(w, w->index, 1, n);
    w->out += (size_t)n * w->k->tape.nout;
    w->waiting = 0;
}

static void walk_wait(walk *w, const int32_t *index)
{
    for (int j = 0; j < w->k->over.n; j++)
        w->index[j * LANES + w->waiting] = index[j];
    if (++w->waiting == LANES)
        walk_flush(w);
}

/* n members from `index` on. */
static void walk_chunk(walk *w, const int32_t *index, int n)
{
    for (uint32_t r = 0; r < w->k->tape.nin; r++)
        row_gather(w, r, index, n);
    w->fresh = false;
    code_do(w, n);
    out_leave(w, index, 0, n);
    w->out += (size_t)n * w->k->tape.nout;
}

static void walk_row(walk *w, int32_t *index)
{
    const index_set *s = &w->k->over;
    int last = s->n - 1;
    int64_t lo = range_lo(s, index, last), hi = range_hi(s, index, last);
    if (hi - lo >= SHORT_ROW) {
        walk_flush(w);
        w->fresh = true;
        w->width = hi - lo < LANES ? (int)(hi - lo) + 1 : LANES;
        for (; lo <= hi; lo += LANES) {
            index[last] = (int32_t)lo;
            walk_chunk(w, index, hi - lo < LANES ? (int)(hi - lo) + 1 : LANES);
        }
    } else {
        for (; lo <= hi; lo++) {
            index[last] = (int32_t)lo;
            walk_wait(w, index);
        }
    }
}

/* Once for all members. */
static void walk_head(walk *w, const int32_t *index)
{
    const tape *t = &w->k->tape;
    for (uint32_t r = 0; t->nhead && r < t->nin; r++)
        if (slot_uniform(&w->k->in[r]))
            row_gather(w, r, index, 1);
    head_run(w->run, t, w->reg, LANES);
}

void kernel_run_all(const kernel *k, const inputs *in, double *work, double *out)
{
    double *reg = work + (LINE - (uintptr_t)work % LINE) % LINE / sizeof(double);
    walk w;
    w.k = k;
    w.in = in;
    w.out = out;
    w.reg = reg;
    w.table = table_of(&k->tape, reg);
    w.run = runner_best();
    w.width = 1;
    w.fresh = true;
    w.waiting = 0;
    batch_start(&k->tape, reg);
    index_set rows = k->over;
    int32_t index[MAX_INDEX] = { 0 };
    walk_head(&w, index);
    if (rows.n == 0)
        walk_wait(&w, index);
    else {
        rows.n--;
        for (bool any = index_first(&rows, index); any; any = index_next(&rows, index))
            walk_row(&w, index);
    }
    walk_flush(&w);
}
