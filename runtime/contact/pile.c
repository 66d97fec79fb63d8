#include "pile.h"
#include <math.h>
#include <string.h>
#include "central.h"
#include "interior.h"
#include "lemke.h"
#include "proximal.h"
#include "sweeps.h"

/* contacts: with all digits, with more; before others; when all else fails */
enum { LEMKE_ALL = 16, LEMKE_MORE = 40, LEMKE_MOST = 100, LEMKE_LAST = 300 };
enum { LEMKE_FEW = 20 };           /* above that the central path is sooner there */
enum { SWEEPS = 400 };            /* before any factorisation */
enum { PATCH = 60, PATCHES = 12 }; /* contacts solved together, times */

/* ---- one island ---- */
/* keeps the better of two reactions: those at hand and those kept */
static bool better(sparse_problem *p, double *best, double *kept, double tol, arena *a)
{
    size_t size = (size_t)p->m * sizeof *kept;
    double e = problem_measure(p, NULL, a);
    if (e < *best) {
        *best = e;
        memcpy(kept, p->r, size);
    } else
        memcpy(p->r, kept, size);
    return *best <= tol;
}

static bool pivots_know(const sparse_problem *p, int *all)
{
    for (int c = 0; c < p->n; c++) {
        if (!lemke_knows(&p->cone[c]))
            return false;
        all[c] = c;
    }
    return true;
}

/* The contacts around the worst one, layer by layer. */
static int around(const sparse_problem *p, int c, const int *contact_of, int *mark, int *who, int most)
{
    int n = 0;
    memset(mark, 0, (size_t)p->n * sizeof *mark);
    who[n++] = c;
    mark[c] = 1;
    for (int i = 0; i < n; i++)
        for (int k = p->start[who[i]]; k < p->start[who[i] + 1] && n < most; k++) {
            int o = contact_of[p->col[k]];
            if (!mark[o]) {
                mark[o] = 1;
                who[n++] = o;
            }
        }
    return n;
}

/* Close to the solution some contacts here and there are on the wrong side: what is around the worst is
 * solved exactly, then all by Newton's steps. */
static bool patched(sparse_problem *p, int rounds, double *best, double *kept, double tol, arena *a)
{
    int *contact_of = arena_array(a, int, p->m), *mark = arena_array(a, int, p->n),
        *who = arena_array(a, int, p->n);
    for (int c = 0; c < p->n; c++) {
        if (!lemke_knows(&p->cone[c]))
            return false;
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            contact_of[p->cone[c].row + j] = c;
    }
    for (int round = 0; round < rounds; round++) {
        problem_measure(p, NULL, a);
        lemke_contacts(p, who, around(p, p->worst, contact_of, mark, who, PATCH), p->r, LEMKE_DOUBLE, a);
        proximal_steps(p, a, 1e-6, 2, 10, tol);
        double e = problem_measure(p, NULL, a);
        if (e < *best) {
            *best = e;
            memcpy(kept, p->r, (size_t)p->m * sizeof *kept);
        }
        if (*best <= tol)
            return true;
    }
    memcpy(p->r, kept, (size_t)p->m * sizeof *kept);
    return false;
}

static bool island_solve(sparse_problem *p, double tol, const char **solver, arena *a)
{
    int *all = arena_array(a, int, p->n);
    double *kept = arena_array(a, double, p->m), best = problem_measure(p, NULL, a);
    memcpy(kept, p->r, (size_t)p->m * sizeof *kept);
    if (best <= tol)
        return true;
    *solver = "Gauss-Seidel with conjugate directions";
    sweeps_solve(p, a, SWEEPS, false, 0.3 * tol);
    if (better(p, &best, kept, tol, a))
        return true;
    bool known = pivots_know(p, all), none = false;
    static const int most[] = { LEMKE_MOST, LEMKE_MORE, LEMKE_ALL };
    if (known && p->n > LEMKE_FEW) {
        static const double off[] = { 0.3, 0.03 };
        *solver = "proximal Newton";
        proximal_steps(p, a, 1e-6, 1, 6, tol);
        for (size_t k = 0; !better(p, &best, kept, tol, a) && k < sizeof off / sizeof *off; k++) {
            *solver = "damped interior point";
            if (!damped_solve(p, a, off[k], tol))
                sweeps_solve(p, a, SWEEPS, false, 0.1 * tol);
        }
        if (best <= tol)
            return true;
        *solver = "central path";
        central_solve(p, a, tol);
        if (better(p, &best, kept, tol, a))
            return true;
        if (p->brief && p->n > LEMKE_MOST)
            return false;
    }
    *solver = "Lemke";
    for (lemke_digits d = LEMKE_DOUBLE; known && d <= LEMKE_QUAD && p->n <= most[d]; d++) {
        none = !lemke_contacts(p, all, p->n, p->r, d, a) && d == LEMKE_QUAD;
        if (better(p, &best, kept, tol, a))
            return true;
    }
    *solver = "proximal Newton";
    proximal_steps(p, a, 1e-3, 3, 10, tol);
    /* where pivots with all digits end on a ray there is no solution to be found by other means */
    if (better(p, &best, kept, tol, a) || none)
        return best <= tol;
    if (patched(p, 2, &best, kept, tol, a))
        return true;
    *solver = "interior point";
    interior_solve(p, a, tol);
    if (problem_measure(p, NULL, a) <= tol || patched(p, PATCHES, &best, kept, tol, a))
        return true;
    if (known && p->n > LEMKE_MOST && p->n <= LEMKE_LAST) {
        *solver = "Lemke";
        lemke_contacts(p, all, p->n, p->r, LEMKE_DOUBLE, a);
        if (better(p, &best, kept, tol, a))
            return true;
    }
    *solver = "proximal Newton";
    proximal_steps(p, a, 1e-3, 40, 40, tol);
    if (better(p, &best, kept, tol, a))
        return true;
    proximal_steps(p, a, 1, 40, 60, tol);
    return better(p, &best, kept, tol, a);
}

