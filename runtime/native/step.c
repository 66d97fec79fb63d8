/* step: the step of a small model, a part of what `cdl emit c` writes; the library itself does not compile
   it. It takes the steps of `sweeping` for constant masses and contacts whose rows and laws never change, and
   gives the same bytes; each function names the one it stands for.  What comes before it in the file: sizes
   (N dofs, NC contacts ...), kernels, tables of contacts, and the sources of the contact laws and solvers. */

enum { MOST_HITS = 10, MOST_AGAIN = 24, MOST_CUTS = 64, MANY_CUTS = 10000, ROOM = 24 };

static void gap_put(cdl_model *w, int c, double t, const double *q, const double *v)
{
    w->gap[c] = w->contacts[c].relation == ALWAYS_CLOSED ? 0 : gap_of(c, w->param, t, q, v);
}

/* The first reason is kept. */
static bool beyond(cdl_model *w, const char *why)
{
    if (!w->stopped_by)
        w->stopped_by = why;
    return false;
}

/* ---- matrices ---- */
static double matrix_row(bool diagonal, const double *a, const double *x, int i)
{
    return diagonal ? a[i] * x[i] : vec_dot(a + i * N, x, N);
}

static void solve_with(const factor *f, const double *b, double *x)
{
    if (f->kind == FACTOR_DIAGONAL || f->kind == FACTOR_INVERSE) {
        for (int i = 0; i < N; i++)
            x[i] = matrix_row(f->kind == FACTOR_DIAGONAL, f->a, b, i);
        return;
    }
    vec_copy(x, b, N);
    if (f->kind == FACTOR_CHOLESKY)
        chol_back(f->a, N, x);
    else
        lu_back(f->a, f->pivot, N, x);
}

/* factor_matrix */
static bool step_factor(factor *f, const double *a)
{
    if (STEP_DIAGONAL) {
        f->kind = FACTOR_DIAGONAL;
        for (int i = 0; i < N; i++) {
            if (a[i] == 0 || !isfinite(a[i]))
                return false;
            f->a[i] = 1 / a[i];
        }
        return true;
    }
    if (N <= LINALG_SMALL) {
        f->kind = FACTOR_INVERSE;
        return invert_small(a, f->a, N);
    }
    f->kind = FACTOR_LU;
    memcpy(f->a, a, sizeof(double) * N * N);
    return lu_plain(f->a, f->pivot, N);
}

/* step_matrix: D = M - theta h (Fv + theta h Fq) */
static bool step_matrix(cdl_model *w, double h, double t, const double *q, const double *v)
{
    double a = w->run.theta * h;
    if (!FORCE_OF_STATE || (JACOBIAN_CONSTANT && w->matrix.d_step == h))
        return true;
    jacobian(w->param, t, q, v, w->matrix.Fq, w->matrix.Fv);
    for (int i = 0; i < N; i++)
        for (int j = STEP_DIAGONAL ? i : 0; j < (STEP_DIAGONAL ? i + 1 : N); j++) {
            int at = STEP_DIAGONAL ? i : i * N + j;
            double m = !MASS_DIAGONAL ? w->matrix.masses[at] : i == j ? w->matrix.masses[i] : 0;
            w->matrix.D[at] = 1 * (m - a * (w->matrix.Fv[at] + a * w->matrix.Fq[at]));
        }
    w->matrix.d_step = h;
    w->matrix.stamp++;
    return step_factor(&w->matrix.df, w->matrix.D) || beyond(w, "the matrix of the step is singular");
}

static const factor *matrix_of(const cdl_model *w, bool mass)
{
    return mass || !FORCE_OF_STATE ? &w->matrix.minv : &w->matrix.df;
}

/* ---- the effect of reactions on the rates: sweep_columns, sweep_react ---- */
static bool is_local(const contact *c, const factor *f)
{
    return c->listed && f->kind == FACTOR_DIAGONAL;
}

static void columns(const contact *c, const factor *f, double *G)
{
    for (int j = 0; j < rows_of(c); j++) {
        const double *row = row_of(c, j);
        double *g = G + j * N, spread[N] = { 0 };
        if (is_local(c, f)) {
            for (int i = 0; i < c->n; i++)
                g[i] = f->a[c->dof[i]] * row[i];
            continue;
        }
        for (int i = 0; i < c->n; i++)
            spread[c->dof[i]] += row[i];
        solve_with(f, c->listed ? spread : row, g);
    }
}

static const double *columns_of(cdl_model *w, int c, bool mass)
{
    if (mass)
        return w->matrix.Gm[c];
    if (w->matrix.G_stamp[c] != w->matrix.stamp)
        columns(&w->contacts[c], matrix_of(w, false), w->matrix.G[c]);
    w->matrix.G_stamp[c] = w->matrix.stamp;
    return w->matrix.G[c];
}

static const double *column_spread(const contact *c, const factor *f, const double *g, double *spread)
{
    if (!is_local(c, f))
        return g;
    memset(spread, 0, sizeof(double) * N);
    for (int i = 0; i < c->n; i++)
        spread[c->dof[i]] += g[i];
    return spread;
}

