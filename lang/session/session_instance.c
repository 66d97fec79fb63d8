/* session_instance: a model that a program steps. An instance has its own memory and shares only the
   compiled model, which never changes, with its session; so instances can run in parallel threads. */
#include <math.h>
#include <string.h>
#include "base/rotation.h"
#include "base/tolerances.h"
#include "clock/clock.h"
#include "session.h"
#include "syntax/parse.h"

/* what can be read or written by name */
typedef enum {
    OF_DOF,
    OF_GAP,
    OF_RN,
    OF_RT,
    OF_SLIP,
    OF_STATUS,
    OF_ENERGY,
    OF_PARAMETER,
    OF_INPUT
} slot_kind;
typedef struct slot_row {
    const char *name;
    slot_kind kind;
    int32_t at; /* in q or the parameters; the family of a constraint */
    int32_t n;  /* numbers */
    int rank;
    size_t shape[CDL_AXES];
    bool turns; /* of a dof: a rotation */
    int order;  /* of a dof: derivatives taken */
    /* of an input: where its coefficients are, and the function that it follows; NULL: none */
    int32_t more;
    void (*follow)(void *ud, double t, double *value);
    void *ud;
    double lo, hi;
} slot_row;

struct cdl_instance {
    allocator al;
    budget budget;
    jmp_buf oom;
    bool broken;
    const program *p;
    const backend *with;
    run_options o;
    arena *own;           /* the instance, names, parameters */
    arena *a;             /* of the motion; another one when parameters change */
    arena *answer, *work; /* what a call returned; room of a call */
    vec(slot_row) slots;
    double *param;
    bool *fixed; /* parameters that are not inputs */
    results *r;
    run_clock *c;
    void *of;
    const stepper *st;
    bool new_state, new_inputs; /* the stepper has not seen them yet */
    int64_t looked;             /* the sample of the current state; -1: not taken */
    energies seen;
    bool failed;
    bool ready; /* it was created completely */
    const char *message;
};

#define BEGIN(i)                               \
    do {                                       \
        if ((i)->broken || setjmp((i)->oom)) { \
            instance_lost(i);                  \
            return CDL_MEMORY;                 \
        }                                      \
        instance_begin(i);                     \
    } while (0)

static void instance_lost(cdl_instance *i)
{
    i->broken = true;
    i->message = "there is not enough memory";
}

static void instance_begin(cdl_instance *i)
{
    static const arena_pos empty = { NULL, 0 };
    i->message = "";
    i->budget.why = SPENT_NOTHING;
    arena_release(i->work, empty);
}

static cdl_status refuse(cdl_instance *i, const char *why)
{
    i->message = why;
    return CDL_USAGE;
}

/* ---- names ---- */

static slot_row *slot_add(cdl_instance *i, slot_kind kind, const char *name, int32_t at, int32_t n)
{
    slot_row *x = vec_push(i->own, &i->slots);
    *x = (slot_row){
        .name = arena_strdup(i->own, name), .kind = kind, .at = at, .n = n, .lo = -INFINITY, .hi = INFINITY
    };
    return x;
}

static void slot_axis(slot_row *x, size_t n)
{
    if (x->rank < CDL_AXES)
        x->shape[x->rank++] = n;
}

/* a matrix has three numbers for each of its three dofs */
static void slots_dofs(cdl_instance *i, const named_dof *x, size_t n)
{
    for (int order = 0; order <= 2; order++)
        for (size_t k = 0; k < n; k++) {
            const mdof *d = x[k].dof;
            slot_row *row = slot_add(i, OF_DOF, arena_printf(i->work, "%s%.*s", x[k].name, order, "''"),
                                     x[k].at, d->rotation && !order ? 3 * d->size : d->size);
            row->order = order;
            row->turns = d->rotation;
            row->rank = dof_shape(d, order > 0, row->shape, NULL);
        }
}

