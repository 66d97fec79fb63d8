/* match: which equation determines which degree of freedom, and checks that need the whole model. */
#include "elab.h"
#include <math.h>
#include <string.h>

typedef struct {
    mfamily *f;
    int out;
    bool first_order;
    vec(address) candidates;
    int choice;
} equation;
typedef struct matcher {
    elab *e;
    model *m;
    uint8_t *second; /* dof occurs with a second derivative somewhere */
    uint8_t *energy; /* dof has a kinetic energy */
    int32_t *taken;  /* number of the equation + 1 */
    vec(equation) eq;
    int32_t *seen; /* for augmenting paths: equation that visited the dof last */
} matcher;

static void each_member(const index_names *over, const address *at, void (*f)(int32_t dof, void *ud),
                        void *ud)
{
    int32_t ix[MAX_INDEX];
    for (bool more = index_first(&over->set, ix); more; more = index_next(&over->set, ix))
        f(slot_at(at, ix, over->set.n), ud);
}

static void set_byte(int32_t dof, void *ud)
{
    ((uint8_t *)ud)[dof] = 1;
}

/* marks the dofs that the outputs of families read as inputs of a kind */
static void mark_inputs(matcher *w, const mfamilies *fs, in_kind kind, uint8_t *marks)
{
    for (size_t i = 0; i < fs->n; i++) {
        const mfamily *f = &fs->at[i];
        ir_ref *in;
        arena_pos mark = arena_mark(w->m->a);
        size_t n = ir_inputs(w->m->g, w->m->a, f->out, (size_t)f->nout, &in);
        for (size_t k = 0; k < n; k++) {
            const ir_input *x = ir_input_of(w->m->g, in[k]);
            if (x->kind == kind)
                each_member(&f->over, &x->at, set_byte, marks);
        }
        arena_release(w->m->a, mark);
    }
}

static int32_t first_member(const index_names *over, const address *at)
{
    int32_t ix[MAX_INDEX];
    return index_first(&over->set, ix) ? slot_at(at, ix, over->set.n) : -1;
}

static const char *dof_name(matcher *w, int32_t dof)
{
    text t = { .a = w->m->a };
    model_place(&t, w->m, NULL, &(address){ .base = dof }, true);
    return t.at;
}

/* y' = 0 beside a second-order equation, y = 1: intended as initial values */
static bool is_lone_rate(const mfamily *f)
{
    const ast *l = f->decl->kind == AST_SET ? f->decl->kid[0] : NULL;
    if (l && l->kind == AST_PRIME)
        l = l->kid[0];
    const mdecl *d = l && l->kind == AST_NAME ? class_find(f->of, l->name) : NULL;
    return d && d->kind == DECL_DOF;
}

static bool turns(const matcher *w, const mfamily *f, const equation *q)
{
    bool any = false;
    for (size_t k = 0; k < q->candidates.n; k++) {
        const mdof *d = model_dof(w->m, first_member(&f->over, &q->candidates.at[k]), NULL);
        any = any || (d && d->rotation);
    }
    return any;
}

