#include "newton.h"
#include <math.h>
#include <string.h>
#include "base/budget.h"
#include "base/linalg.h"
#include "blocks.h"
#include "rates.h"
#include "base/tolerances.h"

/* Acceptance of steps: a step is halved until its defect is below (1 - gain*step) times the largest of the
   last `memory` ones. If no step is accepted, this number of passes of exact local solutions follows; 0: the
   method ends. */
typedef struct newton_plan {
    int most, halves, memory, passes;
    bool down; /* every other pass goes down */
    double gain;
    double worth; /* ends if a step leaves more than this fraction of the defect; 0: not checked */
    int stall;    /* ends after this number of steps that do not halve the defect; 0: never */
} newton_plan;
enum { MEMORY = 4 };

/* How Newton's matrix is stored and used: by rows, with sparse factors; in full, with shortest steps; as a
   band; in the rates of the dofs, if there are far fewer of these. */
typedef enum { BY_ROWS, IN_FULL, IN_BAND, BY_RATES } newton_form;

struct newton {
    contact_problem *p;
    arena *scratch;
    struct budget *budget; /* or NULL */
    double *u, *ref, *F, *dr, *keep, *best;
    double *an, *a; /* of each contact: its normal entry of W, its largest tangential entry */
    double rho;     /* of the proximal term, relative to the size of the block */
    /* For one contact: a row, the places of its own columns, derivatives of its map; block, velocity,
       solution. */
    double *line, *Fr, *Fu, *A, *b, *r, *local;
    int *own;
    /* Newton's matrix; a band is stored by columns, with room for pivoting. */
    newton_form form;
    int *Js, *Jc;
    double *Jx;
    block_factors *blocks; /* by rows: its factors if all contacts have few rows, or NULL */
    int *first, *count;
    rate_factors *rates; /* by rates: its factors, and the blocks of each contact, RATES_BLOCK numbers each */
    double *own_r, *of_u;
};

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static double weight(const newton *w, int c)
{
    return w->rho > 0 ? w->rho * larger(w->an[c], w->a[c]) : 0;
}

static void velocities(newton *w)
{
    const contact_problem *p = w->p;
    if (w->form == BY_RATES) {
        rate_factors_times(w->rates, p->r, w->u);
        vec_axpy(w->u, 1, p->b, p->m);
    } else
        problem_velocities(p, w->u);
    for (int c = 0; w->rho > 0 && c < p->n; c++)
        for (int i = p->cone[c].row; i < p->cone[c].row + cone_rows(&p->cone[c]); i++)
            w->u[i] += weight(w, c) * (p->r[i] - w->ref[i]);
}

/* Residual of the current problem, for the current velocities. */
static double defect(const newton *w, int *worst)
{
    return problem_defect(w->p, w->u, w->an, w->a, NULL, worst);
}

/* ---- Newton's matrix, row by row, and its right-hand side ---- */
static void line_put(newton *w, int row, int c)
{
    int n = problem_width(w->p, c), m = w->p->m;
    const int *col = problem_columns(w->p, c);
    if (w->form == IN_FULL) {
        double *J = w->Jx + (size_t)row * (size_t)m;
        memset(J, 0, (size_t)m * sizeof *J);
        for (int k = 0; k < n; k++)
            J[col[k]] = w->line[k];
        return;
    }
    memcpy(w->Jx + w->Js[row], w->line, (size_t)n * sizeof *w->Jx);
}

/* The places of the columns of contact c in its rows. */
static void own_columns(newton *w, int c)
{
    const contact_problem *p = w->p;
    const int *col = problem_columns(p, c);
    int row = p->cone[c].row, m = cone_rows(&p->cone[c]);
    for (int i = 0, n = problem_width(p, c); i < n; i++) {
        int j = col[i] - row;
        if (j >= 0 && j < m)
            w->own[j] = i;
    }
}