/* of a family one number for each member, in all its indices */
static void slots_contacts(cdl_instance *i, const model *m)
{
    static const struct {
        const char *name;
        slot_kind kind;
    } of[] = {
        { "gap", OF_GAP }, { "rn", OF_RN }, { "rt", OF_RT }, { "slip", OF_SLIP }, { "status", OF_STATUS }
    };
    for (size_t c = 0; c < i->p->ncontact; c++) {
        const contact_result *r = &i->r->contact[c];
        for (size_t k = 0; r->kept && k < sizeof of / sizeof *of; k++) {
            bool slips = of[k].kind == OF_RT || of[k].kind == OF_SLIP;
            if (slips && !r->nslip)
                continue;
            slot_row *x = slot_add(i, of[k].kind,
                                   arena_printf(i->work, "%s.%s", i->p->contact[c].name, of[k].name),
                                   (int32_t)c, (int32_t)r->members * (slips ? r->nslip : 1));
            if (m->contacts.at[c].over.set.n)
                slot_axis(x, (size_t)r->members);
            if (slips && r->nslip > 1)
                slot_axis(x, (size_t)r->nslip);
        }
    }
}

static void slots_parameters(cdl_instance *i, const model *m)
{
    const mclass *c = m->classes.at[0];
    for (size_t k = 0; k < c->params.n; k++) {
        const mparam *p = c->params.at[k];
        if (p->offset < 0 || p->structural)
            continue;
        slot_row *x = slot_add(i, p->input ? OF_INPUT : OF_PARAMETER, p->name, p->offset, p->size);
        for (int j = 0; j < p->rank; j++)
            slot_axis(x, (size_t)p->n[j]);
        x->more = p->input;
        x->lo = p->lo;
        x->hi = p->hi;
        int32_t coefficients = p->input ? 3 * p->size + 1 : 0;
        for (int32_t j = 0; p->input && j < p->size; j++)
            i->fixed[p->offset + j] = false;
        for (int32_t j = 0; j < coefficients; j++)
            i->fixed[p->input + j] = false;
    }
}

/* ---- the motion ---- */

static void motion_free(arena *a, const stepper *st, void *of)
{
    if (st && of)
        st->close(of);
    arena_free(a);
}

/* Starts a motion from t = 0 with the current parameters. False: message contains the reason, and the old
   motion remains. */
static bool motion_open(cdl_instance *i)
{
    arena *volatile a = arena_new(&i->al, &i->oom);
    jmp_buf outer;
    void *volatile of = NULL;
    const stepper *volatile st = NULL;
    if (!a)
        longjmp(i->oom, 1);
    memcpy(&outer, &i->oom, sizeof outer);
    if (setjmp(i->oom)) {
        memcpy(&i->oom, &outer, sizeof outer);
        motion_free(a, st, of);
        longjmp(i->oom, 1);
    }
    results *r = results_new(a, i->p);
    r->backend = i->with->name;
    memcpy(r->param, i->param, (size_t)i->p->nparam * sizeof *r->param);
    run_clock *c = arena_make(a, run_clock); /* the stepper keeps its address */
    void *made = NULL;
    st = i->with->open(i->p, &i->o, r, &made);
    of = made;
    bool good = st && clock_open(c, st, made, &i->o, r);
    memcpy(&i->oom, &outer, sizeof outer);
    if (!good) {
        i->message = arena_strdup(i->work, r->message ? r->message
                                                      : "this backend does not support "
                                                        "stepping");
        motion_free(a, st, of);
        return false;
    }
    i->a = a;
    i->of = made;
    i->st = st;
    i->r = r;
    i->c = c;
    i->looked = -1;
    return true;
}

static bool motion_begin(cdl_instance *i)
{
    arena *was = i->a;
    const stepper *st = i->st;
    void *of = i->of;
    if (!motion_open(i))
        return false;
    motion_free(was, st, of);
    return true;
}

static cdl_status motion_failed(cdl_instance *i)
{
    i->failed = true;
    i->message = i->r->message ? i->r->message : "the motion failed";
    return CDL_SOLVER;
}

/* what was set since the last step */
static bool settle(cdl_instance *i)
{
    bool state = i->new_state, given = i->new_inputs;
    i->new_state = i->new_inputs = false;
    if (given)
        program_derive(i->p, i->r->param, i->work);
    if (!state && !given)
        return true;
    i->looked = -1;
    i->c->stopped = i->c->stopped && !state;
    return i->st->changed(i->of, i->c, state ? CHANGE_STATE : CHANGE_INPUTS);
}

/* ---- making one ---- */

