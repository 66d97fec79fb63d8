/* sweep_solve: solves the current contact problem by a method that fits its size and its matrix: a single
   contact in closed form; few with W as a matrix; many as a list if masses are not coupled, and with the
   rates among the unknowns if they are. */
#include <math.h>
#include <string.h>
#include "contact/equal.h"
#include "contact/pile.h"
#include "contact/solvers.h"
#include "io/problems.h"
#include "sweep.h"
#include "base/tolerances.h"

enum { MOST_ROWS = 1500 }; /* rows up to which W is stored as a matrix if other methods fail */
enum { UZAWA_ROWS = 96 };  /* for contacts of shapes: above this number, Uzawa's method is too slow */

/* ---- the effect of reactions on the rates ---- */
static const column *column_of(const contact_state *k, bool mass)
{
    return mass ? &k->Gm : &k->G;
}

/* S NULL: only the normal row. */
void sweep_columns(sweep *w, const contact_state *k, const double *H, const double *S, const factor *f,
                   column *G)
{
    const contact *c = k->c;
    int m = S ? rows_of(k) : 1;
    G->local = c->dof && f->kind == FACTOR_DIAGONAL;
    G->n = G->local ? c->n : w->n;
    size_t need = (size_t)(1 + c->fam->d) * (size_t)G->n;
    if (need > G->room) {
        G->a = arena_array(w->a, double, need);
        G->room = need;
    }
    for (int j = 0; j < m; j++) {
        const double *row = row_of(k, H, S, j);
        double *g = G->a + (size_t)j * (size_t)G->n;
        if (G->local) {
            for (int i = 0; i < c->n; i++)
                g[i] = f->a[c->dof[i]] * row[i];
            continue;
        }
        if (!c->dof) {
            factor_solve(f, row, g);
            continue;
        }
        for (int i = 0; i < c->n; i++)
            w->room.spread[c->dof[i]] += row[i];
        factor_solve(f, w->room.spread, g);
        for (int i = 0; i < c->n; i++)
            w->room.spread[c->dof[i]] = 0;
    }
}

/* Column b of contact l with an entry for every dof; sweep_column_done clears it. */
const double *sweep_column_spread(sweep *w, const contact_state *l, const column *G, int b)
{
    const double *g = G->a + (size_t)b * (size_t)G->n;
    if (!G->local)
        return g;
    for (int i = 0; i < G->n; i++)
        w->room.spread[l->c->dof[i]] += g[i];
    return w->room.spread;
}

void sweep_column_done(sweep *w, const contact_state *l, const column *G)
{
    for (int i = 0; G->local && i < G->n; i++)
        w->room.spread[l->c->dof[i]] = 0;
}

/* Computes the columns of a contact unless they are still valid. */
void sweep_columns_put(sweep *w, contact_state *k, bool mass)
{
    contact *c = k->c;
    bool fixed = k->rows_fixed && (!mass || w->s->mass_constant);
    int64_t *stamp = mass ? &k->stamp_m : &k->stamp, now = mass ? w->matrix.stamp_m : w->matrix.stamp;
    if (fixed && *stamp == now)
        return;
    bool mean = !mass && along_mean(w, k);
    sweep_columns(w, k, mean ? k->Hm : c->H, mean ? k->Sm : c->S, mass ? &w->s->minv : w->matrix.dinv,
                  mass ? &k->Gm : &k->G);
    *stamp = fixed ? now : -1;
}

/* W = [H; S] G */
void sweep_matrix(sweep *w, bool mass)
{
    int m = w->hand.pr.m;
    for (int j = 0; j < w->hand.nact; j++) {
        const contact_state *l = w->hand.act[j];
        const column *G = column_of(l, mass);
        for (int b = 0; b < rows_of(l); b++) {
            const double *g = sweep_column_spread(w, l, G, b);
            for (int i = 0; i < w->hand.nact; i++) {
                const contact_state *k = w->hand.act[i];
                for (int a = 0; a < rows_of(k); a++)
                    w->hand.W[(size_t)(k->row + a) * (size_t)m + (size_t)(l->row + b)] = contact_rate(
                        k->c, row_of(k, k->c->H, k->c->S, a), g);
            }
            sweep_column_done(w, l, G);
        }
    }
}

void sweep_move(const contact_state *k, double l, double *x)
{
    for (int i = 0; i < k->Gm.n; i++)
        x[k->Gm.local ? k->c->dof[i] : i] += l * k->Gm.a[i];
}

/* A sum that cancels to rounding becomes 0, so that sticking is exact. */
static inline double cancelled(double x, double change, double size)
{
    double sum = x + change;
    return change != 0 && fabs(sum) <= ROUND_70 * size ? 0 : sum;
}

/* x += G r for one contact. */
static void react_alone(const contact_state *l, const column *G, const double *r, double *x)
{
    if (!G->local && rows_of(l) == 1) {
        for (int k = 0; k < G->n; k++) {
            double change = G->a[k] * r[0];
            x[k] = cancelled(x[k], change, fabs(x[k]) + fabs(change));
        }
        return;
    }
    for (int k = 0, m = rows_of(l); k < G->n; k++) {
        double *to = &x[G->local ? l->c->dof[k] : k], size = fabs(*to), change = 0;
        for (int b = 0; b < m; b++) {
            double d = G->a[(size_t)b * (size_t)G->n + (size_t)k] * r[b];
            change += d;
            size += fabs(d);
        }
        *to = cancelled(*to, change, size);
    }
}

