/* session_topics: what `:help functions`, `:help std.planar` and `:examples` list.  The lists are those that
   the evaluator, completion and hover read; files of the library and examples are found in their folders. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "session.h"

enum { COLUMN = 34, LINE_MOST = 118 };

/* a name or a form in the first column, what it is in the second */
static void put_entry(text *t, const char *form, const char *what)
{
    int more = 0; /* continuation bytes of a character take no room */
    for (const char *p = form; *p; p++)
        more += ((unsigned char)*p & 0xc0) == 0x80;
    text_printf(t, "    %-*s %s\n", COLUMN + more, form, what ? what : "");
}

/* ---- the lists of the language ---- */
enum { BEGINS_NO, BEGINS_TOP, BEGINS_MODEL, BEGINS_BOTH };
static const struct {
    const char *name, *form, *what;
    int begins;
} keywords[] = {
#define X(id, word, where, example, meaning) { word, example, meaning, BEGINS_##where },
#include "syntax/keywords.def"
#undef X
};
static const struct {
    const char *form, *what;
} laws[] = {
#define X(id, name, role, args, meaning) { name "(" args ")", meaning },
#include "model/laws.def"
#undef X
};

static void topic_statements(session *s, text *t)
{
    static const char *const heads[] = { "In expressions and inside statements:", "In a file:", "In a model:",
                                         "In both:" };
    (void)s;
    for (int where = BEGINS_BOTH; where >= BEGINS_NO; where--) {
        text_printf(t, "%s\n", heads[where]);
        for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++)
            if (keywords[k].begins == where)
                text_printf(t, "    %-12s %s\n%*s %s\n", keywords[k].name, keywords[k].what, 16, "",
                            keywords[k].form);
    }
}

static void put_functions(text *t, const char *head, const builtin *list)
{
    text_printf(t, "%s\n", head);
    for (; list->name; list++)
        put_entry(t, list->signature ? list->signature : list->name, list->doc);
}

static void topic_functions(session *s, text *t)
{
    (void)s;
    text_puts(t, "Of numbers:\n");
    for (int k = 0; k < OP_COUNT; k++)
        if (op_builtin[k].name && isalpha((unsigned char)*op_builtin[k].name))
            put_entry(t, op_builtin[k].signature ? op_builtin[k].signature : op_builtin[k].name,
                      op_builtin[k].doc);
    put_functions(t, "Of vectors, matrices, ranges and formulas:", builtin_list);
    put_functions(t, "Of results:", result_builtins);
    put_functions(t, "That write files:", output_builtins);
}

static void topic_backends(session *s, text *t)
{
    (void)s;
    for (size_t k = 0; backend_list[k]; k++)
        put_entry(t, backend_list[k]->name, backend_list[k]->doc);
    text_puts(t, "run ball for 3 with sweeping(h = 1e-3); :help sweeping lists its options\n");
}

static void topic_laws(session *s, text *t)
{
    (void)s;
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++)
        put_entry(t, laws[k].form, laws[k].what);
}

static void topic_units(session *s, text *t)
{
    size_t line = 0;
    const char *name;
    (void)s;
    text_puts(t, "A unit follows its number: 9.81 [m/s^2], 5 [mm]. Names, and those with common prefixes:\n");
    for (size_t k = 0; (name = unit_name(k)); k++) {
        size_t n = strlen(name) + 1;
        if (line + n > LINE_MOST)
            line = 0;
        text_printf(t, "%s%s", line ? " " : k ? "\n    " : "    ", name);
        line += n;
    }
    text_putc(t, '\n');
}

