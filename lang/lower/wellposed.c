/* wellposed: is there one motion? The theorems and their limits:
   - smooth forces alone: one motion where they are Lipschitz;
   - unilateral constraints without friction: one motion when the data are analytic (Ballard); smooth is not
   enough (Schatzman);
   - one constraint with Coulomb's friction that does not act on its own normal reaction: the same (Ballard
   and Basseville);
   - friction under a given normal force, or with Tresca's bound on a constraint that is held from both
   sides: monotone in the slip, one motion whatever the data; with Tresca's bound on one that opens: none;
   - delays: the past is given data, step by step.
   Findings are sorted by their place in the text and printed at the end. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "clock/backend.h"
#include "program/system.h"
#include "model/elab.h"
#include "wellposed.h"
#include "base/tolerances.h"

enum { MAX_FORMULA = 72, SAMPLES = 16, MAX_CONTACTS_TRIED = 64, MAX_DOFS_TRIED = 200 };

/* ---- words ---- */
void found_add(posed *w, found_kind kind, span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *said = arena_vprintf(w->a, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < w->list.n; i++)
        if (w->list.at[i].kind == kind && !strcmp(w->list.at[i].text, said))
            return;
    *vec_push(w->a, &w->list) = (found){ kind, at, said };
}

const char *posed_formula(posed *w, const index_names *over, ir_ref f)
{
    text t = { .a = w->a };
    ir_print(&t, w->m->g, f, model_input_name, &(model_namer){ w->m, over });
    if (t.n <= MAX_FORMULA)
        return t.at;
    size_t n = MAX_FORMULA;
    while (n && ((unsigned char)t.at[n] & 0xc0) == 0x80)
        n--;
    return arena_printf(w->a, "%.*s…", (int)n, t.at);
}

typedef struct start {
    posed *w;
    int32_t ix[MAX_INDEX];
    int n;
    double speed;
} start;
static double start_input(const ir_input *in, void *ud)
{
    const start *s = ud;
    switch (in->kind) {
    case IN_PARAM:
        return s->w->param[slot_at(&in->at, s->ix, s->n)];
    case IN_INDEX:
        return s->ix[in->at.base];
    case IN_Q:
        return s->w->q ? s->w->q[slot_at(&in->at, s->ix, s->n)] : 0;
    case IN_V:
    case IN_PRE:
        return s->w->v ? s->w->v[slot_at(&in->at, s->ix, s->n)] : 0;
    case IN_BASE:
        return s->w->base ? s->w->base[slot_at(&in->at, s->ix, s->n)] : 0;
    case IN_SPEED:
        return s->speed;
    default:
        return 0;
    }
}

double posed_value(posed *w, const index_names *over, ir_ref f, double speed)
{
    start s = { .w = w, .n = over->n, .speed = speed };
    if (!index_first(&over->set, s.ix))
        return NAN;
    arena_pos mark = arena_mark(w->a);
    double v = ir_value(w->m->g, w->a, f, start_input, &s);
    arena_release(w->a, mark);
    return v;
}

/* ---- contacts ---- */
static bool rough_contact(posed *w, const mcontact *c)
{
    double k;
    return c->friction != FRICTION_NONE && !(ir_is_const(w->m->g, c->mu, &k) && k == 0);
}

static int64_t members(const mcontact *c)
{
    return index_members(&c->over.set);
}

/* steepest decrease of the friction with the slip speed; 0: it does not decrease */
static double falls(posed *w, const mcontact *c)
{
    double worst = 0, last = posed_value(w, &c->over, c->mu, 0), at = 0;
    if (!depends_on(w->m->g, c->mu, BIT(IN_SPEED)))
        return 0;
    for (int k = -60; k <= 40; k++) {
        double v = pow(10, k / 10.0), mu = posed_value(w, &c->over, c->mu, v);
        worst = fmax(worst, (last - mu) / (v - at));
        last = mu;
        at = v;
    }
    return worst > FACTOR_SAME ? worst : 0;
}

static bool small(const posed *w)
{
    return w->p && w->p->nq <= MAX_DOFS_TRIED && program_contacts(w->p) <= MAX_CONTACTS_TRIED;
}

/* How much a contact's friction changes its own normal reaction, mu |W_nt|/W_nn, at most over configurations
 * about the start. */
