/* session_verify: saved results against their model.  Gaps, slips, cones and energies are computed again from
   the columns t, dofs and rates, by the kernels of the model alone (gate.h). */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "motion/gate.h"
#include "program/system.h"
#include "session.h"
#include "base/tolerances.h"

enum {
    GAP,
    PENETRATION,
    RATE,
    PULL,
    DISTANCE,
    CONE,
    SLIDE,
    SLIP,
    ENERGY,
    BALANCE,
    MOTION,
    START,
    FINITE,
    UNCHECKED,
    KINDS
};
static const char *const kinds[KINDS] = { [GAP] = "gap",
                                          [PENETRATION] = "penetration",
                                          [RATE] = "rate",
                                          [PULL] = "pull",
                                          [DISTANCE] = "complementarity",
                                          [CONE] = "cone",
                                          [SLIDE] = "sliding",
                                          [SLIP] = "slip",
                                          [ENERGY] = "energy",
                                          [BALANCE] = "books",
                                          [MOTION] = "motion",
                                          [START] = "start",
                                          [FINITE] = "not finite",
                                          [UNCHECKED] = "not checked" };

/* The columns of a constraint; members that were not saved have NULL. */
typedef struct saved {
    const double **gap, **rn, **rt, **slip; /* [member], rt and slip [member*nslip + k] */
    double force;                           /* the largest normal force */
} saved;

typedef struct verify {
    session *s;
    const program *p;
    gate *g;
    const cdl_numbers *column;
    size_t ncolumn, rows;
    const double *t, **q, **v;
    const double *energy, *work, *dissipated, *drift;
    saved *contact;
    gate_shapes *shapes; /* NULL: no pairs of them */
    bool *plain;         /* for each family: it bounds the distance of its shapes without further terms */
    double *sizes, *speeds, *now, *rates, *near, *row;
    cdl_finding *found; /* [KINDS] */
} verify;

/* ---- columns ---- */
/* Has a column the base name, and that many primes?  Both "p'[2]" and "p[2]'" are rates of p. */
static bool is_of(const char *name, const char *base, int primes)
{
    size_t n = strlen(base);
    if (strncmp(name, base, n))
        return false;
    name += n;
    bool own = !*name || *name == '[' || *name == '\'';
    for (const char *x = name; *x; x++)
        primes -= *x == '\'';
    return own && primes == 0 && !strchr(name, '.');
}

/* names but for their primes */
static bool same_element(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "'");
        b += strspn(b, "'");
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* u[1], u[2], then u[1] once more; arrays have one name for all that they hold */
static bool there_before(const verify *w, size_t k, const char *base, int primes)
{
    for (size_t i = 0; i < k && strchr(w->column[k].name, '['); i++)
        if (is_of(w->column[i].name, base, primes) && same_element(w->column[i].name, w->column[k].name))
            return true;
    return false;
}

/* the elements of a dof, in order; further columns are checked for duplicates */
static size_t columns_of(const verify *w, const char *base, int primes, const double **to, size_t room)
{
    size_t n = 0, all = 0;
    for (size_t k = 0; k < w->ncolumn; k++)
        all += is_of(w->column[k].name, base, primes);
    for (size_t k = 0; k < w->ncolumn; k++) {
        if (!is_of(w->column[k].name, base, primes) || (all > room && there_before(w, k, base, primes)))
            continue;
        if (n < room)
            to[n] = w->column[k].at;
        n++;
    }
    return n;
}

static const double *column_named(const verify *w, const char *name)
{
    for (size_t k = 0; k < w->ncolumn; k++)
        if (!strcmp(w->column[k].name, name))
            return w->column[k].at;
    return NULL;
}

/* Shapes that touch in several points have results for all of these together: the least gap, sums of forces.
 */
static int64_t points_of(const verify *w, size_t c)
{
    return w->p->contact[c].slots > 0 ? w->p->contact[c].slots : 1;
}

static int64_t members_of(const verify *w, size_t c)
{
    return gate_members(w->g, c) / points_of(w, c);
}

