/* sweep_emit: writes a run as C: its kernels, its numbers at the start, and the sources of runtime/native,
   which take the same steps as sweeping. The output contains no text of the model except names that are plain
   identifiers. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include "sweep.h"
#include "sweep_emit.h"
#include "base/tolerances.h"

typedef struct writer {
    sweep *w;
    text *out;
    bool trig; /* a kernel uses sines or cosines */
} writer;

/* ---- numbers ---- */
static void put_number(text *t, double x)
{
    if (isfinite(x))
        text_printf(t, "%a", x);
    else
        text_puts(t, isnan(x) ? "(double)NAN" : x > 0 ? "(double)INFINITY" : "-(double)INFINITY");
}

static void put_numbers(text *t, const double *x, size_t n)
{
    text_puts(t, "{ ");
    for (size_t i = 0; i < n; i++) {
        put_number(t, x[i]);
        text_puts(t, i + 1 < n ? i % 6 == 5 ? ",\n      " : ", " : " ");
    }
    text_puts(t, n ? "}" : "0 }");
}

static void put_flags(text *t, const bool *x, size_t n)
{
    text_puts(t, "{ ");
    for (size_t i = 0; i < n; i++)
        text_printf(t, "%d%s", x[i], i + 1 < n ? ", " : " ");
    text_puts(t, n ? "}" : "0 }");
}

static void put_lines(text *t, const char *const *line)
{
    text_putc(t, '\n');
    for (; *line; line++)
        text_puts(t, *line);
}

/* ---- kernels ---- */
static const char *const op_text[] = {
#define X(id, name, arity, value, deriv, unit, doc) #value,
#include "base/opcodes.def"
#undef X
#define X(id, arity, value, outer, side, inner) #value,
#include "base/fused.def"
#undef X
};

/* The formula of an operation, with registers for a, b and c. */
static void put_formula(text *t, const instr *p, char reg)
{
    for (const char *s = op_text[p->op]; *s;) {
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
            n++;
        bool operand = n == 1 && *s >= 'a' && *s <= 'c';
        if (operand)
            text_printf(t, "%c%u", reg, (unsigned)(*s == 'a' ? p->a : *s == 'b' ? p->b : p->c));
        else
            text_putn(t, s, n ? n : 1);
        s += n ? n : 1;
    }
}

static void put_code(writer *x, const tape *t, char reg)
{
    text *out = x->out;
    for (const instr *p = t->code, *end = p + t->ncode; p < end; p++) {
        if (p->op == TAPE_SINCOS) {
            text_printf(out, "{ double s, c; trig_sincos(%c%u, &s, &c); %c%u = s; %c%u = c; }\n", reg, p->a,
                        reg, p->dst, reg, p->b);
            x->trig = true;
            continue;
        }
        x->trig |= p->op == OP_SIN || p->op == OP_COS;
        text_printf(out, "%c%u = ", reg, p->dst);
        put_formula(out, p, reg);
        text_puts(out, ";\n");
    }
}

static void put_registers(text *out, const tape *t, char reg)
{
    for (uint32_t i = 0; i < t->nreg; i++)
        text_printf(out, "%s%c%u", i ? ", " : "double ", reg, i);
    text_puts(out, t->nreg ? ";\n" : "");
    for (uint32_t i = 0; i < t->nconst; i++) {
        text_printf(out, "%c%u = ", reg, t->nin + i);
        put_number(out, t->constant[i]);
        text_puts(out, ";\n");
    }
}

static void put_address(text *out, const slot_map *m, int n)
{
    text_printf(out, "%d", (int)m->base);
    for (int k = 0; k < n; k++)
        if (m->stride[k])
            text_printf(out, " + %d * i%d", (int)m->stride[k], k);
}

/* Registers of one member, whose indices are i0, i1, ...; outputs that are not written are unused. */
static void put_member(writer *x, const kernel *k)
{
    static const char *const from[IN_KINDS] = {
        [IN_PARAM] = "param", [IN_Q] = "q", [IN_V] = "v", [IN_PRE] = "v"
    };
    text *out = x->out;
    put_registers(out, &k->tape, 'r');
    for (uint32_t i = 0; i < k->tape.nin; i++) {
        const slot *s = &k->in[i];
        text_printf(out, "r%u = ", i);
        if (s->kind == IN_TIME)
            text_puts(out, "t");
        else if (s->kind == IN_INDEX)
            text_printf(out, "i%d", (int)s->at.base);
        else {
            text_printf(out, "%s[", from[s->kind]);
            put_address(out, &s->at, k->over.n);
            text_putc(out, ']');
        }
        text_puts(out, ";\n");
    }
    put_code(x, &k->tape, 'r');
}

