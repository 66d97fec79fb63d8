/* instant: what happens at one time, for all backends of dynamics: impacts by the laws of Newton and Poisson,
   accelerations by Gauss's principle, and which contacts stick or slip. A backend lists the contacts that
   take part, with their rows and laws at this time, and solves the contact problem in its own way. */
#ifndef CDL_INSTANT_H
#define CDL_INSTANT_H
#include <math.h>
#include "clock/clock.h"
#include "contact/contact.h"
#include "program/system.h"
#include "base/tolerances.h"

/* A contact that takes part in a shock or in the problem of accelerations. */
typedef struct meeting {
    contact *c;
    contact_result *out;    /* its impacts are recorded here */
    int row;                /* first row in the contact problem; set with the cones */
    bool rebounds;          /* its restitution applies */
    double e;               /* coefficient of restitution; set at a shock */
    bool rests;             /* it does not slip: a coefficient of static friction applies, if it has one */
    double tol_u, tol_slip; /* rates below these count as 0 */
    const double *turning;  /* added to the bias of slip: the effect of a turning normal; NULL: none */
    bool held; /* its friction is known to be below its bound: any slip is an error of its rows */
    /* results of a shock */
    double before, after; /* rates of the gap */
    double *impulse;      /* one value per row */
    double given;         /* part of the normal impulse that Poisson's law restores */
    bool hit;             /* its impulse is not negligible beside the largest one */
} meeting;

struct instant;

/* How a backend solves the contact problem of an instant. */
typedef struct instant_way {
    /* Sets the cones and the initial guess of r. shock: r are impulses, otherwise forces. */
    void (*pose)(struct instant *x, bool shock);
    bool (*solve)(const struct instant *x, double *v); /* computes r; v becomes v + M^-1 J^T r */
    void (*react)(const struct instant *x, double *v); /* v += M^-1 J^T r */
    /* Computes normal forces that depend on the reactions in r. True: they have changed, so the problem has
       changed. NULL: there are none. */
    bool (*feed)(const struct instant *x, bool shock);
} instant_way;

typedef struct instant {
    system_t *s;
    const double *M; /* masses at this time */
    double t;
    meeting **at;
    int n;
    /* The contact problem u = J x + off + J M^-1 J^T r. The arrays belong to the backend, which sets them in
       `pose`. */
    cone *cone;
    double *off, *r, *dir;
    double gained;         /* energy that the laws of the shock have added; 0: none */
    double *before, *room; /* one number per dof: rates before the shock; temporary */
    void *of;
    const instant_way *way;
} instant_t;

/* An instant at time t with masses M. `of` is the backend's data. Contacts are added with instant_join. */
static inline instant_t instant_begin(const instant_way *way, void *of, system_t *s, const double *M,
                                      double t, meeting **at)
{
    return (instant_t){ .s = s, .M = M, .t = t, .at = at, .of = of, .way = way };
}

/* Adds contact c: whether its restitution applies, and the rates that count as 0. */
static inline void instant_join(instant_t *x, meeting *m, contact *c, contact_result *out, bool rebounds,
                                double tol_u, double tol_slip)
{
    m->c = c;
    m->out = out;
    m->rebounds = rebounds;
    m->tol_u = tol_u;
    m->tol_slip = tol_slip;
    x->at[x->n++] = m;
}

/* Coefficient of friction, kinetic or static. */
static inline double contact_coefficient(const contact *c, bool rests)
{
    return rests && c->fam->mu_static.k ? c->mu_static : c->mu;
}

/* Computes impulses and the rates v after a shock; v contains the rates before. False: not solved. */
bool instant_shock(instant_t *x, double *v);
/* Records a shock whose final rates are v: rates of gaps, work, losses, impacts. `gained` becomes the energy
   that the laws have added, beyond rounding. */
void instant_account(instant_t *x, const double *v, books *b, arena *a);
/* What contact i requires of accelerations at the rates v, and the direction of its slip if it slips. */
void instant_asks(instant_t *x, int i, const double *v);
/* The effect of a contact's first impulse on the dofs. It does not depend on the unit of the row, so impulses
   can be compared by it. */
double impulse_size(const system_t *s, const double *M, const meeting *k);
/* Computes forces in r, and accelerations; acc contains those without contacts. */
bool instant_gauss(instant_t *x, const double *v, double *acc);

