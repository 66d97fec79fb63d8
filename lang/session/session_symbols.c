/* session_symbols: the meaning of each name in a text. It is found from the tree and the modules alone,
   without values, so that editors get answers while the text has errors: in a statement that could not be
   parsed, names are looked up word by word. */
#include <string.h>
#include "syntax/parse.h"
#include "session.h"

/* a model, and the module that contains its text */
typedef struct {
    const ast *decl;
    module *in;
} home;

typedef struct {
    session *s;
    symbols *x;
    home model;   /* around the place, or none */
    home results; /* of the last run, or none */
    int parent;   /* of what is declared now */
    bool silent;  /* places are not recorded */
    vec(int) locals;
} walker;

/* ---- symbols ---- */

/* the number of what is known under a key, or -1 */
static int known_get(const symbols *x, uint64_t key)
{
    const uint64_t *k = map64_get(&x->known, key);
    return k ? (int)*k - 1 : -1;
}

static void known_put(symbols *x, uint64_t key, int number)
{
    *map64_put(&x->known, key) = (uint64_t)number + 1;
}

static uint64_t pair_key(uint64_t of, sym name)
{
    return hash64(hash64(0, of), sym_key(name)) >> 1;
}

static int symbol_add(walker *w, symbol y)
{
    symbols *x = w->x;
    y.parent = w->parent;
    *vec_push(w->s->a, &x->all) = y;
    int k = (int)x->all.n - 1;
    if (y.decl)
        known_put(x, sym_key(y.decl), k);
    return k;
}

/* a word of the language that is no declaration: a built-in function, a law, a result */
static int word_symbol(walker *w, cdl_symbol_kind kind, sym name)
{
    uint64_t key = pair_key((uint64_t)kind + 1, name);
    int k = known_get(w->x, key);
    if (k >= 0)
        return k;
    k = symbol_add(w, (symbol){ .kind = kind, .name = name });
    w->x->all.at[k].parent = -1;
    known_put(w->x, key, k);
    return k;
}

static void use_add(walker *w, span at, int number, bool declares)
{
    if (number >= 0 && !w->silent && at.file == w->x->file->at.file && at.end > at.begin)
        *vec_push(w->s->a, &w->x->uses) = (occurrence){ at, number, declares };
}

/* statement: the one it is alone in, or a list of several, whose documentation is for all */
static int declare(walker *w, cdl_symbol_kind kind, const ast *decl, const ast *statement)
{
    int had = known_get(w->x, sym_key(decl));
    if (had >= 0)
        return had;
    const char *doc = decl->doc ? decl->doc : statement ? statement->doc : NULL;
    const ast *list = statement && decl != statement && statement->n ? statement->kid[0] : NULL;
    bool alone = statement && !(list && list->kind == AST_LIST && list->n > 1);
    module *in = w->model.decl ? w->model.in : w->s->main;
    return symbol_add(w, (symbol){ .kind = kind,
                                   .name = decl->name,
                                   .name_at = decl->name_at,
                                   .at = alone ? statement->at : decl->at,
                                   .decl = decl,
                                   .model = w->model.decl,
                                   .in = in,
                                   .doc = doc });
}

/* ---- models ---- */

static void member_add(walker *w, cdl_symbol_kind kind, const ast *decl, const ast *statement)
{
    uint64_t key = pair_key(sym_key(w->model.decl), decl->name);
    if (!decl->name)
        return;
    int k = declare(w, kind, decl, statement);
    if (known_get(w->x, key) < 0)
        known_put(w->x, key, k);
}

static void members_add(walker *w, cdl_symbol_kind kind, const ast *statement)
{
    const ast *list = statement->kid[0];
    for (uint32_t k = 0; k < list->n; k++)
        if (list->kid[k]->kind != AST_DOF_ITEM || list->kid[k]->num == 0) /* else a rate of one */
            member_add(w, kind, list->kid[k], statement);
}

static void member_statement(walker *w, const ast *e)
{
    switch (e->kind) {
    case AST_PARAM:
        members_add(w, CDL_IS_PARAM, e);
        break;
    case AST_DOF:
        members_add(w, CDL_IS_DOF, e);
        break;
    case AST_LET:
        members_add(w, CDL_IS_LET, e);
        break;
    case AST_DOMAIN:
        members_add(w, CDL_IS_COORDINATE, e);
        break;
    case AST_FIELD:
        members_add(w, CDL_IS_FIELD, e);
        break;
    case AST_FN:
        member_add(w, CDL_IS_FUNCTION, e, e);
        break;
    case AST_CONSTRAINT:
        member_add(w, CDL_IS_CONSTRAINT, e, e);
        break;
    case AST_PART:
        member_add(w, CDL_IS_PART, e, e);
        break;
    case AST_ROD:
        member_add(w, CDL_IS_ROD, e, e);
        break;
    case AST_SHAPE:
        member_add(w, CDL_IS_SHAPE, e, e);
        break;
    default:
        break;
    }
}