/* without the index of its point */
static const char *member_name(const verify *w, size_t c, int64_t m)
{
    const contact_family *f = &w->p->contact[c];
    const char *name = gate_name(w->g, c, m * points_of(w, c), w->s->tmp);
    if (!f->slots || f->nindex > f->over.n)
        return name;
    const char *comma = strrchr(name, ','), *bracket = strrchr(name, '[');
    if (!bracket)
        return name;
    return comma > bracket ? arena_printf(w->s->tmp, "%.*s]", (int)(comma - name), name)
                           : arena_printf(w->s->tmp, "%.*s", (int)(bracket - name), name);
}

/* all members of a family in order, or single ones by their names */
static const double **member_columns(verify *w, size_t c, const char *what, int each)
{
    int64_t members = members_of(w, c);
    size_t all = (size_t)members * (size_t)each, n = 0;
    const char *name = w->p->contact[c].name;
    const double **to = arena_array(w->s->tmp, const double *, all + 1);
    for (size_t k = 0; k < w->ncolumn; k++) {
        const char *x = w->column[k].name, *dot = strrchr(x, '.');
        size_t len = strlen(what);
        if (!dot || strncmp(dot + 1, what, len) || (dot[1 + len] && dot[1 + len] != '['))
            continue;
        size_t base = (size_t)(dot - x);
        if (base == strlen(name) && !strncmp(x, name, base) && n < all)
            to[n++] = w->column[k].at;
        for (int64_t m = 0; members > 1 && m < members; m++) {
            const char *one = member_name(w, c, m);
            if (base != strlen(one) || strncmp(x, one, base))
                continue;
            for (int j = 0; j < each; j++)
                if (!to[m * each + j]) {
                    to[m * each + j] = w->column[k].at;
                    break;
                }
        }
    }
    return to;
}

/* Converts nine columns of each rotation to its rotation vector; returns the number of rotations found. */
static size_t rotations_of(verify *w, const char *name, const double **to, size_t n)
{
    const double **entry = arena_array(w->s->tmp, const double *, 3 * n + 1);
    if (columns_of(w, name, 0, entry, 3 * n) != 3 * n)
        return 0;
    for (size_t i = 0; i < n; i += 3) {
        double *phi[3], R[9], now[3];
        for (int k = 0; k < 3; k++)
            to[i + (size_t)k] = phi[k] = arena_array(w->s->tmp, double, (size_t)w->rows + 1);
        for (int64_t row = 0; row < (int64_t)w->rows; row++) {
            for (int k = 0; k < 9; k++)
                R[k] = entry[3 * i + (size_t)k][row];
            rotation_vector(R, now);
            for (int k = 0; k < 3; k++)
                phi[k][row] = rotation_defect(R) > ROTATION_SLACK ? NAN : now[k];
        }
    }
    return n;
}

/* the columns of n dofs with one name, from place `at` on */
static void dof_columns(verify *w, const char *name, size_t at, size_t n, span where)
{
    size_t found = turns_of(w->p, (int32_t)at) >= 0 ? rotations_of(w, name, w->q + at, n)
                                                    : columns_of(w, name, 0, w->q + at, n);
    if (found != n)
        diag_error(w->s->d, DIAG_NOT_SUPPORTED, where, "the saved results do not hold '%s': save t, %s, %s'",
                   name, name, name);
    if (columns_of(w, name, 1, w->v + at, n) != n)
        w->v[at] = NULL;
}

/* "low.p" of "low.p[2]" */
static const char *without_element(const verify *w, size_t dof)
{
    const char *name = dof_name(w->p, (int)dof, w->s->tmp), *bracket = strrchr(name, '[');
    size_t n = strlen(name);
    return n && name[n - 1] == ']' ? arena_printf(w->s->tmp, "%.*s", (int)(bracket - name), name) : name;
}

