/* session_check: all errors of a text before anything runs.  Models are built with their defaults; statements
   are read for names, models, backends and options that do not exist.  Values are left to the run. */
#include <string.h>
#include "session.h"

typedef struct planned {
    sym name;
    const mclass *c;
} planned;

typedef struct {
    session *s;
    bool to_run;
    const mclass *results; /* the model whose results unqualified names are, or NULL */
    bool unclear;          /* it could not be built: names of models may be its results */
    vec(sym) names;        /* measured, swept, bound; a stack */
    map64 bound;           /* how often each is on it */
    vec(planned) runs;     /* named ones */
} checker;

/* ---- the meaning of a path of names, as far as it is known ---- */

typedef enum { IS_OTHER, IS_CLASS, IS_CONTACT, IS_IMPACTS, IS_MODULE } thing_kind;
typedef struct {
    thing_kind kind;
    const mclass *c;
    const module *m;
} thing;

static thing thing_in_class(const mclass *c, sym name)
{
    const mdecl *d = class_find(c, name);
    if (d && d->kind == DECL_CONSTRAINT)
        return (thing){ .kind = IS_CONTACT };
    if (d && d->kind == DECL_PART && d->part->of)
        return (thing){ .kind = IS_CLASS, .c = d->part->of };
    return (thing){ 0 };
}

static void name_push(checker *c, sym name)
{
    *vec_push(c->s->tmp, &c->names) = name;
    ++*map64_put(&c->bound, sym_key(name));
}

static void names_pop(checker *c, size_t to)
{
    while (c->names.n > to)
        --*map64_get(&c->bound, sym_key(c->names.at[--c->names.n]));
}

static bool is_bound(const checker *c, sym name)
{
    const uint64_t *n = map64_get(&c->bound, sym_key(name));
    return n && *n;
}

static thing thing_named(checker *c, sym name)
{
    if (is_bound(c, name))
        return (thing){ 0 };
    for (size_t k = c->runs.n; k-- > 0;)
        if (c->runs.at[k].name == name)
            return (thing){ .kind = c->runs.at[k].c ? IS_CLASS : IS_OTHER, .c = c->runs.at[k].c };
    if (c->results && class_find(c->results, name))
        return thing_in_class(c->results, name);
    def *d = module_find(c->s->main, name);
    if (d && d->kind == DEF_MODULE)
        return (thing){ .kind = IS_MODULE, .m = d->used };
    if (d && d->kind == DEF_RUN)
        return (thing){ .kind = IS_CLASS, .c = ((run *)d->v.object.of)->of->m->classes.at[0] };
    return (thing){ 0 };
}

static thing thing_of(checker *c, const ast *e)
{
    if (e->kind == AST_NAME)
        return thing_named(c, e->name);
    if (e->kind == AST_SUBSCRIPT)
        return thing_of(c, e->kid[0]);
    if (e->kind != AST_MEMBER)
        return (thing){ 0 };
    thing of = thing_of(c, e->kid[0]);
    if (of.kind == IS_CLASS)
        return thing_in_class(of.c, e->name);
    if (of.kind == IS_CONTACT && !strcmp(e->name, "impacts"))
        return (thing){ .kind = IS_IMPACTS };
    return (thing){ 0 };
}

/* ---- names ---- */