static int def_symbol(walker *w, const def *d);

/* the names of a model, once */
static void model_collect(walker *w, home m, int parent)
{
    uint64_t key = pair_key(sym_key(m.decl), NULL);
    if (known_get(w->x, key) >= 0)
        return;
    known_put(w->x, key, 0);
    home was = w->model;
    int was_parent = w->parent;
    w->model = m;
    w->parent = parent;
    for (uint32_t k = 0; k < m.decl->n; k++)
        member_statement(w, m.decl->kid[k]);
    w->model = was;
    w->parent = was_parent;
}

static int member_of(walker *w, home m, sym name)
{
    if (!m.decl)
        return -1;
    model_collect(w, m, known_get(w->x, sym_key(m.decl)));
    return known_get(w->x, pair_key(sym_key(m.decl), name));
}

/* ---- definitions of modules ---- */

static int def_symbol(walker *w, const def *d)
{
    static const cdl_symbol_kind kinds[] = {
        [DEF_MODEL] = CDL_IS_MODEL, [DEF_FN] = CDL_IS_FUNCTION,   [DEF_LET] = CDL_IS_LET,
        [DEF_PARAM] = CDL_IS_PARAM, [DEF_MODULE] = CDL_IS_MODULE, [DEF_RUN] = CDL_IS_RUN
    };
    if (!d || !d->at)
        return -1;
    int k = known_get(w->x, sym_key(d->at));
    if (k >= 0)
        return k;
    home was = w->model;
    int was_parent = w->parent;
    w->model = (home){ 0 };
    w->parent = -1;
    k = declare(w, kinds[d->kind], d->at, NULL);
    w->model = was;
    w->parent = was_parent;
    symbol *y = &w->x->all.at[k];
    y->name = d->name;
    y->in = d->in;
    y->used = d->used;
    if (d->kind == DEF_MODULE && !y->name_at.file)
        y->name_at = y->at;
    return k;
}

/* the definition that a path of names leads to, its places noted */
static const def *path_walk(walker *w, const module *in, const ast *e)
{
    const def *d = NULL;
    if (e->kind == AST_NAME)
        d = module_find(in, e->name);
    else if (e->kind == AST_MEMBER) {
        const def *of = path_walk(w, in, e->kid[0]);
        d = of && of->kind == DEF_MODULE && of->used ? module_find(of->used, e->name) : NULL;
    }
    use_add(w, e->kind == AST_MEMBER ? e->name_at : e->at, def_symbol(w, d), false);
    return d;
}

static home path_model(walker *w, const module *in, const ast *e)
{
    const def *d = e ? path_walk(w, in, e) : NULL;
    return d && d->kind == DEF_MODEL ? (home){ d->at, d->in } : (home){ 0 };
}

/* without noting places */
static home path_model_quietly(walker *w, const module *in, const ast *e)
{
    bool was = w->silent;
    w->silent = true;
    home m = path_model(w, in, e);
    w->silent = was;
    return m;
}

/* ---- what has members ---- */

typedef struct {
    home model;   /* a part or a run */
    module *used; /* a module */
    int result;   /* OF_CONTACT … of results.def; -1: none */
} thing;

static const thing no_thing = { .result = -1 };

static int run_result(const char *name)
{
    const char *const *list = result_list(OF_RUN);
    for (int k = 0; list[k]; k++)
        if (!strcmp(list[k], name))
            return k;
    return -1;
}

static thing thing_of_symbol(walker *w, int k)
{
    thing t = no_thing;
    if (k < 0)
        return t;
    symbol y = w->x->all.at[k];
    switch (y.kind) {
    case CDL_IS_MODULE:
        t.used = y.used;
        break;
    case CDL_IS_PART:
        t.model = path_model_quietly(w, y.in, y.decl->kid[1]);
        break;
    case CDL_IS_RUN:
        t.model = path_model_quietly(w, y.in, y.decl->kid[0]);
        break;
    case CDL_IS_CONSTRAINT:
        t.result = OF_CONTACT;
        break;
    case CDL_IS_ROD:
        t.result = OF_WIRE;
        break;
    case CDL_IS_SHAPE:
        t.result = OF_SHAPE;
        break;
    case CDL_IS_RESULT:
        t.result = !strcmp(y.name, "impacts")  ? OF_IMPACT
                   : !strcmp(y.name, "points") ? OF_POINTS
                   : !strcmp(y.name, "pairs")  ? OF_PAIR
                   : !strcmp(y.name, "path")   ? OF_PATH
                                               : -1;
        break;
    default:
        break;
    }
    return t;
}