static void add_equation(matcher *w, mfamily *f, int out)
{
    equation q = { .f = f, .out = out, .choice = -1 };
    ir_ref *in;
    size_t n = ir_inputs(w->m->g, w->m->a, &f->out[out], 1, &in);
    if (f->moments)
        *vec_push(w->m->a, &q.candidates) = f->row[out];
    for (int pass = 0; pass < 2 && !q.candidates.n; pass++)
        for (size_t k = 0; k < n; k++) {
            const ir_input *x = ir_input_of(w->m->g, in[k]);
            if (x->kind != (pass ? IN_V : IN_A))
                continue;
            int32_t d = first_member(&f->over, &x->at);
            if (pass && d >= 0 && (w->second[d] || w->energy[d]))
                continue;
            q.first_order = pass;
            *vec_push(w->m->a, &q.candidates) = x->at;
            /* in the order of the dofs, so that row i of M*q'' = f is the equation of q[i] */
            for (size_t j = q.candidates.n - 1;
                 j > 0 && q.candidates.at[j].base < q.candidates.at[j - 1].base; j--) {
                address swap = q.candidates.at[j];
                q.candidates.at[j] = q.candidates.at[j - 1], q.candidates.at[j - 1] = swap;
            }
        }
    if (q.first_order && turns(w, f, &q)) {
        diag *d = diag_error(
            w->m->d, DIAG_NOT_SUPPORTED, f->at,
            "the equation of a rotation must be of second order, with an angular acceleration");
        diag_hint(w->m->d, d, "J*A'' + cross(A', J*A') = tau");
        return;
    }
    if (!q.candidates.n) {
        diag *d = diag_error(w->m->d, DIAG_EQUATION_NO_DOF, f->at,
                             "this equation determines no degree of freedom");
        if (is_lone_rate(f))
            diag_hint(w->m->d, d, "an initial value is part of the declaration: dof %s",
                      span_text(w->m->d, f->at, w->m->a));
        else
            diag_hint(w->m->d, d,
                      "an equation of motion contains a second derivative such as x'', a first-order "
                      "equation a rate x'");
        return;
    }
    *vec_push(w->m->a, &w->eq) = q;
}

typedef struct {
    matcher *w;
    int32_t eq;
    bool free;
} claim;
static void is_free(int32_t dof, void *ud)
{
    claim *c = ud;
    c->free = c->free && !c->w->taken[dof];
}
static void take(int32_t dof, void *ud)
{
    claim *c = ud;
    c->w->taken[dof] = c->eq + 1;
}

static bool family_claim(matcher *w, int32_t k, int choice)
{
    equation *q = &w->eq.at[k];
    claim c = { w, k, true };
    each_member(&q->f->over, &q->candidates.at[choice], is_free, &c);
    if (!c.free)
        return false;
    each_member(&q->f->over, &q->candidates.at[choice], take, &c);
    q->choice = choice;
    return true;
}

/* single equations: an augmenting path moves others to their next choice */
static bool augment(matcher *w, int32_t k, int32_t mark, int depth)
{
    equation *q = &w->eq.at[k];
    if (q->f->over.set.n || depth > 5000)
        return false;
    for (size_t i = 0; i < q->candidates.n; i++) {
        int32_t d = q->candidates.at[i].base;
        if (w->seen[d] == mark)
            continue;
        w->seen[d] = mark;
        if (w->taken[d] && !augment(w, w->taken[d] - 1, mark, depth + 1))
            continue;
        w->taken[d] = k + 1;
        q->choice = (int)i;
        return true;
    }
    return false;
}

static void match_one(matcher *w, int32_t k)
{
    equation *q = &w->eq.at[k];
    for (size_t i = 0; i < q->candidates.n; i++)
        if (family_claim(w, k, (int)i))
            return;
    if (augment(w, k, k + 1, 0))
        return;
    int32_t d = first_member(&q->f->over, &q->candidates.at[0]);
    diag *e = diag_error(w->m->d, DIAG_EQUATION_NO_DOF, q->f->at, "there is one equation too many for '%s'",
                         dof_name(w, d));
    if (d >= 0 && w->taken[d] && &w->eq.at[w->taken[d] - 1] != q)
        diag_second(w->m->d, e, w->eq.at[w->taken[d] - 1].f->at, "it is determined here already");
}

/* the family that reads or drives a dof */
static const mfamily *family_on(matcher *w, const mfamilies *fs, in_kind kind, int32_t dof)
{
    uint8_t *marks = arena_array(w->m->a, uint8_t, w->m->nq + 1);
    for (size_t i = 0; i < fs->n; i++) {
        mfamilies one = { .at = &fs->at[i], .n = 1 };
        if (!fs->at[i].row)
            mark_inputs(w, &one, kind, marks);
        for (int k = 0; fs->at[i].row && k < fs->at[i].nout; k++)
            each_member(&fs->at[i].over, &fs->at[i].row[k], set_byte, marks);
        if (marks[dof])
            return &fs->at[i];
    }
    return &fs->at[0];
}