bool inputs_allowed(session *s, const model *m, const char *const *input, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const mparam *p = model_param(m, sym_str(s->names, input[k]));
        if (!p || !p->structural)
            continue;
        diag_error(s->d, DIAG_NOT_CONSTANT, p->at, "a size depends on '%s': it cannot be an input", p->name);
        return false;
    }
    return true;
}

/* the backend and its options, as after `with` */
static bool backend_asked(session *s, const char *named, const char *with, const backend **b, run_options *o)
{
    const char *line = arena_printf(s->tmp, "run %s for 1 with %s", named, with ? with : "sweeping()");
    size_t errors = s->d->errors;
    const ast *tree = parse_source(s->tmp, s->names, s->d,
                                   session_passing(s, "<instance>", line, strlen(line)));
    if (s->d->errors != errors)
        return false;
    const ast *e = tree->n == 1 ? tree->kid[0] : NULL;
    if (!e || e->kind != AST_RUN || !e->kid[3]) {
        diag_error(s->d, DIAG_SYNTAX, SPAN_NONE, "'%s' is not a backend", with);
        return false;
    }
    return run_options_read(s, e->kid[3], b, o);
}

static bool pieces_possible(session *s, const backend *b, const program *p)
{
    span at = SPAN_NONE;
    const char *why = b->refuse ? b->refuse(p, &at) : NULL;
    if (!why && b->open)
        return true;
    diag *d = diag_error(s->d, DIAG_NOT_SUPPORTED, at, "backend '%s' cannot step this model: %s", b->name,
                         why ? why : "it does not support stepping");
    if (!b->open)
        diag_hint(s->d, d, "use sweeping() or auglag()");
    return false;
}

static bool look_now(cdl_instance *i)
{
    if (i->looked < 0)
        i->looked = clock_look(i->c, &i->seen);
    return i->looked >= 0;
}

/* If memory runs out, the instance is not ready. The memory of the session is not used, because a jump
   there would lose the instance. */
static cdl_instance *instance_make(session *s, const built *of, const backend *b, const run_options *o,
                                   const double *param, const named_dof *dof, size_t ndof)
{
    allocator al = s->al;
    cdl_instance *i = al.grow(al.ud, NULL, sizeof *i);
    if (!i)
        return NULL;
    memset(i, 0, sizeof *i);
    i->al = (allocator){ al.grow, al.ud, &i->budget };
    i->budget = (budget){ .time = INFINITY, .memory = s->budget.memory, .begin = clock_seconds() };
    i->p = of->p;
    i->with = b;
    i->o = *o;
    i->looked = -1;
    i->message = "";
    arena **all[] = { &i->own, &i->answer, &i->work };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!(*all[k] = arena_new(&i->al, &i->oom)))
            return i;
    if (setjmp(i->oom))
        return i;
    size_t n = (size_t)of->p->nparam;
    i->param = arena_array(i->own, double, n + 1);
    i->fixed = arena_array(i->own, bool, n + 1);
    memcpy(i->param, param, n * sizeof *param);
    for (size_t k = 0; k < n; k++)
        i->fixed[k] = (int32_t)k < of->m->nparam;
    slots_parameters(i, of->m);
    for (int k = 0; k < b->noption; k++) /* words lie in the text of a call */
        i->o.word[k] = o->word[k] ? arena_strdup(i->own, o->word[k]) : NULL;
    if (!motion_open(i))
        return i;
    slots_dofs(i, dof, ndof);
    slots_contacts(i, of->m);
    if (!look_now(i)) { /* as a run does, so that steps begin alike */
        i->message = i->r->message ? i->r->message : "";
        return i;
    }
    slot_add(i, OF_ENERGY, "energy", 0, 1);
    i->ready = true;
    return i;
}

