/* Contact and loads of rods: the tangent, including friction, compared with differences of the residual, for
   stick and slip; forces balance. With multipliers as unknowns of Newton's method: its linear problem
   compared with differences of the equations that it solves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "rod/rod_touch.h"
#include "base/linalg.h"

static uint64_t state = 11;
static double uniform(void) /* in -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
}

/* Kernels that are constants, and one that returns its input. */
static kernel constants(arena *a, int n, const double *x)
{
    double *c = arena_array(a, double, n);
    uint32_t *out = arena_array(a, uint32_t, n);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    for (int i = 0; i < n; i++) {
        c[i] = x[i];
        out[i] = (uint32_t)i;
    }
    return (kernel){ .tape = { .nconst = (uint32_t)n,
                               .nreg = (uint32_t)n,
                               .nout = (uint32_t)n,
                               .constant = c,
                               .code = end,
                               .out = out },
                     .over.count = 1 };
}

static kernel constant(arena *a, double x)
{
    return constants(a, 1, &x);
}

static kernel itself(arena *a, in_kind kind)
{
    slot *in = arena_make(a, slot);
    instr *end = arena_make(a, instr);
    end->op = TAPE_END;
    in->kind = kind;
    return (
        kernel){ .tape = { .nin = 1, .nreg = 1, .nout = 1, .code = end, .out = arena_array(a, uint32_t, 1) },
                 .in = in,
                 .over.count = 1 };
}

static rod_spec spec(arena *a, const char *name)
{
    rod_spec s = { .name = name };
    const double x[ROD_NUMBERS] = { 1, 0.05, 1000, 0.3, 4, 1 };
    for (int k = 0; k <= ROD_DENSITY; k++)
        s.number[k] = constant(a, x[k]);
    return s;
}

typedef struct {
    arena *a;
    rod_work w;
} fixture;

/* Two crossing bent rods, near each other or slightly overlapping; or the first one coiled, near itself; or
   on a body. */
typedef enum { ROD, ITSELF, PLANE, CYLINDER, BALL, ALONG } against;

static rod_pair pair_against(arena *a, against what)
{
    const double plane[7] = { 0, 0, 0, 0, -1, 0, -0.0505 }, rest[7] = { 0.01, 0.352, 0.48, 0.3, 0, 0.2, 0.3 };
    rod_pair p = { .a = 0, .b = what == ROD || what == ALONG ? 1 : what == ITSELF ? 0 : -1 };
    if (p.b < 0)
        p.what = what == PLANE ? TOUCH_PLANE : what == CYLINDER ? TOUCH_CYLINDER : TOUCH_SPHERE;
    if (p.b < 0)
        p.body = constants(a, 7, what == PLANE ? plane : rest);
    return p;
}

