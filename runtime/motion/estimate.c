#include "estimate.h"
#include <math.h>
#include <string.h>
#include "base/rotation.h"
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

/* Options of a run that is twice as fine: half the step, or the tolerance that halves steps whose errors fall
   with h^3. Rods also get twice as many elements. */
static run_options finer(const backend *b, const run_options *o, const results *r)
{
    run_options fine = *o;
    int h = option_number(b, "h"), tolerance = option_number(b, "tolerance");
    fine.checkpoint = NULL;
    fine.watch = NULL;
    fine.every = 0;
    fine.finer = true;
    if (r->prog->rod && !rod_moves(r->prog->rod))
        return fine;
    if (steps_equal(b, o, r))
        fine.value[h] = step_of(o, h, r) / 2;
    else
        fine.value[tolerance] = fmax(fine.value[tolerance] / 8, b->option[tolerance].lo);
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

static double dofs_apart(const results *r, const results *other)
{
    enum { LOOKS = 20000 };
    int64_t stride = r->samples / LOOKS + 1;
    double most = 0;
    for (int64_t k = 0; k < r->samples && r->t[k] <= other->t_end; k += stride) {
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

static double apart(const results *r, const results *other)
{
    return r->prog->rod ? rods_apart(r, other) : dofs_apart(r, other);
}

typedef struct again {
    const backend *b;
    const run_options *o;
} again;

/* The error is 4/3 of the difference if it falls with h^2, and twice the difference if it falls with h, as it
   may when contacts open and close. Twice the difference bounds both, with a factor of 1.5 at most (2 if it
   falls faster). */
static void by_finer(results *r, const void *ud, arena *scratch)
{
    const again *x = ud;
    run_options o = finer(x->b, x->o, r);
    results *fine = run_again(x->b, &o, r, scratch);
    if (ended_well(fine) && (!r->prog->rod || fine->rod))
        r->error = 2 * apart(r, fine);
    results_close(fine);
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
        double last = dofs_apart(two, r), first = dofs_apart(four, two), falls = last > 0 ? first / last : 0;
        if (falls > 1.7 && falls < 5)
            /* last, if the error falls with h; a third of it, if with h^2 */
            r->error = last * fmin(1, 1.2 / (falls - 1));
    }
    results_close(two);
    if (four)
        results_close(four);
}

/* Is the estimate cheap? Only for small runs with equal steps, all stored, and with enough steps to show an
   order. */
static bool is_cheap(const backend *b, const run_options *o, const results *r)
{
    enum { NUMBERS = 20000, FEW = 64 };
    const program *p = r->prog;
    int k = option_number(b, "error");
    double members = 0;
    if (k < 0 || o->word[k] || !r->cut)
        return false;
    /* within whole steps, the time at which a contact changes follows no order, so three runs prove nothing
     */
    if (r->count.at_once && changes(r))
        return false;
    for (size_t c = 0; c < p->ncontact; c++)
        members += (double)index_members(&p->contact[c].over);
    return r->count.steps >= FEW && r->samples == r->count.steps + 1 &&
           (double)r->count.steps * (p->nq + members) <= NUMBERS;
}

void estimate_error(const backend *b, const run_options *o, results *r)
{
    again x = { b, o };
    if (!ended_well(r))
        return;
    if (estimate_wanted(b, o))
        results_scratch(r, by_finer, &x);
    else if (is_cheap(b, o, r))
        results_scratch(r, by_coarser, &x);
}