static void react(cdl_model *w, double *x, bool mass)
{
    const factor *f = matrix_of(w, mass);
    if (w->hand.nact == 1) {
        const contact *c = &w->contacts[w->hand.act[0]];
        react_alone(c, is_local(c, f), columns_of(w, w->hand.act[0], mass),
                    w->hand.rr + w->hand.row[w->hand.act[0]], x);
        return;
    }
    double change[N] = { 0 }, size[N];
    for (int k = 0; k < N; k++)
        size[k] = fabs(x[k]);
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = &w->contacts[w->hand.act[i]];
        const double *G = columns_of(w, w->hand.act[i], mass), *r = w->hand.rr + w->hand.row[w->hand.act[i]];
        bool local = is_local(c, f);
        for (int b = 0; b < rows_of(c); b++)
            for (int k = 0; k < (local ? c->n : N); k++) {
                int to = local ? c->dof[k] : k;
                double d = G[b * N + k] * r[b];
                change[to] += d;
                size[to] += fabs(d);
            }
    }
    for (int k = 0; k < N; k++)
        x[k] = cancelled(x[k], change[k], size[k]);
}

/* ---- the current problem ---- */
static void take(cdl_model *w, const bool *also)
{
    w->hand.nact = 0;
    for (int c = 0; c < NC; c++)
        if (w->closed[c] || (also && also[c]))
            w->hand.act[w->hand.nact++] = c;
}

/* sweep_cones: step is the length of the step, 1 for forces, 0 for shocks. */
static void cones(cdl_model *w, double step)
{
    w->hand.step_size = step;
    w->hand.nrows = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = &w->contacts[w->hand.act[i]];
        bool given = c->relation == ALWAYS_CLOSED;
        w->hand.row[w->hand.act[i]] = w->hand.nrows;
        w->hand.cone[i] = (cone){ .kind = given                      ? CONE_GIVEN
                                          : c->relation == BILATERAL ? CONE_BILATERAL
                                                                     : CONE_UNILATERAL,
                                  .d = c->d,
                                  .row = w->hand.nrows };
        if (c->d) {
            w->hand.cone[i].mu = c->tresca || given ? 0 : c->mu;
            w->hand.cone[i].radius = c->tresca ? c->mu * step
                                     : given   ? c->mu * fabs(c->normal) * step
                                               : c->mu * w->given[w->hand.act[i]];
        }
        w->hand.nrows += rows_of(c);
    }
}

static void problem_rates(cdl_model *w, const double *x)
{
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = &w->contacts[w->hand.act[i]];
        for (int j = 0; j < rows_of(c); j++)
            w->hand.b[w->hand.row[w->hand.act[i]] + j] = rate_of(c, row_of(c, j), x) +
                                                         w->hand.off[w->hand.row[w->hand.act[i]] + j];
    }
}

/* sweep_lone_matrix: the block of a single contact. */
static void lone_matrix(cdl_model *w, int k, bool mass, double *A)
{
    const contact *c = &w->contacts[k];
    const double *G = columns_of(w, k, mass);
    bool local = is_local(c, matrix_of(w, mass));
    int m = rows_of(c);
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++)
            A[a * m + b] = local ? vec_dot(row_of(c, a), G + b * N, c->n)
                                 : rate_of(c, row_of(c, a), G + b * N);
}

/* sweep_solve_alone */
static bool solve_alone(cdl_model *w, bool mass, double *x)
{
    const contact *c = &w->contacts[w->hand.act[0]];
    double A[(ND + 1) * (ND + 1)];
    lone_matrix(w, w->hand.act[0], mass, A);
    problem_rates(w, x);
    if (normal_of(c) && !(A[0] > 0))
        return false;
    if (!cone_solve(&w->hand.cone[0], A, rows_of(c), w->hand.b, w->hand.rr, w->hand.local))
        return false;
    react(w, x, mass);
    return true;
}

#if NC
/* sweep_matrix: W = [H; S] G */
static void problem_matrix(cdl_model *w, bool mass)
{
    const factor *f = matrix_of(w, mass);
    double spread[N];
    for (int j = 0; j < w->hand.nact; j++) {
        const contact *l = &w->contacts[w->hand.act[j]];
        const double *G = columns_of(w, w->hand.act[j], mass);
        for (int b = 0; b < rows_of(l); b++) {
            const double *g = column_spread(l, f, G + b * N, spread);
            for (int i = 0; i < w->hand.nact; i++) {
                const contact *c = &w->contacts[w->hand.act[i]];
                for (int a = 0; a < rows_of(c); a++)
                    w->hand.W[(w->hand.row[w->hand.act[i]] + a) * w->hand.nrows +
                              w->hand.row[w->hand.act[j]] + b] = rate_of(c, row_of(c, a), g);
            }
        }
    }
}

static double rounding(const cdl_model *w)
{
    double most = 0;
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i], row = w->hand.row[c];
        double a = w->hand.W[row * w->hand.nrows + row];
        if (normal_of(&w->contacts[c]) && a > 0)
            most = most_of(most, w->size.tol_u[c] * w->hand.unit[row] / a);
    }
    return 0.5 * most;
}

/* contact_solve with two of its solvers: active sets and Gauss-Seidel */
static bool problem_solve(cdl_model *w, contact_problem *p)
{
    p->fine = reaction_fine(w->run.tolerance);
    for (int i = 0; i < p->n; i++)
        if (cone_normal(&p->cone[i]) && !(p->W[p->cone[i].row * p->m + p->cone[i].row] > 0))
            return false;
    if (p->n == 1) {
        problem_alone(p, 0, p->W, p->m, p->b, p->r, w->hand.local);
        problem_velocities(p, p->u);
        return problem_defect(p, p->u, NULL, NULL, NULL, &p->worst) <= fmax(w->run.tolerance, SOLVED_TIGHT);
    }
#if NC > 1
    w->hand.scratch.used = 0;
    if (active_fits(p))
        return active_solve(p, &w->hand.scratch, w->run.tolerance);
    return sweeps_full(p, &w->hand.scratch, 32, w->run.tolerance);
#else
    return false;
#endif
}
#endif