cdl_status cdl_instance_new(cdl *s, const char *named, const cdl_numbers *given, size_t ngiven,
                            const char *const *input, size_t ninput, const char *with, cdl_instance **out)
{
    *out = NULL;
    ENTER(s);
    run_options o = { .inputs = ninput > 0 };
    const backend *b = NULL;
    double *param;
    const built *of = session_model_numbers(s, named, &(model_request){ given, ngiven, input, ninput, false },
                                            &param);
    if (!of || !inputs_allowed(s, of->m, input, ninput) || !backend_asked(s, named, with, &b, &o) ||
        !pieces_possible(s, b, of->p)) {
        session_flush(s);
        return s->tally.worst ? s->tally.worst : CDL_MODEL;
    }
    o.duration = 1;
    named_dof *dof;
    size_t ndof;
    session_dofs(s, of->m, &dof, &ndof);
    cdl_instance *i = instance_make(s, of, b, &o, param, dof, ndof);
    if (!i)
        return CDL_MEMORY;
    if (i->ready) {
        *out = i;
        return CDL_OK;
    }
    const char *why = arena_strdup(s->tmp, i->message);
    cdl_instance_free(i);
    if (*why)
        diag_error(s->d, DIAG_SOLVER, of->decl->at, "%s", why);
    session_flush(s);
    return s->tally.worst ? s->tally.worst : CDL_MEMORY;
}

void cdl_instance_free(cdl_instance *i)
{
    if (!i)
        return;
    motion_free(i->a, i->st, i->of);
    arena *all[] = { i->answer, i->work, i->own };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        arena_free(all[k]);
    allocator al = i->al;
    al.grow(al.ud, i, 0);
}

/* ---- stepping ---- */

double cdl_instance_time(const cdl_instance *i)
{
    return i->r ? i->c->t : 0;
}

const char *cdl_instance_message(const cdl_instance *i)
{
    return i->message;
}

/* the polynomial c of element k, about now */
static void input_put(cdl_instance *i, const slot_row *x, int32_t k, const double *c, size_t n)
{
    double *p = i->r->param;
    p[x->at + k] = c[0];
    for (size_t j = 1; j < 4; j++)
        p[x->more + 3 * k + (int32_t)j - 1] = j < n ? c[j] : 0;
    p[x->more + 3 * x->n] = i->c->t;
}

/* the cubic in s through y at 0, h/3, 2h/3 and h */
static void cubic(const double y[4], double h, double c[4])
{
    double d1 = y[1] - y[0], d2 = y[2] - 2 * y[1] + y[0], d3 = y[3] - 3 * y[2] + 3 * y[1] - y[0], u = 3 / h;
    c[0] = y[0];
    c[1] = u * (d1 - d2 / 2 + d3 / 3);
    c[2] = u * u * (d2 - d3) / 2;
    c[3] = u * u * u * d3 / 6;
}

static void inputs_follow(cdl_instance *i, double to)
{
    double h = to - i->c->t;
    for (size_t k = 0; k < i->slots.n; k++) {
        slot_row *x = &i->slots.at[k];
        if (x->kind != OF_INPUT || !x->follow)
            continue;
        double *y = arena_array(i->work, double, 4 * x->n);
        for (int j = 0; j < 4; j++)
            x->follow(x->ud, i->c->t + h * j / 3, y + j * x->n);
        for (int32_t e = 0; e < x->n; e++) {
            double at[4] = { y[e], y[x->n + e], y[2 * x->n + e], y[3 * x->n + e] }, c[4];
            cubic(at, h, c);
            input_put(i, x, e, c, 4);
        }
        i->new_inputs = true;
    }
}

cdl_status cdl_instance_step(cdl_instance *i, double to)
{
    BEGIN(i);
    if (i->failed)
        return refuse(i, "the motion has failed: load a state, or set the state");
    if (!isfinite(to) || to < i->c->t - STEP_SAME * i->c->h)
        return refuse(i, "the target time lies in the past");
    if (to <= i->c->t)
        return CDL_OK;
    if (i->c->stopped && !i->new_state) {
        i->message = "stopped by an event of the model";
        return CDL_EXPECT;
    }
    if (i->o.inputs)
        inputs_follow(i, to);
    if (!settle(i))
        return motion_failed(i);
    i->looked = -1;
    step_outcome out = clock_advance(i->c, to);
    if (out == STEP_STOPPED) {
        i->message = "stopped by an event of the model";
        return CDL_EXPECT;
    }
    return out == STEP_DONE ? CDL_OK : motion_failed(i);
}

/* ---- reading and writing ---- */

