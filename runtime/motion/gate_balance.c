/* gate_balance: checks the equations of motion on the stored results of a run. Over a step,
       M (q1' - q0') = h f + h (H^T rn + S^T rt) + H^T p
   with the mean forces f of both ends, stored reactions, and impulses p of impacts. Schemes may weight the
   two ends differently, so every value between both ends is accepted. If the reactions of a backend are those
   of an instant, M q'' = f + H^T rn + S^T rt is checked at the samples. Some forces and impulses are not
   stored: reactions of large families, friction in the whole tangent space, impulses of friction and of
   equalities. Dofs on which they may act are skipped at those times; the others are checked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "clock/clock.h"
#include "clock/later.h"
#include "gate.h"
#include "program/system.h"
#include "base/tolerances.h"

/* For a dof: the sample with the largest defect, the defect, and its largest terms, as forces. */
typedef struct missed {
    double by, size;
    int64_t at;
} missed;

struct balance {
    gate *g;
    results *r;
    bool steps, instants; /* what can be checked: steps; single samples */
    bool forces_stay;     /* forces are constant and known */
    bool rows_stay;       /* rows of contacts do not depend on the state */
    int64_t each, seen;   /* with large families, only every `each`-th step is checked */
    size_t *next;         /* next impact of each family */
    size_t reset;         /* the next reset */
    double *resets;       /* times of resets in order, including those of steps that were repeated */
    bool *unknown;        /* dofs on which something may act that is not stored */
    gate_sum mass[2], force[2], push[2]; /* both ends share one if nothing changes */
    /* jolt: impulses, on the rows at the time of the impact, extrapolated from each end */
    gate_sum jolt[2], rate;
    gate_sum jolt_end[2];              /* the same, on the rows at the ends */
    gate_sum followed;                 /* the same, on the rows along a path, see between_hits */
    bool hit;                          /* the current step contains impacts; otherwise jolts do not count */
    gate_sum acted;                    /* temporary: one sum */
    double *change, *q, *v, *diagonal; /* temporary, nq numbers each */
    double *fast;                      /* rates that no dof exceeds in the step, see fastest_rates */
    double *fastest;    /* of each family: the largest slip of the run, for several directions */
    missed *dof, *step; /* at instants; over steps */
    bool *ever;         /* dofs whose equation was checked */
};

static gate_sum sum_new(arena *a, int n)
{
    return (gate_sum){ arena_array(a, double, (size_t)n), arena_array(a, double, (size_t)n) };
}

/* Sums for both ends. */
static void sums_new(gate_sum *s, arena *a, int n, bool same)
{
    s[0] = sum_new(a, n);
    s[1] = same ? s[0] : sum_new(a, n);
}

/* Is the sum of the other end the same one? */
static bool sum_known(const gate_sum *s, int end)
{
    return end && s[1].at == s[0].at;
}

static void sum_clear(gate_sum *s, int n)
{
    memset(s->at, 0, (size_t)n * sizeof *s->at);
    memset(s->size, 0, (size_t)n * sizeof *s->size);
}

static bool several(const contact_result *x)
{
    return x->kept && x->nslip > 1 && x->slip;
}

static double slip_of(const contact_result *x, int64_t place)
{
    double square = 0;
    for (int j = 0; j < x->nslip; j++)
        square += x->slip[place * x->nslip + j] * x->slip[place * x->nslip + j];
    return sqrt(square);
}

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

balance *balance_new(gate *g, results *r, arena *a)
{
    const program *p = r->prog;
    balance *b = arena_make(a, balance);
    bool known = gate_knows_motion(g);
    *b = (balance){ .g = g, .r = r, .instants = known && (r->dense || r->promised.gives_way) };
    b->steps = known && !r->dense && r->samples == r->count.steps + 1;
    b->each = 1;
    for (size_t c = 0; c < p->ncontact; c++)
        if (!r->contact[c].kept) /* such runs have many dofs, and little is known about each of their steps */
            b->each = 1 + (int64_t)(fmin((double)r->samples, 1000) * p->nq / 400000);
    b->unknown = arena_array(a, bool, (size_t)p->nq);
    b->resets = arena_array(a, double, r->count.resets.n + 1);
    if (r->count.resets.n) {
        memcpy(b->resets, r->count.resets.at, r->count.resets.n * sizeof *b->resets);
        qsort(b->resets, r->count.resets.n, sizeof *b->resets, by_time);
    }
    b->next = arena_array(a, size_t, p->ncontact + 1);
    gate_still is = gate_stays(g);
    b->rows_stay = is.rows;
    sums_new(b->mass, a, p->nq, is.masses);
    sums_new(b->force, a, p->nq, is.forces);
    sums_new(b->push, a, p->nq, is.rows && !r->promised.gives_way);
    for (int end = 0; end < 2; end++) {
        b->jolt[end] = sum_new(a, p->nq);
        b->jolt_end[end] = sum_new(a, p->nq);
    }
    b->rate = sum_new(a, p->nq);
    b->acted = sum_new(a, p->nq);
    b->followed = sum_new(a, p->nq);
    double **room[] = { &b->change, &b->q, &b->v, &b->diagonal, &b->fast };
    for (size_t k = 0; k < sizeof room / sizeof *room; k++)
        *room[k] = arena_array(a, double, (size_t)p->nq);
    b->dof = arena_array(a, missed, (size_t)p->nq);
    b->step = arena_array(a, missed, (size_t)p->nq);
    b->ever = arena_array(a, bool, (size_t)p->nq);
    b->fastest = arena_array(a, double, p->ncontact + 1);
    for (size_t c = 0; c < p->ncontact && b->instants && r->dense; c++)
        for (int64_t k = 0; several(&r->contact[c]) && k < r->samples * r->contact[c].members; k++)
            b->fastest[c] = fmax(b->fastest[c], slip_of(&r->contact[c], k));
    return b;
}