static void cross(fixture *f, double mu, against what)
{
    arena *a = f->a = arena_new(&allocator_libc, NULL);
    rod_spec *s = arena_array(a, rod_spec, 2);
    s[0] = spec(a, "a");
    s[1] = spec(a, "b");
    rod_pair *pair = arena_make(a, rod_pair);
    *pair = pair_against(a, what);
    rod_program *rp = arena_make(a, rod_program);
    *rp = (rod_program){ .rod = s, .nrod = 2, .pair = pair, .npair = 1 };
    contact_family *c = arena_make(a, contact_family);
    *c = (contact_family){
        .name = "touch", .friction = FRICTION_COULOMB, .gap = itself(a, IN_ROD), .mu = constant(a, mu)
    };
    program *p = arena_make(a, program);
    *p = (program){ .rod = rp, .contact = c, .ncontact = 1 };
    rod_options *ro = arena_make(a, rod_options);
    *ro = (rod_options){ .h = 1, .tolerance = 1e-8, .stiffness = 50, .theta = 0.5 };
    f->w = (rod_work){ .p = p, .rp = rp, .ro = ro, .r = results_new(a, p), .a = a, .tmp = a };
    assert_true(rod_build(&f->w));
    contacts_new(&f->w);
    f->w.contact->least_line = 5;
    for (int i = 0; i < 13; i++) { /* rod b along e1, above the middle of rod a */
        double *x = f->w.state.pos + 3 * (13 + i), z = i / 12.0 - 0.5,
               th[3] = { 0.1 * uniform(), M_PI / 2, 0.1 * uniform() };
        x[0] = z;
        x[1] = 0.101 + 0.3 * z * z;
        x[2] = 0.5 + 0.1 * z;
        quat_turn(f->w.state.rot + 4 * (13 + i), th);
    }
    for (int i = 0; what == ITSELF && i < 13; i++) {
        double *x = f->w.state.pos + 3 * i, z = i / 12.0, u = 7.6 * z;
        x[0] = 0.13 * cos(u) - 1;
        x[1] = 0.0162 * u;
        x[2] = 0.13 * sin(u);
    }
    for (int i = 0; what == ALONG && i < 13; i++) {
        double *x = f->w.state.pos + 3 * (13 + i);
        memcpy(x, f->w.state.pos + 3 * i, 3 * sizeof *x);
        x[1] += 0.1002;
        memcpy(f->w.state.rot + 4 * (13 + i), f->w.state.rot + 4 * i, 4 * sizeof(double));
    }
    for (int i = 0; i < 3 * f->w.N; i++)
        f->w.state.pos[i] += (what == ALONG ? 2e-5 : 2e-4) * uniform();
    assert_true(contacts_start(&f->w));
    contacts_step(&f->w);
}

/* Moves the rods, or the first nodes of one, into each other and along each other. */
static void push_nodes(rod_work *w, double size, int nodes)
{
    double *dx = arena_array(w->a, double, w->ndof);
    for (int i = 0; i < w->ndof; i++)
        dx[i] = size * 0.1 * uniform();
    for (int i = 0; i < nodes; i++) {
        dx[6 * i + 1] += 0.004;
        dx[6 * i + 2] += size;
        dx[6 * i + 5] += size;
    }
    rod_update(w, dx, 1);
}

static void push(rod_work *w, double size, int nodes)
{
    push_nodes(w, size, nodes);
    /* the direction of slip is that of the last iteration */
    for (int k = 0; k < 6; k++)
        contacts_project(w, true);
}

