/* session_view: declarations shared by the files that turn results into values. */
#ifndef CDL_SESSION_VIEW_H
#define CDL_SESSION_VIEW_H
#include "session/session.h"

/* a view is a scope over the results of a run: of an instance of a class, a family of dofs or parts, a
 * constraint, its impacts */
typedef struct view {
    scope base;
    run *r;
    /* class */
    const mclass *c;
    int32_t inst;
    /* dofs: address so far, indices given, derivatives taken */
    const mdof *dof;
    int32_t at;
    uint8_t given, primes;
    const mpart *part;
    /* constraint; member < 0: the family */
    size_t contact;
    int64_t member;
} view;

view *view_new(run *r, view of);
value view_value(view *v);
/* numbers for the times of a run; joined by lines */
value plain_series(const results *r, const double *y, int64_t stride);
int64_t sample_before(const double *t, int64_t n, double at);
bool is_dofs(const value *v);
/* Matrices of rotations that lie behind one another, [sample][rotation][9]; made when they are first read. */
const double *rotation_samples(run *r, int32_t first, int32_t count);
const mpart *value_family(const value *v); /* a family of parts, or NULL */
value dofs_call(scope *sc, evaluator *ev, const value *o, const value *arg, size_t n, span at);

/* session_contact.c */
value contact_value(run *r, size_t k, int32_t inst);
bool is_contact(const value *v), is_impacts(const value *v), is_points(const value *v);
bool status_show(text *t, const value *v); /* how often open, stick and slip; false when it is no status */
bool view_has(const view *v,
              int64_t member); /* of a constraint: is it the current member, or a point of it? */
size_t impacts_count(const view *v);
void impacts_put(session *s, const view *v, put_column put, void *ud);
look contact_not_kept(const view *v, evaluator *ev, span at);
/* A quantity of a constraint at the samples, as it is stored: of one member, or of all of a family. */
typedef struct contact_column {
    const double *numbers; /* or */
    const uint8_t *bytes;  /* contact_status */
    int64_t apart;         /* elements from sample to sample */
    int naxis;             /* of the family; 0: one member */
    int32_t n[MAX_INDEX], first[MAX_INDEX];
    int components; /* of what is tangential */
} contact_column;
/* make: compute columns that are computed on demand. False: there is none, or it is not one array. */
bool contact_samples(const value *v, const char *name, bool make, contact_column *out);
/* The quantities whose power series can be had, where the backend has them: of a dof, a rate, a gap or a
 * reaction.  NULL for anything else. */
const results *dof_dense(const value *y, dense_item *x), *contact_dense(const value *y, dense_item *x);

static inline void near_list(near *n, const char *const *list)
{
    while (*list)
        near_try(n, *list++);
}
#endif
