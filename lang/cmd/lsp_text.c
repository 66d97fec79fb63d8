/* lsp_text: the documents that are open in the editor, their lines in UTF-16 units, and the sessions in which
   they were checked. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lsp.h"

enum {
    DOCUMENTS_MAX = 10000,
    BYTES_MAX = 512 << 20, /* of all texts */
    SESSIONS_MAX = 8,      /* texts that are kept checked */
};

/* ---- names ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* file:///a%20b -> /a b; NULL for other URIs */
char *uri_path(const char *uri)
{
    if (strncmp(uri, "file://", 7))
        return NULL;
    const char *p = strchr(uri + 7, '/'); /* behind the host */
    char *path = p ? malloc(strlen(p) + 1) : NULL;
    size_t n = 0;
    for (; path && *p; p++) {
        bool code = *p == '%' && hex(p[1]) >= 0 && hex(p[2]) >= 0;
        path[n++] = code ? (char)(16 * hex(p[1]) + hex(p[2])) : *p;
        p += code ? 2 : 0;
    }
    if (path)
        path[n] = 0;
    if (path && (memchr(path, 0, n) || !n)) {
        free(path);
        return NULL;
    }
    return path;
}

char *path_uri(const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    char *uri = malloc(3 * strlen(path) + 8);
    if (!uri)
        return NULL;
    size_t n = (size_t)sprintf(uri, "file://");
    for (; *path; path++)
        if (strchr(plain, *path))
            uri[n++] = *path;
        else
            n += (size_t)sprintf(uri + n, "%%%02X", (unsigned char)*path);
    uri[n] = 0;
    return uri;
}

json_t *text_json(const char *text)
{
    json_t *s = json_string(text);
    if (s)
        return s;
    size_t len = strlen(text), need = cdl_visible(text, len, NULL, 0);
    char *shown = malloc(need + 1);
    if (!shown)
        return json_string("");
    cdl_visible(text, len, shown, need);
    s = json_stringn(shown, need);
    free(shown);
    return s ? s : json_string("");
}

/* ---- lines ---- */

static bool lines_find(document *d)
{
    size_t n = 1;
    for (size_t k = 0; k < d->len; k++)
        n += d->text[k] == '\n' || (d->text[k] == '\r' && !(k + 1 < d->len && d->text[k + 1] == '\n'));
    size_t *line = realloc(d->line, n * sizeof *line);
    if (!line)
        return false;
    d->line = line;
    d->nlines = n;
    memset(d->known, 0, sizeof d->known);
    line[0] = 0;
    n = 1;
    for (size_t k = 0; k < d->len; k++)
        if (d->text[k] == '\n' || (d->text[k] == '\r' && !(k + 1 < d->len && d->text[k + 1] == '\n')))
            line[n++] = k + 1;
    return true;
}

/* bytes of a character, and its UTF-16 units: JSON has seen to it that the text is UTF-8 */
static size_t character(const document *d, size_t k, size_t *units)
{
    unsigned char c = (unsigned char)d->text[k];
    size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    *units = n == 4 ? 2 : 1;
    return k + n <= d->len ? n : d->len - k;
}

/* where a line ends, its end of line not counted */
static size_t line_stop(const document *d, size_t line)
{
    size_t end = line + 1 < d->nlines ? d->line[line + 1] : d->len;
    while (line + 1 < d->nlines && end > d->line[line] && strchr("\r\n", d->text[end - 1]))
        end--;
    return end;
}

size_t document_byte(const document *d, size_t line, size_t unit)
{
    if (line >= d->nlines)
        return d->len;
    size_t k = d->line[line], end = line_stop(d, line), units;
    while (k < end && unit) {
        size_t n = character(d, k, &units);
        if (units > unit)
            break; /* the middle of a pair */
        unit -= units;
        k += n;
    }
    return k;
}

/* of a position of the protocol */
size_t document_place(const document *d, const json_t *position)
{
    json_int_t line = json_integer_value(json_object_get(position, "line"));
    json_int_t unit = json_integer_value(json_object_get(position, "character"));
    return document_byte(d, line > 0 ? (size_t)line : 0, unit > 0 ? (size_t)unit : 0);
}