/* Loops over the members of a kernel; returns the number of braces that end them. */
static int put_loops(writer *x, const kernel *k)
{
    text *out = x->out;
    text_puts(out, "{\n");
    for (int j = 0; j < k->over.n; j++) {
        const index_range *r = &k->over.r[j];
        slot_map lo = { .base = r->lo }, hi = { .base = r->hi };
        memcpy(lo.stride, r->lo_stride, sizeof lo.stride);
        memcpy(hi.stride, r->hi_stride, sizeof hi.stride);
        text_printf(out, "for (int i%d = ", j);
        put_address(out, &lo, j);
        text_printf(out, "; i%d <= ", j);
        put_address(out, &hi, j);
        text_printf(out, "; i%d++) {\n", j);
    }
    if (k->where) {
        put_registers(out, k->where, 'w');
        for (uint32_t i = 0; i < k->where->nin; i++)
            text_printf(out, "w%u = i%u;\n", i, i);
        put_code(x, k->where, 'w');
        text_printf(out, "if (w%u == 0)\ncontinue;\n", k->where->out[0]);
    }
    return k->over.n + 1;
}

static void put_ends(text *out, int n)
{
    while (n-- > 0)
        text_puts(out, "}\n");
}

static const char arguments[] = "const double *param, double t, const double *q, const double *v";
static const char unused[] = "(void)param, (void)t, (void)q, (void)v;\n";

/* to[row] += outputs of all members; matrix: to[row, column]; `to` NULL: they are added to `sum`. */
static void put_sum(writer *x, const kernels *all, const char *to, bool matrix)
{
    text *out = x->out;
    for (size_t i = 0; i < all->n; i++) {
        const kernel *k = &all->at[i];
        if (k->tape.nout == 0)
            continue;
        int ends = put_loops(x, k);
        put_member(x, k);
        for (uint32_t j = 0; j < k->tape.nout; j++) {
            if (to) {
                text_printf(out, "%s[%s", to, matrix ? "(" : "");
                put_address(out, &k->row[j], k->over.n);
            }
            if (to && matrix) {
                text_puts(out, ") * N + ");
                put_address(out, &k->col[j], k->over.n);
            }
            text_printf(out, "%s += r%u;\n", to ? "]" : "sum", k->tape.out[j]);
        }
        put_ends(out, ends);
    }
}

static void put_kernels(writer *x)
{
    const sweep *w = x->w;
    const program *p = w->p;
    text *out = x->out;
    bool whole = w->s->step_shape.kind != MATRIX_DIAGONAL;
    text_printf(out, "static inline void force(%s, double *f)\n{\n%s", arguments, unused);
    text_puts(out, "for (int i = 0; i < N; i++)\nf[i] = 0;\n");
    put_sum(x, &p->force, "f", false);
    text_printf(out, "}\n\nstatic void jacobian(%s, double *Fq, double *Fv)\n{\n%s", arguments, unused);
    text_puts(out, "for (int i = 0; i < NM; i++)\nFq[i] = Fv[i] = 0;\n");
    put_sum(x, &p->force_dq, "Fq", whole);
    put_sum(x, &p->force_dv, "Fv", whole);
    text_printf(
        out,
        "}\n\n/* forces without potential, and the power of no dof */\nstatic inline double driving(%s, "
        "double *f)\n{\n%s",
        arguments, unused);
    text_puts(out, "double sum = 0;\nfor (int i = 0; i < N; i++)\nf[i] = 0;\n");
    put_sum(x, &p->driving, "f", false);
    put_sum(x, &p->power, NULL, false);
    text_puts(out, "return sum;\n}\n\n");
    text_printf(out, "static double potential(%s)\n{\n%s", arguments, unused);
    text_puts(out, "double sum = 0;\n");
    put_sum(x, &p->potential, NULL, false);
    text_puts(out, "return sum;\n}\n\n");
}

/* A case for one member, with its indices as constants. */
static void put_case(writer *x, size_t number, const int32_t *index, int n)
{
    text_printf(x->out, "case %zu: {\n", number);
    for (int j = 0; j < n; j++)
        text_printf(x->out, "const int i%d = %d;\n(void)i%d;\n", j, (int)index[j], j);
}

/* A function that computes parameters which depend on others. */
static void put_derived(writer *x)
{
    text *out = x->out;
    text_puts(out, "static void derive(double *param)\n{\nconst double t = 0, *q = NULL, *v = NULL;\n");
    text_puts(out, unused);
    for (size_t i = 0; i < x->w->p->derived.n; i++) {
        const kernel *k = &x->w->p->derived.at[i];
        if (k->tape.nout == 0)
            continue;
        int ends = put_loops(x, k);
        put_member(x, k);
        for (uint32_t j = 0; j < k->tape.nout; j++) {
            text_puts(out, "param[");
            put_address(out, &k->row[j], k->over.n);
            text_printf(out, "] = r%u;\n", k->tape.out[j]);
        }
        put_ends(out, ends);
    }
    text_puts(out, "}\n\n");
}

