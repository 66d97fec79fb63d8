/* plain: the most common step of a linear model with at most one contact: the contact, if any, stays open or
   closed throughout. Part of what `cdl emit c` writes, and everything that a run with compiled steps
   compiles. It gives the same numbers as sweep_quick, which has the same functions. */

typedef struct plain_state {
    double q[N], v[N], f[N];
} plain_state;

static inline double plain_row(const cdl_model *w, const double *row, const double *v)
{
    double sum = 0;
    for (int k = 0; k < N0; k++)
        sum += row[k] * v[LISTED0 ? w->contacts[0].dof[k] : k];
    return sum;
}

static double plain_times(bool diagonal, const double *a, const double *x, int i)
{
    return diagonal ? a[i] * x[i] : vec_dot(a + i * N, x, N);
}

#if NC
/* quick_turns */
static bool plain_turns(const cdl_model *w, const double *v, const double *v1)
{
    const contact *c = &w->contacts[0];
    double along = 0, before = 0, after = 0;
    for (int j = 0; j < D0; j++) {
        double a = plain_row(w, c->S + j * N0, v) + c->s0[j], b = plain_row(w, c->S + j * N0, v1) + c->s0[j];
        along += a * b;
        before += a * a;
        after += b * b;
    }
    return sqrt(before) > w->size.tol_slip[0] &&
           !(after > w->size.tol_slip[0] * w->size.tol_slip[0] && along > 0);
}

/* react_alone, for known sizes. */
static inline void plain_move(const cdl_model *w, double *v1)
{
    for (int k = 0; k < (LOCAL0 ? N0 : N); k++) {
        double *to = &v1[LOCAL0 ? w->contacts[0].dof[k] : k], size = fabs(*to),
               change = w->matrix.G[0][k] * w->hand.rr[0];
        if (NORMAL0 + D0 > 1 || LOCAL0)
            change += 0;
        size += fabs(change);
        for (int b = 1; b < NORMAL0 + D0; b++) {
            double d = w->matrix.G[0][b * N + k] * w->hand.rr[b];
            change += d;
            size += fabs(d);
        }
        *to = cancelled(*to, change, size);
    }
}

/* quick_react: the impulse of the closed contact; false: it opens, or its slip reverses. */
static bool plain_react(cdl_model *w, const double *v, double *v1)
{
    const contact *c = &w->contacts[0];
    double *b = w->hand.b;
    if (w->matrix.A_stamp != w->matrix.stamp || (NORMAL0 && !(w->matrix.A[0] > 0)))
        return false;
    if (NORMAL0)
        *b++ = plain_row(w, c->H, v1) + (c->ht + 0);
    for (int j = 0; j < D0; j++)
        *b++ = plain_row(w, c->S + j * N0, v1) + c->s0[j];
    cone law = { .kind = NORMAL0 ? (c->relation == GAP ? CONE_UNILATERAL : CONE_BILATERAL) : CONE_GIVEN,
                 .d = D0 };
    if (D0) {
        law.mu = c->tresca || !NORMAL0 ? 0 : c->mu;
        law.radius = c->tresca ? c->mu * w->run.h : !NORMAL0 ? c->mu * fabs(c->normal) * w->run.h : c->mu * 0;
    }
    if (D0 == 0) /* the law of a normal reaction only */
        w->hand.rr[0] = -w->hand.b[0] / w->matrix.A[0];
    else if (!cone_solve(&law, w->matrix.A, NORMAL0 + D0, w->hand.b, w->hand.rr, w->hand.local))
        return false;
    if (NORMAL0 && c->relation == GAP && !(w->hand.rr[0] > 0))
        return false;
    plain_move(w, v1);
    return D0 == 0 || !plain_turns(w, v, v1);
}

/* quick_stays: does the contact do the same at the end as at the start? */
static inline bool plain_stays(const cdl_model *w, bool closed, double t1, const double *q1, const double *v1,
                               bool grown, double *gap)
{
    if (!NORMAL0)
        return true;
    *gap = gap_of(0, w->param, t1, q1, v1);
    if (closed)
        return fabs(*gap) <= 0.25 * w->size.tol_gap[0];
    if (!grown)
        return *gap > w->size.tol_gap[0];
    double size = 0;
    for (int k = 0; k < N0; k++) {
        int i = LISTED0 ? w->contacts[0].dof[k] : k;
        double v = w->run.h * fabs(v1[i]), q = fabs(q1[i]), most = q > v ? q : v;
        size += fabs(w->contacts[0].H[k]) * (most > w->size.qmax[i] ? most : w->size.qmax[i]);
    }
    return *gap > GAP_IS_ZERO * size;
}