void sweep_react(const sweep *w, double *x, bool mass)
{
    if (w->hand.nact == 1) {
        const contact_state *l = w->hand.act[0];
        react_alone(l, column_of(l, mass), w->hand.rr + l->row, x);
        return;
    }
    double *change = w->room.spread, *size = w->size.sizes;
    for (int k = 0; k < w->n; k++)
        size[k] = fabs(x[k]);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *l = w->hand.act[i];
        const column *G = column_of(l, mass);
        const double *r = w->hand.rr + l->row;
        for (int b = 0, m = rows_of(l); b < m; b++) {
            const double *g = G->a + (size_t)b * (size_t)G->n;
            for (int k = 0; k < G->n; k++) {
                int to = G->local ? l->c->dof[k] : k;
                double d = g[k] * r[b];
                change[to] += d;
                size[to] += fabs(d);
            }
        }
    }
    for (int k = 0; k < w->n; k++) {
        x[k] = cancelled(x[k], change[k], size[k]);
        change[k] = 0;
    }
}

/* The block of a single contact, computed unless it is still valid. */
double *sweep_lone_matrix(sweep *w, contact_state *k, bool mass)
{
    const contact *c = k->c;
    bool fixed = k->rows_fixed && (!mass || w->s->mass_constant);
    int64_t *stamp = mass ? &k->alone.stamp_am : &k->alone.stamp_a,
            now = mass ? w->matrix.stamp_m : w->matrix.stamp;
    double *A = mass ? k->alone.Am : k->alone.A;
    if (fixed && *stamp == now)
        return A;
    const column *G = column_of(k, mass);
    int m = rows_of(k);
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) {
            const double *row = row_of(k, c->H, c->S, a), *g = G->a + (size_t)b * (size_t)G->n;
            A[a * m + b] = G->local ? vec_dot(row, g, G->n) : contact_rate(c, row, g);
        }
    *stamp = fixed ? now : -1;
    return A;
}

/* Solves the problem of a single contact in closed form; false: it needs the general method. */
static bool solve_alone(sweep *w, bool mass, const cone *c, double *x)
{
    const contact_state *k = w->hand.act[0];
    const double *A = mass ? k->alone.Am : k->alone.A;
    w->hand.blur[mass] = 0;
    if (!w->r->solver)
        w->r->solver = "closed form";
    for (int j = 0; j < rows_of(k); j++)
        w->hand.b[j] = contact_rate(k->c, row_of(k, k->c->H, k->c->S, j), x) + w->hand.off[j];
    if (cone_normal(c) && !(A[0] > 0))
        return false;
    if (!cone_solve(c, A, cone_rows(c), w->hand.b, w->hand.rr, w->hand.local))
        return false;
    sweep_react(w, x, mass);
    return true;
}

bool sweep_solve_alone(sweep *w, bool mass, const cone *c, double *x)
{
    if (!w->hand.watch)
        return solve_alone(w, mass, c, x);
    arena_pos mark = arena_mark(w->scratch);
    step_problem *record = sweep_record(w, mass, x);
    bool ok = solve_alone(w, mass, c, x);
    if (ok && record)
        sweep_recorded(w, record, true, "closed form");
    arena_release(w->scratch, mark);
    return ok;
}

/* ---- few: W as a matrix ---- */
static void matrix_room(sweep *w)
{
    int d = 0;
    if (w->hand.pr.m <= w->hand.matrix_rows && w->hand.pr.n <= w->hand.matrix_contacts)
        return;
    for (size_t i = 0; i < w->p->ncontact; i++)
        if (w->s->family[i].d > d)
            d = w->s->family[i].d;
    w->hand.matrix_rows = w->hand.pr.m + w->hand.pr.m / 2 + 4;
    w->hand.matrix_contacts = w->hand.pr.n + w->hand.pr.n / 2 + 4;
    size_t m = (size_t)w->hand.matrix_rows;
    w->hand.W = arena_array(w->a, double, m *m);
    w->hand.unit = arena_array(w->a, double, m);
    w->hand.work = contact_work_new(w->a, w->hand.matrix_contacts, w->hand.matrix_rows, d);
}

/* The reaction that corresponds to rates at their tolerance, in the units of the matrix. */
static double rounding(const sweep *w)
{
    double most = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        double a = w->hand.W[(size_t)k->row * w->hand.pr.m + k->row];
        if (k->normal && a > 0)
            most = larger(most, w->contacts.table.tol_u[k->at] * w->hand.unit[k->row] / a);
    }
    return 0.5 * most;
}

/* Faces on faces have more points than forces that are unique, and bodies that close small gaps while they
   stick have slips (gap over size) that no friction prevents. Some of these problems stall every solver just
   above the tolerance. Then a whole step accepts the largest permitted error for islands with contacts of
   shapes; the residual of the run shows it. */
static bool is_loose(const contact_state *k)
{
    return k->c->fam->f->pair.touch;
}

static double enough(const sweep *w)
{
    if (!w->s->shapes || (w->policy.trial && !w->policy.whole))
        return 0;
    return GATE_LOOSE;
}