static void compare(rod_work *w)
{
    rod_sparse K = { .n = w->ndof };
    int n = w->ndof;
    double *res = arena_array(w->a, double, n), *D = arena_array(w->a, double, n *n),
           *dx = arena_array(w->a, double, n), h = 1e-6, most = 0;
    double *p = arena_array(w->a, double, n), *q = arena_array(w->a, double, n);
    double *pos = arena_array(w->a, double, 3 * w->N), *rot = arena_array(w->a, double, 4 * w->N);
    assert_true(contacts_near(w));
    contacts_put(w, res, &K);
    for (int k = 0; k < K.nz; k++) {
        D[K.i[k] * n + K.j[k]] += K.x[k];
    }
    for (int k = 0; k < n * n; k++)
        most = fmax(most, fabs(D[k]));
    memcpy(pos, w->state.pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, w->state.rot, (size_t)(4 * w->N) * sizeof *rot);
    for (int j = 0; j < n; j++) {
        double *side[2] = { p, q };
        for (int s = 0; s < 2; s++) {
            memcpy(w->state.pos, pos, (size_t)(3 * w->N) * sizeof *pos);
            memcpy(w->state.rot, rot, (size_t)(4 * w->N) * sizeof *rot);
            memset(dx, 0, (size_t)n * sizeof *dx);
            dx[j] = 1;
            rod_update(w, dx, s ? -h : h);
            contacts_project(w, true);
            memset(side[s], 0, (size_t)n * sizeof *p);
            contacts_put(w, side[s], NULL);
        }
        for (int i = 0; i < n; i++)
            assert_true(fabs((p[i] - q[i]) / (2 * h) - D[i * n + j]) < 1e-7 * most);
    }
    memcpy(w->state.pos, pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(w->state.rot, rot, (size_t)(4 * w->N) * sizeof *rot);
    contacts_project(w, true);
}

/* time: forces of a step in time. */
static void tangent(double mu, double size, against what, bool time)
{
    fixture f;
    cross(&f, mu, what);
    assert_int_equal(f.w.contact->line.n, what == ALONG ? 5 : 0);
    if (time)
        assert_true(rod_motion_new(&f.w, 0.1));
    push(&f.w, size, 13);
    compare(&f.w);
    contacts_stiffen(&f.w, false); /* with multipliers */
    push(&f.w, size / 2, 13);
    compare(&f.w);
    double *res = arena_array(f.a, double, f.w.ndof), sum[3] = { 0 };
    contacts_put(&f.w, res, NULL);
    for (int i = 0; i < f.w.N; i++)
        for (int k = 0; k < 3; k++)
            sum[k] += res[6 * i + k];
    for (int k = 0; k < 3; k++)
        assert_true(fabs(sum[k]) < 1e-12); /* action equals reaction */
    arena_free(f.a);
}

static void test_smooth(void **st)
{
    (void)st;
    tangent(0, 1e-3, ROD, false);
    tangent(0, 1e-2, ROD, true);
}
static void test_stick(void **st)
{
    (void)st;
    tangent(50, 1e-3, ROD, false);
    tangent(50, 1e-3, ROD, true);
}
static void test_slip(void **st)
{
    (void)st;
    tangent(0.1, 5e-3, ROD, false);
    tangent(0.1, 5e-3, ROD, true);
}

/* If rods lie along each other, forces stick and slip by hats. */
static void test_along(void **st)
{
    (void)st;
    tangent(0, 1e-3, ALONG, false);
    tangent(50, 1e-3, ALONG, false);
    tangent(0.1, 5e-3, ALONG, false);
}

/* ---- the potential of a descent ---- */
/* Contact forces at a nearby state, and their potential. */
static double force_near(rod_work *w, const double *pos, const double *rot, int dof, double by, double *res)
{
    double *dx = arena_array(w->a, double, w->ndof);
    memcpy(w->state.pos, pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(w->state.rot, rot, (size_t)(4 * w->N) * sizeof *rot);
    dx[dof] = 1;
    rod_update(w, dx, by);
    contacts_follow(w);
    memset(res, 0, (size_t)w->ndof * sizeof *res);
    contacts_put(w, res, NULL);
    return contacts_energy(w);
}

/* Forces are derivatives of the potential, the tangent that of the forces; counts sticking and slipping
   pairs. */
static void potential(double mu, double size, against what, int *seen)
{
    fixture f;
    cross(&f, mu, what);
    rod_work *w = &f.w;
    int n = w->ndof;
    w->contact->grip = 0.1;
    push(w, size, what == ITSELF ? 7 : 13);
    contacts_stiffen(w, false);
    contacts_lag(w, true);
    push_nodes(w, size, what == ITSELF ? 7 : 13);
    contacts_follow(w);
    rod_sparse K = { .n = n };
    double *res = arena_array(f.a, double, n), *D = arena_array(f.a, double, n *n),
           *p = arena_array(f.a, double, n), *q = arena_array(f.a, double, n),
           *pos = arena_array(f.a, double, 3 * w->N), *rot = arena_array(f.a, double, 4 * w->N), h = 1e-6,
           most = 0, force = 0;
    contacts_put(w, res, &K);
    for (size_t i = 0; i < w->contact->list.n; i++)
        if (w->contact->list.at[i].bound > 0)
            seen[w->contact->list.at[i].status]++;
    for (size_t i = 0; i < w->contact->line.n; i++)
        if (w->contact->line.at[i].bound > 0)
            seen[w->contact->line.at[i].status]++;
    for (int k = 0; k < K.nz; k++)
        D[K.i[k] * n + K.j[k]] += K.x[k];
    for (int k = 0; k < n * n; k++)
        most = fmax(most, fabs(D[k]));
    for (int k = 0; k < n; k++)
        force = fmax(force, fabs(res[k]));
    memcpy(pos, w->state.pos, (size_t)(3 * w->N) * sizeof *pos);
    memcpy(rot, w->state.rot, (size_t)(4 * w->N) * sizeof *rot);
    for (int j = 0; j < n; j++) {
        double up = force_near(w, pos, rot, j, h, p), down = force_near(w, pos, rot, j, -h, q);
        assert_true(fabs((up - down) / (2 * h) - res[j]) < 1e-6 * force);
        for (int i = 0; i < n; i++)
            assert_true(fabs((p[i] - q[i]) / (2 * h) - D[i * n + j]) < 1e-7 * most);
    }
    arena_free(f.a);
}

static void test_potential(void **st)
{
    (void)st;
    for (against what = ROD; what <= ALONG; what++) {
        int seen[STATUS_SLIP + 1] = { 0 };
        for (double mu = 0.05; mu < 1; mu *= 3) /* with more friction there are fewer pairs on bodies */
            for (double size = 1e-4; size < 1e-2; size *= 5)
                potential(mu, size, what, seen);
        assert_true(seen[STATUS_STICK] > 0 && seen[STATUS_SLIP] > 0);
    }
}

/* ---- multipliers as unknowns ---- */
/* Unknowns are the state, the normal force lambda and the tangential force l of each pair, in the frame of
   the other section. Equations: balance; gap = 0; slip = 0 across the normal, or tau = mu lambda x/|x|, x =
   tau - r slip. The equations for gap and slip have a small compliance: gap + (lambda - lambda0)/hard = 0,
   and similarly for slip. */
enum { OWN = 4 }; /* unknowns of a pair */
typedef struct newton {
    rod_work *w;
    double r, *pos, *rot;
    touches base;
} newton;

static void slip_of(const rod_work *w, const touch *c, double *Rl, double *g)
{
    double p[3], q[3], Ri[9], Rj[9];
    slave_point(w, c, c->y0, w->state.pos, p);
    other_place(w, c, q);
    quat_matrix(w->state.rot + 4 * c->node, Ri);
    other_matrix(w, c, Rj);
    for (int i = 0; i < 3; i++) {
        g[i] = p[i] + dot3(Ri + 3 * i, c->a) - q[i] - dot3(Rj + 3 * i, c->rho);
        Rl[i] = dot3(Rj + 3 * i, c->l);
    }
}

static void tangential(const double *N, const double *v, double *out)
{
    for (int i = 0; i < 3; i++)
        out[i] = v[i] - dot3(N, v) * N[i];
}

/* The equations of a pair in the state; tau: its friction. */
static void pair_equations(const newton *u, const touch *c, const touch *base, double *eq, double *tau)
{
    const rod_contacts *k = u->w->contact;
    double Rl[3], g[3], gt[3], x[3], was[3], R[9], hard = k->hard[0];
    slip_of(u->w, c, Rl, g);
    tangential(c->N, Rl, tau);
    tangential(c->N, g, gt);
    other_matrix(u->w, c, R);
    for (int i = 0; i < 3; i++) {
        x[i] = tau[i] - u->r * gt[i];
        was[i] = dot3(R + 3 * i, c->l) - dot3(R + 3 * i, base->l);
    }
    eq[0] = c->gap + (c->lambda - base->lambda) / hard;
    for (int i = 0; i < 3; i++)
        eq[1 + i] = !(k->mu[0] > 0) ? c->l[i]
                    : base->status == STATUS_STICK
                        ? gt[i] + was[i] / hard
                        : tau[i] - k->mu[0] * c->lambda * x[i] / norm3(x) + base->N[i] * dot3(base->N, Rl);
}

/* All equations, with the unknown `which` changed by h (-1: none): balance, then those of the pairs; tau of
   the pairs. */
static void equations(newton *u, int which, double h, double *eq, double *tau)
{
    rod_work *w = u->w;
    rod_contacts *k = w->contact;
    double *dx = arena_array(w->a, double, w->ndof), mu = k->mu[0], soft = k->k[0];
    int m = (int)u->base.n;
    state_copy(w, w->state.pos, w->state.rot, u->pos, u->rot);
    memcpy(k->list.at, u->base.at, u->base.n * sizeof *u->base.at);
    if (which >= 0 && which < w->ndof)
        dx[which] = h;
    rod_update(w, dx, 1);
    memset(eq, 0, (size_t)(w->ndof + OWN * m) * sizeof *eq);
    for (int i = 0; i < m; i++) {
        touch *c = &k->list.at[i];
        int own = which - w->ndof - OWN * i;
        touch_project(w, c);
        if (own == 0)
            c->lambda += h;
        if (own > 0 && own < OWN)
            c->l[own - 1] += h;
        pair_equations(u, c, &u->base.at[i], eq + w->ndof + OWN * i, tau + 3 * i);
    }
    k->stiff = false; /* springs without stiffness: only the multipliers act */
    k->tresca[0] = true;
    k->mu[0] = 1e9 * mu;
    k->k[0] = 0;
    contacts_put(w, eq, NULL);
    k->stiff = true;
    k->tresca[0] = false;
    k->mu[0] = mu;
    k->k[0] = soft;
    state_copy(w, w->state.pos, w->state.rot, u->pos, u->rot);
    memcpy(k->list.at, u->base.at, u->base.n * sizeof *u->base.at);
}

/* All derivatives: J[row * wide + column]; T: those of tau. */
static void differences(newton *u, int wide, int m, double *J, double *T)
{
    double *p = arena_array(u->w->a, double, wide), *q = arena_array(u->w->a, double, wide),
           *tp = arena_array(u->w->a, double, 3 * m), *tq = arena_array(u->w->a, double, 3 * m);
    for (int j = 0; j < wide; j++) {
        double h = j < u->w->ndof ? 1e-6 : 1e-5;
        equations(u, j, h, p, tp);
        equations(u, j, -h, q, tq);
        for (int i = 0; i < wide; i++)
            J[i * wide + j] = (p[i] - q[i]) / (2 * h);
        for (int i = 0; i < 3 * m; i++)
            T[i * wide + j] = (tp[i] - tq[i]) / (2 * h);
    }
}

/* The increments of multipliers from the whole system: y = -D^-1 (g + C x). */
static void own_increments(rod_work *w, const double *J, const double *eq, int wide, int pair,
                           const double *x, double *y)
{
    int at = w->ndof + OWN * pair;
    double D[OWN * OWN], b[OWN];
    factor f;
    factor_init(&f, w->a, OWN, false);
    for (int i = 0; i < OWN; i++) {
        b[i] = -eq[at + i];
        for (int j = 0; j < w->ndof; j++)
            b[i] -= J[(at + i) * wide + j] * x[j];
        for (int j = 0; j < OWN; j++)
            D[OWN * i + j] = J[(at + i) * wide + at + j];
    }
    assert_true(factor_general(&f, D));
    factor_solve(&f, b, y);
}

/* Residual and tangent of the code in the direction x, compared with the whole system after eliminating
   multipliers; then the multipliers themselves. */
static void compare_newton(newton *u, double slope)
{
    rod_work *w = u->w;
    rod_contacts *k = w->contact;
    int n = w->ndof, m = (int)u->base.n, wide = n + OWN * m;
    double *eq = arena_array(w->a, double, wide), *tau = arena_array(w->a, double, 3 * m),
           *J = arena_array(w->a, double, wide *wide), *T = arena_array(w->a, double, 3 * m * wide);
    double *res = arena_array(w->a, double, n), *D = arena_array(w->a, double, n *n),
           *x = arena_array(w->a, double, n), most = 0;
    rod_sparse K = { .n = n };
    contacts_put(w, res, &K);
    for (int i = 0; i < K.nz; i++)
        D[K.i[i] * n + K.j[i]] += K.x[i];
    for (int i = 0; i < n * n; i++)
        most = fmax(most, fabs(D[i]));
    memcpy(u->base.at, k->list.at, u->base.n * sizeof *u->base.at);
    differences(u, wide, m, J, T);
    equations(u, -1, 0, eq, tau);
    for (int j = -1; j < n; j++) { /* -1: nothing moves */
        double y[OWN], zero[OWN];
        memset(x, 0, (size_t)n * sizeof *x);
        double *left = arena_array(w->a, double, n);
        for (int i = 0; i < n; i++)
            left[i] = j < 0 ? eq[i] - res[i] : J[i * wide + j] - D[i * n + j];
        if (j >= 0)
            x[j] = 1;
        for (int p = 0; p < m; p++) {
            own_increments(w, J, eq, wide, p, x, y);
            if (j >= 0) {
                x[j] = 0;
                own_increments(w, J, eq, wide, p, x, zero);
                x[j] = 1;
            }
            for (int c = 0; c < OWN; c++)
                for (int i = 0; i < n; i++)
                    left[i] += J[i * wide + n + OWN * p + c] * (j < 0 ? y[c] : y[c] - zero[c]);
        }
        for (int i = 0; i < n; i++)
            assert_true(fabs(left[i]) < 1e-7 * (j < 0 ? 1 : most));
    }
    for (int i = 0; i < n; i++)
        x[i] = slope * uniform();
    contacts_predict(w, x, 1);
    for (int p = 0; p < m; p++) {
        double y[OWN];
        const touch *c = &k->list.at[p];
        own_increments(w, J, eq, wide, p, x, y);
        assert_true(fabs(c->lambda - u->base.at[p].lambda - y[0]) < 1e-7);
        for (int i = 0; i < 3; i++) {
            double t = tau[3 * p + i];
            for (int j = 0; j < n; j++)
                t += T[(3 * p + i) * wide + j] * x[j];
            for (int j = 0; j < OWN; j++)
                t += T[(3 * p + i) * wide + n + OWN * p + j] * y[j];
            assert_true(fabs(c->next[i] - t) < 1e-7);
        }
    }
}

static void unknowns(double mu, against what, contact_status status, bool time)
{
    fixture f;
    cross(&f, mu, what);
    if (time)
        assert_true(rod_motion_new(&f.w, 0.1));
    push(&f.w, 4e-3, what == ITSELF ? 7 : 13);
    rod_contacts *k = f.w.contact;
    touches *list = &k->list;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].status != STATUS_OPEN)
            list->at[n++] = list->at[i];
    list->n = n;
    k->hard[0] = 100;
    k->k[0] = 1e-12; /* only the multipliers decide whether pairs are open, stick or slip */
    k->grip = 20 / k->k[0];
    newton u = { .w = &f.w,
                 .r = 20,
                 .pos = arena_array(f.a, double, 3 * f.w.N),
                 .rot = arena_array(f.a, double, 4 * f.w.N) };
    u.base.at = arena_array(f.a, touch, n);
    u.base.n = n;
    state_copy(&f.w, u.pos, u.rot, f.w.state.pos, f.w.state.rot);
    for (size_t i = 0; i < n; i++) {
        touch *c = &list->at[i];
        c->lambda = 2 + uniform() / 2;
        c->turned = 0;
        /* far from the transition between slip and stick */
        for (int j = 0; j < 3; j++)
            c->l[j] = mu > 0 ? 0.2 + 0.05 * uniform() : 0;
    }
    k->stiff = true;
    compare_newton(&u, 1e-3);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_true(list->at[i].status == status);
    arena_free(f.a);
}

