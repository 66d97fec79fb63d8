/* sweep_balls: a whole step of many balls in space. Its contacts are packed directly from their current rows,
   island by island, and swept, without a list of contacts in between. The families of pairs determine which
   dofs are position and rotation of a ball; whether the rows are those of balls is checked each time. If
   sweeps do not solve the problem, the general method does (sweep_solve.c), as if this had not been tried. */
#include <math.h>
#include <string.h>
#include "contact/balls.h"
#include "sweep.h"

enum { SPACE = 3, PAIR = 12, NOBODY = -1 };

/* The part of a ball that a dof is: 0 to 2 position, 3 to 5 rotation. */
typedef struct ball_part {
    int ball, part;
} ball_part;

/* The balls of a model, determined at the start. */
struct balls_known {
    int n;
    ball_part *of;        /* for each dof */
    int *place, *turning; /* first position and rotation dof of each ball */
};

/* Needed only at the start and end of a solve. */
typedef struct touch_unit {
    double normal, slip;
    int act; /* contact of the current problem */
} touch_unit;

/* The current problem, packed. */
typedef struct packing {
    sweep *w;
    const balls_known *known;
    int islands, *first; /* first touch of each island, and the end */
    int (*pair)[2];      /* balls of each current contact */
    int *order;          /* current contacts, island by island */
    int *local;          /* for each ball: its packed number; NOBODY: not packed */
    int *model;          /* the inverse of `local` */
    int nball;
    double *radius; /* of packed balls, with the sign of the rotation; NAN: not known yet */
    ball *ball, *start;
    touch *touch;
    touch_unit *unit;
    reaction *r;
} packing;

/* ---- which dofs are balls ---- */
static bool three_follow(const slot_map *at)
{
    for (int k = 1; k < SPACE; k++)
        if (at[k].base != at[0].base + k || memcmp(at[k].stride, at[0].stride, sizeof at->stride) != 0)
            return false;
    return true;
}

static bool one_mass(const double *light, int dof)
{
    return light[dof] == light[dof + 1] && light[dof] == light[dof + 2] && light[dof] > 0;
}

static bool ball_add(balls_known *x, const double *light, int place, int turning)
{
    ball_part p = x->of[place], a = x->of[turning];
    if (p.ball != NOBODY || a.ball != NOBODY)
        return p.ball == a.ball && p.part == 0 && a.part == SPACE;
    if (!one_mass(light, place) || !one_mass(light, turning))
        return false;
    for (int k = 0; k < SPACE; k++) {
        if (x->of[place + k].ball != NOBODY || x->of[turning + k].ball != NOBODY)
            return false;
        x->of[place + k] = (ball_part){ x->n, k };
        x->of[turning + k] = (ball_part){ x->n, SPACE + k };
    }
    x->place[x->n] = place;
    x->turning[x->n++] = turning;
    return true;
}

/* The balls of a family of pairs: dofs must be ordered by points, positions first. */
static bool balls_of(const sweep *w, balls_known *x, const near_pairs *p)
{
    const family *fam = p->fam;
    for (int side = 0; side < 2; side++) {
        const slot_map *place = fam->dof + SPACE * side, *turning = place + 2 * SPACE;
        int index = place->stride[0] != 0 ? 0 : 1;
        if (!three_follow(place) || !three_follow(turning) ||
            (place->stride[0] != 0) != (turning->stride[0] != 0) ||
            (place->stride[1] != 0) != (turning->stride[1] != 0) ||
            (place->stride[0] != 0) == (place->stride[1] != 0))
            return false;
        for (int i = 0; i < p->of[index].n; i++) {
            int32_t at[MAX_INDEX] = { 0 };
            at[index] = p->of[index].lo + i;
            if (!ball_add(x, w->s->minv.a, slot_at(place, at, 2), slot_at(turning, at, 2)))
                return false;
        }
    }
    return true;
}

void sweep_balls_new(sweep *w)
{
    const near_list *list = &w->contacts.near;
    bool any = false;
    if (!list->nof || !w->s->mass_constant || w->s->minv.kind != FACTOR_DIAGONAL || w->s->force_of_state)
        return;
    balls_known *x = arena_make(w->a, balls_known);
    x->of = arena_array(w->a, ball_part, w->n);
    x->place = arena_array(w->a, int, w->n);
    x->turning = arena_array(w->a, int, w->n);
    for (int i = 0; i < w->n; i++)
        x->of[i].ball = NOBODY;
    for (size_t i = 0; i < list->nof; i++) {
        const near_pairs *p = &list->of[i];
        if (p->fam->ndof != PAIR || p->fam->d != SPACE || !p->fam->f->slip_given ||
            !near_of_points(p->fam->f))
            continue;
        if (!balls_of(w, x, p))
            return;
        any = true;
    }
    w->crowd.balls = any ? x : NULL;
}