/* With W as a matrix, in equilibrated units. */
static bool matrix_taken(const sweep *w)
{
    if (!(w->hand.pr.residual <= enough(w)))
        return false;
    arena_pos mark = arena_mark(w->scratch);
    bool *loose = arena_array(w->scratch, bool, w->hand.nact);
    for (int i = 0; i < w->hand.nact; i++)
        loose[i] = is_loose(w->hand.act[i]);
    bool taken = pile_taken(&w->hand.pr, loose, enough(w), w->tol, w->scratch);
    arena_release(w->scratch, mark);
    return taken;
}

static bool solve_matrix(sweep *w, bool mass, double *x)
{
    contact_problem *p = &w->hand.pr;
    equal_units units;
    matrix_room(w);
    p->W = w->hand.W;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        for (int j = 0; j < rows_of(k); j++)
            w->hand.b[k->row + j] = contact_rate(k->c, row_of(k, k->c->H, k->c->S, j), x) +
                                    w->hand.off[k->row + j];
        sweep_columns_put(w, w->hand.act[i], mass);
    }
    sweep_matrix(w, mass);
    equal_make(&units, p, w->hand.unit);
    if (w->hand.step != 1)
        p->least = rounding(w) / w->tol;
    bool ok = w->stiffness == 0 ? contact_solve(p, w->hand.work, w->tol)
                                : contact_uzawa(p, w->hand.work, w->tol, w->stiffness);
    ok = ok || matrix_taken(w);
    equal_undo(&units);
    if (!ok)
        return false;
    sweep_react(w, x, mass);
    return true;
}

/* ---- many: a list of contacts ---- */
/* Does its reaction act along the mean of its rows over the step, instead of along those at the end? */
static bool acts_along_mean(const sweep *w, const contact_state *k, bool mass)
{
    return !mass && along_mean(w, k);
}

/* Rows of the current contacts. push: the rows along which reactions act, times `scale` for each dof unless
   NULL. */
static void list_put(sweep *w, impulses *p, bool mass, const double *scale)
{
    contact_list *l = &p->act;
    l->n = l->rows = 0;
    w->hand.known.listed = -1;
    list_room(p, w->hand.nact, w->hand.rows_most, w->hand.dofs_most);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        const contact *c = k->c;
        bool mean = acts_along_mean(w, k, mass);
        int at = l->dof_at[i], n = c->n;
        double *J = l->J + l->J_at[i], *K = l->K + l->J_at[i];
        l->cone[i] = w->hand.cone[i];
        l->cone[i].row = k->row;
        l->loose[i] = is_loose(k);
        for (int j = 0; j < n; j++)
            l->dof[at + j] = c->dof ? c->dof[j] : j;
        l->dof_at[i + 1] = at + n;
        for (int a = 0; a < rows_of(k); a++) {
            const double *row = row_of(k, c->H, c->S, a);
            const double *push = mean ? row_of(k, k->Hm, k->Sm, a) : row;
            for (int j = 0; j < n; j++) {
                J[a * n + j] = row[j];
                K[a * n + j] = scale ? push[j] * scale[l->dof[at + j]] : push[j];
            }
        }
        list_take(p);
    }
}

/* Finds the bodies on which a contact acts, and the place of each of their dofs in its rows; returns the
   number of bodies, and that of dofs in *n. */
static int bodies_of(const sweep *w, const contact *c, int *body, int *n)
{
    const matrix_groups *g = w->crowd.bodies;
    int count = 0, *place = w->crowd.place;
    *n = 0;
    for (int j = 0; j < c->n; j++) {
        int of = g->of[c->dof ? c->dof[j] : j];
        if (place[g->dof[g->first[of]]] >= 0)
            continue;
        body[count++] = of;
        for (int k = g->first[of]; k < g->first[of + 1]; k++)
            place[g->dof[k]] = (*n)++;
    }
    return count;
}

/* L^-1 row, body by body, added to out */
static void row_by_bodies(const sweep *w, const contact *c, const double *row, const int *body, int count,
                          double *out)
{
    const matrix_groups *g = w->crowd.bodies;
    int at = 0;
    for (int j = 0; j < c->n; j++)
        out[w->crowd.place[c->dof ? c->dof[j] : j]] += row[j];
    for (int k = 0; k < count; k++) {
        groups_row(g, body[k], out + at);
        at += g->first[body[k] + 1] - g->first[body[k]];
    }
}

