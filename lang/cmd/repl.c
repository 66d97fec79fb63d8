/* repl: the interactive session.  Lines of the language as in files; lines that begin with a colon are for
   the session itself.  Without a terminal it reads the same from a pipe, silently. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <string.h>
#include <unistd.h>
#include <readline/readline.h>
#include <readline/history.h>
#include "cmd.h"

typedef struct {
    cdl *s;
    const options *o;
    int terminal, done;
    cdl_status worst;
    /* lines of an incomplete input */
    char *text;
    size_t len, cap;
    /* inputs that were executed: what :save writes */
    char **kept;
    size_t nkept;
    char *file; /* the last one loaded */
} repl_state;

enum { HISTORY_LINES = 20000 }; /* of the file, when a session begins */

static cdl *completing; /* readline's callbacks have no argument for the session */

/* ---- lines ---- */

/* of the line that is being edited: readline's callbacks have no argument for the session */
static char *edited;
static int edited_ends;

static void on_line(char *line)
{
    edited = line;
    edited_ends = 1;
    rl_callback_handler_remove();
}

/* an interrupt drops the line, and the previous lines of an incomplete input */
static char *line_dropped(repl_state *r)
{
    rl_callback_sigcleanup();
    rl_free_line_state();
    rl_callback_handler_remove();
    rl_replace_line("", 0);
    putchar('\n');
    fflush(stdout);
    r->len = 0;
    r->done = interrupts_terminate();
    interrupts_clear();
    return strdup("");
}

static char *line_edit(repl_state *r, const char *prompt)
{
    edited = NULL;
    edited_ends = 0;
    rl_callback_handler_install(prompt, on_line);
    while (!edited_ends) {
        struct pollfd in = { .fd = 0, .events = POLLIN };
        int ready = poll(&in, 1, 200);
        if (interrupts_seen())
            return line_dropped(r);
        if (ready > 0)
            rl_callback_read_char();
    }
    return edited;
}

static char *line_read(repl_state *r, const char *prompt)
{
    if (r->terminal)
        return line_edit(r, prompt);
    if (interrupts_seen())
        return NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n > 0 && line[n - 1] == '\n')
        line[n - 1] = 0;
    return line;
}

static int text_add(repl_state *r, const char *line)
{
    size_t n = strlen(line);
    if (r->len + n + 2 > r->cap) {
        char *p = realloc(r->text, r->cap = 2 * (r->len + n + 2));
        if (!p)
            return 0;
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
    static char line[4096];
    if (!again) {
        k = 0;
        snprintf(line, sizeof line, "%.*s", rl_point, rl_line_buffer);
    }
    (void)prefix;
    const char *name = cdl_name_at(completing, line, k++);
    return name ? strdup(name) : NULL;
}

static char *command_next(const char *prefix, int again);

static char *example_next(const char *prefix, int again)
{
    static size_t k;
    k = again ? k + 1 : 0;
    const char *name = cdl_example(completing, prefix, k, NULL, NULL);
    return name ? strdup(name) : NULL;
}

/* topics, then names of the language */
static char *help_next(const char *prefix, int again)
{
    static size_t k, topics;
    const char *name;
    if (!again)
        k = topics = 0;
    if ((name = cdl_topic(completing, prefix, topics))) {
        topics++;
        return strdup(name);
    }
    name = cdl_name(completing, prefix, k++);
    return name ? strdup(name) : NULL;
}

static int begins_with(const char *line, const char *word)
{
    return !strncmp(line, word, strlen(word));
}

/* commands after a colon, then what they take: files, stages, or names as in the language */
static char **complete(const char *prefix, int start, int end)
{
    const char *line = rl_line_buffer;
    (void)end;
    rl_completion_append_character = 0;
    rl_attempted_completion_over = 1;
    if (line[0] == ':' && start <= 1)
        return rl_completion_matches(prefix, command_next);
    if (begins_with(line, ":help "))
        return rl_completion_matches(prefix, help_next);
    if (begins_with(line, ":examples "))
        return rl_completion_matches(prefix, example_next);
    if (!strncmp(line, ":load", 5) || !strncmp(line, ":save", 5) || (start && line[start - 1] == '"'))
        return rl_completion_matches(prefix, rl_filename_completion_function);
    return rl_completion_matches(prefix, complete_next);
}

static const char *history_path(char *buf, size_t n)
{
    const char *home = getenv("HOME");
    snprintf(buf, n, "%s/.cdl_history", home ? home : ".");
    return buf;
}

/* each entry is written to the file immediately, so that nothing is lost with the session */
static void remember(const char *entry)
{
    char path[4096];
    add_history(entry);
    int fd = open(history_path(path, sizeof path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    append_history(1, path);
}

/* ---- commands ---- */

static void note(repl_state *r, cdl_status st)
{
    if (st > r->worst)
        r->worst = st;
}

static void do_help(repl_state *r, const char *arg);

static void keep(repl_state *r, const char *text)
{
    char **more = realloc(r->kept, (r->nkept + 1) * sizeof *more), *copy = strdup(text);
    if (more)
        r->kept = more;
    if (more && copy)
        r->kept[r->nkept++] = copy;
    else
        free(copy);
}

static char *file_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    long n;
    if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) &&
        (p = calloc((size_t)n + 1, 1)))
        if (fread(p, 1, (size_t)n, f) != (size_t)n) {
            free(p);
            p = NULL;
        }
    if (f)
        fclose(f);
    return p;
}