static void mixed(matcher *w, const mfamily *eq, int32_t dof, const mfamilies *fs, in_kind kind,
                  const char *what)
{
    diag *e = diag_error(w->m->d, DIAG_MIXED_FORMS, eq->at, "'%s' has an equation and %s", dof_name(w, dof),
                         what);
    diag_second(w->m->d, e, family_on(w, fs, kind, dof)->at, "%s", what);
    diag_hint(
        w->m->d, e,
        "use one form for each degree of freedom: all forces in its equation, or energies and `force` alone");
}

static void settle_one(matcher *w, const equation *q)
{
    if (q->choice < 0)
        return;
    address at = q->candidates.at[q->choice];
    q->f->row[q->out] = at;
    int32_t ix[MAX_INDEX];
    for (bool more = index_first(&q->f->over.set, ix); more; more = index_next(&q->f->over.set, ix)) {
        int32_t d = slot_at(&at, ix, q->f->over.set.n);
        w->m->order[d] = q->first_order ? 1 : 2;
        if (!w->energy[d])
            continue;
        mixed(w, q->f, d, &w->m->kinetic, IN_V, "a kinetic energy");
        return;
    }
}

/* a force, a potential or a dissipation for a dof that has an equation: the equation is already the
   complete balance */
static void check_unmixed(matcher *w, const mfamilies *fs, in_kind kind, const char *what)
{
    if (!fs->n || !w->eq.n)
        return;
    uint8_t *marks = arena_array(w->m->a, uint8_t, w->m->nq + 1);
    if (fs->at[0].row) {
        for (size_t i = 0; i < fs->n; i++)
            for (int k = 0; k < fs->at[i].nout; k++)
                each_member(&fs->at[i].over, &fs->at[i].row[k], set_byte, marks);
    } else
        mark_inputs(w, fs, kind, marks);
    for (int32_t d = 0; d < w->m->nq; d++)
        if (marks[d] && w->taken[d] && !w->energy[d]) {
            mixed(w, w->eq.at[w->taken[d] - 1].f, d, fs, kind, what);
            return;
        }
}

static void check_all_determined(matcher *w)
{
    const mdof *last = NULL;
    for (int32_t k = 0; k < w->m->nq; k++) {
        if (w->taken[k] || w->energy[k]) {
            if (!w->m->order[k])
                w->m->order[k] = 2;
            continue;
        }
        const mdof *d = model_dof(w->m, k, NULL);
        if (d == last)
            continue;
        last = d;
        diag *e = diag_error(w->m->d, DIAG_DOF_NO_EQUATION, d ? d->at : w->m->decl->name_at,
                             "nothing determines '%s'", dof_name(w, k));
        bool energies = w->m->kinetic.n || w->m->potential.n || w->m->dissipation.n || w->m->force.n;
        diag_hint(w->m->d, e,
                  energies ? "no kinetic energy contains its rate"
                           : "write its equation, for example %s'' = 0",
                  dof_name(w, k));
    }
}

/* the rate of a dof of first order follows from its equation */
static void check_first_order_rates(const model *m)
{
    for (size_t i = 0; i < m->init_v.n; i++) {
        const mfamily *f = &m->init_v.at[i];
        int32_t d = f->nout ? first_member(&f->over, &f->row[0]) : -1;
        if (d < 0 || m->order[d] != 1)
            continue;
        const mdof *of = model_dof(m, d, NULL);
        diag *e = diag_warn(m->d, DIAG_WARN_UNUSED, f->at, "the initial rate of '%s' is not used",
                            of ? of->name : "x");
        diag_hint(m->d, e, "its equation is of first order, so the rate follows from the value");
    }
}