/* The contacts at hand by rates in which masses are 1, see groups_in. */
static void list_put_bodies(sweep *w, impulses *p, bool mass)
{
    const matrix_groups *g = w->crowd.bodies;
    contact_list *l = &p->act;
    arena_pos mark = arena_mark(w->scratch);
    int *body = arena_array(w->scratch, int, g->count);
    l->n = l->rows = 0;
    w->hand.known.listed = -1;
    list_room(p, w->hand.nact, w->hand.rows_most, w->crowd.body_dofs);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact_state *k = w->hand.act[i];
        int n, count = bodies_of(w, k->c, body, &n), at = l->dof_at[i];
        double *J = l->J + l->J_at[i], *K = l->K + l->J_at[i];
        size_t size = (size_t)(rows_of(k) * n) * sizeof *J;
        bool mean = acts_along_mean(w, k, mass);
        l->cone[i] = w->hand.cone[i];
        l->cone[i].row = k->row;
        l->loose[i] = is_loose(k);
        memset(J, 0, size);
        for (int a = 0; a < rows_of(k); a++)
            row_by_bodies(w, k->c, row_of(k, k->c->H, k->c->S, a), body, count, J + a * n);
        memset(K, 0, size);
        for (int a = 0; mean && a < rows_of(k); a++)
            row_by_bodies(w, k->c, row_of(k, k->Hm, k->Sm, a), body, count, K + a * n);
        if (!mean)
            memcpy(K, J, size);
        for (int b = 0, to = at; b < count; b++)
            for (int d = g->first[body[b]]; d < g->first[body[b] + 1]; d++) {
                l->dof[to++] = g->dof[d];
                w->crowd.place[g->dof[d]] = -1;
            }
        l->dof_at[i + 1] = at + n;
        list_take(p);
    }
    arena_release(w->scratch, mark);
}

/* Takes all contacts; false: the rows of one may change. */
static bool take_fixed(sweep *w)
{
    w->hand.nact = 0;
    w->hand.known.stamp++;
    for (size_t i = 0; i < w->contacts.nstate; i++) {
        if (!w->contacts.state[i]->rows_fixed || w->contacts.state[i]->c->fam->d > MAX_TANGENT)
            return false;
        w->hand.place[w->hand.nact] = (int)i;
        w->hand.act[w->hand.nact++] = w->contacts.state[i];
    }
    return true;
}

void sweep_chain(sweep *w)
{
    enum { MOST = 2000000, FEW = 16 };
    impulses_init(&w->crowd.chain, w->a, w->scratch, w->n);
    if (w->contacts.near.nof || w->contacts.nstate > MOST || w->contacts.nstate < FEW ||
        w->s->minv.kind != FACTOR_DIAGONAL || w->s->force_of_state || !w->s->mass_constant ||
        w->stiffness != 0)
        return;
    if (take_fixed(w)) {
        w->hand.step = w->hand.end = 1;
        sweep_cones(w);
        list_put(w, &w->crowd.chain, true, w->s->minv.a);
        list_equal(&w->crowd.chain.act, false);
        list_fix(&w->crowd.chain);
    }
    w->hand.nact = 0; /* nothing is known about these contacts yet; sweep_take computes it */
}

/* Does a list contain the current cones? *known: number of the cones that it has; updated to that of the
   current ones. */
static bool cones_listed(const sweep *w, bool mass, int64_t *known)
{
    bool same = !mass && w->hand.known.still && *known == w->hand.known.made;
    *known = mass ? -1 : w->hand.known.made; /* at an instant, cones change after they are computed */
    return same;
}

static void cones_in(contact_list *l)
{
    for (int i = 0; l->equal && i < l->n; i++)
        list_cone_in(l, &l->cone[i]);
}

/* All current contacts in the list that is computed only once, for models whose step matrix is that of the
   masses. scale NULL: by bodies. */
static impulses *list_of(sweep *w, bool mass, const double *scale)
{
    if (!scale) {
        list_put_bodies(w, &w->crowd.list, mass);
        list_equal(&w->crowd.list.act, false);
        cones_in(&w->crowd.list.act);
        return &w->crowd.list;
    }
    if (w->crowd.chain.fixed && (size_t)w->hand.nact == w->contacts.nstate) {
        if (!cones_listed(w, mass, &w->crowd.chain_cones)) {
            memcpy(w->crowd.chain.act.cone, w->hand.cone, (size_t)w->hand.nact * sizeof *w->hand.cone);
            cones_in(&w->crowd.chain.act);
        }
        return &w->crowd.chain;
    }
    list_put(w, &w->crowd.list, mass, scale);
    list_equal(&w->crowd.list.act, false);
    cones_in(&w->crowd.list.act);
    return &w->crowd.list;
}

/* The cone of contact i at a speed, if its bound depends on it. */
static void list_law(sweep *w, contact_list *l, int i, double speed)
{
    cone *o = &l->cone[i];
    o->speed = w->hand.cone[i].speed;
    sweep_law(w, i, speed, &o->mu, &o->radius);
    list_cone_in(l, o);
}

/* Bounds of friction that depend on the speed, at the rates x; returns the largest relative change. */
static double list_laws(sweep *w, impulses *p, const double *x)
{
    double most = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        cone *o = &p->act.cone[i];
        if (!o->of_speed || o->dir)
            continue;
        const contact_state *k = w->hand.act[i];
        double s = 0, mu = o->mu, radius = o->radius, rn = k->normal ? fabs(p->act.r[o->row]) : 0;
        for (int a = k->normal; a < rows_of(k); a++) {
            double u = contact_rate(k->c, row_of(k, k->c->H, k->c->S, a), x) + w->hand.off[k->row + a];
            s += u * u;
        }
        list_law(w, &p->act, i, sqrt(s));
        double was = mu * rn + radius, is = o->mu * rn + o->radius;
        most = larger(most, fabs(is - was) / larger(larger(fabs(is), fabs(was)), SIZE_LEAST));
    }
    return most;
}

/* Possible error of the slip of a contact if reactions have the error of their tolerance, in units of the
   model. Tight tolerances give rounding errors only. */