static void put_gaps(writer *x)
{
    const sweep *w = x->w;
    text_printf(x->out, "static inline double gap_of(int contact, %s)\n{\n%sswitch (contact) {\n", arguments,
                unused);
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        const kernel *k = &c->fam->f->gap;
        if (c->fam->f->relation == REL_CLOSED || k->tape.nout == 0)
            continue;
        put_case(x, i, c->index, k->over.n);
        put_member(x, k);
        text_printf(x->out, "return r%u;\n}\n", k->tape.out[0]);
    }
    text_puts(x->out, "}\nreturn 0;\n}\n\n");
}

static void put_resets(writer *x, const event_rule *e)
{
    const kernel *k = &e->reset;
    if (e->stop)
        text_puts(x->out, "*stopped = true;\n");
    if (k->tape.nout == 0) {
        text_puts(x->out, "return false;\n");
        return;
    }
    put_member(x, k);
    for (uint32_t j = 0; j < k->tape.nout; j++) {
        text_printf(x->out, "%s[", e->reset_rate[j] ? "v1" : "q1");
        put_address(x->out, &k->row[j], k->over.n);
        text_printf(x->out, "] = r%u;\n", k->tape.out[j]);
    }
    text_puts(x->out, "return true;\n");
}

static void put_events(writer *x)
{
    const program *p = x->w->p;
    for (int resets = 0; resets < 2 && p->nevent; resets++) {
        text_printf(x->out, "static bool event_%s(int event, %s%s)\n{\n%s", resets ? "reset" : "true",
                    arguments, resets ? ", double *q1, double *v1, bool *stopped" : "", unused);
        text_puts(x->out, resets ? "(void)q1, (void)v1, (void)stopped;\n" : "");
        text_puts(x->out, "switch (event) {\n");
        size_t number = 0;
        for (size_t i = 0; i < p->nevent; i++) {
            const event_rule *e = &p->event[i];
            int32_t index[MAX_INDEX] = { 0 };
            for (bool any = index_first(&e->over, index); any; any = index_next(&e->over, index)) {
                put_case(x, number++, index, e->over.n);
                if (resets)
                    put_resets(x, e);
                else {
                    put_member(x, &e->when);
                    text_printf(x->out, "return r%u != 0;\n", e->when.tape.out[0]);
                }
                text_puts(x->out, "}\n");
            }
        }
        text_puts(x->out, "}\nreturn false;\n}\n\n");
    }
}

/* ---- which models ---- */
enum { MOST_DOFS = 1000, MOST_CODE = 200000 };

static const char *kernel_refused(const kernel *k)
{
    const unsigned known = 1u << IN_TIME | 1u << IN_PARAM | 1u << IN_Q | 1u << IN_V | 1u << IN_PRE |
                           1u << IN_INDEX;
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (!(known & 1u << k->in[i].kind))
            return "a formula reads what C of a model does not have: the past, or the speed of a slip";
    return NULL;
}

static const char *kernels_refused(const kernels *all, span *at)
{
    for (size_t i = 0; i < all->n; i++) {
        const char *why = kernel_refused(&all->at[i]);
        if (!why)
            continue;
        *at = all->at[i].at;
        return why;
    }
    return NULL;
}

static const char *contact_refused(const contact_state *k)
{
    const family *fam = k->c->fam;
    if (fam->f->of_rates)
        return "it bounds rates";
    if (fam->brakes)
        return "its friction has no slip: it acts on all degrees of freedom at once";
    if (fam->mu_static.k)
        return "its friction at rest has a coefficient of its own";
    if (fam->adhesion.k)
        return "it adheres";
    if (fam->et.k)
        return "it has a tangential restitution";
    if (fam->f->e_of_speed)
        return "its restitution depends on the approach speed";
    if (fam->f->cascade)
        return "its simultaneous impacts are a cascade";
    if (fam->f->mu_of_speed)
        return "its friction depends on the speed of the slip";
    if (!k->rows_fixed)
        return "the gradient of its gap, or of its slip, changes with the state";
    if (!k->still || !fam->bias.constant || !fam->slip_bias.constant)
        return "its surface moves, or its laws change during the run";
    return kernel_refused(&fam->f->gap);
}

static const char *contacts_refused(const sweep *w, span *at)
{
    int rows = 0;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact_state *k = w->contacts.state[i];
        const char *why = contact_refused(k);
        rows += 1 + k->c->fam->d;
        if (!why && rows > FEW_ROWS)
            why = "C of a model has room for 24 rows of contacts: one for each gap, one for each component "
                  "of slip";
        if (!why)
            continue;
        *at = k->c->fam->f->at;
        return why;
    }
    return NULL;
}

static const char *events_refused(const program *p, span *at)
{
    for (size_t i = 0; i < p->nevent; i++) {
        const kernel *both[] = { &p->event[i].when, &p->event[i].reset };
        for (int k = 0; k < 2; k++)
            if (kernel_refused(both[k])) {
                *at = p->event[i].at;
                return kernel_refused(both[k]);
            }
    }
    return NULL;
}

static bool shape_fits(const matrix_shape *s)
{
    return s->kind == MATRIX_DIAGONAL || (s->kind == MATRIX_DENSE && s->n < LINALG_LAPACK);
}