/* dofs of parts, by their names */
static void part_columns(verify *w, const bool *known)
{
    size_t nq = (size_t)w->p->nq, n = 1;
    for (size_t i = 0; i < nq && !w->s->d->errors; i += n) {
        const char *name = without_element(w, i);
        for (n = 1; !known[i] && i + n < nq && !known[i + n];)
            if (!strcmp(without_element(w, i + n), name))
                n++;
            else
                break;
        if (!known[i])
            dof_columns(w, name, i, n, SPAN_NONE);
    }
}

static bool columns_read(verify *w)
{
    const program *p = w->p;
    size_t nq = (size_t)p->nq;
    bool *known = arena_array(w->s->tmp, bool, nq + 1);
    w->q = arena_array(w->s->tmp, const double *, nq + 1);
    w->v = arena_array(w->s->tmp, const double *, nq + 1);
    w->t = column_named(w, "t");
    for (size_t i = 0; i < p->dofs.n; i++) {
        const dof_info *d = &p->dofs.at[i];
        dof_columns(w, d->name, (size_t)d->at, (size_t)d->size, d->where);
        for (int32_t k = 0; k < d->size; k++)
            known[d->at + k] = true;
    }
    if (!w->t)
        diag_error(w->s->d, DIAG_NOT_SUPPORTED, SPAN_NONE, "the saved results do not hold the column t");
    part_columns(w, known);
    if (w->s->d->errors)
        return false;
    bool rates = true;
    for (size_t i = 0; i < nq; i++)
        rates = rates && w->v[i];
    if (!rates)
        w->v = NULL;
    w->energy = column_named(w, "energy");
    w->work = column_named(w, "work");
    w->dissipated = column_named(w, "dissipated");
    w->drift = column_named(w, "drift");
    w->contact = arena_array(w->s->tmp, saved, p->ncontact + 1);
    for (size_t c = 0; c < p->ncontact; c++) {
        int nslip = p->contact[c].nslip > 0 ? p->contact[c].nslip : 1;
        saved *x = &w->contact[c];
        *x = (saved){ member_columns(w, c, "gap", 1), member_columns(w, c, "rn", 1),
                      member_columns(w, c, "rt", nslip), member_columns(w, c, "slip", nslip), 0 };
        for (int64_t m = 0; m < members_of(w, c); m++)
            for (size_t k = 0; x->rn[m] && k < w->rows; k++)
                x->force = fmax(x->force, fabs(x->rn[m][k]));
    }
    return true;
}

/* ---- findings ---- */
static void find(verify *w, int kind, double off, double allowed, size_t row, const char *where)
{
    cdl_finding *f = &w->found[kind];
    double ratio = allowed > 0 ? off / allowed
                   : off > 0   ? INFINITY
                               : 0,
           so_far = f->allowed > 0 ? f->worst / f->allowed
                    : f->worst > 0 ? INFINITY
                                   : 0;
    if (f->where && !(ratio > so_far) && !isnan(off))
        return;
    *f = (cdl_finding){ kinds[kind], arena_strdup(w->s->answer, where), off, allowed, row };
}

/* values of a row, into now and rates */
static void stand_at(verify *w, size_t k)
{
    for (int i = 0; i < w->p->nq; i++) {
        w->now[i] = w->q[i][k];
        w->rates[i] = w->v ? w->v[i][k] : 0;
    }
    gate_at(w->g, w->t[k], w->now, w->rates);
    if (w->shapes)
        gate_place(w->g, w->shapes);
}

static double length_of(const double *const *x, int64_t m, int n, size_t k)
{
    double s = 0;
    for (int j = 0; j < n; j++)
        s = hypot(s, x[m * n + j][k]);
    return s;
}

static bool have(const double *const *x, int64_t m, int n)
{
    for (int j = 0; j < n; j++)
        if (!x[m * n + j])
            return false;
    return true;
}

/* It slid on from the row before: then friction is at its bound.  What rolls slips by rounding of its speeds.
 */
