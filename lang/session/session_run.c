/* session_run: from `run m(args) for T with b(options)` to results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/whole.h"
#include "clock/later.h"
#include "lower/assemble.h"
#include "motion/estimate.h"
#include "motion/gate.h"
#include "motion/sweep_emit.h"
#include "motion/sweeping.h"
#include "rod/rod.h"
#include "session.h"
#include "base/tolerances.h"

/* ---- compiled models ---- */

static bool same_overrides(const built *b, const override *set, size_t n)
{
    if (b->nset != n)
        return false;
    for (size_t k = 0; k < n; k++)
        if (b->set[k].name != set[k].name || b->set[k].value != set[k].value ||
            b->set[k].input != set[k].input)
            return false;
    return true;
}

static const built *built_first(const session *s, const ast *decl)
{
    const uint64_t *k = map64_get(&s->built, sym_key(decl));
    return k ? (const built *)(uintptr_t)*k : NULL;
}

const built *session_build(session *s, const ast *decl, scope *outer, const override *set, size_t nset)
{
    for (const built *b = built_first(s, decl); b; b = b->next)
        if (b->generation == s->generation && same_overrides(b, set, nset))
            return b->p ? b : NULL;
    built *b = arena_make(s->a, built);
    override *kept = arena_array(s->a, override, nset ? nset : 1);
    for (size_t k = 0; k < nset; k++)
        kept[k] = set[k];
    *b = (built){ .decl = decl, .set = kept, .nset = nset, .generation = s->generation };
    s->compiled++;
    b->m = model_build(s->a, s->names, s->d, outer, decl, set, nset);
    b->p = b->m ? assemble(s->a, s->tmp, b->m) : NULL;
    b->next = built_first(s, decl);
    *map64_put(&s->built, sym_key(decl)) = (uint64_t)(uintptr_t)b;
    return b->p ? b : NULL;
}

/* any compiled form of the model: which parameters are structural does not depend on their values */
const built *session_built(const session *s, const ast *decl)
{
    const built *b = built_first(s, decl);
    while (b && (b->generation != s->generation || !b->m))
        b = b->next;
    return b;
}

static const ast *param_item(const ast *decl, sym name)
{
    for (uint32_t i = 0; i < decl->n; i++) {
        if (decl->kid[i]->kind != AST_PARAM)
            continue;
        const ast *list = decl->kid[i]->kid[0];
        for (uint32_t k = 0; k < list->n; k++)
            if (list->kid[k]->name == name)
                return list->kid[k];
    }
    return NULL;
}

bool is_param_of(const ast *decl, sym name)
{
    return param_item(decl, name) != NULL;
}

void near_params(const ast *decl, near *n)
{
    for (uint32_t i = 0; i < decl->n; i++) {
        if (decl->kid[i]->kind != AST_PARAM)
            continue;
        const ast *list = decl->kid[i]->kid[0];
        for (uint32_t k = 0; k < list->n; k++)
            if (list->kid[k]->name)
                near_try(n, list->kid[k]->name);
    }
}

/* ---- arguments ---- */

bool is_literal(const ast *e)
{
    if (e->kind == AST_UNARY)
        return is_literal(e->kid[0]);
    if (e->kind == AST_BINARY)
        return is_literal(e->kid[0]) && is_literal(e->kid[1]);
    return e->kind == AST_NUM || e->kind == AST_BOOL;
}

typedef struct {
    sym name;
    value v;
    span at;
} argument;
typedef vec(argument) arguments;

static void argument_set(session *s, arguments *args, sym name, value v, span at)
{
    for (size_t k = 0; k < args->n; k++)
        if (args->at[k].name == name) {
            args->at[k] = (argument){ name, v, at };
            return;
        }
    *vec_push(s->tmp, args) = (argument){ name, v, at };
}

static const overriding *override_of(const session *s, sym name)
{
    for (size_t k = 0; k < s->params.n; k++)
        if (s->params.at[k].name == name)
            return &s->params.at[k];
    return NULL;
}

/* a swept name belongs to the experiment, whatever the command line sets */
static bool is_swept(const session *s, sym name)
{
    for (uint32_t i = 0; s->now.experiment && i < s->now.experiment->n; i++) {
        const ast *w = s->now.experiment->kid[i];
        for (uint32_t k = 0; w->kind == AST_SWEEP && k < w->kid[0]->n; k++)
            if (w->kid[0]->kid[k]->name == name)
                return true;
    }
    return false;
}