/* ---- forces at an instant ---- */
static bool first_order(const program *p, int i)
{
    return p->order && p->order[i] == 1;
}

static bool any_of(const double *x, size_t n)
{
    for (size_t j = 0; j < n; j++)
        if (x[j] != 0)
            return true;
    return false;
}

/* Adds the reactions of sample `at`, on the rows of the gate's current state. */
static void pushes(balance *b, int64_t at, gate_sum *to)
{
    const results *r = b->r;
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_result *x = &r->contact[c];
        size_t ns = (size_t)x->nslip;
        if (x->kept && !ns)
            gate_react_all(b->g, c, x->rn + at * x->members, to);
        for (int64_t m = 0; x->kept && ns && m < x->members; m++) {
            size_t place = (size_t)(at * x->members + m);
            const double *rt = any_of(x->rt + place * ns, ns) ? x->rt + place * ns : NULL;
            if (x->rn[place] != 0 || rt)
                gate_react(b->g, c, m, x->rn[place], rt, to);
        }
    }
}

static double dense_now(const results *r, dense_item x, double t)
{
    return r->dense->at(r->dense->of, &x, t);
}

/* ---- what is not stored ---- */
/* Friction without components, in the whole tangent space. */
static bool all_around(const contact_family *f)
{
    return f->friction != FRICTION_NONE && !f->slip_given;
}

/* Each dof with the kinetic energy of the dof that has most: members of a family are alike, but one may move
   while others rest. */
static void fastest_rates(balance *b)
{
    int nq = b->r->prog->nq;
    double most = 0;
    gate_mass_diagonal(b->g, b->diagonal);
    for (int i = 0; i < nq; i++)
        if (b->diagonal[i] > 0)
            most = fmax(most, sqrt(b->diagonal[i]) * b->v[i]);
    for (int i = 0; i < nq; i++)
        b->fast[i] = b->diagonal[i] > 0 ? most / sqrt(b->diagonal[i]) : b->v[i];
}

/* How far a gap may change within a step of length h, from the current state of the gate, plus its rounding.
 */
static double way_of(balance *b, size_t c, int64_t m, double h, const double *rates)
{
    return 2 * h * gate_length(b->g, c, m, rates) + GATE_LOOSE * gate_length(b->g, c, m, b->q) +
           GATE_GAP_LEAST;
}

/* Of a few members, at the largest rates of all, ten times as far: no member comes further. */
static double way_of_all(balance *b, size_t c, double h)
{
    enum { FEW = 8 };
    int64_t n = b->r->contact[c].members, stride = n / FEW + 1;
    double most = 0;
    for (int64_t m = 0; m < n; m += stride)
        most = fmax(most, way_of(b, c, m, h, b->fast));
    return 10 * most;
}

/* Does it push in the step to the sample? With values at any time: also halfway. */
static bool pushes_at(const results *r, size_t c, int64_t at, int64_t m)
{
    const contact_result *x = &r->contact[c];
    size_t place = (size_t)(at * x->members + m), ns = (size_t)x->nslip;
    if (r->dense)
        return x->status[place] != STATUS_OPEN || x->status[place - (size_t)x->members] != STATUS_OPEN ||
               dense_now(r, (dense_item){ DENSE_RN, 0, 0, c, m }, 0.5 * (r->t[at - 1] + r->t[at])) != 0;
    return x->rn[place] != 0 || any_of(x->rt + place * ns, ns);
}

/* Marks dofs of a family on which something may act in the step to the sample that is not stored. hit:
   including impacts. */
static void leave_out(balance *b, size_t c, int64_t at, double h, bool hit)
{
    /* above this number all are skipped, because checking would take longer than the step */
    enum { MANY = 1000000 };
    const contact_family *f = &b->r->prog->contact[c];
    const contact_result *x = &b->r->contact[c];
    bool by_gap = hit || !x->kept, gaps = by_gap && f->relation == REL_GAP && gate_knows_gap(b->g, c),
         all = by_gap && x->members > MANY;
    const double *gap = gaps && !all ? gate_gaps(b->g, c) : NULL;
    double far = gap ? way_of_all(b, c, h) : 0;
    for (int64_t m = 0; m < x->members && !all; m++) {
        bool acts = by_gap ? !gap || (gap[m] <= far && gap[m] <= way_of(b, c, m, h, b->v))
                           : pushes_at(b->r, c, at, m);
        all = acts && all_around(f);
        if (acts)
            gate_reach(b->g, c, m, b->unknown);
    }
    if (all)
        memset(b->unknown, true, (size_t)b->r->prog->nq * sizeof *b->unknown);
}

