/* session: the public entries, options, text in and out, definitions as values, and the statements one after
   the other. */
#include "session.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/foreign.h"
#include "syntax/parse.h"
#include "lower/wellposed.h"

/* ---- saying ---- */

static const struct {
    const char *name, *value;
} option_rows[] = {
#define CDL_OPTION_ROW(id, name, value, doc) { name, value },
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
};

void session_worse(session *s, cdl_status status)
{
    if (status > s->tally.worst)
        s->tally.worst = status;
    if (status > s->tally.total)
        s->tally.total = status;
}

static cdl_status status_of(diag_code c)
{
    return c == DIAG_IO ? CDL_IO : c == DIAG_SOLVER ? CDL_SOLVER : c == DIAG_MEMORY ? CDL_MEMORY : CDL_MODEL;
}

static void flush_one(session *s, const diag *e)
{
    text t = { .a = s->tmp };
    enum { SAID_MAX = 1000 }; /* of a long run */
    if (s->tally.said.n < SAID_MAX)
        *vec_push(s->a, &s->tally.said) = *e;
    if (e->severity == DIAG_ERROR)
        session_worse(s, status_of(e->code));
    if (!strcmp(s->option[OPTION_DIAGNOSTICS], "json"))
        diag_print_json(s->d, e, &t);
    else
        diag_print(s->d, e, session_is(s, OPTION_COLOUR), &t);
    session_steer(s, &t);
}

/* what such a library was to compute has failed, and this is why */
static void report_missing(session *s)
{
    const char *file = foreign_missing();
    if (!file || s->lacking)
        return;
    s->lacking = true;
    diag_hint(s->d, diag_error(s->d, DIAG_IO, SPAN_NONE, "the library '%s' could not be loaded", file),
              "CDL was built with it; install it again");
}

/* after an interruption runs are skipped; statements that read them are not errors */
static void doubt_runs(session *s)
{
    const ast *file = s->main->file;
    for (uint32_t k = 0; s->interrupted && file && k < file->n; k++)
        if (file->kid[k]->kind == AST_RUN && file->kid[k]->name)
            diag_doubt(s->d, file->kid[k]->name);
}

bool session_flush(session *s)
{
    diags *d = s->d;
    report_missing(s);
    bool good = d->errors == 0;
    diags_sort(d, 0);
    for (size_t k = 0; k < d->list.n; k++)
        flush_one(s, &d->list.at[k]);
    if (!good && d->list.n == 0)
        session_worse(s, CDL_MODEL);
    if (d->list.n >= DIAG_MAX && d->errors > DIAG_MAX && strcmp(s->option[OPTION_DIAGNOSTICS], "json"))
        session_note(s, "the first %d errors are shown", DIAG_MAX);
    d->list.n = 0;
    d->errors = d->warnings = 0;
    diag_doubt_end(d);
    doubt_runs(s);
    return good;
}

const char *num_text(arena *a, double x)
{
    text t = { .a = a };
    text_num(&t, x);
    return t.at;
}

/* ---- definitions as values ---- */

void session_set(session *s, sym name, const value *v)
{
    table_scope_set(s->now.swept ? s->now.swept : s->now.measures, name, session_copy(s, s->a, v));
}

static value copy_num(arena *a, const value *v)
{
    value c = *v;
    if (!v->num.rank)
        return c;
    size_t n = (size_t)v_count(v);
    c.num.d = arena_array(a, double, n ? n : 1);
    if (n)
        memcpy(c.num.d, v->num.d, n * sizeof(double));
    return c;
}

/* a series of a run refers to it; one that was computed is copied */
static value copy_series(session *s, arena *a, const value *v)
{
    value c = *v;
    if (v->series.ops || (s->last && results_own(s->last->r, v->series.y))) {
        if (s->last)
            s->last->kept = true;
        return c;
    }
    size_t n = (size_t)v->series.n;
    double *t = arena_array(a, double, n ? n : 1), *y = arena_array(a, double, n ? n : 1);
    for (size_t k = 0; k < n; k++) {
        t[k] = v->series.t[k];
        y[k] = v->series.y[(int64_t)k * v->series.stride];
    }
    c.series.t = t;
    c.series.y = y;
    c.series.stride = 1;
    return c;
}

static value copy_list(session *s, arena *a, const value *v)
{
    value c = *v;
    c.list.at = arena_array(a, value, v->list.n ? v->list.n : 1);
    for (size_t k = 0; k < v->list.n; k++)
        c.list.at[k] = session_copy(s, a, &v->list.at[k]);
    return c;
}

value session_copy(session *s, arena *a, const value *v)
{
    value c = *v;
    switch (v->kind) {
    case V_NUM:
        return copy_num(a, v);
    case V_SERIES:
        return copy_series(s, a, v);
    case V_LIST:
        return copy_list(s, a, v);
    case V_STRING:
    case V_WORD:
        c.str.at = arena_strndup(a, v->str.at, v->str.len);
        return c;
    case V_RANGE:
        c.range.lo = arena_make(a, value);
        *c.range.lo = *v->range.lo;
        c.range.hi = arena_make(a, value);
        *c.range.hi = *v->range.hi;
        return c;
    case V_OBJECT:
    case V_FN:
        if (s->last && !(v->kind == V_FN && v->fn.built))
            s->last->kept = true;
        return c;
    default:
        return c;
    }
}

static overriding *param_override(session *s, sym name)
{
    for (size_t k = 0; k < s->params.n; k++)
        if (s->params.at[k].name == name)
            return &s->params.at[k];
    return NULL;
}

static bool bound_holds(session *s, const ast *item, const value *v, scope *in)
{
    double x, lo, hi;
    value r = eval(&s->ev, in, item->kid[0]);
    if (r.kind == V_ERROR)
        return false;
    if (r.kind != V_RANGE || !v_scalar(r.range.lo, &lo) || !v_scalar(r.range.hi, &hi) || !v_scalar(v, &x))
        return true;
    if (x >= lo && x <= hi)
        return true;
    diag *e = diag_error(s->d, DIAG_PARAM_BOUND, item->name_at, "'%s' = %s lies outside %s..%s", item->name,
                         num_text(s->tmp, x), num_text(s->tmp, lo), num_text(s->tmp, hi));
    (void)e;
    return false;
}

