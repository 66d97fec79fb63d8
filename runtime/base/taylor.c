/* taylor: renames the registers of a plain tape so that each is written once (the history of every register
   is needed), adds companions for the operations that have them, and runs the recurrences (Moore; Griewank &
   Walther, ch. 13). */
#include "taylor.h"
#include "tolerances.h"
#include <math.h>
#include <string.h>

/* ---- series ---- */
/* r = a^p:  a r' = p a' r, about the first coefficient of a that is not 0 (t^m factored out, p m a whole
 * number). */
double series_pow(const double *a, double p, const double *r, int j)
{
    int m = 0;
    while (m <= j && a[m] == 0)
        m++;
    if (m > j)
        return p > 0 ? 0 : NAN;
    double lead = p * m;
    /* a root of a vanishing series would need later coefficients */
    if (m > 0 && (lead != floor(lead) || p < 1))
        return NAN;
    if (isnan(lead)) /* the power may be any number */
        return NAN;
    if (lead > j)
        return 0;
    int first = (int)lead, i = j - first;
    const double *x = a + m, *y = r + first;
    if (i == 0)
        return pow(x[0], p);
    double s = 0;
    for (int k = 1; k <= i && m + k <= j; k++)
        s += (p * k - (i - k)) * x[k] * y[i - k];
    return s / (i * x[0]);
}

double series_value(const double *c, int order, double s)
{
    double y = c[order];
    for (int j = order; j-- > 0;)
        y = y * s + c[j];
    return y;
}

double series_rate(const double *c, int order, double s)
{
    double y = 0;
    for (int j = order; j > 0; j--)
        y = y * s + j * c[j];
    return y;
}

static twofold two(double a, double b)
{
    double s = a + b, x = s - a;
    return (twofold){ s, (a - (s - x)) + (b - x) };
}

twofold twofold_sum(twofold a, twofold b)
{
    twofold s = two(a.hi, b.hi);
    return two(s.hi, s.lo + a.lo + b.lo);
}

twofold twofold_product(twofold a, twofold b)
{
    double p = a.hi * b.hi;
    return two(p, fma(a.hi, b.hi, -p) + a.hi * b.lo + a.lo * b.hi);
}

twofold series_twofold(const double *c, int order, double low0, double low1, twofold s)
{
    while (order > 1 && c[order] == 0)
        order--;
    twofold y = { c[order], order == 1 ? low1 : order == 0 ? low0 : 0 };
    for (int j = order; j-- > 0;)
        y = twofold_sum(twofold_product(y, s), (twofold){ c[j], j == 0 ? low0 : j == 1 ? low1 : 0 });
    return y;
}

void series_shift(const double *c, int order, double s, double *out, int n)
{
    double work[order + 1];
    memcpy(work, c, ((size_t)order + 1) * sizeof *c);
    for (int k = 0; k <= n; k++) {
        if (k > order) {
            out[k] = 0;
            continue;
        }
        for (int j = order - 1; j >= k; j--)
            work[j] += s * work[j + 1];
        out[k] = work[k];
    }
}

/* ---- building ---- */
static int companions(uint32_t op)
{
    switch (op) {
    case OP_SIN:
    case OP_COS:
    case OP_TAN:
    case OP_SINH:
    case OP_COSH:
    case OP_TANH:
    case OP_ATAN:
    case OP_ATAN2:
        return 1;
    case OP_ASIN:
    case OP_ACOS:
    case OP_ERF:
    case OP_POW:
        return 2;
    default:
        return 0;
    }
}

bool taylor_chooses(uint32_t op)
{
    switch (op) {
    case OP_ABS:
    case OP_SIGN:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_MOD:
    case OP_MIN:
    case OP_MAX:
        return true;
    default:
        return op_compares(op);
    }
}

bool kernel_has_pieces(const kernel *k)
{
    for (uint32_t i = 0; i < k->tape.ncode; i++)
        if (taylor_chooses(k->tape.code[i].op))
            return true;
    return false;
}

static bool input_still(const slot *s)
{
    return s->kind == IN_PARAM || s->kind == IN_INDEX || s->kind == IN_BASE;
}

/* each instruction gets a register of its own, its companions after it */
static void rename_registers(taylor *x, const tape *p, arena *a)
{
    uint32_t *now = arena_array(a, uint32_t, (size_t)p->nreg + 1), next = p->nin + p->nconst;
    for (uint32_t r = 0; r < next; r++)
        now[r] = r;
    for (uint32_t i = 0; i < p->ncode; i++) {
        instr q = p->code[i];
        int n = op_arity((op_code)q.op);
        q.a = now[q.a];
        q.b = n > 1 ? now[q.b] : q.a;
        q.c = n > 2 ? now[q.c] : q.a;
        now[q.dst] = next;
        q.dst = next++;
        x->aux[i] = next;
        next += (uint32_t)companions(q.op);
        x->code[i] = q;
        x->nsite += taylor_chooses(q.op);
    }
    x->nreg = next;
    x->out = arena_array(a, uint32_t, p->nout);
    for (uint32_t i = 0; i < p->nout; i++)
        x->out[i] = now[p->out[i]];
}