/* Rows of contact c from its derivatives: Fu W + Fr. */
static void rows_put(newton *w, int c)
{
    const contact_problem *p = w->p;
    int row = p->cone[c].row, m = cone_rows(&p->cone[c]), n = problem_width(p, c);
    double shift = weight(w, c);
    own_columns(w, c);
    for (int j = 0; j < m; j++) {
        memset(w->line, 0, (size_t)n * sizeof *w->line);
        for (int k = 0; k < m; k++) {
            double f = w->Fu[j * m + k];
            if (f != 0) {
                vec_axpy(w->line, f, problem_row(p, c, k), n);
                w->line[w->own[k]] += f * shift;
            }
            w->line[w->own[k]] += w->Fr[j * m + k];
        }
        line_put(w, row + j, c);
    }
}

/* The same, stored in a zero band by columns. */
static void band_put(newton *w, int c)
{
    const contact_problem *p = w->p;
    int row = p->cone[c].row, m = cone_rows(&p->cone[c]), kb = p->kb, step = 3 * kb;
    for (int j = 0; j < m; j++)
        for (int k = 0; k < m; k++) {
            int i = row + j, from = row + k, far = i > from ? i : from, near_by = i < from ? i : from;
            int lo = far > kb ? far - kb : 0, hi = near_by + kb < p->m ? near_by + kb : p->m - 1;
            double f = w->Fu[j * m + k],
                   *to = w->Jx + (size_t)lo * (size_t)(step + 1) + (size_t)(2 * kb + i - lo);
            const double *W = band_at(p, from, lo);
            for (int q = lo; f != 0 && q <= hi; q++, to += step)
                *to += f * *W++;
            w->Jx[(size_t)from * (size_t)(step + 1) + (size_t)(2 * kb + i - from)] += w->Fr[j * m + k];
        }
}

/* The derivatives of contact c, with the proximal term in its own reactions. */
static void blocks_put(newton *w, int c)
{
    int m = cone_rows(&w->p->cone[c]);
    double shift = weight(w, c), *own = w->own_r + (size_t)c * RATES_BLOCK;
    memcpy(w->of_u + (size_t)c * RATES_BLOCK, w->Fu, (size_t)(m * m) * sizeof *w->Fu);
    for (int i = 0; i < m * m; i++)
        own[i] = w->Fr[i] + shift * w->Fu[i];
}

static void newton_contact(newton *w, int c)
{
    const contact_problem *p = w->p;
    int row = p->cone[c].row;
    double shift = weight(w, c);
    cone_newton(&p->cone[c], p->r + row, w->u + row, w->an[c] + shift, w->a[c] + shift, w->form == IN_BAND,
                w->F + row, w->Fr, w->Fu);
    if (w->form == IN_BAND)
        band_put(w, c);
    else if (w->form == BY_RATES)
        blocks_put(w, c);
    else
        rows_put(w, c);
}

/* dr by factors without row exchanges, if they are accurate enough: their residual must be small. */
static bool by_blocks(newton *w)
{
    double most = 0, left = 0;
    if (!w->blocks || !block_factors_put(w->blocks, w->Jx))
        return false;
    block_factors_solve(w->blocks, w->dr);
    for (int i = 0; i < w->p->m; i++) {
        double rest = w->F[i];
        for (int k = w->Js[i]; k < w->Js[i + 1]; k++)
            rest -= w->Jx[k] * w->dr[w->Jc[k]];
        if (!isfinite(rest))
            return false;
        left = larger(left, fabs(rest));
        most = larger(most, fabs(w->F[i]));
    }
    return left <= BLOCKS_LEFT * most;
}

/* The same with row exchanges; rows are passed as columns: the transposed matrix is factorised, without its
   zeros. */