static value param_value(session *s, const def *d, scope *in)
{
    const ast *item = d->at;
    overriding *o = d->in == s->main ? param_override(s, d->name) : NULL;
    value v;
    if (o)
        v = o->v;
    else if (item->kid[1])
        v = eval(&s->ev, in, item->kid[1]);
    else {
        diag *e = diag_error(s->d, DIAG_PARAM_MISSING, item->name_at, "'%s' has no value", item->name);
        diag_hint(s->d, e, "give it one here, or with -p %s=...", item->name);
        return v_error();
    }
    if (v.kind != V_ERROR && item->kid[0] && !bound_holds(s, item, &v, in))
        return v_error();
    return v;
}

/* a let or a param, computed when it is first needed */
static void def_force(session *s, def *d)
{
    scope *in = d->in == s->main ? session_scope(s) : &d->in->base;
    evaluator was = s->ev;
    s->ev.a = s->tmp;
    s->ev.depth = 0;
    d->state = DEF_BUSY;
    value v = d->kind == DEF_PARAM ? param_value(s, d, in) : eval(&s->ev, in, d->at->kid[0]);
    d->v = session_copy(s, s->a, &v);
    d->state = DEF_READY;
    s->ev = was;
}

static look def_value(session *s, def *d, span at, value *out)
{
    *out = (value){ .kind = V_OBJECT };
    switch (d->kind) {
    case DEF_MODEL:
        *out = (value){ .kind = V_MODEL };
        out->fn.fn = d->at;
        out->fn.in = &d->in->base;
        return LOOK_YES;
    case DEF_MODULE:
        out->object.in = &d->used->base;
        out->object.of = d;
        return LOOK_YES;
    case DEF_FN:
        *out = (value){ .kind = V_FN };
        out->fn.fn = d->at;
        out->fn.in = &d->in->base;
        return LOOK_YES;
    case DEF_RUN:
        *out = d->v;
        return LOOK_YES;
    case DEF_LET:
    case DEF_PARAM:
        break;
    }
    if (d->state == DEF_BUSY && s->ev.callee)
        return LOOK_NO; /* let max = max(1, 2) */
    if (d->state == DEF_BUSY) {
        diag *e = diag_error(s->d, DIAG_CYCLE, at, "'%s' is defined in terms of itself", d->name);
        diag_second(s->d, e, d->at->name_at, "its definition");
        return LOOK_ERROR;
    }
    if (d->state == DEF_FRESH)
        def_force(s, d);
    *out = d->v;
    return out->kind == V_ERROR ? LOOK_ERROR : LOOK_YES;
}

static look defs_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    (void)ev;
    def *d = module_find((module *)sc, name);
    return d ? def_value(sc->of, d, at, out) : LOOK_NO;
}

const builtin *const session_builtins[] = { result_builtins, output_builtins, NULL };

static const builtin *builtin_in(const builtin *const *list, const char *name)
{
    for (; *list; list++)
        for (const builtin *b = *list; b->name; b++)
            if (!strcmp(b->name, name))
                return b;
    return NULL;
}

static look builtins_find(scope *sc, evaluator *ev, sym name, span at, value *out)
{
    (void)sc;
    const builtin *b = builtin_in(session_builtins, name);
    if (!b || (ev->model && builtin_find(name)))
        return LOOK_NO; /* min and max have a form for models */
    if (ev->model) {
        diag *e = diag_error(ev->d, DIAG_TYPE, at, "'%s' is not available inside a model", name);
        if (strncmp(name, "random", 6))
            diag_hint(ev->d, e, "it works on results: use it after a run");
        else
            diag_hint(ev->d, e, "give the model a parameter: run m(p = %s())", name);
        return LOOK_ERROR;
    }
    *out = (value){ .kind = V_FN };
    out->fn.built = b;
    return LOOK_YES;
}

static void builtins_names(scope *sc, near *n)
{
    (void)sc;
    for (const builtin *const *list = session_builtins; *list; list++)
        for (const builtin *b = *list; b->name; b++)
            near_try(n, b->name);
}

/* ---- models by name ---- */

static void near_models(near *n, const module *m)
{
    for (size_t k = 0; k < m->order.n; k++)
        if (m->order.at[k]->kind == DEF_MODEL)
            near_try(n, m->order.at[k]->name);
    for (size_t k = 0; k < m->open.n; k++)
        near_models(n, m->open.at[k]);
}

static const ast *no_model(session *s, const ast *name, const module *in, const def *d)
{
    if (d)
        diag_error(s->d, DIAG_TYPE, name->at, "'%s' is not a model", name->name);
    else if (!diag_doubtful(s->d, name->name)) {
        near n = near_to(name->name);
        near_models(&n, in);
        diag *e = diag_error(s->d, DIAG_UNKNOWN_NAME, name->kind == AST_MEMBER ? name->name_at : name->at,
                             "unknown model '%s'", name->name);
        diag_near(s->d, e, &n);
    }
    return NULL;
}

/* the module that the part before the dot names */
static const module *path_module(session *s, const ast *e)
{
    const module *in = s->main;
    if (e->kind == AST_MEMBER)
        in = path_module(s, e->kid[0]);
    if (!in)
        return NULL;
    def *d = e->kind == AST_NAME || e->kind == AST_MEMBER ? module_find(in, e->name) : NULL;
    if (d && d->kind == DEF_MODULE)
        return d->used;
    if (e->name && !diag_doubtful(s->d, e->name))
        diag_error(s->d, DIAG_UNKNOWN_NAME, e->at, "nothing named '%s' was imported with use", e->name);
    return NULL;
}

const ast *session_model(session *s, const ast *name, scope **outer)
{
    const module *in = name->kind == AST_MEMBER ? path_module(s, name->kid[0]) : s->main;
    if (!in || !name->name)
        return NULL;
    def *d = module_find(in, name->name);
    if (!d || d->kind != DEF_MODEL)
        return no_model(s, name, in, d);
    if (outer)
        *outer = &d->in->base;
    return d->at;
}

/* ---- statements ---- */