/* the nearest place before a byte on its line that was counted */
static counted *counted_near(document *d, size_t line, size_t byte)
{
    counted *best = NULL;
    for (int k = 0; k < COUNTED; k++) {
        counted *c = &d->known[k];
        if (c->line == line && c->byte >= d->line[line] && c->byte <= byte && (!best || c->byte > best->byte))
            best = c;
    }
    if (best)
        return best;
    best = &d->known[d->oldest];
    d->oldest = (d->oldest + 1) % COUNTED;
    *best = (counted){ line, d->line[line], 0 };
    return best;
}

json_t *document_position(document *d, size_t byte)
{
    size_t lo = 0, hi = d->nlines, units;
    if (byte > d->len)
        byte = d->len;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (d->line[mid] <= byte)
            lo = mid;
        else
            hi = mid;
    }
    counted *c = counted_near(d, lo, byte);
    while (c->byte < byte) {
        c->byte += character(d, c->byte, &units);
        c->unit += units;
    }
    json_t *p = json_object();
    json_object_set_new(p, "line", json_integer((json_int_t)lo));
    json_object_set_new(p, "character", json_integer((json_int_t)c->unit));
    return p;
}

json_t *document_range(document *d, size_t begin, size_t end)
{
    json_t *r = json_object();
    json_object_set_new(r, "start", document_position(d, begin));
    json_object_set_new(r, "end", document_position(d, end > begin ? end : begin));
    return r;
}

/* ---- documents ---- */

document *document_find(const server *v, const char *uri)
{
    for (size_t k = 0; k < v->ndoc; k++)
        if (!strcmp(v->doc[k]->uri, uri))
            return v->doc[k];
    return NULL;
}

static void session_drop(document *d)
{
    cdl_free(d->session);
    d->session = NULL;
}

void document_free(document *d)
{
    session_drop(d);
    json_decref(d->found);
    free(d->uri);
    free(d->path);
    free(d->text);
    free(d->line);
    free(d);
}

/* a text that the server cannot store is reported once, to the user */
static void refuse(server *v, const char *why)
{
    json_t *p = json_object();
    json_object_set_new(p, "type", json_integer(1));
    json_object_set_new(p, "message", json_string(why));
    send_note(v, "window/showMessage", p);
}

static document *document_new(const char *uri)
{
    document *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->uri = malloc(strlen(uri) + 1);
    d->text = calloc(1, 1);
    if (!d->uri || !d->text || !lines_find(d)) {
        document_free(d);
        return NULL;
    }
    strcpy(d->uri, uri);
    d->path = uri_path(uri);
    return d;
}

document *document_loose(const char *path, const char *text, size_t len)
{
    char *uri = path_uri(path);
    document *d = uri ? document_new(uri) : NULL;
    char *copy = d ? realloc(d->text, len + 1) : NULL;
    free(uri);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
        d->text = copy;
        d->len = len;
    }
    if (copy && lines_find(d))
        return d;
    if (d)
        document_free(d);
    return NULL;
}

void document_open(server *v, const char *uri, const char *text, size_t len, json_int_t version)
{
    document *d = document_find(v, uri);
    if (!d && v->ndoc < DOCUMENTS_MAX) {
        document **more = realloc(v->doc, (v->ndoc + 1) * sizeof *more);
        v->doc = more ? more : v->doc;
        d = more ? document_new(uri) : NULL;
        if (d)
            v->doc[v->ndoc++] = d;
    }
    if (!d) {
        refuse(v, "cdl: not enough memory for another document");
        return;
    }
    d->version = version;
    document_replace(v, d, 0, d->len, text, len);
}

void document_close(server *v, document *d)
{
    json_t *p = json_object();
    json_object_set_new(p, "uri", text_json(d->uri));
    json_object_set_new(p, "diagnostics", json_array());
    send_note(v, "textDocument/publishDiagnostics", p);
    for (size_t k = 0; k < v->ndoc; k++)
        if (v->doc[k] == d)
            v->doc[k] = v->doc[--v->ndoc];
    v->bytes -= d->len;
    document_free(d);
}