static bool arguments_read(session *s, const ast *decl, const ast *list, arguments *args)
{
    bool good = true;
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *arg = list->kid[k];
        /* reported by the check */
        if (arg->kind != AST_ARG || !is_param_of(decl, arg->name)) {
            good = false;
            continue;
        }
        s->now.draw_name = arg->name;
        s->now.drawn = 0;
        value v = eval(&s->ev, session_input_scope(s), arg->kid[0]);
        if (v.kind == V_NUM || v.kind == V_BOOL)
            argument_set(s, args, arg->name, v, arg->at);
        else if (v.kind == V_ERROR)
            good = false;
        else {
            diag_error(s->d, DIAG_TYPE, arg->kid[0]->at, "parameter '%s' must be a number, not %s", arg->name,
                       v_kind_text(s->tmp, &v));
            good = false;
        }
    }
    for (size_t k = 0; k < s->params.n; k++) {
        const overriding *o = &s->params.at[k];
        if (is_param_of(decl, o->name) && !is_swept(s, o->name))
            argument_set(s, args, o->name, o->v, SPAN_NONE);
    }
    return good;
}

static bool lacks_defaults(const ast *decl)
{
    for (uint32_t i = 0; i < decl->n; i++) {
        if (decl->kid[i]->kind != AST_PARAM)
            continue;
        const ast *list = decl->kid[i]->kid[0];
        for (uint32_t k = 0; k < list->n; k++)
            if (list->kid[k]->kind == AST_PARAM_ITEM && !list->kid[k]->kid[1])
                return true;
    }
    return false;
}

/* the program for these arguments: those that are structural are compiled in */
static const built *build_for(session *s, const ast *decl, scope *outer, const arguments *args,
                              const model_request *want)
{
    const built *any = session_built(s, decl);
    if (!any && !lacks_defaults(decl))
        any = session_build(s, decl, outer, NULL, 0);
    if (!any && !lacks_defaults(decl))
        return NULL;
    size_t n = 0, ninput = want ? want->ninput : 0;
    override *set = arena_array(s->tmp, override, args->n + ninput + 1);
    for (; n < ninput; n++)
        set[n] = (override){ .name = sym_str(s->names, want->input[n]), .input = true };
    for (size_t k = 0; k < args->n; k++) {
        double x;
        const mparam *p = any ? model_param(any->m, args->at[k].name) : NULL;
        if ((!any || (p && p->structural)) && v_scalar(&args->at[k].v, &x))
            set[n++] = (override){ .name = args->at[k].name, .value = x, .at = args->at[k].at };
    }
    return session_build(s, decl, outer, set, n);
}

static bool argument_put(session *s, const mparam *p, const argument *arg, span run_at, double *param,
                         bool *set)
{
    span at = arg->at.file ? arg->at : run_at;
    if (!eval_same_unit(&s->ev, arg->v.num.unit, p->unit,
                        arena_printf(s->tmp, "the value of parameter '%s' has another dimension", p->name),
                        at))
        return false;
    if (v_count(&arg->v) != (p->size ? p->size : 1) || arg->v.num.rank != p->rank) {
        value want = p->rank == 0   ? v_num(0)
                     : p->rank == 1 ? v_vector(s->tmp, p->n[0])
                                    : v_matrix(s->tmp, p->n[0], p->n[1]);
        diag_error(s->d, DIAG_SHAPE, at, "parameter '%s' must be %s, not %s", p->name,
                   v_kind_text(s->tmp, &want), v_kind_text(s->tmp, &arg->v));
        return false;
    }
    for (int32_t k = 0; p->offset >= 0 && k < p->size; k++) {
        param[p->offset + k] = v_element(&arg->v, k).num.d0;
        set[p->offset + k] = true;
    }
    return true;
}

static span argument_place(const arguments *args, sym name, span otherwise)
{
    for (size_t k = 0; k < args->n; k++)
        if (args->at[k].name == name && args->at[k].at.file)
            return args->at[k].at;
    return otherwise;
}

static bool missing_report(session *s, const built *b, const arguments *args, span at)
{
    const mclass *c = b->m->classes.at[0];
    bool good = true;
    for (size_t i = 0; i < c->params.n; i++) {
        const mparam *p = c->params.at[i];
        bool given = p->has_default;
        for (size_t k = 0; k < args->n; k++)
            given = given || args->at[k].name == p->name;
        if (given)
            continue;
        diag *e = diag_error(s->d, DIAG_PARAM_MISSING, at, "parameter '%s' of model '%s' has no value",
                             p->name, c->name);
        diag_second(s->d, e, p->at, "declared here");
        diag_hint(s->d, e, "write %s(%s = ...), or -p %s=... on the command line", c->name, p->name, p->name);
        good = false;
    }
    return good;
}

static bool bound_report(session *s, const mparam *p, double x, span at)
{
    if (x >= p->lo && x <= p->hi)
        return true;
    diag *e = diag_error(s->d, DIAG_PARAM_BOUND, at, "parameter '%s' = %s lies outside %s..%s", p->name,
                         num_text(s->tmp, x), num_text(s->tmp, p->lo), num_text(s->tmp, p->hi));
    if (at.begin != p->at.begin || at.file != p->at.file)
        diag_second(s->d, e, p->at, "its bounds are declared here");
    else if (override_of(s, p->name))
        diag_hint(s->d, e, "the value comes from -p %s=%s", p->name, override_of(s, p->name)->text);
    return false;
}

