/* instant: impacts, and accelerations by Gauss's principle. */
#include <string.h>
#include "instant.h"
#include "base/tolerances.h"

void note_impact(arena *a, contact_result *out, impact i)
{
    i.pre = fmin(i.pre, 0);
    i.post = fmax(i.post, 0);
    *vec_push(a, &out->impacts) = i;
}

const char *row_text(const contact *c, arena *a, const char *time)
{
    double sum = 0;
    for (int k = 0; k < c->n; k++)
        sum += fabs(c->H[k]);
    if (!contact_has_normal(c) || (isfinite(sum + c->ht) && sum > 0))
        return NULL;
    if (!isfinite(sum + c->ht))
        return arena_printf(
            a, "the gap of constraint '%s' has no derivative at t = %s, as norm(x) has none at x = 0",
            contact_name(c, a), time);
    return arena_printf(
        a, "constraint '%s' has a zero gradient at t = %s: no motion changes its gap to first order",
        contact_name(c, a), time);
}

/* ---- laws ---- */
cone contact_cone(const contact *c, int row, double speed)
{
    const contact_family *f = c->fam->f;
    return (cone){ .kind = f->relation == REL_GAP         ? CONE_UNILATERAL
                           : f->relation == REL_BILATERAL ? CONE_BILATERAL
                                                          : CONE_GIVEN,
                   .d = c->d,
                   .row = row,
                   .of_speed = f->mu_of_speed && c->d,
                   .speed = speed };
}

void friction_bound(const contact *c, double k, double step, double base, double *mu, double *radius)
{
    const contact_family *f = c->fam->f;
    bool tresca = f->friction == FRICTION_TRESCA, given = f->relation == REL_CLOSED;
    *mu = tresca || given ? 0 : k;
    *radius = tresca ? k * step : given ? k * fabs(c->normal) * (f->fed && step == 0 ? 1 : step) : k * base;
}

/* ---- shocks ---- */
static bool comes(const meeting *k)
{
    return contact_opens(k->c) && k->before < -k->tol_u;
}

/* The target rate after a shock. Newton's law restores a fraction e of the approach speed; Poisson's law
   restores a fraction of the impulse instead. */
static double restitution(const meeting *k)
{
    return k->c->fam->f->impact == IMPACT_NEWTON && comes(k) ? k->e * k->before : 0;
}

/* ---- coefficients of friction at rest ---- */
/* Decides which contacts are at rest, before the problem is solved. True: some of them have a coefficient of
   static friction. */
static bool rest_known(instant_t *x, const double *v)
{
    bool any = false;
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        k->rests = false;
        if (!k->c->fam->mu_static.k || !k->c->d)
            continue;
        k->rests = !contact_slips(contact_slip(k->c, v, x->room), k->tol_slip, k->held);
        any |= k->rests;
    }
    return any;
}

bool friction_lets_go(const contact *c, const cone *o, const double *r)
{
    int normal = cone_normal(o);
    double bound = (normal ? o->mu * fabs(r[0]) : 0) + o->radius,
           f = sqrt(vec_dot(r + normal, r + normal, c->d));
    return bound > 0 && !friction_holds(f, bound);
}

/* Contacts at rest whose friction has reached its bound begin to slip, with the kinetic coefficient. */
static bool let_go(instant_t *x)
{
    bool any = false;
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        if (!k->rests || !friction_lets_go(k->c, &x->cone[i], x->r + k->row))
            continue;
        k->rests = false;
        any = true;
    }
    return any;
}

static bool gives_way(instant_t *x, bool shock)
{
    bool fed = x->way->feed && x->way->feed(x, shock);
    return let_go(x) | fed;
}

/* Offsets of the shock problem: the parts of the target rates that depend on the rates before. */
static void shock_offsets(instant_t *x)
{
    for (int i = 0; i < x->n; i++) {
        const meeting *k = x->at[i];
        const contact *c = k->c;
        double *off = x->off + k->row, et = comes(k) && k->rebounds ? c->et : 0;
        if (contact_has_normal(c))
            *off++ = c->ht + restitution(k);
        for (int j = 0; j < c->d; j++) {
            const double *S = c->S + (size_t)j * (size_t)c->n;
            *off++ = c->s0[j] + (et != 0 ? et * (contact_rate(c, S, x->before) + c->s0[j]) : 0);
        }
    }
}

