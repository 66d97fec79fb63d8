/* instant: what happens at one time, for all backends of dynamics: impacts by the laws of Newton and Poisson,
   accelerations by Gauss's principle, and what sticks or slips.  A backend describes the contacts that take
   part, with their rows and laws of now, and solves the contact problem in its own way. */
#ifndef CDL_INSTANT_H
#define CDL_INSTANT_H
#include <math.h>
#include "clock/clock.h"
#include "contact/contact.h"
#include "program/system.h"
#include "base/tolerances.h"

/* A contact that takes part. */
typedef struct meeting {
    contact *c;
    contact_result *out;    /* impacts are noted there */
    int row;                /* in the contact problem; set with the cones */
    bool rebounds;          /* its restitution counts */
    double e;               /* restitution that counts: known with a shock */
    bool rests;             /* it does not slip: a coefficient of its own holds it, where it has one */
    double tol_u, tol_slip; /* rates that count as 0 */
    const double *turning; /* added to the bias of slip: what a normal that turns does to it; NULL: nothing */
    bool held; /* its friction is known to be below its bound: what slip it has is an error of its rows */
    /* outcome of a shock */
    double before, after; /* rates of the gap */
    double *impulse;      /* row by row */
    double given;         /* part of the normal impulse that Poisson's law gives back */
    bool hit;             /* the impulse counts beside the largest one */
} meeting;

struct instant;

/* How a backend solves the contact problem of an instant. */
typedef struct instant_way {
    /* cones, and r as its solution is begun with; shock: impulses, else forces */
    void (*pose)(struct instant *x, bool shock);
    bool (*solve)(const struct instant *x, double *v); /* r, and v becomes v + M^-1 J^T r */
    void (*react)(const struct instant *x, double *v); /* v += M^-1 J^T r */
    /* Normal forces that follow from the reactions in r; true: they have changed, so that the problem is
       another one.  NULL: there are none */
    bool (*feed)(const struct instant *x, bool shock);
} instant_way;

typedef struct instant {
    system_t *s;
    const double *M; /* the masses of now */
    double t;
    meeting **at;
    int n;
    /* of the contact problem with u = J x + off + J M^-1 J^T r; the backend's rooms, named when it is posed
     */
    cone *cone;
    double *off, *r, *dir;
    double gained;         /* by the laws of the shock; 0: nothing */
    double *before, *room; /* of as many doubles as there are dofs: rates before the shock; for a while */
    void *of;
    const instant_way *way;
} instant_t;

/* The instant t of a backend `of` with masses M, whose contacts join one by one. */
static inline instant_t instant_begin(const instant_way *way, void *of, system_t *s, const double *M,
                                      double t, meeting **at)
{
    return (instant_t){ .s = s, .M = M, .t = t, .at = at, .of = of, .way = way };
}

/* Contact c takes part, with or without its restitution, and the rates that count as 0. */
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

/* its coefficient of friction, in slip or at rest */
static inline double contact_coefficient(const contact *c, bool rests)
{
    return rests && c->fam->mu_static.k ? c->mu_static : c->mu;
}

/* Impulses and the rates v after a shock.  v is the one before.  False: not solved. */
bool instant_shock(instant_t *x, double *v);
/* What the shock has done, with the rates v after it: rates of gaps, work and losses, impacts.  Energy that
   the laws have given, beyond rounding, is in `gained`. */
void instant_account(instant_t *x, const double *v, books *b, arena *a);
/* What contact i asks of accelerations at the rates v; the direction of its slip, where it slips. */
void instant_asks(instant_t *x, int i, const double *v);
/* What the first impulse of a contact does to the dofs, whatever the unit of its row: impulses compare by it.
 */
double impulse_size(const system_t *s, const double *M, const meeting *k);
/* Forces in r, and accelerations; acc is the one without contacts. */
bool instant_gauss(instant_t *x, const double *v, double *acc);

/* Painlevé's paradox: no accelerations fit a contact that slips, because the friction of its normal force
   presses it on.  The slip then ends in a shock without a collision: the limit of implicit steps whose size
   goes to 0.  acc: accelerations without contacts.  False: no impulse comes out, it is something else. */
bool instant_jam(instant_t *x, const double *acc, double *v);
/* The first contact of which that is so at the rates v; NULL: none. */
const contact *instant_paradox(instant_t *x, const double *v);
/* Is a contact pressed on by its own friction, in the problem of accelerations that was posed?  Then several
   may fit. */
bool instant_pressed(instant_t *x);
/* How many fit while slips go on as they are at the rates v; 0: not counted.  acc: the one without contacts.
 */
int instant_ways(instant_t *x, const double *acc, const double *v, arena *scratch);
const char *ways_text(const instant_t *x, int ways, arena *a, const char *time); /* x: the one taken */
/* why Newton's law gave energy at the shock, and where */
const char *gain_text(const instant_t *x, arena *a, const char *time);
const char *paradox_text(arena *a, const contact *c, const char *time, bool ended); /* by such a shock */

/* Why a motion may end in a corner of a gap that has pieces. */
#define CORNER_TEXT                                                                                   \
    "where two pieces of a gap are active, in a corner, it has only one reaction; write them as two " \
    "constraints"

/* Why a row of a constraint can hold nothing: it has none, or it is 0.  NULL: it can. */
const char *row_text(const contact *c, arena *a, const char *time);
void note_impact(arena *a, contact_result *out, impact i);
/* A cone without its law of friction. */
cone contact_cone(const contact *c, int row, double speed);
/* Bound of friction: mu times the normal reaction, and radius.  Over a step, of forces (1) or of a shock (0),
   which knows no bounded forces; base: a normal impulse besides. */
void friction_bound(const contact *c, double k, double step, double base, double *mu, double *radius);

/* Is the friction of a contact that rests used up, by the reactions r of its cone? */
bool friction_lets_go(const contact *c, const cone *o, const double *r);

/* The one definition: a contact slips when its slip counts and its friction is not known to hold it. */
static inline bool contact_slips(double speed, double tol_slip, bool held)
{
    return speed > tol_slip && !held;
}

/* Friction that is below its bound holds, by as much as contact problems are solved to. */
static inline bool friction_holds(double friction, double bound)
{
    return friction < bound * (1 - FRICTION_HOLDS);
}

static inline contact_status status_of(const contact *c, bool closed, bool slips)
{
    return !closed ? STATUS_OPEN : c->fam->d && !slips ? STATUS_STICK : STATUS_SLIP;
}

/* may it open and be hit? */
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

/* row j of the contact problem */
static inline const double *contact_row(const contact *c, int j)
{
    int normal = contact_has_normal(c);
    return j < normal ? c->H : c->S + (size_t)(j - normal) * (size_t)c->n;
}

/* its size */
static inline double contact_slip(const contact *c, const double *v, double *slip)
{
    double s = 0;
    for (int i = 0; i < c->d; i++) {
        slip[i] = contact_rate(c, c->S + (size_t)i * (size_t)c->n, v) + c->s0[i];
        s += slip[i] * slip[i];
    }
    return sqrt(s);
}

/* row times sizes of dofs */
static inline double contact_size(const contact *c, const double *row, const double *size)
{
    double s = 0;
    for (int i = 0; i < c->n; i++)
        s += fabs(row[i]) * size[c->dof ? c->dof[i] : i];
    return s;
}

/* row times x without cancelling: the sum of the sizes of its terms */
static inline double contact_terms(const contact *c, const double *row, const double *x)
{
    double s = 0;
    for (int i = 0; i < c->n; i++)
        s += fabs(row[i] * x[c->dof ? c->dof[i] : i]);
    return s;
}
#endif
