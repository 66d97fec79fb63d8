/* inertia: the inertia of a rotation in the body frame, from kinetic energies and equations of moments.
   Masses somewhere in a body have sums x x^T m that are not negative in any direction; the inertia is J =
   trace(X) I - X of these, so that X = trace(J)/2 I - J is not either: the triangle inequality of the three
   principal moments. */
#include "elab.h"
#include "base/tolerances.h"
#include <math.h>

typedef struct sum {
    double J[9];
    span at; /* of the first statement that gives some of it; file 0: none */
} sum;

typedef struct inertias {
    const model *m;
    const double *param;
    sum *of; /* of each dof that is the first of a rotation */
    /* the current member */
    const index_names *over;
    int32_t ix[MAX_INDEX];
} inertias;

/* rotations are at their base, rates are 0; the other dofs are not known */
static double at_rest(const ir_input *in, void *ud)
{
    const inertias *w = ud;
    int32_t at = slot_at(&in->at, w->ix, w->over->set.n), component = 0;
    switch (in->kind) {
    case IN_PARAM:
        return w->param[at];
    case IN_INDEX:
        return w->ix[in->at.base];
    case IN_V:
    case IN_A:
        return 0;
    case IN_Q: {
        const mdof *d = model_dof(w->m, at, &component);
        return d && d->rotation ? 0 : NAN;
    }
    case IN_BASE: /* entry 3 row + column of eye(3) */
        model_dof(w->m, at / 3, &component);
        return (3 * (component % 3) + at % 3) % 4 == 0;
    default:
        return NAN;
    }
}

static double value_at_rest(inertias *w, ir_ref f)
{
    arena_pos mark = arena_mark(w->m->a);
    double x = ir_value(w->m->g, w->m->a, f, at_rest, w);
    arena_release(w->m->a, mark);
    return x;
}

/* entries d f[i] / d input[j], or of the second derivatives of f[0], for all members */
static void family_adds(inertias *w, const mfamily *f, const address *first, in_kind kind)
{
    ir *g = w->m->g;
    ir_ref entry[9], input[3];
    for (int k = 0; k < 3; k++) {
        address at = *first;
        at.base += k;
        input[k] = ir_in(g, (ir_input){ .kind = kind, .at = at });
    }
    for (int i = 0; i < 9; i++) {
        ir_ref row = kind == IN_A ? f->out[i / 3] : ir_derive(g, f->out[0], input[i / 3]);
        entry[i] = ir_derive(g, row, input[i % 3]);
    }
    w->over = &f->over;
    for (bool more = index_first(&f->over.set, w->ix); more; more = index_next(&f->over.set, w->ix)) {
        sum *to = &w->of[slot_at(first, w->ix, f->over.set.n)];
        to->at = to->at.file ? to->at : f->at;
        for (int i = 0; i < 9; i++)
            to->J[i] += value_at_rest(w, entry[i]);
    }
}

/* the rotations whose rates an energy reads, each once: their first components among the inputs */
static void energy_adds(inertias *w, const mfamily *f)
{
    ir_ref *in;
    int32_t ix[MAX_INDEX] = { 0 }, component;
    size_t n = ir_inputs(w->m->g, w->m->a, f->out, 1, &in);
    if (!index_first(&f->over.set, ix))
        return;
    for (size_t k = 0; k < n; k++) {
        const ir_input x = *ir_input_of(w->m->g, in[k]);
        const mdof *d = x.kind == IN_V ? model_dof(w->m, slot_at(&x.at, ix, f->over.set.n), &component)
                                       : NULL;
        if (d && d->rotation && component % 3 == 0)
            family_adds(w, f, &x.at, IN_V);
    }
}

static bool finite_sum(const sum *s)
{
    double all = 0;
    for (int i = 0; i < 9; i++)
        all += s->J[i];
    return isfinite(all);
}

/* x.X x >= 0 for all x, up to rounding: by the principal minors */
static bool not_negative(const double X[9], double size)
{
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        if (X[4 * i] < -INERTIA_ROUNDED * size ||
            X[4 * i] * X[4 * j] - X[3 * i + j] * X[3 * j + i] < -INERTIA_ROUNDED * size * size)
            return false;
    }
    double det = X[0] * (X[4] * X[8] - X[5] * X[7]) - X[1] * (X[3] * X[8] - X[5] * X[6]) +
                 X[2] * (X[3] * X[7] - X[4] * X[6]);
    return det >= -INERTIA_ROUNDED * size * size * size;
}

static void judge(const model *m, const sum *s, int32_t q)
{
    double trace = s->J[0] + s->J[4] + s->J[8], sign = trace < 0 ? -1 : 1, X[9], size = fabs(trace);
    const mdof *d = model_dof(m, q, NULL);
    bool symmetric = true;
    for (int i = 0; i < 9; i++) {
        X[i] = (i % 4 == 0 ? 0.5 * size : 0) - sign * s->J[i];
        symmetric = symmetric && fabs(s->J[i] - s->J[3 * (i % 3) + i / 3]) <= INERTIA_ROUNDED * size;
    }
    if (symmetric && not_negative(X, size))
        return;
    diag *e = diag_error(m->d, DIAG_INERTIA, s->at,
                         symmetric ? "no body has the inertia of '%s': one of its principal moments is "
                                     "larger than the sum of the other two"
                                   : "the inertia of '%s' is not symmetric",
                         d->name);
    diag_second(m->d, e, d->at, "the rotation");
}

void check_inertias(const model *m, const double *param)
{
    enum { MEMBERS = 2000 };
    int64_t members = 0;
    inertias w = { .m = m, .param = param };
    bool any = false;
    for (size_t i = 0; i < m->classes.n; i++)
        for (size_t k = 0; k < m->classes.at[i]->dofs.n; k++)
            any = any || m->classes.at[i]->dofs.at[k]->rotation;
    for (size_t i = 0; i < m->kinetic.n; i++)
        members += index_members(&m->kinetic.at[i].over.set);
    for (size_t i = 0; i < m->equation.n; i++)
        members += index_members(&m->equation.at[i].over.set);
    if (!any || members > MEMBERS)
        return;
    w.of = arena_array(m->a, sum, m->nq + 1);
    for (size_t i = 0; i < m->kinetic.n; i++)
        energy_adds(&w, &m->kinetic.at[i]);
    for (size_t i = 0; i < m->equation.n; i++)
        if (m->equation.at[i].moments)
            family_adds(&w, &m->equation.at[i], &m->equation.at[i].row[0], IN_A);
    for (int32_t q = 0; q < m->nq; q++)
        if (w.of[q].at.file && finite_sum(&w.of[q]))
            judge(m, &w.of[q], q);
}