static void let_statement(session *s, const ast *e)
{
    for (uint32_t k = 0; k < e->kid[0]->n; k++) {
        const ast *b = e->kid[0]->kid[k];
        def *d = module_find(s->main, b->name);
        s->now.draw_name = b->name;
        s->now.drawn = 0;
        if (s->now.experiment) {
            value v = session_eval(s, b->kid[0]);
            session_set(s, b->name, &v);
        } else if (d && d->at == b && d->state == DEF_FRESH)
            def_force(s, d);
    }
}

static void expr_statement(session *s, const ast *e)
{
    value v = session_eval(s, e->kid[0]);
    text t = { .a = s->tmp };
    if (v.kind == V_ERROR)
        return;
    value_show(s, &t, &v);
    text_putc(&t, '\n');
    if (session_is(s, OPTION_INTERACTIVE))
        impacts_show(s, &t, &v);
    /* with JSON, objects alone go to out */
    if (session_is(s, OPTION_JSON))
        session_err(s, &t);
    else
        session_out(s, &t);
}

void session_misplaced_in(session *s, const ast *e, const char *hint)
{
    diag *d = diag_error(s->d, DIAG_UNKNOWN_STATEMENT, e->at, "this statement is not allowed here");
    diag_hint(s->d, d, "%s", hint);
}

void session_misplaced(session *s, const ast *e)
{
    session_misplaced_in(
        s, e,
        e->kind == AST_SWEEP ? "a sweep belongs inside an experiment: experiment name { sweep …; run … }"
        : e->kind == AST_SET && e->kid[0]->kind == AST_CALL ? "a function is fn f(x) = x^2"
        : e->kind == AST_SET ? "an equation belongs inside a model; a name is given a value with let"
        : e->kind == AST_FOR ? "to repeat runs, write experiment name { sweep i in 1..3; run … }"
                             : "it belongs inside a model");
}

static bool reads_results(const ast *e)
{
    return e->kind == AST_MEASURE || e->kind == AST_EXPECT || e->kind == AST_PLOT || e->kind == AST_SAVE;
}

/* statements that depend on a run without results are skipped; after an interruption partial results are
 * still written */
static bool skipped(session *s, const ast *e)
{
    if (s->emit.on && (s->emit.done || reads_results(e) || e->kind == AST_EXPERIMENT || e->kind == AST_EXPR))
        return true;
    if (s->abandoned) {
        s->tally.skipped += e->kind == AST_EXPECT;
        return true;
    }
    bool skip = s->last_failed && (reads_results(e) || (!session_is(s, OPTION_INTERACTIVE) &&
                                                        (e->kind == AST_LET || e->kind == AST_EXPR)));
    if (s->interrupted && (e->kind == AST_EXPECT || e->kind == AST_RUN || e->kind == AST_EXPERIMENT))
        skip = true;
    if (skip && e->kind == AST_EXPECT)
        s->tally.skipped++;
    return skip;
}

static void statement(session *s, const ast *e)
{
    if (s->now.draw_name && *s->now.draw_name) {
        s->now.draw_name = "";
        s->now.drawn = 0;
    }
    s->ev.fuel = EVAL_FUEL;
    switch (e->kind) {
    case AST_USE:
    case AST_MODEL:
    case AST_FN:
    case AST_ERROR:
        break;
    case AST_LET:
    case AST_PARAM:
        let_statement(s, e);
        break;
    case AST_RUN:
        run_statement(s, e);
        break;
    case AST_MEASURE:
        measure_statement(s, e);
        break;
    case AST_EXPECT:
        expect_statement(s, e);
        break;
    case AST_PLOT:
        plot_statement(s, e);
        break;
    case AST_SAVE:
        save_statement(s, e);
        break;
    case AST_EXPERIMENT:
        experiment_statement(s, e);
        break;
    case AST_EXPR:
        expr_statement(s, e);
        break;
    default:
        session_misplaced(s, e);
        break;
    }
}

/* ---- the end of the budget ---- */

static void files_drop(session *s)
{
    for (table *t = s->tables; t; t = t->next) {
        if (t->file)
            outfile_abort(t->file);
        spool_close(t->rows_at);
    }
    s->tables = NULL;
    outfiles_abort(&s->budget, NULL);
}

typedef struct loose {
    arena *a;
    struct loose *next;
} loose;

void session_arena_free(session *s, arena *a)
{
    for (loose **at = &s->loose; *at; at = &(*at)->next)
        if ((*at)->a == a) {
            *at = (*at)->next;
            arena_free(a);
            return;
        }
}

void session_arena_pass(session *s, arena *a)
{
    for (loose **at = &s->loose; *at; at = &(*at)->next)
        if ((*at)->a == a) {
            *at = (*at)->next;
            return;
        }
}

/* those that were made since */
static void loose_free(session *s, loose *since)
{
    arena_free(s->arriving);
    s->arriving = NULL;
    while (s->loose && s->loose != since)
        session_arena_free(s, s->loose->a);
}

static const char *bytes_text(session *s, int64_t n)
{
    static const char *const unit[] = { "bytes", "kB", "MB", "GB", "TB" };
    double x = (double)n;
    int k = 0;
    for (; x >= 1024 && k < 4; k++)
        x /= 1024;
    return arena_printf(s->tmp, "%.4g %s", x, unit[k]);
}

const char *spent_text(session *s)
{
    const budget *b = &s->budget;
    switch (b->why) {
    case SPENT_TIME:
        return arena_printf(s->tmp, "this exceeds the time limit of --time (%g s)", b->time);
    case SPENT_MEMORY:
        return arena_printf(s->tmp, "this exceeds the memory limit of --memory (%s)",
                            bytes_text(s, b->memory));
    case SPENT_DISK:
        return arena_printf(s->tmp, "this exceeds the disk limit of --disk (%s)", bytes_text(s, b->disk));
    case SPENT_INTERRUPTED:
    case SPENT_NOTHING:
        break;
    }
    return "interrupted";
}

static void execute(session *s, void *ud)
{
    statement(s, ud);
    session_flush(s);
    if (!s->now.experiment)
        tables_finish(s);
}