/* a history that no past value reads; nothing moves before the run without delays */
static void check_histories(const model *m)
{
    for (ir_ref r = 1; r <= ir_count(m->g) && m->history.n; r++) {
        const ir_input *in = ir_input_of(m->g, r);
        if (in && (in->kind == IN_PAST_Q || in->kind == IN_PAST_V || in->kind == IN_PAST_BASE))
            return;
    }
    for (size_t i = 0; i < m->history.n; i++) {
        const ast *s = m->history.at[i].decl;
        diag *e = diag_warn(m->d, DIAG_WARN_UNUSED, s->name_at, "the history of '%s' is not used", s->name);
        diag_hint(m->d, e, "the model reads no past value, such as %s(t - tau)", s->name);
    }
}

void match_equations(elab *e)
{
    model *m = e->m;
    matcher w = { .e = e, .m = m };
    w.second = arena_array(m->a, uint8_t, m->nq + 1);
    w.energy = arena_array(m->a, uint8_t, m->nq + 1);
    w.taken = arena_array(m->a, int32_t, m->nq + 1);
    w.seen = arena_array(m->a, int32_t, m->nq + 1);
    mark_inputs(&w, &m->equation, IN_A, w.second);
    mark_inputs(&w, &m->inclusion, IN_A, w.second);
    mark_inputs(&w, &m->kinetic, IN_V, w.energy);
    mfamilies *lists[2] = { &m->equation, &m->inclusion };
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            for (int k = 0; k < lists[l]->at[i].nout; k++)
                add_equation(&w, &lists[l]->at[i], k);
    for (size_t k = 0; k < w.eq.n; k++)
        match_one(&w, (int32_t)k);
    if (m->d->errors)
        return;
    for (size_t k = 0; k < w.eq.n; k++)
        settle_one(&w, &w.eq.at[k]);
    check_all_determined(&w);
    check_unmixed(&w, &m->force, IN_Q, "a force");
    check_unmixed(&w, &m->potential, IN_Q, "a potential");
    check_unmixed(&w, &m->dissipation, IN_V, "a dissipation");
    check_first_order_rates(m);
    check_histories(m);
    if (m->nq == 0 && !m->fields.n && !m->rods.n && (m->contacts.n || m->kinetic.n))
        diag_error(m->d, DIAG_DOF_NO_EQUATION, m->decl->name_at, "model '%s' has no degree of freedom",
                   m->name);
}

/* ---- values at the default parameters ---- */

typedef struct {
    const double *param;
    const int32_t *ix;
    int n;
} at_defaults;
static double default_input(const ir_input *in, void *ud)
{
    const at_defaults *x = ud;
    if (in->kind == IN_PARAM)
        return x->param[slot_at(&in->at, x->ix, x->n)];
    if (in->kind == IN_INDEX)
        return x->ix[in->at.base];
    return NAN;
}

static double value_at_defaults(const model *m, const double *param, const index_names *over,
                                const int32_t *ix, ir_ref r)
{
    at_defaults x = { param, ix, over->set.n };
    arena_pos mark = arena_mark(m->a);
    double v = ir_value(m->g, m->a, r, default_input, &x);
    arena_release(m->a, mark);
    return v;
}

enum { MAX_DEFAULTS = 200000, MAX_CHECKED = 1000 };

static void default_params(const model *m, double *param)
{
    for (int32_t k = 0; k < m->nparam; k++)
        param[k] = NAN;
    for (size_t i = 0; i < m->defaults.n; i++) {
        const mfamily *f = &m->defaults.at[i];
        int32_t ix[MAX_INDEX];
        int64_t left = MAX_DEFAULTS;
        for (bool more = index_first(&f->over.set, ix); more && left--; more = index_next(&f->over.set, ix))
            for (int k = 0; k < f->nout; k++)
                param[slot_at(&f->row[k], ix, f->over.set.n)] = value_at_defaults(m, param, &f->over, ix,
                                                                                  f->out[k]);
    }
}

static bool fixed_by_params(const model *m, ir_ref r)
{
    return r && !depends_on(m->g, r, ~(BIT(IN_PARAM) | BIT(IN_INDEX)));
}