/* the bounds of every parameter of every instance */
static bool bounds_hold(session *s, const built *b, const arguments *args, const double *param)
{
    bool good = true;
    for (size_t i = 0; i < b->m->classes.n; i++) {
        const mclass *c = b->m->classes.at[i];
        for (size_t k = 0; k < c->params.n; k++) {
            const mparam *p = c->params.at[k];
            span at = i == 0 ? argument_place(args, p->name, p->at) : p->at;
            if (p->offset < 0 && p->structural)
                good = bound_report(s, p, p->fixed, at);
            for (int32_t j = 0; p->offset >= 0 && j < p->size * c->ninst && good; j++)
                good = bound_report(s, p, param[p->offset + j], at);
        }
    }
    return good;
}

/* what can be said of the arguments before the run: those written as numbers, and those that are missing */
void run_check_args(session *s, const ast *e, const built *of, bool to_run)
{
    arguments args = { 0 };
    const ast *list = e->kid[1];
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *arg = list->kid[k];
        if (arg->kind != AST_ARG)
            continue;
        const mparam *p = model_param(of->m, arg->name);
        value v = is_literal(arg->kid[0]) ? eval(&s->ev, &s->builtins, arg->kid[0]) : v_error();
        double x;
        *vec_push(s->tmp, &args) = (argument){ arg->name, v, arg->at };
        if (!p || v.kind != V_NUM || override_of(s, arg->name))
            continue;
        if (eval_same_unit(&s->ev, v.num.unit, p->unit,
                           arena_printf(s->tmp, "the value of parameter '%s' has another dimension", p->name),
                           arg->at) &&
            v_scalar(&v, &x))
            bound_report(s, p, x, arg->at);
    }
    for (size_t k = 0; k < s->params.n; k++)
        *vec_push(s->tmp, &args) = (argument){ .name = s->params.at[k].name };
    if (to_run)
        missing_report(s, of, &args, e->kid[0]->at);
}

static bool params_ready(session *s, const built *b, const arguments *args, span at, double *param)
{
    bool *set = arena_array(s->tmp, bool, b->p->nparam > 0 ? b->p->nparam : 1),
         good = missing_report(s, b, args, at);
    for (size_t k = 0; k < args->n; k++) {
        const mparam *p = model_param(b->m, args->at[k].name);
        if (p)
            good = argument_put(s, p, &args->at[k], at, param, set) && good;
    }
    if (!good)
        return false;
    program_params(b->p, set, param, s->tmp);
    return bounds_hold(s, b, args, param) && model_check_laws(b->m, param);
}

/* numbers of a parameter, which is a number, a vector, or a matrix row after row */
static value given_value(session *s, const built *any, sym name, const cdl_numbers *x)
{
    const mparam *p = any ? model_param(any->m, name) : NULL;
    bool matrix = p && p->rank == 2 && (size_t)p->n[0] * (size_t)p->n[1] == x->n;
    if (x->n == 1 && !(p && p->rank))
        return v_num(x->at[0]);
    value v = matrix ? v_matrix(s->tmp, p->n[0], p->n[1]) : v_vector(s->tmp, (int32_t)x->n);
    for (size_t i = 0; i < x->n; i++) {
        value one = v_num(x->at[i]);
        v_set(s->tmp, &v, (int32_t)i, &one);
    }
    return v;
}

static bool given_all(const built *b, const arguments *args)
{
    const mclass *c = b->m->classes.at[0];
    bool all = true;
    for (size_t i = 0; i < c->params.n; i++) {
        bool given = c->params.at[i]->has_default;
        for (size_t k = 0; k < args->n; k++)
            given = given || args->at[k].name == c->params.at[i]->name;
        all = all && given;
    }
    return all;
}

/* as far as they are known: what has no value is not a number, and so is what follows from it */
static bool params_partly(session *s, const built *b, const arguments *args, double *param)
{
    bool *set = arena_array(s->tmp, bool, b->p->nparam > 0 ? b->p->nparam : 1), good = true;
    const mclass *c = b->m->classes.at[0];
    for (size_t i = 0; i < c->params.n; i++)
        for (int32_t j = 0; !c->params.at[i]->has_default && j < c->params.at[i]->size; j++)
            param[c->params.at[i]->offset + j] = NAN;
    for (size_t k = 0; k < args->n; k++) {
        const mparam *p = model_param(b->m, args->at[k].name);
        if (p)
            good = argument_put(s, p, &args->at[k], b->decl->at, param, set) && good;
    }
    if (good)
        program_params(b->p, set, param, s->tmp);
    return good;
}

