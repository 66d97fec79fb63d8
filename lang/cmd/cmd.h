/* cmd: declarations shared by the files of the command. It uses the library only through cdl.h. */
#ifndef CDL_CMD_H
#define CDL_CMD_H
#include <stdio.h>
#include "cdl.h"

typedef struct options {
    /* -p name=value */
    const char **param, **value;
    size_t nparam;
    /* options of the session, as cdl_set takes them */
    const char **set, **to;
    size_t nset;
    const char **file;
    size_t nfile;
    int json, check, wellposed, help;
    double within;     /* diff: the relative difference that is allowed */
    const char *model; /* verify: the file of the model; NULL: by the manifest */
} options;

/* A session that writes to standard output and standard error, with the options set; NULL when there is no
   memory or an option was refused. */
cdl *session_open(const options *o, cdl_status *status);
void session_callbacks(cdl *s); /* standard output and standard error again */
void session_silent(cdl *s);    /* neither, interrupts still */
/* fprintf for text shown to people: characters that control a terminal are made visible */
void tell(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The name that is closest to `got`, or NULL; names end with NULL. */
const char *closest(const char *got, const char *const *names);
void interrupts_interactive(void); /* from now on interrupts never end the program */
void interrupts_clear(void);
int interrupts_seen(void);         /* since they were cleared */
int interrupts_callback(void *ud); /* the same, for the library */
int interrupts_terminate(void);    /* one of them was meant to end the program */
int repl(const options *o);
int repro_main(const options *o);
int diff_main(const options *o);
int verify_main(const options *o);
int lsp_main(const options *o);
/* ---- repro.c ---- */
char *file_read(const char *path, size_t *len);   /* NULL: not a file that can be read; freed by the caller */
char *path_of(const char *dir, const char *name); /* freed by the caller */
struct json_t;
const char *json_text(const struct json_t *o, const char *key); /* "" when there is none */
int stays_below(const char *path);
int colour_wanted(void); /* the terminal can, and NO_COLOR is not set */
#endif