static void plain_account(cdl_model *w, const double *v, const double *v1)
{
    const contact *c = &w->contacts[0];
    for (int j = 0; j < NORMAL0 + D0; j++) {
        const double *row = j < NORMAL0 ? c->H : c->S + (j - NORMAL0) * N0;
        double P = w->hand.rr[j], at = j < NORMAL0 ? c->ht : c->s0[j - NORMAL0], still = 0.5 * (at + at);
        w->P[j] = 0 + P;
        w->r[j] = P / w->run.h;
        if (P == 0)
            continue;
        w->books.dissipated -= P * (0.5 * (plain_row(w, row, v) + plain_row(w, row, v1)) + still);
        w->books.work -= P * still;
    }
}
#endif

#ifdef __GNUC__
#define PLAIN_INLINE static inline __attribute__((always_inline))
#define PLAIN_LOOP   static __attribute__((noinline))
#else
#define PLAIN_INLINE static inline
#define PLAIN_LOOP   static
#endif

/* sweep_driven, with the mean rates. */
PLAIN_INLINE void plain_driven(cdl_model *w, double t, const plain_state *now, double t1,
                               const plain_state *end)
{
    double th = w->run.theta, work = 0, at_end[N];
    if (!DRIVEN)
        return;
    if (!w->books.driving_known)
        w->books.power = driving(w->param, t, now->q, now->v, w->books.driving);
    double power = driving(w->param, t1, end->q, end->v, at_end);
    for (int i = 0; i < N; i++)
        work += 0.5 * w->run.h * (now->v[i] + end->v[i]) * ((1 - th) * w->books.driving[i] + th * at_end[i]);
    if (POWERED)
        work += w->run.h * ((1 - th) * w->books.power + th * power);
    for (int i = 0; i < N; i++)
        w->books.driving[i] = at_end[i];
    w->books.power = power;
    w->books.driving_known = true;
    w->books.work += work;
}

/* Forces and rates at the end of the step without the contact; x: positions if rates stayed constant. */
PLAIN_INLINE void plain_free(const cdl_model *w, double t1, double early, double late, const plain_state *now,
                             plain_state *end, double *x)
{
    double mean[N], th = w->run.theta;
    if (FORCE_CONSTANT) {
        for (int i = 0; i < N; i++)
            end->v[i] = now->v[i] + w->drift[i];
        return;
    }
    for (int i = 0; i < N; i++)
        x[i] = now->q[i] + (early * now->v[i] + late * now->v[i]);
    force(w->param, t1, x, now->v, end->f);
    for (int i = 0; i < N; i++)
        mean[i] = w->run.h * ((1 - th) * now->f[i] + th * end->f[i]);
    for (int i = 0; i < N; i++)
        end->v[i] = now->v[i] + PLAIN_INVERSE(w, mean, i);
}

/* f, from positions with constant rates to those that the rates lead to */
PLAIN_INLINE void plain_follows(const cdl_model *w, const plain_state *now, plain_state *end, const double *x)
{
    double change[N];
    for (int i = 0; i < N; i++)
        change[i] = end->q[i] - x[i];
    for (int i = 0; i < N; i++)
        end->f[i] += plain_times(STEP_DIAGONAL, w->matrix.Fq, change, i);
    for (int i = 0; i < N; i++)
        change[i] = end->v[i] - now->v[i];
    for (int i = 0; FORCE_OF_RATES && i < N; i++)
        end->f[i] += plain_times(STEP_DIAGONAL, w->matrix.Fv, change, i);
}

PLAIN_INLINE bool plain_grows(const cdl_model *w, const plain_state *end)
{
    bool grown = false;
    for (int i = 0; i < N; i++) {
        double v = fabs(end->v[i]), q = fabs(end->q[i]);
        grown |= (v > w->size.vmax[i]) | (q > w->size.qmax[i]) | (w->run.h * v > w->size.qmax[i]);
    }
    return grown;
}

static void plain_put(cdl_model *w, const plain_state *now)
{
    memcpy(w->q, now->q, sizeof w->q);
    memcpy(w->v, now->v, sizeof w->v);
    memcpy(w->f, now->f, sizeof w->f);
}

PLAIN_LOOP void plain_sizes(cdl_model *w, const plain_state *now)
{
    plain_put(w, now);
    sizes(w);
}

/* quick_step; early, late: weights of the start and the end of the step in the positions. */
PLAIN_INLINE bool plain_step(cdl_model *w, plain_state *now, double t, double to, double early, double late)
{
    plain_state end;
    double x[N], finite = 0, gap = 0, t1 = t + w->run.h;
    if (!(fabs(to - t - w->run.h) <= STEP_SAME * w->run.h))
        return false;
    plain_free(w, t1, early, late, now, &end, x);
#if NC
    bool closed = w->closed[0];
    if (closed && !plain_react(w, now->v, end.v))
        return false;
#endif
    for (int i = 0; i < N; i++) {
        end.q[i] = now->q[i] + (early * now->v[i] + late * end.v[i]);
        finite += 0 * end.v[i];
    }
    if (!(finite == 0))
        return false;
    if (FORCE_OF_STATE)
        plain_follows(w, now, &end, x);
    bool grown = plain_grows(w, &end);
#if NC
    if (!plain_stays(w, closed, t1, end.q, end.v, grown, &gap))
        return false;
    if (closed) {
        double depth = w->contacts[0].relation == BILATERAL ? fabs(gap) : -gap;
        if (depth > w->books.deepest)
            w->books.deepest = depth;
    }
    w->gap[0] = gap;
#endif
    plain_driven(w, t, now, t1, &end);
#if NC
    if (closed)
        plain_account(w, now->v, end.v);
#endif
    for (int i = 0; i < N; i++) {
        now->q[i] = end.q[i];
        now->v[i] = end.v[i];
        if (!FORCE_CONSTANT)
            now->f[i] = end.f[i];
    }
    if (grown)
        plain_sizes(w, now);
    return true;
}