static bool same_for_all(const model *m, ir_ref r)
{
    return !depends_on(m->g, r, BIT(IN_INDEX)) && !depends_on(m->g, r, BIT(IN_PARAM));
}

static void check_delays(const model *m, const double *param);
static void check_integrals(const model *m, const double *param);

/* reactions that formulas read are those of one constraint each */
static void check_reactions(const model *m)
{
    for (size_t k = 0; k < m->reacts.n; k++) {
        int n = 0;
        for (size_t i = 0; i < m->contacts.n; i++)
            n += m->contacts.at[i].decl == m->reacts.at[k].decl && !m->contacts.at[i].fed_by;
        if (n > 1)
            diag_error(m->d, DIAG_NOT_SUPPORTED, m->reacts.at[k].at,
                       "'%s' is %d constraints: a formula may use the reaction of only one",
                       m->reacts.at[k].decl->name, n);
    }
}

static void check_contact(const model *m, const mcontact *c, const double *param)
{
    bool e = fixed_by_params(m, c->e), mu = fixed_by_params(m, c->mu), good = true;
    bool rest = mu && fixed_by_params(m, c->mu_static), along = fixed_by_params(m, c->et),
         pull = fixed_by_params(m, c->adhesion);
    bool one = (!e || same_for_all(m, c->e)) && (!mu || same_for_all(m, c->mu)) &&
               (!rest || same_for_all(m, c->mu_static)) && (!along || same_for_all(m, c->et)) &&
               (!pull || same_for_all(m, c->adhesion));
    int32_t ix[MAX_INDEX], left = one ? 1 : MAX_CHECKED;
    for (bool more = (e || mu || along || pull) && index_first(&c->over.set, ix); more && good && left--;
         more = index_next(&c->over.set, ix)) {
        double ve = e ? value_at_defaults(m, param, &c->over, ix, c->e) : 0,
               vmu = mu ? value_at_defaults(m, param, &c->over, ix, c->mu) : 0,
               vrest = rest ? value_at_defaults(m, param, &c->over, ix, c->mu_static) : vmu,
               vet = along ? value_at_defaults(m, param, &c->over, ix, c->et) : 0,
               vpull = pull ? value_at_defaults(m, param, &c->over, ix, c->adhesion) : 0;
        good = !(ve < 0 || ve > 1 || vmu < 0 || vrest < vmu || fabs(vet) > 1 || vpull < 0);
        if (vrest < vmu)
            diag_error(m->d, DIAG_FRICTION_NEGATIVE, c->mu_at,
                       "the static friction of '%s', %g, is below its kinetic friction, %g", c->name, vrest,
                       vmu);
        if (fabs(vet) > 1)
            diag_error(m->d, DIAG_RESTITUTION, c->et_at,
                       "the tangential restitution of '%s' is %g: it must lie between -1 and 1", c->name,
                       vet);
        if (vpull < 0)
            diag_error(m->d, DIAG_FRICTION_NEGATIVE, c->adhesion_at, "the adhesion of '%s' is negative: %g",
                       c->name, vpull);
        if (ve < 0 || ve > 1)
            diag_error(m->d, DIAG_RESTITUTION, c->e_at,
                       "the restitution of '%s' is %g: it must lie between 0 and 1", c->name, ve);
        if (vmu < 0)
            diag_error(m->d, DIAG_FRICTION_NEGATIVE, c->mu_at, "the friction of '%s' is negative: %g",
                       c->name, vmu);
    }
}

/* the same at the parameters of a run */
bool model_check_laws(const model *m, const double *param)
{
    size_t errors = m->d->errors;
    for (size_t i = 0; i < m->contacts.n; i++)
        check_contact(m, &m->contacts.at[i], param);
    if (m->has_delay.file)
        check_delays(m, param);
    if (m->has_delay.file)
        check_integrals(m, param);
    check_inertias(m, param);
    return m->d->errors == errors;
}

