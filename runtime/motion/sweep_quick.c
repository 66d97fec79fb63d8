/* sweep_quick: the step that most steps of small models are: all is linear, and the one contact there is, if
   any, stays open or closed throughout.  What comes out are the numbers of sweep_advance.  Whatever is not so
   is left to that, with nothing changed. */
#include <math.h>
#include "sweep.h"

bool sweep_quick_fits(const sweep *w)
{
    const system_t *s = w->s;
    if (!w->linear || w->p->nevent || s->past || s->first_order || w->stiffness != 0 || w->ntrack > 1 ||
        w->near.nof || w->cut == CUT_NEVER)
        return false;
    return w->ntrack == 0 || (w->track[0]->still && !w->track[0]->c->fam->f->mu_of_speed);
}

/* the impulse of the closed contact, on the rates v; false: something it needs is not there yet */
static bool quick_react(sweep *w, track *k, double h, double *v)
{
    const contact *c = k->c;
    double *b = w->b;
    if (k->cone_step != h || k->cone.d != c->d || k->stamp != w->stamp || k->stamp_a != w->stamp)
        return false;
    if (k->normal && !(k->A[0] > 0))
        return false;
    if (k->normal)
        *b++ = contact_rate(c, c->H, v) + c->ht + k->ahead;
    for (int j = 0; j < c->d; j++)
        *b++ = contact_rate(c, c->S + (size_t)j * c->n, v) + c->s0[j];
    k->row = 0;
    if (!cone_solve(&k->cone, k->A, rows_of(k), w->b, w->rr, w->local))
        return false;
    if (k->relation == REL_GAP && !(w->rr[0] > 0))
        return false; /* it opens */
    sweep_react(w, v, false);
    /* friction at its bound, to the side it was on: the slip goes on */
    if (c->d == 1) {
        double rt = w->rr[k->normal], bound = k->cone.mu * fabs(w->rr[0]) * k->normal + k->cone.radius;
        if (rt * k->r[k->normal] > 0 && fabs(rt) >= bound)
            return true;
    }
    return c->d == 0 || !sweep_turns(w);
}

/* forces at the end of the step, were the rates to stay; then where they lead */
static void quick_free(sweep *w, double h, double a, double b)
{
    system_t *s = w->s;
    int n = w->n;
    double th = w->theta;
    if (!s->force_constant) {
        for (int i = 0; i < n; i++)
            w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v[i]);
        system_at(s, w->t1, w->q1, w->v);
        system_force(s, w->f1);
    }
    for (int i = 0; i < n; i++)
        w->x2[i] = h * ((1 - th) * w->f[i] + th * w->f1[i]);
    solve_with(s->force_of_state ? &w->df : &s->minv, w->x2, w->x1);
    for (int i = 0; i < n; i++)
        w->v1[i] = w->v[i] + w->x1[i];
}

/* does the contact do at the end what it did at the start? */
static bool quick_stays(sweep *w, track *k)
{
    double was = k->c->gap, gap;
    system_at(w->s, w->t1, w->q1, w->v1);
    gap = contact_gap(w->s, k->c);
    if (k->closed ? !k->normal || fabs(gap) <= 0.25 * k->tol_gap : gap >= -k->tol_gap)
        return true;
    k->c->gap = was;
    return false;
}

bool sweep_quick(sweep *w, double end)
{
    const system_t *s = w->s;
    double h = w->h, a = h * (1 - w->theta), b = h * w->theta, finite = 0;
    track *k = w->ntrack ? w->track[0] : NULL;
    int n = w->n;
    if (!(fabs(end - w->t - h) <= 1e-9 * h) || w->patience < MAX_AGAIN ||
        (s->force_of_state && w->d_step != h))
        return false;
    if (k && !k->closed && !(k->c->gap > k->tol_gap))
        return false;
    w->t1 = w->t + h;
    w->nact = k && k->closed;
    if (w->nact)
        w->act[0] = k;
    quick_free(w, h, a, b);
    if (w->nact && !quick_react(w, k, h, w->v1))
        return false;
    if (s->force_of_state)
        vec_copy(w->x4, w->q1, n);
    for (int i = 0; i < n; i++) {
        w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v1[i]);
        finite += 0 * w->v1[i];
    }
    if (!(finite == 0))
        return false;
    if (s->force_of_state)
        sweep_force_follows(w, w->x4, w->v);
    if (k && !quick_stays(w, k))
        return false;
    if (k) {
        k->hits = 0;
        for (int j = 0; j < rows_of(k); j++)
            k->P[j] = 0;
    }
    w->again = 0;
    w->opened = 0;
    sweep_accept(w, h);
    return true;
}
