/* session_embed: for programs that embed the library: statements whose text is not kept, experiments by
   name, pictures in memory, definitions of a text, parameters and initial values of models. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "program/system.h"
#include "session.h"
#include "syntax/parse.h"

/* ---- statements ---- */

static bool defines(const ast *e)
{
    switch (e->kind) {
    case AST_USE:
    case AST_MODEL:
    case AST_FN:
    case AST_LET:
    case AST_PARAM:
    case AST_EXPERIMENT:
        return true;
    default:
        return e->kind == AST_RUN && e->name;
    }
}

static void execute_passing(session *s, const char *text_, size_t len)
{
    uint32_t file = session_passing(s, "<statement>", text_, len);
    const ast *tree = parse_source(s->tmp, s->names, s->d, file);
    for (uint32_t k = 0; k < tree->n; k++) {
        if (!defines(tree->kid[k]))
            continue;
        diag *e = diag_error(s->d, DIAG_UNKNOWN_STATEMENT, tree->kid[k]->at,
                             "a definition is not allowed here, because this text is not kept");
        diag_hint(s->d, e, "give it with cdl_run_text");
    }
    if (s->d->errors) {
        session_flush(s);
        return;
    }
    s->main->file = tree;
    session_finish_text(s, true);
}

cdl_status cdl_execute(cdl *s, const char *text_, size_t len)
{
    ENTER(s);
    execute_passing(s, text_, len);
    return s->tally.worst;
}

cdl_status cdl_experiment(cdl *s, const char *name)
{
    ENTER(s);
    near n = near_to(name);
    for (size_t k = s->embed.experiments.n; k > 0; k--) {
        const ast *e = s->embed.experiments.at[k - 1];
        near_try(&n, e->name);
        if (strcmp(e->name, name))
            continue;
        session_execute(s, e);
        session_flush(s);
        return s->tally.worst;
    }
    diag_near(s->d, diag_error(s->d, DIAG_UNKNOWN_NAME, SPAN_NONE, "unknown experiment '%s'", name), &n);
    session_flush(s);
    return s->tally.worst;
}

cdl_status cdl_reset(cdl *s)
{
    ENTER(s);
    session_forget(s);
    return CDL_OK;
}

/* ---- pictures ---- */