/* cleans up after a jump: definitions that were being computed, files that were being read */
static void definitions_reset(session *s)
{
    for (size_t k = 0; k < s->loaded.all.n; k++) {
        module *m = s->loaded.all.at[k];
        for (size_t i = 0; i < m->order.n; i++)
            if (m->order.at[i]->state == DEF_BUSY)
                m->order.at[i]->state = DEF_FRESH;
        if (m->state != MODULE_LOADING)
            continue;
        m->state = MODULE_BAD;
        if (m != s->main)
            m->path = "<interrupted>"; /* the next use reads it again */
    }
}

bool session_try(session *s, void (*go)(session *s, void *ud), void *ud)
{
    jmp_buf outer;
    evaluator ev = s->ev;
    struct loose *made = s->loose;
    const outfile *writing = s->budget.writing;
    memcpy(&outer, &s->oom, sizeof outer);
    bool whole = !setjmp(s->oom);
    if (whole)
        go(s, ud);
    memcpy(&s->oom, &outer, sizeof outer);
    if (whole)
        return true;
    if (s->budget.why == SPENT_NOTHING)
        longjmp(s->oom, 1);
    s->ev = ev;
    outfiles_abort(&s->budget, writing);
    loose_free(s, made);
    definitions_reset(s);
    return false;
}

/* the budget ended a statement, or the reading of a text: where it was, and why */
static void spent_report(session *s, span at)
{
    budget *b = &s->budget;
    b->held++;
    if (b->why == SPENT_INTERRUPTED) {
        if (!s->interrupted)
            session_note(s, "interrupted");
        session_worse(s, CDL_SOLVER);
    } else if (!s->abandoned) {
        /* a point that exceeds the budget fails, and the others continue */
        bool point = s->now.experiment && b->why == SPENT_MEMORY;
        diag_code code = b->why == SPENT_DISK ? DIAG_IO : point ? DIAG_SOLVER : DIAG_LIMIT;
        diag *d = diag_error(s->d, code, b->at.file ? b->at : at, "%s", spent_text(s));
        if (b->at.file && at.file && (at.file != b->at.file || at.begin != b->at.begin))
            diag_second(s->d, d, at, "in this statement");
    }
    session_flush(s);
    s->abandoned = s->abandoned || b->why == SPENT_INTERRUPTED || b->why == SPENT_TIME;
    s->interrupted = s->abandoned;
    s->rec.failed = true;
    s->rec.incomplete = s->abandoned;
    b->why = SPENT_NOTHING;
    b->held--;
    budget_wind_up(b);
}

void session_execute(session *s, const ast *e)
{
    if (skipped(s, e))
        return;
    const ast *experiment = s->now.experiment;
    s->budget.at = SPAN_NONE;
    if (session_try(s, execute, (void *)(uintptr_t)e))
        return;
    if (!experiment) {
        points_abandon(s);
        files_drop(s);
        s->now.experiment = NULL;
        s->now.swept = NULL;
        s->now.report = NULL;
        s->now.worker = false;
    }
    spent_report(s, e->at);
    arena_trim(s->tmp);
}

static void execute_all(session *s, const ast *file)
{
    for (uint32_t k = 0; k < file->n; k++) {
        arena_pos mark = arena_mark(s->tmp);
        session_execute(s, file->kid[k]);
        session_flush(s);
        arena_release(s->tmp, mark);
    }
}

/* ---- the life of a session ---- */

const char *cdl_status_text(cdl_status st)
{
    switch (st) {
#define CDL_STATUS_ROW(name, number, text) \
    case CDL_##name:                       \
        return text;
        CDL_STATUS_LIST(CDL_STATUS_ROW)
#undef CDL_STATUS_ROW
    case CDL_STATUS_MAX:
        break;
    }
    return "unknown status";
}

int cdl_exit_code(cdl_status st)
{
    return st == CDL_MEMORY ? CDL_IO : (int)st;
}

static void definition_replaced(void *ud, def *old)
{
    session *s = ud;
    /* models that were compiled may have used it */
    if (old->kind != DEF_RUN) {
        s->generation++;
        return;
    }
    run *r = old->v.object.of;
    r->named = false;
    if (r != s->last)
        run_drop(s, r);
}

static void session_start(session *s)
{
    s->names = symtab_new(s->a);
    s->d = diags_new(s->a);
    for (int k = 0; k < OPTION_COUNT; k++)
        s->option[k] = option_rows[k].value;
    s->ev = (evaluator){ .a = s->tmp, .names = s->names, .d = s->d, .fuel = EVAL_FUEL, .of = s };
    evaluator lasting = s->ev;
    lasting.a = s->a;
    s->builtins = (scope){
        .up = eval_root_scope(&lasting), .find = builtins_find, .names = builtins_names, .of = s
    };
    s->loaded = (modules){ .a = s->a,
                           .names = s->names,
                           .d = s->d,
                           .outer = &s->builtins,
                           .find = defs_find,
                           .shadow = definition_replaced,
                           .ud = s };
    s->now.measures = table_scope_new(s->a, NULL);
    s->built.a = s->a;
    s->main = module_new(&s->loaded, "<text>");
}

cdl *cdl_new(const cdl_allocator *al)
{
    allocator use = al ? (allocator){ al->grow, al->ud, NULL } : allocator_libc;
    session *s = use.grow(use.ud, NULL, sizeof *s);
    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->al = use;
    s->al.budget = &s->budget;
    s->budget = (budget){ .time = INFINITY,
                          .memory = budget_default_memory(),
                          .disk = INT64_C(64) << 30,
                          .begin = clock_seconds() };
    if (setjmp(s->oom)) {
        cdl_free(s);
        return NULL;
    }
    arena **all[] = { &s->a, &s->tmp, &s->answer, &s->keep };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (!(*all[k] = arena_new(&s->al, &s->oom))) {
            cdl_free(s);
            return NULL;
        }
    session_start(s);
    return s;
}

arena *session_arena(session *s)
{
    arena *a = arena_new(&s->al, &s->oom);
    if (!a)
        longjmp(s->oom, 1);
    s->arriving = a;
    loose *l = arena_make(a, loose);
    *l = (loose){ a, s->loose };
    s->loose = l;
    s->arriving = NULL;
    return a;
}