static double coupling(posed *w, const mcontact *m, int *tangents)
{
    const char *why;
    span at;
    double worst = 0;
    uint64_t seed = 7;
    int bad;
    system_t *s = small(w) ? system_new(w->a, w->p, w->param, false, &why, &at) : NULL;
    if (!s)
        return NAN;
    size_t n = (size_t)s->n;
    double *q = arena_array(w->a, double, n + 1), *M = arena_array(w->a, double, n *n + 1),
           *x = arena_array(w->a, double, n + 1);
    for (int k = 0; k < SAMPLES; k++) {
        for (size_t i = 0; i < n; i++) {
            seed = hash64(seed, i + 1);
            q[i] = w->q[i] +
                   (k ? 0.5 * (1 + fabs(w->q[i])) * ((double)(seed >> 11) / 4503599627370496.0 - 1) : 0);
        }
        system_at(s, 0, q, w->v);
        system_mass(s, M);
        if (!system_factor(s, M, &bad))
            continue;
        for (size_t i = 0; i < s->ncontact; i++) {
            contact *c = &s->contact[i];
            if (strcmp(c->fam->f->name, m->path))
                continue;
            contact_gap(s, c);
            contact_rows(s, c, M, true);
            contact_laws(s, c, true);
            if (c->d > *tangents)
                *tangents = c->d;
            factor_solve(&s->minv, c->H, x);
            double nn = vec_dot(c->H, x, s->n), nt = 0;
            for (int l = 0; l < c->d; l++) {
                double y = vec_dot(c->S + (size_t)l * n, x, s->n);
                nt += y * y;
            }
            double mu = c->fam->f->mu_of_speed ? contact_mu(s, c, 0) : c->mu, r = mu * sqrt(nt) / nn;
            if (isfinite(r))
                worst = fmax(worst, r);
        }
    }
    return worst;
}

/* may it be hit, and open again?  What bounds rates is monotone in them, as what is held is. */
static bool is_wall(const mcontact *c)
{
    return c->relation == REL_GAP && !c->of_rates;
}

static void friction_alone(posed *w, const mcontact *c)
{
    int tangents = c->slip_given ? 0 : w->m->nq - 1;
    double fall = falls(w, c), own = c->slip_given ? coupling(w, c, &tangents) : 0;
    const program *p = w->p;
    bool linear = p && p->mass_constant && p->force_linear && !p->delay;
    for (size_t i = 0; p && linear && i < p->ncontact; i++)
        linear = p->contact[i].gap_linear;
    if (isnan(own))
        found_add(w, FOUND_UNKNOWN, c->at,
                  "'%s': the model is too large to check whether its friction acts on its normal reaction",
                  c->name);
    else if (own >= 1)
        found_add(w, FOUND_UNKNOWN, c->at,
                  "'%s': friction acts on its own normal reaction, up to %.2g times it: two reactions or "
                  "none are possible (Painlevé)",
                  c->name, own);
    else if (own > FRICTION_OWN)
        found_add(w, FOUND_UNKNOWN, c->at,
                  "'%s': friction acts on its own normal reaction, up to %.2g times it; the reaction is "
                  "unique while this is below 1, but no theorem covers the motion",
                  c->name, own);
    if (fall > 0 && is_wall(c))
        found_add(w, FOUND_UNKNOWN, c->mu_at.file ? c->mu_at : c->at,
                  "'%s': friction decreases with the slip speed, by up to %.3g per unit: at an impact "
                  "this dominates if impulse times slip mobility is above %.3g, and two slips are "
                  "possible",
                  c->name, fall, 1 / fall);
    if (fall > 0 && !is_wall(c))
        found_add(w, FOUND_NOTE, c->at,
                  "'%s': friction decreases with the slip speed; between impacts the mass keeps the "
                  "motion unique, without mass it would jump",
                  c->name);
    if (own > FRICTION_OWN || isnan(own) || (fall > 0 && is_wall(c)))
        return;
    found_add(w, FOUND_KNOWN, c->at,
              "'%s': one constraint with friction, analytic data give one motion (Ballard and Basseville)",
              c->name);
    if (!linear)
        found_add(w, FOUND_NOTE, c->at,
                  "'%s': the theorem is proved for a flat wall and linear forces; its induction on power "
                  "series holds here from instant to instant",
                  c->name);
    if (tangents > 1)
        found_add(w, FOUND_NOTE, c->at,
                  "'%s': with two tangent directions the motion is not analytic just after slip has started, "
                  "yet unique",
                  c->name);
}