static const char *run_refused(const sweep *w, span *at)
{
    const program *p = w->p;
    const system_t *s = w->s;
    const char *why = NULL;
    *at = SPAN_NONE;
    if (p->has_delay.file)
        *at = p->has_delay, why = "C of a model has no past: it has a delay";
    else if (s->first_order)
        *at = p->has_first_order, why = "C of a model has second-order equations only";
    else if (!s->mass_constant)
        *at = p->mass.n ? p->mass.at[0].at : SPAN_NONE, why = "its masses change with the state";
    else if (w->contacts.near.nof)
        why = "it has pairs of points that are found by their distance";
    else if (w->stiffness != 0 || w->policy.cut == CUT_NEVER)
        why = "C of a model takes the steps of sweeping, cut at impacts";
    else if (w->n == 0 || w->n > MOST_DOFS || !shape_fits(&s->step_shape) || !shape_fits(&s->mass_shape))
        why = "its dofs are too many, or coupled and more than 24";
    why = why ? why : contacts_refused(w, at);
    why = why ? why : events_refused(p, at);
    const kernels *all[] = { &p->force, &p->force_dq, &p->force_dv, &p->driving, &p->power, &p->potential };
    for (size_t i = 0; !why && i < sizeof all / sizeof *all; i++)
        why = kernels_refused(all[i], at);
    return why;
}

/* ---- sizes ---- */
typedef struct sizes_of {
    size_t masses, rows, entries, tangents, events;
} sizes_of;

static sizes_of count(const sweep *w)
{
    size_t n = (size_t)w->n;
    bool whole = w->s->mass_shape.kind == MATRIX_DENSE || w->s->step_shape.kind == MATRIX_DENSE;
    sizes_of c = { .masses = whole ? n * n : n, .entries = 1, .events = w->watch.nfired };
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *k = w->contacts.state[i]->c;
        c.rows += 1 + (size_t)k->fam->d;
        c.entries = (size_t)k->n > c.entries ? (size_t)k->n : c.entries;
        c.tangents = (size_t)k->fam->d > c.tangents ? (size_t)k->fam->d : c.tangents;
    }
    return c;
}

/* Memory that solvers need for m rows of n contacts. */
static size_t scratch_room(const sizes_of *c, size_t n)
{
    size_t m = c->rows, d = c->tangents;
    return n > 1 ? (2 * m * m + 5 * m + 2 * n) * 8 + 3 * m * 8 + (4 * n + 4 * (d + 2) + 3 * d * (d + 4)) * 8 +
                       4096
                 : 16;
}

static void define(text *out, const char *name, long long value)
{
    text_printf(out, "#define %s %lld\n", name, value);
}

/* Does the run have the plain steps of small models, with an inverse matrix? */
static bool is_plain(const sweep *w)
{
    const system_t *s = w->s;
    bool diagonal = s->force_of_state ? s->step_shape.kind == MATRIX_DIAGONAL
                                      : s->minv.kind == FACTOR_DIAGONAL;
    return w->quick.steps && (diagonal || w->n <= LINALG_SMALL);
}

static void put_sizes(writer *x, const sizes_of *c)
{
    const sweep *w = x->w;
    const system_t *s = w->s;
    text *out = x->out;
    size_t nc = w->contacts.nstate;
    define(out, "N", w->n);
    define(out, "NC", (long long)nc);
    define(out, "NF", (long long)w->p->ncontact);
    define(out, "NR", (long long)c->rows);
    define(out, "ND", (long long)c->tangents);
    define(out, "NH", (long long)c->entries);
    define(out, "NP", w->p->nparam);
    define(out, "NM", (long long)c->masses);
    define(out, "NE", (long long)c->events);
    define(out, "LINEAR", w->linear);
    define(out, "FORCE_CONSTANT", s->force_constant);
    define(out, "FORCE_OF_STATE", s->force_of_state);
    define(out, "FORCE_OF_RATES", s->force_dv.n > 0);
    define(out, "JACOBIAN_CONSTANT", s->jacobian_constant);
    define(out, "MASS_DIAGONAL", mass_diagonal(s));
    define(out, "STEP_DIAGONAL", s->step_shape.kind == MATRIX_DIAGONAL);
    define(out, "DRIVEN", s->driving.n || s->power.n);
    define(out, "POWERED", s->power.n > 0);
    define(out, "CUT_ALWAYS", w->policy.cut == CUT_ALWAYS);
    define(out, "PLAIN", is_plain(w));
    if (is_plain(w)) {
        const contact_state *k = nc ? w->contacts.state[0] : NULL;
        bool diagonal = s->force_of_state ? s->step_shape.kind == MATRIX_DIAGONAL
                                          : s->minv.kind == FACTOR_DIAGONAL;
        define(out, "N0", k ? k->c->n : 1);
        define(out, "D0", k ? k->c->d : 0);
        define(out, "NORMAL0", k ? k->normal : 0);
        define(out, "LOCAL0", k && k->c->dof && diagonal);
        define(out, "LISTED0", k && k->c->dof);
        define(out, "SHOWN0", k ? k->out->nslip : 0);
        text_printf(out, "#define PLAIN_INVERSE(w, x, i) plain_times(%d, %s, x, i)\n", diagonal,
                    s->force_of_state ? "(w)->matrix.factors" : "(w)->matrix.inverse");
    }
    text_printf(out, "#define ARENA_ROOM %zu\n", scratch_room(c, nc));
}