/* where value j of a parameter was given: as the argument of a part, or in its declaration */
static span value_place(const model *m, const mparam *p, int64_t j)
{
    int32_t ix[MAX_INDEX];
    span at = p->decl->at;
    for (size_t i = 0; i < m->defaults.n; i++) {
        const mfamily *f = &m->defaults.at[i];
        int64_t left = MAX_DEFAULTS;
        for (bool more = f->decl->kind == AST_ARG && index_first(&f->over.set, ix); more && left--;
             more = index_next(&f->over.set, ix))
            for (int k = 0; k < f->nout; k++)
                if (slot_at(&f->row[k], ix, f->over.set.n) == p->offset + j)
                    at = f->at;
    }
    return at;
}

/* bounds of parameters at their defaults; values given to a run are checked when it is run */
static void check_bounds(elab *e, const double *param)
{
    const model *m = e->m;
    bool lacking = false; /* parameters that the run has to give */
    for (size_t k = 0; k < m->classes.at[0]->params.n; k++)
        lacking = lacking || !m->classes.at[0]->params.at[k]->has_default;
    for (size_t i = 0; i < m->classes.n; i++) {
        const mclass *c = m->classes.at[i];
        for (size_t k = 0; k < c->params.n; k++) {
            const mparam *p = c->params.at[k];
            int64_t n = (int64_t)p->size * c->ninst;
            for (int64_t j = 0; j < n && j < MAX_DEFAULTS; j++) {
                double v = param[p->offset + j];
                if (isnan(v) && i > 0 && j < MAX_CHECKED && !lacking) {
                    diag *err = diag_error(m->d, DIAG_PARAM_MISSING, p->at,
                                           "parameter '%s' of the part '%s' has no value", p->name, c->name);
                    diag_hint(m->d, err, "give it one here, or where the part is used: %s(%s = …)", c->name,
                              p->name);
                    break;
                }
                if (isnan(v) || (v >= p->lo && v <= p->hi))
                    continue;
                text t = { .a = m->a };
                text_printf(&t, "the value ");
                text_num(&t, v);
                text_printf(&t, " of parameter '%s' is outside ", p->name);
                text_num(&t, p->lo);
                text_puts(&t, "..");
                text_num(&t, p->hi);
                diag_error(m->d, DIAG_PARAM_BOUND, value_place(m, p, j), "%s", t.at);
                break;
            }
        }
    }
}

static double start_input(const ir_input *in, void *ud)
{
    const at_defaults *x = ud;
    if (in->kind == IN_PARAM)
        return x->param[slot_at(&in->at, x->ix, x->n)];
    return in->kind == IN_TIME ? 0 : NAN;
}

/* Integrals over the past whose ends reach into the future, at the start; where only parameters, time and the
 * variable decide. */
typedef struct {
    at_defaults *at;
    int bound;
    double s;
} in_integral;
static double integral_input(const ir_input *in, void *ud)
{
    const in_integral *x = ud;
    return in->kind == IN_BOUND ? (in->at.base == x->bound ? x->s : NAN) : start_input(in, x->at);
}

static bool reads_bound(const ir_input *in, void *ud)
{
    return in->kind == IN_BOUND && in->at.base == *(int *)ud;
}

static void check_integrals(const model *m, const double *param)
{
    static const int32_t none[MAX_INDEX] = { 0 };
    at_defaults at = { param, none, 0 };
    for (size_t i = 0; i < m->integrals.n; i++) {
        const mintegral *x = &m->integrals.at[i];
        ir_ref *in;
        size_t n = ir_inputs(m->g, m->a, &x->integrand, 1, &in);
        for (size_t k = 0; k < n; k++) {
            const ir_input *p = ir_input_of(m->g, in[k]);
            int bound = x->bound;
            if ((p->kind != IN_PAST_Q && p->kind != IN_PAST_V) ||
                !ir_depends(m->g, p->arg, reads_bound, &bound))
                continue;
            for (int end = 0; end < 2; end++) {
                arena_pos mark = arena_mark(m->a);
                in_integral with = { &at, x->bound, 0 };
                with.s = ir_value(m->g, m->a, end ? x->hi : x->lo, start_input, &at);
                double ahead = ir_value(m->g, m->a, p->arg, integral_input, &with);
                arena_release(m->a, mark);
                if (!(ahead > 0))
                    continue;
                diag *e = diag_error(m->d, DIAG_DELAY_SIGN, x->at,
                                     "this integral reaches %g into the future, at the %s end of its range",
                                     ahead, end ? "upper" : "lower");
                diag_hint(m->d, e, "write integral(K(s)*x(t + s) for s in -tau..0) with tau > 0");
                end = 2;
            }
        }
    }
}

