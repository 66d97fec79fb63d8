/* load: files and their imports with `use`. A module is a file that was read: its tree and the names it
   defines. */
#ifndef CDL_LOAD_H
#define CDL_LOAD_H
#include "io/confine.h"
#include "value/eval.h"

typedef enum { DEF_MODEL, DEF_FN, DEF_LET, DEF_PARAM, DEF_MODULE, DEF_RUN } def_kind;
typedef struct module module;

typedef struct def {
    def_kind kind;
    sym name;
    const ast *at;     /* MODEL, FN, BIND, PARAM_ITEM, USE or RUN */
    module *in, *used; /* its place; DEF_MODULE: the module that it names */
    enum { DEF_FRESH, DEF_BUSY, DEF_READY } state;
    value v;
} def;

/* a file of numbers that a model of the module read */
typedef struct data_file {
    const char *path, *text;
    size_t len;
} data_file;

struct module {
    scope base;         /* its definitions, then those of modules imported without `as` */
    const char *path;   /* as shown; "<stdin>" and the like for texts */
    file_root root;     /* all that it uses lies below */
    const char *within; /* its own path there; "" for texts */
    const ast *file;    /* FILE node of the last text */
    map64 defs;         /* name -> def */
    vec(def *) order;
    vec(module *) open;
    vec(data_file) data;
    enum { MODULE_LOADING, MODULE_READY, MODULE_BAD } state;
    module *from; /* the module that uses it: the chain of a cycle */
};

typedef struct modules {
    arena *a;
    symtab *names;
    diags *d;
    scope *outer; /* what every module sees */
    /* of a module's scope; values are the session's matter */
    look (*find)(scope *s, evaluator *ev, sym name, span at, value *out);
    void (*shadow)(void *ud, def *old); /* called when a definition is replaced; may be NULL */
    void *ud;
    const char *stdlib; /* directory, or NULL or "" for the ones built in */
    bool anywhere;      /* files may lie outside of the folder of the model */
    bool replace;       /* a new definition takes the place of the old one (interactive) */
    vec(module *) all;
} modules;

/* Folders of the library: one or two, in the order in which they are searched. */
size_t library_folders(const modules *l, const char *dirs[2]);
/* An empty module for texts. */
module *module_new(modules *l, const char *path);
/* Parses a text into the module and collects its definitions, importing the modules that it uses. */
void module_read(modules *l, module *m, const char *name, const char *text, size_t len);
/* The bytes of a file that `at` names; shown: its path in messages.  False after a report. */
bool load_bytes(modules *l, const file_root *in, const char *name, const char *shown, span at,
                const char **text, size_t *len);
/* The user named this module: files that it uses must be below its folder. */
void module_place(modules *l, module *m, const char *path);
/* The file that the user named, parsed into the module; false when it could not be read. */
bool module_read_file(modules *l, module *m, const char *path, span at);
/* A file relative to the one that names it: its path in messages, and its path below the folder of the
   module. */
const char *module_beside(arena *a, const module *m, const char *name, const char **within);
module *module_of(scope *s); /* whose scope it is, or NULL */
/* Notes that a model of the module read that file. */
void module_data(arena *a, module *m, const char *path, const char *bytes, size_t len);
def *module_find(const module *m, sym name); /* its own, then open ones; NULL */
def *module_define(modules *l, module *m, def_kind kind, sym name, const ast *at, span name_at);
void module_names(scope *s, near *n);
#endif