static double list_blur(const sweep *w, const contact_list *l)
{
    double most = 0, rate = 0;
    if (w->tol <= SOLVED_TIGHT || !w->hand.known.rough)
        return 0;
    for (int i = 0; i < l->rows; i++)
        most = larger(most, fabs(l->r[i]));
    for (int c = 0; c < l->n; c++) {
        int rows = list_rows(l, c), last = l->cone[c].row + rows - 1;
        if (rows > cone_normal(&l->cone[c]))
            rate = larger(rate, l->A[l->A_at[c + 1] - 1] / list_unit(l, last));
    }
    return w->tol * most * rate;
}

/* M^-1/2 of the list; NULL: reactions do not act along the rows, so W is not symmetric. */
static const double *list_root(sweep *w, bool mass, const factor *f)
{
    bool bodies = f->kind != FACTOR_DIAGONAL, constant = !bodies && w->s->mass_constant && f == &w->s->minv;
    if (!mass && (w->policy.whole ? w->hand.known.rates : !w->hand.known.fixed))
        return NULL;
    for (int i = 0; i < w->n && !(constant && w->crowd.root_known); i++)
        w->crowd.root[i] = bodies ? 1 : sqrt(f->a[i]);
    w->crowd.root_known = constant;
    return w->crowd.root;
}

static bool solve_list(sweep *w, bool mass, double *x)
{
    enum { ROUNDS = 60 };
    const factor *f = mass ? &w->s->minv : w->matrix.dinv;
    if (!mass && sweep_balls_solve(w, x))
        return true;
    impulses *p = list_of(w, mass, f->kind == FACTOR_DIAGONAL ? f->a : NULL);
    contact_list *l = &p->act;
    bool of_speed = false;
    double *b = l->b, *r = l->r;
    for (int i = 0; l->equal && i < l->rows; i++) {
        b[i] = w->hand.off[i] * l->unit[i];
        r[i] = w->hand.rr[i] / l->unit[i];
    }
    if (!l->equal) { /* what has no units of its own is used where it is */
        l->b = w->hand.off;
        l->r = w->hand.rr;
    }
    for (int i = 0; i < w->hand.nact && !w->hand.known.still; i++)
        if (w->hand.cone[i].of_speed && !w->hand.cone[i].dir) {
            of_speed = true;
            list_law(w, l, i, w->hand.act[i]->speed);
        }
    p->root = list_root(w, mass, f);
    p->tol = w->tol;
    p->enough = enough(w);
    p->effort = w->policy.effort;
    p->v1 = x;
    if (of_speed)
        vec_copy(w->crowd.free, x, w->n);
    bool ok = impulses_solve(p) || p->taken;
    for (int round = 0; ok && of_speed && list_laws(w, p, x) > w->tol && round < ROUNDS; round++) {
        vec_copy(x, w->crowd.free, w->n);
        ok = impulses_solve(p) || p->taken;
    }
    w->hand.blur[mass] = list_blur(w, l);
    for (int i = 0; l->equal && i < l->rows; i++)
        w->hand.rr[i] = l->r[i] * l->unit[i];
    l->b = b;
    l->r = r;
    w->hand.pr.iterations = (int)p->iterations;
    w->r->count.swept += p->swept;
    w->hand.pr.residual = p->residual;
    w->hand.pr.worst = p->worst;
    w->hand.pr.solver = p->solver;
    return ok;
}

/* ---- many coupled contacts: rates and reactions together ---- */
static bool coupled_same(sweep *w, bool mass)
{
    if (w->crowd.coupled_n[mass] != w->hand.nact)
        return false;
    return memcmp(w->crowd.coupled_act[mass], w->hand.act, (size_t)w->hand.nact * sizeof *w->hand.act) == 0;
}

/* A law in the units of the rows of the list. */
static void coupled_law(void *of, int i, double speed, double *mu, double *radius)
{
    sweep *w = of;
    const contact_list *l = &w->crowd.list.act;
    cone c = { .kind = l->cone[i].kind, .d = l->cone[i].d, .row = l->cone[i].row };
    sweep_law(w, i, speed / list_unit(l, c.row + cone_normal(&c)), &c.mu, &c.radius);
    list_cone_in(l, &c);
    *mu = c.mu;
    *radius = c.radius;
}

/* Diagonal entries of W without coupling, from which units of the rows are chosen. */
static void coupled_sizes(contact_list *l, const matrix_shape *shape, const double *D)
{
    for (int c = 0; c < l->n; c++) {
        int n = l->dof_at[c + 1] - l->dof_at[c], m = list_rows(l, c);
        const int *dof = l->dof + l->dof_at[c];
        for (int a = 0; a < m; a++) {
            const double *J = l->J + l->J_at[c] + (size_t)(a * n), *K = l->K + l->J_at[c] + (size_t)(a * n);
            double own = 0;
            for (int k = 0; k < n; k++)
                own += J[k] * K[k] / fabs(D[matrix_at(shape, dof[k], dof[k])]);
            l->A[l->A_at[c] + (size_t)(a * m + a)] = own;
        }
    }
}

