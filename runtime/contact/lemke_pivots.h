/* lemke_pivots: Lemke's pivots in numbers of type REAL; included by lemke.c for each precision.  basic = T
 * nonbasic + last column. */
/* Variables: w is 0..n-1, z is n..2n-1, the covering variable is 2n. */
typedef struct NAME(tableau) {
    int n, wide;
    REAL *T;
    int *basic, *out;
} NAME(tableau);

static void NAME(pivot)(NAME(tableau) * l, int row, int col)
{
    REAL *restrict t = l->T + (size_t)row * l->wide, p = -1 / t[col];
    int wide = l->wide;
    for (int j = 0; j < wide; j++)
        t[j] *= p;
    t[col] = -p;
    for (int i = 0; i < l->n; i++) {
        REAL *restrict x = l->T + (size_t)i * wide, f = x[col];
        if (i == row || f == 0)
            continue;
        x[col] = 0;
        for (int j = 0; j < wide; j++)
            x[j] += f * t[j];
    }
    int v = l->basic[row];
    l->basic[row] = l->out[col];
    l->out[col] = v;
}

/* The first basic variable that reaches 0. Of those within rounding of it: the covering variable, otherwise
   the one with the largest pivot. */
static int NAME(first_to_leave)(const NAME(tableau) * l, int col)
{
    REAL least = (REAL)INFINITY, big = 0;
    int best = -1;
    for (int i = 0; i < l->n; i++) {
        const REAL *t = l->T + (size_t)i * l->wide, x = t[l->wide - 1];
        if (!(t[col] < -LEAST_PIVOT))
            continue;
        REAL ratio = ((x > 0 ? x : 0) + ROUNDING) / -t[col];
        if (ratio < least)
            least = ratio;
    }
    for (int i = 0; i < l->n; i++) {
        const REAL *t = l->T + (size_t)i * l->wide;
        if (!(t[col] < -LEAST_PIVOT) || t[l->wide - 1] > least * -t[col])
            continue;
        REAL size = l->basic[i] == 2 * l->n ? (REAL)INFINITY : -t[col];
        if (size > big) {
            big = size;
            best = i;
        }
    }
    return best;
}

static bool NAME(pivots)(NAME(tableau) * l)
{
    int cover = 2 * l->n, last = l->n + 1, row = 0, col = l->n, limit = 20 * l->n + 100;
    REAL worst = 0;
    for (int i = 0; i < l->n; i++) {
        const REAL *t = l->T + (size_t)i * l->wide;
        if (t[last] / t[col] < worst) {
            worst = t[last] / t[col];
            row = i;
        }
    }
    if (worst == 0)
        return true;
    for (int it = 0; it < limit; it++) {
        int leave = l->basic[row], at = row;
        NAME(pivot)(l, row, col);
        if (leave == cover)
            return true;
        /* what is left of the cover is rounding */
        while (l->basic[at] != cover)
            at = at + 1 < l->n ? at + 1 : 0;
        REAL left = l->T[(size_t)at * l->wide + last];
        if (left <= 0.01 * ROUNDING && left >= -0.01 * ROUNDING)
            return true;
        int enter = leave < l->n ? leave + l->n : leave - l->n;
        for (col = 0; l->out[col] != enter; col++)
            ;
        if ((row = NAME(first_to_leave)(l, col)) < 0)
            return false;
    }
    return false;
}

static bool NAME(solve)(int n, const double *M, const double *q, double *z, arena *scratch)
{
    arena_pos mark = arena_mark(scratch);
    NAME(tableau)
    l = { n, n + 2, arena_array(scratch, REAL, (size_t)n * (n + 2)), arena_array(scratch, int, n),
          arena_array(scratch, int, n + 1) };
    double big = vec_max(q, n), f = 0;
    for (int i = 0; i < n; i++) {
        REAL *t = l.T + (size_t)i * l.wide;
        for (int j = 0; j < n; j++)
            t[j] = M[(size_t)i * n + j];
        /* a cover in general position: no two reach 0 at once before it does */
        f += 0.6180339887498949;
        f -= floor(f);
        t[n] = 1 + 0.5 * f;
        t[n + 1] = big > 0 ? q[i] / (REAL)big : 0;
        l.basic[i] = i;
        l.out[i] = n + i;
    }
    l.out[n] = 2 * n;
    bool ok = NAME(pivots)(&l);
    memset(z, 0, (size_t)n * sizeof *z);
    for (int i = 0; i < n; i++)
        if (l.basic[i] >= n && l.basic[i] < 2 * n)
            z[l.basic[i] - n] = big * fmax((double)l.T[(size_t)i * l.wide + n + 1], 0);
    arena_release(scratch, mark);
    return ok;
}