const built *session_program(session *s, const ast *decl, scope *outer, const model_request *want,
                             double **param)
{
    arguments args = { 0 };
    const built *any = session_built(s, decl);
    if (!any && !lacks_defaults(decl))
        any = session_build(s, decl, outer, NULL, 0);
    for (size_t k = 0; k < want->ngiven; k++) {
        sym name = sym_str(s->names, want->given[k].name);
        if (is_param_of(decl, name))
            *vec_push(s->tmp, &args) = (argument){ .name = name,
                                                   .v = given_value(s, any, name, &want->given[k]) };
    }
    const built *of = build_for(s, decl, outer, &args, want);
    if (!of)
        return NULL;
    *param = arena_array(s->tmp, double, of->p->nparam > 0 ? of->p->nparam : 1);
    if (want->partial && !given_all(of, &args))
        return params_partly(s, of, &args, *param) ? of : NULL;
    return params_ready(s, of, &args, decl->at, *param) ? of : NULL;
}

/* ---- the run ---- */

typedef struct {
    session *s;
    const results *r;
    const char *what;
    double begin, last_shown, most;
    bool shown;
} progress;

static bool progress_tell(void *ud, double done)
{
    progress *p = ud;
    session *s = p->s;
    if (p->r->disk.full)
        return true;
    if (budget_stopping(&s->budget))
        return s->interrupted = true;
    p->most = fmin(fmax(p->most, done), 1); /* the checks of the run start again */
    if (s->embed.progress && !s->now.worker)
        s->embed.progress(s->embed.progress_ud, p->what, p->most);
    if (!session_is(s, OPTION_PROGRESS) || s->now.report)
        return false;
    double t = clock_seconds();
    if (t - p->begin < 1 || t - p->last_shown < 0.2)
        return false;
    text line = { .a = s->tmp };
    text_printf(&line, "\r%s: %3.0f %%", p->what, 100 * done);
    if (done > 0)
        text_printf(&line, ", %.0f s left ", (t - p->begin) * (1 - done) / done);
    session_steer(s, &line);
    p->last_shown = t;
    p->shown = true;
    return false;
}

static run *run_new(session *s, const ast *e, const built *of, const backend *b)
{
    vec_reserve(s->a, &s->runs, s->runs.n + 1);
    arena *own = session_arena(s); /* until it is in the list, the session gives it back */
    run *r = arena_make(own, run);
    *r = (run){ .name = e->name, .of = of, .with = b, .chosen = !e->kid[3], .a = own };
    session_arena_pass(s, own);
    *vec_push(s->a, &s->runs) = r;
    return r;
}

void run_drop(session *s, run *r)
{
    if (!r || r->kept || r->named || r->held)
        return;
    for (size_t k = 0; k < s->runs.n; k++)
        if (s->runs.at[k] == r)
            s->runs.at[k] = s->runs.at[--s->runs.n];
    if (s->last == r)
        s->last = NULL;
    results_close(r->r);
    arena_free(r->a); /* it lies there itself */
}

static void run_make_named(session *s, const ast *e, run *r)
{
    if (!e->name)
        return;
    def *d = module_define(&s->loaded, s->main, DEF_RUN, e->name, e, e->name_at);
    d->v = (value){ .kind = V_OBJECT };
    d->v.object.in = r->top;
    d->v.object.of = r;
    r->named = true;
}

typedef struct {
    run *r;
    const run_options *o;
} running;

static void backend_go(session *s, void *ud)
{
    running *x = ud;
    results *r = x->r->r;
    (void)s;
    x->r->with->run(x->r->of->p, x->o, r);
    gate_check(r, x->o);
    estimate_error(x->r->with, x->o, r);
}

/* the budget ended the run within a step: samples of a motion stay, what else was half made is not used */
static void run_cut(session *s, run *r)
{
    results *x = r->r;
    const program *p = r->of->p;
    bool motion = x->samples > 0 && !p->field && !p->rod && !p->has_inclusion.file;
    s->budget.held++;
    x->message = arena_strdup(r->a, spent_text(s));
    x->where = SPAN_NONE;
    x->status = s->budget.why == SPENT_MEMORY ? RUN_FAILED : RUN_INTERRUPTED;
    x->dense = NULL;
    later_audit(x);
    if (motion)
        x->t_end = x->t[x->samples - 1];
    r->cut = !motion;
    s->budget.held--;
    s->budget.why = SPENT_NOTHING;
}

enum { RUN_GRACE_MS = 250 }; /* for a step in progress */

/* "10", "10s" or "t=0.5" */
bool checkpoint_every(const char *given, double *seconds, double *time)
{
    bool of_run = !strncmp(given, "t=", 2);
    char *end;
    *seconds = *time = 0;
    if (!*given)
        return true;
    double x = strtod(given + (of_run ? 2 : 0), &end);
    *(of_run ? time : seconds) = x;
    return x > 0 && isfinite(x) && (!*end || (!of_run && !strcmp(end, "s")));
}

