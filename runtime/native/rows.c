/* rows: rows of contacts, the effect of their reactions, and tolerances; part of what `cdl emit c` writes. */
enum { GAP, BILATERAL, ALWAYS_CLOSED };

static double most_of(double a, double b)
{
    return a > b ? a : b;
}

static double rate_of(const contact *c, const double *row, const double *v)
{
    double sum = 0;
    for (int k = 0; k < c->n; k++)
        sum += row[k] * v[c->dof[k]];
    return sum;
}

static double size_of(const contact *c, const double *row, const double *size)
{
    double s = 0;
    for (int k = 0; k < c->n; k++)
        s += fabs(row[k]) * size[c->dof[k]];
    return s;
}

static int normal_of(const contact *c)
{
    return c->relation != ALWAYS_CLOSED;
}

static int rows_of(const contact *c)
{
    return normal_of(c) + c->d;
}

static const double *row_of(const contact *c, int j)
{
    return j < normal_of(c) ? c->H : c->S + (j - normal_of(c)) * c->n;
}

static double still_of(const contact *c, int j)
{
    return j < normal_of(c) ? c->ht : c->s0[j - normal_of(c)];
}

static double gap_rate(const contact *c, const double *v)
{
    return rate_of(c, c->H, v) + c->ht;
}

static double slip_of(const contact *c, const double *v, double *slip)
{
    double s = 0;
    for (int j = 0; j < c->d; j++) {
        slip[j] = rate_of(c, c->S + j * c->n, v) + c->s0[j];
        s += slip[j] * slip[j];
    }
    return sqrt(s);
}

static double cancelled(double x, double change, double size)
{
    double sum = x + change;
    return change != 0 && fabs(sum) <= ROUND_70 * size ? 0 : sum;
}

/* with one contact, only its own dofs */
static void react_alone(const contact *c, bool local, const double *G, const double *r, double *x)
{
    for (int k = 0; k < (local ? c->n : N); k++) {
        double *to = &x[local ? c->dof[k] : k], size = fabs(*to), change = G[k] * r[0];
        if (rows_of(c) > 1 || local)
            change += 0;
        size += fabs(change);
        for (int b = 1; b < rows_of(c); b++) {
            double d = G[b * N + k] * r[b];
            change += d;
            size += fabs(d);
        }
        *to = cancelled(*to, change, size);
    }
}

/* ---- sizes and tolerances: sweep_sizes, sweep_tolerances ---- */
static void tolerances(cdl_model *w, int c)
{
    const contact *k = &w->contacts[c];
    double size = size_of(k, k->H, w->size.qmax), rate = size_of(k, k->H, w->size.vmax);
    w->size.length[k->family] = most_of(w->size.length[k->family], size);
    w->size.tol_gap[c] = GAP_IS_ZERO * size;
    w->size.tol_u[c] = RATE_IS_ZERO * (rate + fabs(k->ht));
    w->size.tol_slip[c] = 0;
    for (int j = 0; j < k->d; j++)
        w->size.tol_slip[c] += RATE_IS_ZERO * (size_of(k, k->S + j * k->n, w->size.vmax) + fabs(k->s0[j]));
}

static void sizes(cdl_model *w)
{
    bool grown = false;
    for (int i = 0; i < N; i++) {
        double v = fabs(w->v[i]), q = most_of(fabs(w->q[i]), w->run.h * v);
        grown |= v > w->size.vmax[i] || q > w->size.qmax[i];
        if (v > w->size.vmax[i])
            w->size.vmax[i] = v;
        if (q > w->size.qmax[i])
            w->size.qmax[i] = q;
    }
    for (int c = 0; grown && c < NC; c++)
        tolerances(w, c);
}