/* ---- the start ---- */
static void put_array(text *out, const char *to, const double *x, size_t n)
{
    if (n == 0)
        return;
    text_puts(out, "{\nstatic const double x[] = ");
    put_numbers(out, x, n);
    text_printf(out, ";\nmemcpy(%s, x, sizeof x);\n}\n", to);
}

static void put_value(text *out, const char *to, double x)
{
    text_printf(out, "%s = ", to);
    put_number(out, x);
    text_puts(out, ";\n");
}

static void put_contact(writer *x, size_t i)
{
    const sweep *w = x->w;
    const contact_state *k = w->contacts.state[i];
    const contact *c = k->c;
    const contact_family *f = c->fam->f;
    text *out = x->out;
    size_t n = (size_t)c->n, d = (size_t)c->d, shown = (size_t)c->fam->shown;
    double bias[MAX_SLIP + 64] = { 0 };
    text_puts(out, "{\nstatic const int dof[] = { ");
    for (size_t j = 0; j < n; j++)
        text_printf(out, "%d, ", c->dof ? c->dof[j] : (int)j);
    text_printf(
        out,
        "};\nstatic const contact is = {\n.relation = %d, .d = %zu, .n = %zu, .dof = dof, .listed = %d,\n",
        k->relation == REL_GAP         ? 0
        : k->relation == REL_BILATERAL ? 1
                                       : 2,
        d, n, c->dof != NULL);
    text_printf(out,
                ".tresca = %d, .poisson = %d, .slip_given = %d, .shown = %zu, .family = %zu, .first = %zu,\n",
                f->friction == FRICTION_TRESCA, f->impact == IMPACT_POISSON, f->slip_given, shown,
                (size_t)(c->fam - w->s->family), w->contacts.table.first[i]);
    text_puts(out, ".H = ");
    put_numbers(out, c->H, n);
    text_puts(out, ",\n.S = ");
    put_numbers(out, c->S, d * n);
    text_puts(out, ",\n.s0 = ");
    put_numbers(out, c->s0, d);
    contact_slip_bias(w->s, k->c, bias);
    text_puts(out, ",\n.slip_bias = ");
    put_numbers(out, bias, d);
    text_puts(out, ",\n.show_force = ");
    put_numbers(out, c->show_force, d * shown);
    const struct {
        const char *name;
        double x;
    } laws[] = {
        { "ht", c->ht }, { "mu", c->mu }, { "e", c->e }, { "normal", c->normal }, { "bias", c->bias }
    };
    for (size_t j = 0; j < sizeof laws / sizeof *laws; j++) {
        text_printf(out, ",\n.%s = ", laws[j].name);
        put_number(out, laws[j].x);
    }
    text_printf(out, "\n};\nw->contacts[%zu] = is;\n}\n", i);
}

static void put_factor(text *out, const factor *f)
{
    static const char *const kinds[] = { [FACTOR_DIAGONAL] = "FACTOR_DIAGONAL",
                                         [FACTOR_INVERSE] = "FACTOR_INVERSE",
                                         [FACTOR_CHOLESKY] = "FACTOR_CHOLESKY" };
    size_t n = (size_t)f->n;
    put_array(out, "w->matrix.inverse", f->a, f->kind == FACTOR_DIAGONAL ? n : n * n);
    text_printf(out, "w->matrix.minv = (factor){ .kind = %s, .n = N, .a = w->matrix.inverse };\n",
                kinds[f->kind]);
}