/* Sets the gate to the sample, and computes sizes of positions and rates. */
static void stand_to_leave_out(balance *b, int64_t at)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    const double *q = r->q + at * nq, *v = r->v + at * nq;
    for (int i = 0; i < nq; i++) {
        b->q[i] = fabs(q[i]);
        b->v[i] = fmax(fabs(v[i]), at ? fabs(v[i - nq]) : 0);
    }
    gate_at(b->g, r->t[at], q, v);
    fastest_rates(b);
}

/* False: all dofs are skipped. */
static bool some_known(balance *b, int64_t at, double h, bool hit)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    bool stands = false;
    memset(b->unknown, 0, (size_t)nq * sizeof *b->unknown);
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_family *f = &r->prog->contact[c];
        bool impulses = hit && (f->relation != REL_GAP || f->of_rates || f->friction != FRICTION_NONE);
        if (r->contact[c].kept && !all_around(f) && !impulses)
            continue;
        if (!stands)
            stand_to_leave_out(b, at);
        stands = true;
        leave_out(b, c, at, h, impulses);
    }
    /* first-order equations hold at the end of the step, while reactions are means over the step */
    for (int i = 0; gate_reads_reactions(b->g) && i < nq; i++)
        b->unknown[i] |= first_order(r->prog, i);
    for (int i = 0; i < nq; i++)
        if (!b->unknown[i])
            return true;
    return false;
}

static void stand(balance *b, double t, const double *q, const double *v, const double *x, int end)
{
    int nq = b->r->prog->nq;
    gate_at(b->g, t, q, v);
    if (!sum_known(b->push, end))
        sum_clear(&b->push[end], nq);
    if (!sum_known(b->mass, end)) {
        sum_clear(&b->mass[end], nq);
        gate_mass_times(b->g, x, &b->mass[end]);
    }
    if (!sum_known(b->force, end) && !b->forces_stay) {
        sum_clear(&b->force[end], nq);
        gate_force(b->g, &b->force[end]);
        b->forces_stay = sum_known(b->force, 1);
    }
}

/* At the instant of sample `at`: forces, masses times x, and the reactions of sample `of`. */
static void stand_at(balance *b, int64_t at, int64_t of, const double *x, int end)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    gate_reactions(b->g, r, at);
    stand(b, r->t[at], r->q + at * nq, r->v + at * nq, x, end);
    if (!sum_known(b->push, end))
        pushes(b, of, &b->push[end]);
}

/* The same halfway between two samples, for backends with values at any time: at samples, where pieces meet,
   forces with kinks and turning slips have two values. */
static void stand_between(balance *b, int64_t at)
{
    const results *r = b->r;
    double t = 0.5 * (r->t[at - 1] + r->t[at]), rt[MAX_SLIP];
    for (int i = 0; i < r->prog->nq; i++) {
        b->q[i] = dense_now(r, (dense_item){ DENSE_DOF, i, 0, 0, 0 }, t);
        b->v[i] = dense_now(r, (dense_item){ DENSE_DOF, i, 1, 0, 0 }, t);
        b->change[i] = dense_now(r, (dense_item){ DENSE_DOF, i, 2, 0, 0 }, t);
        if (first_order(r->prog, i))
            b->change[i] = b->v[i];
    }
    stand(b, t, b->q, b->v, b->change, 0);
    for (size_t c = 0; c < r->prog->ncontact; c++)
        for (int64_t m = 0; m < r->contact[c].members; m++) {
            double rn = dense_now(r, (dense_item){ DENSE_RN, 0, 0, c, m }, t);
            for (int j = 0; j < r->contact[c].nslip; j++)
                rt[j] = dense_now(r, (dense_item){ DENSE_RT, j, 0, c, m }, t);
            bool rubs = any_of(rt, (size_t)r->contact[c].nslip);
            gate_at(b->g, t, b->q, b->v);
            gate_react(b->g, c, m, rn, rubs ? rt : NULL, &b->push[0]);
        }
}

static void enter(missed *m, int64_t at, double defect, double size)
{
    m->size = size > m->size ? size : m->size;
    if (!(defect <= m->by)) {
        m->by = defect;
        m->at = at;
    }
}