/* ---- islands ---- */
static bool law_fits(const cone *o)
{
    return o->kind == CONE_UNILATERAL && (o->d == 0 || o->d == 2) && !o->dir && !o->of_speed &&
           o->radius == 0;
}

static bool pair_fits(const balls_known *x, const contact *c)
{
    int i = x->of[c->dof[0]].ball, j = x->of[c->dof[SPACE]].ball;
    return i != NOBODY && j != NOBODY && i != j && c->dof[0] == x->place[i] && c->dof[SPACE] == x->place[j] &&
           c->dof[2 * SPACE] == x->turning[i] && c->dof[3 * SPACE] == x->turning[j];
}

/* The balls of contact i; the second one is NOBODY for the ground. */
static bool pair_of_balls(packing *x, int i)
{
    const contact *c = x->w->hand.act[i]->c;
    int *pair = x->pair[i];
    if (!law_fits(&x->w->hand.cone[i]) || !c->dof || c->n < 1)
        return false;
    pair[0] = x->known->of[c->dof[0]].ball;
    pair[1] = NOBODY;
    if (c->n == PAIR && x->w->hand.cone[i].d == 2) {
        pair[1] = x->known->of[c->dof[SPACE]].ball;
        return pair_fits(x->known, c);
    }
    for (int k = 0; k < c->n; k++)
        if (x->known->of[c->dof[k]].ball != pair[0])
            return false;
    return pair[0] != NOBODY;
}

