/* rod_section: sections of rods: stiffness, mass and inertia per length, constant or functions of arc length.
   Data of changing sections are stored at the points of integration, where forces follow from strains, and at
   the nodes, where rotary inertia acts. */
#include "rod_work.h"
#include "base/tolerances.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Data of a section, and its rod and place. */
typedef struct section {
    int rod;
    double s;
    const char *where; /* " at s = ..." if sections differ, or "" */
    double radius, B[9], A[9], mass, J[9];
} section;

static double number_of(rod_work *w, const section *c, rod_number which, double otherwise)
{
    const kernel *k = &w->rp->rod[c->rod].number[which];
    double x = otherwise;
    if (k->tape.nout)
        rod_eval(w, k, 0, c->rod, c->s, &x);
    return x;
}

static bool positive(rod_work *w, const section *c, double x, span at, const char *what)
{
    if (x > 0 && isfinite(x))
        return true;
    return rod_fail(w, at, "the %s of rod '%s' is %g%s: it must be positive", what, w->rp->rod[c->rod].name,
                    x, c->where);
}

static bool spd3(const double *M)
{
    double minor = M[0] * M[4] - M[1] * M[3];
    double det = M[0] * (M[4] * M[8] - M[5] * M[7]) - M[1] * (M[3] * M[8] - M[5] * M[6]) +
                 M[2] * (M[3] * M[7] - M[4] * M[6]);
    double big = fabs(M[0]) + fabs(M[4]) + fabs(M[8]),
           skew = fabs(M[1] - M[3]) + fabs(M[2] - M[6]) + fabs(M[5] - M[7]);
    return M[0] > 0 && minor > 0 && det > 0 && skew <= FACTOR_SAME * big;
}

static bool matrix_of(rod_work *w, const section *c, const kernel *k, span at, const char *what, double *M)
{
    if (!k->tape.nout)
        return true;
    rod_eval(w, k, 0, c->rod, c->s, M);
    return spd3(M) || rod_fail(w, at, "the %s of rod '%s' is not symmetric and positive definite%s", what,
                               w->rp->rod[c->rod].name, c->where);
}

/* Mass from density and radius, or given. Without a radius the section is assumed to consist of one material:
   I/A = EI/EA. */
static bool mass_of(rod_work *w, section *c)
{
    const rod_spec *sp = &w->rp->rod[c->rod];
    bool dense = sp->number[ROD_DENSITY].tape.nout, heavy = sp->number[ROD_MASS].tape.nout;
    double density = number_of(w, c, ROD_DENSITY, 0), r2 = c->radius * c->radius;
    if (dense && !positive(w, c, density, sp->number_at[ROD_DENSITY], "density"))
        return false;
    if (dense && heavy)
        return rod_fail(w, sp->number_at[ROD_MASS],
                        "rod '%s' has a density and a mass per length: give only one of them", sp->name);
    if (dense && !(r2 > 0))
        return rod_fail(
            w, sp->number_at[ROD_DENSITY],
            "the density of rod '%s' gives no mass without a radius; give radius, or mass = … per length",
            sp->name);
    c->mass = dense ? density * M_PI * r2 : number_of(w, c, ROD_MASS, 0);
    if (heavy && !positive(w, c, c->mass, sp->number_at[ROD_MASS], "mass"))
        return false;
    c->J[0] = c->mass * (r2 > 0 ? r2 / 4 : c->A[0] / c->B[8]);
    c->J[4] = c->mass * (r2 > 0 ? r2 / 4 : c->A[4] / c->B[8]);
    c->J[8] = c->J[0] + c->J[4];
    return matrix_of(w, c, &sp->inertia, sp->inertia_at, "inertia", c->J);
}