/* ---- an instant ---- */
/* Is there a slip so small that rounding decides its direction? */
static bool by_chance(const balance *b, int64_t at)
{
    for (size_t c = 0; c < b->r->prog->ncontact; c++) {
        const contact_result *x = &b->r->contact[c];
        for (int64_t m = 0; several(x) && m < x->members; m++) {
            int64_t place = at * x->members + m;
            if (x->status[place] == STATUS_SLIP && slip_of(x, place) <= BALANCE_SLOW * b->fastest[c])
                return true;
        }
    }
    return false;
}

static double terms_size(const balance *b, int i)
{
    return b->mass[0].size[i] + b->force[0].size[i] + b->push[0].size[i];
}

/* The three equations of a rotation belong to a turning frame, so they are compared together. Their size is
   at least the effect of turning on the momentum, which may cancel. */
static double rotation_size(balance *b, int32_t first, const double *v)
{
    double size = 0, speed = 0, momentum = 0;
    sum_clear(&b->rate, b->r->prog->nq);
    gate_mass_times(b->g, v, &b->rate);
    for (int k = first; k < first + 3; k++) {
        size = fmax(size, terms_size(b, k));
        speed = fmax(speed, fabs(v[k]));
        momentum = fmax(momentum, b->rate.size[k]);
    }
    return size + speed * momentum;
}

void balance_instant(balance *b, int64_t at)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    if (!b->instants)
        return;
    if (r->dense && (at == 0 || !(r->t[at] - r->t[at - 1] > BALANCE_SHORT * r->t_end)))
        return;
    if (r->dense && (by_chance(b, at) || by_chance(b, at - 1)))
        return;
    if (!some_known(b, at, at ? r->t[at] - r->t[at - 1] : 0, false))
        return;
    results_acc(r, at, b->change);
    for (int i = 0; i < nq; i++)
        if (first_order(r->prog, i))
            b->change[i] = r->v[at * nq + i];
    if (r->dense)
        stand_between(b, at);
    else
        stand_at(b, at, at, b->change, 0);
    for (int i = 0; i < nq; i++) {
        if (b->unknown[i])
            continue;
        double defect = fabs(b->mass[0].at[i] - b->force[0].at[i] - b->push[0].at[i]);
        int32_t first = r->prog->rotations.n ? turns_of(r->prog, i) : -1;
        double size = first < 0 ? terms_size(b, i)
                                : rotation_size(b, first, r->dense ? b->v : r->v + at * nq);
        enter(&b->dof[i], at, defect - ROUND_20 * size, size);
        b->ever[i] = true;
    }
}

/* ---- a step ---- */
/* Sets the gate to a time within the step, extrapolated from the sample at one end. An impact reverses the
   motion, so rows there need not lie between those of both ends. */
static void stand_near(balance *b, int64_t sample, double t)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    const double *q = r->q + sample * nq, *v = r->v + sample * nq;
    for (int i = 0; i < nq; i++) {
        bool turns = r->prog->rotations.n && turns_of(r->prog, i) >= 0;
        b->q[i] = q[i] + (turns ? 0 : (t - r->t[sample]) * v[i]);
    }
    gate_at(b->g, t, b->q, v);
}

/* Adds the impulses of the impacts between both samples and returns their number. They act on the rows at the
   time of the impact, as extrapolated from one end, and on the rows at that end. */
static size_t impulses(balance *b, int64_t at, double per, int end)
{
    const results *r = b->r;
    int64_t sample = at - 1 + end;
    size_t many = 0;
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_result *x = &r->contact[c];
        size_t k = b->next[c];
        while (k < x->impacts.n && x->impacts.at[k].t < r->t[at - 1])
            k++;
        b->next[c] = k;
        for (; k < x->impacts.n && x->impacts.at[k].t <= r->t[at]; k++, many++) {
            const impact *hit = &x->impacts.at[k];
            if (per == 0 || !(hit->t < r->t[at]))
                continue;
            if (!b->rows_stay)
                gate_at(b->g, r->t[sample], r->q + sample * r->prog->nq, r->v + sample * r->prog->nq);
            gate_react(b->g, c, hit->member, per * hit->impulse, NULL, &b->jolt_end[end]);
            if (!b->rows_stay)
                stand_near(b, sample, hit->t);
            gate_react(b->g, c, hit->member, per * hit->impulse, NULL, &b->jolt[end]);
        }
    }
    return many;
}

/* ---- between impacts of a step ---- */
typedef struct one_hit {
    double t;
    size_t c;
    const impact *what;
} one_hit;

static int hit_before(const void *a, const void *b)
{
    const one_hit *x = a, *y = b;
    return (x->t > y->t) - (x->t < y->t);
}

/* Impacts before the end of the step to the sample, in the order of time; returns their number. */
static size_t hits_of(const balance *b, int64_t at, one_hit *to, size_t most)
{
    const results *r = b->r;
    size_t n = 0;
    for (size_t c = 0; c < r->prog->ncontact; c++) {
        const contact_result *x = &r->contact[c];
        for (size_t k = b->next[c]; k < x->impacts.n && x->impacts.at[k].t < r->t[at] && n < most; k++)
            to[n++] = (one_hit){ x->impacts.at[k].t, c, &x->impacts.at[k] };
    }
    qsort(to, n, sizeof *to, hit_before);
    return n;
}