/* `let x`, `model m`: the words that a definition begins with, or "" */
static void definition(const char *text, char *out, size_t room)
{
    static const char *const kinds[] = { "model", "fn", "let", "param", "experiment" };
    char kind[16] = "", name[128] = "";
    while (*text == '#')
        text += strcspn(text, "\n"), text += *text == '\n';
    *out = 0;
    if (sscanf(text, " %15[a-z] %127[^ ={(\n]", kind, name) < 2)
        return;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kind, kinds[k]))
            snprintf(out, room, "%s", name);
}

static int replaced(const repl_state *r, size_t k)
{
    char a[160], b[160];
    definition(r->kept[k], a, sizeof a);
    for (size_t i = k + 1; *a && i < r->nkept; i++) {
        definition(r->kept[i], b, sizeof b);
        if (!strcmp(a, b))
            return 1;
    }
    return 0;
}
/* The file of an example by its name, with or without its ending; NULL: there is none. */
static char *example_path(repl_state *r, const char *name)
{
    size_t n = strlen(name);
    const char *found, *path;
    if (n > 4 && !strcmp(name + n - 4, ".cdl"))
        n -= 4;
    for (size_t k = 0; (found = cdl_example(r->s, "", k, &path, NULL)); k++)
        if (strlen(found) == n && !strncmp(found, name, n))
            return strdup(path);
    return NULL;
}

static void do_load(repl_state *r, const char *arg)
{
    if (!*arg) {
        fputs("cdl: :load needs a file\n", stderr);
        note(r, CDL_USAGE);
        return;
    }
    char *example = access(arg, F_OK) ? example_path(r, arg) : NULL;
    if (example)
        arg = example;
    cdl_status st = cdl_load_file(r->s, arg);
    note(r, st);
    char *name = strdup(arg), *text = st < CDL_USAGE ? file_text(arg) : NULL;
    free(r->file);
    r->file = name;
    if (text)
        keep(r, text);
    free(text);
    free(example);
}

/* what was meant by the name of an example */
static void example_unknown(repl_state *r, const char *name)
{
    enum { MOST = 255 };
    char *names[MOST + 1] = { NULL };
    const char *list[MOST + 1] = { NULL }, *found, *near;
    size_t n = 0;
    for (; n < MOST && (found = cdl_example(r->s, "", n, NULL, NULL)); n++)
        list[n] = names[n] = strdup(found);
    near = closest(name, list);
    tell(stderr, "cdl: no example '%s'", name);
    if (near)
        tell(stderr, "; did you mean '%s'?", near);
    fputs("\n", stderr);
    for (size_t k = 0; k < n; k++)
        free(names[k]);
}