static int thing_member(walker *w, thing t, sym name)
{
    if (t.used)
        return def_symbol(w, module_find(t.used, name));
    if (t.model.decl) {
        int k = member_of(w, t.model, name);
        return k >= 0                                    ? k
               : !w->model.decl && run_result(name) >= 0 ? word_symbol(w, CDL_IS_RESULT, name)
                                                         : -1;
    }
    if (t.result >= 0 && result_find(t.result, name) >= 0)
        return word_symbol(w, CDL_IS_RESULT, name);
    return -1;
}

/* ---- names ---- */

static bool is_builtin(const char *name)
{
    if (builtin_find(name))
        return true;
    for (const builtin *const *list = session_builtins; *list; list++)
        for (const builtin *b = *list; b->name; b++)
            if (!strcmp(b->name, name))
                return true;
    return false;
}

static bool is_law(const char *name)
{
    static const char *const laws[] = {
#define X(id, word, role, args, meaning) word,
#include "model/laws.def"
#undef X
    };
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++)
        if (!strcmp(laws[k], name))
            return true;
    return false;
}

static const char *const constants[] = { "t", "pi", "inf", NULL };

static bool is_constant(const char *name)
{
    for (int k = 0; constants[k]; k++)
        if (!strcmp(constants[k], name))
            return true;
    return false;
}

static int name_find(walker *w, sym name)
{
    for (size_t k = w->locals.n; k-- > 0;)
        if (w->x->all.at[w->locals.at[k]].name == name)
            return w->locals.at[k];
    int k = member_of(w, w->model.decl ? w->model : w->results, name);
    if (k >= 0)
        return k;
    if (!w->model.decl && w->results.decl && run_result(name) >= 0)
        return word_symbol(w, CDL_IS_RESULT, name);
    k = def_symbol(w, module_find(w->s->main, name));
    if (k >= 0)
        return k;
    return is_constant(name)  ? word_symbol(w, CDL_IS_CONSTANT, name)
           : is_builtin(name) ? word_symbol(w, CDL_IS_BUILTIN, name)
           : is_law(name)     ? word_symbol(w, CDL_IS_LAW, name)
                              : -1;
}

static void local_add(walker *w, cdl_symbol_kind kind, const ast *decl)
{
    int k = declare(w, kind, decl, NULL);
    w->x->all.at[k].local = kind == CDL_IS_INDEX || kind == CDL_IS_ARGUMENT;
    *vec_push(w->s->tmp, &w->locals) = k;
    use_add(w, decl->name_at, k, true);
}

/* ---- expressions ---- */

static int walk(walker *w, const ast *e);

static void walk_kids(walker *w, const ast *e, uint32_t from)
{
    for (uint32_t k = from; k < e->n; k++)
        if (e->kid[k])
            walk(w, e->kid[k]);
}

/* i in 1..N, j in i..N: each sees those before it */
static void walk_indices(walker *w, const ast *list, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k < to; k++) {
        const ast *e = list->kid[k];
        if (!e)
            continue;
        if (e->kind != AST_INDEX) {
            walk(w, e);
            continue;
        }
        walk_kids(w, e, 0);
        local_add(w, CDL_IS_INDEX, e);
    }
}

static void walk_gen(walker *w, const ast *e)
{
    size_t had = w->locals.n;
    walk_indices(w, e, 1, e->n - 1);
    walk(w, e->kid[0]);
    if (e->kid[e->n - 1])
        walk(w, e->kid[e->n - 1]);
    w->locals.n = had;
}

static void walk_unit(walker *w, const ast *e)
{
    for (uint32_t k = 0; k < e->n; k++) {
        const ast *term = e->kid[k];
        span at = term->at;
        if (!term->name)
            continue;
        at.end = at.begin + (uint32_t)strlen(term->name);
        use_add(w, at, word_symbol(w, CDL_IS_UNIT, term->name), false);
    }
}

/* Records the places of names; returns the symbol to which the expression refers, or -1. */
static int walk(walker *w, const ast *e)
{
    int k = -1;
    switch (e->kind) {
    case AST_NAME:
        k = name_find(w, e->name);
        use_add(w, e->at, k, false);
        return k;
    case AST_MEMBER:
        k = thing_member(w, thing_of_symbol(w, walk(w, e->kid[0])), e->name);
        use_add(w, e->name_at, k, false);
        return k;
    case AST_SUBSCRIPT:
        k = walk(w, e->kid[0]);
        walk_kids(w, e, 1);
        return k;
    case AST_GEN:
        walk_gen(w, e);
        return -1;
    case AST_ARG:
        use_add(w, e->name_at, word_symbol(w, CDL_IS_OPTION, e->name), false);
        walk_kids(w, e, 0);
        return -1;
    case AST_UNIT:
        walk_unit(w, e);
        return -1;
    default:
        walk_kids(w, e, 0);
        return -1;
    }
}