int cdl_instance_find(cdl_instance *i, const char *name, size_t *n)
{
    if (i->broken || setjmp(i->oom)) {
        instance_lost(i);
        return -1;
    }
    instance_begin(i);
    near close = near_to(name);
    for (size_t k = 0; k < i->slots.n; k++) {
        near_try(&close, i->slots.at[k].name);
        if (strcmp(i->slots.at[k].name, name))
            continue;
        if (n)
            *n = (size_t)i->slots.at[k].n;
        return (int)k;
    }
    const char *best = near_best(&close);
    i->message = best ? arena_printf(i->work, "the model has no '%s'; did you mean '%s'?", name, best)
                      : arena_printf(i->work, "the model has no '%s'", name);
    return -1;
}

const char *cdl_instance_name(const cdl_instance *i, size_t k)
{
    return k < i->slots.n ? i->slots.at[k].name : NULL;
}

int cdl_instance_shape(const cdl_instance *i, int which, size_t shape[CDL_AXES])
{
    if (which < 0 || (size_t)which >= i->slots.n)
        return -1;
    const slot_row *x = &i->slots.at[which];
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    return x->rank;
}

static void contact_get(const cdl_instance *i, const slot_row *x, double *out)
{
    const contact_result *c = &i->r->contact[x->at];
    const double *from = x->kind == OF_GAP  ? c->gap
                         : x->kind == OF_RN ? c->rn
                         : x->kind == OF_RT ? c->rt
                                            : c->slip;
    int64_t first = i->looked * x->n;
    for (int32_t k = 0; k < x->n; k++)
        out[k] = x->kind == OF_STATUS ? c->status[first + k] : from[first + k];
}

/* an input now */
static void input_get(const cdl_instance *i, const slot_row *x, double *out)
{
    const double *p = i->r->param;
    double s = i->c->t - p[x->more + 3 * x->n];
    for (int32_t k = 0; k < x->n; k++) {
        const double *c = p + x->more + 3 * k;
        out[k] = p[x->at + k] + s * (c[0] + s * (c[1] + s * c[2]));
    }
}

/* matrices, or angular velocities, through the same numbers as those that a run keeps */
static void turns_get(const slot_row *x, const state_now *s, double *out)
{
    int32_t each = x->order ? 3 : 9;
    for (int32_t k = 0; k < x->n / each; k++) {
        int32_t at = x->at + 3 * k;
        double q[3], v[3];
        memcpy(q, s->q + at, sizeof q);
        memcpy(v, s->v + at, sizeof v);
        rotation_kept(s->base + 3 * at, q, v, NULL);
        if (x->order)
            memcpy(out + 3 * k, v, sizeof v);
        else
            rotation_of_vector(q, out + 9 * k);
    }
}

/* dofs and rates */
static void state_get(const cdl_instance *i, const slot_row *x, double *out)
{
    state_now s = i->st->now(i->of);
    if (x->turns)
        turns_get(x, &s, out);
    else
        memcpy(out, (x->order ? s.v : s.q) + x->at, (size_t)x->n * sizeof *out);
}

cdl_status cdl_instance_get(cdl_instance *i, int which, double *out)
{
    BEGIN(i);
    if (which < 0 || (size_t)which >= i->slots.n)
        return refuse(i, "there is no quantity with this number");
    const slot_row *x = &i->slots.at[which];
    size_t bytes = (size_t)x->n * sizeof *out;
    if (x->kind == OF_INPUT) {
        input_get(i, x, out);
        return CDL_OK;
    }
    if (x->kind == OF_PARAMETER) {
        memcpy(out, i->r->param + x->at, bytes);
        return CDL_OK;
    }
    if (x->kind == OF_DOF && x->order < 2) {
        state_get(i, x, out);
        return CDL_OK;
    }
    if (!settle(i) || !look_now(i))
        return motion_failed(i);
    if (x->kind == OF_DOF)
        memcpy(out, i->r->acc + i->looked * i->p->nq + x->at, bytes);
    else if (x->kind == OF_ENERGY)
        *out = i->seen.shown + i->seen.potential;
    else
        contact_get(i, x, out);
    return CDL_OK;
}

/* Much of the start depends on parameters: a new motion is started and takes over the state of the old
   one. */
