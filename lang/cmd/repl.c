/* repl: the interactive session.  Lines of the language as in files; lines that begin with a colon are for the session itself.  Without a
   terminal it reads the same from a pipe, silently. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <readline/readline.h>
#include <readline/history.h>
#include "cmd.h"

typedef struct { cdl *s; int terminal, done; cdl_status worst; char *text; size_t len, cap; } repl_state;

static cdl *completing;                                     /* readline asks without saying for whom */

/* ---- lines ---- */

static char *line_read(const repl_state *r, const char *prompt)
{
    if (r->terminal) return readline(prompt);
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, stdin);
    if (n < 0) { free(line); return NULL; }
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = 0;
    return line;
}

static int text_add(repl_state *r, const char *line)
{
    size_t n = strlen(line);
    if (r->len + n + 2 > r->cap) {
        char *p = realloc(r->text, r->cap = 2 * (r->len + n + 2));
        if (!p) return 0;
        r->text = p;
    }
    memcpy(r->text + r->len, line, n);
    r->len += n;
    r->text[r->len++] = '\n';
    r->text[r->len] = 0;
    return 1;
}

/* ---- completion and history ---- */

static char *complete_next(const char *prefix, int again)
{
    static size_t k;
    if (!again) k = 0;
    const char *name = cdl_name(completing, prefix, k++);
    return name ? strdup(name) : NULL;
}

static char **complete(const char *prefix, int start, int end)
{
    (void)start; (void)end;
    rl_completion_append_character = 0;
    return rl_completion_matches(prefix, complete_next);
}

static const char *history_path(char *buf, size_t n)
{
    const char *home = getenv("HOME");
    snprintf(buf, n, "%s/.cdl_history", home ? home : ".");
    return buf;
}

/* an interrupt at the prompt drops the line */
static int on_signal(void)
{
    rl_replace_line("", 0);
    rl_crlf();
    rl_on_new_line();
    rl_redisplay();
    interrupts_clear();
    interrupts_catch();
    return 0;
}

/* ---- commands ---- */

static void note(repl_state *r, cdl_status st) { if (st > r->worst) r->worst = st; }

static void do_help(repl_state *r, const char *arg);
static void do_load(repl_state *r, const char *arg)
{
    if (!*arg) { fputs("cdl: :load needs a file\n", stderr); note(r, CDL_USAGE); return; }
    note(r, cdl_load_file(r->s, arg));
}

/* of a file, in a session of its own */
static void do_show(repl_state *r, const char *arg)
{
    char what[16];
    int used = 0;
    cdl_status st = CDL_USAGE;
    static const options none;
    if (sscanf(arg, "%15s %n", what, &used) == 1 && arg[used]) {
        cdl *s = session_open(&none, &st);
        if (s) st = cdl_show(s, what, arg + used);
        cdl_free(s);
    }
    if (st == CDL_USAGE) fputs("cdl: :show ast|model|ir|jacobian FILE\n", stderr);
    note(r, st);
}

static void do_set(repl_state *r, const char *arg)
{
    char name[32], to[256];
    if (sscanf(arg, "%31s %255s", name, to) == 2 && cdl_set(r->s, name, to) == CDL_OK) return;
    fputs("cdl: :set OPTION VALUE, where the options are\n", stderr);
#define CDL_OPTION_ROW(id, name, value, doc) fprintf(stderr, "  %-12s %s\n", name, doc);
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
    note(r, CDL_USAGE);
}

static void do_quit(repl_state *r, const char *arg) { (void)arg; r->done = 1; }

static const struct { const char *name; void (*act)(repl_state *, const char *); const char *help; } commands[] = {
    { "help", do_help, ":help                  this list" },
    { "load", do_load, ":load FILE             checks and executes a file" },
    { "show", do_show, ":show WHAT FILE        ast, model, ir or jacobian of a file" },
    { "set",  do_set,  ":set OPTION VALUE      an option of the session" },
    { "quit", do_quit, ":quit                  ends the session (also Ctrl-D)" },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void do_help(repl_state *r, const char *arg)
{
    (void)r; (void)arg;
    puts("Type statements and expressions of the language: model ..., run ball for 3, max(y), expect ...");
    for (int k = 0; k < COMMANDS; k++) puts(commands[k].help);
}

static void do_command(repl_state *r, char *line)
{
    char *name = line + 1, *arg = name + strcspn(name, " \t");
    const char *names[COMMANDS + 1] = { NULL };
    if (*arg) *arg++ = 0;
    arg += strspn(arg, " \t");
    for (size_t n = strlen(arg); n && (arg[n - 1] == ' ' || arg[n - 1] == '\t'); ) arg[--n] = 0;
    for (int k = 0; k < COMMANDS; k++) {
        names[k] = commands[k].name;
        if (!strcmp(name, names[k])) { commands[k].act(r, arg); return; }
    }
    const char *near = closest(name, names);
    fprintf(stderr, "cdl: unknown command ':%s'", name);
    if (near) fprintf(stderr, "; did you mean ':%s'?", near);
    fputs("\n", stderr);
    note(r, CDL_USAGE);
}

/* ---- the loop ---- */

/* text that the language calls whole is executed; an empty line ends what never becomes so */
static void line_take(repl_state *r, char *line)
{
    if (!r->len && line[strspn(line, " \t")] == ':') {
        do_command(r, line + strspn(line, " \t"));
        return;
    }
    int blank = !line[strspn(line, " \t")];
    if (!r->len && blank) return;
    if (!text_add(r, line)) { r->done = 1; return; }
    if (!cdl_complete(r->s, r->text, r->len) && !(blank && r->terminal)) return;
    interrupts_clear();
    interrupts_catch();
    note(r, cdl_run_text(r->s, "<input>", r->text, r->len));
    r->len = 0;
    fflush(stdout);
    if (r->worst == CDL_MEMORY) r->done = 1;
}

static void loop(repl_state *r)
{
    while (!r->done) {
        char *line = line_read(r, r->len ? "...> " : "cdl> ");
        if (!line) break;
        if (r->terminal && *line) add_history(line);
        line_take(r, line);
        free(line);
    }
    if (r->len) note(r, cdl_run_text(r->s, "<input>", r->text, r->len));
}

int repl(const options *o)
{
    cdl_status st;
    char path[4096];
    repl_state r = { .s = session_open(o, &st), .terminal = isatty(0) && isatty(1) };
    if (!r.s) return cdl_exit_code(st);
    cdl_set(r.s, "interactive", "yes");
    if (r.terminal) {
        completing = r.s;
        rl_readline_name = "cdl";
        rl_attempted_completion_function = complete;
        rl_completer_word_break_characters = " \t\n()[]{}+-*/^=<>,;'\"";
        rl_signal_event_hook = on_signal;
        read_history(history_path(path, sizeof path));
        printf("cdl %s; :help for help\n", cdl_version());
    }
    loop(&r);
    if (r.terminal) { write_history(history_path(path, sizeof path)); putchar('\n'); }
    cdl_finish(r.s);
    cdl_free(r.s);
    free(r.text);
    return r.terminal ? 0 : cdl_exit_code(r.worst);
}