enum { SOLVED_AGAIN = 100 }; /* limit of the repetitions for laws that depend on the solution */

static bool shock_phase(instant_t *x, double *v)
{
    bool some = rest_known(x, v) | (x->way->feed != NULL);
    if (some)
        x->way->pose(x, true);
    shock_offsets(x);
    vec_copy(x->room, v, some ? x->s->n : 0);
    for (int again = 0;; again++) {
        if (!x->way->solve(x, v))
            return false;
        if (!some || again == SOLVED_AGAIN || !gives_way(x, true))
            break;
        vec_copy(v, x->room, x->s->n);
        x->way->pose(x, true);
    }
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < contact_row_count(x->at[i]->c); j++)
            x->at[i]->impulse[j] += x->r[x->at[i]->row + j];
    return true;
}

/* Poisson's law: the fraction e of the impulse of compression is restored; the bound of friction grows with
   it. */
static bool shock_poisson(instant_t *x, double *v)
{
    bool any = false;
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        if (k->c->fam->f->impact == IMPACT_POISSON && comes(k))
            k->given = k->e * k->impulse[0];
        any |= k->given > 0;
    }
    if (!any)
        return true;
    x->way->pose(x, true);
    for (int i = 0; i < x->n; i++)
        if (x->at[i]->given > 0)
            x->r[x->at[i]->row] = x->at[i]->given;
    x->way->react(x, v);
    x->way->pose(x, true);
    bool ok = shock_phase(x, v);
    for (int i = 0; i < x->n; i++) {
        if (x->at[i]->given > 0)
            x->at[i]->impulse[0] += x->at[i]->given;
        x->at[i]->given = 0;
    }
    return ok;
}

static double speed_restitution(const instant_t *x, const meeting *k)
{
    return comes(k) ? contact_restitution(x->s, k->c, -k->before) : 0;
}

static void shock_begin(instant_t *x, const double *v)
{
    vec_copy(x->before, v, x->s->n);
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        k->given = 0;
        k->held = false;
        k->before = contact_has_normal(k->c) ? contact_gap_rate(k->c, v) : 0;
        k->e = !k->rebounds ? 0 : k->c->fam->f->e_of_speed ? speed_restitution(x, k) : k->c->e;
        for (int j = 0; j < contact_row_count(k->c); j++)
            k->impulse[j] = 0;
    }
    x->way->pose(x, true);
}

bool instant_shock(instant_t *x, double *v)
{
    shock_begin(x, v);
    return shock_phase(x, v) && shock_poisson(x, v);
}

double impulse_size(const system_t *s, const double *M, const meeting *k)
{
    const double *row = contact_row(k->c, 0);
    if (k->impulse[0] == 0)
        return 0;
    return fabs(k->impulse[0]) * sqrt(contact_common(s, k->c, M, row, row));
}

void instant_account(instant_t *x, const double *v, books *b, arena *a)
{
    double *mean = x->room, most = 0, lost = 0, size = 0;
    for (int i = 0; i < x->s->n; i++)
        mean[i] = 0.5 * (x->before[i] + v[i]); /* impulses do work with the mean of both rates */
    for (int i = 0; i < x->n; i++)
        most = fmax(most, impulse_size(x->s, x->M, x->at[i]));
    for (int i = 0; i < x->n; i++) {
        meeting *k = x->at[i];
        const contact *c = k->c;
        int normal = contact_has_normal(c);
        for (int j = 0; j < contact_row_count(c); j++) {
            double still = j < normal ? c->ht : c->s0[j - normal];
            double loss = k->impulse[j] * (contact_rate(c, contact_row(c, j), mean) + still);
            lost -= loss;
            size += fabs(loss);
            b->work -= k->impulse[j] * still;
        }
        k->after = normal ? contact_gap_rate(c, v) : 0;
        k->hit = contact_opens(c) && k->impulse[0] > 0 && impulse_size(x->s, x->M, k) > IMPULSE_ZERO * most;
        if (k->hit)
            note_impact(a, k->out, (impact){ x->t, k->before, k->after, k->impulse[0], (int32_t)c->member });
    }
    b->dissipated += lost;
    x->gained = lost < -GAIN_ROUNDED * size ? -lost : 0;
}

