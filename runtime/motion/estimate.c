#include "estimate.h"
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "base/tolerances.h"
#include "program/turns.h"
#include "rod/rod.h"

static int option_number(const backend *b, const char *name)
{
    for (int k = 0; k < b->noption; k++)
        if (!strcmp(b->option[k].name, name))
            return k;
    return -1;
}

bool estimate_wanted(const backend *b, const run_options *o)
{
    int k = option_number(b, "error");
    return k >= 0 && o->word[k] && !strcmp(o->word[k], "estimate");
}

const char *estimate_refused(const program *p)
{
    return p->field ? "'error' is an option for motions and rods; for fields the error is estimated from "
                      "three grids"
                    : NULL;
}

static bool ended_well(const results *r)
{
    return r->status == RUN_OK || r->status == RUN_STOPPED;
}

/* ---- another run ---- */
/* The step of a run, whether given or chosen. */
static double step_of(const run_options *o, int h, const results *r)
{
    return o->value[h] > 0 ? o->value[h] : r->duration / (double)(r->count.steps > 0 ? r->count.steps : 1);
}

/* Does the run have equal steps of a length h? Otherwise they follow from the tolerance. */
static bool steps_equal(const backend *b, const run_options *o, const results *r)
{
    int h = option_number(b, "h");
    bool chosen = !strcmp(b->name, "penalty") || (!strcmp(b->name, "inclusion") && !r->linear) ||
                  !strcmp(b->name, "events");
    if (h < 0 || (!strcmp(b->name, "penalty") && !r->prog->rod))
        return false;
    return !chosen || o->value[h] > 0 || r->prog->rod;
}

/* `times` as fine: steps shorter by that factor, or a tolerance that makes them so where errors of steps fall
   with h^3; rods have more elements, too */
static run_options finer(const backend *b, const run_options *o, const results *r, double times)
{
    run_options fine = *o;
    int h = option_number(b, "h"), tolerance = option_number(b, "tolerance");
    fine.checkpoint = NULL;
    fine.watch = NULL;
    fine.every = 0;
    fine.finer = times;
    if (r->prog->rod && !rod_moves(r->prog->rod))
        return fine;
    if (steps_equal(b, o, r))
        fine.value[h] = step_of(o, h, r) / times;
    else
        fine.value[tolerance] = fmax(fine.value[tolerance] / pow(times, 3), b->option[tolerance].lo);
    return fine;
}

static results *run_again(const backend *b, const run_options *o, const results *r, arena *a)
{
    results *other = results_new(a, r->prog);
    other->param = r->param;
    other->backend = b->name;
    b->run(r->prog, o, other);
    return other;
}

/* ---- difference of two runs ---- */
/* The angle between the two rotations at sample k. */
static double turns_apart(const results *r, const results *other, int32_t first, int64_t k)
{
    double A[9], B[9], rest[9], phi[3];
    rotation_of_vector(r->q + k * r->prog->nq + first, A);
    results_rotation(other, first, r->t[k], B);
    rotation_between(A, B, rest);
    rotation_vector(rest, phi);
    return sqrt(phi[0] * phi[0] + phi[1] * phi[1] + phi[2] * phi[2]);
}

/* Does the other run have a sample at t?  Values between samples have errors of their own. */
static bool sampled(const results *other, double t)
{
    int64_t lo = 0, hi = other->samples - 1;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo + 1) / 2;
        if (other->t[middle] <= t)
            lo = middle;
        else
            hi = middle - 1;
    }
    double before = fabs(t - other->t[lo]),
           after = lo + 1 < other->samples ? fabs(other->t[lo + 1] - t) : before;
    return fmin(before, after) <= FACTOR_SAME * fabs(t);
}

/* `between`: samples of r at which the other run has none count, too */
static double dofs_apart(const results *r, const results *other, bool between)
{
    enum { LOOKS = 20000 };
    int64_t stride = r->samples / LOOKS + 1;
    double most = 0;
    for (int64_t k = 0; k < r->samples && r->t[k] <= other->t_end; k += stride) {
        if (!between && !sampled(other, r->t[k]))
            continue;
        for (int32_t i = 0; i < r->prog->nq; i++)
            if (!r->prog->rotations.n || turns_of(r->prog, i) < 0)
                most = fmax(most, fabs(r->q[k * r->prog->nq + i] - results_q(other, i, r->t[k])));
        for (size_t i = 0; i < r->prog->rotations.n; i++)
            most = fmax(most, turns_apart(r, other, r->prog->rotations.at[i], k));
    }
    return most;
}

/* The largest distance of nodes at the end. */
static double rods_apart(const results *r, const results *other)
{
    const rod_result *x = r->rod, *y = other->rod;
    double most = 0;
    for (int i = 0; i < x->rp->nrod; i++)
        for (int k = 0; k < x->mesh[i].nn; k++) {
            double at[3];
            rod_at(&y->mesh[i], y->r, y->q, x->mesh[i].s[k], at, NULL);
            for (int j = 0; j < 3; j++)
                most = fmax(most, fabs(at[j] - x->r[3 * (x->mesh[i].first + k) + j]));
        }
    return most;
}

/* the largest dof: what rounding is relative to */
static double size_of(const results *r)
{
    double most = 0;
    for (int64_t k = 0; k < r->samples * r->prog->nq; k++)
        most = fmax(most, fabs(r->q[k]));
    return most;
}

/* ---- the error from two other runs ---- */
/* what a run finer by `times` sees of an error that falls with the power p of the step */
static double seen(double times, double p)
{
    return 1 - pow(times, -p);
}