/* Extends the range between both ends by the forces at the current state of the gate. */
static void reach(balance *b, gate_sum *ends)
{
    const program *p = b->r->prog;
    for (int i = 0; i < p->nq; i++) {
        double x = b->acted.at[i], lo = fmin(ends[0].at[i], ends[1].at[i]),
               hi = fmax(ends[0].at[i], ends[1].at[i]);
        if (first_order(p, i) || (lo <= x && x <= hi))
            continue;
        ends[0].at[i] = fmin(lo, x);
        ends[1].at[i] = fmax(hi, x);
    }
}

/* The same for forces and masses times the change of rates at the time of an impact, where the motion
   reverses. */
static void instant_reach(balance *b)
{
    int nq = b->r->prog->nq;
    if (!sum_known(b->force, 1)) {
        sum_clear(&b->acted, nq);
        gate_force(b->g, &b->acted);
        reach(b, b->force);
    }
    if (!sum_known(b->mass, 1)) {
        sum_clear(&b->acted, nq);
        gate_mass_times(b->g, b->change, &b->acted);
        reach(b, b->mass);
    }
}

/* what reactions of the step are worth on the rows of there */
static void push_reach(balance *b, int64_t at)
{
    if (sum_known(b->push, 1))
        return;
    sum_clear(&b->acted, b->r->prog->nq);
    pushes(b, at, &b->acted);
    reach(b, b->push);
}

/* Changes the current rates by an impact, forwards or backwards. */
static void rates_over(balance *b, const one_hit *x, double sign)
{
    int nq = b->r->prog->nq;
    sum_clear(&b->acted, nq);
    gate_react(b->g, x->c, x->what->member, sign * x->what->impulse, NULL, &b->acted);
    for (int i = 0; i < nq; i++)
        if (b->diagonal[i] > 0)
            b->v[i] += b->acted.at[i] / b->diagonal[i];
    gate_at(b->g, x->t, b->q, b->v);
    instant_reach(b);
}

/* A path through a step, from one of its ends. */
typedef struct path {
    const one_hit *all; /* the impacts in the step, in order */
    size_t n;
    int64_t at;   /* the sample at the end of the step */
    bool forces;  /* rates follow from forces: the masses couple no dofs */
    bool presses; /* and from reactions */
} path;

/* The part of the step over which a stored reaction acts; 0: not at time t. A contact that did not push at
   the start of the step pushes after its first impact. */
static double part_pushed(const balance *b, const path *f, size_t c, int64_t m, double t)
{
    const results *r = b->r;
    const contact_result *x = &r->contact[c];
    double h = r->t[f->at] - r->t[f->at - 1];
    if (x->rn[(f->at - 1) * x->members + m] != 0)
        return 1;
    for (size_t k = 0; k < f->n; k++)
        if (f->all[k].c == c && f->all[k].what->member == m)
            return t > f->all[k].t ? (r->t[f->at] - f->all[k].t) / h : 0;
    return 1;
}

/* Adds forces and the reactions that act at t, on the rows of the current state. */
static void forces_at(balance *b, const path *f, double t)
{
    const results *r = b->r;
    sum_clear(&b->acted, r->prog->nq);
    gate_force(b->g, &b->acted);
    for (size_t c = 0; f->presses && c < r->prog->ncontact; c++) {
        const contact_result *x = &r->contact[c];
        for (int64_t m = 0; x->kept && m < x->members; m++) {
            size_t place = (size_t)(f->at * x->members + m), ns = (size_t)x->nslip;
            const double *rt = any_of(x->rt + place * ns, ns) ? x->rt + place * ns : NULL;
            double part = x->rn[place] != 0 || rt ? part_pushed(b, f, c, m, t) : 0;
            if (part > 0)
                gate_react(b->g, c, m, x->rn[place] / part, rt, &b->acted);
        }
    }
}

/* Moves the state from one time to another, by the rates at hand and the forces. */
static void go_on(balance *b, const path *f, double from, double to)
{
    double step = to - from;
    if (f->forces)
        forces_at(b, f, 0.5 * (from + to));
    for (int i = 0; i < b->r->prog->nq; i++) {
        bool turns = b->r->prog->rotations.n && turns_of(b->r->prog, i) >= 0;
        double by = f->forces && b->diagonal[i] > 0 ? step * b->acted.at[i] / b->diagonal[i] : 0;
        b->q[i] += turns ? 0 : step * (b->v[i] + 0.5 * by);
        b->v[i] += first_order(b->r->prog, i) ? 0 : by;
    }
    gate_at(b->g, to, b->q, b->v);
}

/* Does the mass matrix couple no dofs? */
static bool uncoupled(balance *b)
{
    int nq = b->r->prog->nq;
    for (int i = 0; i < nq; i++)
        b->fast[i] = 1;
    sum_clear(&b->rate, nq);
    gate_mass_times(b->g, b->fast, &b->rate);
    for (int i = 0; i < nq; i++)
        if (b->rate.size[i] > (1 + ROUND_20) * fabs(b->diagonal[i]))
            return false;
    return true;
}