static void do_examples(repl_state *r, const char *arg)
{
    char *path = *arg ? example_path(r, arg) : NULL;
    if (path)
        do_load(r, path);
    else if (*arg) {
        example_unknown(r, arg);
        note(r, CDL_USAGE);
    } else
        note(r, cdl_help(r->s, "examples"));
    free(path);
}

static void do_reload(repl_state *r, const char *arg)
{
    (void)arg;
    if (!r->file) {
        fputs("cdl: no file was loaded\n", stderr);
        note(r, CDL_USAGE);
        return;
    }
    char *name = strdup(r->file);
    if (name)
        do_load(r, name);
    free(name);
}

/* the inputs so far, without definitions that were replaced */
static char *whole_text(const repl_state *r)
{
    size_t room = 1, n = 0;
    for (size_t k = 0; k < r->nkept; k++)
        room += strlen(r->kept[k]) + 1;
    char *all = malloc(room);
    if (!all)
        return NULL;
    *all = 0;
    for (size_t k = 0; k < r->nkept; k++) {
        if (replaced(r, k))
            continue;
        n += (size_t)sprintf(all + n, "%s", r->kept[k]);
        if (n && all[n - 1] != '\n') {
            all[n++] = '\n';
            all[n] = 0;
        }
    }
    return all;
}

static void do_save(repl_state *r, const char *arg)
{
    char *text = whole_text(r);
    FILE *f = *arg && text ? fopen(arg, "w") : NULL;
    int good = f && fputs(text, f) >= 0;
    if (f)
        good = !fclose(f) && good;
    if (!*arg)
        fputs("cdl: :save needs a file\n", stderr);
    else if (!good)
        tell(stderr, "cdl: cannot write '%s'\n", arg);
    else {
        cdl_status st;
        static const options none;
        cdl *s = session_open(&none, &st);
        if (s && cdl_check_text(s, arg, text, strlen(text)) >= CDL_USAGE)
            tell(stderr, "cdl: '%s' was written, but it has errors\n", arg);
        cdl_free(s);
    }
    note(r, *arg ? good ? CDL_OK : CDL_IO : CDL_USAGE);
    free(text);
}

/* of what was typed, or of a file, in a session of its own */
static void do_show(repl_state *r, const char *arg)
{
    char what[16];
    int used = 0;
    cdl_status st = CDL_USAGE;
    static const options none;
    char *text = whole_text(r);
    if (text && sscanf(arg, "%15s %n", what, &used) == 1) {
        cdl *s = session_open(&none, &st);
        if (s && !arg[used] && !*text)
            fputs("cdl: there is no input yet; name a file: :show model FILE\n", stderr);
        if (s)
            st = arg[used] ? cdl_show(s, what, arg + used)
                           : cdl_show_text(s, what, "<input>", text, strlen(text));
        cdl_free(s);
    }
    free(text);
    if (st == CDL_USAGE)
        fputs("cdl: :show ast|model|equations|ir|jacobian [FILE]\n", stderr);
    note(r, st);
}

static void do_wellposed(repl_state *r, const char *arg)
{
    char what[4200];
    snprintf(what, sizeof what, "wellposed %s", arg);
    do_show(r, what);
}

static void do_type(repl_state *r, const char *arg)
{
    if (*arg) {
        note(r, cdl_type(r->s, arg));
        return;
    }
    fputs("cdl: :type needs an expression: :type 3 [m]\n", stderr);
    note(r, CDL_USAGE);
}

/* Restarts the session with all inputs except the last. */
static void do_undo(repl_state *r, const char *arg)
{
    cdl_status st;
    (void)arg;
    if (!r->nkept) {
        fputs("cdl: there is nothing to undo\n", stderr);
        note(r, CDL_USAGE);
        return;
    }
    cdl *s = session_open(r->o, &st);
    if (!s) {
        note(r, st);
        return;
    }
    free(r->kept[--r->nkept]);
    cdl_free(r->s);
    completing = r->s = s;
    cdl_set(s, "interactive", "yes");
    cdl_set(s, "quiet", "yes");
    session_silent(s);
    for (size_t k = 0; k < r->nkept; k++)
        cdl_run_text(s, "<input>", r->kept[k], strlen(r->kept[k]));
    session_callbacks(s);
    cdl_set(s, "quiet", "no");
}

