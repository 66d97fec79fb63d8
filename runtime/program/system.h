/* system: a program with its working memory: register files of its kernels, and their results at an
 * instant: masses, forces, gaps and the rows of contacts. */
#ifndef CDL_SYSTEM_H
#define CDL_SYSTEM_H
#include "past/history.h"
#include "base/matrix.h"
#include "shapes.h"
#include "turns.h"

/* A kernel with its registers. */
typedef struct reading {
    in_kind kind;
    int32_t from, reg;
} reading;
typedef struct term {
    const kernel *k; /* NULL: absent */
    double *reg, *where;
    /* one member, with parameters set: what else it reads; move NULL: all inputs are gathered */
    const reading *move;
    uint32_t nmove;
    int32_t time, speed; /* registers of these; -1: they are not read */
    bool constant;       /* reads parameters and indices only */
    double *batch;       /* of many members: memory to run them all together; NULL: one by one, or none yet */
    /* of a sparse matrix: where the outputs lie, member by member */
    const int *place;
} term;
/* reads: a bit for each in_kind */
typedef struct terms {
    term *at;
    size_t n;
    unsigned reads;
    bool constant;
} terms;

typedef struct family {
    const contact_family *f;
    term gap, gradient, rate, bias, slip, slip_map, slip_offset, slip_bias, normal, mu, mu_static, e, et,
        adhesion;
    int nslip, d; /* components as given; of the step problem at most */
    int shown;    /* components kept in results */
    /* H and S; d gap/dt and the part of the slip that is free of q' never change */
    bool rows_fixed, offset_fixed;
    bool still;          /* and so are its laws */
    size_t first, count; /* its members among the contacts */
    /* The dofs that its rows have entries at, for a member, and which of them each output of the gradient and
     * of the slip map belongs to; NULL: rows have entries at all dofs. */
    const slot_map *dof;
    const int *gradient_to, *slip_to;
    const int *slip_row; /* component of each output of the slip map; NULL: members differ */
    int ndof, ngap;      /* the first `ngap` of them are those of the gap */
} family;

/* A member of a contact family, with its rows at the instant they were last computed. */
typedef struct contact {
    /* what every step reads */
    family *fam;
    double *gap; /* points into an array that is read as a whole */
    int n;       /* entries of a row: at the dofs dof[0..n), all of them where it is NULL */
    int d;       /* tangent components of the step problem */
    int *dof;
    double *H, *S, *s0; /* 1 x n, d x n, d: gap rate = H q' + ht, slip = S q' + s0 */
    double ht;
    double mu, e, normal;           /* mu is the bound over r_n (times |grad gap| where slip is not given) */
    double mu_static, et, adhesion; /* 0 where the family has none */
    /* which member it is */
    int64_t member;
    int32_t index[MAX_INDEX];
    bool repeats;       /* a dof occurs in it twice; only its first place is used */
    double *show;       /* shown x d: slip and friction in the components that are shown */
    double *show_force; /* the same for forces (differs in the kinetic metric) */
    double bias;        /* where it is constant */
    double metric;      /* |grad gap| in the kinetic metric, 1 where slip is given */
} contact;

typedef struct system {
    const program *p;
    const double *param;
    arena *a;
    int n;
    matrix_shape mass_shape; /* of the masses: diagonal, else that of the step */
    matrix_shape step_shape; /* of the masses and the derivatives of forces together */
    bool mass_constant, force_constant, force_of_state, jacobian_constant, first_order;
    terms mass, force, force_dq, force_dv, kinetic, potential, driving, power;
    family *family;
    contact *contact;
    double *gaps; /* of all contacts, in their order */
    size_t ncontact;
    int rows; /* of all contacts */
    inputs in;
    struct past_samples *past; /* delays: past values, filled in at each instant; NULL: none */
    bool past_late;            /* filled in when forces are computed */
    double *base;              /* 3 n: bases of rotations (IN_BASE); NULL: there are none */
    double *react;             /* reactions that formulas read (IN_REACT); NULL: none */
    size_t nreact;             /* numbers of it */
    shapes *shapes;            /* pairs of bodies and their features (IN_FEATURE); NULL: there are none */
    span start_wrong;          /* the initial value that is not a rotation; file 0: none */
    double *w1, *w2, *w3;      /* n doubles each */
    factor minv;               /* of the masses last factorised */
    /* how far initial values were moved onto the constraints; the constraint with the largest violation, or
       NULL */
    double start_moved;
    const contact *start_by;
    /* a constraint of rates that the initial rates violate, or NULL; the violation */
    const contact *start_missed;
    double start_by_rate;
} system_t;