static void folder_remove(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

/* the last picture, or else the last file */
static const char *picture_of(const session *s)
{
    const char *found = NULL;
    bool picture = false;
    for (size_t k = 0; k < s->tally.made.n; k++) {
        const made_file *m = &s->tally.made.at[k];
        bool is = !strcmp(m->kind, "picture");
        if (is || !picture)
            found = m->path;
        picture = picture || is;
    }
    return found;
}

cdl_status cdl_picture(cdl *s, const cdl_run *given, const char *statements, const void **bytes, size_t *n)
{
    static const arena_pos empty = { NULL, 0 };
    *bytes = NULL;
    *n = 0;
    ENTER(s);
    const char *where = getenv("TMPDIR"), *output = s->option[OPTION_OUTPUT];
    char *folder = arena_printf(s->answer, "%s/cdl-XXXXXX", where && *where ? where : "/tmp"), *out = NULL;
    run *last = s->last;
    if (!mkdtemp(folder)) {
        diag_error(s->d, DIAG_IO, SPAN_NONE, "a folder for pictures could not be created in '%s'",
                   where && *where ? where : "/tmp");
        session_flush(s);
        return s->tally.worst;
    }
    union {
        const cdl_run *in;
        run *out;
    } of = { .in = given };
    session_tally before = s->tally;
    memset(&s->tally.made, 0, sizeof s->tally.made);
    s->option[OPTION_OUTPUT] = folder;
    if (given)
        s->last = of.out;
    execute_passing(s, statements, strlen(statements));
    s->last = last;
    s->option[OPTION_OUTPUT] = output;
    const char *name = picture_of(s);
    file_root in = { folder, false };
    int error = name ? file_whole(s->tmp, &in, name, (size_t)1 << 30, &out, n) : 0;
    s->tally.made = before.made;
    folder_remove(folder);
    arena_release(s->answer, empty);
    if (s->tally.worst == CDL_OK && (!out || error)) {
        diag_error(s->d, DIAG_IO, SPAN_NONE, "the statements wrote no file");
        session_flush(s);
    }
    *bytes = out;
    return s->tally.worst;
}

/* ---- definitions ---- */

static const char *def_kind_text(def_kind k)
{
    static const char *const kinds[] = { [DEF_MODEL] = "model", [DEF_FN] = "fn",         [DEF_LET] = "let",
                                         [DEF_PARAM] = "param", [DEF_MODULE] = "module", [DEF_RUN] = "run" };
    return kinds[k];
}

cdl_status cdl_definitions(cdl *s, const cdl_definition **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    ENTER(s);
    size_t all = s->main->order.n + s->embed.experiments.n;
    cdl_definition *list = arena_array(s->tmp, cdl_definition, all + 1);
    for (size_t k = 0; k < s->main->order.n; k++) {
        const def *d = s->main->order.at[k];
        if (module_find(s->main, d->name) != d)
            continue; /* replaced */
        const char *doc = d->at && d->at->doc ? d->at->doc : "";
        list[(*n)++] = (cdl_definition){ def_kind_text(d->kind), d->name, doc };
    }
    for (size_t k = 0; k < s->embed.experiments.n; k++) {
        const ast *e = s->embed.experiments.at[k];
        list[(*n)++] = (cdl_definition){ "experiment", e->name, e->doc ? e->doc : "" };
    }
    *out = list;
    return CDL_OK;
}

/* ---- numbers of models ---- */

static const char *unit_text(session *s, dim u)
{
    text t = { .a = s->tmp };
    if (!u.any)
        dim_text(&t, u);
    return u.any ? "" : t.at;
}

static bool name_known(session *s, const ast *decl, const char *name, const char *what)
{
    if (is_param_of(decl, sym_str(s->names, name)))
        return true;
    near close = near_to(name);
    near_params(decl, &close);
    diag_near(
        s->d,
        diag_error(s->d, DIAG_UNKNOWN_NAME, SPAN_NONE, "model '%s' has no %s '%s'", decl->name, what, name),
        &close);
    return false;
}

const built *session_model_numbers(session *s, const char *named, const model_request *want, double **param)
{
    ast name = { .kind = AST_NAME, .at = SPAN_NONE, .name = sym_str(s->names, named) };
    scope *outer = &s->main->base;
    const ast *decl = session_model(s, &name, &outer);
    bool good = decl != NULL;
    for (size_t k = 0; decl && k < want->ngiven; k++)
        good = name_known(s, decl, want->given[k].name, "parameter") && good;
    for (size_t k = 0; decl && k < want->ninput; k++)
        good = name_known(s, decl, want->input[k], "input") && good;
    return good ? session_program(s, decl, outer, want, param) : NULL;
}

/* messages may refer to models that were in error before */
static cdl_status numbers_failed(session *s)
{
    session_flush(s);
    return s->tally.worst ? s->tally.worst : CDL_MODEL;
}

cdl_status cdl_parameters(cdl *s, const char *named, const cdl_numbers *given, size_t ngiven,
                          const cdl_quantity **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    ENTER(s);
    double *param;
    const built *of = session_model_numbers(s, named, &(model_request){ given, ngiven, NULL, 0, true },
                                            &param);
    if (!of)
        return numbers_failed(s);
    const mclass *c = of->m->classes.at[0];
    cdl_quantity *list = arena_array(s->tmp, cdl_quantity, c->params.n + 1);
    for (size_t k = 0; k < c->params.n; k++) {
        const mparam *p = c->params.at[k];
        double *fixed = arena_array(s->tmp, double, 1);
        *fixed = p->fixed;
        cdl_quantity *x = &list[(*n)++];
        *x = (cdl_quantity){ .name = p->name,
                             .doc = p->doc ? p->doc : "",
                             .unit = unit_text(s, p->unit),
                             .at = p->offset >= 0 ? param + p->offset : fixed,
                             .lo = p->lo,
                             .hi = p->hi,
                             .n = p->offset >= 0 ? (size_t)p->size : 1,
                             .rank = p->rank,
                             .structural = p->structural };
        x->given = !isnan(x->at[0]);
        for (int i = 0; i < p->rank; i++) {
            x->shape[i] = (size_t)p->n[i];
            x->first[i] = 1;
        }
    }
    *out = list;
    session_flush(s);
    return s->tally.worst;
}

int dof_shape(const mdof *d, bool rates, size_t shape[CDL_AXES], int first[CDL_AXES])
{
    int rank = 0, parts = d->rotation && !rates ? 2 : d->comp != 0;
    for (int k = 0; k < d->ndim && rank < CDL_AXES; k++, rank++) {
        shape[rank] = (size_t)d->n[k];
        if (first)
            first[rank] = d->lo[k];
    }
    for (int k = 0; k < parts && rank < CDL_AXES; k++, rank++) {
        shape[rank] = (size_t)d->comp;
        if (first)
            first[rank] = 1;
    }
    return rank;
}

typedef struct {
    session *s;
    vec(named_dof) list;
} dof_names;

/* names of dofs in parts: big.p, small[1].p */
static void dofs_of(dof_names *l, const mclass *c, int32_t inst, const char *before)
{
    arena *a = l->s->tmp;
    for (size_t k = 0; k < c->dofs.n; k++) {
        const mdof *d = c->dofs.at[k];
        *vec_push(a, &l->list) = (named_dof){ arena_printf(a, "%s%s", before, d->name), d,
                                              c->qbase + inst * c->qsize + d->offset };
    }
    for (size_t k = 0; k < c->parts.n; k++) {
        const mpart *p = c->parts.at[k];
        for (int32_t i = 0; i < (p->indexed ? p->n : 1); i++)
            dofs_of(l, p->of, p->first + inst * p->per + i,
                    p->indexed ? arena_printf(a, "%s%s[%d].", before, p->name, p->lo + i)
                               : arena_printf(a, "%s%s.", before, p->name));
    }
}

void session_dofs(session *s, const model *m, named_dof **out, size_t *n)
{
    dof_names l = { .s = s };
    dofs_of(&l, m->classes.at[0], 0, "");
    *out = l.list.at;
    *n = l.list.n;
}

/* rotations begin where their bases are, and turn at the rates that they have there */
static cdl_quantity dof_quantity(session *s, const named_dof *x, const system_t *of, const double *q,
                                 const double *v)
{
    const mdof *d = x->dof;
    size_t turns = d->rotation ? (size_t)d->size / 3 : 0;
    cdl_quantity made = { .name = x->name,
                          .doc = d->doc ? d->doc : "",
                          .unit = unit_text(s, d->unit),
                          .at = turns ? of->base + 3 * (size_t)x->at : q + x->at,
                          .rate = v + x->at,
                          .lo = -INFINITY,
                          .hi = INFINITY,
                          .n = turns ? 9 * turns : (size_t)d->size,
                          .nrate = (size_t)d->size,
                          .given = 1 };
    made.rank = dof_shape(d, false, made.shape, made.first);
    return made;
}

cdl_status cdl_initial(cdl *s, const char *named, const cdl_numbers *given, size_t ngiven,
                       const cdl_quantity **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    ENTER(s);
    double *param;
    named_dof *dof;
    const char *why = NULL;
    span at = SPAN_NONE;
    const built *of = session_model_numbers(s, named, &(model_request){ given, ngiven, NULL, 0, false },
                                            &param);
    if (!of)
        return numbers_failed(s);
    if (of->p->nq == 0)
        return CDL_OK;
    system_t *x = system_new(s->tmp, of->p, param, STORE_SPARSE, &why, &at);
    if (!x) {
        diag_error(s->d, DIAG_NOT_SUPPORTED, at, "%s", why);
        return numbers_failed(s);
    }
    double *q = arena_array(s->tmp, double, of->p->nq), *v = arena_array(s->tmp, double, of->p->nq);
    system_start(x, q, v);
    session_dofs(s, of->m, &dof, n);
    cdl_quantity *list = arena_array(s->tmp, cdl_quantity, *n + 1);
    for (size_t k = 0; k < *n; k++)
        list[k] = dof_quantity(s, &dof[k], x, q, v);
    system_close(x);
    *out = list;
    session_flush(s);
    return s->tally.worst;
}