static void do_history(repl_state *r, const char *arg)
{
    (void)arg;
    for (size_t k = 0; k < r->nkept; k++)
        tell(stdout, "%s%s", r->kept[k], strchr(r->kept[k], '\n') ? "" : "\n");
}

static void do_time(repl_state *r, const char *arg)
{
    struct timespec a, b;
    size_t before = cdl_compiled(r->s);
    if (!*arg) {
        fputs("cdl: :time needs a statement: :time run ball for 1\n", stderr);
        note(r, CDL_USAGE);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &a);
    note(r, cdl_run_text(r->s, "<input>", arg, strlen(arg)));
    clock_gettime(CLOCK_MONOTONIC, &b);
    size_t models = cdl_compiled(r->s) - before;
    tell(stdout, "%.6f s, %zu model%s compiled\n",
         (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, models,
         models == 1 ? "" : "s");
}

/* numbers as a picture of characters */
static void draw(const double *y, size_t n)
{
    enum { WIDE = 70, HIGH = 16 };
    char row[HIGH][WIDE + 1];
    double lo = INFINITY, hi = -INFINITY;
    for (size_t k = 0; k < n; k++)
        if (isfinite(y[k])) {
            lo = fmin(lo, y[k]);
            hi = fmax(hi, y[k]);
        }
    if (!(hi >= lo))
        return;
    for (int i = 0; i < HIGH; i++) {
        memset(row[i], ' ', WIDE);
        row[i][WIDE] = 0;
    }
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(y[k]))
            continue;
        int x = n > 1 ? (int)((double)k / (double)(n - 1) * (WIDE - 1)) : 0;
        int z = hi > lo ? (int)((y[k] / 2 - lo / 2) / (hi / 2 - lo / 2) * (HIGH - 1) + 0.5) : 0;
        row[HIGH - 1 - z][x] = '*';
    }
    for (int i = 0; i < HIGH; i++) {
        if (i == 0 || i == HIGH - 1)
            tell(stdout, "%11.4g |%s\n", i ? lo : hi, row[i]);
        else
            tell(stdout, "%11s |%s\n", "", row[i]);
    }
}

/* Draws with gnuplot, over time if there are as many times; 0 if gnuplot is not installed. */
static int draw_gnuplot(repl_state *r, const double *y, size_t n)
{
    size_t times = 0;
    double *t = malloc(n * sizeof *t);
    session_silent(r->s);
    if (!t || cdl_values(r->s, "t", t, n, &times) != CDL_OK)
        times = 0;
    session_callbacks(r->s);
    fflush(stdout);
    FILE *f = popen("gnuplot -d 2>/dev/null", "w");
    if (f)
        fputs("set terminal dumb 79 24\nunset key\nset xlabel ''\nplot '-' using 1:2 with lines\n", f);
    for (size_t k = 0; f && k < n; k++)
        fprintf(f, "%.9g %.9g\n", times == n ? t[k] : (double)k + 1, y[k]);
    if (f)
        fputs("e\n", f);
    free(t);
    return f && pclose(f) == 0;
}

static void do_plot(repl_state *r, const char *arg)
{
    size_t n = 0;
    cdl_status st = *arg ? cdl_values(r->s, arg, NULL, 0, &n) : CDL_USAGE;
    double *y = st == CDL_OK && n ? malloc(n * sizeof *y) : NULL;
    if (y && (st = cdl_values(r->s, arg, y, n, &n)) == CDL_OK && !(r->terminal && draw_gnuplot(r, y, n)))
        draw(y, n);
    if (!*arg)
        fputs("cdl: :plot needs a series\n", stderr);
    note(r, st);
    free(y);
}