static bool among(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

static void near_class(const mclass *c, near *n)
{
    for (size_t i = 0; i < c->names.cap; i++)
        if (c->names.key[i] != UINT64_MAX)
            near_try(n, ((const mdecl *)(uintptr_t)c->names.val[i])->name);
}

static void near_each(near *n, const char *const *list)
{
    while (*list)
        near_try(n, *list++);
}

static bool name_known(checker *c, sym name)
{
    session *s = c->s;
    value v;
    if (is_bound(c, name) || module_find(s->main, name))
        return true;
    for (size_t k = 0; k < c->runs.n; k++)
        if (c->runs.at[k].name == name)
            return true;
    if (c->results && (class_find(c->results, name) || among(result_list(OF_RUN), name)))
        return true;
    if (map64_get(&s->now.measures->at, sym_key(name)))
        return true;
    for (scope *sc = &s->builtins; sc; sc = sc->up)
        if (sc->find(sc, &s->ev, name, SPAN_NONE, &v) != LOOK_NO)
            return true;
    return false;
}

/* whether a run would make it a result */
static bool name_of_a_model(const session *s, sym name)
{
    for (size_t k = 0; k < s->main->order.n; k++) {
        const def *d = s->main->order.at[k];
        for (uint32_t i = 0; d->kind == DEF_MODEL && i < d->at->n; i++) {
            const ast *x = d->at->kid[i];
            if (x->name == name)
                return true;
            for (uint32_t j = 0; x->kind == AST_DOF && j < x->kid[0]->n; j++)
                if (x->kid[0]->kid[j]->name == name)
                    return true;
        }
    }
    return among(result_list(OF_RUN), name);
}

static bool tree_holds(const ast *x, sym name)
{
    if (!x || x->name == name)
        return x != NULL;
    for (uint32_t k = 0; k < x->n; k++)
        if (tree_holds(x->kid[k], name))
            return true;
    return false;
}

/* Is the name part of any model, or a result of every run? */
static bool name_in_models(const session *s, sym name)
{
    for (size_t m = 0; m < s->loaded.all.n; m++) {
        const module *in = s->loaded.all.at[m];
        for (size_t k = 0; k < in->order.n; k++)
            if (in->order.at[k]->kind == DEF_MODEL && tree_holds(in->order.at[k]->at, name))
                return true;
    }
    return among(result_list(OF_RUN), name);
}

static void name_check(checker *c, const ast *e)
{
    session *s = c->s;
    if (name_known(c, e->name) || (c->unclear && name_in_models(s, e->name)) || diag_doubtful(s->d, e->name))
        return;
    near n = near_to(e->name);
    diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, e->at, "unknown name '%s'", e->name);
    for (size_t k = 0; k < c->names.n; k++)
        near_try(&n, c->names.at[k]);
    for (size_t k = 0; k < c->runs.n; k++)
        near_try(&n, c->runs.at[k].name);
    if (c->results) {
        near_class(c->results, &n);
        near_each(&n, result_list(OF_RUN));
    }
    module_names(&s->main->base, &n);
    for (scope *sc = &s->builtins; sc; sc = sc->up)
        if (sc->names)
            sc->names(sc, &n);
    if (eval_name_instead(e->name)) {
        diag_hint(s->d, d, "%s", eval_name_instead(e->name));
        diag_doubt(s->d, e->name);
    } else if (near_best(&n))
        diag_near(s->d, d, &n);
    else if (!c->results && name_of_a_model(s, e->name))
        diag_hint(s->d, d, "there is no run before this, so there are no results yet");
}

static void member_report(checker *c, const ast *e, const char *const *list, const mclass *of,
                          const module *m)
{
    session *s = c->s;
    near n = near_to(e->name);
    if (diag_doubtful(s->d, e->name))
        return;
    diag *d = diag_error(s->d, DIAG_UNKNOWN_MEMBER, e->name_at, "'%s' has no member '%s'",
                         span_text(s->d, e->kid[0]->at, s->tmp), e->name);
    if (list)
        near_each(&n, list);
    if (of)
        near_class(of, &n);
    union {
        const module *m;
        module *p;
    } u = { .m = m };
    if (m)
        module_names(&u.p->base, &n);
    diag_near_or_all(s->d, d, &n);
}

static void member_check(checker *c, const ast *e)
{
    thing of = thing_of(c, e->kid[0]);
    switch (of.kind) {
    case IS_CONTACT:
        if (!among(result_list(OF_CONTACT), e->name))
            member_report(c, e, result_list(OF_CONTACT), NULL, NULL);
        break;
    case IS_IMPACTS:
        if (!among(result_list(OF_IMPACT), e->name))
            member_report(c, e, result_list(OF_IMPACT), NULL, NULL);
        break;
    case IS_CLASS:
        if (!class_find(of.c, e->name) && !among(result_list(OF_RUN), e->name))
            member_report(c, e, result_list(OF_RUN), of.c, NULL);
        break;
    case IS_MODULE:
        if (!module_find(of.m, e->name))
            member_report(c, e, NULL, NULL, of.m);
        break;
    case IS_OTHER:
        break;
    }
}