const char *gain_text(const instant_t *x, arena *a, const char *time)
{
    const contact *c = x->at[0]->c;
    double most = -1;
    for (int i = 0; i < x->n; i++)
        if (x->at[i]->hit && x->at[i]->c->d && x->at[i]->impulse[0] > most) {
            most = x->at[i]->impulse[0];
            c = x->at[i]->c;
        }
    return arena_printf(
        a,
        "the impact law of '%s' adds energy at t = %s, %.3g of it (Kane's paradox): with friction "
        "Newton's law may do so; poisson(e) adds less",
        contact_name(c, a), time, x->gained);
}

/* ---- accelerations ---- */
static void slip_bias(system_t *s, const meeting *k, double *out)
{
    contact_slip_bias(s, k->c, out);
    for (int j = 0; k->turning && j < k->c->d; j++)
        out[j] += k->turning[j];
}

void instant_asks(instant_t *x, int i, const double *v)
{
    const meeting *k = x->at[i];
    contact *c = k->c;
    cone *o = &x->cone[i];
    double *off = x->off + k->row, *dir = x->dir + k->row, mu;
    if (contact_has_normal(c))
        *off++ = contact_bias(x->s, c);
    if (c->d == 0)
        return;
    slip_bias(x->s, k, off);
    double speed = contact_slip(c, v, dir);
    if (!contact_slips(speed, k->tol_slip, k->held))
        speed = 0;
    for (int j = 0; speed > 0 && j < c->d; j++)
        dir[j] /= speed;
    if (speed > 0)
        o->dir = dir;
    if (!o->of_speed)
        return;
    /* the coefficient depends on the current speed, while the velocities of this problem are accelerations */
    mu = contact_mu(x->s, c, speed);
    friction_bound(c, mu, 1, 0, &o->mu, &o->radius);
    o->of_speed = false;
}

bool instant_gauss(instant_t *x, const double *v, double *acc)
{
    bool some = rest_known(x, v) | (x->way->feed != NULL);
    vec_copy(x->before, acc, some ? x->s->n : 0);
    for (int again = 0;; again++) {
        x->way->pose(x, false);
        for (int i = 0; i < x->n; i++)
            instant_asks(x, i, v);
        if (!x->way->solve(x, acc))
            return false;
        if (!some || again == SOLVED_AGAIN || !gives_way(x, false))
            return true;
        vec_copy(acc, x->before, x->s->n);
    }
}

/* ---- shocks without a collision ---- */
/* The change of a row's rate by a unit impulse on that row. Divided by its root, rows of different units can
   be compared. Overwrites room and r. */
static double own_rate(instant_t *x, int i, int j)
{
    const contact *c = x->at[i]->c;
    for (int l = 0; l < x->n; l++)
        for (int k = 0; k < contact_row_count(x->at[l]->c); k++)
            x->r[x->at[l]->row + k] = l == i && k == j;
    for (int k = 0; k < x->s->n; k++)
        x->room[k] = 0;
    x->way->react(x, x->room);
    return contact_rate(c, contact_row(c, j), x->room);
}

/* The largest rate of a row, in the unit of its own_rate, minus the rates `from` unless NULL. */
static double most_of(instant_t *x, const double *u, const double *from, bool normal)
{
    double most = 0;
    for (int i = 0; i < x->n; i++) {
        const contact *c = x->at[i]->c;
        for (int j = 0, a = contact_has_normal(c); j < contact_row_count(c); j++) {
            if ((j < a) != normal)
                continue;
            const double *row = contact_row(c, j);
            double rate = contact_rate(c, row, u) - (from ? contact_rate(c, row, from) : 0),
                   own = own_rate(x, i, j);
            most = own > 0 ? fmax(most, fabs(rate + x->off[x->at[i]->row + j]) / sqrt(own)) : most;
        }
    }
    return most;
}

/* Offsets of the rows that do not depend on the dofs: `rates` times those of rates plus h times those of
   accelerations. */