static void runs_free(session *s)
{
    while (s->runs.n) {
        run *r = s->runs.at[--s->runs.n];
        results_close(r->r);
        arena_free(r->a);
    }
}

void cdl_free(cdl *s)
{
    if (!s)
        return;
    files_drop(s);
    loose_free(s, NULL);
    runs_free(s);
    arena *all[] = { s->keep, s->answer, s->tmp, s->a };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        arena_free(all[k]);
    allocator al = s->al;
    al.grow(al.ud, s, 0);
}

/* options and parameters move into the new arena of the session */
static void session_move(session *s, arena *to)
{
    const char *option[OPTION_COUNT];
    size_t n = s->params.n;
    overriding *kept = arena_array(to, overriding, n ? n : 1);
    for (int k = 0; k < OPTION_COUNT; k++)
        option[k] = arena_strdup(to, s->option[k]);
    for (size_t k = 0; k < n; k++) {
        kept[k] = s->params.at[k];
        kept[k].name = arena_strdup(to, kept[k].name);
        kept[k].text = arena_strdup(to, kept[k].text);
        kept[k].v = session_copy(s, to, &kept[k].v);
    }
    s->arriving = s->a; /* freed by the code that catches a jump */
    s->a = to;
    session_start(s);
    memcpy(s->option, option, sizeof option);
    s->params.at = kept;
    s->params.n = s->params.cap = n;
    for (size_t k = 0; k < n; k++)
        kept[k].name = sym_str(s->names, kept[k].name);
    s->loaded.stdlib = s->option[OPTION_STDLIB];
    s->loaded.replace = session_is(s, OPTION_INTERACTIVE);
    s->loaded.anywhere = s->main->root.open = session_is(s, OPTION_ALLOW_OUTSIDE);
    arena_free(s->arriving);
    s->arriving = NULL;
}

void session_forget(session *s)
{
    static const arena_pos empty = { NULL, 0 };
    cdl_status total = s->tally.total;
    files_drop(s);
    loose_free(s, NULL);
    runs_free(s);
    s->last = NULL;
    s->symbols = NULL;
    s->embed.nparts = 0;
    arena *to = session_arena(s);
    session_arena_pass(s, to);
    s->runs.at = NULL;
    s->runs.n = s->runs.cap = 0;
    s->embed.experiments.at = NULL;
    s->embed.experiments.n = s->embed.experiments.cap = 0;
    s->built = (map64){ 0 };
    s->rec = (record){ 0 };
    s->tally = (session_tally){ .total = total };
    s->now = (experiment_now){ 0 };
    s->last_failed = false;
    s->run_number = s->from_run = 0;
    session_move(s, to);
    arena_release(s->keep, empty);
    arena_release(s->tmp, empty);
}

/* out of memory: incomplete data stay in their arenas until the session is freed */
cdl_status session_lost(session *s)
{
    if (!s->broken && s->budget.why != SPENT_NOTHING) {
        files_drop(s);
        loose_free(s, NULL);
        definitions_reset(s);
        spent_report(s, SPAN_NONE);
        arena_trim(s->tmp);
        return s->tally.worst;
    }
    static const char message[] = "cdl: error: there is not enough memory\n";
    if (!s->broken && s->call.err)
        s->call.err(s->call.ud, message, sizeof message - 1);
    s->broken = true;
    files_drop(s);
    s->tally.total = CDL_MEMORY;
    return CDL_MEMORY;
}

/* ---- texts that are not kept ---- */

uint32_t session_passing(session *s, const char *name, const char *text_, size_t len)
{
    s->embed.before = s->main->file;
    s->embed.compiled_before = s->compiled;
    return s->embed.passing = diags_add_passing(s->d, s->tmp, name, text_, len);
}

/* models that were compiled for it refer to its places */
static void passing_end(session *s)
{
    if (!s->embed.passing)
        return;
    uint32_t file = s->embed.passing;
    s->embed.passing = 0;
    s->main->file = s->embed.before;
    diags_drop_passing(s->d, file, s->compiled != s->embed.compiled_before);
}

void session_begin(session *s)
{
    static const arena_pos empty = { NULL, 0 };
    passing_end(s);
    s->tally.worst = CDL_OK;
    s->tally.said.n = 0;
    s->interrupted = s->abandoned = s->lacking = false;
    s->budget.seen = 0;
    s->budget.held = 0;
    s->budget.stopping = s->budget.why = SPENT_NOTHING;
    s->budget.grace = 0;
    s->budget.at = SPAN_NONE;
    s->embed.nparts = 0;
    arena_release(s->tmp, empty);
    s->ev.a = s->tmp;
    s->ev.depth = s->ev.nest = 0;
}

/* ---- options ---- */

void cdl_set_callbacks(cdl *s, const cdl_callbacks *c)
{
    s->call = c ? *c : (cdl_callbacks){ 0 };
    s->budget.interrupted = s->call.interrupted;
    s->budget.ud = s->call.ud;
}

void cdl_set_progress(cdl *s, void (*progress)(void *ud, const char *model, double done), void *ud)
{
    s->embed.progress = progress;
    s->embed.progress_ud = ud;
}

void cdl_set_written(cdl *s, void (*written)(void *ud, const char *path, const char *kind), void *ud)
{
    s->embed.written = written;
    s->embed.written_ud = ud;
}