/* Runs before the one that the file is of are done again and write nothing over it.  False: reported. */
static bool checkpoint_for(session *s, const ast *e, const backend *b, const program *p, checkpoint *k)
{
    const char *to = s->option[OPTION_CHECKPOINT], *from = s->option[OPTION_FROM];
    if (*from && !s->from_run) {
        const char *why = checkpoint_run(s->tmp, from, &s->from_run);
        if (why) {
            diag_error(s->d, DIAG_IO, e->at, "%s", why);
            return false;
        }
    }
    *k = (checkpoint){ .run = ++s->run_number, .version = cdl_version() };
    if (*from && k->run == s->from_run)
        k->from = from;
    if (*to && k->run >= s->from_run)
        k->to = to;
    checkpoint_every(s->option[OPTION_CHECKPOINT_EVERY], &k->seconds, &k->time);
    if ((!k->to && !k->from) || (b->saves && b->saves(p)))
        return true;
    diag_error(s->d, DIAG_NOT_SUPPORTED, e->kid[3] ? e->kid[3]->at : e->at,
               "the state of this run cannot be saved with %s()", b->name);
    return false;
}

static void run_go(session *s, run *r, run_options *o)
{
    progress p = { .s = s, .r = r->r, .what = r->of->p->model, .begin = clock_seconds() };
    running x = { r, o };
    o->progress = progress_tell;
    o->ud = &p;
    o->keep_going = session_is(s, OPTION_KEEP_GOING);
    s->budget.grace = RUN_GRACE_MS * MILLISECOND;
    if (!session_try(s, backend_go, &x))
        run_cut(s, r);
    s->budget.grace = 0;
    if (s->budget.stopping)
        budget_wind_up(&s->budget);
    r->r->seconds = clock_seconds() - p.begin;
    if (!p.shown)
        return;
    text line = { .a = s->tmp };
    text_puts(&line, "\r\033[K");
    session_steer(s, &line);
}

/* how far a family was overrun at the samples */
static double deepest(const results *r, size_t c, scan *rest)
{
    enum { MANY = 4096 };
    const contact_result *x = &r->contact[c];
    const contact_family *f = &r->prog->contact[c];
    double worst = 0;
    if (f->relation == REL_CLOSED || f->of_rates || !x->gap)
        return 0;
    for (int64_t k = 0, all = r->samples * x->members; k < all;) {
        int64_t from = k, end = all - k < MANY ? all : k + MANY;
        for (; k < end; k++) {
            double depth = f->relation == REL_BILATERAL ? fabs(x->gap[k]) : -x->gap[k];
            if (depth > worst)
                worst = depth;
        }
        scan_pass(rest, (end - from) * (int64_t)sizeof worst);
    }
    return worst;
}

enum { SUMMARY_CONTACTS = 6 };

static void summary_contacts(session *s, const results *r, text *t)
{
    scan rest = { .s = s };
    size_t n = r->prog->ncontact, wide = 0;
    for (size_t c = 0; c < n && c < SUMMARY_CONTACTS; c++) {
        size_t len = strlen(r->prog->contact[c].name);
        if (len > wide)
            wide = len;
    }
    for (size_t c = 0; c < n && c < SUMMARY_CONTACTS; c++) {
        const contact_result *x = &r->contact[c];
        text_printf(t, "  %-*s  %zu impact%s, penetration %.3g", (int)wide, r->prog->contact[c].name,
                    x->impacts.n, x->impacts.n == 1 ? "" : "s", deepest(r, c, &rest));
        if (x->members != 1)
            text_printf(t, " (%lld members)", (long long)x->members);
        text_putc(t, '\n');
    }
    if (n > SUMMARY_CONTACTS)
        text_printf(t, "  and %zu more constraints\n", n - SUMMARY_CONTACTS);
}

static void summary(session *s, const run *r)
{
    static const char *const endings[] = { "", ", stopped by an event", ", interrupted", ", failed" };
    const results *x = r->r;
    text t = { .a = s->tmp };
    if (session_is(s, OPTION_JSON) || session_is(s, OPTION_QUIET) || s->now.experiment)
        return;
    if (x->field) {
        field_summary(r, &t);
        session_out(s, &t);
        return;
    }
    text_printf(&t, "%s: %s%s, %lld step%s to t = ", x->prog->model, r->with->name,
                r->chosen ? " (chosen)" : "", (long long)x->count.steps, x->count.steps == 1 ? "" : "s");
    text_printf(&t, "%.10g%s, %.3g s\n", x->t_end, endings[x->status], x->seconds);
    if (x->count.default_h > 0)
        text_printf(&t, "  h = %.6g (default)\n", x->count.default_h);
    summary_contacts(s, x, &t);
    text_printf(&t, "  max penetration %.3g, residual %.3g", x->max_penetration, x->residual);
    if (x->solver)
        text_printf(&t, " (%s)", x->solver);
    text_putc(&t, '\n');
    if (results_have_energy(x) && x->dissipated)
        text_printf(&t, "  energy %.6g to %.6g, dissipated %.6g, drift %.3g, balance %.3g\n",
                    results_energy(x, 0), results_energy(x, x->samples - 1), x->dissipated[x->samples - 1],
                    results_drift(x), x->power_balance);
    if (!isnan(x->count.cut_off))
        text_printf(&t, "  series truncated at %.2g of the motion, all steps together\n", x->count.cut_off);
    if (!isnan(x->estimate.error))
        text_printf(&t, "  error, estimated from another run: %.2g\n", x->estimate.error);
    if (x->count.at_once)
        text_printf(&t, "  %lld whole step%s, not cut at every impact (cut = %s)\n",
                    (long long)x->count.at_once, x->count.at_once == 1 ? "" : "s", x->cut);
    if (x->count.partly_at_once)
        text_printf(&t, "  in %lld of them islands with few impacts were cut at every impact\n",
                    (long long)x->count.partly_at_once);
    if (x->count.native)
        text_printf(&t, "  %lld plain steps by native code (%s)\n", (long long)x->count.plain,
                    strcmp(x->count.native, "cache") ? "compiled now" : "from the cache");
    if (x->count.branch_choices)
        text_printf(&t, "  %lld step%s had several solutions\n", (long long)x->count.branch_choices,
                    x->count.branch_choices == 1 ? "" : "s");
    if (x->count.unchecked)
        text_printf(&t, "  not checked: %s\n", x->count.unchecked);
    if (x->count.averaged)
        text_printf(&t, "  %lld accelerations are means over a step\n", (long long)x->count.averaged);
    session_out(s, &t);
}