static void walk_opt(walker *w, const ast *e)
{
    if (e)
        walk(w, e);
}

/* the words of a statement that could not be read */
static void walk_words(walker *w, span at)
{
    const source *src = w->s->d->sources.at[at.file];
    lexeme *lex;
    size_t n = lex_all(w->s->tmp, src->text + at.begin, at.end - at.begin, &lex);
    int last = -1;
    bool dot = false;
    for (size_t k = 0; k < n; k++) {
        const char *p = src->text + at.begin + lex[k].begin;
        if (lex[k].kind == LEX_NAME) {
            sym name = sym_of(w->s->names, p, lex[k].end - lex[k].begin);
            last = dot ? thing_member(w, thing_of_symbol(w, last), name) : name_find(w, name);
            use_add(w, (span){ at.file, at.begin + lex[k].begin, at.begin + lex[k].end }, last, false);
        } else if (lex[k].kind != LEX_OP || *p != '.')
            last = -1;
        dot = lex[k].kind == LEX_OP && *p == '.' && lex[k].end - lex[k].begin == 1;
    }
}

/* ---- statements ---- */

/* keys that are words, not names: impact = newton(e) */
static void walk_block(walker *w, const ast *block)
{
    for (uint32_t k = 0; block && k < block->n; k++) {
        const ast *e = block->kid[k];
        if (e->kind != AST_SET) {
            walk(w, e);
            continue;
        }
        if (e->kid[0]->kind == AST_NAME)
            use_add(w, e->kid[0]->at, word_symbol(w, CDL_IS_ATTRIBUTE, e->kid[0]->name), false);
        walk(w, e->kid[1]);
    }
}

/* keys that are names where there are some of a model: { u = 0, u' = 0 }, of rods { position = … } */
static void walk_conditions(walker *w, const ast *block)
{
    for (uint32_t k = 0; block && k < block->n; k++) {
        const ast *e = block->kid[k];
        if (e->kind != AST_SET || e->kid[0]->kind != AST_NAME ||
            member_of(w, w->model, e->kid[0]->name) >= 0) {
            walk(w, e);
            continue;
        }
        use_add(w, e->kid[0]->at, word_symbol(w, CDL_IS_ATTRIBUTE, e->kid[0]->name), false);
        walk(w, e->kid[1]);
    }
}

/* name = value for parameters of a model */
static void walk_args(walker *w, home of, const ast *list)
{
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *e = list->kid[k];
        if (e->kind != AST_ARG) {
            walk(w, e);
            continue;
        }
        use_add(w, e->name_at, member_of(w, of, e->name), false);
        walk_kids(w, e, 0);
    }
}

/* initial values of a part: the names on the left are its own */
static void walk_part_block(walker *w, home of, const ast *block)
{
    for (uint32_t k = 0; block && k < block->n; k++) {
        const ast *e = block->kid[k];
        if (e->kind != AST_SET) {
            walk(w, e);
            continue;
        }
        home was = w->model;
        if (of.decl)
            w->model = of;
        walk(w, e->kid[0]);
        w->model = was;
        walk(w, e->kid[1]);
    }
}

static void walk_fn(walker *w, const ast *e)
{
    size_t had = w->locals.n;
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        local_add(w, CDL_IS_ARGUMENT, e->kid[0]->kid[k]);
    walk(w, e->kid[1]);
    w->locals.n = had;
}

/* items of a list that were declared before */
static void walk_declared(walker *w, const ast *list)
{
    for (uint32_t k = 0; k < list->n; k++) {
        const ast *e = list->kid[k];
        size_t had = w->locals.n;
        bool rate = e->kind == AST_DOF_ITEM && e->num > 0;
        if (e->name)
            use_add(w, e->name_at, rate ? name_find(w, e->name) : known_get(w->x, sym_key(e)), !rate);
        if (e->kind == AST_DOF_ITEM) {
            walk_indices(w, e->kid[0], 0, e->kid[0]->n);
            walk_opt(w, e->kid[2]);
        } else
            walk_kids(w, e, 0);
        w->locals.n = had;
    }
}

static void walk_named(walker *w, const ast *e)
{
    use_add(w, e->name_at, known_get(w->x, sym_key(e)), true);
}