static cdl_status parameter_set(cdl_instance *i, const slot_row *x, const double *to)
{
    if (!settle(i))
        return motion_failed(i);
    double *was = arena_array(i->work, double, i->p->nparam + 1);
    size_t n = (size_t)i->p->nparam;
    memcpy(was, i->param, n * sizeof *was);
    memcpy(i->param, i->r->param, n * sizeof *was);
    memcpy(i->param + x->at, to, (size_t)x->n * sizeof *to);
    program_derive(i->p, i->param, i->work);
    i->c->any_run = true;
    state_bytes state = state_save(i->work, clock_keep, i->c);
    i->c->any_run = false;
    if (!motion_begin(i)) {
        memcpy(i->param, was, n * sizeof *was);
        return CDL_SOLVER;
    }
    i->c->any_run = true;
    const char *why = state_load(i->work, state.at, state.n, clock_keep, i->c);
    i->c->any_run = false;
    i->r->samples = 0;
    if (why) {
        i->failed = true;
        return refuse(i, why);
    }
    i->failed = false;
    return i->st->changed(i->of, i->c, CHANGE_STATE) ? CDL_OK : motion_failed(i);
}

static bool within(cdl_instance *i, const slot_row *x, const double *to, size_t apart)
{
    for (int32_t k = 0; k < x->n; k++) {
        double v = to[(size_t)k * apart];
        if (v >= x->lo && v <= x->hi)
            continue;
        i->message = arena_printf(i->work, "'%s' = %g lies outside %g..%g", x->name, v, x->lo, x->hi);
        return false;
    }
    return true;
}

/* Rotations are set by their bases, keeping the angular velocities; false: some matrix is not a rotation.
 */
static bool turns_set(const slot_row *x, const state_now *s, const double *to)
{
    int32_t each = x->order ? 3 : 9, members = x->n / each;
    for (int32_t k = 0; !x->order && k < members; k++)
        if (rotation_defect(to + 9 * k) > ROTATION_SLACK)
            return false;
    for (int32_t k = 0; k < members; k++) {
        double *q = s->q + x->at + 3 * k, *v = s->v + x->at + 3 * k, *R = s->base + 3 * (x->at + 3 * k);
        if (x->order) {
            memcpy(v, to + 3 * k, 3 * sizeof *v);
            rotation_unrates(q, v, NULL);
            continue;
        }
        rotation_rates(q, v, NULL);
        memset(q, 0, 3 * sizeof *q);
        memcpy(R, to + 9 * k, 9 * sizeof *R);
        rotation_mend(R);
    }
    return true;
}

cdl_status cdl_instance_set(cdl_instance *i, int which, const double *to)
{
    BEGIN(i);
    if (which < 0 || (size_t)which >= i->slots.n)
        return refuse(i, "there is no quantity with this number");
    const slot_row *x = &i->slots.at[which];
    if (x->kind == OF_PARAMETER)
        return within(i, x, to, 1) ? parameter_set(i, x, to) : CDL_USAGE;
    if (x->kind != OF_DOF || x->order == 2)
        return refuse(i,
                      x->kind == OF_INPUT
                          ? "this is an input: set it with cdl_instance_input"
                          : arena_printf(i->work, "'%s' follows from the state: it cannot be set", x->name));
    for (int32_t k = 0; k < x->n; k++)
        if (!isfinite(to[k]))
            return refuse(i, arena_printf(i->work, "'%s' must be finite", x->name));
    state_now s = i->st->now(i->of);
    if (x->turns && !turns_set(x, &s, to))
        return refuse(
            i, arena_printf(i->work, "'%s' must be a rotation: orthonormal, with determinant 1", x->name));
    if (!x->turns)
        memcpy((x->order ? s.v : s.q) + x->at, to, (size_t)x->n * sizeof *to);
    i->new_state = true;
    i->looked = -1;
    if (i->failed)
        results_unfail(i->r);
    i->failed = false;
    return CDL_OK;
}

static slot_row *input_of(cdl_instance *i, int which)
{
    if (which >= 0 && (size_t)which < i->slots.n && i->slots.at[which].kind == OF_INPUT)
        return &i->slots.at[which];
    i->message = "this is not an input: inputs are listed when the instance is created";
    return NULL;
}