/* Runs with resolutions finer by k and n differ from a run by dk and dn.  Returns the error of the run, or
   NAN if no power p from 1/2 to 4 fits both: then what the three runs show is by chance. */
static double by_order(double dk, double dn, double k, double n)
{
    double lo = 0.5, hi = 4, shown = dk / dn;
    if (!(shown >= seen(k, lo) / seen(n, lo) && shown <= seen(k, hi) / seen(n, hi)))
        return NAN;
    for (int half = 0; half < 50; half++) {
        double p = (lo + hi) / 2;
        if (seen(k, p) / seen(n, p) < shown)
            lo = p;
        else
            hi = p;
    }
    return dn / seen(n, lo);
}

typedef struct again {
    const backend *b;
    const run_options *o;
} again;

/* how far a run that is finer is from r; NAN: there is none */
static double apart_finer(results *r, const again *x, double times, arena *scratch)
{
    run_options o = finer(x->b, x->o, r, times);
    results *fine = run_again(x->b, &o, r, scratch);
    double far = NAN;
    if (ended_well(fine) && (!r->prog->rod || fine->rod))
        far = r->prog->rod ? rods_apart(r, fine) : dofs_apart(r, fine, !steps_equal(x->b, x->o, r));
    results_close(fine);
    return far;
}

/* Twice as many elements divide those of the run, so that its nodes are nodes again, where errors are least.
   What falls with h shows half of its error there, what falls with h^2 three quarters. */
static void by_halves(results *r, const void *ud, arena *scratch)
{
    r->estimate.error = 2 * apart_finer(r, ud, 2, scratch);
}

/* Steps of 2/3 and 1/3 end at other times than those of the run.  Halves would not do: a change that is seen
   at the end of a step is seen at the same time again in every second case, and its error shows in no
   difference. */
static void by_finer(results *r, const void *ud, arena *scratch)
{
    const again *x = ud;
    const double k = 1.5, n = 3;
    double dk = apart_finer(r, x, k, scratch), dn = isnan(dk) ? NAN : apart_finer(r, x, n, scratch),
           size = size_of(r);
    if (dk <= ROUND_500 * size && dn <= ROUND_500 * size)
        r->estimate.error = 2 * fmax(fmax(dk, dn), ROUND_UNIT * size);
    else
        r->estimate.error = by_order(dk, dn, k, n);
    if (isnan(r->estimate.error) && estimate_wanted(x->b, x->o))
        r->estimate.why = isnan(dk) || isnan(dn) ? "a run with a finer resolution failed"
                                                 : "two finer runs do not show with which order it falls";
}

/* ---- the estimate that is made by default ---- */
/* Does a contact open, close, stick or slip during the run? */
static bool changes(const results *r)
{
    bool any = r->count.resets.n > 0;
    for (size_t c = 0; c < r->prog->ncontact && !any; c++) {
        const contact_result *x = &r->contact[c];
        any = x->impacts.n > 0 || !x->kept;
        for (int64_t k = x->members; !any && k < r->samples * x->members; k++)
            any = x->status[k] != x->status[k - x->members];
    }
    return any;
}

/* Runs with 2 h and 4 h cost less than the run itself. The three runs show the order of convergence, if there
   is one, and with it the error. */
static void by_coarser(results *r, const void *ud, arena *scratch)
{
    const again *x = ud;
    run_options o = *x->o;
    int h = option_number(x->b, "h");
    o.checkpoint = NULL;
    o.value[h] = 2 * step_of(x->o, h, r);
    results *two = run_again(x->b, &o, r, scratch);
    o.value[h] *= 2;
    results *four = ended_well(two) ? run_again(x->b, &o, r, scratch) : NULL;
    if (four && ended_well(four)) {
        double last = dofs_apart(two, r, false), first = dofs_apart(four, two, false),
               falls = last > 0 ? first / last : 0;
        if (falls > 1.7 && falls < 5)
            r->estimate.error = last * fmin(1, 1.2 / (falls - 1));
    }
    results_close(two);
    if (four)
        results_close(four);
}

/* numbers that a small run computes: equal steps, all of them kept, more than a few so that an order shows;
   INFINITY for other runs */
static double small_size(const backend *b, const run_options *o, const results *r)
{
    enum { FEW = 64 };
    const program *p = r->prog;
    int k = option_number(b, "error");
    double members = 0;
    if (k < 0 || o->word[k] || !r->cut || r->count.steps < FEW || r->samples != r->count.steps + 1)
        return INFINITY;
    for (size_t c = 0; c < p->ncontact; c++)
        members += (double)index_members(&p->contact[c].over);
    return (double)r->count.steps * (p->nq + members);
}

/* What a change of a contact leaves depends on where in a step it is, which steps of twice the length do not
   show: such runs are compared with finer ones, which cost 4.5 times as much as the run itself. */
void estimate_error(const backend *b, const run_options *o, results *r)
{
    enum { NUMBERS = 20000, NUMBERS_CHANGING = 4500 };
    again x = { b, o };
    if (!ended_well(r))
        return;
    bool changing = changes(r), wanted = estimate_wanted(b, o);
    double size = small_size(b, o, r);
    if (changing && r->count.at_once) {
        r->estimate.why = wanted ? "contacts change within whole steps, at times that follow no order" : NULL;
        return;
    }
    if (wanted || (changing && size <= NUMBERS_CHANGING))
        results_scratch(r, r->prog->rod ? by_halves : by_finer, &x);
    else if (!changing && size <= NUMBERS)
        results_scratch(r, by_coarser, &x);
}
