/* many_positions: where bodies go in a step: by the mean rate, or by the rate at the end where they would
 * overlap; overlaps that are left are pushed open. */
#include <math.h>
#include <string.h>
#include "many_work.h"

/* gaps at q1; the largest overlap */
static double gaps_now(many *w, double t)
{
    contact_list *l = &w->act;
    double worst = 0;
    system_at(w->s, t, w->q1, w->v1);
    for (int c = 0; c < l->n; c++) {
        if (l->cone[c].kind == CONE_GIVEN)
            continue;
        double gap = l->gap[c] = l->base && l->affine[c]
                                     ? l->base[c] + list_rate(l, c, 0, w->q1)
                                     : term_value(&l->of[c].pat->fam->gap, &w->s->in, l->of[c].index);
        worst = larger(worst, l->cone[c].kind == CONE_BILATERAL ? fabs(gap) : -gap);
    }
    return w->overlap = worst;
}

static void touch(many *w, int c)
{
    const contact_list *l = &w->act;
    for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++)
        w->touched[l->dof[k]] = 1;
}

static double positions_by(many *w, double t)
{
    double a = w->h * (1 - w->theta), b = w->h * w->theta;
    for (int i = 0; i < w->n; i++)
        w->q1[i] = w->q[i] + (w->touched[i] ? w->h * w->v1[i] : a * w->v[i] + b * w->v1[i]);
    return gaps_now(w, t);
}

/* Bodies on which an impulse would do work at the mean rate, as where they went apart and are pressed anew,
 * go by the rate at the end: that is no gain. */
static void ends(many *w)
{
    const contact_list *l = &w->act;
    double *rate = w->qmid;
    bool may = false; /* without friction and restitution only what goes apart at the start can do so */
    for (int c = 0; c < l->n && !may; c++)
        may = l->r[l->cone[c].row] > 0 && (l->cone[c].d || l->e[c] > 0 || l->un[c] > 0);
    for (bool more = may; more;) {
        more = false;
        for (int i = 0; i < w->n; i++)
            rate[i] = w->touched[i] ? w->v1[i] : 0.5 * (w->v[i] + w->v1[i]);
        for (int c = 0; c < l->n; c++) {
            double power = 0, size = 0, speed = 0;
            bool new = false;
            if (l->cone[c].kind != CONE_UNILATERAL || !(l->r[l->cone[c].row] > 0))
                continue;
            for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) {
                new |= !w->touched[l->dof[k]];
                speed = larger(speed, fabs(rate[l->dof[k]]));
            }
            for (int a = 0, row = l->cone[c].row; new &&a < list_rows(l, c); a++) {
                power += l->r[row + a] * (list_rate(l, c, a, rate) + l->off[row + a]);
                size += fabs(l->r[row + a]) * (speed + fabs(l->off[row + a]));
            }
            if (!(power > 1e-9 * size))
                continue;
            touch(w, c);
            more = true;
        }
    }
}

/* By the mean rate; bodies that would overlap go by the rate at the end, for which gap + h u_n >= 0 was
 * asked. */
void positions_go(many *w, double t)
{
    contact_list *l = &w->act;
    double least = fmin(w->small, 1e-13 * w->length);
    memset(w->touched, 0, (size_t)w->n);
    w->opened = 0;
    ends(w);
    for (int round = 0; round < 64 && positions_by(w, t) > least; round++) {
        bool more = false;
        for (int c = 0; c < l->n; c++) {
            double over = l->cone[c].kind == CONE_BILATERAL ? fabs(l->gap[c]) : -l->gap[c];
            if (l->cone[c].kind == CONE_GIVEN || !(over > least))
                continue;
            bool any = -l->un[c] * w->h > over, all = true; /* it came at a speed, or others were moved */
            for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++) {
                any |= w->touched[l->dof[k]];
                all &= w->touched[l->dof[k]];
            }
            if (!any || all)
                continue;
            more = true;
            touch(w, c);
        }
        if (!more)
            break;
    }
}

/* Overlaps are pushed open along the gradients: shortest move x (in the kinetic metric) with gap + J x >= 0,
 * by the same method as the impulses. */
static void open_by(many *w, int c, double dl)
{
    const contact_list *l = &w->act;
    const double *K = l->K + l->J_at[c];
    for (int k = l->dof_at[c]; k < l->dof_at[c + 1]; k++)
        w->move[l->dof[k]] += dl * *K++;
}

/* one contact; returns how far it was off */
static inline __attribute__((always_inline)) double open_sized(many *w, int c, int n)
{
    contact_list *l = &w->act;
    const int *dof = l->dof + l->dof_at[c];
    const double *J = l->J + l->J_at[c], *K = l->K + l->J_at[c];
    double A = l->A[l->A_at[c]], u = l->gap[c], x[LOCAL];
    for (int k = 0; k < n; k++) {
        x[k] = w->move[dof[k]];
        u += J[k] * x[k];
    }
    if (u >= 0 && l->l[c] == 0 && l->cone[c].kind == CONE_UNILATERAL)
        return 0;
    double to = l->l[c] - u / A;
    if (l->cone[c].kind == CONE_UNILATERAL && to < 0)
        to = 0;
    double dl = to - l->l[c];
    l->l[c] = to;
    for (int k = 0; k < n; k++)
        w->move[dof[k]] = x[k] + dl * K[k];
    return fabs(dl) * A;
}

static double open_sweep(many *w, bool down)
{
    const contact_list *l = &w->act;
    double worst = 0;
    for (int at = 0; at < l->n; at++) {
        int c = down ? l->n - 1 - at : at, n = l->dof_at[c + 1] - l->dof_at[c];
        if (l->cone[c].kind == CONE_GIVEN)
            continue;
        worst = larger(worst, n == 6   ? open_sized(w, c, 6)
                              : n == 4 ? open_sized(w, c, 4)
                              : n == 3 ? open_sized(w, c, 3)
                                       : open_sized(w, c, n));
    }
    return worst;
}

static void open_direction(many *w, double *before)
{
    contact_list *l = &w->act;
    double g2 = 0;
    for (int c = 0; c < l->n; c++) {
        double g = l->l[c] - l->l0[c];
        g2 += g * g;
    }
    bool go = *before > 0 && g2 <= *before;
    double beta = go ? g2 / *before : 0;
    for (int c = 0; c < l->n; c++) {
        double g = l->l[c] - l->l0[c], dl = beta * l->lp[c];
        l->lp[c] = go ? dl + g : 0;
        if (dl == 0)
            continue;
        l->l[c] += dl;
        open_by(w, c, dl);
    }
    *before = go || *before == 0 ? g2 : 0;
}

void positions_open(many *w, double t)
{
    contact_list *l = &w->act;
    for (int round = 0; round < 6 && w->overlap > w->small; round++) {
        double before = 0;
        memset(w->move, 0, (size_t)w->n * sizeof *w->move);
        memset(l->l, 0, (size_t)l->n * sizeof *l->l);
        memset(l->lp, 0, (size_t)l->n * sizeof *l->lp);
        for (int it = 0; it < 300; it++) {
            memcpy(l->l0, l->l, (size_t)l->n * sizeof *l->l);
            if (larger(open_sweep(w, false), open_sweep(w, true)) <= 0.1 * w->small)
                break;
            open_direction(w, &before);
        }
        for (int i = 0; i < w->n; i++) {
            w->q1[i] += w->move[i];
            w->opened += w->f[i] * w->move[i];
        }
        gaps_now(w, t);
    }
}
