/* exclude: constraints that no motion keeps, with a proof.  Over a short time s from a state, a gap is
   g + s (H u + g_t) for the rates u, which are free.  There are none that keep all gaps exactly when (Farkas)
   weights l exist, >= 0 for gaps >= 0, with sum l H = 0 and sum l (g/s + g_t) < 0.  Rates are measured from
   those of the state, which changes no such sum: what moves along keeps rates small that contradict each
   other by little.  The weights are found by
   non-negative least squares (Lawson and Hanson, Solving Least Squares Problems, ch. 23), whose solutions
   have few non-zero entries; then constraints that are not needed are taken out one by one. */
#include <math.h>
#include <string.h>
#include "gate.h"
#include "base/tolerances.h"

enum { MOST = 96 }; /* rows */

typedef struct row {
    size_t of;
    int64_t member;
    double *H, c, size; /* c = g/s + H v + g_t; both divided by size */
    double terms;       /* of c, taken together by size */
    double sign;        /* of an equality: it is two rows */
} row;

typedef struct rows {
    row at[MOST];
    int n, nq;
    bool out[MOST];
    double gram[MOST][MOST]; /* of the columns [H; c], scaled */
    double top;              /* the largest |c|, or what rounding makes of the terms */
} rows;

/* ---- least squares with weights >= 0 ---- */
/* The weights of the columns in `in` by Cholesky; false: they depend on each other. */
static bool solve_in(const rows *k, const int *in, int n, double *x)
{
    double L[MOST][MOST];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double s = k->gram[in[i]][in[j]];
            for (int l = 0; l < j; l++)
                s -= L[i][l] * L[j][l];
            if (i == j && !(s > PIVOT_LOOSE))
                return false;
            L[i][j] = i == j ? sqrt(s) : s / L[j][j];
        }
    for (int i = 0; i < n; i++) {
        double s = -k->at[in[i]].c / k->top; /* column times the target [0; -1] */
        for (int l = 0; l < i; l++)
            s -= L[i][l] * x[l];
        x[i] = s / L[i][i];
    }
    for (int i = n; i-- > 0;) {
        for (int l = i + 1; l < n; l++)
            x[i] -= L[l][i] * x[l];
        x[i] /= L[i][i];
    }
    return true;
}

/* how much the square of what is left falls along each column */
static int steepest(const rows *k, const double *l, const bool *passive)
{
    int best = -1;
    double most = EXCLUDE_FALL;
    for (int j = 0; j < k->n; j++) {
        double w = -k->at[j].c / k->top;
        for (int i = 0; i < k->n; i++)
            w -= k->gram[j][i] * l[i];
        if (!k->out[j] && !passive[j] && w > most) {
            most = w;
            best = j;
        }
    }
    return best;
}

/* Weights l; true: they prove that no rates keep the rows that are not out. */
static bool proves(const rows *k, double *l)
{
    bool passive[MOST] = { false };
    memset(l, 0, (size_t)k->n * sizeof *l);
    for (int round = 0; round < 3 * MOST; round++) {
        int add = steepest(k, l, passive), in[MOST], n;
        if (add < 0)
            break;
        passive[add] = true;
        for (;;) {
            double x[MOST], cut = 1;
            n = 0;
            for (int j = 0; j < k->n; j++)
                if (passive[j])
                    in[n++] = j;
            if (!solve_in(k, in, n, x)) {
                passive[add] = false;
                break;
            }
            for (int i = 0; i < n; i++)
                if (x[i] <= 0 && l[in[i]] - x[i] > 0)
                    cut = fmin(cut, l[in[i]] / (l[in[i]] - x[i]));
            for (int i = 0; i < n; i++) {
                l[in[i]] += cut * (x[i] - l[in[i]]);
                if (cut < 1 && l[in[i]] <= ROUND_50)
                    l[in[i]] = 0, passive[in[i]] = false;
            }
            if (cut == 1)
                break;
        }
    }
    /* what is left of [sum l H; sum l c + 1] */
    double left = 1;
    for (int j = 0; j < k->n; j++) {
        left += 2 * l[j] * k->at[j].c / k->top;
        for (int i = 0; i < k->n; i++)
            left += l[i] * k->gram[i][j] * l[j];
    }
    return left < EXCLUDE_PROVED;
}

static void fill_gram(rows *k)
{
    k->top = 0;
    for (int i = 0; i < k->n; i++)
        k->top = fmax(k->top, fmax(fabs(k->at[i].c), EXCLUDE_TERMS * k->at[i].terms));
    for (int i = 0; i < k->n && k->top > 0; i++)
        for (int j = 0; j <= i; j++) {
            double s = k->at[i].c / k->top * (k->at[j].c / k->top);
            for (int q = 0; q < k->nq; q++)
                s += k->at[i].H[q] * k->at[j].H[q];
            k->gram[i][j] = k->gram[j][i] = s;
        }
}