static void walk_model_statement(walker *w, const ast *e)
{
    size_t had = w->locals.n;
    home of;
    switch (e->kind) {
    case AST_ERROR:
        walk_words(w, e->at);
        break;
    case AST_PARAM:
    case AST_DOF:
    case AST_LET:
    case AST_DOMAIN:
    case AST_FIELD:
        walk_declared(w, e->kid[0]);
        break;
    case AST_FN:
        walk_named(w, e);
        walk_fn(w, e);
        break;
    case AST_HISTORY:
        use_add(w, e->name_at, name_find(w, e->name), false);
        walk_indices(w, e->kid[0], 0, e->kid[0]->n);
        local_add(w, CDL_IS_ARGUMENT, e->kid[1]);
        walk(w, e->kid[2]);
        break;
    case AST_FOR:
        walk_indices(w, e->kid[0], 0, e->kid[0]->n);
        walk_opt(w, e->kid[1]);
        for (uint32_t k = 0; k < e->kid[2]->n; k++)
            walk_model_statement(w, e->kid[2]->kid[k]);
        break;
    case AST_CONSTRAINT:
        walk_named(w, e);
        walk_indices(w, e->kid[0], 0, e->kid[0]->n);
        walk_opt(w, e->kid[1]);
        walk_opt(w, e->kid[2]);
        walk_block(w, e->kid[3]);
        break;
    case AST_PART:
        walk_named(w, e);
        walk_indices(w, e->kid[0], 0, e->kid[0]->n);
        of = path_model(w, w->s->main, e->kid[1]);
        walk_args(w, of, e->kid[2]);
        walk_part_block(w, of, e->kid[3]);
        break;
    case AST_AT:
        walk(w, e->kid[0]);
        walk(w, e->kid[1]);
        walk_conditions(w, e->kid[2]);
        break;
    case AST_ROD:
        walk_named(w, e);
        walk_block(w, e->kid[0]);
        break;
    case AST_SHAPE:
        walk_named(w, e);
        walk_kids(w, e, 0);
        break;
    default:
        walk_kids(w, e, 0);
        break;
    }
    w->locals.n = had;
}

static void walk_model(walker *w, const ast *e)
{
    home was = w->model;
    int was_parent = w->parent, number = known_get(w->x, sym_key(e));
    use_add(w, e->name_at, number, true);
    if (number < 0)
        return;
    model_collect(w, (home){ e, w->s->main }, number);
    w->model = (home){ e, w->s->main };
    w->parent = number;
    for (uint32_t k = 0; k < e->n; k++)
        walk_model_statement(w, e->kid[k]);
    w->model = was;
    w->parent = was_parent;
}

static void walk_backend(walker *w, const ast *e)
{
    const ast *name = e->kind == AST_CALL ? e->kid[0] : e;
    if (name->kind == AST_NAME)
        use_add(w, name->at, word_symbol(w, CDL_IS_BACKEND, name->name), false);
    if (e->kind == AST_CALL)
        walk_kids(w, e, 1);
}

static void walk_run(walker *w, const ast *e)
{
    home of = path_model(w, w->s->main, e->kid[0]);
    walk_args(w, of, e->kid[1]);
    walk_opt(w, e->kid[2]);
    if (e->kid[3])
        walk_backend(w, e->kid[3]);
    if (e->name) {
        local_add(w, CDL_IS_RUN, e);
        w->x->all.at[w->locals.at[w->locals.n - 1]].at = e->at;
    }
    w->results = of;
}

static void walk_statement(walker *w, const ast *e);

static void walk_experiment(walker *w, const ast *e)
{
    size_t had = w->locals.n;
    home before = w->results;
    int was = w->parent;
    w->parent = declare(w, CDL_IS_EXPERIMENT, e, e);
    use_add(w, e->name_at, w->parent, true);
    for (uint32_t k = 0; k < e->n; k++) {
        const ast *sweep = e->kid[k];
        if (sweep->kind != AST_SWEEP)
            continue;
        walk(w, sweep->kid[1]);
        for (uint32_t i = 0; i < sweep->kid[0]->n; i++)
            local_add(w, CDL_IS_SWEEP, sweep->kid[0]->kid[i]);
    }
    for (uint32_t k = 0; k < e->n; k++)
        if (e->kid[k]->kind != AST_SWEEP)
            walk_statement(w, e->kid[k]);
    w->parent = was;
    w->locals.n = had;
    w->results = before;
}

static void walk_binds(walker *w, const ast *list, cdl_symbol_kind kind)
{
    for (uint32_t k = 0; k < list->n; k++) {
        walk_kids(w, list->kid[k], 0);
        if (list->kid[k]->name)
            local_add(w, kind, list->kid[k]);
    }
}