static bool by_pivots(newton *w)
{
    arena_pos mark = arena_mark(w->scratch);
    int m = w->p->m, all = 0, *start = arena_array(w->scratch, int, m + 1),
        *col = arena_array(w->scratch, int, w->Js[m]);
    double *x = arena_array(w->scratch, double, w->Js[m]);
    for (int i = 0; i < m; i++) {
        for (int k = w->Js[i]; k < w->Js[i + 1]; k++)
            if (w->Jx[k] != 0) {
                col[all] = w->Jc[k];
                x[all++] = w->Jx[k];
            }
        start[i + 1] = all;
    }
    memcpy(w->dr, w->F, (size_t)m * sizeof *w->dr);
    bool ok = sparse_lu(m, start, col, x, true, NULL, 1, w->dr);
    arena_release(w->scratch, mark);
    return ok;
}

/* J dr = F. */
static bool newton_direction(newton *w)
{
    int m = w->p->m;
    bool ok;
    if (w->form == IN_BAND)
        memset(w->Jx, 0, (size_t)m * (size_t)(3 * w->p->kb + 1) * sizeof *w->Jx);
    for (int c = 0; c < w->p->n; c++)
        newton_contact(w, c);
    memcpy(w->dr, w->F, (size_t)m * sizeof *w->dr);
    if (w->form == IN_FULL)
        ok = least_norm(w->Jx, w->dr, m, m, w->scratch);
    else if (w->form == IN_BAND)
        ok = band_lu(m, w->p->kb, w->Jx, w->dr);
    else if (w->form == BY_RATES) {
        ok = rate_factors_put(w->rates, w->own_r, w->of_u);
        if (ok)
            rate_factors_solve(w->rates, w->dr);
    } else
        ok = by_blocks(w) || by_pivots(w);
    for (int i = 0; ok && i < m; i++)
        ok = isfinite(w->dr[i]);
    return ok;
}

/* One pass of exact local solutions, if Newton's step does not decrease the defect. */
static void relax(newton *w, bool down)
{
    const contact_problem *p = w->p;
    for (int k = 0; k < p->n; k++) {
        int c = down ? p->n - 1 - k : k;
        const cone *o = &p->cone[c];
        int m = cone_rows(o);
        problem_block(p, c, w->A);
        for (int j = 0; j < m; j++) {
            w->b[j] = p->b[o->row + j] + problem_times(p, c, j, p->r) - weight(w, c) * w->ref[o->row + j];
            for (int i = 0; i < m; i++)
                w->b[j] -= w->A[j * m + i] * p->r[o->row + i];
            w->A[j * m + j] += weight(w, c);
        }
        if (cone_solve(o, w->A, m, w->b, w->r, w->local))
            memcpy(p->r + o->row, w->r, (size_t)m * sizeof *w->r);
    }
}

/* Solves the problem with its proximal term to the tolerance; false: not reached. */
static bool newton_run(newton *w, const newton_plan *plan, double tol)
{
    contact_problem *p = w->p;
    size_t size = (size_t)p->m * sizeof *p->r;
    double memory[MEMORY] = { 0 }, e, half_of = INFINITY;
    int halved = 0;
    velocities(w);
    e = defect(w, &p->worst);
    for (int i = 0; i < plan->memory; i++)
        memory[i] = e;
    for (int it = 0; it < plan->most && e > tol && !budget_cuts(w->budget); it++) {
        double allow = 0, s = 1, before = e;
        if (e < 0.5 * half_of) {
            half_of = e;
            halved = it;
        }
        if (plan->stall && it - halved >= plan->stall)
            break;
        memcpy(w->keep, p->r, size);
        bool down = false, ok = newton_direction(w);
        for (int i = 0; i < plan->memory; i++)
            allow = larger(allow, memory[i]);
        for (int half = 0; ok && half < plan->halves && !down; half++, s *= 0.5) {
            for (int i = 0; i < p->m; i++)
                p->r[i] = w->keep[i] - s * w->dr[i];
            velocities(w);
            e = defect(w, &p->worst);
            down = e <= tol || e < (1 - plan->gain * s) * allow;
        }
        p->iterations++;
        if (plan->worth > 0 && !(down && e <= larger(plan->worth * before, tol))) {
            if (!down)
                memcpy(p->r, w->keep, size);
            break;
        }
        if (!down) {
            memcpy(p->r, w->keep, size);
            for (int i = 0; i < plan->passes; i++)
                relax(w, plan->down && i % 2);
            velocities(w);
            e = defect(w, &p->worst);
            if (!plan->passes)
                break;
        }
        memory[it % plan->memory] = e;
    }
    p->residual = e;
    return e <= tol;
}