static void given_normal(posed *w, const mcontact *c)
{
    bool massless = false;
    double fall = falls(w, c);
    for (int i = 0; i < w->m->nq; i++)
        massless |= w->m->order[i] == 1;
    if (fall > 0 && massless)
        found_add(w, FOUND_UNKNOWN, c->mu_at.file ? c->mu_at : c->at,
                  "'%s': friction decreases with the slip speed, by up to %.3g per unit, beside "
                  "first-order equations: without mass and viscosity, the slip jumps",
                  c->name, fall);
    else if (fall > 0)
        found_add(w, FOUND_KNOWN, c->at,
                  "'%s': friction under a given force; it decreases with the slip speed, but no faster "
                  "than a line (one-sided Lipschitz): one motion",
                  c->name);
    else
        found_add(w, FOUND_KNOWN, c->at,
                  "'%s': friction under a given force is monotone in the slip: one motion, whatever the data",
                  c->name);
}

/* Tresca's bound is given, but it acts only while the constraint is closed: opening switches it off */
static void tresca_judge(posed *w, int64_t walls)
{
    for (size_t i = 0; i < w->m->contacts.n; i++) {
        const mcontact *c = &w->m->contacts.at[i];
        if (c->relation == REL_CLOSED || c->friction != FRICTION_TRESCA || !rough_contact(w, c))
            continue;
        if (walls)
            found_add(w, FOUND_UNKNOWN, c->at,
                      is_wall(c)
                          ? "'%s': Tresca's friction on a constraint that may open: no theorem, the friction "
                            "begins and ends with the contact"
                          : "'%s': Tresca's friction beside constraints that may open: no theorem",
                      c->name);
        else
            given_normal(w, c);
    }
}

static void contacts_judge(posed *w)
{
    const model *m = w->m;
    int64_t walls = 0, held = 0, rough = 0, bounded = 0;
    const mcontact *first = NULL, *second = NULL;
    for (size_t i = 0; i < m->contacts.n; i++) {
        const mcontact *c = &m->contacts.at[i];
        if (c->relation == REL_CLOSED) {
            if (rough_contact(w, c))
                given_normal(w, c);
            continue;
        }
        *(is_wall(c) ? &walls : &held) += members(c);
        if (!rough_contact(w, c))
            continue;
        if (c->friction == FRICTION_TRESCA) {
            bounded += members(c);
            continue;
        }
        rough += members(c);
        if (!first)
            first = c;
        else if (!second)
            second = c;
    }
    if (rough && walls + held > 1) {
        for (size_t i = 0; i < m->contacts.n; i++) {
            const mcontact *c = &m->contacts.at[i];
            if (c->relation == REL_CLOSED || c->friction != FRICTION_COULOMB || !rough_contact(w, c))
                continue;
            if (rough > 1)
                found_add(w, FOUND_UNKNOWN, c->at,
                          "'%s': %lld constraints with friction: no theorem; where they act on each other "
                          "several motions are possible",
                          c->name, (long long)rough);
            else
                found_add(
                    w, FOUND_UNKNOWN, c->at,
                    "'%s': friction beside %lld other constraint%s: no theorem, their reactions are coupled",
                    c->name, (long long)(walls + held - 1), walls + held > 2 ? "s" : "");
        }
    } else if (rough)
        friction_alone(w, first);
    tresca_judge(w, walls);
    if (rough || bounded || walls + held == 0)
        return;
    for (size_t i = 0; i < m->contacts.n; i++) {
        const mcontact *c = &m->contacts.at[i];
        double e = c->e ? posed_value(w, &c->over, c->e, 0) : 0;
        if (!is_wall(c))
            continue;
        found_add(w, FOUND_KNOWN, c->at,
                  "'%s': constraints without friction, analytic data give one motion (Ballard)", c->name);
        if (walls > 1 && e > 0)
            found_add(w, FOUND_NOTE, c->at,
                      "'%s': if several constraints are hit simultaneously the impact law gives one "
                      "answer, but rebounds in another order may lead to another motion: the motion is "
                      "unique and not continuous in the data",
                      c->name);
        if (walls > 1 && !(e > 0))
            found_add(
                w, FOUND_NOTE, c->at,
                "'%s': reactions are unique where the gradients of the closed constraints are independent",
                c->name);
    }
}