static void find_moving(taylor *x, const tape *p, arena *a)
{
    x->still = arena_array(a, bool, x->nreg);
    x->live = arena_array(a, bool, x->nreg);
    x->moving = arena_array(a, uint32_t, x->ncode);
    for (uint32_t r = 0; r < p->nin + p->nconst; r++)
        x->still[r] = r >= p->nin || input_still(&x->k->in[r]);
    for (uint32_t i = 0; i < x->ncode; i++) {
        const instr *q = &x->code[i];
        bool still = x->still[q->a] && x->still[q->b] && x->still[q->c];
        for (uint32_t r = q->dst; r < x->aux[i] + (uint32_t)companions(q->op); r++)
            x->still[r] = still;
        if (!still)
            x->moving[x->nmoving++] = i;
    }
}

taylor *taylor_new(arena *a, const kernel *k, const int32_t *index, int width)
{
    taylor *x = arena_make(a, taylor);
    tape p = tape_plain(&k->tape, a);
    *x = (taylor){ .k = k, .width = width, .nin = p.nin, .ncode = p.ncode };
    if (index)
        memcpy(x->index, index, sizeof x->index);
    x->code = arena_array(a, instr, p.ncode);
    x->aux = arena_array(a, uint32_t, p.ncode);
    rename_registers(x, &p, a);
    find_moving(x, &p, a);
    x->c = arena_array(a, double, (size_t)x->nreg *(size_t)width);
    for (uint32_t i = 0; i < p.nconst; i++)
        taylor_reg(x, p.nin + i)[0] = p.constant[i];
    x->site = arena_array(a, site, x->nsite);
    x->nsite = 0;
    for (uint32_t i = 0; i < x->ncode; i++)
        if (taylor_chooses(x->code[i].op))
            x->site[x->nsite++] = (site){ .code = i };
    return x;
}

/* ---- pieces ---- */
bool site_two_sided(const taylor *t, const site *s)
{
    uint32_t op = t->code[s->code].op;
    return op == OP_FLOOR || op == OP_CEIL || op == OP_MOD;
}

void site_function(const taylor *t, const site *s, bool upper, int order, double *f)
{
    const instr *q = &t->code[s->code];
    const double *a = taylor_reg(t, q->a), *b = taylor_reg(t, q->b);
    for (int j = 0; j <= order; j++) {
        double one = j == 0;
        switch (q->op) {
        case OP_ABS:
        case OP_SIGN:
            f[j] = a[j];
            break;
        case OP_FLOOR:
            f[j] = upper ? (s->branch + 1) * one - a[j] : a[j] - s->branch * one;
            break;
        case OP_CEIL:
            f[j] = upper ? s->branch * one - a[j] : a[j] - (s->branch - 1) * one;
            break;
        case OP_MOD:
            f[j] = upper ? (s->branch + 1) * b[j] - a[j] : a[j] - s->branch * b[j];
            if (b[0] < 0)
                f[j] = -f[j];
            break;
        default:
            f[j] = a[j] - b[j];
        }
    }
}

/* The piece at a value; f is 0 if the value is too close to a switch to decide. */
static double piece_of(uint32_t op, double a, double b)
{
    double size, f = a - b;
    switch (op) {
    case OP_ABS:
    case OP_SIGN:
        return (a > 0) - (a < 0);
    case OP_FLOOR:
        return floor(a);
    case OP_CEIL:
        return ceil(a);
    case OP_MOD:
        return floor(a / b);
    default:
        size = ROUND_2 * (fabs(a) + fabs(b));
        return (f > size) - (f < -size);
    }
}

static bool on_edge(uint32_t op, double a, double b)
{
    switch (op) {
    case OP_FLOOR:
    case OP_CEIL:
        return a == floor(a);
    case OP_MOD:
        return a / b == floor(a / b);
    default:
        return piece_of(op, a, b) == 0;
    }
}

/* A site that is near keeps the branch that it was given. */
static void site_choose(taylor *t, site *s)
{
    const instr *q = &t->code[s->code];
    double a = taylor_reg(t, q->a)[0], b = taylor_reg(t, q->b)[0];
    if (s->near)
        return;
    s->near = on_edge(q->op, a, b) && !(t->still[q->a] && t->still[q->b]);
    s->branch = piece_of(q->op, a, b);
}