static bool option_fits(int k, const char *value_)
{
    int a, b, n = 0;
    double seconds, time;
    if (k == OPTION_OUTPUT || k == OPTION_STDLIB || k == OPTION_MANIFEST || k == OPTION_SHARDS ||
        k == OPTION_CHECKPOINT || k == OPTION_FROM || k == OPTION_REPORT || k == OPTION_INPUTS)
        return true;
    if (k == OPTION_CHECKPOINT_EVERY)
        return checkpoint_every(value_, &seconds, &time);
    if (k == OPTION_PROBLEMS)
        return problems_named(value_);
    if (k == OPTION_PROBLEMS_EVERY)
        return sscanf(value_, "%d%n", &a, &n) == 1 && !value_[n] && a > 0;
    if (k == OPTION_SPILL || k == OPTION_TIME) {
        char *end;
        return strtod(value_, &end) > 0 && !*end;
    }
    if (k == OPTION_MEMORY || k == OPTION_DISK) {
        int64_t bytes;
        return (k == OPTION_MEMORY && !strcmp(value_, "auto")) || budget_bytes(value_, &bytes);
    }
    if (k == OPTION_JOBS)
        return sscanf(value_, "%d%n", &a, &n) == 1 && !value_[n] && a > 0 && a <= 4096;
    if (k == OPTION_SHARD)
        return !*value_ || (sscanf(value_, "%d/%d%n", &a, &b, &n) == 2 && n && !value_[n] && a > 0 && a <= b);
    if (k == OPTION_DIAGNOSTICS)
        return !strcmp(value_, "text") || !strcmp(value_, "json");
    return !strcmp(value_, "yes") || !strcmp(value_, "no");
}

static void budget_set(session *s, int k, const char *value_)
{
    budget *b = &s->budget;
    if (k == OPTION_TIME) {
        b->time = strtod(value_, NULL);
        b->begin = clock_seconds();
    }
    if (k == OPTION_MEMORY && !budget_bytes(value_, &b->memory))
        b->memory = budget_default_memory();
    if (k == OPTION_DISK)
        budget_bytes(value_, &b->disk);
}

cdl_status cdl_set(cdl *s, const char *option, const char *value_)
{
    ENTER(s);
    for (int k = 0; k < OPTION_COUNT; k++) {
        if (strcmp(option_rows[k].name, option))
            continue;
        if (!option_fits(k, value_))
            return CDL_USAGE;
        s->option[k] = arena_strdup(s->a, value_);
        budget_set(s, k, value_);
        s->loaded.stdlib = s->option[OPTION_STDLIB];
        s->loaded.replace = session_is(s, OPTION_INTERACTIVE);
        s->loaded.anywhere = s->main->root.open = session_is(s, OPTION_ALLOW_OUTSIDE);
        return CDL_OK;
    }
    return CDL_USAGE;
}

/* the one expression that a text holds; NULL after a report */
const ast *read_parsed(session *s, arena *a, uint32_t source_number)
{
    size_t errors = s->d->errors;
    ast *file = parse_source(a, s->names, s->d, source_number);
    if (s->d->errors != errors)
        return NULL;
    if (file->n == 1 && file->kid[0]->kind == AST_EXPR)
        return file->kid[0]->kid[0];
    diag_error(s->d, DIAG_SYNTAX, file->n ? file->kid[file->n - 1]->at : SPAN_NONE,
               "an expression is needed here");
    return NULL;
}

const ast *read_expression(session *s, const char *name, const char *text_)
{
    return read_parsed(s, s->a, diags_add_source(s->d, name, text_, strlen(text_)));
}

cdl_status cdl_set_param(cdl *s, const char *name, const char *value_)
{
    ENTER(s);
    const ast *e = read_expression(s, arena_printf(s->tmp, "<-p %s>", name), value_);
    value v = e ? eval(&s->ev, &s->builtins, e) : v_error();
    if (v.kind != V_ERROR && v.kind != V_NUM)
        diag_error(s->d, DIAG_TYPE, e->at, "a parameter must be a number, not %s", v_kind_text(s->tmp, &v));
    if (!session_flush(s)) {
        s->tally.total = CDL_USAGE;
        return CDL_USAGE;
    }
    sym key = sym_str(s->names, name);
    overriding *o = param_override(s, key);
    if (!o)
        o = vec_push(s->a, &s->params);
    *o = (overriding){ .name = key, .text = arena_strdup(s->a, value_), .v = session_copy(s, s->a, &v) };
    return CDL_OK;
}

/* ---- running and checking ---- */

void session_note_experiments(session *s)
{
    for (uint32_t k = 0; s->main->file && k < s->main->file->n; k++)
        if (s->main->file->kid[k]->kind == AST_EXPERIMENT)
            *vec_push(s->a, &s->embed.experiments) = s->main->file->kid[k];
}

cdl_status session_finish_text(session *s, bool run_it)
{
    if (s->main->file)
        check_module(s, s->main, run_it);
    bool good = session_flush(s);
    if (good && run_it)
        check_params(s);
    if (good && run_it && s->tally.worst < CDL_USAGE)
        execute_all(s, s->main->file);
    return s->tally.worst;
}

static cdl_status take_text(session *s, const char *name, const char *text_, size_t len, bool run_it)
{
    s->main->file = NULL;
    module_read(&s->loaded, s->main, name, text_, len);
    session_note_experiments(s);
    if (run_it)
        manifest_text(s, name, text_, len, false);
    return session_finish_text(s, run_it);
}

static cdl_status take_file(session *s, const char *path, bool run_it)
{
    s->main->file = NULL;
    if (module_read_file(&s->loaded, s->main, path, SPAN_NONE) && run_it && s->main->file) {
        const source *from = s->d->sources.at[s->main->file->at.file];
        manifest_text(s, path, from->text, from->len, true);
    }
    session_note_experiments(s);
    return session_finish_text(s, run_it);
}

cdl_status cdl_load_file(cdl *s, const char *path)
{
    ENTER(s);
    return take_file(s, path, true);
}
cdl_status cdl_check_file(cdl *s, const char *path)
{
    ENTER(s);
    return take_file(s, path, false);
}

cdl_status cdl_emit(cdl *s, const char *what, const char *path, const char *of)
{
    ENTER(s);
    bool unit = !strcmp(what, "fmu");
    if (strcmp(what, "c") && !unit)
        return CDL_USAGE;
    s->emit = (emission){ .on = true, .unit = unit, .model = of ? sym_str(s->names, of) : NULL };
    take_file(s, path, true);
    if (!s->emit.done && s->tally.worst < CDL_USAGE) {
        if (of)
            diag_error(s->d, DIAG_UNKNOWN_NAME, SPAN_NONE,
                       "the file has no run of a model '%s', nor one of that name", of);
        else
            diag_error(s->d, DIAG_UNKNOWN_NAME, SPAN_NONE, "the file has no run statement");
        session_flush(s);
    }
    s->emit = (emission){ 0 };
    return s->tally.worst;
}