static bool solve_coupled(sweep *w, bool mass, double *x)
{
    contact_list *l = &w->crowd.list.act;
    system_t *s = w->s;
    int64_t now = mass ? w->matrix.stamp_m : w->matrix.stamp;
    bool of_mass = mass || w->matrix.dinv == &s->minv, same = coupled_same(w, mass),
         fixed = w->crowd.coupled_stamp[mass] == now && (!mass || s->mass_constant);
    fixed = fixed && w->hand.known.fixed;
    const matrix_shape *shape = of_mass ? &s->mass_shape : &s->step_shape;
    const double *D = of_mass ? w->M : w->matrix.D;
    if (!w->crowd.coupled[mass])
        w->crowd.coupled[mass] = mixed_new(w->a);
    if (!(same && w->hand.known.fixed && w->hand.known.listed == mass)) {
        list_put(w, &w->crowd.list, mass, NULL);
        coupled_sizes(l, shape, D);
        list_equal(l, true);
        w->crowd.list_cones = -1;
    }
    if (!cones_listed(w, mass, &w->crowd.list_cones)) {
        memcpy(l->cone, w->hand.cone, (size_t)w->hand.nact * sizeof *l->cone);
        cones_in(l);
    }
    w->hand.known.listed = mass;
    for (int i = 0; i < w->hand.nact && !w->hand.known.still; i++)
        if (w->hand.cone[i].of_speed && !w->hand.cone[i].dir)
            list_law(w, l, i, w->hand.act[i]->speed);
    for (int i = 0; i < l->n; i++)
        for (int a = 0, row = l->cone[i].row; a < list_rows(l, i); a++)
            w->hand.b[row + a] = list_rate(l, i, a, x) + w->hand.off[row + a] * list_unit(l, row + a);
    for (int i = 0; i < l->rows; i++)
        w->hand.rr[i] /= list_unit(l, i);
    coupled_rows rows = {
        .n = w->n, .list = l, .shape = shape, .D = D, .changed = !same || !fixed, .dv = w->crowd.free
    };
    contact_problem p = { .n = l->n,
                          .m = l->rows,
                          .cone = l->cone,
                          .coupled = &rows,
                          .b = w->hand.b,
                          .r = w->hand.rr,
                          .u = w->hand.u,
                          .law = coupled_law,
                          .ud = w };
    bool ok = mixed_solve(w->crowd.coupled[mass], &p, same, w->tol);
    for (int i = 0; i < l->rows; i++)
        w->hand.rr[i] *= list_unit(l, i);
    if (!same) {
        if (w->hand.nact > w->crowd.coupled_room[mass]) {
            w->crowd.coupled_room[mass] = 2 * w->hand.nact;
            w->crowd.coupled_act[mass] = arena_array(w->a, contact_state *, w->crowd.coupled_room[mass]);
        }
        memcpy(w->crowd.coupled_act[mass], w->hand.act, (size_t)w->hand.nact * sizeof *w->hand.act);
        w->crowd.coupled_n[mass] = w->hand.nact;
    }
    w->crowd.coupled_stamp[mass] = now;
    w->hand.pr.iterations = p.iterations;
    w->hand.pr.residual = p.residual;
    w->hand.pr.worst = p.worst;
    w->hand.pr.solver = contact_solvers[SOLVER_COUPLED].name;
    if (ok)
        for (int i = 0; i < w->n; i++)
            x[i] = cancelled(x[i], w->crowd.free[i], fabs(x[i]) + fabs(w->crowd.free[i]));
    return ok;
}

/* ---- all methods ---- */
static bool wide(const sweep *w)
{
    if (w->hand.rows_most <= 1 + MAX_TANGENT)
        return false;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.cone[i].d > MAX_TANGENT)
            return true;
    return false;
}

/* Do reactions act on separate bodies, in rates for which masses are 1? */
static bool by_bodies(const sweep *w, const factor *f)
{
    if (!w->crowd.by_bodies || f != &w->s->minv)
        return false;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->hand.cone[i].of_speed && !w->hand.cone[i].dir)
            return false;
    return true;
}

static bool solve_bodies(sweep *w, bool mass, double *x)
{
    vec_copy(w->crowd.free, x, w->n);
    groups_in(w->crowd.bodies, x);
    bool ok = solve_list(w, mass, x);
    if (ok)
        groups_out(w->crowd.bodies, x);
    else
        vec_copy(x, w->crowd.free, w->n);
    return ok;
}

static bool solve_by(sweep *w, bool mass, double *x)
{
    const factor *f = mass ? &w->s->minv : w->matrix.dinv;
    w->hand.blur[mass] = 0;
    bool crowd = w->s->shapes && w->hand.pr.m > UZAWA_ROWS && by_bodies(w, f);
    if (w->hand.pr.m <= FEW_ROWS || (w->stiffness != 0 && !crowd) || wide(w))
        return solve_matrix(w, mass, x);
    if (f->kind == FACTOR_DIAGONAL)
        return solve_list(w, mass, x);
    vec_copy(w->hand.kept_r, w->hand.rr, w->hand.pr.m);
    if (by_bodies(w, f))
        return solve_bodies(w, mass, x);
    if (solve_coupled(w, mass, x))
        return true;
    if (w->hand.pr.m > MOST_ROWS)
        return false;
    vec_copy(w->hand.rr, w->hand.kept_r, w->hand.pr.m);
    return solve_matrix(w, mass, x);
}