static void expr_check(checker *c, const ast *e);

static void kids_check(checker *c, const ast *e)
{
    for (uint32_t k = 0; k < e->n; k++)
        if (e->kid[k])
            expr_check(c, e->kid[k]);
}

static void gen_check(checker *c, const ast *e)
{
    size_t bound = c->names.n;
    for (uint32_t k = 1; k + 1 < e->n; k++) {
        expr_check(c, e->kid[k]->kid[0]);
        name_push(c, e->kid[k]->name);
    }
    expr_check(c, e->kid[0]);
    if (e->kid[e->n - 1])
        expr_check(c, e->kid[e->n - 1]);
    names_pop(c, bound);
}

static bool all_known(checker *c, const ast *unit)
{
    if (unit->kind == AST_NAME)
        return name_known(c, unit->name);
    return unit->kind != AST_BINARY || (all_known(c, unit->kid[0]) && all_known(c, unit->kid[1]));
}

static void expr_check(checker *c, const ast *e)
{
    switch (e->kind) {
    case AST_NUM:
    case AST_STR:
    case AST_BOOL:
    case AST_ERROR:
        break;
    case AST_NAME:
        name_check(c, e);
        break;
    case AST_MEMBER:
        expr_check(c, e->kid[0]);
        member_check(c, e);
        break;
    case AST_GEN:
        gen_check(c, e);
        break;
    case AST_SUBSCRIPT:
        expr_check(c, e->kid[0]);
        if (eval_unit_behind(e) && (e->kid[0]->kind == AST_VECTOR || !all_known(c, e->kid[1])))
            eval_unit_report(c->s->d, e);
        else
            for (uint32_t k = 1; k < e->n; k++)
                expr_check(c, e->kid[k]);
        break;
    default:
        if (eval_leibniz(e) && !name_known(c, eval_leibniz(e)->name) && !name_known(c, e->kid[1]->name))
            eval_leibniz_report(c->s->d, e);
        else
            kids_check(c, e);
        break;
    }
}

/* ---- statements ---- */

static void hint_params(session *s, diag *e, const ast *decl)
{
    text t = { .a = s->tmp };
    for (uint32_t i = 0; i < decl->n; i++)
        if (decl->kid[i]->kind == AST_ERROR)
            return;
    for (uint32_t i = 0; i < decl->n; i++)
        for (uint32_t k = 0; decl->kid[i]->kind == AST_PARAM && k < decl->kid[i]->kid[0]->n; k++)
            text_printf(&t, "%s%s", t.n ? ", " : "", decl->kid[i]->kid[0]->kid[k]->name);
    if (t.n)
        diag_hint(s->d, e, "its parameters are %s", t.at);
    else
        diag_hint(s->d, e, "it has no parameters");
}

static void args_check(checker *c, const ast *decl, const ast *list)
{
    session *s = c->s;
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *arg = list->kid[k];
        expr_check(c, arg->kind == AST_ARG ? arg->kid[0] : arg);
        if (arg->kind != AST_ARG) {
            diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, arg->at, "arguments of a model are named");
            diag_hint(s->d, d, "write %s(name = value)", decl->name);
            continue;
        }
        for (uint32_t j = 0; j < k; j++)
            if (list->kid[j]->name == arg->name)
                diag_error(s->d, DIAG_DUPLICATE, arg->at, "parameter '%s' is given twice", arg->name);
        if (is_param_of(decl, arg->name) || diag_doubtful(s->d, arg->name))
            continue;
        near n = near_to(arg->name);
        near_params(decl, &n);
        diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, arg->name_at.file ? arg->name_at : arg->at,
                             "model '%s' has no parameter '%s'", decl->name, arg->name);
        if (near_best(&n))
            diag_near(s->d, d, &n);
        else
            hint_params(s, d, decl);
    }
}

/* errors that may follow from a guessed size are not reported */
static bool is_guesswork(diag_code k)
{
    return k == DIAG_PARAM_MISSING || k == DIAG_INDEX_RANGE || k == DIAG_SHAPE || k == DIAG_LIMIT ||
           k == DIAG_OPTION_VALUE;
}