static int root_of(int *up, int i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

/* Orders the current contacts by islands, in the order of their first contacts. */
static bool islands_order(packing *x, arena *a)
{
    int n = x->w->hand.nact, *up = arena_alloc(a, (size_t)x->known->n * sizeof *up),
        *number = arena_array(a, int, x->known->n);
    for (int i = 0; i < x->known->n; i++)
        up[i] = i;
    for (int i = 0; i < n; i++) {
        if (!pair_of_balls(x, i))
            return false;
        if (x->pair[i][1] != NOBODY)
            up[root_of(up, x->pair[i][1])] = root_of(up, x->pair[i][0]);
    }
    x->first = arena_array(a, int, n + 2);
    for (int i = 0; i < n; i++) {
        int *own = &number[root_of(up, x->pair[i][0])];
        *own = *own ? *own : ++x->islands;
        x->first[*own]++;
    }
    for (int k = 1; k <= x->islands; k++)
        x->first[k] += x->first[k - 1];
    for (int i = n; i-- > 0;)
        x->order[--x->first[number[root_of(up, x->pair[i][0])]]] = i;
    memmove(x->first, x->first + 1, (size_t)x->islands * sizeof *x->first);
    x->first[x->islands] = n;
    return true;
}

/* ---- packing contacts ---- */
/* Packed number of a ball; rates without impulses are set later. */
static int ball_pack(packing *x, int of)
{
    if (x->local[of] != NOBODY)
        return x->local[of];
    int b = x->local[of] = x->nball++;
    x->model[b] = of;
    x->radius[b] = NAN;
    return b;
}

/* Is a = -b, for rows of three numbers? */
static inline bool opposite(const double *a, const double *b, double size)
{
    return same3(a, -1, b, size);
}

/* Does a row at the rotation of a ball equal -R n x t? R must be the same in all contacts of a ball. */
static inline bool turning_fits(double *radius, const double *n, const double *t, double unit,
                                const double *row)
{
    double side[3];
    cross3(n, t, side);
    if (isnan(*radius))
        *radius = -dot3(row, side) / dot3(side, side) / unit;
    return same3(row, -*radius * unit, side, fabs(*radius) * unit);
}

/* Are normal and directions of friction orthonormal? */
static inline bool frame_fits(const double *n, const double *t1, const double *t2)
{
    double third[3];
    cross3(n, t1, third);
    double side = dot3(third, t2) < 0 ? -1 : 1;
    return fabs(dot3(n, t1)) <= FACTOR_SAME && same3(t2, side, third, 1);
}

static inline void row_scaled(const double *row, double unit, double *out)
{
    for (int k = 0; k < SPACE; k++)
        out[k] = row[k] / unit;
}

/* Entries of a contact at one ball: normal row and up to two rows of slip. */
typedef struct ball_rows {
    double at[3][2 * SPACE];
} ball_rows;

/* What both kinds of contacts share: units, frame, law, initial impulse. */
static inline bool touch_put(packing *x, int to, int i, const double *H, const double *S1, const double *S2,
                             double (*t)[3])
{
    const cone *o = &x->w->hand.cone[i];
    touch *c = &x->touch[to];
    touch_unit *u = &x->unit[to];
    reaction *r = &x->r[to];
    const double *add = x->w->hand.off + o->row, *rr = x->w->hand.rr + o->row;
    *u = (touch_unit){ sqrt(dot3(H, H)), 1, i };
    *c = (touch){ .bn = 0 };
    *r = (reaction){ .n = 0 };
    if (!(u->normal > 0))
        return false;
    row_scaled(H, u->normal, c->n);
    c->bn = add[0] / u->normal;
    r->n = rr[0] * u->normal;
    if (!o->d)
        return true;
    u->slip = sqrt(dot3(S1, S1));
    if (!(u->slip > 0))
        return false;
    row_scaled(S1, u->slip, t[0]);
    row_scaled(S2, u->slip, t[1]);
    c->mu = o->mu * u->slip / u->normal;
    for (int k = 0; k < SPACE; k++) {
        c->bt[k] = (add[1] * t[0][k] + add[2] * t[1][k]) / u->slip;
        r->t[k] = (rr[1] * t[0][k] + rr[2] * t[1][k]) * u->slip;
    }
    return frame_fits(c->n, t[0], t[1]);
}

static bool pair_pack(packing *x, int to, int i)
{
    const contact *c = x->w->hand.act[i]->c;
    const double *H = c->H, *S = c->S;
    double t[2][3];
    int a = ball_pack(x, x->pair[i][0]), b = ball_pack(x, x->pair[i][1]);
    if (!touch_put(x, to, i, H, S, S + PAIR, t))
        return false;
    const touch *at = &x->touch[to];
    const touch_unit *u = &x->unit[to];
    x->touch[to].i = a;
    x->touch[to].j = b;
    for (int k = 2 * SPACE; k < PAIR; k++)
        if (H[k] != 0)
            return false;
    if (!opposite(H + SPACE, H, u->normal))
        return false;
    for (int k = 0; k < 2; k++, S += PAIR)
        if (!opposite(S + SPACE, S, u->slip) ||
            !turning_fits(&x->radius[a], at->n, t[k], u->slip, S + 2 * SPACE) ||
            !turning_fits(&x->radius[b], at->n, t[k], u->slip, S + 3 * SPACE))
            return false;
    return true;
}

static bool ground_pack(packing *x, int to, int i)
{
    const contact *c = x->w->hand.act[i]->c;
    int d = x->w->hand.cone[i].d, a = ball_pack(x, x->pair[i][0]);
    ball_rows rows = { 0 };
    double t[2][3];
    for (int k = 0; k < c->n; k++) {
        int part = x->known->of[c->dof[k]].part;
        rows.at[0][part] += c->H[k];
        for (int s = 0; s < d; s++)
            rows.at[1 + s][part] += c->S[s * c->n + k];
    }
    if (!touch_put(x, to, i, rows.at[0], rows.at[1], rows.at[2], t))
        return false;
    x->touch[to].i = a;
    x->touch[to].j = NOBODY;
    for (int k = SPACE; k < 2 * SPACE; k++)
        if (rows.at[0][k] != 0)
            return false;
    for (int s = 0; s < d; s++)
        if (!turning_fits(&x->radius[a], x->touch[to].n, t[s], x->unit[to].slip, rows.at[1 + s] + SPACE))
            return false;
    return true;
}

/* Packs the balls with their rates without impulses. */
static bool balls_put(packing *x, const double *rate)
{
    const double *light = x->w->s->minv.a;
    for (int b = 0; b < x->nball; b++) {
        int of = x->model[b], place = x->known->place[of], turning = x->known->turning[of];
        ball *o = &x->ball[b];
        if (isnan(x->radius[b]))
            x->radius[b] = 0; /* without friction */
        double R = x->radius[b];
        for (int k = 0; k < SPACE; k++) {
            o->v[k] = rate[place + k];
            o->s[k] = R * rate[turning + k];
        }
        o->light = light[place];
        o->spun = R * R * light[turning];
        if (!isfinite(R))
            return false;
    }
    return true;
}

static void touches_finish(packing *x)
{
    for (int k = 0; k < x->w->hand.nact; k++) {
        touch *t = &x->touch[k];
        t->j = t->j == NOBODY ? x->nball : t->j;
        double W = x->ball[t->i].light + x->ball[t->j].light;
        t->over_n = 1 / W;
        t->over_t = 1 / (W + x->ball[t->i].spun + x->ball[t->j].spun);
    }
}

static bool all_pack(packing *x, const double *rate, arena *a)
{
    size_t n = (size_t)x->w->hand.nact, balls = (size_t)x->known->n;
    x->pair = arena_alloc(a, n * sizeof *x->pair);
    x->order = arena_alloc(a, n * sizeof *x->order);
    x->local = arena_alloc(a, balls * sizeof *x->local);
    x->model = arena_alloc(a, balls * sizeof *x->model);
    x->radius = arena_alloc(a, balls * sizeof *x->radius);
    if (!islands_order(x, a))
        return false;
    x->ball = arena_alloc(a, (balls + 1) * sizeof *x->ball);
    x->start = arena_alloc(a, (balls + 1) * sizeof *x->start);
    x->touch = arena_alloc(a, n * sizeof *x->touch);
    x->unit = arena_alloc(a, n * sizeof *x->unit);
    x->r = arena_alloc(a, n * sizeof *x->r);
    memset(x->local, NOBODY, balls * sizeof *x->local);
    for (int k = 0; k < (int)n; k++) {
        int i = x->order[k];
        if (!(x->pair[i][1] == NOBODY ? ground_pack(x, k, i) : pair_pack(x, k, i)))
            return false;
    }
    if (!balls_put(x, rate))
        return false;
    x->ball[x->nball] = (ball){ .light = 0 };
    memcpy(x->start, x->ball, ((size_t)x->nball + 1) * sizeof *x->ball);
    touches_finish(x);
    return true;
}

/* ---- an island ---- */
/* Adds the impulses of touches from .. end to the rates. */
static void island_push(packing *x, int from, int end)
{
    for (int k = from; k < end; k++) {
        const touch *c = &x->touch[k];
        const reaction *r = &x->r[k];
        ball *a = &x->ball[c->i], *b = &x->ball[c->j];
        double turn[3];
        if (r->n == 0 && dot3(r->t, r->t) == 0)
            continue;
        cross3(c->n, r->t, turn);
        for (int j = 0; j < SPACE; j++) {
            double p = r->n * c->n[j] + r->t[j];
            a->v[j] += a->light * p;
            b->v[j] -= b->light * p;
            a->s[j] -= a->spun * turn[j];
            b->s[j] -= b->spun * turn[j];
        }
    }
}

/* Rate of the gap, and slip, in the variables of the sweeps. */
static void touch_rates(const touch *c, const ball *all, double *un, double *ut)
{
    const ball *a = &all[c->i], *b = &all[c->j];
    double d[3], s[3], turn[3];
    for (int k = 0; k < SPACE; k++) {
        d[k] = a->v[k] - b->v[k];
        s[k] = a->s[k] + b->s[k];
    }
    *un = dot3(c->n, d);
    cross3(s, c->n, turn);
    for (int k = 0; k < SPACE; k++)
        ut[k] = d[k] - *un * c->n[k] - turn[k];
}

/* Sweeps that start from much too large impulses change them by small fractions, and a loose tolerance may
   accept that. A solution satisfies r.u <= 0, because contacts take energy, so r.W r <= -r.b. See
   beyond_energy in impulses.c. */
static bool island_beyond(const packing *x, int from, int end)
{
    double given = 0, pushed = 0;
    for (int k = from; k < end; k++) {
        const touch *c = &x->touch[k];
        const reaction *r = &x->r[k];
        double n0, n1, t0[3], t1[3];
        if (r->n == 0)
            continue;
        touch_rates(c, x->start, &n0, t0);
        touch_rates(c, x->ball, &n1, t1);
        given += r->n * (n0 + c->bn) + dot3(r->t, t0) + dot3(r->t, c->bt);
        pushed += r->n * (n1 - n0) + dot3(r->t, t1) - dot3(r->t, t0);
    }
    return pushed > 0 && !(given + pushed <= 0.5 * pushed);
}

static void island_anew(packing *x, const heap *h, int from)
{
    memset(x->r + from, 0, (size_t)h->n * sizeof *x->r);
    memcpy(x->ball + h->from, x->start + h->from, (size_t)h->nball * sizeof *x->ball);
}

/* *at: its first ball; on return the first ball of the next island. */
static double island_solve(packing *x, int number, int *at)
{
    enum { SWEEPS = 1000 };
    int from = x->first[number], end = x->first[number + 1], last = *at;
    problem_at_hand *hand = &x->w->hand;
    for (int k = from; k < end; k++) {
        const touch *c = &x->touch[k];
        last = c->i >= last ? c->i + 1 : last;
        last = c->j < x->nball && c->j >= last ? c->j + 1 : last;
    }
    heap h = { .n = end - from,
               .from = *at,
               .nball = last - *at,
               .ball = x->ball,
               .touch = x->touch + from,
               .r = x->r + from,
               .worst = -1,
               .scratch = x->w->scratch };
    *at = last;
    bool alone = h.n == 1;
    if (alone)
        island_anew(x, &h, from);
    else
        island_push(x, from, end);
    double res = heap_solve(&h, alone ? 1 : SWEEPS, alone, x->w->tol);
    if (alone)
        res = 0; /* one visit gives the solution */
    if (!alone && res <= x->w->tol && island_beyond(x, from, end)) {
        island_anew(x, &h, from);
        res = heap_solve(&h, SWEEPS, false, x->w->tol);
        if (island_beyond(x, from, end))
            res = INFINITY;
    }
    hand->pr.iterations += 2 * h.sweeps;
    x->w->r->count.swept += alone ? 0 : h.swept;
    if (!(res <= hand->pr.residual)) {
        hand->pr.residual = res;
        hand->pr.worst = x->unit[from + (h.worst < 0 ? 0 : h.worst)].act;
    }
    return res;
}

/* ---- the solution ---- */
/* Stores the impulses in the rows of the problem, and returns the possible error of slip (see list_blur). */
static double impulses_store(const packing *x)
{
    sweep *w = x->w;
    double most = 0, rate = 0;
    for (int k = 0; k < w->hand.nact; k++) {
        const touch_unit *u = &x->unit[k];
        const cone *o = &w->hand.cone[u->act];
        const contact *c = w->hand.act[u->act]->c;
        if (k + FETCHED < w->hand.nact) {
            const contact *next = w->hand.act[u[FETCHED].act]->c;
            fetch(next->S, next->d * next->n);
        }
        double *rr = w->hand.rr + o->row;
        rr[0] = x->r[k].n / u->normal;
        most = larger(most, fabs(rr[0]));
        if (!o->d)
            continue;
        bool pair = x->touch[k].j < x->nball; /* then the first ball's place comes first */
        for (int a = 0; a < o->d; a++) {
            const double *S = c->S + a * c->n;
            double sum = 0;
            for (int j = 0; pair && j < SPACE; j++)
                sum += S[j] * x->r[k].t[j];
            for (int j = 0; !pair && j < c->n; j++) {
                int part = x->known->of[c->dof[j]].part;
                if (part < SPACE && x->known->of[c->dof[j]].ball == x->model[x->touch[k].i])
                    sum += S[j] * x->r[k].t[part];
            }
            rr[1 + a] = sum / (u->slip * u->slip);
            most = larger(most, fabs(rr[1 + a]));
        }
        rate = larger(rate, u->slip * u->slip / x->touch[k].over_t);
    }
    return w->tol * most * rate;
}

static void rates_store(const packing *x, double *rate)
{
    for (int b = 0; b < x->nball; b++) {
        int of = x->model[b], place = x->known->place[of], turning = x->known->turning[of];
        for (int k = 0; k < SPACE; k++) {
            rate[place + k] = x->ball[b].v[k];
            if (x->radius[b] != 0)
                rate[turning + k] = x->ball[b].s[k] / x->radius[b];
        }
    }
}

bool sweep_balls_solve(sweep *w, double *rate)
{
    enum { FEW = 64 }; /* contacts that are solved in a separate order */
    problem_at_hand *hand = &w->hand;
    if (!w->crowd.balls || !w->policy.whole || w->tol < ISLAND_LOOSE || hand->nact <= FEW)
        return false;
    arena_pos mark = arena_mark(w->scratch);
    packing x = { .w = w, .known = w->crowd.balls };
    bool ok = all_pack(&x, rate, w->scratch), many = false;
    hand->pr.residual = 0;
    for (int k = 0, at = 0; ok && k < x.islands; k++) {
        many |= x.first[k + 1] - x.first[k] > 1;
        ok = island_solve(&x, k, &at) <= w->tol;
    }
    if (ok) {
        hand->blur[false] = w->tol <= SOLVED_TIGHT ? 0 : impulses_store(&x);
        hand->pr.solver = many ? "Gauss-Seidel with conjugate directions" : "closed form";
        rates_store(&x, rate);
    } else {
        hand->pr.iterations = 0;
        hand->pr.residual = 0;
    }
    arena_release(w->scratch, mark);
    return ok;
}