/* The places of the rows of Newton's matrix, which has the sparsity pattern of W; its factors by blocks. */
static void rows_lay(newton *w, arena *a)
{
    const contact_problem *p = w->p;
    int at = 0, widest = 0;
    w->first = arena_array(a, int, p->n);
    w->count = arena_array(a, int, p->n);
    for (int c = 0; c < p->n; c++) {
        int n = problem_width(p, c), m = cone_rows(&p->cone[c]);
        w->first[c] = p->cone[c].row;
        w->count[c] = m;
        widest = m > widest ? m : widest;
        for (int j = 0; j < m; j++) {
            memcpy(w->Jc + at, problem_columns(p, c), (size_t)n * sizeof *w->Jc);
            w->Js[p->cone[c].row + j] = at;
            at += n;
        }
    }
    w->Js[p->m] = at;
    if (widest <= BLOCKS_WIDE)
        w->blocks = block_factors_new(a, p->n, w->first, w->count, w->Js, w->Jc);
}

static newton *newton_with(contact_problem *p, arena *a, newton_form form, rate_factors *rates)
{
    newton *w = arena_make(a, newton);
    size_t m = (size_t)p->m, n = (size_t)p->n, all = 0, rows = 1, widest = 1;
    for (int c = 0; c < p->n; c++) {
        size_t k = (size_t)cone_rows(&p->cone[c]),
               wide = form == IN_BAND || form == BY_RATES ? 0 : (size_t)problem_width(p, c);
        all += k * wide;
        rows = k > rows ? k : rows;
        widest = wide > widest ? wide : widest;
    }
    if (form == IN_FULL || form == IN_BAND)
        all = form == IN_FULL ? m * m : m * (3 * (size_t)p->kb + 1);
    double **by_row[] = { &w->ref, &w->F, &w->dr, &w->keep, &w->best };
    for (size_t i = 0; i < sizeof by_row / sizeof *by_row; i++)
        *by_row[i] = arena_array(a, double, m);
    double **blocks[] = { &w->Fr, &w->Fu, &w->A };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        *blocks[i] = arena_array(a, double, rows *rows);
    w->p = p;
    w->scratch = a;
    w->budget = arena_budget(a);
    w->form = form;
    w->rates = rates;
    w->u = p->u ? p->u : arena_array(a, double, m);
    w->an = arena_array(a, double, n);
    w->a = arena_array(a, double, n);
    w->line = arena_array(a, double, widest);
    w->own = arena_array(a, int, rows);
    w->b = arena_array(a, double, rows);
    w->r = arena_array(a, double, rows);
    w->local = arena_array(a, double, problem_work(p));
    if (form == BY_ROWS) {
        w->Js = arena_array(a, int, m + 1);
        w->Jc = arena_array(a, int, all);
    }
    w->Jx = arena_array(a, double, all);
    if (form == BY_ROWS)
        rows_lay(w, a);
    if (form == BY_RATES) {
        w->own_r = arena_array(a, double, n *RATES_BLOCK);
        w->of_u = arena_array(a, double, n *RATES_BLOCK);
    }
    if (form == BY_RATES)
        rate_factors_diagonal(w->rates, w->an, w->a);
    else
        problem_diagonal(p, w->an, w->a);
    return w;
}

/* BY_RATES becomes BY_ROWS if it is not worth it. */
static newton *newton_new(contact_problem *p, arena *a, newton_form form)
{
    rate_factors *rates = form == BY_RATES ? rate_factors_new(a, p) : NULL;
    return newton_with(p, a, form == BY_RATES && !rates ? BY_ROWS : form, rates);
}