void document_replace(server *v, document *d, size_t begin, size_t end, const char *text, size_t len)
{
    size_t total = d->len - (end - begin) + len;
    char *whole = v->bytes - d->len + total > BYTES_MAX ? NULL : malloc(total + 1);
    if (!whole) {
        refuse(v, "cdl: not enough memory for this text");
        return;
    }
    memcpy(whole, d->text, begin);
    memcpy(whole + begin, text, len);
    memcpy(whole + begin + len, d->text + end, d->len - end);
    whole[total] = 0;
    v->bytes = v->bytes - d->len + total;
    free(d->text);
    d->text = whole;
    d->len = total;
    session_drop(d);
    d->unsaid = true;
    if (!lines_find(d)) {
        d->len = 0; /* the lines of an empty text need no memory */
        d->nlines = 1;
        refuse(v, "cdl: not enough memory for this text");
    }
}

/* ---- sessions ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1000000000;
}

/* A long check that no request waits for is abandoned when a message arrives. */
static int check_interrupted(void *ud)
{
    server *v = ud;
    if (v->may_yield && !v->yielded && now() - v->began > 0.1)
        v->yielded = input_waits();
    return interrupts_seen() + (v->may_yield && v->yielded);
}

cdl *text_session(server *v, const document *d, const char *text, size_t len)
{
    cdl_status st;
    cdl *s = session_open(v->o, &st);
    if (!s)
        return NULL;
    cdl_callbacks quiet = { NULL, NULL, check_interrupted, v };
    v->began = now();
    v->yielded = false;
    cdl_set_callbacks(s, &quiet);
    cdl_set(s, "time", "20");
    cdl_set(s, "memory", "2G");
    st = d->path ? cdl_check_as(s, d->path, text, len) : cdl_check_text(s, "<untitled>", text, len);
    if (st != CDL_MEMORY && !(v->may_yield && v->yielded))
        return s;
    cdl_free(s);
    return NULL;
}

/* of many documents, the most recently used ones keep their sessions */
static void sessions_trim(server *v, const document *keep)
{
    size_t n = 0;
    document *oldest = NULL;
    for (size_t k = 0; k < v->ndoc; k++) {
        document *d = v->doc[k];
        n += d->session != NULL;
        if (d->session && d != keep && (!oldest || d->used < oldest->used))
            oldest = d;
    }
    if (n > SESSIONS_MAX && oldest)
        session_drop(oldest);
}

cdl *document_session(server *v, document *d)
{
    d->used = ++v->clock;
    if (d->session)
        return d->session;
    cdl *s = text_session(v, d, d->text, d->len);
    if (!s)
        return NULL;
    json_decref(d->found);
    d->found = diagnostics_json(d, s);
    cdl_set(s, "time", "inf"); /* questions come whenever they come */
    d->session = s;
    sessions_trim(v, d);
    return s;
}

static void say(server *v, document *d)
{
    json_t *p = json_object(), *list = json_array();
    size_t k;
    const json_t *x;
    json_array_foreach(d->found, k, x) json_array_append(list, json_object_get(x, "diagnostic"));
    json_object_set_new(p, "uri", text_json(d->uri));
    json_object_set_new(p, "version", json_integer(d->version));
    json_object_set_new(p, "diagnostics", list);
    send_note(v, "textDocument/publishDiagnostics", p);
    d->unsaid = false;
}

void documents_say(server *v)
{
    for (size_t k = 0; k < v->ndoc && !v->done; k++) {
        document *d = v->doc[k];
        if (!d->unsaid)
            continue;
        v->may_yield = true;
        cdl *s = document_session(v, d);
        v->may_yield = false;
        if (s)
            say(v, d);
        else if (v->yielded)
            return; /* it is checked again after the message that came */
        else
            d->unsaid = false;
        v->yielded = false;
    }
}

void documents_stale(server *v)
{
    for (size_t k = 0; k < v->ndoc; k++) {
        session_drop(v->doc[k]);
        v->doc[k]->unsaid = true;
    }
}

void documents_free(server *v)
{
    while (v->ndoc)
        document_free(v->doc[--v->ndoc]);
    free(v->doc);
    free(v->root);
}