static double compared(uint32_t op, double sign)
{
    switch (op) {
    case OP_LT:
        return sign < 0;
    case OP_LE:
        return sign <= 0;
    case OP_GT:
        return sign > 0;
    case OP_GE:
        return sign >= 0;
    case OP_EQ:
        return sign == 0;
    default:
        return sign != 0;
    }
}

static double piecewise(const taylor *t, const instr *q, double branch, int j)
{
    double a = taylor_reg(t, q->a)[j], b = taylor_reg(t, q->b)[j], one = j == 0;
    switch (q->op) {
    case OP_ABS:
        return branch < 0 ? -a : a;
    case OP_SIGN:
    case OP_FLOOR:
    case OP_CEIL:
        return branch * one;
    case OP_MOD:
        return a - branch * b;
    case OP_MIN:
        return branch <= 0 ? a : b;
    case OP_MAX:
        return branch >= 0 ? a : b;
    default:
        return compared(q->op, branch) * one;
    }
}

/* ---- recurrences ---- */
/* (1/j) sum i a[i] b[j-i]: coefficient j of the integral of a' b */
static double integral_of(const double *a, const double *b, int j)
{
    double s = 0;
    for (int i = 1; i <= j; i++)
        s += i * a[i] * b[j - i];
    return s / j;
}

/* r' b = a':  coefficient j of r */
static double quotient_rate(double ja, const double *b, const double *r, int j)
{
    double s = ja;
    for (int i = 1; i < j; i++)
        s -= i * r[i] * b[j - i];
    return s / (j * b[0]);
}

static double atan2_rate(const double *a, const double *b, int j)
{
    double s = 0;
    for (int i = 1; i <= j; i++)
        s += i * (a[i] * b[j - i] - b[i] * a[j - i]);
    return s;
}

static void step_trig(uint32_t op, const double *a, double *r, double *x, int j)
{
    bool sine = op == OP_SIN || op == OP_SINH, hyper = op == OP_SINH || op == OP_COSH;
    double *s = sine ? r : x, *c = sine ? x : r;
    if (j == 0) {
        s[0] = hyper ? sinh(a[0]) : sin(a[0]);
        c[0] = hyper ? cosh(a[0]) : cos(a[0]);
        return;
    }
    s[j] = integral_of(a, c, j);
    c[j] = hyper ? integral_of(a, s, j) : -integral_of(a, s, j);
}

static void step_tangent(uint32_t op, const double *a, double *r, double *g, int j)
{
    double sign = op == OP_TAN ? 1 : -1;
    r[j] = j ? integral_of(a, g, j) : op == OP_TAN ? tan(a[0]) : tanh(a[0]);
    g[j] = (j == 0) + sign * series_mul(r, r, j);
}

static void step_arc(uint32_t op, const double *a, double *r, double *u, double *v, int j)
{
    double sign = op == OP_ASIN ? 1 : -1;
    u[j] = (j == 0) - series_mul(a, a, j);
    v[j] = series_pow(u, 0.5, v, j);
    r[j] = j ? quotient_rate(sign * j * a[j], v, r, j) : op == OP_ASIN ? asin(a[0]) : acos(a[0]);
}

static void step_erf(const double *a, double *r, double *u, double *e, int j)
{
    u[j] = -series_mul(a, a, j);
    e[j] = j ? integral_of(u, e, j) : 1.1283791670955126 * exp(u[0]);
    r[j] = j ? integral_of(a, e, j) : erf(a[0]);
}

/* a^b with b moving: exp(b log a) */
static void step_power(const double *a, const double *b, bool fixed, double *r, double *l, double *x, int j)
{
    if (fixed) {
        r[j] = j == 0 ? pow(a[0], b[0]) : b[0] == 0 ? 0 : series_pow(a, b[0], r, j);
        return;
    }
    l[j] = j ? quotient_rate(j * a[j], a, l, j) : log(a[0]);
    x[j] = series_mul(b, l, j);
    r[j] = j ? integral_of(x, r, j) : pow(a[0], b[0]);
}

static double product(const taylor *t, const instr *q, const double *a, const double *b, int j)
{
    if (t->still[q->a])
        return a[0] * b[j];
    if (t->still[q->b])
        return a[j] * b[0];
    return series_mul(a, b, j);
}