/* sweep_solve */
static bool solve(cdl_model *w, bool mass, double *x)
{
    if (w->hand.nact == 0)
        return true;
#if NC
    equal_units units;
    contact_problem p = { .n = w->hand.nact,
                          .m = w->hand.nrows,
                          .cone = w->hand.cone,
                          .b = w->hand.b,
                          .r = w->hand.rr,
                          .u = w->hand.u,
                          .W = w->hand.W };
    problem_rates(w, x);
    problem_matrix(w, mass);
    equal_make(&units, &p, w->hand.unit);
    if (w->hand.step_size != 1)
        p.least = rounding(w) / w->run.tolerance;
    bool ok = problem_solve(w, &p);
    equal_undo(&units);
    if (!ok)
        return beyond(w, "a contact problem needs a solver that is not part of this file");
    react(w, x, mass);
    return true;
#else
    (void)mass;
    (void)x;
    return false;
#endif
}

/* ---- one smooth step: sweep_smooth ---- */
static bool step_contacts(cdl_model *w, double h, double *v)
{
    cones(w, h);
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < rows_of(&w->contacts[w->hand.act[i]]); j++) {
            const contact *c = &w->contacts[w->hand.act[i]];
            w->hand.off[w->hand.row[w->hand.act[i]] + j] = j < normal_of(c) ? c->ht + 0
                                                                            : c->s0[j - normal_of(c)];
        }
    if (w->hand.nact == 1 && solve_alone(w, false, v))
        return true;
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < rows_of(&w->contacts[w->hand.act[i]]); j++)
            w->hand.rr[w->hand.row[w->hand.act[i]] + j] = h * w->r[w->contacts[w->hand.act[i]].first + j];
    return solve(w, false, v);
}

/* sweep_shortest: adds to q1 the shortest move in the kinetic metric that closes the gaps. */
static void shortest_move(cdl_model *w, int m, const int *back, const double *change)
{
    double A[ROOM * ROOM], l[ROOM], more[ROOM * ROOM + 3 * ROOM], spread[N];
    int perm[ROOM];
    for (int j = 0; j < m; j++) {
        const double *g = column_spread(&w->contacts[back[j]], &w->matrix.minv, w->matrix.Gm[back[j]],
                                        spread);
        for (int i = 0; i < m; i++)
            A[i * m + j] = rate_of(&w->contacts[back[i]], w->contacts[back[i]].H, g);
    }
    sym_shortest_rows(A, change, l, m, more, perm);
    for (int j = 0; j < m; j++) {
        const contact *c = &w->contacts[back[j]];
        bool local = is_local(c, &w->matrix.minv);
        for (int i = 0; i < (local ? c->n : N); i++)
            w->q1[local ? c->dof[i] : i] += l[j] * w->matrix.Gm[back[j]][i];
    }
}

/* off_surface, put_back */
static int off_surface(cdl_model *w, int *back, double *change)
{
    int m = 0;
    bool off = false;
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        if (!normal_of(&w->contacts[c]))
            continue;
        gap_put(w, c, w->t1, w->q1, w->v1);
        if (w->contacts[c].relation == GAP && w->gap[c] > 0 && !(w->hand.rr[w->hand.row[c]] > 0))
            continue;
        off |= fabs(w->gap[c]) > 0.25 * w->size.tol_gap[c];
        change[m] = -w->gap[c];
        back[m++] = c;
    }
    return off ? m : 0;
}

static bool put_back(cdl_model *w)
{
    int m, back[NC + 1];
    double change[NC + 1], was[N];
    bool moved = false;
    for (int it = 0; it < 10 && (m = off_surface(w, back, change)) > 0; it++) {
        moved = true;
        vec_copy(was, w->q1, N);
        shortest_move(w, m, back, change);
        for (int i = 0; i < N; i++)
            w->books.opened += w->f1[i] * (w->q1[i] - was[i]);
    }
    return moved;
}

static bool step_end(cdl_model *w, bool known)
{
    w->books.opened = 0;
    bool moved = w->hand.nact && put_back(w);
    if (!(known && !moved) && !FORCE_CONSTANT)
        force(w->param, w->t1, w->q1, w->v1, w->f1);
    return true;
}

static bool step_linear(cdl_model *w, double h)
{
    double a = h * (1 - w->run.theta), b = h * w->run.theta, finite = 0, x[N], x1[N], mean[N];
    for (int i = 0; i < N; i++)
        x[i] = w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v[i]);
    if (FORCE_CONSTANT)
        vec_copy(w->f1, w->f, N);
    else
        force(w->param, w->t1, w->q1, w->v, w->f1);
    if (!step_matrix(w, h, w->t1, w->q1, w->v))
        return false;
    for (int i = 0; i < N; i++)
        mean[i] = h * ((1 - w->run.theta) * w->f[i] + w->run.theta * w->f1[i]);
    solve_with(matrix_of(w, false), mean, x1);
    for (int i = 0; i < N; i++)
        w->v1[i] = w->v[i] + x1[i];
    if (w->hand.nact && !step_contacts(w, h, w->v1))
        return false;
    for (int i = 0; i < N; i++) {
        w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v1[i]);
        finite += 0 * w->v1[i];
    }
    if (FORCE_OF_STATE) {
        for (int i = 0; i < N; i++) {
            x[i] = w->q1[i] - x[i];
            x1[i] = w->v1[i] - w->v[i];
        }
        for (int i = 0; i < N; i++)
            w->f1[i] += matrix_row(STEP_DIAGONAL, w->matrix.Fq, x, i);
        for (int i = 0; FORCE_OF_RATES && i < N; i++)
            w->f1[i] += matrix_row(STEP_DIAGONAL, w->matrix.Fv, x1, i);
    }
    return finite == 0 ? step_end(w, true) : beyond(w, "the motion is no longer finite");
}