static bool slides_on(const saved *x, int64_t m, int n, size_t k, double speed)
{
    double along = 0, least = GATE_LOOSE * speed;
    if (k == 0 || !have(x->slip, m, n))
        return false;
    for (int j = 0; j < n; j++)
        along += x->slip[m * n + j][k] * x->slip[m * n + j][k - 1];
    return along > least * least;
}

static void check_member(verify *w, size_t c, int64_t m, double gap, size_t k)
{
    const contact_family *f = &w->p->contact[c];
    const saved *x = &w->contact[c];
    int n = f->nslip > 0 ? f->nslip : 1;
    const char *name = gate_name(w->g, c, m, w->s->tmp);
    double length = gate_length(w->g, c, m, w->sizes), small = GATE_LOOSE * x->force + SIZE_LEAST;
    find(w, PENETRATION, f->relation == REL_BILATERAL ? fabs(gap) : fmax(-gap, 0),
         GATE_LOOSE * length + GATE_GAP_LEAST, k, name);
    if (x->gap[m])
        find(w, GAP, fabs(x->gap[m][k] - gap), GATE_SAME * length + GATE_GAP_SAVED, k, name);
    double speed = 0;
    if (w->v && f->nslip > 0 && have(x->slip, m, n)) {
        double slip[MAX_SLIP], off = 0;
        if (gate_slip(w->g, c, m, slip, &speed)) {
            for (int j = 0; j < n; j++)
                off = hypot(off, slip[j] - x->slip[m * n + j][k]);
            find(w, SLIP, off,
                 GATE_SAME * gate_length(w->g, c, m, w->speeds) +
                     GATE_SAME * (speed + length_of(x->slip, m, n, k)) + GATE_GAP_LEAST,
                 k, name);
        }
    }
    if (!x->rn[m])
        return;
    double rn = x->rn[m][k];
    if (f->relation == REL_GAP) {
        find(w, PULL, fmax(-rn - gate_adhesion(w->g, c, m), 0), small, k, name);
        if (rn > small && w->v) {
            for (int i = 0; i < w->p->nq; i++)
                w->near[i] = fmax(fabs(w->v[i][k]), fabs(w->v[i][k ? k - 1 : 0]));
            double step = k ? w->t[k] - w->t[k - 1] : 0;
            find(w, DISTANCE, fmax(gap, 0),
                 GATE_GAP_LEAST + 1000 * GATE_LOOSE * length + 2 * step * gate_length(w->g, c, m, w->near), k,
                 name);
        }
    }
    if (f->nslip > 0 && gate_knows_bound(w->g, c) && have(x->rt, m, n)) {
        double rt = length_of(x->rt, m, n, k), most;
        bool slides = slides_on(x, m, n, k, speed);
        most = gate_bound(w->g, c, m, rn, slides);
        find(w, CONE, fmax(rt - most, 0), small, k, name);
        if (rn > small && slides)
            find(w, SLIDE, fabs(rt - most), small, k, name);
    }
}

/* How far a member came from row k - 1 to k at most. */
static double way_to(verify *w, size_t c, int64_t m, size_t k)
{
    double step = k ? w->t[k] - w->t[k - 1] : 0;
    for (int i = 0; w->v && i < w->p->nq; i++)
        w->near[i] = fmax(fabs(w->v[i][k]), fabs(w->v[i][k ? k - 1 : 0]));
    return w->v ? step * gate_length(w->g, c, m, w->near) : INFINITY;
}

/* Shapes that touch in several points: where they are, and all of their reactions together.  gap: the least;
   exact: what the saved one may be off by; apart: where they may still push. */