cdl_status cdl_instance_input(cdl_instance *i, int which, const double *c, size_t n)
{
    BEGIN(i);
    slot_row *x = input_of(i, which);
    if (!x)
        return CDL_USAGE;
    if (n < 1 || n > 4)
        return refuse(i, "an input has 1 to 4 coefficients");
    if (!within(i, x, c, n))
        return CDL_USAGE;
    x->follow = NULL;
    for (int32_t k = 0; k < x->n; k++)
        input_put(i, x, k, c + (size_t)k * n, n);
    i->new_inputs = true;
    return CDL_OK;
}

cdl_status cdl_instance_function(cdl_instance *i, int which, void (*f)(void *ud, double t, double *value),
                                 void *ud)
{
    BEGIN(i);
    slot_row *x = input_of(i, which);
    if (!x)
        return CDL_USAGE;
    double *now = arena_array(i->work, double, x->n);
    input_get(i, x, now);
    x->follow = f;
    x->ud = ud;
    for (int32_t k = 0; !f && k < x->n; k++)
        input_put(i, x, k, now + k, 1);
    i->new_inputs = true;
    return CDL_OK;
}

size_t cdl_instance_impacts(cdl_instance *i, const cdl_impact **out)
{
    static const arena_pos empty = { NULL, 0 };
    size_t n = 0;
    *out = NULL;
    if (i->broken || setjmp(i->oom)) {
        instance_lost(i);
        return 0;
    }
    arena_release(i->answer, empty);
    for (size_t c = 0; c < i->p->ncontact; c++)
        n += i->r->contact[c].impacts.n;
    cdl_impact *list = arena_array(i->answer, cdl_impact, n + 1);
    n = 0;
    for (size_t c = 0; c < i->p->ncontact; c++)
        for (size_t k = 0; k < i->r->contact[c].impacts.n; k++) {
            const impact *x = &i->r->contact[c].impacts.at[k];
            list[n++] = (cdl_impact){ i->p->contact[c].name, x->t, x->pre, x->post, x->impulse, x->member };
        }
    *out = list;
    return n;
}

/* ---- the state as a value ---- */

static void instance_keep(void *of, run_state *s)
{
    cdl_instance *i = of;
    int64_t hash = (int64_t)i->p->hash;
    state_same_text(s, "version", cdl_version(), "it was written by another version of the program");
    state_i64(s, "program", &hash, 1);
    if (hash != (int64_t)i->p->hash)
        state_wrong(s, "it belongs to another model, or the model has changed");
    state_same_text(s, "backend", i->with->name, "it is from another backend");
    state_same_f64(s, "options", i->o.value, MAX_OPTIONS, "it has other options of the backend");
    for (int32_t k = 0; k < i->p->nparam; k++)
        if (i->fixed[k])
            state_same_f64(s, "parameter", i->r->param + k, 1, "it has other parameters");
        else
            state_f64(s, "input", i->r->param + k, 1);
    i->c->any_run = true;
    if (state_ok(s))
        clock_keep(i->c, s);
    i->c->any_run = false;
}

cdl_status cdl_instance_save(cdl_instance *i, const void **bytes, size_t *n)
{
    static const arena_pos empty = { NULL, 0 };
    *bytes = NULL;
    *n = 0;
    BEGIN(i);
    if (!settle(i))
        return motion_failed(i);
    arena_release(i->answer, empty);
    state_bytes b = state_save(i->answer, instance_keep, i);
    *bytes = b.at;
    *n = b.n;
    return CDL_OK;
}

static bool state_take(cdl_instance *i, const char *bytes, size_t n)
{
    const char *why = state_load(i->work, bytes, n, instance_keep, i);
    i->r->samples = 0;
    i->looked = -1;
    if (!why) {
        program_derive(i->p, i->r->param, i->work);
        i->st->changed(i->of, i->c, CHANGE_READ);
    } else
        i->message = why;
    return !why;
}

cdl_status cdl_instance_load(cdl_instance *i, const void *bytes, size_t n)
{
    BEGIN(i);
    i->new_state = i->new_inputs = false;
    state_bytes before = state_save(i->work, instance_keep, i);
    if (state_take(i, bytes, n)) {
        results_unfail(i->r);
        i->failed = false;
        return CDL_OK;
    }
    const char *why = i->message;
    state_take(i, before.at, before.n);
    return refuse(i, why);
}