/* Follows a path from one end, and extends forces, rows and masses by what they are on it. jolts: impulses on
   the rows where they acted. */
static void follow(balance *b, const path *f, int end, gate_sum *jolts)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    int64_t sample = f->at - 1 + end;
    double now = r->t[sample], h = r->t[f->at] - r->t[f->at - 1];
    memcpy(b->q, r->q + sample * nq, (size_t)nq * sizeof *b->q);
    memcpy(b->v, r->v + sample * nq, (size_t)nq * sizeof *b->v);
    gate_at(b->g, now, b->q, b->v);
    sum_clear(jolts, nq);
    for (size_t k = 0; k < f->n; k++) {
        const one_hit *x = &f->all[end ? f->n - 1 - k : k];
        go_on(b, f, now, x->t);
        push_reach(b, f->at);
        gate_react(b->g, x->c, x->what->member, x->what->impulse / h, NULL, jolts);
        rates_over(b, x, end ? -1 : 1);
        now = x->t;
    }
}

static void masses_at(balance *b, int64_t at)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    gate_at(b->g, r->t[at], r->q + at * nq, r->v + at * nq);
    memset(b->diagonal, 0, (size_t)nq * sizeof *b->diagonal);
    gate_mass_diagonal(b->g, b->diagonal);
}

/* A gap with pieces: at the place of an impact, rounding decides which of its rows is found. */
static bool any_pieces(const balance *b, const one_hit *all, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (kernel_has_pieces(&b->r->prog->contact[all[k].c].gap))
            return true;
    return false;
}

/* Around an impact within the step rates, the forces that read them and the rows of contacts need not lie
   between those of both ends: from either end they follow from impulses, forces and reactions. A whole step
   stores what it closes at its end as a reaction of the whole step: then paths without reactions count too.
 */
static void between_hits(balance *b, int64_t at)
{
    enum { MOST = 256 };
    one_hit all[MOST];
    bool known = sum_known(b->force, 1) && sum_known(b->mass, 1) && sum_known(b->push, 1);
    size_t n = known ? 0 : hits_of(b, at, all, MOST);
    for (int end = 0; n && end < 2; end++) {
        masses_at(b, at - 1 + end);
        bool sure = !b->rows_stay && n < MOST && uncoupled(b) && !any_pieces(b, all, n);
        follow(b, &(path){ all, n, at, sure, sure }, end, sure ? &b->jolt[end] : &b->followed);
    }
    for (int end = 0; n && b->r->count.at_once && end < 2; end++) {
        masses_at(b, at - 1 + end);
        bool sure = !b->rows_stay && n < MOST && uncoupled(b) && !any_pieces(b, all, n);
        follow(b, &(path){ all, n, at, false, false }, end, &b->followed);
        memcpy(b->acted.at, b->followed.at, (size_t)b->r->prog->nq * sizeof *b->acted.at);
        if (sure)
            reach(b, b->jolt);
    }
}

/* First-order equations hold at the end of the step. Their defect is counted over the step, as that of the
   others. */
static void first_order_rows(balance *b, int64_t at, double h)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    sum_clear(&b->rate, nq);
    gate_mass_times(b->g, r->v + at * nq, &b->rate);
    for (int i = 0; i < nq; i++) {
        if (!first_order(r->prog, i))
            continue;
        b->force[0].at[i] = b->force[1].at[i];
        for (int end = 0; end < 2; end++) {
            b->mass[end].at[i] = h * b->rate.at[i];
            b->mass[end].size[i] = h * b->rate.size[i];
        }
    }
}

/* A quantity at both ends of the step: a scheme may use any value between them. */
typedef struct between {
    double middle, half, size;
} between;

static inline between ends_of(const gate_sum *of, int i)
{
    return (between){ 0.5 * (of[0].at[i] + of[1].at[i]), 0.5 * fabs(of[0].at[i] - of[1].at[i]),
                      0.5 * (of[0].size[i] + of[1].size[i]) };
}

/* The range of the contributions of impulses to equation i. An impact at the start may precede the first
   sample; in whole steps, and with springs, impulses are contained in rn as well. In these cases each impulse
   may count or not. */
typedef struct range {
    double lo, hi;
} range;

static range impulses_of(const balance *b, int i, int64_t at, double h)
{
    const results *r = b->r;
    between j = ends_of(b->jolt, i);
    /* rows are known to first order there; the next order is a fraction of that */
    for (int end = 0; end < 2; end++)
        j.half = fmax(j.half, GATE_TURNED * fabs(b->jolt[end].at[i] - b->jolt_end[end].at[i]));
    bool unsure = r->count.at_once || at == 1 || r->promised.gives_way;
    range x = { h * (j.middle - j.half), h * (j.middle + j.half) };
    if (unsure) {
        x.lo = fmin(x.lo, 0.5 * h * (j.middle - j.size) - h * j.half);
        x.hi = fmax(x.hi, 0.5 * h * (j.middle + j.size) + h * j.half);
    }
    return x;
}