static const char *params_json(session *s, const run *r)
{
    const program *p = r->of->p;
    text t = { .a = s->keep };
    text_puts(&t, "");
    for (size_t k = 0; k < p->nparam_info; k++) {
        const param_info *x = &p->param[k];
        if (x->at < 0 || x->size > 64)
            continue;
        if (t.n)
            text_putc(&t, ',');
        text_json_str(&t, x->name, strlen(x->name));
        text_puts(&t, x->size == 1 ? ":" : ":[");
        for (int32_t i = 0; i < x->size; i++) {
            if (i)
                text_putc(&t, ',');
            text_json_num(&t, r->r->param[x->at + i]);
        }
        if (x->size != 1)
            text_putc(&t, ']');
    }
    return t.at;
}

static void run_record(session *s, const run *r)
{
    s->rec.ir = r->of->p->hash;
    s->rec.params = params_json(s, r);
    manifest_program(s, r->of->p);
    record *rec = &s->rec;
    rec->open = true;
    rec->model = r->of->p->model;
    rec->backend = r->with->name;
    rec->seconds += r->r->seconds;
    rec->steps += r->r->count.steps;
    rec->max_penetration = fmax(rec->max_penetration, r->r->max_penetration);
    rec->residual = fmax(rec->residual, r->r->residual);
    rec->solver = r->r->solver ? arena_strdup(s->keep, r->r->solver) : NULL;
    rec->cut = r->r->cut;
    rec->native = r->r->count.native;
    rec->at_once += r->r->count.at_once;
    rec->partly_at_once += r->r->count.partly_at_once;
    if (!isnan(r->r->estimate.error))
        rec->error = fmax(rec->error, r->r->estimate.error);
    rec->power_balance = fmax(rec->power_balance, r->r->power_balance);
    double drift = results_drift(r->r);
    if (fabs(drift) > fabs(rec->drift))
        rec->drift = drift;
}

static void run_ended(session *s, const ast *e, run *r)
{
    const results *x = r->r;
    s->last_failed = x->status == RUN_FAILED;
    if (x->note)
        session_note(s, "%s", x->note);
    if (x->disk.io) {
        s->rec.failed = true;
        diag_error(s->d, DIAG_IO, e->at, "%s", x->disk.io);
    } else if (x->status == RUN_FAILED) {
        s->rec.failed = true;
        diag *d = diag_error(s->d, DIAG_SOLVER, x->where.file ? x->where : e->at, "%s",
                             x->message ? x->message : "the run failed");
        if (x->where.file)
            diag_second(s->d, d, e->at, "in this run");
    }
    if (x->disk.full) {
        diag *d = diag_error(s->d, DIAG_IO, e->at,
                             "no more samples could be kept: %s; those up to t = %g are available",
                             error_text(s->tmp, x->disk.full), x->t_end);
        diag_hint(s->d, d,
                  "keep fewer of them with the option every of the backend, or let $TMPDIR name a folder "
                  "with more room");
        s->rec.failed = s->rec.incomplete = true;
    }
    if (x->status != RUN_INTERRUPTED || x->disk.full)
        return;
    s->interrupted = true;
    s->rec.failed = s->rec.incomplete = true;
    session_worse(s, CDL_SOLVER);
    const char *kept = r->cut
                           ? "it gave no results"
                           : arena_printf(s->tmp, "t = %g was reached; partial results are kept", x->t_end);
    if (s->budget.stopping == SPENT_TIME)
        diag_error(s->d, DIAG_SOLVER, e->at, "the run exceeds the time limit of --time (%g s): %s",
                   s->budget.time, kept);
    else if (r->cut)
        session_note(s, "interrupted: the run gave no results");
    else
        session_note(s, "interrupted at t = %g; partial results are kept", x->t_end);
    if (*s->option[OPTION_CHECKPOINT] && !s->now.experiment && !x->disk.io && !r->cut)
        session_note(s, "to continue from there: --from %s", s->option[OPTION_CHECKPOINT]);
}