/* step_free: rates that the smooth forces alone lead to, from the rates v1. */
static bool step_free(cdl_model *w, double h, bool first, double *v)
{
    double dv[N], defect[N], x[N];
    if (!FORCE_CONSTANT)
        force(w->param, w->t1, w->q1, w->v1, w->f1);
    else if (first)
        vec_copy(w->f1, w->f, N);
    if (first && !step_matrix(w, h, w->t1, w->q1, w->v1))
        return false;
    for (int i = 0; i < N; i++)
        dv[i] = w->v1[i] - w->v[i];
    for (int i = 0; i < N; i++)
        defect[i] = h * ((1 - w->run.theta) * w->f[i] + w->run.theta * w->f1[i]) -
                    matrix_row(MASS_DIAGONAL, w->matrix.masses, dv, i);
    solve_with(matrix_of(w, false), defect, x);
    for (int i = 0; i < N; i++)
        v[i] = w->v1[i] + x[i];
    return true;
}

static void step_positions(cdl_model *w, double h)
{
    double a = h * (1 - w->run.theta), b = h * w->run.theta;
    for (int i = 0; i < N; i++)
        w->q1[i] = w->q[i] + (a * w->v[i] + b * w->v1[i]);
}

static bool step_newton(cdl_model *w, double h)
{
    double v[N], change, size, before = INFINITY, mark = INFINITY;
    vec_copy(w->v1, w->v, N);
    vec_axpy(w->v1, h, w->acc, N);
    for (int it = 0;; it++) {
        step_positions(w, h);
        if (!step_free(w, h, it == 0, v) || (w->hand.nact && !step_contacts(w, h, v)))
            return false;
        change = size = 0;
        for (int i = 0; i < N; i++) {
            double m = fabs(w->matrix.masses[MASS_DIAGONAL ? i : i * N + i]), light = m > 0 ? 1 / m : 1,
                   by = v[i] - w->v1[i], speed = most_of(fabs(v[i]), w->size.vmax[i]);
            change = most_of(change, by * by / light);
            size = most_of(size, speed * speed / light);
        }
        change = sqrt(change);
        size = sqrt(size);
        vec_copy(w->v1, v, N);
        if (!isfinite(change))
            return beyond(w, "the motion is no longer finite");
        if (change <= ROUND_50 * size || (it > 4 && change <= STEP_STALLED * size && change >= before))
            break;
        bool stuck = it == 40 || (it % 8 == 7 && change > 0.3 * mark);
        if (it % 8 == 7)
            mark = change;
        if (stuck && change <= STEP_ENOUGH * size)
            break;
        if (stuck)
            return beyond(w, "a step did not converge");
        before = change;
    }
    step_positions(w, h);
    return step_end(w, false);
}

static bool smooth(cdl_model *w, double h)
{
    w->t1 = w->t + h;
    return LINEAR ? step_linear(w, h) : step_newton(w, h);
}

/* sweep_look: gaps at the end of the trial step; was one crossed? */
static bool look(cdl_model *w)
{
    bool any = false;
    for (int c = 0; c < NC; c++) {
        if (!w->closed[c])
            gap_put(w, c, w->t1, w->q1, w->v1);
        w->met[c] = !w->closed[c] && !(w->gap[c] >= -w->size.tol_gap[c]);
        any |= w->met[c];
    }
    return any;
}

/* ---- where a gap closes within the step: locate ---- */
static double first_crossing(const cdl_model *w, double h, const bool *who)
{
    double best = INFINITY;
    for (int c = 0; c < NC; c++) {
        if (!who[c])
            continue;
        double un = gap_rate(&w->contacts[c], w->v1), at = h - w->gap[c] / un;
        if (un < 0 && at < best)
            best = at;
    }
    return best;
}

static bool touches(const cdl_model *w, const bool *who)
{
    for (int c = 0; c < NC; c++)
        if (who[c] && w->gap[c] <= w->size.tol_gap[c] && gap_rate(&w->contacts[c], w->v1) <= w->size.tol_u[c])
            return true;
    return false;
}

static bool locate(cdl_model *w, double *h)
{
    double lo = 0, hi = *h, x = hi;
    bool who[NC + 1];
    memcpy(who, w->met, sizeof w->met);
    for (int it = 0; it < 120; it++) {
        double next = first_crossing(w, x, who);
        if (!(next > lo && next < hi))
            next = 0.5 * (lo + hi);
        if (it > 20 && it % 2)
            next = 0.5 * (lo + hi);
        if (hi - lo <= ROUND_2 * (fabs(w->t) + hi))
            next = lo > 0 ? lo : hi;
        x = *h = next;
        if (!smooth(w, x))
            return false;
        if (look(w)) {
            if (x == hi)
                return true;
            hi = x;
            memcpy(who, w->met, sizeof w->met);
        } else {
            if (touches(w, who) || x == lo)
                return true;
            lo = x;
        }
    }
    return true;
}

/* ---- accelerations by Gauss's principle: sweep_gauss ---- */
static void asks(cdl_model *w, int i)
{
    const contact *c = &w->contacts[w->hand.act[i]];
    double *off = w->hand.off + w->hand.row[w->hand.act[i]], *dir = w->hand.dir + w->hand.row[w->hand.act[i]];
    if (normal_of(c))
        *off++ = c->bias;
    if (c->d == 0)
        return;
    for (int j = 0; j < c->d; j++)
        off[j] = c->slip_bias[j];
    double speed = slip_of(c, w->v, dir);
    if (!(speed > w->size.tol_slip[w->hand.act[i]]))
        return;
    for (int j = 0; j < c->d; j++)
        dir[j] /= speed;
    w->hand.cone[i].dir = dir;
}