/* Rates that are only rounding are set to 0: in wedged contacts they would require huge impulses. */
static void no_rounding(sweep *w, const double *x)
{
    const contact_table *t = &w->contacts.table;
    for (int i = 0, n = w->hand.nact; i < n; i++) {
        int at = w->hand.place[i];
        const cone *o = &w->hand.cone[i];
        if (o->kind != CONE_UNILATERAL)
            continue;
        double rate = row_rate(&t->row[at], x), *off = &w->hand.off[o->row];
        if (fabs(rate + *off) <= 0.5 * t->tol_u[at])
            *off = -rate;
    }
}

static bool solve_watched(sweep *w, bool mass, double *x)
{
    arena_pos mark = arena_mark(w->scratch);
    step_problem *record = sweep_record(w, mass, x);
    bool ok = solve_by(w, mass, x);
    if (record)
        sweep_recorded(w, record, ok, w->hand.pr.solver);
    arena_release(w->scratch, mark);
    return ok;
}

static bool solve_counted(sweep *w, bool mass, double *x)
{
    results *r = w->r;
    bool ok = w->hand.watch ? solve_watched(w, mass, x) : solve_by(w, mass, x);
    r->count.solver_iterations += w->hand.pr.iterations;
    r->count.branch_choices += w->hand.pr.choices;
    if (w->hand.pr.n > 1 || !r->solver)
        r->solver = w->hand.pr.solver;
    return ok;
}

bool sweep_solve_unbraked(sweep *w, bool mass, double *x)
{
    if (w->policy.whole)
        no_rounding(w, x);
    return solve_counted(w, mass, x);
}

static bool outcome(sweep *w, bool ok, double t)
{
    if (!ok)
        return sweep_fail_contact(w, w->hand.pr.worst, t);
    if (w->hand.pr.residual > w->r->residual)
        w->r->residual = w->hand.pr.residual;
    return true;
}

bool sweep_solve_put(sweep *w, bool mass, double *x, double t)
{
    return outcome(w, solve_counted(w, mass, x), t);
}

bool sweep_solve(sweep *w, bool mass, double *x, double t)
{
    return outcome(w, w->hand.brake.on ? sweep_brake_solve(w, mass, x) : sweep_solve_unbraked(w, mass, x), t);
}

/* ---- corrections of positions ---- */
static const double *back_row(const sweep *w, const contact_state *k)
{
    return w->putting.back_mean && !k->rows_fixed ? k->Hm : k->c->H;
}

static void shortest_few(sweep *w, contact_state *const *back, int m, const double *change, double *x)
{
    if (m > w->putting.back_most) {
        w->putting.back_most = 2 * m;
        size_t n = (size_t)w->putting.back_most;
        w->putting.back_room = arena_array(w->a, double, 2 * n * n + 4 * n);
    }
    double *A = w->putting.back_room, *l = A + (size_t)m * (size_t)m, *more = l + m;
    for (int j = 0; j < m; j++) {
        contact_state *k = back[j];
        sweep_columns(w, k, back_row(w, k), NULL, &w->s->minv, &k->Gm);
        k->stamp_m = -1;
        const double *g = sweep_column_spread(w, k, &k->Gm, 0);
        for (int i = 0; i < m; i++)
            A[(size_t)i * (size_t)m + (size_t)j] = contact_rate(back[i]->c, back_row(w, back[i]), g);
        sweep_column_done(w, k, &k->Gm);
    }
    sym_shortest_rows(A, change, l, m, more, w->hand.perm);
    for (int i = 0; i < m; i++)
        sweep_move(back[i], l[i], x);
}

/* Dofs that the rows of a list act on, in the order of the model; `place`: index of each among them. If
   masses couple them to others, all dofs are used. */
typedef struct touched {
    int n;
    int *dof, *place;
} touched;

static touched touched_by(const sweep *w, const contact_list *l, arena *a)
{
    touched t = { 0, arena_array(a, int, w->n), arena_array(a, int, w->n) };
    bool all = w->s->mass_shape.kind != MATRIX_DIAGONAL;
    for (int k = 0; k < l->dof_at[l->n]; k++)
        t.place[l->dof[k]] = 1;
    for (int i = 0; i < w->n; i++)
        if (all || t.place[i]) {
            t.place[i] = t.n;
            t.dof[t.n++] = i;
        }
    return t;
}

