/* exclude: finds constraints that no motion can satisfy together, with a proof. Over a short time s from a
   state, a gap is g + s (H u + g_t), where the rates u are free. By Farkas' lemma there are no rates that
   keep all gaps nonnegative exactly when weights l exist, l >= 0 for inequalities, with sum l H = 0 and sum l
   (g/s + g_t) < 0. Rates are measured relative to those of the state. This changes no such sum, and the
   relative rates stay small, so that small contradictions are found in fast motions, too. The weights are
   found by nonnegative least squares (Lawson and Hanson, Solving Least Squares Problems, ch. 23), whose
   solutions have few nonzero entries; then constraints that the proof does not need are removed one by one.
   */
#include <math.h>
#include <string.h>
#include "gate.h"
#include "base/tolerances.h"

enum { MOST = 96 }; /* limit of the rows */

typedef struct row {
    size_t of;
    int64_t member;
    double *H, c, size; /* c = g/s + H v + g_t; H and c are divided by size */
    double terms;       /* sum of the absolute values of the terms of c, divided by size */
    double sign;        /* -1 for the second row of an equality */
} row;

typedef struct rows {
    row at[MOST];
    int n, nq;
    bool out[MOST];
    double gram[MOST][MOST]; /* products of the scaled columns [H; c] */
    double top;              /* the largest |c|, or the rounding of its terms */
} rows;

/* ---- least squares with weights >= 0 ---- */
/* The weights of the columns listed in `in`, by Cholesky's method; false: the columns are dependent. */
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
        double s = -k->at[in[i]].c / k->top; /* product of the column with the target [0; -1] */
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

/* The column along which the squared residual falls fastest; -1: none. */
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

/* Computes weights l. True: they prove that no rates satisfy the rows that are not removed (`out`). */
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
    /* squared residual of [sum l H; sum l c + 1] */
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

/* Adds gaps that may close within span_; false: too many. */
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
            memset(H, 0, (size_t)k->nq * sizeof *H); /* cleared member by member: there may be very many */
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

/* ---- message ---- */
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
    /* removes rows that the proof does not need */
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