cdl_status cdl_run_text(cdl *s, const char *name, const char *text_, size_t len)
{
    ENTER(s);
    return take_text(s, name, text_, len, true);
}
cdl_status cdl_check_text(cdl *s, const char *name, const char *text_, size_t len)
{
    ENTER(s);
    return take_text(s, name, text_, len, false);
}

cdl_status cdl_check_as(cdl *s, const char *path, const char *text_, size_t len)
{
    ENTER(s);
    module_place(&s->loaded, s->main, path);
    return take_text(s, path, text_, len, false);
}

static void tell_expectations(session *s)
{
    size_t n = s->tally.met + s->tally.missed;
    text t = { .a = s->tmp };
    if (n + s->tally.skipped == 0 || session_is(s, OPTION_JSON))
        return;
    text_printf(&t, "%zu expectation%s: %zu met, %zu not met", n, n == 1 ? "" : "s", s->tally.met,
                s->tally.missed);
    if (s->tally.skipped)
        text_printf(&t, ", %zu not tried", s->tally.skipped);
    text_putc(&t, '\n');
    session_out(s, &t);
}

/* a checkpoint that no run used is a mistake of the caller */
static void checkpoint_used(session *s)
{
    const char *from = s->option[OPTION_FROM];
    if (!*from || s->tally.total != CDL_OK || (s->from_run && s->run_number >= s->from_run))
        return;
    session_note(s, "checkpoint '%s' was not used: none of the runs matches it", from);
    s->tally.total = CDL_IO;
}

cdl_status cdl_finish(cdl *s)
{
    ENTER(s);
    s->budget.held++; /* the record is written, however the session ended */
    checkpoint_used(s);
    record_flush(s);
    tell_expectations(s);
    manifest_write(s);
    if (*s->option[OPTION_REPORT] && s->tally.records.n) {
        text manifest = { .a = s->tmp };
        manifest_put(s, &manifest, s->option[OPTION_MANIFEST]);
        page_report(s, &manifest);
        session_flush(s);
    }
    s->tally.met = s->tally.missed = s->tally.skipped = 0;
    cdl_status total = s->tally.total;
    s->tally.total = CDL_OK;
    return total;
}

cdl_status cdl_page_folder(cdl *s, const char *folder, const char *page)
{
    ENTER(s);
    page_folder(s, folder, page);
    session_flush(s);
    return s->tally.worst;
}

/* ---- values for C ---- */

static value outside_value(session *s, const char *expression)
{
    const ast *e = read_expression(s, "<expression>", expression);
    return e ? session_eval(s, e) : v_error();
}

cdl_status cdl_value(cdl *s, const char *expression, double *out)
{
    ENTER(s);
    value v = outside_value(s, expression);
    if (v.kind != V_ERROR && !v_scalar(&v, out))
        diag_error(s->d, DIAG_TYPE, SPAN_NONE, "'%s' is %s, not a number", expression,
                   v_kind_text(s->tmp, &v));
    session_flush(s);
    return s->tally.worst;
}

cdl_status cdl_values(cdl *s, const char *expression, double *out, size_t room, size_t *n)
{
    ENTER(s);
    value v = outside_value(s, expression);
    const double *t, *y;
    int64_t count = 0, stride;
    *n = 0;
    if (v.kind != V_ERROR && !value_samples(s, &v, &t, &y, &count, &stride))
        diag_error(s->d, DIAG_TYPE, SPAN_NONE, "'%s' is %s, not numbers", expression,
                   v_kind_text(s->tmp, &v));
    if (session_flush(s)) {
        *n = (size_t)count;
        for (size_t k = 0; k < *n && k < room; k++)
            out[k] = y[(int64_t)k * stride];
    }
    return s->tally.worst;
}

/* ---- show and fmt ---- */

static void show_model(session *s, const ast *decl, void (*dump)(text *, const model *), text *t)
{
    const built *b = session_build(s, decl, &s->main->base, NULL, 0);
    if (!b || !b->m)
        return;
    if (t->n)
        text_putc(t, '\n');
    dump(t, b->m);
}

static cdl_status show_main(session *s, const char *what)
{
    static const struct {
        const char *name;
        void (*dump)(text *, const model *);
    } stages[] = { { "model", model_dump },
                   { "ir", model_dump_ir },
                   { "jacobian", model_dump_jacobian },
                   { "equations", model_dump_equations } };
    text t = { .a = s->tmp };
    bool known = !strcmp(what, "ast");
    if (s->main->state == MODULE_READY && known)
        ast_dump(s->d, s->main->file, true, &t);
    for (size_t k = 0; k < sizeof stages / sizeof *stages; k++) {
        if (strcmp(stages[k].name, what))
            continue;
        known = true;
        for (uint32_t i = 0; s->main->state == MODULE_READY && i < s->main->file->n; i++)
            if (s->main->file->kid[i]->kind == AST_MODEL)
                show_model(s, s->main->file->kid[i], stages[k].dump, &t);
    }
    for (uint32_t i = 0; !strcmp(what, "wellposed") && s->main->state == MODULE_READY && i < s->main->file->n;
         i++) {
        const ast *x = s->main->file->kid[i];
        const built *b = x->kind == AST_MODEL ? session_build(s, x, &s->main->base, NULL, 0) : NULL;
        if (b)
            model_wellposed(&t, b->m, b->p, session_is(s, OPTION_JSON));
    }
    known |= !strcmp(what, "wellposed");
    session_flush(s);
    session_out(s, &t);
    return known ? s->tally.worst : CDL_USAGE;
}

typedef struct stream {
    int fd;
    char *text;
    size_t len;
} stream;

static void stream_take(session *s, void *ud)
{
    stream *x = ud;
    int error = stream_whole(s->a, x->fd, SOURCE_MAX_BYTES, &x->text, &x->len);
    if (error == EFBIG)
        diag_error(s->d, DIAG_LIMIT, SPAN_NONE, "the input is longer than %d MB", SOURCE_MAX_BYTES >> 20);
    else if (error)
        diag_error(s->d, DIAG_IO, SPAN_NONE, "cannot read the input: %s", error_text(s->tmp, error));
    if (error)
        x->text = NULL;
}

