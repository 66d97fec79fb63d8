/* lsp: the language server.  Messages of the protocol come on standard input and go to standard output,
   each behind its Content-Length.  The server answers or ignores every message; it ends with `exit` or at
   the end of its input. */
#include "lsp.h"
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 200 << 20, /* bytes; a text of 64 MB with escapes */
    HEADER_MAX = 4096,
    READ_AT_ONCE = 1 << 16,
};

/* ---- reading ---- */

typedef struct {
    char *at;
    size_t n, room;
    bool ended;
} input;

bool input_waits(void)
{
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

static void input_drop(input *in, size_t n)
{
    memmove(in->at, in->at + n, in->n - n);
    in->n -= n;
    if (in->room > 16 * READ_AT_ONCE && in->n < READ_AT_ONCE) {
        char *less = realloc(in->at, 2 * READ_AT_ONCE);
        in->at = less ? less : in->at;
        in->room = less ? 2 * READ_AT_ONCE : in->room;
    }
}

/* some more bytes, or the end; a signal that is meant to end the program is one */
static void input_read(input *in)
{
    if (in->room - in->n < READ_AT_ONCE) {
        size_t room = in->room ? 2 * in->room : 2 * READ_AT_ONCE;
        char *more = realloc(in->at, room);
        if (!more) {
            in->ended = true;
            return;
        }
        in->at = more;
        in->room = room;
    }
    ssize_t got = read(STDIN_FILENO, in->at + in->n, in->room - in->n);
    if (got > 0)
        in->n += (size_t)got;
    else if (got == 0 || errno != EINTR || interrupts_seen())
        in->ended = true;
}

static const char field[] = "content-length:";

/* where the next header begins; the bytes before it are dropped */
static bool header_find(input *in)
{
    size_t len = sizeof field - 1;
    for (size_t k = 0; k + len <= in->n; k++)
        if ((in->at[k] | 32) == 'c' && !strncasecmp(in->at + k, field, len)) {
            input_drop(in, k);
            return true;
        }
    if (in->n >= len)
        input_drop(in, in->n - len + 1);
    return false;
}

/* Length of the header; 0: it is not complete; SIZE_MAX: it is not a header. */
static size_t header_size(const input *in)
{
    for (size_t k = 0; k < in->n && k < HEADER_MAX; k++) {
        if (in->at[k] != '\n')
            continue;
        if (k + 1 < in->n && in->at[k + 1] == '\n')
            return k + 2;
        if (k + 2 < in->n && in->at[k + 1] == '\r' && in->at[k + 2] == '\n')
            return k + 3;
    }
    return in->n >= HEADER_MAX ? SIZE_MAX : 0;
}

static size_t header_length(const input *in)
{
    size_t k = sizeof field - 1, n = 0;
    while (k < in->n && in->at[k] == ' ')
        k++;
    if (k == in->n || !isdigit((unsigned char)in->at[k]))
        return SIZE_MAX;
    for (; k < in->n && isdigit((unsigned char)in->at[k]); k++)
        n = n <= MESSAGE_MAX ? 10 * n + (size_t)(in->at[k] - '0') : n;
    return n <= MESSAGE_MAX ? n : SIZE_MAX;
}

/* A whole message in the buffer: where its body begins and how long it is.  What cannot be one is dropped, up
   to the next header. */
static bool message_find(input *in, size_t *begin, size_t *len)
{
    while (header_find(in)) {
        *begin = header_size(in);
        if (*begin == 0)
            return false;
        *len = *begin == SIZE_MAX ? SIZE_MAX : header_length(in);
        if (*len != SIZE_MAX)
            return in->n - *begin >= *len;
        input_drop(in, sizeof field - 1);
    }
    return false;
}

/* ---- writing ---- */

static void send(server *v, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text) {
        v->done = true;
        v->code = cdl_exit_code(CDL_MEMORY);
        return;
    }
    size_t n = strlen(text);
    printf("Content-Length: %zu\r\n\r\n", n);
    if (fwrite(text, 1, n, stdout) != n || fflush(stdout))
        v->done = true;
    free(text);
}

static json_t *message_new(server *v)
{
    json_t *m = json_object();
    json_object_set_new(m, "jsonrpc", json_string("2.0"));
    if (v)
        json_object_set_new(m, "id", v->asked ? json_incref(v->asked) : json_null());
    return m;
}

void send_result(server *v, json_t *result)
{
    json_t *m = message_new(v);
    json_object_set_new(m, "result", result ? result : json_null());
    send(v, m);
}

void send_error(server *v, int code, const char *message)
{
    json_t *m = message_new(v), *e = json_object();
    json_object_set_new(e, "code", json_integer(code));
    json_object_set_new(e, "message", text_json(message));
    json_object_set_new(m, "error", e);
    send(v, m);
}

void send_note(server *v, const char *method, json_t *params)
{
    json_t *m = message_new(NULL);
    json_object_set_new(m, "method", json_string(method));
    json_object_set_new(m, "params", params);
    send(v, m);
}

/* ---- the life of a server ---- */

static const json_t *down(const json_t *o, const char *const *path)
{
    for (; *path && o; path++)
        o = json_object_get(o, *path);
    return o;
}

static bool lists(const json_t *list, const char *word)
{
    size_t k;
    const json_t *x;
    json_array_foreach(list, k, x)
    {
        if (json_is_string(x) && !strcmp(json_string_value(x), word))
            return true;
    }
    return false;
}