/* ---- islands ---- */
static int root(int *to, int i)
{
    while (to[i] != i)
        i = to[i] = to[to[i]];
    return i;
}

/* number of the island of each contact, in the order of their first contacts */
static int islands(const sparse_problem *p, int *of, int *to, const int *contact_of)
{
    int n = 0;
    for (int c = 0; c < p->n; c++)
        to[c] = c;
    for (int c = 0; c < p->n; c++)
        for (int k = p->start[c]; k < p->start[c + 1]; k++) {
            int a = root(to, c), b = root(to, contact_of[p->col[k]]);
            if (a < b)
                to[b] = a;
            else
                to[a] = b;
        }
    for (int c = 0; c < p->n; c++)
        of[c] = root(to, c) == c ? n++ : of[root(to, c)];
    return n;
}

/* the part of the problem on the contacts of one island: contacts and rows numbered anew, columns in order */
static sparse_problem part_of(const sparse_problem *p, const int *who, int n, int *row_of, arena *a)
{
    sparse_problem s = { .n = n, .least = p->least, .fine = p->fine, .brief = p->brief };
    cone *cones = arena_array(a, cone, n);
    int *start = arena_array(a, int, n + 1), at = 0, widest = 0;
    size_t *first = arena_array(a, size_t, n), all = 0;
    for (int i = 0; i < n; i++) {
        cones[i] = p->cone[who[i]];
        for (int j = 0; j < cone_rows(&cones[i]); j++)
            row_of[cones[i].row + j] = s.m + j;
        cones[i].row = s.m;
        s.m += cone_rows(&cones[i]);
        start[i] = at;
        first[i] = all;
        at += problem_width(p, who[i]);
        all += (size_t)problem_width(p, who[i]) * (size_t)cone_rows(&cones[i]);
        if (problem_width(p, who[i]) > widest)
            widest = problem_width(p, who[i]);
    }
    start[n] = at;
    int *col = arena_array(a, int, at), *from = arena_array(a, int, widest);
    double *val = arena_array(a, double, all), *b = arena_array(a, double, s.m);
    s.r = arena_array(a, double, s.m);
    for (int i = 0; i < n; i++) {
        int c = who[i], wide = problem_width(p, c);
        for (int k = 0; k < wide; k++) {
            int j = k, x = row_of[p->col[p->start[c] + k]];
            for (; j > 0 && col[start[i] + j - 1] > x; j--) {
                col[start[i] + j] = col[start[i] + j - 1];
                from[j] = from[j - 1];
            }
            col[start[i] + j] = x;
            from[j] = k;
        }
        for (int j = 0; j < cone_rows(&cones[i]); j++) {
            const double *v = p->val + p->at[c] + (size_t)j * wide;
            for (int k = 0; k < wide; k++)
                val[first[i] + (size_t)j * wide + k] = v[from[k]];
            b[cones[i].row + j] = p->b[p->cone[c].row + j];
            s.r[cones[i].row + j] = p->r[p->cone[c].row + j];
        }
    }
    s.cone = cones;
    s.start = start;
    s.at = first;
    s.col = col;
    s.val = val;
    s.b = b;
    return s;
}

bool pile_solve(sparse_problem *p, arena *scratch, double tol)
{
    arena_pos mark = arena_mark(scratch);
    int n = p->n, *of = arena_array(scratch, int, n), *to = arena_array(scratch, int, n),
        *who = arena_array(scratch, int, n);
    int *contact_of = arena_array(scratch, int, p->m), *row_of = arena_array(scratch, int, p->m), hardest = 0;
    double *e = arena_array(scratch, double, n);
    p->fine = reaction_fine(tol);
    for (int c = 0; c < n; c++)
        for (int j = 0; j < cone_rows(&p->cone[c]); j++)
            contact_of[p->cone[c].row + j] = c;
    int count = islands(p, of, to, contact_of);
    problem_measure(p, e, scratch);
    for (int i = 0; i < count; i++) {
        int k = 0;
        bool solved = true;
        for (int c = 0; c < n; c++)
            if (of[c] == i) {
                who[k++] = c;
                solved &= e[c] <= tol;
            }
        if (solved)
            continue;
        arena_pos inner = arena_mark(scratch);
        sparse_problem s = part_of(p, who, k, row_of, scratch);
        const char *solver = p->solver;
        island_solve(&s, tol, &solver, scratch);
        if (k > hardest) {
            hardest = k;
            p->solver = solver;
        }
        p->iterations += s.iterations;
        for (int j = 0; j < k; j++) {
            const cone *o = &p->cone[who[j]];
            memcpy(p->r + o->row, s.r + s.cone[j].row, (size_t)cone_rows(o) * sizeof *p->r);
        }
        arena_release(scratch, inner);
    }
    problem_measure(p, NULL, scratch);
    arena_release(scratch, mark);
    return p->residual <= tol;
}
