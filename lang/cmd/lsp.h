/* lsp: declarations shared by the files of the language server.  lsp.c reads and writes messages,
   lsp_text.c keeps the documents, lsp_answer.c answers requests, lsp_files.c looks into other texts. */
#ifndef CDL_LSP_H
#define CDL_LSP_H
#include <jansson.h>
#include <stdbool.h>
#include "cmd.h"

/* A place whose column was counted: the next ones on a long line are counted from there. */
enum { COUNTED = 4 };
typedef struct counted {
    size_t line, byte, unit;
} counted;

/* A text that is open in the editor, as the editor last sent it. */
typedef struct document {
    char *uri, *path; /* path: NULL where the URI names no file */
    char *text;
    size_t len;
    size_t *line; /* where each line begins; lines end in \n, \r\n or \r */
    size_t nlines;
    counted known[COUNTED];
    int oldest;
    json_int_t version;
    cdl *session;  /* in which the text was checked; NULL: it changed since, or the session was given back */
    bool unsaid;   /* its diagnostics are to be sent */
    json_t *found; /* {"diagnostic", "title", "edit"} for each diagnostic that was found */
    unsigned used; /* when a request last needed it: the clock of the server */
} document;

typedef struct server {
    const options *o;
    char *root; /* the folder of the workspace, or NULL */
    document **doc;
    size_t ndoc;
    size_t bytes; /* of all texts */
    unsigned clock;
    bool initialized, shut, done;
    int code;
    /* what the client can show */
    bool markdown, hierarchical, label_offsets;
    bool may_yield, yielded; /* a check may be abandoned when a message arrives; it was */
    double began;
    json_t *asked; /* id of the current request */
} server;

/* ---- lsp.c ---- */
enum {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603
};
enum { RPC_EARLY = -32002, RPC_FAILED = -32803 };
void send_result(server *v, json_t *result); /* takes it; NULL: null */
void send_error(server *v, int code, const char *message);
void send_note(server *v, const char *method, json_t *params); /* takes them */
bool input_waits(void);                                        /* more than what was read */

/* ---- lsp_text.c ---- */
document *document_find(const server *v, const char *uri);
/* A text that the editor has not opened; NULL: there is no memory.  The caller frees it. */
document *document_loose(const char *path, const char *text, size_t len);
void document_free(document *d);
/* Reports what cannot be kept to the client. */
void document_open(server *v, const char *uri, const char *text, size_t len, json_int_t version);
void document_close(server *v, document *d);
void document_replace(server *v, document *d, size_t begin, size_t end, const char *text, size_t len);
size_t document_byte(const document *d, size_t line, size_t unit); /* within the text, whatever is given */
size_t document_place(const document *d, const json_t *position);
json_t *document_position(document *d, size_t byte);
json_t *document_range(document *d, size_t begin, size_t end);
char *path_uri(const char *path);    /* freed by the caller */
char *uri_path(const char *uri);     /* so is this; NULL: it names no file */
json_t *text_json(const char *text); /* a string, whatever the bytes are */
/* The session that contains the current text; NULL: there is none (memory), or it was given up. */
cdl *document_session(server *v, document *d);
cdl *text_session(server *v, const document *d, const char *text, size_t len);
void documents_say(server *v);   /* sends diagnostics that are due */
void documents_stale(server *v); /* a file was saved that they may use: all are checked again */
void documents_free(server *v);

/* ---- lsp_files.c ---- */
/* Places in other texts that name what `home` declares at that byte: an object of lists of ranges by URI.
   other: a new name for it, or NULL; *wrong: why that will not do. */
json_t *uses_elsewhere(server *v, const document *home, size_t byte, const char *name, const char *other,
                       const char **wrong);

/* ---- lsp_answer.c ---- */
json_t *capabilities(void);
/* Whether there is such a request; it was answered. */
bool answer_request(server *v, const char *method, const json_t *params);
json_t *diagnostics_json(document *d, cdl *s);
#endif