static bool section_of(rod_work *w, int rod, double s, const char *where, section *c)
{
    const rod_spec *sp = &w->rp->rod[rod];
    *c = (section){ .rod = rod, .s = s, .where = where };
    c->radius = number_of(w, c, ROD_RADIUS, 0);
    if (sp->number[ROD_RADIUS].tape.nout && !positive(w, c, c->radius, sp->number_at[ROD_RADIUS], "radius"))
        return false;
    double E = number_of(w, c, ROD_YOUNG, 0), nu = number_of(w, c, ROD_POISSON, 0.3), r = c->radius,
           area = M_PI * r * r;
    if (sp->number[ROD_YOUNG].tape.nout && !positive(w, c, E, sp->number_at[ROD_YOUNG], "young"))
        return false;
    if (!(nu > -1 && nu <= 0.5))
        return rod_fail(w, sp->number_at[ROD_POISSON],
                        "poisson of rod '%s' is %g%s: it must lie between -1 and 0.5", sp->name, nu, where);
    double G = E / (2 * (1 + nu)), I = area * r * r / 4;
    c->B[0] = c->B[4] = G * area;
    c->B[8] = E * area;
    c->A[0] = c->A[4] = E * I;
    c->A[8] = 2 * G * I;
    return matrix_of(w, c, &sp->stiffness, sp->stiffness_at, "stiffness", c->B) &&
           matrix_of(w, c, &sp->bending, sp->bending_at, "bending stiffness", c->A) && mass_of(w, c);
}

/* Uses a section for the whole rod. */
static void take(rod_mesh *m, const section *c)
{
    m->radius = c->radius;
    m->mass = c->mass;
    memcpy(m->B, c->B, sizeof m->B);
    memcpy(m->A, c->A, sizeof m->A);
    memcpy(m->J, c->J, sizeof m->J);
}

bool rod_section(rod_work *w, int rod)
{
    const rod_spec *sp = &w->rp->rod[rod];
    rod_mesh *m = &w->mesh[rod];
    section c = { .rod = rod, .where = "" };
    m->spec = sp;
    m->length = number_of(w, &c, ROD_LENGTH, 0);
    if (!positive(w, &c, m->length, sp->number_at[ROD_LENGTH], "length"))
        return false;
    m->damping = number_of(w, &c, ROD_DAMPING, 0);
    if (!(m->damping >= 0 && isfinite(m->damping)))
        return rod_fail(w, sp->number_at[ROD_DAMPING],
                        "the damping of rod '%s' is %g: it must not be negative", sp->name, m->damping);
    m->drag = number_of(w, &c, ROD_DRAG, 0);
    if (!(m->drag >= 0 && isfinite(m->drag)))
        return rod_fail(w, sp->number_at[ROD_DRAG], "the drag of rod '%s' is %g: it must not be negative",
                        sp->name, m->drag);
    if (!section_of(w, rod, 0, rod_varies(sp) ? " at s = 0" : "", &c))
        return false;
    take(m, &c);
    if (!m->mass && (sp->inertia.tape.nout || sp->velocity.tape.nout || sp->spin.tape.nout ||
                     m->damping > 0 || m->drag > 0))
        return rod_fail(w, sp->at, "rod '%s' has no mass, so it does not move in time; give density or mass",
                        sp->name);
    if (rod && (m->mass > 0) != (w->mesh[0].mass > 0))
        return rod_fail(w, (m->mass > 0 ? w->mesh[0].spec : sp)->at,
                        "rod '%s' has no mass, another rod has: give density to all of them or to none",
                        (m->mass > 0 ? w->mesh[0].spec : sp)->name);
    return true;
}

/* ---- sections that change ---- */
static bool reads_arc(const kernel *k)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (k->in[i].kind == IN_COORD)
            return true;
    return false;
}

bool rod_varies(const rod_spec *sp)
{
    bool varies = reads_arc(&sp->stiffness) || reads_arc(&sp->bending) || reads_arc(&sp->inertia);
    for (int k = 0; k < ROD_NUMBERS; k++)
        varies = varies || reads_arc(&sp->number[k]);
    return varies;
}

static bool section_there(rod_work *w, int rod, double s, section *c)
{
    char where[40];
    snprintf(where, sizeof where, " at s = %.4g", s);
    bool ok = section_of(w, rod, s, where, c);
    c->where = "";
    return ok;
}

/* Mass matrix of an element by Gauss's rule with four points: for masses up to cubic it has the order of the
   strains, and for a constant mass it is rod_mass. */