static void check_joined(verify *w, size_t c, int64_t m, shapes_apart s, double exact, double apart, size_t k)
{
    const contact_family *f = &w->p->contact[c];
    const saved *x = &w->contact[c];
    const char *name = member_name(w, c, m);
    int n = f->nslip > 0 ? f->nslip : 1;
    int64_t points = points_of(w, c), first = m * points;
    double small = GATE_LOOSE * x->force + SIZE_LEAST;
    find(w, PENETRATION, fmax(-s.gap, 0), GATE_LOOSE * s.size + GATE_GAP_LEAST, k, name);
    /* of shapes that are far apart a bound is kept */
    if (x->gap[m] && s.gap < s.size)
        find(w, GAP, fabs(x->gap[m][k] - s.gap), exact, k, name);
    if (!x->rn[m])
        return;
    double rn = x->rn[m][k];
    find(w, PULL, fmax(-rn - (double)points * gate_adhesion(w->g, c, first), 0), small, k, name);
    if (rn > small)
        find(w, DISTANCE, fmax(s.gap, 0), apart, k, name);
    if (f->nslip > 0 && gate_knows_bound(w->g, c) && have(x->rt, m, n)) {
        double most = (double)points * gate_bound(w->g, c, first, rn / (double)points, false);
        find(w, CONE, fmax(length_of(x->rt, m, n, k) - most, 0), small, k, name);
    }
}

/* corners of a shape, each with a gap of its own */
static void check_corners(verify *w, size_t c, int64_t m, const double *gap, size_t k)
{
    int64_t points = points_of(w, c), first = m * points, least = first;
    for (int64_t i = first; i < first + points; i++)
        least = gap[i] < gap[least] ? i : least;
    double length = gate_length(w->g, c, least, w->sizes);
    shapes_apart s = { .gap = gap[least], .size = length };
    check_joined(w, c, m, s, GATE_SAME * length + GATE_GAP_SAVED,
                 GATE_GAP_LEAST + 1000 * GATE_LOOSE * length + 2 * way_to(w, c, least, k), k);
}

/* Two shapes: their gap is that of the state, what pushes was held during the step to it. */
static void check_pairs(verify *w, size_t c, size_t k)
{
    const contact_family *f = &w->p->contact[c];
    int32_t index[MAX_INDEX] = { 0 };
    int64_t m = 0;
    for (bool any = index_first(&f->over, index); any; any = index_next(&f->over, index)) {
        if (index[f->over.n - 1] != 1)
            continue;
        shapes_apart s = gate_shapes_pair(w->shapes, c, index);
        check_joined(w, c, m++, s, GATE_LOOSE * s.size, 1000 * GATE_LOOSE * s.size + 2 * s.way, k);
    }
}

/* What bounds rates holds, and pushes only at its bound: reactions of steps are means over the step. */
static void check_rate(verify *w, size_t c, int64_t m, size_t k)
{
    const contact_family *f = &w->p->contact[c];
    const saved *x = &w->contact[c];
    const char *name = gate_name(w->g, c, m, w->s->tmp);
    double rate = gate_row(w->g, c, m, w->row), size = fabs(rate), within = 0,
           small = GATE_LOOSE * x->force + SIZE_LEAST;
    for (int i = 0; i < w->p->nq; i++) {
        rate += w->row[i] * w->v[i][k];
        size += fabs(w->row[i]) * w->speeds[i];
        within += k ? fabs(w->row[i] * (w->v[i][k] - w->v[i][k - 1])) : 0;
    }
    find(w, RATE, f->relation == REL_BILATERAL ? fabs(rate) : fmax(-rate, 0),
         GATE_LOOSE * size + GATE_GAP_LEAST, k, name);
    if (x->gap[m])
        find(w, GAP, fabs(x->gap[m][k] - rate), GATE_SAME * size + GATE_GAP_SAVED, k, name);
    if (!x->rn[m] || f->relation != REL_GAP)
        return;
    find(w, PULL, fmax(-x->rn[m][k], 0), small, k, name);
    if (x->rn[m][k] > small)
        find(w, DISTANCE, fmax(rate, 0), GATE_GAP_LEAST + 1000 * GATE_LOOSE * size + 2 * within, k, name);
}