static void topic_results(session *s, text *t)
{
    static const char *const heads[] = { [OF_RUN] = "Of a run:",
                                         [OF_CONTACT] = "Of a constraint, floor.gap:",
                                         [OF_IMPACT] = "Of its impacts, floor.impacts.t:",
                                         [OF_POINTS] = "Of the points where it touches, floor.points.rn:",
                                         [OF_WIRE] = "Of a rod:",
                                         [OF_PAIR] = "Of the contacts of a rod, wire.pairs.gap:",
                                         [OF_PATH] = "Of a branch of equilibria, path.t:" };
    static const int of[] = { OF_RUN, OF_CONTACT, OF_IMPACT, OF_POINTS, OF_WIRE, OF_PAIR, OF_PATH };
    (void)s;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        text_printf(t, "%s\n", heads[of[k]]);
        for (const char *const *p = result_list(of[k]); *p; p++) {
            const char *doc = "";
            for (int own = of[k]; !*doc && own <= (of[k] == OF_RUN ? OF_LIMIT : of[k]); own++)
                doc = result_doc(own, *p);
            put_entry(t, *p, doc);
        }
    }
}

static void topic_options(session *s, text *t)
{
    (void)s;
#define CDL_OPTION_ROW(id, key, value, doc) put_entry(t, key, doc);
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
    text_puts(t, ":set OPTION VALUE; options of a backend: :help sweeping\n");
}

static void topic_errors(session *s, text *t)
{
    (void)s;
    for (int k = 0; k < DIAG_CODES; k++)
        put_entry(t, diag_code_name((diag_code)k), diag_code_help((diag_code)k));
}

/* ---- files ---- */
typedef vec(const char *) name_list;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* names of the .cdl files of a folder, without the ending */
static name_list files_of(session *s, const char *folder)
{
    name_list list = { 0 };
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        size_t n = strlen(e->d_name);
        if (n > 4 && *e->d_name != '.' && !strcmp(e->d_name + n - 4, ".cdl"))
            *vec_push(s->tmp, &list) = arena_strndup(s->tmp, e->d_name, n - 4);
    }
    if (dir)
        closedir(dir);
    if (list.n)
        qsort(list.at, list.n, sizeof *list.at, compare_names);
    return list;
}

/* the words behind the first ## of a file, up to the end of the line */
static const char *first_doc(session *s, const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "re");
    const char *found = "";
    for (int k = 0; f && !*found && k < 20 && fgets(line, sizeof line, f); k++)
        if (!strncmp(line, "## ", 3)) {
            line[strcspn(line, "\n")] = 0;
            found = arena_strdup(s->tmp, line + 3);
        }
    if (f)
        fclose(f);
    return found;
}

/* ---- examples ---- */
/* those of the source tree, else the installed ones */
static const char *example_nth(session *s, const char *prefix, size_t k, const char **path, const char **doc)
{
    static const char *const folders[] = { CDL_EXAMPLES_SRC, CDL_EXAMPLES_DIR };
    name_list list = { 0 };
    size_t n = strlen(prefix), in = 0;
    for (size_t i = 0; i < 2 && !list.n; i++)
        list = files_of(s, folders[in = i]);
    for (size_t i = 0; i < list.n; i++) {
        if (strncmp(list.at[i], prefix, n) || k-- > 0)
            continue;
        const char *where = arena_printf(s->tmp, "%s/%s.cdl", folders[in], list.at[i]);
        if (path)
            *path = where;
        if (doc)
            *doc = first_doc(s, where);
        return list.at[i];
    }
    return NULL;
}

static void topic_examples(session *s, text *t)
{
    const char *name, *doc;
    for (size_t k = 0; (name = example_nth(s, "", k, NULL, &doc)); k++)
        text_printf(t, "    %-20s %s\n", name, doc);
    text_puts(t, ":examples NAME loads one\n");
}

/* ---- modules of the library ---- */
static name_list library_names(session *s, const char **folder)
{
    const char *dirs[2];
    name_list list = { 0 };
    for (size_t k = 0, n = library_folders(&s->loaded, dirs); k < n && !list.n; k++)
        list = files_of(s, *folder = dirs[k]);
    return list;
}

static void topic_library(session *s, text *t)
{
    const char *folder = "";
    name_list list = library_names(s, &folder);
    for (size_t k = 0; k < list.n; k++) {
        const char *doc = first_doc(s, arena_printf(s->tmp, "%s/%s.cdl", folder, list.at[k])),
                   *colon = strchr(doc, ':');
        put_entry(t, arena_printf(s->tmp, "std.%s", list.at[k]), colon ? colon + 2 : doc);
    }
    text_puts(t, "use std.planar imports one; :help std.planar lists what it defines\n");
}

