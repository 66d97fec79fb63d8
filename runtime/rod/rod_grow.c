/* rod_grow: natural strains that change with the load parameter. A rod whose natural length is g times that
   of its mesh has the energy of the strains v/g and u/g over g ds: B/g (v - g v0)^2/2 + A/g (u - g u0)^2/2
   over ds. A changing natural curvature adds its change since t = 0 to that of the shape. */
#include "rod_work.h"
#include <math.h>
#include <string.h>

static bool reads_time(const kernel *k)
{
    for (uint32_t i = 0; i < k->tape.nin; i++)
        if (k->in[i].kind == IN_TIME)
            return true;
    return false;
}

static bool grows(const rod_spec *sp)
{
    return sp->growth.tape.nout || reads_time(&sp->curvature);
}

bool rod_grow_new(rod_work *w)
{
    int points = 0;
    bool any = false;
    for (int r = 0; r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        points += 3 * m->ne;
        any = any || grows(m->spec);
        if (grows(m->spec) && m->mass > 0)
            return rod_fail(w, m->spec->growth.tape.nout ? m->spec->growth_at : m->spec->curvature_at,
                            "growth, and a curvature that changes with t, are for equilibria: rod '%s' has a "
                            "mass and moves in time",
                            m->spec->name);
    }
    if (!any)
        return true;
    w->grown.strains = arena_array(w->a, double, 6 * points);
    w->grown.sections = arena_array(w->a, double, 18 * points);
    for (int r = 0, at = 0; r < w->rp->nrod; at += 3 * w->mesh[r++].ne) {
        rod_mesh *m = &w->mesh[r];
        memcpy(w->grown.strains + 6 * at, m->v0, (size_t)(18 * m->ne) * sizeof *m->v0);
        for (int k = 0; k < 3 * m->ne; k++) {
            memcpy(w->grown.sections + 18 * (at + k), rod_stretch_at(m, k), 9 * sizeof(double));
            memcpy(w->grown.sections + 18 * (at + k) + 9, rod_bend_at(m, k), 9 * sizeof(double));
        }
        if (!m->spec->growth.tape.nout || m->sections)
            continue;
        m->sections = arena_array(w->a, double, 54 * m->ne);
        memcpy(m->sections, w->grown.sections + 18 * at, (size_t)(54 * m->ne) * sizeof *m->sections);
    }
    return true;
}

/* At a point of integration; v, u: natural strains of the shape; base: its sections. */
static bool grow_point(rod_work *w, int rod, int k, double t, double tau, const double *v, const double *u,
                       const double *base)
{
    rod_mesh *m = &w->mesh[rod];
    int e = k / 3;
    double s = m->s[3 * e] + rod_gauss_x[k % 3] * (m->s[3 * e + 3] - m->s[3 * e]), g = 1, now[3] = { 0 },
           first[3] = { 0 };
    if (reads_time(&m->spec->curvature)) {
        rod_eval(w, &m->spec->curvature, t, rod, s, now);
        rod_eval(w, &m->spec->curvature, 0, rod, s, first);
    }
    if (m->spec->growth.tape.nout)
        rod_eval(w, &m->spec->growth, t, rod, s, &g);
    if (!(g > 0 && isfinite(g)))
        return rod_fail(w, m->spec->growth_at,
                        "the growth of rod '%s' is %g at t = %g, s = %.4g: it must be "
                        "positive",
                        m->spec->name, g, t, s);
    if (!isfinite(dot3(now, now)))
        return rod_fail(w, m->spec->curvature_at,
                        "the curvature of rod '%s' is not a number at t = %g, s = %.4g", m->spec->name, t, s);
    g = 1 + (g - 1) * tau;
    for (int i = 0; i < 3; i++) {
        m->v0[3 * k + i] = g * v[i];
        m->u0[3 * k + i] = g * (u[i] + now[i] - first[i]);
    }
    for (int i = 0; m->spec->growth.tape.nout && i < 18; i++)
        m->sections[18 * k + i] = base[i] / g;
    return true;
}

bool rod_grow(rod_work *w, double t, double tau)
{
    for (int r = 0, at = 0; w->grown.strains && r < w->rp->nrod; at += 3 * w->mesh[r++].ne) {
        const rod_mesh *m = &w->mesh[r];
        const double *shape = w->grown.strains + 6 * at;
        for (int k = 0; grows(m->spec) && k < 3 * m->ne; k++) {
            /* on the way to a shape they have just been stored there */
            const double *v = (w->goal0 ? m->v0 : shape) + 3 * k, *u = v + 9 * m->ne;
            double keep[6] = { v[0], v[1], v[2], u[0], u[1], u[2] };
            if (!grow_point(w, r, k, t, tau, keep, keep + 3, w->grown.sections + 18 * (at + k)))
                return false;
        }
    }
    return true;
}

/* Derivative by t of the residual: loads, and natural strains (which must be those at t). */
void rod_driving(rod_work *w, double t, double *res)
{
    rod_loads(w, t, res);
    for (int r = 0; w->grown.strains && r < w->rp->nrod; r++) {
        const rod_mesh *m = &w->mesh[r];
        for (int e = 0; e < m->ne; e++)
            rod_element_own(w, m, e, NULL, res + 6 * (m->first + 3 * e), NULL);
    }
}