static void do_set(repl_state *r, const char *arg)
{
    char name[32], to[256];
    if (sscanf(arg, "%31s %255s", name, to) == 2 && cdl_set(r->s, name, to) == CDL_OK)
        return;
    if (*arg)
        tell(stderr, "cdl: unknown option or value '%s'\n", arg);
    fputs("cdl: :set OPTION VALUE, where the options are\n", stderr);
#define CDL_OPTION_ROW(id, name, value, doc) tell(stderr, "  %-12s %s\n", name, doc);
    CDL_OPTION_LIST(CDL_OPTION_ROW)
#undef CDL_OPTION_ROW
    note(r, CDL_USAGE);
}

static void do_quit(repl_state *r, const char *arg)
{
    (void)arg;
    r->done = 1;
}

static const struct {
    const char *name;
    void (*act)(repl_state *, const char *);
    const char *help;
} commands[] = {
    { "help", do_help, ":help [NAME|TOPIC]     this list, or help on a name or a topic" },
    { "examples", do_examples, ":examples [NAME]       lists the examples, or loads one" },
    { "load", do_load, ":load FILE             checks and executes a file" },
    { "reload", do_reload, ":reload                loads the last file again; results are kept" },
    { "save", do_save, ":save FILE             writes the input so far as a file that can be run" },
    { "show", do_show,
      ":show WHAT [FILE]      ast, model, equations, ir or jacobian of the input so far, or of a file" },
    { "wellposed", do_wellposed,
      ":wellposed [FILE]      whether the motion is unique, for the input so far or for a file" },
    { "type", do_type, ":type EXPRESSION       shows the type of its value" },
    { "plot", do_plot, ":plot EXPRESSION       draws a series here" },
    { "undo", do_undo,
      ":undo                  takes back the last input; the earlier ones are executed again" },
    { "history", do_history, ":history               what was executed" },
    { "time", do_time, ":time STATEMENT        executes it and shows how long it took" },
    { "set", do_set, ":set OPTION VALUE      an option of the session" },
    { "quit", do_quit, ":quit                  ends the session (also Ctrl-D)" },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void do_help(repl_state *r, const char *arg)
{
    if (*arg) {
        const char *name = arg + (*arg == ':');
        int command = -1;
        for (int k = 0; k < COMMANDS; k++)
            if (!strcmp(commands[k].name, name))
                command = k;
        if (command >= 0)
            puts(commands[command].help);
        cdl_status st = *arg == ':' && command >= 0 ? CDL_OK : cdl_help(r->s, name);
        if (command >= 0)
            st = CDL_OK;
        if (st == CDL_USAGE)
            tell(stderr, "cdl: no help for '%s'\n", arg);
        note(r, st);
        return;
    }
    puts("Type statements and expressions of the language: model ..., run ball for 3, max(y), expect ...");
    for (int k = 0; k < COMMANDS; k++)
        puts(commands[k].help);
    puts("Topics of :help:");
    note(r, cdl_help(r->s, "topics"));
}

static char *command_next(const char *prefix, int again)
{
    static int k;
    if (!again)
        k = 0;
    int colon = *prefix == ':';
    for (; k < COMMANDS; k++) {
        if (strncmp(commands[k].name, prefix + colon, strlen(prefix + colon)))
            continue;
        char *p = malloc(strlen(commands[k].name) + 2);
        if (p)
            sprintf(p, "%s%s", colon ? ":" : "", commands[k++].name);
        return p;
    }
    return NULL;
}

static void do_command(repl_state *r, char *line)
{
    char *name = line + 1, *arg = name + strcspn(name, " \t");
    const char *names[COMMANDS + 1] = { NULL };
    if (*arg)
        *arg++ = 0;
    arg += strspn(arg, " \t");
    for (size_t n = strlen(arg); n && (arg[n - 1] == ' ' || arg[n - 1] == '\t');)
        arg[--n] = 0;
    for (int k = 0; k < COMMANDS; k++) {
        names[k] = commands[k].name;
        if (!strcmp(name, names[k])) {
            commands[k].act(r, arg);
            return;
        }
    }
    const char *near = closest(name, names);
    tell(stderr, "cdl: unknown command ':%s'", name);
    if (near)
        tell(stderr, "; did you mean ':%s'?", near);
    fputs("\n", stderr);
    note(r, CDL_USAGE);
}

/* ---- the loop ---- */

/* quit, help: a command that lacks its colon */
static void bare_command(const char *text)
{
    char word[32] = "", more = 0;
    if (sscanf(text, " %31[a-z] %c", word, &more) != 1)
        return;
    if (!strcmp(word, "exit"))
        strcpy(word, "quit");
    for (int k = 0; k < COMMANDS; k++)
        if (!strcmp(commands[k].name, word))
            tell(stderr, "cdl: commands begin with a colon: :%s\n", word);
}

/* complete text is executed; an empty line outside brackets ends input that never becomes complete */
static void line_take(repl_state *r, char *line)
{
    if (!r->len && line[strspn(line, " \t")] == ':') {
        do_command(r, line + strspn(line, " \t"));
        return;
    }
    int blank = !line[strspn(line, " \t")];
    if (!r->len && blank)
        return;
    if (!text_add(r, line)) {
        r->done = 1;
        return;
    }
    if (!strncmp(line + strspn(line, " \t"), "##", 2))
        return; /* it documents what follows */
    if (!cdl_complete(r->s, r->text, r->len) &&
        !(blank && r->terminal && !cdl_open_brackets(r->s, r->text, r->len)))
        return;
    cdl_status st = cdl_run_text(r->s, "<input>", r->text, r->len);
    note(r, st);
    if (st < CDL_USAGE)
        keep(r, r->text);
    else
        bare_command(r->text);
    if (r->terminal) { /* the block is one entry */
        r->text[r->len - 1] = 0;
        remember(r->text);
    }
    r->len = 0;
    fflush(stdout);
    if (r->worst == CDL_MEMORY)
        r->done = 1;
}

/* pasted text comes as one line with several in it, with the prompts of a session that was copied */
static void lines_take(repl_state *r, char *all)
{
    for (char *line = all, *end; line && !r->done; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        while (!strncmp(line, "cdl> ", 5) || !strncmp(line, "...> ", 5))
            line += 5;
        if (r->terminal && !r->len && *line == ':')
            remember(line);
        interrupts_clear();
        line_take(r, line);
        if (r->terminal && interrupts_seen()) { /* what was pasted behind it is dropped too */
            r->len = 0;
            end = NULL;
        }
        if (interrupts_terminate())
            r->done = 1;
    }
}

static void loop(repl_state *r)
{
    /* readline must know which characters have no width */
    static const char *const prompts[2][2] = { { "cdl> ", "...> " },
                                               { "\001\033[1;34m\002cdl> \001\033[0m\002",
                                                 "\001\033[34m\002...> \001\033[0m\002" } };
    while (!r->done) {
        char *line = line_read(r, prompts[r->terminal && colour_wanted()][r->len > 0]);
        if (!line)
            break;
        lines_take(r, line);
        free(line);
    }
    if (r->len)
        note(r, cdl_run_text(r->s, "<input>", r->text, r->len));
}

int repl(const options *o)
{
    cdl_status st;
    char path[4096];
    repl_state r = { .s = session_open(o, &st), .o = o, .terminal = isatty(0) && isatty(1) };
    if (!r.s)
        return cdl_exit_code(st);
    cdl_set(r.s, "interactive", "yes");
    if (r.terminal) {
        completing = r.s;
        rl_readline_name = "cdl";
        rl_attempted_completion_function = complete;
        rl_completer_word_break_characters = " \t\n()[]{}+-*/^=<>,;'\"";
        rl_catch_signals = 0; /* interrupts are ours */
        interrupts_interactive();
        history_comment_char = '#';
        history_write_timestamps = 1; /* entries of several lines are kept together */
        history_truncate_file(history_path(path, sizeof path), HISTORY_LINES);
        read_history(path);
        tell(stdout, "cdl %s; :help for help\n", cdl_version());
    }
    loop(&r);
    if (r.terminal)
        putchar('\n');
    cdl_finish(r.s);
    cdl_free(r.s);
    for (size_t k = 0; k < r.nkept; k++)
        free(r.kept[k]);
    free(r.kept);
    free(r.file);
    free(r.text);
    return r.terminal ? 0 : cdl_exit_code(r.worst);
}