static void step_code(taylor *t, uint32_t i, site **s, int j)
{
    const instr *q = &t->code[i];
    const double *a = taylor_reg(t, q->a), *b = taylor_reg(t, q->b), *c = taylor_reg(t, q->c);
    double *r = taylor_reg(t, q->dst), *x = companions(q->op) ? taylor_reg(t, t->aux[i]) : r;
    if (taylor_chooses(q->op)) {
        while ((*s)->code != i)
            (*s)++;
        if (j == 0)
            site_choose(t, *s);
        r[j] = piecewise(t, q, (*s)->branch, j);
        return;
    }
    switch (q->op) {
    case OP_ADD:
        r[j] = a[j] + b[j];
        break;
    case OP_SUB:
        r[j] = a[j] - b[j];
        break;
    case OP_NEG:
        r[j] = -a[j];
        break;
    case OP_MUL:
        r[j] = product(t, q, a, b, j);
        break;
    case OP_DIV:
        r[j] = t->still[q->b] ? a[j] / b[0] : series_div(a, b, r, j);
        break;
    case OP_SQR:
        r[j] = series_mul(a, a, j);
        break;
    case OP_SQRT:
        r[j] = j ? series_pow(a, 0.5, r, j) : sqrt(a[0]);
        break;
    case OP_EXP:
        r[j] = j ? integral_of(a, r, j) : exp(a[0]);
        break;
    case OP_LOG:
        r[j] = j ? quotient_rate(j * a[j], a, r, j) : log(a[0]);
        break;
    case OP_POW:
        step_power(a, b, t->still[q->b], r, x, x + t->width, j);
        break;
    case OP_SIN:
    case OP_COS:
    case OP_SINH:
    case OP_COSH:
        step_trig(q->op, a, r, x, j);
        break;
    case OP_TAN:
    case OP_TANH:
        step_tangent(q->op, a, r, x, j);
        break;
    case OP_ASIN:
    case OP_ACOS:
        step_arc(q->op, a, r, x, x + t->width, j);
        break;
    case OP_ATAN:
        x[j] = (j == 0) + series_mul(a, a, j);
        r[j] = j ? quotient_rate(j * a[j], x, r, j) : atan(a[0]);
        break;
    case OP_ATAN2:
        x[j] = series_mul(a, a, j) + series_mul(b, b, j);
        r[j] = j ? quotient_rate(atan2_rate(a, b, j), x, r, j) : atan2(a[0], b[0]);
        break;
    case OP_ERF:
        step_erf(a, r, x, x + t->width, j);
        break;
    case OP_AND:
        r[j] = j == 0 && a[0] != 0 && b[0] != 0;
        break;
    case OP_OR:
        r[j] = j == 0 && (a[0] != 0 || b[0] != 0);
        break;
    case OP_NOT:
        r[j] = j == 0 && a[0] == 0;
        break;
    case OP_SELECT:
        r[j] = a[0] != 0 ? b[j] : c[j];
        break;
    case OP_DIRAC:
        r[j] = j == 0 ? op_value(OP_DIRAC, a[0], 0, 0) : 0;
        break;
    default:
        r[j] = NAN;
    }
}

/* ---- running ---- */
static double input_at(const slot *s, const series_inputs *in, const int32_t *index, int n, int width, int j,
                       double else_)
{
    switch (s->kind) {
    case IN_TIME:
        return j == 0 ? in->t : j == 1 ? in->unit : 0;
    case IN_PARAM:
        return j == 0 ? in->param[slot_at(&s->at, index, n)] : 0;
    case IN_BASE:
        return j == 0 ? in->base[slot_at(&s->at, index, n)] : 0;
    case IN_INDEX:
        return j == 0 ? index[s->at.base] : 0;
    case IN_SPEED:
        return in->speed ? in->speed[j] : 0;
    default:
        if (!in->from[s->kind])
            return else_;
        return in->from[s->kind][(size_t)slot_at(&s->at, index, n) * (size_t)width + (size_t)j];
    }
}

void taylor_step(taylor *t, const series_inputs *in, int j)
{
    site *s = t->site;
    size_t w = (size_t)t->width;
    for (uint32_t i = 0; i < t->nin; i++) {
        if (j && t->still[i])
            continue;
        t->c[i * w + (size_t)j] = input_at(&t->k->in[i], in, t->index, t->k->over.n, t->width, j,
                                           t->c[i * w + (size_t)j]);
    }
    if (j == 0)
        for (uint32_t i = 0; i < t->ncode; i++)
            step_code(t, i, &s, 0);
    else
        for (uint32_t i = 0; i < t->nmoving; i++)
            step_code(t, t->moving[i], &s, j);
}

void taylor_live(taylor *t)
{
    memset(t->live, 0, (size_t)t->nreg * sizeof *t->live);
    for (uint32_t i = 0; i < t->k->tape.nout; i++)
        t->live[t->out[i]] = true;
    for (uint32_t i = t->ncode; i-- > 0;) {
        const instr *q = &t->code[i];
        if (!t->live[q->dst])
            continue;
        t->live[q->a] = true;
        if (q->op != OP_SELECT) {
            t->live[q->b] = t->live[q->c] = true;
            continue;
        }
        t->live[taylor_reg(t, q->a)[0] != 0 ? q->b : q->c] = true;
    }
}