static void put_start(writer *x, double apart, double duration)
{
    const sweep *w = x->w;
    const contact_table *t = &w->contacts.table;
    text *out = x->out;
    size_t n = (size_t)w->n, nc = w->contacts.nstate;
    text_puts(out, "\n/* what never changes */\nstatic void model_constants(cdl_model *w)\n{\n(void)w;\n");
    for (size_t i = 0; i < nc; i++)
        put_contact(x, i);
    text_puts(out, "}\n\n/* the state at the start of the run */\nvoid cdl_model_init(cdl_model "
                   "*w)\n{\nmemset(w, 0, sizeof *w);\nmodel_constants(w);\n");
    put_array(out, "w->param", w->r->param, (size_t)w->p->nparam);
    put_array(out, "w->matrix.masses", w->M, w->s->mass_shape.count);
    put_factor(out, &w->s->minv);
    const struct {
        const char *to;
        double x;
    } values[] = { { "w->run.h", w->h },
                   { "w->run.theta", w->theta },
                   { "w->run.tolerance", w->tol },
                   { "w->run.end", duration },
                   { "w->run.apart", apart },
                   { "w->books.work", w->account.books->work },
                   { "w->books.dissipated", w->account.books->dissipated },
                   { "w->books.deepest", w->r->max_penetration } };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_value(out, values[i].to, values[i].x);
    const struct {
        const char *to;
        const double *x;
        size_t n;
    } arrays[] = { { "w->q", w->q, n },
                   { "w->v", w->v, n },
                   { "w->f", w->f, n },
                   { "w->acc", w->acc, n },
                   { "w->size.qmax", w->size.qmax, n },
                   { "w->size.vmax", w->size.vmax, n },
                   { "w->gap", t->gap, nc },
                   { "w->size.tol_gap", t->tol_gap, nc },
                   { "w->size.tol_u", t->tol_u, nc },
                   { "w->r", t->r, t->rows },
                   { "w->size.length", w->size.lengths, w->p->ncontact } };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        put_array(out, arrays[i].to, arrays[i].x, arrays[i].n);
    for (size_t i = 0; i < nc; i++) {
        text_printf(out, "w->closed[%zu] = %d;\nw->size.tol_slip[%zu] = ", i, t->closed[i], i);
        put_number(out, w->contacts.state[i]->tol_slip);
        text_puts(out, ";\n");
    }
    if (w->watch.nfired) {
        text_puts(out, "{\nstatic const bool x[] = ");
        put_flags(out, w->watch.fired, w->watch.nfired);
        text_puts(out, ";\nmemcpy(w->fired, x, sizeof x);\n}\n");
    }
    text_printf(out,
                "w->fresh = %d;\nw->stopped = %d;\nw->matrix.d_step = (double)NAN;\nw->matrix.stamp = 1;\n",
                w->fresh, w->watch.stopped);
    text_puts(out, "w->matrix.df = (factor){ .n = N, .a = w->matrix.factors, .pivot = w->matrix.pivot };\n");
    if (is_plain(w) && w->s->force_constant)
        text_puts(out, "{\ndouble x[N];\nfor (int i = 0; i < N; i++)\n"
                       "x[i] = w->run.h * ((1 - w->run.theta) * w->f[i] + w->run.theta * w->f[i]);\n"
                       "solve_with(&w->matrix.minv, x, w->drift);\n}\n");
    text_puts(
        out,
        "for (int c = 0; c < NC; c++)\ncolumns(&w->contacts[c], &w->matrix.minv, w->matrix.Gm[c]);\n}\n");
}

/* ---- names of the columns ---- */
static bool is_name(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || (n && s[n] && strchr("_.[], ", s[n])))
        n++;
    return n > 0 && n < 100 && !s[n];
}

static void put_name(text *out, const char *name, const char *otherwise, size_t number, const char *more)
{
    text_putc(out, ',');
    if (is_name(name))
        for (; *name; name++)
            text_putc(out, *name == ',' ? ';' : *name);
    else
        text_printf(out, "%s%zu", otherwise, number);
    text_puts(out, more);
}

static void put_columns(writer *x)
{
    const sweep *w = x->w;
    text *out = x->out;
    text_puts(out, "#define COLUMNS \"t");
    for (int rate = 0; rate < 2; rate++)
        for (int i = 0; i < w->n; i++)
            put_name(out, dof_name(w->p, i, w->scratch), "q", (size_t)i, rate ? "'" : "");
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        const char *name = contact_name(c, w->scratch);
        put_name(out, name, "contact", i, ".gap");
        put_name(out, name, "contact", i, ".rn");
        for (int j = 0; j < c->fam->shown; j++)
            put_name(out, name, "contact", i, ".rt");
    }
    text_puts(out, "\"\n");
}

/* ---- the file ---- */
static const char head[] =
    "/* A run of sweeping, as C that stands alone and gives the same bytes.  To print its samples:\n"
    "       cc -O2 -ffp-contract=off -DMAIN FILE.c -lm\n"
    "   In a program of your own: cdl_model_init, then cdl_model_step while it returns 0.  Written by cdl "
    "emit c. */\n"
    "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
    "#ifdef MAIN\n#include <stdio.h>\n#endif\n"
    "#ifdef __GNUC__\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n#endif\n";

/* The allocator of the solvers in the output. */
static const char arena_text[] =
    "\ntypedef struct arena {\nsize_t used;\n_Alignas(16) unsigned char at[ARENA_ROOM];\n} arena;\n"
    "typedef size_t arena_pos;\n"
    "static void *arena_alloc(arena *a, size_t n)\n{\nvoid *p = a->at + a->used;\na->used += (n + 15) / 16 * "
    "16;\nreturn p;\n}\n"
    "static void *arena_array_(arena *a, size_t n, size_t size)\n{\nreturn memset(arena_alloc(a, n * size), "
    "0, n * size);\n}\n"
    "static arena_pos arena_mark(const arena *a)\n{\nreturn a->used;\n}\n"
    "static void arena_release(arena *a, arena_pos at)\n{\na->used = at;\n}\n"
    "static void arena_tick(const arena *a, int64_t work)\n{\n(void)a;\n(void)work;\n}\n"
    "#define arena_array(a, type, n) ((type *)arena_array_((a), (size_t)(n), sizeof(type)))\n"
    "#define arena_make(a, type) arena_array(a, type, 1)\n";