/* ---- the rows of a state ---- */
static bool row_add(rows *k, gate *g, arena *a, size_t of, int64_t m, const double *v, double gap,
                    double span_, double sign)
{
    if (k->n == MOST)
        return false;
    row *x = &k->at[k->n];
    *x = (row){ .of = of, .member = m, .H = arena_array(a, double, (size_t)k->nq), .sign = sign };
    double rate = gate_row(g, of, m, x->H), c = gap / span_ + rate;
    x->terms = fabs(gap / span_) + fabs(rate);
    for (int q = 0; q < k->nq; q++) {
        c += x->H[q] * v[q];
        x->terms += fabs(x->H[q] * v[q]);
        x->size = hypot(x->size, x->H[q]);
    }
    if (!(x->size > 0) || !isfinite(c))
        return true;
    for (int q = 0; q < k->nq; q++)
        x->H[q] *= sign / x->size;
    x->c = sign * c / x->size;
    x->terms /= x->size;
    k->n++;
    return true;
}

/* gaps that may close over the time at hand; false: too many */
static bool rows_of_state(rows *k, gate *g, arena *a, double span_, const double *v)
{
    const program *p = gate_program(g);
    double *speed = arena_array(a, double, (size_t)k->nq), *H = arena_array(a, double, (size_t)k->nq);
    for (int q = 0; q < k->nq; q++)
        speed[q] = fabs(v[q]);
    for (size_t of = 0; of < p->ncontact; of++) {
        if (!gate_knows_gap(g, of))
            continue;
        bool held = p->contact[of].relation == REL_BILATERAL;
        const double *gap = gate_gaps(g, of);
        for (int64_t m = 0; m < gate_members(g, of); m++) {
            memset(H, 0, (size_t)k->nq * sizeof *H); /* there may be very many members */
            double rate = gate_row(g, of, m, H);
            double reach = 4 * span_ * (fabs(rate) + gate_length(g, of, m, speed));
            if (!held && gap[m] > reach)
                continue;
            if (!row_add(k, g, a, of, m, v, gap[m], span_, 1) ||
                (held && !row_add(k, g, a, of, m, v, gap[m], span_, -1)))
                return false;
        }
    }
    return k->n > 1;
}

/* ---- in words ---- */
static const char *words(const rows *k, const double *l, gate *g, double t, arena *a)
{
    text s = { .a = a };
    double falls = 0, unit = 0;
    int n = 0, seen = 0;
    for (int i = 0; i < k->n; i++)
        if (l[i] > 0) {
            n++;
            unit = unit > 0 ? unit : l[i] / k->at[i].size;
        }
    text_puts(&s, "constraints ");
    for (int i = 0; i < k->n; i++)
        if (l[i] > 0) {
            const char *before = seen == 0 ? "" : seen == n - 1 ? " and " : ", ";
            text_printf(&s, "%s'%s'", before, gate_name(g, k->at[i].of, k->at[i].member, a));
            seen++;
        }
    text_puts(&s, " exclude each other at t = ");
    text_num(&s, t);
    text_puts(&s, ": whatever moves,");
    seen = 0;
    for (int i = 0; i < k->n; i++)
        if (l[i] > 0) {
            double w = k->at[i].sign * l[i] / k->at[i].size / unit;
            falls -= l[i] * k->at[i].c / unit;
            text_printf(&s, "%s%.4g*%s",
                        seen++  ? w < 0 ? " - " : " + "
                        : w < 0 ? " -"
                                : " ",
                        fabs(w), gate_name(g, k->at[i].of, k->at[i].member, a));
        }
    text_printf(&s, " falls at the rate %.3g", falls);
    return s.at;
}

const char *gate_excludes(gate *g, double t, double over, const double *q, const double *v, arena *scratch,
                          arena *a, span *at)
{
    const program *p = gate_program(g);
    rows *k = arena_make(scratch, rows);
    double l[MOST];
    k->nq = p->nq;
    gate_at(g, t, q, v);
    if (!(over > 0) || !rows_of_state(k, g, scratch, over, v))
        return NULL;
    fill_gram(k);
    if (!(k->top > 0) || !proves(k, l))
        return NULL;
    for (int i = 0; i < k->n; i++)
        k->out[i] = !(l[i] > 0);
    /* only what the proof needs */
    for (int i = 0; i < k->n; i++) {
        double less[MOST];
        if (k->out[i])
            continue;
        k->out[i] = true;
        if (proves(k, less))
            memcpy(l, less, sizeof l);
        else
            k->out[i] = false;
    }
    for (int i = k->n; i-- > 0;)
        if (l[i] > 0)
            *at = p->contact[k->at[i].of].at;
    return words(k, l, g, t, a);
}