/* The defect of equation i over a step (by), beyond the range of impulses; the part of it that is no error
   (slack): the difference of both ends, and rounding; and the size of its terms. */
typedef struct lack {
    double by, slack, size;
} lack;

/* Does an impulse act on equation i in the step? */
static inline bool row_hit(const balance *b, int i)
{
    return b->hit && (b->jolt[0].size[i] != 0 || b->jolt[1].size[i] != 0 || b->jolt_end[0].size[i] != 0 ||
                      b->jolt_end[1].size[i] != 0);
}

/* Inlined: most equations have no impacts, and little of this remains for them. */
static inline __attribute__((always_inline)) lack step_lack(const balance *b, int i, int64_t at, double h,
                                                            bool is_hit)
{
    const results *r = b->r;
    between m = ends_of(b->mass, i), f = ends_of(b->force, i), p = ends_of(b->push, i);
    /* an impact in the step turns the motion round: rows may go a little beyond those of both ends */
    double beyond = b->hit ? 1 + 2 * GATE_TURNED : 1;
    double slack = m.half + h * (f.half + beyond * p.half), acts = f.size + p.size;
    double left = m.middle - h * (f.middle + p.middle), by = fabs(left);
    if (is_hit) {
        range hit = impulses_of(b, i, at, h);
        acts += ends_of(b->jolt, i).size;
        by = left > hit.hi ? left - hit.hi : left < hit.lo ? hit.lo - left : 0 * left;
    }
    double size = m.size + h * acts;
    double rounded = ROUND_20 * (size + b->rate.size[i]) + ROUND_2 * r->t[at] * acts;
    if (r->promised.gives_way) /* steps have the length that the tolerance permits */
        slack += slack + 100 * r->promised.tolerance * b->rate.size[i];
    return (lack){ by, slack + rounded, size };
}

/* The effect of a rotation of the frame by w h on the momentum, and on a change of momentum, taken at either
   end of the step. The rates of the end are in b->rate. */
typedef struct turn_size {
    double momentum, change;
} turn_size;

static turn_size turned_by(const balance *b, int32_t first, int64_t at, double h)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    double speed = 0, change = 0, momentum = 0;
    for (int k = first; k < first + 3; k++) {
        speed = fmax(speed, fmax(fabs(r->v[at * nq + k]), fabs(r->v[(at - 1) * nq + k])));
        change = fmax(change, ends_of(b->mass, k).size);
        momentum = fmax(momentum, b->rate.size[k]);
    }
    return (turn_size){ h * speed * momentum, h * speed * change };
}

/* The three equations of a rotation belong to a frame that turns during the step, so they are compared
   together. Their size is at least the effect of turning on the momentum, which may cancel. */
static double step_defect(const balance *b, int i, int64_t at, double h, double *size)
{
    int32_t first = b->r->prog->rotations.n ? turns_of(b->r->prog, i) : -1;
    lack all = step_lack(b, i, at, h, row_hit(b, i));
    for (int k = first; first >= 0 && k < first + 3; k++) {
        lack other = step_lack(b, k, at, h, row_hit(b, k));
        all.slack = fmax(all.slack, other.slack);
        all.size = fmax(all.size, other.size);
    }
    if (first >= 0) {
        turn_size turned = turned_by(b, first, at, h);
        all.slack += turned.change;
        all.size += turned.momentum;
    }
    *size = all.size;
    return all.by - all.slack;
}

/* Defects and sizes of all equations, without impacts and rotations. One loop over plain arrays, so that
   compilers vectorise it. */
static void plain_rows(const balance *b, int64_t at, double h, double *restrict defect, double *restrict size)
{
    for (int i = 0; i < b->r->prog->nq; i++) {
        lack x = step_lack(b, i, at, h, false);
        defect[i] = x.by - x.slack;
        size[i] = x.size;
    }
}

/* A reset in the step is not a force. One at its end may be recorded slightly later by rounding. */
static bool was_reset(balance *b, int64_t at)
{
    const results *r = b->r;
    double end = r->t[at] + ROUND_2 * fabs(r->t[at]);
    while (b->reset < r->count.resets.n && b->resets[b->reset] < r->t[at - 1])
        b->reset++;
    return b->reset < r->count.resets.n && b->resets[b->reset] <= end;
}