static bool mass_along(rod_work *w, int rod, int e)
{
    static const double at[] = { 0.06943184420297371, 0.33000947820757187, 0.66999052179242813,
                                 0.93056815579702629 },
                        weight[] = { 0.17392742256872693, 0.32607257743127307, 0.32607257743127307,
                                     0.17392742256872693 };
    rod_mesh *m = &w->mesh[rod];
    double h = m->s[3 * e + 3] - m->s[3 * e], *M = m->masses + 16 * e;
    for (int g = 0; g < 4; g++) {
        double N[4];
        section c;
        if (!section_there(w, rod, m->s[3 * e] + at[g] * h, &c))
            return false;
        rod_shape_at(at[g], N, NULL);
        for (int k = 0; k < 16; k++)
            M[k] += weight[g] * c.mass * N[k / 4] * N[k % 4];
    }
    return true;
}

/* Adds a body at a section; bodies act only by their inertia. */
static bool lump_add(rod_work *w, const rod_load *l)
{
    rod_mesh *m = &w->mesh[l->rod];
    section c = { .rod = l->rod, .where = "" };
    double s, x[9];
    rod_eval(w, &l->s, 0, l->rod, 0, &s);
    if (!(m->mass > 0))
        return rod_fail(w, l->at,
                        "a mass at a place acts in time alone, and rod '%s' has no mass: give it density or "
                        "mass, and what weighs on it by force",
                        m->spec->name);
    if (!m->lumps)
        m->lumps = arena_array(w->a, double, 10 * m->nn);
    double *to = m->lumps + 10 * (rod_node_at(m, s) - m->first);
    rod_eval(w, &l->value, 0, l->rod, 0, x);
    if (l->what == LOAD_MASS) {
        to[0] += x[0];
        return positive(w, &c, x[0], l->at, "mass at a place");
    }
    for (int k = 0; k < 9; k++)
        to[1 + k] += x[k];
    return spd3(x) ||
           rod_fail(w, l->at, "the inertia at a place of rod '%s' is not symmetric and positive definite",
                    m->spec->name);
}

bool rod_lumps(rod_work *w, int rod)
{
    for (int i = 0; i < w->rp->nload; i++) {
        const rod_load *l = &w->rp->load[i];
        if (l->rod == rod && (l->what == LOAD_MASS || l->what == LOAD_INERTIA) && !lump_add(w, l))
            return false;
    }
    return true;
}

bool rod_section_along(rod_work *w, int rod)
{
    rod_mesh *m = &w->mesh[rod];
    section c, most = { .radius = m->radius, .mass = m->mass };
    if (!rod_varies(m->spec))
        return true;
    m->sections = arena_array(w->a, double, 18 * 3 * m->ne);
    m->radii = arena_array(w->a, double, m->nn);
    if (m->mass > 0) {
        m->masses = arena_array(w->a, double, 16 * m->ne);
        m->inertias = arena_array(w->a, double, 9 * m->nn);
    }
    memcpy(most.B, m->B, sizeof most.B);
    memcpy(most.A, m->A, sizeof most.A);
    memcpy(most.J, m->J, sizeof most.J);
    for (int at = 0; at < 3 * m->ne; at++) {
        double h = m->s[at / 3 * 3 + 3] - m->s[at / 3 * 3];
        if (!section_there(w, rod, m->s[at / 3 * 3] + rod_gauss_x[at % 3] * h, &c))
            return false;
        memcpy(m->sections + 18 * at, c.B, sizeof c.B);
        memcpy(m->sections + 18 * at + 9, c.A, sizeof c.A);
        for (int k = 0; k < 9; k++) {
            most.B[k] = fmax(most.B[k], c.B[k]);
            most.A[k] = fmax(most.A[k], c.A[k]);
        }
    }
    for (int i = 0; i < m->nn; i++) {
        if (!section_there(w, rod, m->s[i], &c))
            return false;
        m->radii[i] = c.radius;
        if (m->inertias)
            memcpy(m->inertias + 9 * i, c.J, sizeof c.J);
        most.radius = fmax(most.radius, c.radius);
        most.mass = fmax(most.mass, c.mass);
    }
    for (int e = 0; m->masses && e < m->ne; e++)
        if (!mass_along(w, rod, e))
            return false;
    take(m, &most);
    return true;
}