static void initialize(server *v, const json_t *params)
{
    static const char *const hover[] = { "capabilities", "textDocument", "hover", "contentFormat", NULL };
    static const char *const outline[] = { "capabilities", "textDocument", "documentSymbol",
                                           "hierarchicalDocumentSymbolSupport", NULL };
    static const char *const labels[] = { "capabilities",
                                          "textDocument",
                                          "signatureHelp",
                                          "signatureInformation",
                                          "parameterInformation",
                                          "labelOffsetSupport",
                                          NULL };
    if (v->initialized) {
        send_error(v, RPC_REQUEST, "the server is already initialized");
        return;
    }
    const json_t *first = json_array_get(json_object_get(params, "workspaceFolders"), 0);
    const char *root = json_string_value(json_object_get(params, "rootUri"));
    root = root ? root : json_string_value(json_object_get(first, "uri"));
    v->initialized = true;
    v->root = root ? uri_path(root) : NULL;
    v->markdown = lists(down(params, hover), "markdown");
    v->hierarchical = json_is_true(down(params, outline));
    v->label_offsets = json_is_true(down(params, labels));
    json_t *info = json_object(), *result = json_object();
    json_object_set_new(info, "name", json_string("cdl"));
    json_object_set_new(info, "version", json_string(cdl_version()));
    json_object_set_new(result, "capabilities", capabilities());
    json_object_set_new(result, "serverInfo", info);
    send_result(v, result);
}

static void request(server *v, const char *method, const json_t *params)
{
    if (v->shut)
        send_error(v, RPC_REQUEST, "the server was shut down");
    else if (!strcmp(method, "initialize"))
        initialize(v, params);
    else if (!v->initialized)
        send_error(v, RPC_EARLY, "initialize must come first");
    else if (!strcmp(method, "shutdown")) {
        v->shut = true;
        send_result(v, NULL);
    } else if (!answer_request(v, method, params))
        send_error(v, RPC_METHOD, "unknown request");
}

/* ---- documents ---- */

static const char *text_of(const json_t *o, const char *key, size_t *len)
{
    const json_t *x = json_object_get(o, key);
    if (len)
        *len = json_string_length(x);
    return json_string_value(x);
}

static void did_open(server *v, const json_t *params)
{
    const json_t *item = json_object_get(params, "textDocument");
    size_t len;
    const char *uri = text_of(item, "uri", NULL), *text = text_of(item, "text", &len);
    if (uri && text)
        document_open(v, uri, text, len, json_integer_value(json_object_get(item, "version")));
}

static void change(server *v, document *d, const json_t *one)
{
    size_t len;
    const char *text = text_of(one, "text", &len);
    const json_t *range = json_object_get(one, "range");
    if (!text)
        return;
    size_t begin = 0, end = d->len;
    if (json_is_object(range)) {
        begin = document_place(d, json_object_get(range, "start"));
        end = document_place(d, json_object_get(range, "end"));
    }
    document_replace(v, d, begin, end > begin ? end : begin, text, len);
}

static document *document_of(server *v, const json_t *params)
{
    const char *uri = text_of(json_object_get(params, "textDocument"), "uri", NULL);
    return uri ? document_find(v, uri) : NULL;
}

static void did_change(server *v, const json_t *params)
{
    document *d = document_of(v, params);
    size_t k;
    const json_t *one;
    if (!d)
        return;
    json_array_foreach(json_object_get(params, "contentChanges"), k, one) change(v, d, one);
    const json_t *version = json_object_get(json_object_get(params, "textDocument"), "version");
    d->version = json_integer_value(version);
}

static void notification(server *v, const char *method, const json_t *params)
{
    if (!strcmp(method, "exit")) {
        v->done = true;
        v->code = v->shut ? 0 : 1;
        return;
    }
    if (!v->initialized || v->shut)
        return;
    if (!strcmp(method, "textDocument/didOpen"))
        did_open(v, params);
    else if (!strcmp(method, "textDocument/didChange"))
        did_change(v, params);
    else if (!strcmp(method, "textDocument/didSave"))
        documents_stale(v);
    else if (!strcmp(method, "textDocument/didClose")) {
        document *d = document_of(v, params);
        if (d)
            document_close(v, d);
    }
}

static void message(server *v, const char *body, size_t len)
{
    json_error_t why;
    json_t *m = json_loadb(body, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    const char *method = m ? text_of(m, "method", NULL) : NULL;
    json_t *id = json_object_get(m, "id");
    const json_t *params = json_object_get(m, "params");
    v->asked = json_is_string(id) || json_is_number(id) ? id : NULL;
    if (!m)
        send_error(v, RPC_PARSE, "the message is not JSON");
    else if (!method) {
        /* answers are ignored, because the server sends no requests */
        if (!json_object_get(m, "result") && !json_object_get(m, "error"))
            send_error(v, RPC_REQUEST, "the message has no method");
    } else if (id && !v->asked)
        send_error(v, RPC_REQUEST, "the id is neither a number nor a string");
    else if (v->asked)
        request(v, method, params);
    else
        notification(v, method, params);
    v->asked = NULL;
    json_decref(m);
}

/* diagnostics are computed when there is no more input: after ten letters only the last counts */
int lsp_main(const options *o)
{
    server v = { .o = o, .code = 1 };
    input in = { 0 };
    size_t begin, len;
    while (!v.done) {
        if (message_find(&in, &begin, &len)) {
            message(&v, in.at + begin, len);
            input_drop(&in, begin + len);
            continue;
        }
        if (in.ended)
            break;
        if (!input_waits())
            documents_say(&v);
        if (!v.done)
            input_read(&in);
    }
    documents_free(&v);
    free(in.at);
    return v.code;
}