cdl_status cdl_read(cdl *s, int fd, const char **text_, size_t *len)
{
    ENTER(s);
    stream x = { .fd = fd };
    *text_ = NULL;
    *len = 0;
    if (!session_try(s, stream_take, &x)) {
        spent_report(s, SPAN_NONE);
        x.text = NULL;
    }
    session_flush(s);
    if (!x.text)
        return s->tally.worst;
    *text_ = x.text;
    *len = x.len;
    return CDL_OK;
}

cdl_status cdl_show(cdl *s, const char *what, const char *path)
{
    ENTER(s);
    module_read_file(&s->loaded, s->main, path, SPAN_NONE);
    return show_main(s, what);
}

cdl_status cdl_show_text(cdl *s, const char *what, const char *name, const char *text_, size_t len)
{
    ENTER(s);
    module_read(&s->loaded, s->main, name, text_, len);
    return show_main(s, what);
}

/* a text that does not parse is not changed: its layout would be a guess */
static const char *format(session *s, const char *name, const char *text_, size_t len, size_t *outlen)
{
    uint32_t file = diags_add_source(s->d, name, text_, len);
    parse_source(s->tmp, s->names, s->d, file);
    if (!session_flush(s))
        return NULL;
    static const arena_pos empty = { NULL, 0 };
    arena_release(s->answer, empty);
    return fmt_source(s->answer, text_, len, outlen);
}

cdl_status cdl_fmt(cdl *s, const char *name, const char *text_, size_t len, const char **out, size_t *outlen)
{
    ENTER(s);
    *out = format(s, name, text_, len, outlen);
    return *out ? CDL_OK : s->tally.worst ? s->tally.worst : CDL_MODEL;
}

cdl_status cdl_fmt_file(cdl *s, const char *path, int check_only)
{
    ENTER(s);
    static const file_root anywhere = { "", true };
    const char *was, *is;
    size_t len, outlen;
    if (!load_bytes(&s->loaded, &anywhere, path, path, SPAN_NONE, &was, &len)) {
        session_flush(s);
        return s->tally.worst;
    }
    is = format(s, path, was, len, &outlen);
    if (!is)
        return s->tally.worst ? s->tally.worst : CDL_MODEL;
    if (outlen == len && !memcmp(was, is, len))
        return CDL_OK;
    if (check_only)
        return CDL_EXPECT;
    int error = outfile_whole(s->tmp, &anywhere, path, is, outlen);
    if (error)
        diag_error(s->d, DIAG_IO, SPAN_NONE, "cannot write '%s': %s", path, error_text(s->tmp, error));
    session_flush(s);
    return s->tally.worst;
}

/* ---- for the interactive session ---- */

int cdl_complete(cdl *s, const char *text_, size_t len)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return 1;
    }
    session_begin(s);
    return parse_complete(s->tmp, text_, len);
}

int cdl_open_brackets(cdl *s, const char *text_, size_t len)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return 0;
    }
    session_begin(s);
    return parse_open_brackets(s->tmp, text_, len);
}

size_t cdl_visible(const char *text_, size_t len, char *out, size_t room)
{
    return visible_text(text_, len, out, room);
}

typedef struct {
    const char *prefix;
    size_t len, skip;
    const char *found;
} completion;

static void offer(completion *c, const char *name)
{
    if (c->found || strncmp(name, c->prefix, c->len))
        return;
    if (c->skip)
        c->skip--;
    else
        c->found = name;
}

static void offer_member(void *ud, const char *name)
{
    offer(ud, name);
}

static void offer_module(completion *c, const module *m)
{
    for (size_t k = 0; k < m->order.n; k++)
        offer(c, m->order.at[k]->name);
    for (size_t k = 0; k < m->open.n; k++)
        offer_module(c, m->open.at[k]);
}

static void offer_all(session *s, completion *c)
{
    if (s->last) {
        value all = { .kind = V_OBJECT };
        all.object.in = s->last->top;
        value_members(&all, offer_member, c);
    }
    offer_module(c, s->main);
    for (const builtin *const *list = session_builtins; *list; list++)
        for (const builtin *b = *list; b->name; b++)
            offer(c, b->name);
    for (const builtin *b = builtin_list; b->name; b++)
        offer(c, b->name);
    for (size_t k = 0; keyword_list[k]; k++)
        offer(c, keyword_list[k]);
    for (size_t k = 0; backend_list[k]; k++)
        offer(c, backend_list[k]->name);
}

/* names after a dot: those that the object has; what is wrong with it is not reported now */
static void offer_members(session *s, completion *c, const char *object, size_t len)
{
    def *d = module_find(s->main, sym_of(s->names, object, len));
    if (d && d->kind == DEF_MODULE) {
        offer_module(c, d->used);
        return;
    }
    if (memchr(object, '(', len))
        return; /* a query must have no effects */
    size_t errors = s->d->errors, messages = s->d->list.n;
    const ast *e = read_expression(s, "<completion>", arena_strndup(s->tmp, object, len));
    value v = e ? session_eval(s, e) : v_error();
    diag_forget(s->d, errors, messages);
    value_members(&v, offer_member, c);
}

const char *cdl_name(cdl *s, const char *prefix, size_t k)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return NULL;
    }
    static const arena_pos empty = { NULL, 0 };
    const char *dot = strrchr(prefix, '.');
    completion c = { .prefix = dot ? dot + 1 : prefix, .skip = k };
    c.len = strlen(c.prefix);
    session_begin(s);
    if (!dot) {
        offer_all(s, &c);
        return c.found;
    }
    offer_members(s, &c, prefix, (size_t)(dot - prefix));
    if (!c.found)
        return NULL;
    arena_release(s->answer, empty);
    return arena_printf(s->answer, "%.*s%s", (int)(dot + 1 - prefix), prefix, c.found);
}

size_t cdl_compiled(const cdl *s)
{
    return s->compiled;
}

const char *cdl_version_json(cdl *s)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return NULL;
    }
    static const arena_pos empty = { NULL, 0 };
    arena_release(s->answer, empty);
    text t = { .a = s->answer };
    version_json(&t);
    return t.at;
}