/* the first line of a text of several */
static const char *line_of(session *s, const char *doc)
{
    return doc ? arena_strndup(s->tmp, doc, strcspn(doc, "\n")) : "";
}

static const char *definition_form(session *s, const def *d)
{
    text t = { .a = s->tmp };
    text_puts(&t, d->name);
    if (d->kind != DEF_FN)
        return d->kind == DEF_MODEL ? arena_printf(s->tmp, "model %s", d->name) : t.at;
    for (uint32_t k = 0; k < d->at->kid[0]->n; k++)
        text_printf(&t, "%s%s", k ? ", " : "(", d->at->kid[0]->kid[k]->name);
    text_putc(&t, ')');
    return t.at;
}

static bool help_module(session *s, text *t, const char *name)
{
    const char *folder = "";
    name_list list = library_names(s, &folder);
    bool known = false;
    for (size_t k = 0; k < list.n; k++)
        known = known || !strcmp(list.at[k], name);
    if (!known)
        return false;
    const char *use = arena_printf(s->a, "use std.%s", name);
    module *m = module_new(&s->loaded, "<help>");
    module_read(&s->loaded, m, "<help>", use, strlen(use));
    if (!m->open.n)
        return false;
    text_printf(t, "%s\n", first_doc(s, arena_printf(s->tmp, "%s/%s.cdl", folder, name)));
    for (size_t k = 0; k < m->open.at[0]->order.n; k++) {
        const def *d = m->open.at[0]->order.at[k];
        put_entry(t, definition_form(s, d), line_of(s, d->at ? d->at->doc : NULL));
    }
    return true;
}

/* ---- topics ---- */
static const struct topic {
    const char *name, *what;
    void (*put)(session *s, text *t);
} topics[] = {
    { "statements", "statements of files and models", topic_statements },
    { "functions", "of numbers, vectors, results", topic_functions },
    { "backends", "methods that run a model", topic_backends },
    { "laws", "impact and friction", topic_laws },
    { "results", "results of a run", topic_results },
    { "units", "names of units", topic_units },
    { "std", "modules of the library", topic_library },
    { "options", "of the session", topic_options },
    { "errors", "kinds of errors", topic_errors },
    { "examples", "models to load and change", topic_examples },
};
enum { TOPICS = sizeof topics / sizeof *topics };

void topics_put(text *t)
{
    for (int k = 0; k < TOPICS; k++)
        put_entry(t, topics[k].name, topics[k].what);
}

bool topic_help(session *s, text *t, const char *name)
{
    if (!strcmp(name, "topics")) {
        topics_put(t);
        return true;
    }
    for (int k = 0; k < TOPICS; k++)
        if (!strcmp(topics[k].name, name)) {
            topics[k].put(s, t);
            return true;
        }
    return !strncmp(name, "std.", 4) && help_module(s, t, name + 4);
}

static const char *topic_nth(session *s, const char *prefix, size_t k)
{
    const char *folder = "";
    size_t n = strlen(prefix);
    for (int i = 0; i < TOPICS; i++)
        if (!strncmp(topics[i].name, prefix, n) && k-- == 0)
            return topics[i].name;
    name_list list = library_names(s, &folder);
    for (size_t i = 0; i < list.n; i++) {
        const char *name = arena_printf(s->tmp, "std.%s", list.at[i]);
        if (!strncmp(name, prefix, n) && k-- == 0)
            return name;
    }
    return NULL;
}

/* ---- for programs ---- */
const char *cdl_topic(cdl *s, const char *prefix, size_t k)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return NULL;
    }
    session_begin(s);
    return topic_nth(s, prefix, k);
}

const char *cdl_example(cdl *s, const char *prefix, size_t k, const char **path, const char **doc)
{
    if (s->broken || setjmp(s->oom)) {
        session_lost(s);
        return NULL;
    }
    session_begin(s);
    return example_nth(s, prefix, k, path, doc);
}