static void walk_statement(walker *w, const ast *e)
{
    switch (e->kind) {
    case AST_ERROR:
        walk_words(w, e->at);
        break;
    case AST_MODEL:
        break; /* before all others */
    case AST_USE:
        use_add(w, e->name_at, known_get(w->x, sym_key(e)), true);
        break;
    case AST_FN:
        walk_named(w, e);
        walk_fn(w, e);
        break;
    case AST_LET:
        if (w->parent >= 0)
            walk_binds(w, e->kid[0], CDL_IS_LET);
        else
            walk_declared(w, e->kid[0]);
        break;
    case AST_PARAM:
        walk_declared(w, e->kid[0]);
        break;
    case AST_MEASURE:
        walk_binds(w, e->kid[0], CDL_IS_MEASURE);
        break;
    case AST_RUN:
        walk_run(w, e);
        break;
    case AST_PLOT:
        walk(w, e->kid[0]);
        walk_opt(w, e->kid[1]);
        walk_block(w, e->kid[2]);
        break;
    case AST_SAVE:
        walk(w, e->kid[0]);
        walk_block(w, e->kid[1]);
        break;
    case AST_EXPERIMENT:
        walk_experiment(w, e);
        break;
    case AST_SET:
        walk(w, e->kid[1]);
        break;
    default:
        walk_kids(w, e, 0);
        break;
    }
}

/* ---- the text ---- */

static int by_place(const occurrence *a, const occurrence *b)
{
    if (a->at.begin != b->at.begin)
        return a->at.begin < b->at.begin ? -1 : 1;
    return 0;
}

/* merge sort: stable, and no recursion into libc with pointers of ours */
static void uses_sort(arena *a, occurrence *x, size_t n)
{
    occurrence *to = arena_array(a, occurrence, n ? n : 1);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t mid = at + width < n ? at + width : n, end = at + 2 * width < n ? at + 2 * width : n;
            for (size_t i = at, j = mid, k = at; k < end; k++)
                to[k] = i < mid && (j >= end || by_place(&x[i], &x[j]) <= 0) ? x[i++] : x[j++];
        }
        memcpy(x, to, n * sizeof *x);
    }
}

/* definitions of the text; a comment before let and param documents their items */
static void declare_definitions(walker *w, const ast *file)
{
    module *m = w->s->main;
    for (uint32_t k = 0; k < file->n; k++) {
        const ast *e = file->kid[k];
        const ast *list = e->kind == AST_LET || e->kind == AST_PARAM ? e->kid[0] : NULL;
        for (uint32_t i = 0; list && i < list->n; i++) {
            const def *d = list->kid[i]->name ? module_find(m, list->kid[i]->name) : NULL;
            if (d && d->at == list->kid[i])
                declare(w, e->kind == AST_LET ? CDL_IS_LET : CDL_IS_PARAM, d->at, e);
        }
    }
    for (size_t k = 0; k < m->order.n; k++)
        if (m->order.at[k]->at && m->order.at[k]->at->at.file == file->at.file)
            def_symbol(w, m->order.at[k]);
}

symbols *session_symbols(session *s)
{
    const ast *file = s->main->file;
    if (!file || (s->symbols && s->symbols->file == file))
        return file ? s->symbols : NULL;
    symbols *x = arena_make(s->a, symbols);
    x->file = file;
    x->known.a = s->a;
    walker w = { .s = s, .x = x, .parent = -1 };
    declare_definitions(&w, file);
    for (uint32_t k = 0; k < file->n; k++)
        if (file->kid[k]->kind == AST_MODEL)
            walk_model(&w, file->kid[k]);
    for (uint32_t k = 0; k < file->n; k++)
        walk_statement(&w, file->kid[k]);
    uses_sort(s->tmp, x->uses.at, x->uses.n);
    s->symbols = x;
    return x;
}

const occurrence *symbols_at(const symbols *x, size_t byte)
{
    size_t lo = 0, hi = x->uses.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (x->uses.at[mid].at.begin <= byte)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* just after a name counts too */
    const occurrence *o = lo ? &x->uses.at[lo - 1] : NULL;
    return o && byte <= o->at.end ? o : NULL;
}

/* ---- what is in force at a place ---- */

static bool holds(const ast *e, size_t byte)
{
    return e->at.begin <= byte && byte <= e->at.end;
}

/* The k-th statement of a body: one with an unclosed brace extends to the next one, or to the end. */
static bool statement_holds(const session *s, const ast *body, uint32_t k, size_t byte)
{
    const ast *e = body->kid[k];
    const source *src = s->d->sources.at[e->at.file];
    bool closed = e->at.end > e->at.begin && src->text[e->at.end - 1] == '}';
    if (holds(e, byte))
        return !(closed && byte == e->at.end);
    return !closed && e->at.end < byte && (k + 1 == body->n || byte < body->kid[k + 1]->at.begin);
}