static bool gauss(cdl_model *w)
{
    solve_with(&w->matrix.minv, w->f, w->acc);
    take(w, NULL);
    if (w->hand.nact == 0)
        return true;
    cones(w, 1);
    for (int i = 0; i < w->hand.nact; i++)
        asks(w, i);
    if (w->hand.nact == 1 && solve_alone(w, true, w->acc))
        return true;
    cones(w, 1);
    for (int i = 0; i < w->hand.nact; i++) {
        asks(w, i);
        for (int j = 0; j < rows_of(&w->contacts[w->hand.act[i]]); j++)
            w->hand.rr[w->hand.row[w->hand.act[i]] + j] = w->r[w->contacts[w->hand.act[i]].first + j];
    }
    return solve(w, true, w->acc);
}

/* ---- where a slip reverses within the step: turning, locate_turn ---- */
static double slip_along(const cdl_model *w, int k)
{
    const contact *c = &w->contacts[k];
    double along = 0, before = 0, after = 0, rest = w->size.tol_slip[k];
    for (int j = 0; j < c->d; j++) {
        double a = rate_of(c, c->S + j * c->n, w->v) + c->s0[j];
        before += a * a;
    }
    if (before == 0 || !(sqrt(before) > rest))
        return NAN;
    for (int j = 0; j < c->d; j++) {
        const double *S = c->S + j * c->n;
        double a = rate_of(c, S, w->v) + c->s0[j], b = rate_of(c, S, w->v1) + c->s0[j];
        along += a * b;
        after += b * b;
    }
    return after > rest * rest ? along / sqrt(before) : 0;
}

static void swap_ends(cdl_model *w)
{
    double t = w->t;
    w->t = w->t1;
    w->t1 = t;
    for (int i = 0; i < N; i++) {
        double q = w->q[i], v = w->v[i], f = w->f[i];
        w->q[i] = w->q1[i];
        w->v[i] = w->v1[i];
        w->f[i] = w->f1[i];
        w->q1[i] = q;
        w->v1[i] = v;
        w->f1[i] = f;
    }
}

static bool goes_on(cdl_model *w, int k)
{
    const contact *c = &w->contacts[k];
    double free = 0, left = 0, x[N];
    solve_with(&w->matrix.minv, w->f1, x);
    for (int j = 0; j < c->d; j++) {
        free += fabs(rate_of(c, c->S + j * c->n, x));
        left += fabs(rate_of(c, c->S + j * c->n, w->acc) + c->slip_bias[j]);
    }
    return left > HELD_BACK * free + most_of(w->size.tol_slip[k] / w->run.h, 0);
}

/* The contact whose slip reverses, or comes to a rest that friction cannot hold; -1: none. */
static int turning(cdl_model *w, double h, bool *ok)
{
    int found = -1;
    bool any = false;
    for (int i = 0; i < w->hand.nact; i++)
        any |= w->contacts[w->hand.act[i]].d && slip_along(w, w->hand.act[i]) <= 0;
    if (!any)
        return -1;
    for (int i = 0; i < w->hand.nact; i++)
        if (w->contacts[w->hand.act[i]].d && slip_along(w, w->hand.act[i]) < 0)
            return w->hand.act[i];
    swap_ends(w);
    bool known = gauss(w);
    swap_ends(w);
    w->fresh = false;
    for (int i = 0; known && found < 0 && i < w->hand.nact; i++)
        if (w->contacts[w->hand.act[i]].d && slip_along(w, w->hand.act[i]) == 0 && goes_on(w, w->hand.act[i]))
            found = w->hand.act[i];
    *ok = smooth(w, h);
    return found;
}

static bool locate_turn(cdl_model *w, int k, double *h)
{
    double lo = 0, hi = *h, last = 0, speed, x, s, slip[ND + 1];
    speed = slip_of(&w->contacts[k], w->v, slip);
    for (int it = 0; it < 80 && hi - lo > ROUND_2 * (fabs(w->t) + hi); it++) {
        x = last < 0 ? lo - (speed - 0.5 * w->size.tol_slip[k]) / last : 0;
        if (!(x > lo && x < hi) || it % 8 == 7)
            x = 0.5 * (lo + hi);
        if (!smooth(w, *h = x))
            return false;
        s = slip_along(w, k);
        if (s > 0) {
            last = (s - speed) / (x - lo);
            lo = x;
            speed = s;
        } else
            hi = x;
        if (s > 0 && s <= 2 * w->size.tol_slip[k])
            break;
        if (lo == 0 && hi <= STEP_SAME * w->run.h)
            break;
    }
    if (*h != lo && lo > 0 && !smooth(w, *h = lo))
        return false;
    look(w);
    return true;
}

static bool first_turn(cdl_model *w, double *h)
{
    bool ok = true;
    int k = turning(w, *h, &ok), last = -1;
    for (int i = 0; ok && k >= 0 && k != last && i < w->hand.nact; i++) {
        last = k;
        ok = locate_turn(w, k, h);
        k = ok ? turning(w, *h, &ok) : -1;
    }
    return ok;
}

/* ---- impacts: sweep_meet, sweep_shock ---- */
static bool rates(cdl_model *w)
{
    w->books.driving_known = false;
    if (!FORCE_CONSTANT || w->t == 0)
        force(w->param, w->t, w->q, w->v, w->f);
    w->fresh = false;
    return true;
}