bool run_duration(session *s, const ast *e, const program *p, bool dry, double *out)
{
    *out = NAN;
    if (dry && e->kid[2] && !is_literal(e->kid[2]))
        return true;
    if (!e->kid[2]) {
        if (p->has_field.file || (p->rod && !rod_moves(p->rod)))
            return true;
        diag *d = diag_error(s->d, DIAG_SYNTAX, e->at, "this run needs a duration");
        diag_hint(s->d, d, "write run %s for 3", p->model);
        return false;
    }
    value v = eval(&s->ev, session_input_scope(s), e->kid[2]);
    if (v.kind == V_ERROR)
        return false;
    if (v.kind != V_NUM || !v_scalar(&v, out)) {
        diag_error(s->d, DIAG_TYPE, e->kid[2]->at, "the duration must be a number, not %s",
                   v_kind_text(s->tmp, &v));
        return false;
    }
    dim time = dim_none();
    time.e[2] = DIM_ONE;
    if (!eval_same_unit(&s->ev, v.num.unit, time, "the duration of a run is a time", e->kid[2]->at))
        return false;
    if (*out >= 0 && isfinite(*out))
        return true;
    diag_error(s->d, DIAG_OPTION_VALUE, e->kid[2]->at, "a run cannot last %s", num_text(s->tmp, *out));
    return false;
}

/* steps are counted one by one, and a time is a multiple of them: beyond 2^53 neighbours cannot be
 * distinguished */
static bool steps_countable(session *s, const ast *e, const backend *b, const run_options *o)
{
    for (int k = 0; b && k < b->noption; k++) {
        double h = o->value[k];
        if (strcmp(b->option[k].name, "h") || !(h > 0) || !(o->duration / h > WHOLE_MAX))
            continue;
        diag *d = diag_error(s->d, DIAG_OPTION_VALUE, e->kid[2] ? e->kid[2]->at : e->at,
                             "this run would have %.3g steps of %g, which is too many", o->duration / h, h);
        diag_hint(s->d, d, "shorten the run, or increase the step h");
        return false;
    }
    return true;
}

/* all that must be known before it starts; NULL after a report */
static const built *run_prepare(session *s, const ast *e, const model_request *want, arguments *args,
                                const backend **b, run_options *o)
{
    scope *outer = &s->main->base;
    size_t errors = s->d->errors;
    const ast *decl = session_model(s, e->kid[0], &outer);
    if (!decl || !arguments_read(s, decl, e->kid[1], args))
        return NULL;
    for (size_t k = 0; want && k < want->ninput; k++)
        if (!is_param_of(decl, sym_str(s->names, want->input[k]))) {
            near n = near_to(want->input[k]);
            diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, e->kid[0]->at, "model '%s' has no parameter '%s'",
                                 e->kid[0]->name, want->input[k]);
            near_params(decl, &n);
            diag_near(s->d, d, &n);
            return NULL;
        }
    const built *of = build_for(s, decl, outer, args, want);
    if (of && want && !inputs_allowed(s, of->m, want->input, want->ninput))
        return NULL;
    if (!of || !run_duration(s, e, of->p, false, &o->duration))
        return NULL;
    double duration = o->duration;
    *b = NULL;
    if (e->kid[3] && !run_options_read(s, e->kid[3], b, o))
        return NULL;
    o->duration = duration;
    const char *why = *b && estimate_wanted(*b, o) ? estimate_refused(of->p) : NULL;
    if (why)
        diag_error(s->d, DIAG_NOT_SUPPORTED, e->kid[3]->at, "%s", why);
    run_check_backend(s, e, of, *b, true);
    if (s->d->errors != errors)
        return NULL;
    if (!*b) {
        *b = backend_choose(of->p);
        for (int k = 0; k < (*b)->noption; k++)
            o->value[k] = (*b)->option[k].value;
    }
    return steps_countable(s, e, *b, o) ? of : NULL;
}

/* ---- a run as C ---- */
typedef struct {
    run *r;
    const run_options *o;
    emitted_run *to;
} emitting;

static void emit_go(session *s, void *ud)
{
    emitting *x = ud;
    (void)s;
    sweeping_emit(x->r->of->p, x->o, x->r->r, x->to);
}

static void emit_refuse(session *s, const ast *e, span at, const char *why)
{
    diag *d = diag_error(s->d, DIAG_NOT_SUPPORTED, at.file ? at : e->at,
                         "this run cannot be written as C: %s", why);
    if (at.file)
        diag_second(s->d, d, e->at, "the run");
}