static void drop_guesswork(diags *d, size_t from, size_t errors)
{
    size_t to = from;
    for (size_t k = from; k < d->list.n; k++)
        if (!is_guesswork(d->list.at[k].code))
            d->list.at[to++] = d->list.at[k];
    if (to == from)
        d->errors = errors;
    d->list.n = to;
}

/* parameters without a value get one for the sake of the check */
static const built *build_guess(session *s, const ast *decl, scope *outer)
{
    vec(override) set = { 0 };
    size_t from = s->d->list.n, errors = s->d->errors;
    for (uint32_t i = 0; i < decl->n; i++) {
        if (decl->kid[i]->kind != AST_PARAM)
            continue;
        const ast *list = decl->kid[i]->kid[0];
        for (uint32_t k = 0; k < list->n; k++)
            if (list->kid[k]->kind == AST_PARAM_ITEM && !list->kid[k]->kid[1])
                *vec_push(s->tmp, &set) = (override){ .name = list->kid[k]->name,
                                                      .value = 3,
                                                      .at = list->kid[k]->at };
    }
    const built *b = session_build(s, decl, outer, set.at, set.n);
    if (set.n)
        drop_guesswork(s->d, from, errors);
    return b;
}

static void run_name_check(checker *c, const ast *e)
{
    def *d = e->name ? module_find(c->s->main, e->name) : NULL;
    if (!d || d->kind == DEF_RUN || d->in != c->s->main)
        return;
    diag *x = diag_error(c->s->d, DIAG_DUPLICATE, e->name_at, "'%s' is defined already", e->name);
    diag_second(c->s->d, x, d->at->name_at, "defined here");
}

static void run_check(checker *c, const ast *e)
{
    session *s = c->s;
    scope *outer = &s->main->base;
    const backend *with = NULL;
    const ast *decl = session_model(s, e->kid[0], &outer);
    run_name_check(c, e);
    if (decl)
        args_check(c, decl, e->kid[1]);
    if (e->kid[2])
        expr_check(c, e->kid[2]);
    bool known = !e->kid[3] || run_options_read(s, e->kid[3], &with, NULL);
    const built *b = decl ? build_guess(s, decl, outer) : NULL;
    double duration;
    if (b)
        run_check_args(s, e, b, c->to_run);
    if (b)
        run_duration(s, e, b->p, true, &duration);
    if (b && known)
        run_check_backend(s, e, b, with, c->to_run);
    c->results = b ? b->m->classes.at[0] : NULL;
    c->unclear = !b;
    if (e->name)
        *vec_push(s->tmp, &c->runs) = (planned){ e->name, c->results };
}

static void binds_check(checker *c, const ast *list, bool name_them)
{
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *b = list->kid[k];
        kids_check(c, b);
        if (name_them)
            name_push(c, b->name);
    }
}

/* Outside of experiments results of the last run are found first. */
static void hidden_check(checker *c, const ast *list)
{
    for (uint32_t k = 0; c->results && k < list->n; k++) {
        const ast *b = list->kid[k];
        if (!class_find(c->results, b->name) && !among(result_list(OF_RUN), b->name))
            continue;
        diag *d = diag_warn(c->s->d, DIAG_DUPLICATE, b->name_at.file ? b->name_at : b->at,
                            "'%s' is a result of the previous run, which hides this value", b->name);
        diag_hint(c->s->d, d, "choose another name");
    }
}

/* abs and rel are words here */
static void within_check(checker *c, const ast *e)
{
    bool word = e->kind == AST_CALL && e->kid[0]->kind == AST_NAME &&
                (!strcmp(e->kid[0]->name, "rel") || !strcmp(e->kid[0]->name, "abs"));
    if (!word) {
        expr_check(c, e);
        return;
    }
    for (uint32_t k = 1; k < e->n; k++)
        expr_check(c, e->kid[k]);
}