static double true_defect(newton *w, int *worst)
{
    double rho = w->rho;
    w->rho = 0;
    velocities(w);
    double e = defect(w, worst);
    w->rho = rho;
    return e;
}

/* With a very weak proximal term; ends with the first step that gains little: for starts after which no
   contact changes, and expensive factorisations. A second round follows if the error of the term is not well
   below the tolerance, so that velocities are as accurate as possible and the next step starts there. */
static bool polish(newton *w, double tol)
{
    enum { ROUNDS = 2 };
    contact_problem *p = w->p;
    newton_plan plan = { .most = 6, .halves = 3, .memory = 1, .gain = 0.1, .worth = 0.2 };
    size_t size = (size_t)p->m * sizeof *p->r;
    bool ok = true;
    p->residual = true_defect(w, &p->worst);
    for (int k = 0; k < ROUNDS && ok && p->residual > 0.1 * tol; k++) {
        memcpy(w->ref, p->r, size);
        w->rho = PROXIMAL_POLISH;
        ok = newton_run(w, &plan, 0.03 * tol);
        p->residual = true_defect(w, &p->worst);
    }
    return p->residual <= tol;
}

bool newton_polish(contact_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    bool ok = polish(newton_new(p, scratch, BY_RATES), tol);
    arena_release(scratch, mark);
    return ok;
}

/* Full steps without line search: next to a solution they decide the state of the few contacts that are
   between two states. The best result is kept; two steps in a row without a better one end it. */
bool newton_settle(contact_problem *p, arena *scratch, double tol)
{
    enum { IN_VAIN = 2 };
    arena_pos mark = arena_mark(scratch);
    newton *w = newton_new(p, scratch, BY_ROWS);
    size_t size = (size_t)p->m * sizeof *p->r;
    double best = true_defect(w, &p->worst);
    memcpy(w->best, p->r, size);
    w->rho = PROXIMAL_SETTLE;
    for (int vain = 0; vain < IN_VAIN && best > 0.1 * tol && !budget_cuts(w->budget); vain++) {
        memcpy(w->ref, p->r, size);
        velocities(w);
        if (!newton_direction(w))
            break;
        vec_axpy(p->r, -1, w->dr, p->m);
        p->iterations++;
        double e = true_defect(w, &p->worst);
        if (e < best) {
            vain = e < 0.5 * best ? -1 : vain;
            best = e;
            memcpy(w->best, p->r, size);
        }
        if (best <= tol && e > best)
            break;
    }
    memcpy(p->r, w->best, size);
    p->residual = true_defect(w, &p->worst);
    arena_release(scratch, mark);
    return p->residual <= tol;
}

/* The proximal parameter after a solve with rho, and the factor for the next one (*down). A parameter that
   was too small fails each time it is tried: from there it decreases more slowly, and faster again if solves
   are quick. */
static double term_next(double rho, bool solved, int steps, double *down)
{
    enum { QUICK = 4 };
    const double FASTEST = 0.1, SLOWEST = 0.7;
    double next = solved ? larger(rho * *down, PROXIMAL_LEAST) : fmin(rho / *down, 1);
    if (!solved)
        *down = fmin(sqrt(*down), SLOWEST);
    else if (steps <= QUICK)
        *down = larger(pow(*down, 1.5), FASTEST);
    return next;
}