/* Numbers of constraints that were saved are numbers. */
static void check_finite(verify *w, size_t c, size_t k)
{
    int n = w->p->contact[c].nslip > 0 ? w->p->contact[c].nslip : 1;
    const saved *x = &w->contact[c];
    const double **of[] = { x->gap, x->rn, x->rt, x->slip };
    for (int64_t m = 0; m < members_of(w, c); m++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < (i < 2 ? 1 : n); j++) {
                const double *column = i < 2 ? of[i][m] : of[i][m * n + j];
                if (column && !isfinite(column[k]))
                    find(w, FINITE, INFINITY, 0, k, member_name(w, c, m));
            }
}

/* A motion that begins at t = 0 must have the initial values of the model, except for projections onto
   constraints. */
static void check_start(verify *w)
{
    if (!w->rows || w->t[0] != 0)
        return;
    gate_initial(w->g, w->now, w->rates);
    for (int i = 0; i < w->p->nq; i++)
        if (turns_of(w->p, i) < 0)
            find(w, START, fabs(w->q[i][0] - w->now[i]), START_MOVED * w->sizes[i] + GATE_GAP_LEAST, 0,
                 dof_name(w->p, i, w->s->tmp));
}

static void check_row(verify *w, size_t k)
{
    stand_at(w, k);
    for (int i = 0; i < w->p->nq; i++)
        if (!isfinite(w->now[i]) || !isfinite(w->rates[i]) || !isfinite(w->t[k]))
            find(w, FINITE, INFINITY, 0, k, "a dof or its rate");
    for (size_t c = 0; c < w->p->ncontact; c++) {
        check_finite(w, c, k);
        for (int64_t m = 0; w->v && gate_knows_rate(w->g, c) && m < gate_members(w->g, c); m++)
            check_rate(w, c, m, k);
        if (w->plain[c])
            check_pairs(w, c, k);
        if (!gate_knows_gap(w->g, c))
            continue;
        const double *gap = gate_gaps(w->g, c);
        for (int64_t m = 0; m < members_of(w, c); m++)
            if (w->p->contact[c].slots)
                check_corners(w, c, m, gap, k);
            else
                check_member(w, c, m, gap[m], k);
    }
}

/* Energies of the states; work, dissipation and drift add up to them. */
static void check_energies(verify *w)
{
    double top = 0, first = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < w->rows; k++) {
            stand_at(w, k);
            double is = gate_energy(w->g).is, all = gate_audited(w->g).is;
            top = fmax(top, fmax(fabs(is), w->dissipated ? fabs(w->dissipated[k]) : 0));
            if (pass == 0)
                continue;
            if (w->energy)
                find(w, ENERGY, fabs(w->energy[k] - is), GATE_SAME * top + SIZE_LEAST, k, "energy");
            if (!w->work || !w->dissipated || !w->drift)
                continue;
            double rest = all - w->work[k] + w->dissipated[k] - w->drift[k];
            if (k == 0)
                first = rest;
            find(w, BALANCE, fabs(rest - first), GATE_BOOKS * top + SIZE_LEAST, k, "work, dissipated, drift");
        }
}

/* Positions follow from rates: over a step, by h (v0 + v1)/2 up to h |v1 - v0|. If more than one row in ten
   violates this, samples are too far apart for this check. */
static void check_motion(verify *w)
{
    for (int i = 0; i < w->p->nq; i++) {
        size_t off = 0;
        if (turns_of(w->p, i) >= 0)
            continue; /* rates of a rotation are not those of its rotation vector */
        for (int pass = 0; pass < 2; pass++) {
            if (pass && off * 10 > w->rows) {
                const char *name = arena_printf(w->s->tmp, "the motion of %s: rows too far apart, or wrong",
                                                dof_name(w->p, i, w->s->tmp));
                find(w, UNCHECKED, (double)off, (double)w->rows, 0, name);
                break;
            }
            for (size_t k = 1; k < w->rows; k++) {
                double h = w->t[k] - w->t[k - 1], v0 = w->v[i][k - 1], v1 = w->v[i][k];
                double miss = fabs(w->q[i][k] - w->q[i][k - 1] - h * (v0 + v1) / 2);
                double before = k > 1 ? fabs(v0 - w->v[i][k - 2]) : 0,
                       after = k + 1 < w->rows ? fabs(w->v[i][k + 1] - v1) : 0;
                double allowed = h * (fabs(v1 - v0) + fmax(before, after)) + GATE_LOOSE * w->sizes[i] +
                                 GATE_GAP_LEAST;
                if (pass == 0)
                    off += miss > allowed;
                else
                    find(w, MOTION, miss, allowed, k, dof_name(w->p, i, w->s->tmp));
            }
        }
    }
}