static bool comes(const cdl_model *w, int c)
{
    return w->contacts[c].relation == GAP && w->before[c] < -w->size.tol_u[c];
}

static bool shock_phase(cdl_model *w)
{
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = &w->contacts[w->hand.act[i]];
        double *off = w->hand.off + w->hand.row[w->hand.act[i]];
        double e = w->hits[w->hand.act[i]] < MOST_HITS ? c->e : 0;
        for (int j = 0; j < rows_of(c); j++)
            off[j] = still_of(c, j);
        if (normal_of(c))
            off[0] = c->ht + (!c->poisson && comes(w, w->hand.act[i]) ? e * w->before[w->hand.act[i]] : 0);
    }
    if (!solve(w, true, w->v))
        return false;
    for (int i = 0; i < w->hand.nact; i++)
        for (int j = 0; j < rows_of(&w->contacts[w->hand.act[i]]); j++)
            w->impulse[w->contacts[w->hand.act[i]].first + j] += w->hand.rr[w->hand.row[w->hand.act[i]] + j];
    return true;
}

static void pose_shock(cdl_model *w)
{
    cones(w, 0);
    for (int j = 0; j < w->hand.nrows; j++)
        w->hand.rr[j] = 0;
}

static bool shock_poisson(cdl_model *w)
{
    bool any = false;
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        if (w->contacts[c].poisson && comes(w, c))
            w->given[c] = (w->hits[c] < MOST_HITS ? w->contacts[c].e : 0) * w->impulse[w->contacts[c].first];
        any |= w->given[c] > 0;
    }
    if (!any)
        return true;
    pose_shock(w);
    for (int i = 0; i < w->hand.nact; i++)
        if (w->given[w->hand.act[i]] > 0)
            w->hand.rr[w->hand.row[w->hand.act[i]]] = w->given[w->hand.act[i]];
    react(w, w->v, true);
    pose_shock(w);
    bool ok = shock_phase(w);
    for (int i = 0; i < w->hand.nact; i++) {
        if (w->given[w->hand.act[i]] > 0)
            w->impulse[w->contacts[w->hand.act[i]].first] += w->given[w->hand.act[i]];
        w->given[w->hand.act[i]] = 0;
    }
    return ok;
}

/* impulse_size */
static double impulse_size(const cdl_model *w, const contact *k)
{
    double P = w->impulse[k->first], own = 0;
    const double *row = row_of(k, 0);
    if (P == 0)
        return 0;
    for (int j = 0; j < k->n; j++) {
        int i = k->listed ? k->dof[j] : j;
        double m = fabs(w->matrix.masses[MASS_DIAGONAL ? i : i * N + i]);
        own += m > 0 ? row[j] * row[j] / m : 0;
    }
    return fabs(P) * sqrt(own);
}

/* instant_account, shock_end */
static void shock_account(cdl_model *w, const double *before)
{
    double mean[N], most = 0;
    bool again = false;
    for (int i = 0; i < N; i++)
        mean[i] = 0.5 * (before[i] + w->v[i]);
    for (int i = 0; i < w->hand.nact; i++)
        most = fmax(most, impulse_size(w, &w->contacts[w->hand.act[i]]));
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        const contact *k = &w->contacts[c];
        const double *P = w->impulse + k->first;
        for (int j = 0; j < rows_of(k); j++) {
            double still = still_of(k, j);
            w->books.dissipated -= P[j] * (rate_of(k, row_of(k, j), mean) + still);
            w->books.work -= P[j] * still;
        }
        double after = normal_of(k) ? gap_rate(k, w->v) : 0, e = w->hits[c] < MOST_HITS ? k->e : 0;
        if (k->relation != GAP)
            continue;
        bool hit = P[0] > 0 && impulse_size(w, k) > IMPULSE_ZERO * most;
        w->books.impacts += hit;
        again |= hit && w->hits[c]++ > 0;
        bool thrown = w->before[c] < -w->size.tol_u[c] && e > 0;
        w->closed[c] = after <= w->size.tol_u[c] || (P[0] > 0 && !thrown);
    }
    w->again += again;
}

static bool shock(cdl_model *w)
{
    double before[N];
    take(w, w->met);
    vec_copy(before, w->v, N);
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        w->given[c] = 0;
        w->before[c] = normal_of(&w->contacts[c]) ? gap_rate(&w->contacts[c], w->v) : 0;
        for (int j = 0; j < rows_of(&w->contacts[c]); j++)
            w->impulse[w->contacts[c].first + j] = 0;
    }
    pose_shock(w);
    if (!shock_phase(w) || !shock_poisson(w))
        return false;
    shock_account(w, before);
    return rates(w);
}

static bool meet(cdl_model *w)
{
    bool hit = false;
    for (int c = 0; c < NC; c++) {
        w->met[c] = false;
        if (w->closed[c] || w->gap[c] > w->size.tol_gap[c])
            continue;
        double un = gap_rate(&w->contacts[c], w->v);
        if (un > w->size.tol_u[c])
            continue;
        w->met[c] = true;
        hit |= un < -w->size.tol_u[c];
    }
    if (hit)
        return shock(w);
    for (int c = 0; c < NC; c++)
        w->closed[c] |= w->met[c];
    return true;
}