enum { DENSE_DOFS = 1200 }; /* limit of backends that work with full matrices */
/* Parts across the normal in slip space: E gets d orthonormal rows of length k, nu.S = H when the slip is a
 * whole relative velocity; touching: of touching points of shapes, which it always is. */
int slip_frame(const double *S, const double *H, int k, int n, bool touching, double *E);
/* Runs a kernel for one member; outputs are in its registers. */
static inline void term_run(const term *t, const inputs *in, const int32_t *index)
{
    if (!t->move) {
        kernel_run(t->k, in, index, t->reg);
        return;
    }
    if (t->time >= 0)
        t->reg[t->time] = in->t;
    if (t->speed >= 0)
        t->reg[t->speed] = in->speed;
    for (const reading *m = t->move, *end = m + t->nmove; m < end; m++)
        t->reg[m->reg] = in->from[m->kind][m->from];
    if (t->k->tape.ncode)
        tape_run(&t->k->tape, t->reg);
}
/* first output for one member; 0 when absent */
static inline double term_value(const term *t, const inputs *in, const int32_t *index)
{
    if (!t->k)
        return 0;
    term_run(t, in, index);
    return t->reg[t->k->tape.out[0]];
}
bool term_member(const term *t, const int32_t *index);
term term_new(arena *a, const kernel *k); /* registers with constants set */
/* How matrices and rows are stored: in full, or by their structure; then contacts of near pairs (near.h)
 * are not listed. */
typedef enum { STORE_WHOLE, STORE_SPARSE } storage;
/* NULL and *why if the program is too large to be stored in full. */
system_t *system_new(arena *a, const program *p, const double *param, storage how, const char **why,
                     span *at);
/* Masses that couple few dofs at a time, as those of bodies do; NULL: a diagonal, or more. */
matrix_groups *system_bodies(const system_t *s, arena *a);
void system_close(system_t *s); /* frees what is outside the arena */
/* Values of parameters have changed: kernels that store them read them again. Structure decided by
   parameters does not change. */
void system_params(system_t *s);
size_t program_contacts(const program *p); /* members of all families */
/* Initial values. Those that violate constraints by the rounding of published data are projected onto
   them. */
void system_start(system_t *s, double *q, double *v);
const char *system_start_note(const system_t *s, arena *a); /* what was moved, or NULL */
/* Why the run cannot begin, and where that is, or NULL. */
const char *system_start_error(const system_t *s, span *at);
/* Points the kernels at an instant. */
static inline void system_at(system_t *s, double t, const double *q, const double *v)
{
    s->in.t = t;
    s->in.from[IN_Q] = q;
    s->in.from[IN_V] = v;
    s->in.from[IN_PRE] = v;
    if (s->past && !s->past_late)
        samples_fill(s->past, &s->in);
}
void system_mass(system_t *s, double *M); /* at the instant, in mass_shape */
void system_force(system_t *s, double *f);
void system_jacobian(system_t *s, double *Fq, double *Fv); /* in step_shape */
double system_sum(system_t *s, const terms *e);            /* sum of all outputs: energies */
/* Forces without potential at the instant, into f (zeros if there are none); returns the power that belongs
   to no dof. */