/* smooth is enough without a wall, and not with one */
static void data_judge(posed *w)
{
    bool wall = false, any = false;
    for (size_t i = 0; i < w->m->contacts.n; i++) {
        wall |= is_wall(&w->m->contacts.at[i]);
        any = true;
    }
    if (w->flat && wall)
        for (size_t i = 0; i < w->m->contacts.n; i++)
            if (is_wall(&w->m->contacts.at[i]))
                found_add(w, FOUND_UNKNOWN, w->m->contacts.at[i].at,
                          "'%s': with a force that is not analytic, two motions may start from one state "
                          "at a wall (Schatzman)",
                          w->m->contacts.at[i].name);
    if (w->flat && !wall && !w->rough) {
        for (size_t i = 0; i < w->list.n; i++)
            if (w->list.at[i].kind == FOUND_UNKNOWN && !strncmp(w->list.at[i].text, "not analytic", 12))
                w->list.at[i].kind = FOUND_NOTE;
        found_add(w, FOUND_KNOWN, w->m->decl->at,
                  "no unilateral constraint: one motion where the forces are Lipschitz, analytic or not");
    } else if (!any && !w->rough && !w->m->inclusion.n && !w->m->fields.n && !w->m->rods.n)
        found_add(w, FOUND_KNOWN, w->m->decl->at, "no constraint: one motion where the forces are Lipschitz");
}

/* ---- delays, events, and models without motion ---- */
static bool delays_judge(posed *w)
{
    const model *m = w->m;
    bool of_state = false, rate_of_state = false, rate = false;
    for (ir_ref r = 1; r <= ir_count(m->g); r++) {
        const ir_input *in = ir_input_of(m->g, r);
        if (!in || (in->kind != IN_PAST_Q && in->kind != IN_PAST_V))
            continue;
        bool state = depends_on(m->g, in->arg, BIT(IN_Q) | BIT(IN_V) | BIT(IN_PAST_Q) | BIT(IN_PAST_V));
        of_state |= state;
        rate |= in->kind == IN_PAST_V;
        rate_of_state |= state && in->kind == IN_PAST_V;
    }
    if (!m->has_delay.file && !m->integrals.n)
        return false;
    span at = m->has_delay.file ? m->has_delay : m->integrals.at[0].at;
    found_add(w, FOUND_KNOWN, at,
              "delays: while they are positive, the past is given data and the motion follows by the "
              "method of steps; pieces join where the start and each impact reappear");
    if (rate_of_state)
        found_add(w, FOUND_UNKNOWN, at,
                  "a past rate is read at a time that depends on the state: where that rate has a jump, "
                  "two motions are possible");
    else if (of_state)
        found_add(
            w, FOUND_NOTE, at,
            "a delay depends on the state: one motion, as positions in the past are Lipschitz (Driver)");
    else if (rate)
        found_add(w, FOUND_NOTE, at, "a past rate is read: its jumps reappear undiminished");
    return true;
}

static void other_judge(posed *w)
{
    const model *m = w->m;
    for (size_t i = 0; i < m->events.n; i++)
        if (!m->events.at[i].stop)
            found_add(w, FOUND_NOTE, m->events.at[i].at,
                      "an event resets the state: one motion between events, and after them as long as they "
                      "do not accumulate");
    for (size_t i = 0; i < m->sets.n; i++) {
        const mset *s = &m->sets.at[i];
        if (s->kind == SET_NORMAL_CONE)
            found_add(w, FOUND_KNOWN, s->at, "normal cone of a convex set that moves: one motion (Moreau)");
        else
            found_add(w, FOUND_KNOWN, s->at,
                      "a set-valued term whose coefficient stays positive is monotone up to a line: one "
                      "motion (its limit without the small factor is another question)");
    }
    if (m->fields.n)
        found_add(w, FOUND_UNKNOWN, m->fields.at[0].at,
                  "fields: no motion; a linear problem of even order with an obstacle has one solution when "
                  "its energy is positive, which is not decided here");
    if (m->rods.n)
        found_add(w, FOUND_UNKNOWN, m->rods.at[0].at, "rods: equilibria need not be unique (buckling)");
}

/* ---- telling ---- */
static const char *const kind_words[] = { [FOUND_SWITCH] = "switch",
                                          [FOUND_EXCEPT] = "except",
                                          [FOUND_KNOWN] = "known",
                                          [FOUND_NOTE] = "note",
                                          [FOUND_UNKNOWN] = "not known" };