static void put_trig(writer *x)
{
    static const char once[] = "#ifdef __GNUC__\n#define EMITTED_CONST __attribute__((const, noinline))\n"
                               "#else\n#define EMITTED_CONST inline\n#endif\n";
    if (!x->trig)
        return;
    text_puts(x->out, once);
    put_lines(x->out, emitted_trig_h);
}

static void put_solvers(text *out, size_t contacts)
{
    put_lines(out, emitted_problem_h);
    put_lines(out, emitted_problem_c);
    put_lines(out, emitted_speed_c);
    put_lines(out, emitted_equal_h);
    put_lines(out, emitted_equal_c);
    if (contacts < 2)
        return;
    put_lines(out, emitted_active_h);
    put_lines(out, emitted_active_c);
    put_lines(out, emitted_sweeps_h);
    put_lines(out, emitted_sweeps_c);
}

/* ---- a unit of FMI ---- */
/* The laws of contacts, which parameters may change before the start. */
static void put_law(writer *x, size_t i, const char *name, const kernel *k)
{
    const contact *c = x->w->contacts.state[i]->c;
    if (k->tape.nout == 0)
        return;
    text_puts(x->out, "{\n");
    for (int j = 0; j < k->over.n; j++)
        text_printf(x->out, "const int i%d = %d;\n(void)i%d;\n", j, (int)c->index[j], j);
    put_member(x, k);
    text_printf(x->out, "w->contacts[%zu].%s = r%u;\n}\n", i, name, k->tape.out[0]);
}

static void put_laws(writer *x)
{
    text_puts(
        x->out,
        "static void laws(cdl_model *w)\n{\nconst double t = 0, *q = NULL, *v = NULL, *param = w->param;\n");
    text_puts(x->out, unused);
    for (size_t i = 0; i < x->w->contacts.nstate; i++) {
        const contact_family *f = x->w->contacts.state[i]->c->fam->f;
        put_law(x, i, "mu", &f->mu);
        put_law(x, i, "e", &f->e);
        put_law(x, i, "normal", &f->normal);
    }
    text_puts(x->out, "}\n");
}

/* derived: marks what marked derived values read; otherwise marks everything that is read. */
static bool kernel_marks(const kernel *k, bool derived, bool *held)
{
    int32_t index[MAX_INDEX] = { 0 };
    bool more = false;
    if (k->tape.nout == 0)
        return false;
    for (bool any = index_first(&k->over, index); any; any = index_next(&k->over, index)) {
        bool counts = !derived;
        for (uint32_t j = 0; derived && j < k->tape.nout; j++)
            counts |= held[slot_at(&k->row[j], index, k->over.n)];
        for (uint32_t j = 0; counts && j < k->tape.nin; j++) {
            if (k->in[j].kind != IN_PARAM)
                continue;
            bool *at = &held[slot_at(&k->in[j].at, index, k->over.n)];
            more |= !*at;
            *at = true;
        }
    }
    return more;
}

static bool kernels_mark(const kernels *all, bool derived, bool *held)
{
    bool more = false;
    for (size_t i = 0; i < all->n; i++)
        more |= kernel_marks(&all->at[i], derived, held);
    return more;
}

/* Parameters that only forces, gaps, events and laws read can be set. Those of masses, gradients, numbers of
   the start and defaults of other parameters are constants in the C. */
static const bool *settable(const sweep *w, arena *a)
{
    const program *p = w->p;
    bool *held = arena_array(a, bool, p->nparam + 1);
    const kernels *all[] = { &p->mass, &p->kinetic, &p->start.q, &p->start.v, &p->start.base, &p->defaults };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kernels_mark(all[i], false, held);
    for (size_t i = 0; i < p->ncontact; i++) {
        const contact_family *f = &p->contact[i];
        const kernel *own[] = { &f->gradient, &f->rate,        &f->bias,     &f->slip,
                                &f->slip_map, &f->slip_offset, &f->slip_bias };
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            kernel_marks(own[k], false, held);
    }
    while (kernels_mark(&p->derived, true, held))
        ;
    for (int32_t k = 0; k < p->nparam; k++)
        held[k] = !held[k];
    return held;
}

/* Parameters that can be set, with their bounds. */
static void put_settable(writer *x, const emitted_run *to)
{
    const program *p = x->w->p;
    text *out = x->out;
    size_t n = 0;
    text_puts(out, "static const struct {\nint at;\ndouble lo, hi;\n} unit_params[] = {\n");
    for (size_t i = 0; i < p->nparam_info; i++)
        for (int32_t k = 0; k < p->param[i].size; k++) {
            int32_t at = p->param[i].at + k;
            if (p->param[i].at < 0 || p->param[i].structural || !to->settable[at])
                continue;
            text_printf(out, "{ %d, ", (int)at);
            put_number(out, p->param[i].lo);
            text_puts(out, ", ");
            put_number(out, p->param[i].hi);
            text_puts(out, " },\n");
            n++;
        }
    text_puts(out, "{ -1, 0, 0 } };\n");
    define(out, "NS", (long long)n);
}