double system_driving(system_t *s, double *f);
static inline bool mass_diagonal(const system_t *s)
{
    return s->mass_shape.kind == MATRIX_DIAGONAL;
}
static inline void mass_times(const system_t *s, const double *M, const double *x, double *y)
{
    matrix_times(&s->mass_shape, M, x, y);
}
static inline double mass_norm2(const system_t *s, const double *M, const double *x) /* x.M x */
{
    double e = 0;
    if (!mass_diagonal(s))
        return matrix_norm2(&s->mass_shape, M, x);
    for (int i = 0; i < s->n; i++)
        e += x[i] * (M[i] * x[i]);
    return e;
}
/* Kinetic energy of dofs of second order, by a mass matrix that is diagonal or in full. */
double system_kinetic(const system_t *s, const double *M, const double *v);
/* Into s->minv; false: not positive definite, *bad is the dof. */
bool system_factor(system_t *s, const double *M, int *bad);

/* a row of c times v */
static inline double contact_rate(const contact *c, const double *row, const double *v)
{
    if (!c->dof)
        return vec_dot(row, v, c->n);
    double sum = 0;
    for (int k = 0; k < c->n; k++)
        sum += row[k] * v[c->dof[k]];
    return sum;
}
/* The inner product of two rows of c, each dof weighted by its mass (the diagonal of M), so that it does
   not depend on the units of dofs. */
double contact_common(const system_t *s, const contact *c, const double *M, const double *row,
                      const double *other);
/* The rate of its gap, or what it bounds where that is a rate; its rows are known. */
static inline double contact_gap_rate(const contact *c, const double *v)
{
    return contact_rate(c, c->H, v) + c->ht;
}
/* What results keep as its gap: of rates, what is bounded. */
static inline double contact_kept_gap(const contact *c, const double *v)
{
    return c->fam->f->of_rates ? contact_gap_rate(c, v) : *c->gap;
}
/* Allocates a contact of a family, with the place of its gap, for one member. Its rows are not filled yet.
 */
void contact_new(system_t *s, family *fam, contact *c, double *gap);
void contact_start(contact *c, int64_t member, const int32_t *index);
double contact_gap(system_t *s, contact *c); /* at the instant; kept in *c->gap */
/* The same for many contacts of one family, in lanes. */
void contact_gaps(system_t *s, contact *const *c, size_t n);
/* and for all members of a family, in the order of its indices; false: it has none of its own for some */
bool family_gaps(system_t *s, family *fam, double *gap);
/* Rows and offsets at the instant; M and s->minv belong to it.  all: also what never changes. */
void contact_rows(system_t *s, contact *c, const double *M, bool all);
/* The same for many contacts of one family, their kernels in lanes, where it is one for that: first the
   normal rows, then all else for those that still matter. */
bool contacts_in_lanes(const family *fam);
void contact_normal(system_t *s, contact *c); /* of one: H and ht alone */
void contacts_normals(system_t *s, contact *const *c, size_t n);
void contacts_slips(system_t *s, contact *const *c, size_t n);
void contact_laws(system_t *s, contact *c, bool all); /* mu, e, normal force (at speed s->in.speed) */
/* of a restitution that depends on the speed of approach */
double contact_restitution(system_t *s, contact *c, double approach);
/* of a law that depends on the speed, metric included */
double contact_mu(system_t *s, contact *c, double speed);
double contact_bias(system_t *s, contact *c);                 /* d^2 gap/dt^2 with q'' = 0 */
void contact_slip_bias(system_t *s, contact *c, double *out); /* d slip/dt with q'' = 0, d components */
/* "touch[3, 7]", in the arena. */
const char *contact_name(const contact *c, arena *a);
const char *dof_name(const program *p, int k, arena *a);
/* The statement that gives dof k its mass; otherwise the declaration of the dof. */
span mass_where(const program *p, int k);
#endif