static const char *const kind_keys[] = { [FOUND_SWITCH] = "switch",
                                         [FOUND_EXCEPT] = "except",
                                         [FOUND_KNOWN] = "known",
                                         [FOUND_NOTE] = "note",
                                         [FOUND_UNKNOWN] = "unknown" };

static int by_place(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->at.file != y->at.file)
        return x->at.file < y->at.file ? -1 : 1;
    if (x->at.begin != y->at.begin)
        return x->at.begin < y->at.begin ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->text, y->text);
}

static size_t count(const posed *w, found_kind k)
{
    size_t n = 0;
    for (size_t i = 0; i < w->list.n; i++)
        n += w->list.at[i].kind == k;
    return n;
}

static const char *file_of(const posed *w, span at)
{
    return at.file ? w->m->d->sources.at[at.file]->name : "";
}

static void tell(const posed *w, text *out, const char *verdict, const char *data)
{
    size_t line, col;
    span_place(w->m->d, w->m->decl->at, &line, &col, NULL, NULL);
    text_printf(out, "%s:%zu:%zu: model %s: %s; data %s\n", file_of(w, w->m->decl->at), line, col, w->m->name,
                verdict, data);
    for (size_t i = 0; i < w->list.n; i++) {
        const found *f = &w->list.at[i];
        span_place(w->m->d, f->at, &line, &col, NULL, NULL);
        text_printf(out, "    %s:%zu:%zu: %s: %s\n", file_of(w, f->at), line, col, kind_words[f->kind],
                    f->text);
    }
}

static void put_place(const posed *w, text *out, span at)
{
    size_t line, col;
    const char *file = file_of(w, at);
    span_place(w->m->d, at, &line, &col, NULL, NULL);
    text_puts(out, "\"file\":");
    text_json_str(out, file, strlen(file));
    text_printf(out, ",\"line\":%zu,\"column\":%zu", line, col);
}

static void tell_json(const posed *w, text *out, const char *verdict, const char *data)
{
    text_puts(out, "{\"model\":");
    text_json_str(out, w->m->name, strlen(w->m->name));
    text_putc(out, ',');
    put_place(w, out, w->m->decl->at);
    text_printf(out, ",\"motion\":\"%s\",\"data\":\"%s\",\"found\":[", verdict, data);
    for (size_t i = 0; i < w->list.n; i++) {
        text_printf(out, "%s{\"kind\":\"%s\",", i ? "," : "", kind_keys[w->list.at[i].kind]);
        put_place(w, out, w->list.at[i].at);
        text_puts(out, ",\"text\":");
        text_json_str(out, w->list.at[i].text, strlen(w->list.at[i].text));
        text_putc(out, '}');
    }
    text_puts(out, "]}\n");
}

static void defaults_put(posed *w)
{
    int32_t n = w->p && w->p->nparam > w->m->nparam ? w->p->nparam : w->m->nparam;
    w->param = arena_array(w->a, double, n + 1);
    for (int32_t i = 0; i < n; i++)
        w->param[i] = NAN;
    if (w->p)
        program_params(w->p, NULL, w->param, w->a);
}

static void put_start(posed *w)
{
    const char *why;
    span at;
    system_t *s = small(w) ? system_new(w->a, w->p, w->param, false, &why, &at) : NULL;
    if (!s)
        return;
    w->q = arena_array(w->a, double, s->n + 1);
    w->v = arena_array(w->a, double, s->n + 1);
    system_start(s, w->q, w->v);
    w->base = s->base;
}

void model_wellposed(text *out, const model *m, const program *p, bool json)
{
    posed w = { .m = m, .p = p, .a = out->a };
    defaults_put(&w);
    bool steps = false;
    posed_data(&w);
    if (!m->rods.n && !m->fields.n) {
        put_start(&w);
        contacts_judge(&w);
        data_judge(&w);
        steps = delays_judge(&w);
    }
    other_judge(&w);
    if (w.list.n)
        qsort(w.list.at, w.list.n, sizeof *w.list.at, by_place);
    size_t switches = count(&w, FOUND_SWITCH);
    const char *data = m->rods.n  ? "not checked"
                       : w.flat   ? "not analytic"
                       : switches ? "piecewise analytic"
                                  : "analytic";
    const char *verdict = count(&w, FOUND_UNKNOWN) ? "not known"
                          : switches || steps      ? "unique, piece by piece"
                                                   : "unique";
    (json ? tell_json : tell)(&w, out, verdict, data);
}
