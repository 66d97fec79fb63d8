/* enter: plain steps for a run of the interpreter, which keeps the state; part of what native steps are
   compiled from. */
static void enter(cdl_model *w, const native_view *x)
{
    contact *c = &w->contacts[0];
    memcpy(w->param, x->param, sizeof(double) * NP);
    memcpy(w->q, x->q, sizeof w->q);
    memcpy(w->v, x->v, sizeof w->v);
    memcpy(w->f, x->f, sizeof w->f);
    memcpy(w->qmax, x->qmax, sizeof w->qmax);
    memcpy(w->vmax, x->vmax, sizeof w->vmax);
    memcpy(w->driving, x->driving, sizeof w->driving);
    if (FORCE_CONSTANT)
        memcpy(w->drift, x->drift, sizeof w->drift);
    else if (FORCE_OF_STATE) {
        memcpy(w->factors, x->inverse, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
        memcpy(w->Fq, x->Fq, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
        memcpy(w->Fv, x->Fv, sizeof(double) * (STEP_DIAGONAL ? N : N * N));
    } else
        memcpy(w->inverse, x->inverse, sizeof(double) * (MASS_DIAGONAL ? N : N * N));
    w->h = w->d_step = x->h;
    w->theta = x->theta;
    w->t = x->t;
    w->step = x->step;
    w->step_from = x->step_from;
    w->work = x->work;
    w->dissipated = x->dissipated;
    w->deepest = x->deepest;
    w->power = x->power;
    w->driving_known = x->driving_known;
    if (!NC)
        return;
    *c = (contact){ .relation = x->relation, .d = D0, .n = N0, .dof = x->dof, .listed = LISTED0, .tresca = x->tresca,
                    .ht = x->ht, .mu = x->mu, .normal = x->normal };
    memcpy(c->H, x->H, sizeof(double) * N0);
    memcpy(c->S, x->S, sizeof(double) * D0 * N0);
    memcpy(c->s0, x->s0, sizeof(double) * D0);
    if (x->A_known) {
        for (int j = 0; j < NORMAL0 + D0; j++)
            memcpy(w->G[0] + j * N, x->G + j * (LOCAL0 ? N0 : N), sizeof(double) * (LOCAL0 ? N0 : N));
        memcpy(w->A, x->A, sizeof(double) * (NORMAL0 + D0) * (NORMAL0 + D0));
    }
    memcpy(w->r, x->r, sizeof(double) * (NORMAL0 + D0));
    memcpy(w->P, x->P, sizeof(double) * (NORMAL0 + D0));
    w->stamp = 1;
    w->A_stamp = x->A_known;
    w->closed[0] = x->closed;
    w->gap[0] = x->gap;
    w->tol_gap[0] = x->tol_gap;
    w->tol_u[0] = x->tol_u;
    w->tol_slip[0] = x->tol_slip;
    w->length[0] = x->length;
}

static void leave(const cdl_model *w, native_view *x)
{
    memcpy(x->q, w->q, sizeof w->q);
    memcpy(x->v, w->v, sizeof w->v);
    memcpy(x->f, w->f, sizeof w->f);
    memcpy(x->qmax, w->qmax, sizeof w->qmax);
    memcpy(x->vmax, w->vmax, sizeof w->vmax);
    memcpy(x->driving, w->driving, sizeof w->driving);
    x->t = w->t;
    x->step = w->step;
    x->step_from = w->step_from;
    x->work = w->work;
    x->dissipated = w->dissipated;
    x->deepest = w->deepest;
    x->power = w->power;
    x->driving_known = w->driving_known;
    if (!NC)
        return;
    memcpy(x->r, w->r, sizeof(double) * (NORMAL0 + D0));
    memcpy(x->P, w->P, sizeof(double) * (NORMAL0 + D0));
    x->gap = w->gap[0];
    x->tol_gap = w->tol_gap[0];
    x->tol_u = w->tol_u[0];
    x->tol_slip = w->tol_slip[0];
    x->length = w->length[0];
}

/* quick_sample, of a contact that is open; false: the run takes it */
static bool sample_open(const cdl_model *w, native_view *x)
{
    if ((NC && w->closed[0]) || x->at >= x->room)
        return false;
    int64_t at = x->at++;
    x->col_t[at] = w->t;
    x->col_work[at] = w->work;
    x->col_dissipated[at] = w->dissipated;
    for (int i = 0; i < N; i++) {
        x->col_q[at * N + i] = w->q[i];
        x->col_v[at * N + i] = w->v[i];
    }
    for (int i = 0; x->col_f && i < N; i++)
        x->col_f[at * N + i] = w->f[i];
    if (!NC)
        return true;
    x->col_gap[at] = w->gap[0];
    x->col_rn[at] = 0;
    x->col_status[at] = 0;
    for (int j = 0; j < SHOWN0; j++)
        x->col_rt[at * SHOWN0 + j] = 0;
    return true;
}

int64_t cdl_native_steps(native_view *x, int64_t count, int *due);
int64_t cdl_native_steps(native_view *x, int64_t count, int *due)
{
    cdl_model w;
    int64_t done = 0;
    enter(&w, x);
    double last = x->last, apart = x->apart;
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
        from = step > 1 ? (double)(step - 1) * w.h : 0;
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
    x->last = last;
    leave(&w, x);
    return done;
}