static void note_contacts(const sweep *w, emitted_run *to)
{
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        const contact *c = w->contacts.state[i]->c;
        *vec_push(to->out.a, &to->contacts) = (emitted_contact){ contact_name(c, to->out.a), c->fam->shown };
    }
}

static void put_unit(emitted_run *to)
{
    text *out = &to->out;
    define(out, "NI", (long long)to->ninput);
    text_puts(out, "static const struct {\nint at, slope, origin;\n} unit_inputs[] = {\n");
    for (size_t i = 0; i < to->ninput; i++)
        text_printf(out, "{ %d, %d, %d },\n", (int)to->input[i].at, (int)to->input[i].slope,
                    (int)to->input[i].origin);
    text_puts(out, to->ninput ? "};\n" : "{ 0, 0, 0 } };\n");
    put_lines(out, emitted_fmu_c);
}

/* The run of an FMU has no end, and only the names of FMI are visible from outside. */
static const char hidden[] = "#ifdef __GNUC__\n#pragma GCC visibility push(hidden)\n#endif\n";

static long long steps_of(const emitted_run *to, double h)
{
    return to->unit ? INT64_MAX : to->duration > 0 ? (long long)clock_steps(to->duration, h) : 0;
}

void sweep_emit_run(sweep *w, const run_clock *c, emitted_run *to)
{
    text formulas = { .a = to->out.a };
    writer x = { .w = w, .out = &formulas };
    double every = w->o->every, apart = every > 0 ? every * (1 - SAMPLE_EARLY) : 0;
    (void)c;
    to->why = run_refused(w, &to->at);
    if (to->why)
        return;
    sizes_of sizes = count(w);
    put_kernels(&x);
    put_gaps(&x);
    put_events(&x);
    if (to->unit)
        put_derived(&x);
    x.out = &to->out;
    text_puts(x.out, head);
    put_sizes(&x, &sizes);
    define(x.out, "STEPS", steps_of(to, w->h));
    if (to->unit)
        text_puts(x.out, hidden);
    else
        put_columns(&x);
    put_trig(&x);
    text_putc(x.out, '\n');
    text_puts(x.out, formulas.at);
    text_puts(x.out, arena_text);
    put_lines(x.out, emitted_tolerances_h);
    put_lines(x.out, emitted_linalg_h);
    put_lines(x.out, emitted_linalg_c);
    put_lines(x.out, emitted_cone_h);
    put_lines(x.out, emitted_cone_c);
    if (w->contacts.nstate)
        put_solvers(x.out, w->contacts.nstate);
    put_lines(x.out, emitted_small_h);
    put_lines(x.out, emitted_rows_c);
    if (is_plain(w))
        put_lines(x.out, emitted_plain_c);
    put_lines(x.out, emitted_step_c);
    put_start(&x, apart, to->duration);
    if (to->unit) {
        note_contacts(w, to);
        to->settable = settable(w, to->out.a);
        put_laws(&x);
        put_settable(&x, to);
        put_unit(to);
    }
}

/* Only the names of libm and the types. */
static const char plain_head[] =
    "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
    "#pragma GCC diagnostic ignored \"-Wunused-function\"\n";

/* The same for all models; follows their own part. */
static const char *const *const plain_parts[] = { emitted_tolerances_h, emitted_linalg_h, emitted_cone_h,
                                                  emitted_cone_c,       emitted_small_h,  emitted_rows_c,
                                                  emitted_plain_c,      emitted_view_h,   emitted_enter_c };
enum { PLAIN_PARTS = sizeof plain_parts / sizeof *plain_parts };

bool sweep_emit_plain(sweep *w, text *out)
{
    text formulas = { .a = out->a };
    writer x = { .w = w, .out = &formulas };
    span at;
    if (!is_plain(w) || run_refused(w, &at))
        return false;
    sizes_of sizes = count(w);
    put_kernels(&x);
    put_gaps(&x);
    x.out = out;
    text_puts(out, plain_head);
    put_sizes(&x, &sizes);
    put_trig(&x);
    text_putc(out, '\n');
    text_puts(out, formulas.at);
    text_puts(out, arena_text);
    uint64_t rest = 0;
    for (int i = 0; i < PLAIN_PARTS; i++)
        for (const char *const *line = plain_parts[i]; *line; line++)
            rest = hash_bytes(*line, strlen(*line), rest);
    text_printf(out, "/* %016llx */\n", (unsigned long long)rest);
    return true;
}

void sweep_emit_rest(text *out)
{
    for (int i = 0; i < PLAIN_PARTS; i++)
        put_lines(out, plain_parts[i]);
}