/* passes: of local solutions if a step does not decrease the defect. */
static bool proximal_run(newton *w, double rho, int most, int steps, int passes, double tol)
{
    newton_plan plan = {
        .most = steps, .halves = 7, .memory = MEMORY, .passes = passes, .gain = 0.1, .stall = 4
    };
    contact_problem *p = w->p;
    size_t size = (size_t)p->m * sizeof *p->r;
    int worst = 0;
    double best = true_defect(w, &worst), down = 0.1;
    memcpy(w->best, p->r, size);
    for (int k = 0; k < most && best > tol; k++) {
        int before = p->iterations;
        memcpy(w->ref, p->r, size);
        w->rho = rho;
        bool ok = newton_run(w, &plan, larger(0.3 * tol, fmin(PROXIMAL_INNER, 0.02 * best)));
        double e = true_defect(w, &worst);
        if (e < best) {
            best = e;
            memcpy(w->best, p->r, size);
            /* back to the last accepted one: using the best would cancel the drift along null directions */
        } else if (!ok)
            memcpy(p->r, w->ref, size);
        rho = term_next(rho, ok, p->iterations - before, &down);
    }
    memcpy(p->r, w->best, size);
    p->residual = true_defect(w, &p->worst);
    return p->residual <= tol;
}

bool proximal_steps(contact_problem *p, arena *scratch, double rho, int most, int steps, double tol)
{
    enum { PASSES = 6 };
    arena_pos mark = arena_mark(scratch);
    bool ok = proximal_run(newton_new(p, scratch, BY_RATES), rho, most, steps, PASSES, tol);
    arena_release(scratch, mark);
    return ok;
}

bool newton_rates(contact_problem *p, arena *scratch, double tol)
{
    enum { ROUNDS = 6, STEPS = 12 };
    arena_pos mark = arena_mark(scratch);
    rate_factors *rates = rate_factors_new(scratch, p);
    bool ok = false;
    p->residual = INFINITY;
    if (rates) {
        newton *w = newton_with(p, scratch, BY_RATES, rates);
        p->residual = true_defect(w, &p->worst);
        ok = p->residual <= tol;
        if (!ok && p->residual < RATES_START)
            ok = polish(w, tol) || proximal_run(w, PROXIMAL_USUAL, ROUNDS, STEPS, 0, tol);
    }
    arena_release(scratch, mark);
    return ok;
}

bool newton_shortest(contact_problem *p, arena *scratch, int most, double tol)
{
    arena_pos mark = arena_mark(scratch);
    newton *w = newton_new(p, scratch, IN_FULL);
    newton_plan plan = { .most = most, .halves = 8, .memory = 1 };
    newton_run(w, &plan, tol);
    p->residual = true_defect(w, &p->worst);
    arena_release(scratch, mark);
    return p->residual <= tol;
}

newton *newton_on_band(contact_problem *p, arena *a)
{
    return newton_new(p, a, IN_BAND);
}

/* By how much friction exceeds its bound, relative to the largest friction (the defect is relative to the
   largest reaction). Without bounds that depend on the speed of slip. */
static double friction_passes(const contact_problem *p)
{
    double most = 0, passed = 0;
    for (int c = 0; c < p->n; c++) {
        const cone *o = &p->cone[c];
        const double *r = p->r + o->row, *t = r + cone_normal(o);
        double size = 0, bound = o->radius + (cone_normal(o) ? o->mu * fabs(r[0]) : 0);
        for (int j = 0; j < o->d; j++)
            size += t[j] * t[j];
        most = larger(most, size);
        if (size > bound * bound && !o->of_speed)
            passed = larger(passed, sqrt(size) - bound);
    }
    return passed > 0 ? passed / sqrt(most) : 0;
}

/* Friction must also satisfy its bounds to the tolerance; if it does not yet, another step usually helps. */
bool newton_band(newton *w, double tol)
{
    newton_plan plan = { .most = 60, .halves = 6, .memory = MEMORY, .passes = 8, .down = true, .gain = 0.1 };
    contact_problem *p = w->p;
    if (!newton_run(w, &plan, tol))
        return false;
    double passes = friction_passes(p), found = p->residual;
    if (passes <= tol)
        return true;
    memcpy(w->best, p->r, (size_t)p->m * sizeof *p->r);
    plan.most = 3;
    newton_run(w, &plan, p->residual * tol / passes);
    if (p->residual > tol || friction_passes(p) > passes) {
        memcpy(p->r, w->best, (size_t)p->m * sizeof *p->r);
        p->residual = found;
    }
    return true;
}