/* delays that depend on parameters and time: t - arg > 0 at the start; one that changes may be 0 there */
static void check_delays(const model *m, const double *param)
{
    static const int32_t none[MAX_INDEX] = { 0 };
    for (ir_ref r = 1; r <= ir_count(m->g); r++) {
        const ir_input *in = ir_input_of(m->g, r);
        if (!in || (in->kind != IN_PAST_Q && in->kind != IN_PAST_V))
            continue;
        if (depends_on(m->g, in->arg, ~(BIT(IN_PARAM) | BIT(IN_TIME))))
            continue;
        ir_ref arg_ref = in->arg;
        bool steady = eval_steady_delay(m->g, arg_ref);
        at_defaults x = { param, none, 0 };
        arena_pos mark = arena_mark(m->a);
        double delay = 0 - ir_value(m->g, m->a, arg_ref, start_input, &x);
        arena_release(m->a, mark);
        if (delay < 0 || (steady && delay == 0)) {
            diag_error(m->d, DIAG_DELAY_SIGN, m->has_delay, "the delay is %g: it must be positive", delay);
            return;
        }
    }
}

void check_values(elab *e)
{
    model *m = e->m;
    double *param = arena_array(m->a, double, m->nparam + 1);
    default_params(m, param);
    check_bounds(e, param);
    check_reactions(m);
    model_check_laws(m, param);
}

/* ---- names in functions that nothing calls ---- */

typedef struct locals {
    const struct locals *up;
    sym name;
} locals;

static void resolve(elab *e, scope *in, const ast *x, const locals *l, int depth)
{
    if (!x || depth > AST_MAX_DEPTH * 2)
        return;
    if (x->kind == AST_NAME) {
        for (const locals *k = l; k; k = k->up)
            if (k->name == x->name)
                return;
        value v;
        for (scope *s = in; s; s = s->up)
            if (s->find(s, &e->ev, x->name, x->at, &v) != LOOK_NO)
                return;
        eval(&e->ev, in, x); /* reports what is wrong */
        return;
    }
    if (x->kind == AST_GEN) {
        locals ix[MAX_INDEX];
        uint32_t n = x->n - 2 < MAX_INDEX ? x->n - 2 : MAX_INDEX;
        for (uint32_t i = 0; i < n; i++) {
            resolve(e, in, x->kid[i + 1]->kid[0], l, depth + 1);
            ix[i] = (locals){ l, x->kid[i + 1]->name };
            l = &ix[i];
        }
        resolve(e, in, x->kid[0], l, depth + 1);
        resolve(e, in, x->kid[x->n - 1], l, depth + 1);
        return;
    }
    if (x->kind == AST_NUM) {
        eval(&e->ev, in, x);
        return;
    }
    for (uint32_t i = 0; i < x->n; i++)
        resolve(e, in, x->kid[i], l, depth + 1);
}

void resolve_function(elab *e, scope *in, const ast *fn)
{
    const ast *params = fn->kid[0];
    locals *l = arena_array(e->m->a, locals, params->n + 1);
    const locals *top = NULL;
    for (uint32_t i = 0; i < params->n; i++) {
        l[i] = (locals){ top, params->kid[i]->name };
        top = &l[i];
    }
    resolve(e, in, fn->kid[1], top, 0);
}