void balance_step(balance *b, int64_t at)
{
    const results *r = b->r;
    int nq = r->prog->nq;
    if (!b->steps || at == 0 || b->seen++ % b->each)
        return;
    double h = r->t[at] - r->t[at - 1];
    b->hit = impulses(b, at, 0, 0) > 0;
    /* the reactions that formulas read before and after an impact are not stored */
    if (!(h > 0) || was_reset(b, at) || (b->hit && gate_reads_reactions(b->g)) ||
        !some_known(b, at, h, b->hit))
        return;
    for (int i = 0; i < nq; i++)
        b->change[i] = r->v[at * nq + i] - r->v[(at - 1) * nq + i];
    for (int end = 0; end < 2; end++) {
        stand_at(b, at - 1 + end, r->promised.gives_way ? at - 1 + end : at, b->change, end);
        if (!b->hit)
            continue;
        sum_clear(&b->jolt[end], nq);
        sum_clear(&b->jolt_end[end], nq);
        impulses(b, at, 1 / h, end);
    }
    if (b->hit)
        between_hits(b, at);
    first_order_rows(b, at, h);
    bool turns = r->prog->rotations.n > 0;
    if (!turns)
        plain_rows(b, at, h, b->q, b->v);
    for (int i = 0; i < nq; i++) {
        if (b->unknown[i])
            continue;
        double size = b->v[i], defect = b->q[i];
        if (turns || row_hit(b, i))
            defect = step_defect(b, i, at, h, &size);
        /* impulses give no scale for forces */
        enter(&b->step[i], at, defect / h, b->hit ? 0 : size / h);
        b->ever[i] = true;
    }
}

/* ---- the run ---- */
static bool misses(balance *b, int i, int64_t at, double by)
{
    results *r = b->r;
    text t = { .a = r->a };
    text_printf(&t, "the equation of motion of %s does not hold at t = ", dof_name(r->prog, i, r->a));
    text_num(&t, r->t[at]);
    text_printf(&t, ": its defect is %.3g of its terms", by);
    return results_fail(r, mass_where(r->prog, i), t.at);
}

/* The least size for comparing the force on a dof: rounding of the forces on the other dofs, compared by
   their effect on the masses. */
static double least_force(balance *b, const missed *of, const double *mass)
{
    double most = 0;
    for (int i = 0; i < b->r->prog->nq; i++)
        if (mass[i] > 0)
            most = fmax(most, of[i].size / sqrt(mass[i]));
    return DOF_LEAST * most;
}

/* The change of the force on a dof by rounding of the positions: at rest in equilibrium there is nothing
   else. Computed from differences along a few directions, because changes of several bodies may cancel. */
static double rounded_force(balance *b, int i, int64_t at)
{
    enum { DIRECTIONS = 4 };
    const results *r = b->r;
    int nq = r->prog->nq;
    const double *q = r->q + at * nq, *v = r->v + at * nq;
    double most = 0;
    for (unsigned k = 0; k < DIRECTIONS; k++) {
        for (int end = 0; end < 2; end++) {
            for (int j = 0; j < nq; j++) {
                bool up = ((unsigned)j * 2654435761u >> (8 + k) & 1) == (unsigned)end;
                b->q[j] = q[j] * (up ? 1 + ROUND_ROOT : 1 - ROUND_ROOT);
            }
            sum_clear(&b->force[end], nq);
            gate_at(b->g, r->t[at], b->q, v);
            gate_force(b->g, &b->force[end]);
        }
        most = fmax(most, fabs(b->force[1].at[i] - b->force[0].at[i]) / (2 * ROUND_ROOT));
    }
    return ROUND_20 * most;
}

static bool within(balance *b, const missed *of, const double *mass, double most, bool report)
{
    double least = least_force(b, of, mass);
    for (int i = 0; i < b->r->prog->nq; i++) {
        double size = fmax(of[i].size, least * sqrt(fmax(mass[i], 0)));
        if (of[i].by <= 0 || (of[i].by > most * size && of[i].by <= rounded_force(b, i, of[i].at)))
            continue;
        if (report)
            b->r->residual = fmax(b->r->residual, of[i].by / size);
        if (!(of[i].by <= most * size))
            return misses(b, i, of[i].at, of[i].by / size);
    }
    return true;
}

bool balance_holds(balance *b)
{
    const results *r = b->r;
    double *mass = b->change;
    gate_at(b->g, r->t[0], r->q, r->v);
    memset(mass, 0, (size_t)r->prog->nq * sizeof *mass);
    gate_mass_diagonal(b->g, mass);
    return within(b, b->dof, mass, BALANCE_LOOSE, true) &&
           within(b, b->step, mass, BALANCE_LOOSE, !r->promised.gives_way);
}

/* Text: what was never checked, and why; NULL: every dof was checked. */
const char *balance_unchecked(const balance *b, arena *a)
{
    const results *r = b->r;
    int nq = r->prog->nq, left = 0;
    for (int i = 0; i < nq; i++)
        left += !b->ever[i];
    if (!left || r->samples < 2)
        return NULL;
    const char *why = !b->steps && !b->instants && r->dense == NULL && r->samples != r->count.steps + 1
                          ? "not all steps are stored"
                      : !b->steps && !b->instants ? "they depend on data that are not stored"
                                                  : "the forces on them are not stored";
    return left == nq ? arena_printf(a, "the equations of motion, as %s", why)
                      : arena_printf(a, "the equations of motion of %d of %d dofs, as %s", left, nq, why);
}