/* Steps with a contact that stays open, or without contact: the same as those of plain_step, with all data in
   local variables. At most `count`, up to the first that ends `apart` after `last`. */
PLAIN_LOOP int64_t plain_flight(cdl_model *w, plain_state *at, double *t, int64_t step, int64_t count,
                                double last, double apart)
{
    plain_state now = *at;
    const double h = w->run.h, early = h * (1 - w->run.theta), late = h * w->run.theta, slack = STEP_SAME * h;
    double time = *t, tol = NC ? w->size.tol_gap[0] : 0, gap = NC ? w->gap[0] : 0, qmax[N], vmax[N];
    int64_t done = 0;
    if (NC && w->closed[0])
        return 0;
    memcpy(qmax, w->size.qmax, sizeof qmax);
    memcpy(vmax, w->size.vmax, sizeof vmax);
    while (done < count) {
        plain_state end;
        double x[N], finite = 0, to = (double)(step + done + 1) * h, t1 = time + h;
        bool grown = false;
        plain_free(w, t1, early, late, &now, &end, x);
        for (int i = 0; i < N; i++) {
            end.q[i] = now.q[i] + (early * now.v[i] + late * end.v[i]);
            finite += 0 * end.v[i];
        }
        for (int i = 0; i < N; i++) {
            double v = fabs(end.v[i]), q = fabs(end.q[i]);
            grown |= (v > vmax[i]) | (q > qmax[i]) | (h * v > qmax[i]);
        }
        if (FORCE_OF_STATE)
            plain_follows(w, &now, &end, x);
        double ahead = NORMAL0 ? gap_of(0, w->param, t1, end.q, end.v) : 0;
        if (!(fabs(to - time - h) <= slack) || !(finite == 0) || !(NORMAL0 == 0 || ahead > tol))
            break;
#if NC
        if (grown && !plain_stays(w, false, t1, end.q, end.v, true, &ahead))
            break;
#endif
        plain_driven(w, time, &now, t1, &end);
        for (int i = 0; i < N; i++) {
            now.q[i] = end.q[i];
            now.v[i] = end.v[i];
            if (!FORCE_CONSTANT)
                now.f[i] = end.f[i];
        }
        gap = ahead;
        time = to;
        done++;
        if (grown) {
            const plain_state copy = now; /* its address is passed on */
            plain_sizes(w, &copy);
            memcpy(qmax, w->size.qmax, sizeof qmax);
            memcpy(vmax, w->size.vmax, sizeof vmax);
            tol = NC ? w->size.tol_gap[0] : 0;
        }
        if (to - last >= apart)
            break;
    }
    *at = now;
    *t = time;
    if (NC)
        w->gap[0] = gap;
    return done;
}

/* The same for a contact that stays closed. */
PLAIN_LOOP int64_t plain_rest(cdl_model *w, plain_state *at, double *t, int64_t step, int64_t count,
                              double last, double apart)
{
    plain_state now = *at;
    const double early = w->run.h * (1 - w->run.theta), late = w->run.h * w->run.theta;
    double time = *t;
    int64_t done = 0;
    while (done < count) {
        double to = (double)(step + done + 1) * w->run.h;
        if (!plain_step(w, &now, time, to, early, late))
            break;
        time = to;
        done++;
        if (to - last >= apart)
            break;
    }
    *at = now;
    *t = time;
    return done;
}

PLAIN_INLINE plain_state plain_now(const cdl_model *w)
{
    plain_state now;
    memcpy(now.q, w->q, sizeof w->q);
    memcpy(now.v, w->v, sizeof w->v);
    memcpy(now.f, w->f, sizeof w->f);
    return now;
}

/* quick_ready: is the contact far enough from closing or opening? */
static bool plain_ready(cdl_model *w)
{
    if (FORCE_OF_STATE && w->matrix.d_step != w->run.h)
        return false;
#if NC
    if (!w->closed[0] && !(w->gap[0] > w->size.tol_gap[0]))
        return false;
    for (int j = 0; j < NORMAL0 + D0; j++)
        w->P[j] = 0;
#endif
    return true;
}