/* Painleve's paradox: no accelerations satisfy the laws of a slipping contact, because the friction of its
   normal force presses it on. The slip then ends in a shock without a collision: the limit of implicit steps
   whose size goes to 0. acc: accelerations without contacts. False: there is no such impulse, the cause is
   another one. */
bool instant_jam(instant_t *x, const double *acc, double *v);
/* The first contact with this paradox at the rates v; NULL: none. */
const contact *instant_paradox(instant_t *x, const double *v);
/* Is a contact pressed on by its own friction, in the problem of accelerations that was posed? Then there may
   be several solutions. */
bool instant_pressed(instant_t *x);
/* The number of solutions in which each slip continues in its direction at the rates v; 0: not counted. acc:
   accelerations without contacts. */
int instant_ways(instant_t *x, const double *acc, const double *v, arena *scratch);
/* x: the solution that was taken */
const char *ways_text(const instant_t *x, int ways, arena *a, const char *time);
/* Text: why Newton's law added energy at the shock, and at which contacts. */
const char *gain_text(const instant_t *x, arena *a, const char *time);
/* ended: by such a shock */
const char *paradox_text(arena *a, const contact *c, const char *time, bool ended);

/* Why a motion may end in a corner of a gap that has pieces. */
#define CORNER_TEXT                                                                                   \
    "where two pieces of a gap are active, in a corner, it has only one reaction; write them as two " \
    "constraints"

/* Text: why a row of a constraint cannot hold anything (it is missing, or 0). NULL: it can. */
const char *row_text(const contact *c, arena *a, const char *time);
void note_impact(arena *a, contact_result *out, impact i);
/* A cone, without its law of friction. */
cone contact_cone(const contact *c, int row, double speed);
/* The bound of friction: mu times the normal reaction, plus radius. step: the length of a step, 1 for forces,
   0 for a shock (bounded forces have no impulse there). base: an additional normal impulse. */
void friction_bound(const contact *c, double k, double step, double base, double *mu, double *radius);

/* Has the friction of a contact at rest reached its bound, with the reactions r of its cone? */
bool friction_lets_go(const contact *c, const cone *o, const double *r);

/* The only definition of slip: the speed exceeds its tolerance, and friction is not known to hold the
   contact. */
static inline bool contact_slips(double speed, double tol_slip, bool held)
{
    return speed > tol_slip && !held;
}

/* Friction below its bound holds the contact. The margin is the accuracy of contact problems. */
static inline bool friction_holds(double friction, double bound)
{
    return friction < bound * (1 - FRICTION_HOLDS);
}

static inline contact_status status_of(const contact *c, bool closed, bool slips)
{
    return !closed ? STATUS_OPEN : c->fam->d && !slips ? STATUS_STICK : STATUS_SLIP;
}

/* Can it open and be hit? */
static inline bool contact_opens(const contact *c)
{
    return c->fam->f->relation == REL_GAP && !c->fam->f->of_rates;
}

static inline bool contact_has_normal(const contact *c)
{
    return c->fam->f->relation != REL_CLOSED;
}

static inline int contact_row_count(const contact *c)
{
    return contact_has_normal(c) + c->d;
}

/* Row j of the contact problem. */
static inline const double *contact_row(const contact *c, int j)
{
    int normal = contact_has_normal(c);
    return j < normal ? c->H : c->S + (size_t)(j - normal) * (size_t)c->n;
}

/* Computes the slip and returns its size. */
static inline double contact_slip(const contact *c, const double *v, double *slip)
{
    double s = 0;
    for (int i = 0; i < c->d; i++) {
        slip[i] = contact_rate(c, c->S + (size_t)i * (size_t)c->n, v) + c->s0[i];
        s += slip[i] * slip[i];
    }
    return sqrt(s);
}

/* |row| times the sizes of the dofs. */
static inline double contact_size(const contact *c, const double *row, const double *size)
{
    double s = 0;
    for (int i = 0; i < c->n; i++)
        s += fabs(row[i]) * size[c->dof ? c->dof[i] : i];
    return s;
}

/* row times x without cancellation: the sum of the sizes of its terms. */
static inline double contact_terms(const contact *c, const double *row, const double *x)
{
    double s = 0;
    for (int i = 0; i < c->n; i++)
        s += fabs(row[i] * x[c->dof ? c->dof[i] : i]);
    return s;
}
#endif