typedef vec(const char *) name_list;
/* names with commas between them */
static name_list names_of(session *s, const char *p)
{
    name_list list = { 0 };
    while (*p) {
        size_t n = strcspn(p, ", ");
        if (n)
            *vec_push(s->tmp, &list) = arena_strndup(s->tmp, p, n);
        p += n + (p[n] != 0);
    }
    return list;
}

typedef vec(emitted_input) input_list;
static input_list inputs_of(session *s, const model *m)
{
    input_list list = { 0 };
    const mclass *c = m->classes.at[0];
    for (size_t i = 0; i < c->params.n; i++) {
        const mparam *p = c->params.at[i];
        for (int32_t k = 0; p->input && k < p->size; k++)
            *vec_push(s->tmp, &list) = (emitted_input){ p->offset + k, p->input + 3 * k,
                                                        p->input + 3 * p->size };
    }
    return list;
}

void run_emit(session *s, const ast *e)
{
    arguments args = { 0 };
    name_list input = names_of(s, s->emit.unit ? s->option[OPTION_INPUTS] : "");
    model_request want = { .input = input.at, .ninput = input.n };
    run_options o = { .inputs = input.n > 0 };
    const backend *b;
    const built *of = run_prepare(s, e, &want, &args, &b, &o);
    double *param = of ? arena_array(s->tmp, double, of->p->nparam > 0 ? of->p->nparam : 1) : NULL;
    if (!of || !params_ready(s, of, &args, e->kid[0]->at, param))
        return;
    if (b != backend_find("sweeping")) {
        emit_refuse(s, e, SPAN_NONE, arena_printf(s->tmp, "it is a run of %s(), not of sweeping()", b->name));
        return;
    }
    run *r = run_new(s, e, of, b);
    r->r = results_new(r->a, of->p);
    r->r->backend = b->name;
    if (of->p->nparam > 0)
        memcpy(r->r->param, param, (size_t)of->p->nparam * sizeof *param);
    input_list ins = inputs_of(s, of->m);
    emitted_run to = { .out = { .a = s->tmp }, .unit = s->emit.unit, .input = ins.at, .ninput = ins.n };
    emitting x = { r, &o, &to };
    bool whole = session_try(s, emit_go, &x);
    if (whole && r->r->status == RUN_FAILED)
        emit_refuse(s, e, r->r->where, r->r->message);
    else if (whole && to.why)
        emit_refuse(s, e, to.at, to.why);
    else if (whole && to.unit)
        fmu_write(s, e, r, &o, &to);
    else if (whole)
        session_out(s, &to.out);
    run_drop(s, r);
}

static bool emits(session *s, const ast *e)
{
    if (!s->emit.on || (s->emit.model && s->emit.model != e->kid[0]->name && s->emit.model != e->name))
        return false;
    s->emit.done = true;
    return true;
}

void run_statement(session *s, const ast *e)
{
    if (emits(s, e)) {
        run_emit(s, e);
        return;
    }
    arguments args = { 0 };
    run_options o = { .later = true };
    const backend *b;
    size_t errors = s->d->errors;
    if (!s->now.experiment)
        record_flush(s);
    s->rec.open = true;
    s->rec.model = e->kid[0]->name;
    s->last_failed = true;
    const built *of = run_prepare(s, e, NULL, &args, &b, &o);
    double *param = of ? arena_array(s->tmp, double, of->p->nparam > 0 ? of->p->nparam : 1) : NULL;
    checkpoint save = { 0 };
    if (!of || !params_ready(s, of, &args, e->kid[0]->at, param) ||
        (!s->now.experiment && !checkpoint_for(s, e, b, of->p, &save))) {
        s->rec.failed = true;
        if (s->d->errors == errors)
            session_worse(s, CDL_MODEL); /* reported before */
        return;
    }
    run_drop(s, s->last);
    run *r = run_new(s, e, of, b);
    r->r = results_new(r->a, of->p);
    r->r->backend = b->name;
    r->r->disk.spill_dir = s->option[OPTION_OUTPUT];
    r->r->disk.spill_bytes = whole_clamp(strtod(s->option[OPTION_SPILL], NULL) * 1048576, 0, INT64_MAX);
    if (of->p->nparam > 0)
        memcpy(r->r->param, param, (size_t)of->p->nparam * sizeof *param);
    r->top = results_scope(s, r);
    for (size_t k = 0; !s->now.experiment && k < args.n; k++)
        *vec_push(s->keep, &s->rec.point) = (measured){ args.at[k].name,
                                                        session_copy(s, s->keep, &args.at[k].v) };
    o.checkpoint = save.to || save.from ? &save : NULL;
    problem_files *problems = problems_begin(s, r, &o);
    run_go(s, r, &o);
    problems_end(problems, e);
    s->last = r;
    if (!r->cut)
        run_make_named(s, e, r);
    run_record(s, r);
    run_ended(s, e, r);
    if (r->cut)
        s->last_failed = true;
    else
        summary(s, r);
    if (r->cut && s->last == r)
        run_drop(s, r);
}
