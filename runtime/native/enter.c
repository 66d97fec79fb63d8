/* enter: plain steps for a run of the interpreter, which keeps the state; part of the source of compiled
   steps. */
static void enter(cdl_model *w, const native_view *x)
{
    contact *c = &w->contacts[0];
    memcpy(w->param, x->fixed.param, sizeof(double) * NP);
    memcpy(w->q, x->now.q, sizeof w->q);
    memcpy(w->v, x->now.v, sizeof w->v);
    memcpy(w->f, x->now.f, sizeof w->f);
    memcpy(w->size.qmax, x->now.qmax, sizeof w->size.qmax);
    memcpy(w->size.vmax, x->now.vmax, sizeof w->size.vmax);
    memcpy(w->books.driving, x->now.driving, sizeof w->books.driving);
    if (FORCE_CONSTANT)
        memcpy(w->drift, x->fixed.drift, sizeof w->drift);
    else if (FORCE_OF_STATE) {
        memcpy(w->matrix.factors, x->fixed.inverse, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
        memcpy(w->matrix.Fq, x->fixed.Fq, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
        memcpy(w->matrix.Fv, x->fixed.Fv, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
    } else
        memcpy(w->matrix.inverse, x->fixed.inverse, sizeof(double) * (MASS_DIAGONAL ? N : N * N));
    w->run.h = w->matrix.d_step = x->fixed.h;
    w->run.theta = x->fixed.theta;
    w->t = x->now.t;
    w->step = x->now.step;
    w->step_from = x->now.step_from;
    w->books.work = x->now.work;
    w->books.dissipated = x->now.dissipated;
    w->books.deepest = x->now.deepest;
    w->books.power = x->now.power;
    w->books.driving_known = x->now.driving_known;
    if (!NC)
        return;
    *c = (contact){ .relation = x->fixed.relation,
                    .d = D0,
                    .n = N0,
                    .dof = x->fixed.dof,
                    .listed = LISTED0,
                    .tresca = x->fixed.tresca,
                    .ht = x->fixed.ht,
                    .mu = x->fixed.mu,
                    .normal = x->fixed.normal };
    memcpy(c->H, x->fixed.H, sizeof(double) * N0);
    memcpy(c->S, x->fixed.S, sizeof(double) * D0 * N0);
    memcpy(c->s0, x->fixed.s0, sizeof(double) * D0);
    if (x->fixed.A_known) {
        for (int j = 0; j < NORMAL0 + D0; j++)
            memcpy(w->matrix.G[0] + j * N, x->fixed.G + j * (LOCAL0 ? N0 : N),
                   sizeof(double) * (LOCAL0 ? N0 : N));
        memcpy(w->matrix.A, x->fixed.A, sizeof(double) * (NORMAL0 + D0) * (NORMAL0 + D0));
    }
    memcpy(w->r, x->now.r, sizeof(double) * (NORMAL0 + D0));
    memcpy(w->P, x->now.P, sizeof(double) * (NORMAL0 + D0));
    w->matrix.stamp = 1;
    w->matrix.A_stamp = x->fixed.A_known;
    w->closed[0] = x->now.closed;
    w->gap[0] = x->now.gap;
    w->size.tol_gap[0] = x->now.tol_gap;
    w->size.tol_u[0] = x->now.tol_u;
    w->size.tol_slip[0] = x->now.tol_slip;
    w->size.length[0] = x->now.length;
}

static void leave(const cdl_model *w, native_view *x)
{
    memcpy(x->now.q, w->q, sizeof w->q);
    memcpy(x->now.v, w->v, sizeof w->v);
    memcpy(x->now.f, w->f, sizeof w->f);
    memcpy(x->now.qmax, w->size.qmax, sizeof w->size.qmax);
    memcpy(x->now.vmax, w->size.vmax, sizeof w->size.vmax);
    memcpy(x->now.driving, w->books.driving, sizeof w->books.driving);
    x->now.t = w->t;
    x->now.step = w->step;
    x->now.step_from = w->step_from;
    x->now.work = w->books.work;
    x->now.dissipated = w->books.dissipated;
    x->now.deepest = w->books.deepest;
    x->now.power = w->books.power;
    x->now.driving_known = w->books.driving_known;
    if (!NC)
        return;
    memcpy(x->now.r, w->r, sizeof(double) * (NORMAL0 + D0));
    memcpy(x->now.P, w->P, sizeof(double) * (NORMAL0 + D0));
    x->now.gap = w->gap[0];
    x->now.tol_gap = w->size.tol_gap[0];
    x->now.tol_u = w->size.tol_u[0];
    x->now.tol_slip = w->size.tol_slip[0];
    x->now.length = w->size.length[0];
}

/* As quick_sample, for an open contact; false: the run must take the sample. */
static bool sample_open(const cdl_model *w, native_view *x)
{
    if ((NC && w->closed[0]) || x->kept.at >= x->kept.room)
        return false;
    int64_t at = x->kept.at++;
    x->kept.t[at] = w->t;
    x->kept.work[at] = w->books.work;
    x->kept.dissipated[at] = w->books.dissipated;
    for (int i = 0; i < N; i++) {
        x->kept.q[at * N + i] = w->q[i];
        x->kept.v[at * N + i] = w->v[i];
    }
    for (int i = 0; x->kept.f && i < N; i++)
        x->kept.f[at * N + i] = w->f[i];
    if (!NC)
        return true;
    x->kept.gap[at] = w->gap[0];
    x->kept.rn[at] = 0;
    x->kept.status[at] = 0;
    for (int j = 0; j < SHOWN0; j++)
        x->kept.rt[at * SHOWN0 + j] = 0;
    return true;
}

int64_t cdl_native_steps(native_view *x, int64_t count, int *due);
int64_t cdl_native_steps(native_view *x, int64_t count, int *due)
{
    cdl_model w;
    int64_t done = 0;
    enter(&w, x);
    double last = x->kept.last, apart = x->kept.apart;
    *due = 0;
    plain_state now = plain_now(&w);
    double t = w.t, from = w.step_from;
    int64_t step = w.step;
    while (done < count && !*due) {
        bool rests = NC && w.closed[0];
        int64_t taken = (rests ? plain_rest : plain_flight)(&w, &now, &t, step, count - done, last, apart);
        if (!taken)
            break;
        step += taken;
        done += taken;
        from = step > 1 ? (double)(step - 1) * w.run.h : 0;
        if (!(t - last >= apart))
            continue;
        plain_put(&w, &now);
        w.t = t;
        *due = !sample_open(&w, x);
        last = *due ? last : t;
    }
    plain_put(&w, &now);
    w.t = t;
    w.step_from = from;
    w.step = step;
    x->kept.last = last;
    leave(&w, x);
    return done;
}
