/* load: files and what they bring into each other with `use`.  A module is a file that was read: its tree and
   the names it defines. */
#ifndef CDL_LOAD_H
#define CDL_LOAD_H
#include "value/eval.h"

typedef enum { DEF_MODEL, DEF_FN, DEF_LET, DEF_PARAM, DEF_MODULE, DEF_RUN } def_kind;
typedef struct module module;

typedef struct def {
    def_kind kind;
    sym name;
    const ast *at;     /* MODEL, FN, BIND, PARAM_ITEM, USE or RUN */
    module *in, *used; /* where it stands; DEF_MODULE: what it stands for */
    enum { DEF_FRESH, DEF_BUSY, DEF_READY } state;
    value v;
} def;

struct module {
    scope base;       /* its definitions, then those of modules brought in without `as` */
    const char *path; /* as opened; "<stdin>" and the like for texts */
    const ast *file;  /* FILE node of the last text */
    map64 defs;       /* name -> def */
    vec(def *) order;
    vec(module *) open;
    enum { MODULE_LOADING, MODULE_READY, MODULE_BAD } state;
    module *from; /* who asked for it: the chain of a cycle */
};

typedef struct modules {
    arena *a;
    symtab *names;
    diags *d;
    scope *outer; /* what every module sees */
    /* of a module's scope; values are the session's matter */
    look (*find)(scope *s, evaluator *ev, sym name, span at, value *out);
    void (*shadow)(void *ud, def *old); /* told when a definition is replaced; may be NULL */
    void *ud;
    const char *stdlib; /* directory, or NULL or "" for the ones built in */
    bool replace;       /* a new definition takes the place of the old one (interactive) */
    vec(module *) all;
} modules;

/* An empty module for texts. */
module *module_new(modules *l, const char *path);
/* Parses a text into the module and collects its definitions, bringing in what it uses. */
void module_read(modules *l, module *m, const char *name, const char *text, size_t len);
/* The file's bytes; false after a report at `at`. */
bool load_bytes(modules *l, const char *path, span at, const char **text, size_t *len);
/* The file parsed into the module; false when it could not be read. */
bool module_read_file(modules *l, module *m, const char *path, span at);
def *module_find(const module *m, sym name); /* its own, then open ones; NULL */
def *module_define(modules *l, module *m, def_kind kind, sym name, const ast *at, span name_at);
void module_names(scope *s, near *n);
#endif