static void output_names(checker *c, const ast *e)
{
    kids_check(c, e->kid[0]);
    if (e->kind == AST_PLOT && e->kid[1])
        expr_check(c, e->kid[1]);
    output_check(c->s, e);
    const ast *b = e->kid[e->kind == AST_PLOT ? 2 : 1];
    for (uint32_t k = 0; b && k < b->n; k++)
        if (b->kid[k]->kind == AST_SET && b->kid[k]->kid[0]->kind == AST_NAME &&
            strcmp(b->kid[k]->kid[0]->name, "by"))
            expr_check(c, b->kid[k]->kid[1]);
}

static void fn_check(checker *c, const ast *e)
{
    size_t bound = c->names.n;
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        name_push(c, e->kid[0]->kid[k]->name);
    fn_check_params(c->s->d, e);
    expr_check(c, e->kid[1]);
    names_pop(c, bound);
}

static void sweep_check(checker *c, const ast *e)
{
    if (sweep_is_zip(e))
        for (uint32_t k = 1; k < e->kid[1]->n; k++)
            expr_check(c, e->kid[1]->kid[k]);
    else
        expr_check(c, e->kid[1]);
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        name_push(c, e->kid[0]->kid[k]->name);
}

/* a run with a syntax error: names may be its results */
static bool may_be_run(checker *c, const ast *e)
{
    const source *src = c->s->d->sources.at[e->at.file];
    const char *word = src->text + e->at.begin;
    size_t n = 0;
    while (n < e->at.end - e->at.begin && word[n] >= 'a' && word[n] <= 'z')
        n++;
    const char *first = arena_strndup(c->s->tmp, word, n);
    near meant = near_to(first);
    near_try(&meant, "run");
    return !strcmp(first, "run") || near_best(&meant);
}

static void setting_check(checker *c, const ast *e)
{
    const ast *key = e->kid[0];
    if (key->kind == AST_NAME && !strcmp(key->name, "seed")) {
        expr_check(c, e->kid[1]);
        return;
    }
    diag *d = diag_error(c->s->d, DIAG_UNKNOWN_ATTRIBUTE, key->at, "an experiment has no setting '%s'",
                         span_text(c->s->d, key->at, c->s->tmp));
    diag_hint(c->s->d, d, "its only setting is seed; a name is given a value with let");
}

static void statement_check(checker *c, const ast *e, bool experiment);

static bool mentions(const ast *e, sym name)
{
    if (!e)
        return false;
    bool found = e->kind == AST_NAME && e->name == name;
    for (uint32_t k = 0; k < e->n && !found; k++)
        found = mentions(e->kid[k], name);
    return found;
}

static bool mentioned(const ast *experiment, sym name, bool to_run)
{
    bool found = false;
    for (uint32_t k = 0; k < experiment->n; k++) {
        const ast *e = experiment->kid[k];
        if (e->kind == AST_ERROR)
            return true; /* it may be there */
        if (e->kind == AST_SWEEP)
            found = found || mentions(e->kid[1], name);
        else if (!to_run || e->kind == AST_RUN || e->kind == AST_LET)
            found = found || mentions(e, name);
    }
    return found;
}

/* Values are passed to a run by its arguments: sweeping a parameter that is not passed would repeat the
   same run, and so would a misspelt name. */
static void swept_check(checker *c, const ast *experiment, const ast *swept)
{
    session *s = c->s;
    near n = near_to(swept->name);
    if (mentioned(experiment, swept->name, true))
        return;
    for (uint32_t k = 0; k < experiment->n; k++) {
        const ast *e = experiment->kid[k];
        scope *outer = &s->main->base;
        size_t errors = s->d->errors, messages = s->d->list.n;
        const ast *decl = e->kind == AST_RUN ? session_model(s, e->kid[0], &outer) : NULL;
        s->d->errors = errors, s->d->list.n = messages; /* reported where the run is checked */
        if (decl && is_param_of(decl, swept->name)) {
            diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, swept->at,
                                 "'%s' is swept, but not passed to "
                                 "any run",
                                 swept->name);
            diag_hint(s->d, d, "write run %s(%s = %s)", decl->name, swept->name, swept->name);
            return;
        }
        if (decl)
            near_params(decl, &n);
    }
    if (near_best(&n) && !mentioned(experiment, swept->name, false)) {
        diag *d = diag_error(s->d, DIAG_UNKNOWN_NAME, swept->at, "'%s' is swept, but nothing uses it",
                             swept->name);
        diag_near(s->d, d, &n);
    }
}