/* indices and arguments of what surrounds the place */
static void locals_at(const symbols *x, arena *a, const ast *e, size_t byte, name_scope *out)
{
    if (!e || !holds(e, byte))
        return;
    for (uint32_t k = 0; k < e->n; k++) {
        const ast *kid = e->kid[k];
        if (!kid)
            continue;
        const ast *list = kid->kind == AST_LIST && k == 0 ? kid : NULL;
        for (uint32_t i = 0; list && i < list->n; i++) {
            int number = list->kid[i] ? known_get(x, sym_key(list->kid[i])) : -1;
            if (number >= 0 && x->all.at[number].local)
                *vec_push(a, &out->locals) = number;
        }
        int number = known_get(x, sym_key(kid));
        if (number >= 0 && x->all.at[number].local)
            *vec_push(a, &out->locals) = number;
        locals_at(x, a, kid, byte, out);
    }
}

/* the statements of a body that lie before a place: runs, measures, swept names */
static void scope_before(session *s, const symbols *x, const ast *body, size_t byte, name_scope *out,
                         walker *w)
{
    for (uint32_t k = 0; k < body->n; k++) {
        const ast *e = body->kid[k];
        bool before = e->at.end < byte;
        if (e->kind == AST_EXPERIMENT && statement_holds(s, body, k, byte))
            scope_before(s, x, e, byte, out, w);
        if (e->kind == AST_RUN && before) {
            home m = path_model_quietly(w, s->main, e->kid[0]);
            out->results = m.decl;
            out->of = m.in;
        }
        const ast *list = e->kind == AST_MEASURE && before ? e->kid[0]
                          : e->kind == AST_SWEEP           ? e->kid[0]
                                                           : NULL;
        if (e->kind == AST_LET && before && body != x->file)
            list = e->kid[0];
        for (uint32_t i = 0; list && i < list->n; i++) {
            int number = known_get(x, sym_key(list->kid[i]));
            if (number >= 0)
                *vec_push(s->tmp, &out->locals) = number;
        }
        int named = e->kind == AST_RUN && e->name && before ? known_get(x, sym_key(e)) : -1;
        if (named >= 0)
            *vec_push(s->tmp, &out->locals) = named;
    }
}

void scope_at(session *s, size_t byte, name_scope *out)
{
    *out = (name_scope){ 0 };
    symbols *x = session_symbols(s);
    if (!x)
        return;
    walker w = { .s = s, .x = x, .parent = -1, .silent = true };
    for (uint32_t k = 0; k < x->file->n; k++)
        if (x->file->kid[k]->kind == AST_MODEL && statement_holds(s, x->file, k, byte))
            out->model = x->file->kid[k];
    if (!out->model)
        scope_before(s, x, x->file, byte, out, &w);
    locals_at(x, s->tmp, x->file, byte, out);
}

static walker scope_walker(session *s, const name_scope *in)
{
    walker w = { .s = s, .x = session_symbols(s), .parent = -1, .silent = true };
    if (in->model)
        w.model = (home){ in->model, s->main };
    w.results = (home){ in->results, in->of };
    for (size_t k = 0; k < in->locals.n; k++)
        *vec_push(s->tmp, &w.locals) = in->locals.at[k];
    return w;
}

static void put_model(walker *w, home m, put_symbol put, void *ud)
{
    model_collect(w, m, known_get(w->x, sym_key(m.decl)));
    for (size_t k = 0; k < w->x->all.n; k++) {
        symbol y = w->x->all.at[k];
        if (y.model == m.decl && !y.local)
            put(ud, &y);
    }
}

static void put_word(walker *w, cdl_symbol_kind kind, const char *name, put_symbol put, void *ud)
{
    (void)w;
    symbol y = { .kind = kind, .name = name, .parent = -1 };
    put(ud, &y);
}

static void put_module(walker *w, const module *m, put_symbol put, void *ud)
{
    for (size_t k = 0; k < m->order.n; k++) {
        int number = def_symbol(w, m->order.at[k]);
        if (number < 0)
            continue;
        symbol y = w->x->all.at[number];
        put(ud, &y);
    }
    for (size_t k = 0; k < m->open.n; k++)
        put_module(w, m->open.at[k], put, ud);
}

static void put_results(walker *w, int of, put_symbol put, void *ud)
{
    for (const char *const *p = result_list(of); *p; p++)
        put_word(w, CDL_IS_RESULT, *p, put, ud);
}

void scope_names(session *s, const name_scope *in, put_symbol put, void *ud)
{
    if (!session_symbols(s))
        return;
    walker w = scope_walker(s, in);
    for (size_t k = w.locals.n; k-- > 0;) {
        symbol y = w.x->all.at[w.locals.at[k]];
        put(ud, &y);
    }
    home m = w.model.decl ? w.model : w.results;
    if (m.decl)
        put_model(&w, m, put, ud);
    if (!w.model.decl && m.decl)
        put_results(&w, OF_RUN, put, ud);
    put_module(&w, s->main, put, ud);
    for (int k = 0; constants[k]; k++)
        put_word(&w, CDL_IS_CONSTANT, constants[k], put, ud);
    for (const builtin *b = builtin_list; b->name; b++)
        put_word(&w, CDL_IS_BUILTIN, b->name, put, ud);
    for (int k = 0; k < OP_COUNT; k++)
        if (op_builtin[k].name && builtin_find(op_builtin[k].name))
            put_word(&w, CDL_IS_BUILTIN, op_builtin[k].name, put, ud);
    for (const builtin *const *list = session_builtins; *list && !w.model.decl; list++)
        for (const builtin *b = *list; b->name; b++)
            put_word(&w, CDL_IS_BUILTIN, b->name, put, ud);
}