/* M dx = H^T l, H dx = change: a contact problem with equalities only. */
static void shortest_many(sweep *w, contact_state *const *back, int m, const double *change, double *x)
{
    contact_list *l = &w->crowd.list.act;
    arena *a = w->crowd.list.scratch;
    arena_pos mark = arena_mark(a);
    const double *M = w->s->mass_constant ? w->M : w->M1;
    w->hand.known.listed = -1;
    double *b = arena_array(a, double, m), *r = arena_array(a, double, m), *u = arena_array(a, double, m);
    l->n = l->rows = 0;
    list_room(&w->crowd.list, m, w->hand.rows_most, w->hand.dofs_most);
    for (int i = 0; i < m; i++) {
        const contact *c = back[i]->c;
        int at = l->dof_at[i];
        /* their sizes must not affect pivots */
        double unit = power_unit(contact_common(w->s, c, M, c->H, c->H));
        l->cone[i] = (cone){ .kind = CONE_BILATERAL, .row = i };
        for (int j = 0; j < c->n; j++) {
            l->dof[at + j] = c->dof ? c->dof[j] : j;
            l->J[l->J_at[i] + (size_t)j] = l->K[l->J_at[i] + (size_t)j] = unit * c->H[j];
        }
        l->dof_at[i + 1] = at + c->n;
        b[i] = -unit * change[i];
        list_take(&w->crowd.list);
    }
    if (!w->putting.back_coupled)
        w->putting.back_coupled = mixed_new(w->a);
    touched t = touched_by(w, l, a);
    double *D = arena_array(a, double, t.n), *dx = arena_array(a, double, t.n);
    matrix_shape some = matrix_diagonal(t.n);
    for (int i = 0; t.n < w->n && i < t.n; i++)
        D[i] = M[t.dof[i]];
    for (int k = 0; k < l->dof_at[m]; k++)
        l->dof[k] = t.place[l->dof[k]];
    coupled_rows rows = { .n = t.n,
                          .list = l,
                          .shape = t.n < w->n ? &some : &w->s->mass_shape,
                          .D = t.n < w->n ? D : M,
                          .changed = true,
                          .dv = dx };
    contact_problem p = { .n = m, .m = m, .cone = l->cone, .coupled = &rows, .b = b, .r = r, .u = u };
    if (mixed_solve(w->putting.back_coupled, &p, false, PUT_BACK_END))
        for (int i = 0; i < t.n; i++)
            x[t.dof[i]] += dx[i];
    arena_release(a, mark);
}

/* ---- contacts that share no body are moved back group by group ---- */
static int group_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

/* the body of a dof: those that masses couple, by the first of them */
static int body_of(const sweep *w, int dof)
{
    const matrix_groups *g = w->crowd.bodies;
    return g ? g->dof[g->first[g->of[dof]]] : dof;
}

/* Joins contacts that share a dof into groups. */
static void groups_join(sweep *w, int m, int *up, arena *a)
{
    impulses *p = &w->crowd.list;
    int mark = ++p->mark, *owner = arena_alloc(a, (size_t)w->n * sizeof *owner);
    for (int i = 0; i < m; i++) {
        const contact *c = w->putting.back[i]->c;
        const double *row = back_row(w, w->putting.back[i]);
        up[i] = i;
        for (int k = 0; k < c->n; k++) {
            if (row[k] == 0)
                continue;
            int body = body_of(w, c->dof ? c->dof[k] : k);
            if (p->marked[body] == mark)
                up[group_of(up, i)] = group_of(up, owner[body]);
            p->marked[body] = mark;
            owner[body] = i;
        }
    }
}

int sweep_largest_group(sweep *w, int m)
{
    arena_pos mark = arena_mark(w->scratch);
    int *up = arena_array(w->scratch, int, m), *size = arena_array(w->scratch, int, m), most = 0;
    groups_join(w, m, up, w->scratch);
    for (int i = 0, pair = -1; i < m; i++) {
        if (!w->putting.back[i]->near)
            continue;
        if (pair >= 0)
            up[group_of(up, i)] = group_of(up, pair);
        pair = i;
    }
    for (int i = 0; i < m; i++) {
        int of = ++size[group_of(up, i)];
        most = of > most ? of : most;
    }
    arena_release(w->scratch, mark);
    return most;
}

/* Orders the contacts and their changes of gaps by groups; from[g]: where a group begins. Returns the number
   of groups. */
static int groups_order(sweep *w, int m, double *change, int *from, arena *a)
{
    int *up = arena_array(a, int, m), *number = arena_array(a, int, m), groups = 0;
    double *asked = arena_array(a, double, m);
    contact_state **back = arena_array(a, contact_state *, m);
    memcpy(back, w->putting.back, (size_t)m * sizeof *back);
    memcpy(asked, change, (size_t)m * sizeof *asked);
    groups_join(w, m, up, a);
    for (int i = 0; i < m; i++) {
        int *own = &number[group_of(up, i)];
        *own = *own ? *own : ++groups;
        from[*own]++;
    }
    for (int g = 1; g <= groups; g++)
        from[g] += from[g - 1];
    for (int i = m; i-- > 0;) {
        int to = --from[number[group_of(up, i)]];
        w->putting.back[to] = back[i];
        change[to] = asked[i];
    }
    for (int g = 0; g < groups; g++)
        from[g] = from[g + 1];
    from[groups] = m;
    return groups;
}

static void shortest(sweep *w, contact_state *const *back, int m, const double *change, double *x)
{
    if (m <= FEW_ROWS)
        shortest_few(w, back, m, change, x);
    else
        shortest_many(w, back, m, change, x);
}

void sweep_shortest(sweep *w, int m, double *change, double *x)
{
    if (m <= FEW_ROWS || (w->s->mass_shape.kind != MATRIX_DIAGONAL && !w->crowd.bodies)) {
        shortest(w, w->putting.back, m, change, x);
        return;
    }
    arena_pos mark = arena_mark(w->scratch);
    int *from = arena_array(w->scratch, int, m + 2), groups = groups_order(w, m, change, from, w->scratch);
    for (int g = 0; g < groups; g++)
        shortest(w, w->putting.back + from[g], from[g + 1] - from[g], change + from[g], x);
    arena_release(w->scratch, mark);
}