/* swept names are known to all statements of the experiment */
static void experiment_check(checker *c, const ast *e)
{
    size_t bound = c->names.n;
    for (uint32_t k = 0; k < e->n; k++)
        if (e->kid[k]->kind == AST_SWEEP)
            sweep_check(c, e->kid[k]);
    for (uint32_t k = 0; k < e->n; k++)
        if (e->kid[k]->kind != AST_SWEEP)
            statement_check(c, e->kid[k], true);
        else
            for (uint32_t i = 0; i < e->kid[k]->kid[0]->n; i++)
                swept_check(c, e, e->kid[k]->kid[0]->kid[i]);
    names_pop(c, bound);
}

static void statement_check(checker *c, const ast *e, bool experiment)
{
    session *s = c->s;
    switch (e->kind) {
    case AST_ERROR:
        c->unclear = c->unclear || may_be_run(c, e);
        break;
    case AST_RUN:
        run_check(c, e);
        break;
    case AST_MEASURE:
        binds_check(c, e->kid[0], true);
        break;
    case AST_EXPECT:
        expr_check(c, e->kid[0]);
        if (e->n > 1 && e->kid[1])
            within_check(c, e->kid[1]);
        break;
    case AST_PLOT:
    case AST_SAVE:
        output_names(c, e);
        break;
    case AST_EXPR:
        expr_check(c, e->kid[0]);
        break;
    case AST_LET:
        binds_check(c, e->kid[0], experiment);
        if (!experiment)
            hidden_check(c, e->kid[0]);
        if (!experiment && !c->unclear)
            check_constants(s, c->results, e->kid[0]);
        break;
    case AST_SET:
        if (experiment)
            setting_check(c, e);
        else
            session_misplaced(s, e);
        break;
    case AST_SWEEP:
        session_misplaced(s, e);
        break;
    case AST_USE:
    case AST_FN:
    case AST_PARAM:
    case AST_MODEL:
    case AST_EXPERIMENT:
        if (experiment)
            session_misplaced_in(s, e, "it belongs outside the experiment");
        else if (e->kind == AST_FN)
            fn_check(c, e);
        else if (e->kind == AST_PARAM) {
            binds_check(c, e->kid[0], false);
            check_constants(s, c->results, e->kid[0]);
        } else if (e->kind == AST_EXPERIMENT)
            experiment_check(c, e);
        break;
    default:
        session_misplaced(s, e);
        break;
    }
}

void check_module(session *s, module *m, bool to_run)
{
    checker c = {
        .s = s, .to_run = to_run, .results = s->last ? s->last->of->m->classes.at[0] : NULL, .bound.a = s->tmp
    };
    for (uint32_t k = 0; k < m->file->n; k++)
        if (m->file->kid[k]->kind == AST_MODEL)
            build_guess(s, m->file->kid[k], &m->base);
    for (uint32_t k = 0; k < m->file->n; k++)
        statement_check(&c, m->file->kid[k], false);
}

/* ---- -p ---- */

static bool param_somewhere(const module *m, sym name, near *n)
{
    bool found = false;
    for (size_t k = 0; k < m->order.n; k++) {
        const def *d = m->order.at[k];
        if (d->kind == DEF_PARAM) {
            near_try(n, d->name);
            found = found || d->name == name;
        }
        if (d->kind == DEF_MODEL) {
            near_params(d->at, n);
            found = found || is_param_of(d->at, name);
        }
    }
    for (size_t k = 0; k < m->open.n; k++)
        found = param_somewhere(m->open.at[k], name, n) || found;
    return found;
}

void check_params(session *s)
{
    for (size_t k = 0; k < s->params.n; k++) {
        near n = near_to(s->params.at[k].name);
        if (param_somewhere(s->main, s->params.at[k].name, &n))
            continue;
        const char *best = near_best(&n);
        if (best)
            session_note(s, "-p %s: no model has a parameter of this name; did you mean '%s'?",
                         s->params.at[k].name, best);
        else
            session_note(s, "-p %s: no model has a parameter of this name", s->params.at[k].name);
        session_worse(s, CDL_USAGE);
    }
}