static void test_unknowns(void **st)
{
    (void)st;
    for (against what = ROD; what <= BALL; what++) {
        unknowns(0, what, STATUS_STICK, false);
        unknowns(0.5, what, STATUS_STICK, false); /* with more friction there are fewer pairs on bodies */
        unknowns(0.05, what, STATUS_SLIP, false);
    }
    unknowns(50, ROD, STATUS_STICK, true);
    unknowns(0.05, ROD, STATUS_SLIP, true);
}

/* Dead and follower loads, at a point and along the rod, on a randomly bent rod; in time: after a step that
   bent it, with its inertia. */
static void loads(bool time)
{
    arena *a = arena_new(&allocator_libc, NULL);
    rod_spec s = spec(a, "a");
    const double one[3] = { 30, -20, 40 }, two[3] = { 50, 10, -30 };
    rod_load load[] = {
        { .what = LOAD_POSITION,
          .point = true,
          .s = constant(a, 0),
          .value = constants(a, 3, (double[3]){ 0 }) },
        { .what = LOAD_FORCE,
          .point = true,
          .follower = true,
          .s = constant(a, 1),
          .value = constants(a, 3, one) },
        { .what = LOAD_FORCE, .follower = true, .s = constant(a, 0), .value = constants(a, 3, two) },
        { .what = LOAD_FORCE, .s = constant(a, 0), .value = constants(a, 3, one) },
        { .what = LOAD_MOMENT,
          .point = true,
          .follower = true,
          .s = constant(a, 0.5),
          .value = constants(a, 3, two) },
        { .what = LOAD_MOMENT, .point = true, .s = constant(a, 0.5), .value = constants(a, 3, one) }
    };
    rod_program rp = { .rod = &s, .nrod = 1, .load = load, .nload = 6 };
    program p = { .rod = &rp };
    rod_options ro = { .h = 1, .theta = 0.6 };
    rod_work w = { .p = &p, .rp = &rp, .ro = &ro, .r = results_new(a, &p), .a = a, .tmp = a };
    s.velocity = constants(a, 3, two);
    s.spin = constants(a, 3, one);
    assert_true(rod_build(&w));
    state_copy(&w, w.state.pos0, w.state.rot0, w.state.pos, w.state.rot);
    if (time)
        assert_true(rod_motion_new(&w, 0.1));
    int n = w.ndof;
    double *dx = arena_array(a, double, n), *D = arena_array(a, double, n *n), *f = arena_array(a, double, n),
           h = 1e-5, most = 0, skew = 0;
    for (int i = 0; i < n; i++)
        dx[i] = 0.05 * uniform();
    rod_update(&w, dx, 1);
    rod_outside out = rod_outside_at(&w, 0);
    for (int e = 0; e < w.mesh->ne; e++) {
        double K[ROD_DOFS * ROD_DOFS];
        rod_element_loaded(&w, w.mesh, e, &out, NULL, f + 18 * e, K);
        for (int i = 0; i < ROD_DOFS; i++)
            for (int j = 0; j < ROD_DOFS; j++)
                D[(18 * e + i) * n + 18 * e + j] += K[i * ROD_DOFS + j];
    }
    double *res = arena_array(a, double, n), *fp = arena_array(a, double, n), *fq = arena_array(a, double, n);
    rod_residual(&w, 0, res);
    for (int i = 0; i < n; i++)
        assert_true(fabs(res[i] - f[i]) < 1e-10);
    for (int i = 0; i < n * n; i++) {
        most = fmax(most, fabs(D[i]));
        skew = fmax(skew, fabs(D[i] - D[i % n * n + i / n]));
    }
    assert_true(skew > 10);
    for (int j = 0; j < n; j++) {
        memset(dx, 0, (size_t)n * sizeof *dx);
        double *pos = arena_array(a, double, 3 * w.N), *rot = arena_array(a, double, 4 * w.N);
        state_copy(&w, pos, rot, w.state.pos, w.state.rot);
        dx[j] = 1;
        rod_update(&w, dx, h);
        rod_residual(&w, 0, fp);
        state_copy(&w, w.state.pos, w.state.rot, pos, rot);
        rod_update(&w, dx, -h);
        rod_residual(&w, 0, fq);
        state_copy(&w, w.state.pos, w.state.rot, pos, rot);
        for (int i = 0; i < n; i++)
            assert_true(fabs((fp[i] - fq[i]) / (2 * h) - D[i * n + j]) < 1e-7 * most);
    }
    arena_free(a);
}

static void test_loads(void **st)
{
    (void)st;
    loads(false);
    loads(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_loads),    cmocka_unit_test(test_smooth),
                                        cmocka_unit_test(test_stick),    cmocka_unit_test(test_slip),
                                        cmocka_unit_test(test_unknowns), cmocka_unit_test(test_potential),
                                        cmocka_unit_test(test_along) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