/* sweep_survey: gaps and closed contacts of a state that has jumped. */
static bool survey(cdl_model *w)
{
    sizes(w);
    for (int c = 0; c < NC; c++) {
        const contact *k = &w->contacts[c];
        gap_put(w, c, w->t, w->q, w->v);
        tolerances(w, c);
        if (k->relation == ALWAYS_CLOSED)
            continue;
        double wrong = k->relation == BILATERAL ? fabs(w->gap[c]) : -w->gap[c], un = gap_rate(k, w->v);
        if (!isfinite(w->gap[c]) || wrong > GATE_LOOSE * size_of(k, k->H, w->size.qmax) + GATE_GAP_LEAST)
            return beyond(w, "a constraint does not hold");
        w->books.deepest = most_of(wrong, w->books.deepest);
        w->closed[c] = k->relation == BILATERAL ||
                       (w->closed[c] && w->gap[c] <= w->size.tol_gap[c] && fabs(un) <= w->size.tol_u[c]);
    }
    return true;
}

/* ---- `when`: sweep_rise, sweep_locate_event, sweep_fire ---- */
#if NE
static bool rise(cdl_model *w, bool mark)
{
    bool any = false;
    for (int e = 0; e < NE; e++) {
        bool now = event_true(e, w->param, w->t1, w->q1, w->v1);
        any |= now && !w->fired[e];
        if (mark) {
            w->rising[e] = now && !w->fired[e];
            w->fired[e] = now;
        }
    }
    return any;
}

static bool locate_event(cdl_model *w, double *h)
{
    double lo = 0, hi = *h;
    for (int it = 0; it < 60 && hi - lo > ROUND_1 * (fabs(w->t) + hi); it++) {
        double mid = 0.5 * (lo + hi);
        if (!smooth(w, mid))
            return false;
        if (rise(w, false))
            hi = mid;
        else
            lo = mid;
    }
    *h = hi;
    if (!smooth(w, hi))
        return false;
    look(w);
    return true;
}

static double energy(const cdl_model *w)
{
    double e = 0;
    for (int i = 0; i < N; i++)
        e += w->v[i] * matrix_row(MASS_DIAGONAL, w->matrix.masses, w->v, i);
    return 0.5 * e + potential(w->param, w->t, w->q, w->v);
}

static bool fire(cdl_model *w)
{
    bool reset = false;
    vec_copy(w->q1, w->q, N);
    vec_copy(w->v1, w->v, N);
    for (int e = 0; e < NE; e++)
        if (w->rising[e])
            reset |= event_reset(e, w->param, w->t, w->q, w->v, w->q1, w->v1, &w->stopped);
    if (!reset)
        return true;
    double before = energy(w);
    vec_copy(w->q, w->q1, N);
    vec_copy(w->v, w->v1, N);
    if (!survey(w) || !rates(w))
        return false;
    for (int e = 0; e < NE; e++)
        w->fired[e] = w->fired[e] && event_true(e, w->param, w->t, w->q, w->v);
    w->books.work += energy(w) - before;
    return true;
}
#endif

/* ---- the step is accepted: sweep_accept ---- */
static double driven(cdl_model *w, double h, const double *way)
{
    double th = w->run.theta, work = 0, end[N];
    if (!DRIVEN)
        return 0;
    if (!w->books.driving_known)
        w->books.power = driving(w->param, w->t, w->q, w->v, w->books.driving);
    double power = driving(w->param, w->t1, w->q1, w->v1, end);
    for (int i = 0; i < N; i++)
        work += (way ? way[i] : 0.5 * h * (w->v[i] + w->v1[i])) *
                ((1 - th) * w->books.driving[i] + th * end[i]);
    work += h * ((1 - th) * w->books.power + th * power);
    vec_copy(w->books.driving, end, N);
    w->books.power = power;
    w->books.driving_known = true;
    return work;
}

static void account(cdl_model *w, double h)
{
    double way[N];
    for (int i = 0; i < N; i++)
        way[i] = w->q1[i] - w->q[i];
    w->books.work += driven(w, h, w->books.opened != 0 ? way : NULL);
    w->books.dissipated += w->books.opened;
    for (int i = 0; i < w->hand.nact; i++) {
        const contact *c = &w->contacts[w->hand.act[i]];
        for (int j = 0; j < rows_of(c); j++) {
            double P = w->hand.rr[w->hand.row[w->hand.act[i]] + j],
                   still = 0.5 * (still_of(c, j) + still_of(c, j));
            if (P == 0)
                continue;
            w->books.dissipated -= P *
                                   (0.5 * (rate_of(c, row_of(c, j), w->v) + rate_of(c, row_of(c, j), w->v1)) +
                                    still);
            w->books.work -= P * still;
        }
    }
}

static void accept(cdl_model *w, double h)
{
    account(w, h);
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        const double *rr = w->hand.rr + w->hand.row[c];
        double *r = w->r + w->contacts[c].first, *P = w->P + w->contacts[c].first;
        for (int j = 0; j < rows_of(&w->contacts[c]); j++) {
            P[j] += rr[j];
            r[j] = rr[j] / h;
        }
        if (w->contacts[c].relation != GAP || rr[0] > 0 ||
            !(gap_rate(&w->contacts[c], w->v1) > w->size.tol_u[c]))
            continue;
        w->closed[c] = false;
        for (int j = 0; j < rows_of(&w->contacts[c]); j++)
            r[j] = 0;
    }
    vec_copy(w->q, w->q1, N);
    vec_copy(w->v, w->v1, N);
    if (!FORCE_CONSTANT)
        vec_copy(w->f, w->f1, N);
    w->t = w->t1;
    w->fresh = false;
    sizes(w);
    for (int c = 0; c < NC; c++)
        w->books.deepest = most_of(w->contacts[c].relation == BILATERAL ? fabs(w->gap[c]) : -w->gap[c],
                                   w->books.deepest);
}