static void offsets(instant_t *x, double rates, double h)
{
    for (int i = 0; i < x->n; i++) {
        contact *c = x->at[i]->c;
        double *off = x->off + x->at[i]->row, still;
        if (contact_has_normal(c))
            *off++ = rates * c->ht + h * contact_bias(x->s, c);
        slip_bias(x->s, x->at[i], off);
        for (int j = 0; j < c->d; j++) {
            still = rates * c->s0[j];
            off[j] = still + h * off[j];
        }
    }
}

/* An implicit step of size h, solved as a shock. Its impulses times `weight` are added up. */
static bool jam_step(instant_t *x, const double *acc, const double *v, double h, double weight)
{
    x->way->pose(x, true);
    offsets(x, 1, h);
    vec_copy(x->room, v, x->s->n);
    vec_axpy(x->room, h, acc, x->s->n);
    if (!x->way->solve(x, x->room))
        return false;
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < contact_row_count(x->at[i]->c); j++)
            x->at[i]->impulse[j] += weight * x->r[x->at[i]->row + j];
    return true;
}

/* Impulses depend linearly on the size of the step as long as no contact changes its mode. So two sizes give
   the limit. */
bool instant_jam(instant_t *x, const double *acc, double *v)
{
    shock_begin(x, v);
    offsets(x, 0, 1);
    double pull = most_of(x, acc, NULL, true);
    offsets(x, 1, 0);
    double slip = most_of(x, v, NULL, false), h = JAM_STEP * slip / pull;
    if (!(slip > 0 && pull > 0 && isfinite(h)))
        return false;
    if (!jam_step(x, acc, v, h, -1) || !jam_step(x, acc, v, h / 2, 2))
        return false;
    x->way->pose(x, true);
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < contact_row_count(x->at[i]->c); j++)
            x->r[x->at[i]->row + j] = x->at[i]->impulse[j];
    x->way->react(x, v);
    offsets(x, 0, 0);
    if (most_of(x, v, x->before, false) > JAM_STEP * slip)
        return true;
    vec_copy(v, x->before, x->s->n);
    return false;
}

/* Is the contact pressed on by the friction of its own slip? */
static bool presses_on(instant_t *x, int i)
{
    const meeting *k = x->at[i];
    const contact *c = k->c;
    const cone *o = &x->cone[i];
    if (o->kind != CONE_UNILATERAL || !o->dir)
        return false;
    for (int l = 0; l < x->n; l++)
        for (int j = 0; j < contact_row_count(x->at[l]->c); j++)
            x->r[x->at[l]->row + j] = 0;
    x->r[k->row] = 1;
    for (int j = 0; j < c->d; j++)
        x->r[k->row + 1 + j] = -o->mu * o->dir[j];
    for (int l = 0; l < x->s->n; l++)
        x->room[l] = 0;
    x->way->react(x, x->room);
    return contact_rate(c, c->H, x->room) <= 0;
}

const contact *instant_paradox(instant_t *x, const double *v)
{
    x->way->pose(x, false);
    for (int i = 0; i < x->n; i++)
        instant_asks(x, i, v);
    for (int i = 0; i < x->n; i++)
        if (presses_on(x, i))
            return x->at[i]->c;
    return NULL;
}

/* ---- several accelerations ---- */
/* limits of contacts whose subsets are all tried, and of their rows */
enum { WAYS_MOST = 6, WAYS_ROWS = 32 };

/* Can the solutions be counted? Each contact must either open or push with friction against its present slip.
 */
static bool ways_known(const instant_t *x)
{
    bool known = x->n > 0 && x->n <= WAYS_MOST;
    for (int i = 0; known && i < x->n; i++) {
        const meeting *k = x->at[i];
        const cone *o = &x->cone[i];
        bool slips = k->c->d == 0 || o->dir;
        known = o->kind == CONE_UNILATERAL && slips && o->radius == 0 && !k->c->fam->adhesion.k;
    }
    return known;
}

/* W: second rate of gap i by a unit push of contact l, with its friction. b: second rate of gap i without
   contacts. */