/* words and dots of an object, brackets passed over */
static int object_find(walker *w, const char *p, size_t len)
{
    lexeme *lex;
    size_t n = lex_all(w->s->tmp, p, len, &lex);
    int last = -1, depth = 0;
    for (size_t k = 0; k < n; k++) {
        char c = p[lex[k].begin];
        if (c == '[' || c == '(')
            depth++;
        else if (c == ']' || c == ')')
            depth--;
        if (depth || lex[k].kind != LEX_NAME)
            continue;
        sym name = sym_of(w->s->names, p + lex[k].begin, lex[k].end - lex[k].begin);
        bool dot = k && p[lex[k - 1].begin] == '.';
        last = dot ? thing_member(w, thing_of_symbol(w, last), name) : name_find(w, name);
    }
    return last;
}

const symbol *scope_find(session *s, const name_scope *in, const char *p, size_t len)
{
    if (!session_symbols(s))
        return NULL;
    walker w = scope_walker(s, in);
    int k = object_find(&w, p, len);
    return k >= 0 ? &w.x->all.at[k] : NULL;
}

void scope_members(session *s, const name_scope *in, const char *p, size_t len, put_symbol put, void *ud)
{
    if (!session_symbols(s))
        return;
    walker w = scope_walker(s, in);
    thing t = thing_of_symbol(&w, object_find(&w, p, len));
    if (t.used)
        put_module(&w, t.used, put, ud);
    if (t.model.decl) {
        put_model(&w, t.model, put, ud);
        if (!in->model)
            put_results(&w, OF_RUN, put, ud);
    }
    if (t.result >= 0)
        put_results(&w, t.result, put, ud);
}

void model_params(session *s, const symbol *of, put_symbol put, void *ud)
{
    symbols *x = session_symbols(s);
    if (!x || !of || of->kind != CDL_IS_MODEL)
        return;
    walker w = { .s = s, .x = x, .parent = -1, .silent = true };
    home m = { of->decl, of->in };
    model_collect(&w, m, -1);
    for (size_t k = 0; k < x->all.n; k++) {
        symbol y = x->all.at[k];
        if (y.model == m.decl && y.kind == CDL_IS_PARAM)
            put(ud, &y);
    }
}

/* ---- statements by place ---- */

static const ast *statement_before(const session *s, const ast *body, size_t byte)
{
    uint32_t k = 0;
    while (k < body->n && body->kid[k]->at.begin <= byte)
        k++;
    if (!k)
        return NULL;
    const ast *found = body->kid[k - 1];
    const ast *inner = found->kind == AST_MODEL || found->kind == AST_EXPERIMENT ? found
                       : found->kind == AST_FOR                                  ? found->kid[2]
                                                                                 : NULL;
    if (!inner)
        return found;
    /* After its brace, or inside before the first statement: no statement can continue here. */
    return statement_holds(s, body, k - 1, byte) ? statement_before(s, inner, byte) : NULL;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Does a statement that begins there still continue? It does if it has not ended since its brackets were
   closed. */
static bool statement_goes_on(session *s, const source *src, const ast *e, size_t to)
{
    lexeme *lex;
    const char *p = src->text + e->at.begin;
    size_t n = lex_all(s->tmp, p, to - e->at.begin, &lex);
    int depth = 0;
    for (size_t k = 0; k < n; k++) {
        char c = p[lex[k].begin];
        bool beyond = e->at.begin + lex[k].begin >= e->at.end;
        if (lex[k].kind == LEX_OP && (c == '(' || c == '[' || c == '{'))
            depth++;
        else if (lex[k].kind == LEX_OP && (c == ')' || c == ']' || c == '}'))
            depth--;
        if (beyond && (depth < 0 || (depth == 0 && (lex[k].kind == LEX_NEWLINE || c == ';'))))
            return false;
    }
    return true;
}

size_t statement_begin_at(session *s, size_t byte)
{
    const ast *file = s->main->file;
    const source *src = s->d->sources.at[file->at.file];
    const ast *e = statement_before(s, file, byte);
    size_t word = byte;
    while (word && in_name(src->text[word - 1]))
        word--;
    return e && e->at.begin < word && statement_goes_on(s, src, e, word) ? e->at.begin : word;
}