/* ---- one step of the run: follow, sweep_advance ---- */
static bool still_deep(const cdl_model *w)
{
    for (int i = 0; i < w->hand.nact; i++) {
        int c = w->hand.act[i];
        if (w->gap[c] < 0 && normal_of(&w->contacts[c]) &&
            w->gap[c] < -GAP_DEEP * w->size.length[w->contacts[c].family])
            return true;
    }
    return false;
}

static bool follow(cdl_model *w, double *h, bool *rises)
{
    take(w, NULL);
    if (!w->fresh && !LINEAR && !gauss(w))
        return false;
    if (!smooth(w, *h) || (look(w) && !locate(w, h)))
        return false;
    if (!first_turn(w, h))
        return false;
#if NE
    *rises = rise(w, false);
    if (*rises && !locate_event(w, h))
        return false;
#endif
    return !still_deep(w) || beyond(w, "an overlap of coupled contacts could not be removed");
}

static bool advance(cdl_model *w, double end)
{
    int most = CUT_ALWAYS ? MANY_CUTS : MOST_CUTS * 1000 / (1000 + N + NC) + 1;
    memset(w->hits, 0, sizeof w->hits);
    memset(w->P, 0, sizeof w->P);
    w->again = 0;
    for (int sub = 0;; sub++) {
        if (!meet(w))
            return false;
        if (end - w->t <= ROUND_2 * fabs(end))
            break;
        double h = end - w->t;
        bool rises = false;
        if (fabs(h - w->run.h) <= STEP_SAME * w->run.h)
            h = w->run.h;
        if (sub > most || (!CUT_ALWAYS && w->again > MOST_AGAIN))
            return beyond(w, "too many impacts in a step; cdl run takes a whole step instead");
        if (!follow(w, &h, &rises))
            return false;
#if NE
        rise(w, true);
#endif
        accept(w, h);
#if NE
        if (rises && !fire(w))
            return false;
#endif
        if (w->stopped || w->t >= end)
            break;
    }
    return true;
}

#if PLAIN
/* One step of quick_steps. */
static bool plain_one(cdl_model *w, double end)
{
#if NC
    /* rows of a single contact in the units of a whole step */
    if (w->closed[0] && w->matrix.A_stamp != w->matrix.stamp &&
        (!FORCE_OF_STATE || w->matrix.d_step == w->run.h)) {
        lone_matrix(w, 0, false, w->matrix.A);
        w->matrix.A_stamp = w->matrix.stamp;
    }
#endif
    if (!plain_ready(w))
        return false;
    plain_state now = plain_now(w);
    if (!plain_step(w, &now, w->t, end, w->run.h * (1 - w->run.theta), w->run.h * w->run.theta))
        return false;
    plain_put(w, &now);
    w->fresh = false;
    w->step_from = w->t;
    w->t = end;
    w->step++;
    return true;
}
#endif

/* ---- functions for users ---- */
/* One step of the run.  0: taken; 1: the run is over; 2: this file cannot take the step, see
   cdl_model_why. */
int cdl_model_step(cdl_model *w)
{
    if (w->stopped || w->step >= STEPS)
        return 1;
    double end = w->step + 1 == STEPS ? w->run.end : (double)(w->step + 1) * w->run.h;
#if PLAIN
    if (w->step + 1 < STEPS && plain_one(w, end))
        return 0;
#endif
    w->step_from = w->t;
    if (!advance(w, end)) {
        beyond(w, "a step could not be taken");
        return 2;
    }
    if (!w->stopped)
        w->t = end;
    w->step++;
    return 0;
}

const char *cdl_model_why(const cdl_model *w)
{
    return w->stopped_by;
}

/* Reactions of contact c at a sample, normal first, as forces: at the start those of the instant, then means
   over the last step. */
void cdl_model_reaction(const cdl_model *w, int c, double *rn, double *rt)
{
    const contact *k = &w->contacts[c];
    double over = w->t == 0 ? 1 : w->t > w->step_from ? 1 / (w->t - w->step_from) : 0;
    const double *P = (w->t == 0 ? w->r : w->P) + k->first, *x = P + normal_of(k);
    *rn = normal_of(k) ? over * P[0] : k->normal;
    if (k->shown == 1 && k->d > 1 && !k->slip_given)
        rt[0] = over * sqrt(vec_dot(x, x, k->d));
    else
        for (int j = 0; j < k->shown; j++)
            rt[j] = over * vec_dot(k->show_force + j * k->d, x, k->d);
}

#ifdef MAIN
#include <stdio.h>

static int sample(const cdl_model *w)
{
    double rn, rt[ND + 1];
    int printed = printf("%.17g", w->t);
    for (int i = 0; i < N; i++)
        printed = printf(",%.17g", w->q[i]);
    for (int i = 0; i < N; i++)
        printed = printf(",%.17g", w->v[i]);
    for (int c = 0; c < NC; c++) {
        cdl_model_reaction(w, c, &rn, rt);
        printed = printf(",%.17g,%.17g", w->gap[c], rn);
        for (int j = 0; j < w->contacts[c].shown; j++)
            printed = printf(",%.17g", rt[j]);
    }
    return printf("\n") < 0 || printed < 0;
}

int main(void)
{
    static cdl_model w;
    cdl_model_init(&w);
    double last = 0;
    int code = 0;
    puts(COLUMNS);
    for (sample(&w); !code;) {
        code = cdl_model_step(&w);
        if (code == 0 && (w.t - last >= w.run.apart || w.step == STEPS || w.stopped)) {
            last = w.t;
            code = sample(&w) ? 3 : 0;
        }
    }
    if (code == 2)
        fprintf(stderr, "step %lld: %s\n", (long long)(w.step + 1), cdl_model_why(&w));
    return fflush(stdout) || code > 1 ? code > 1 ? code : 3 : 0;
}
#endif