static void ways_problem(instant_t *x, const double *acc, double *W, double *b)
{
    for (int i = 0; i < x->n; i++)
        b[i] = contact_rate(x->at[i]->c, x->at[i]->c->H, acc) + x->off[x->at[i]->row];
    for (int l = 0; l < x->n; l++) {
        for (int i = 0; i < x->n; i++)
            for (int j = 0; j < contact_row_count(x->at[i]->c); j++)
                x->r[x->at[i]->row + j] = i != l ? 0 : j == 0 ? 1 : -x->cone[i].mu * x->cone[i].dir[j - 1];
        for (int k = 0; k < x->s->n; k++)
            x->room[k] = 0;
        x->way->react(x, x->room);
        for (int i = 0; i < x->n; i++)
            W[i * x->n + l] = contact_rate(x->at[i]->c, x->at[i]->c->H, x->room);
    }
}

/* Is there a solution in which the contacts of `set` push and the others open? */
static bool way_fits(const double *W, const double *b, int n, unsigned set, arena *scratch)
{
    double A[WAYS_MOST * WAYS_MOST], rhs[WAYS_MOST], r[WAYS_MOST], size = vec_max(b, n);
    int at[WAYS_MOST], m = 0;
    for (int i = 0; i < n; i++)
        if (set & 1u << i)
            at[m++] = i;
    for (int i = 0; i < m; i++) {
        rhs[i] = -b[at[i]];
        for (int l = 0; l < m; l++)
            A[l * m + i] = W[at[i] * n + at[l]];
    }
    if (m && !(solve_refined(m, A, rhs, r, scratch) > 0))
        return false;
    for (int i = 0; i < m; i++)
        if (!(r[i] * fabs(W[at[i] * n + at[i]]) > WAY_ROUNDED * size))
            return false;
    for (int i = 0; i < n; i++) {
        double rate = b[i];
        for (int l = 0; l < m; l++)
            rate += W[i * n + at[l]] * r[l];
        if (!(set & 1u << i) && rate < -WAY_ROUNDED * size)
            return false;
    }
    return true;
}

bool instant_pressed(instant_t *x)
{
    double keep[WAYS_ROWS];
    int m = 0;
    bool pressed = false;
    for (int i = 0; i < x->n; i++)
        m += contact_row_count(x->at[i]->c);
    if (x->n > WAYS_MOST || m > WAYS_ROWS)
        return false;
    memcpy(keep, x->r, (size_t)m * sizeof *keep);
    for (int i = 0; i < x->n && !pressed; i++)
        pressed = presses_on(x, i);
    memcpy(x->r, keep, (size_t)m * sizeof *keep);
    return pressed;
}

int instant_ways(instant_t *x, const double *acc, const double *v, arena *scratch)
{
    double W[WAYS_MOST * WAYS_MOST], b[WAYS_MOST];
    int ways = 0;
    x->way->pose(x, false);
    for (int i = 0; i < x->n; i++)
        instant_asks(x, i, v);
    if (!ways_known(x))
        return 0;
    ways_problem(x, acc, W, b);
    arena_pos mark = arena_mark(scratch);
    for (unsigned set = 0; set < 1u << x->n; set++)
        ways += way_fits(W, b, x->n, set, scratch);
    arena_release(scratch, mark);
    return ways;
}

const char *ways_text(const instant_t *x, int ways, arena *a, const char *time)
{
    text t = { .a = a };
    text_printf(&t,
                "%d accelerations satisfy the friction law at t = %s, and so does an impact without a "
                "collision (Painlevé's paradox); chosen is the one in which",
                ways, time);
    for (int i = 0; i < x->n; i++)
        text_printf(&t, "%s '%s' %s",
                    i == 0         ? ""
                    : i + 1 < x->n ? ","
                                   : " and",
                    contact_name(x->at[i]->c, a), x->r[x->at[i]->row] > 0 ? "slides on" : "opens");
    return t.at;
}

const char *paradox_text(arena *a, const contact *c, const char *time, bool ended)
{
    return arena_printf(a,
                        "no acceleration satisfies the friction law of '%s' at t = %s (Painlevé's "
                        "paradox)%s",
                        contact_name(c, a), time,
                        ended ? ": its slip ends there in an impact without a collision"
                              : ", and no impact without a collision ends its slip");
}