static const ast *model_of(session *s, const char *name)
{
    const ast *found = NULL;
    for (size_t k = 0; k < s->main->order.n; k++) {
        const def *d = s->main->order.at[k];
        if (d->kind == DEF_MODEL && (!name || !strcmp(d->name, name)))
            found = d->at;
    }
    return found;
}

static void sizes_read(verify *w)
{
    size_t nq = (size_t)w->p->nq;
    double **room[] = { &w->sizes, &w->speeds, &w->now, &w->rates, &w->near, &w->row };
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        *room[i] = arena_array(w->s->tmp, double, nq + 1);
    for (size_t i = 0; i < nq; i++)
        for (size_t k = 0; k < w->rows; k++) {
            w->sizes[i] = fmax(w->sizes[i], fabs(w->q[i][k]));
            if (w->v)
                w->speeds[i] = fmax(w->speeds[i], fabs(w->v[i][k]));
        }
    gate_sizes(w->sizes, w->p->nq);
}

static bool verify_ready(verify *w, const char *name, const cdl_numbers *param, size_t nparam)
{
    session *s = w->s;
    double *values;
    const ast *decl = model_of(s, name);
    if (!decl) {
        diag_error(s->d, DIAG_NOT_SUPPORTED, SPAN_NONE, "there is no model%s%s in the text", name ? " " : "",
                   name ? name : "");
        return false;
    }
    const built *of = session_program(s, decl, &s->main->base,
                                      &(model_request){ param, nparam, NULL, 0, false }, &values);
    if (!of)
        return false;
    w->p = of->p;
    if (w->p->field || w->p->rod || w->p->inclusion || w->p->has_delay.file) {
        diag_error(s->d, DIAG_NOT_SUPPORTED, decl->at, "only motions of models with dofs can be verified");
        return false;
    }
    w->g = gate_new(s->tmp, w->p, values);
    if (!columns_read(w))
        return false;
    w->shapes = gate_shapes_new(s->tmp, w->p, values);
    w->plain = arena_array(s->tmp, bool, w->p->ncontact + 1);
    sizes_read(w);
    if (w->rows)
        stand_at(w, 0);
    for (size_t c = 0; w->shapes && w->rows && c < w->p->ncontact; c++)
        w->plain[c] = gate_plain(w->g, w->shapes, c);
    return true;
}

cdl_status cdl_verify(cdl *s, const char *name, const cdl_numbers *param, size_t nparam,
                      const cdl_numbers *column, size_t ncolumn, const cdl_finding **found, size_t *nfound)
{
    ENTER(s);
    verify w = { .s = s, .column = column, .ncolumn = ncolumn, .rows = ncolumn ? column[0].n : 0 };
    *nfound = 0;
    *found = w.found = arena_array(s->answer, cdl_finding, KINDS);
    for (size_t k = 0; k < ncolumn; k++)
        if (column[k].n != w.rows)
            return CDL_USAGE;
    if (!verify_ready(&w, name, param, nparam)) {
        session_flush(s);
        return CDL_USAGE;
    }
    for (size_t k = 0; k < w.rows; k++)
        check_row(&w, k);
    check_start(&w);
    if (w.v)
        check_motion(&w);
    if (w.v)
        check_energies(&w);
    cdl_status status = CDL_OK;
    for (int k = 0; k < KINDS; k++)
        if (w.found[k].where) {
            if (!(w.found[k].worst <= w.found[k].allowed))
                status = CDL_EXPECT;
            w.found[(*nfound)++] = w.found[k];
        }
    return status;
}
