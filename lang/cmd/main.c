/* main: the command line. Options are read into one structure; a row of the table of commands executes the
   command. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"

/* ---- writing ---- */

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t interactive, terminated;

/* the first interrupt stops work in order, the second immediately; a third ends a program that does not
   respond, but never an interactive session */
static void on_interrupt(int sig)
{
    if (sig == SIGTERM)
        terminated = 1;
    if (++interrupted < 3 || (interactive && sig == SIGINT))
        return;
    signal(sig, SIG_DFL);
    raise(sig);
}
void interrupts_clear(void)
{
    interrupted = 0;
}

int interrupts_seen(void)
{
    return interrupted;
}

int interrupts_terminate(void)
{
    return terminated;
}

static void interrupts_catch(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_interrupt;
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void interrupts_interactive(void)
{
    interactive = 1;
}

static int out_error; /* the first errno of standard output */

static void out_failed(void)
{
    if (!out_error)
        out_error = errno ? errno : EIO;
}

/* the only place that writes text for people: nothing in it can control the terminal */
static void put_visible(FILE *to, const char *text, size_t len)
{
    size_t need = cdl_visible(text, len, NULL, 0);
    char *shown = need == len ? NULL : malloc(need);
    if (shown)
        cdl_visible(text, len, shown, need);
    errno = 0;
    if (need == len ? fwrite(text, 1, len, to) != len : !shown || fwrite(shown, 1, need, to) != need)
        if (to == stdout)
            out_failed();
    free(shown);
}

void tell(FILE *to, const char *fmt, ...)
{
    va_list ap;
    char *text;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    put_visible(to, text, (size_t)n);
    free(text);
}

static void say_out(void *ud, const char *text, size_t len)
{
    (void)ud;
    put_visible(stdout, text, len);
}

/* control sequences of the library itself: start of line, clear line, colours */
static size_t steering(const char *p, size_t n)
{
    size_t k = 2;
    if (n && *p == '\r')
        return 1;
    if (n < 3 || p[0] != '\033' || p[1] != '[')
        return 0;
    while (k < n && ((p[k] >= '0' && p[k] <= '9') || p[k] == ';'))
        k++;
    return k < n && (p[k] == 'm' || p[k] == 'K') ? k + 1 : 0;
}

/* keeps the order of the two streams if both go to the same place */
static void say_err(void *ud, const char *text, size_t len)
{
    (void)ud;
    errno = 0;
    if (fflush(stdout))
        out_failed();
    for (size_t k = 0, from = 0; k < len;) {
        size_t own = steering(text + k, len - k);
        k += own ? 0 : 1;
        if (!own && k < len)
            continue;
        put_visible(stderr, text + from, k - from);
        fwrite(text + k, 1, own, stderr);
        k += own;
        from = k;
    }
}

int interrupts_callback(void *ud)
{
    (void)ud;
    return (int)interrupted;
}

/* a full disk is an error like any other; a reader that went away needs no message */
static int finish(int code)
{
    errno = 0;
    if (fclose(stdout))
        out_failed();
    if (!out_error)
        return code;
    if (out_error != EPIPE)
        tell(stderr, "cdl: cannot write to standard output: %s\n", strerror(out_error));
    return cdl_exit_code(CDL_IO);
}

/* ---- sessions ---- */

int colour_wanted(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(2) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

void session_callbacks(cdl *s)
{
    cdl_callbacks c = { say_out, say_err, interrupts_callback, NULL };
    cdl_set_callbacks(s, &c);
}

void session_silent(cdl *s)
{
    cdl_callbacks c = { NULL, NULL, interrupts_callback, NULL };
    cdl_set_callbacks(s, &c);
}

static cdl_status session_prepare(cdl *s, const options *o)
{
    const char *lib = getenv("CDL_STDLIB");
    session_callbacks(s);
    if (lib)
        cdl_set(s, "stdlib", lib);
    if (colour_wanted())
        cdl_set(s, "colour", "yes");
    if (isatty(2))
        cdl_set(s, "progress", "yes");
    for (size_t k = 0; k < o->nset; k++) {
        cdl_status st = cdl_set(s, o->set[k], o->to[k]);
        if (st == CDL_USAGE)
            tell(stderr, "cdl: '%s' is not a value of --%s\n", o->to[k], o->set[k]);
        if (st)
            return st;
    }
    for (size_t k = 0; k < o->nparam; k++) {
        cdl_status st = cdl_set_param(s, o->param[k], o->value[k]);
        if (st)
            return st;
    }
    return CDL_OK;
}

cdl *session_open(const options *o, cdl_status *status)
{
    cdl *s = cdl_new(NULL);
    *status = s ? session_prepare(s, o) : CDL_MEMORY;
    if (!s)
        fputs("cdl: there is not enough memory\n", stderr);
    if (*status == CDL_OK)
        return s;
    cdl_free(s);
    return NULL;
}

/* ---- did you mean ---- */

static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[64];
    if (n > 60 || m > 60)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *closest(const char *got, const char *const *names)
{
    size_t most = strlen(got) / 3 + 1, best = most + 1;
    const char *found = NULL;
    for (; *names; names++) {
        size_t d = distance(got, *names);
        if (d < best && d < strlen(got)) {
            best = d;
            found = *names;
        }
    }
    return found;
}

/* ---- commands ---- */

static int worse(int a, int b)
{
    return a > b ? a : b;
}

static void option_add(options *o, const char *name, const char *to)
{
    o->set[o->nset] = name;
    o->to[o->nset++] = to;
}

static int option_given(const options *o, const char *name)
{
    for (size_t k = 0; k < o->nset; k++)
        if (!strcmp(o->set[k], name))
            return 1;
    return 0;
}

/* each file is a session of its own */
static int each_file(const options *o, cdl_status (*file)(cdl *, const char *),
                     cdl_status (*text)(cdl *, const char *, const char *, size_t))
{
    int code = 0;
    for (size_t k = 0; k < o->nfile && !interrupted; k++) {
        cdl_status st;
        cdl *s = session_open(o, &st);
        if (!s)
            return cdl_exit_code(st);
        /* several files would write to the same manifest */
        const char *base = strrchr(o->file[k], '/') ? strrchr(o->file[k], '/') + 1 : o->file[k];
        char name[512];
        snprintf(name, sizeof name, "%s.manifest.json", base);
        if (o->nfile > 1 && option_given(o, "output"))
            cdl_set(s, "manifest", name);
        if (strcmp(o->file[k], "-"))
            st = file(s, o->file[k]);
        else {
            const char *p;
            size_t len;
            st = cdl_read(s, STDIN_FILENO, &p, &len);
            if (st == CDL_OK)
                st = text(s, "<stdin>", p, len);
        }
        code = worse(code, cdl_exit_code(st));
        if (st != CDL_MEMORY)
            code = worse(code, cdl_exit_code(cdl_finish(s)));
        cdl_free(s);
    }
    return code;
}

/* a checkpoint is of one run of one file, a page of one session */
static int one_file_missed(const options *o)
{
    for (size_t k = 0; k < o->nset; k++)
        if ((!strcmp(o->set[k], "checkpoint") || !strcmp(o->set[k], "from") ||
             !strcmp(o->set[k], "report")) &&
            o->nfile != 1) {
            fprintf(stderr, "cdl: --%s works with one file at a time\n", o->set[k]);
            return CDL_USAGE;
        }
    return 0;
}

static int run_main(const options *o)
{
    if (one_file_missed(o))
        return CDL_USAGE;
    return each_file(o, cdl_load_file, cdl_run_text);
}

static cdl_status wellposed_file(cdl *s, const char *path)
{
    return cdl_show(s, "wellposed", path);
}
static cdl_status wellposed_text(cdl *s, const char *name, const char *text, size_t len)
{
    return cdl_show_text(s, "wellposed", name, text, len);
}

/* errors first, then what theory says; standard input can be read once */
static int check_main(const options *o)
{
    int input = 0;
    for (size_t k = 0; k < o->nfile; k++)
        input |= !strcmp(o->file[k], "-");
    int code = o->wellposed && input ? 0 : each_file(o, cdl_check_file, cdl_check_text);
    return o->wellposed && code == 0 ? each_file(o, wellposed_file, wellposed_text) : code;
}

static int text_main(const options *o)
{
    int code = 0;
    cdl_status st;
    cdl *s = session_open(o, &st);
    if (!s)
        return cdl_exit_code(st);
    for (size_t k = 0; k < o->nfile; k++)
        code = worse(code, cdl_exit_code(cdl_run_text(s, "<command>", o->file[k], strlen(o->file[k]))));
    if (st != CDL_MEMORY)
        code = worse(code, cdl_exit_code(cdl_finish(s)));
    cdl_free(s);
    return code;
}

/* a terminal shows the text, a file gets its bytes */
static void fmt_put(const char *p, size_t n)
{
    if (isatty(1))
        put_visible(stdout, p, n);
    else if (fwrite(p, 1, n, stdout) != n)
        out_failed();
}

static int fmt_stdin(cdl *s, int check)
{
    size_t len, outlen;
    const char *p, *out;
    cdl_status st = cdl_read(s, STDIN_FILENO, &p, &len);
    if (st == CDL_OK)
        st = cdl_fmt(s, "<stdin>", p, len, &out, &outlen);
    if (st == CDL_OK && check)
        st = outlen == len && !memcmp(p, out, len) ? CDL_OK : CDL_EXPECT;
    else if (st == CDL_OK)
        fmt_put(out, outlen);
    return cdl_exit_code(st);
}

static int fmt_main(const options *o)
{
    int code = 0;
    for (size_t k = 0; k < o->nfile; k++) {
        cdl_status st;
        cdl *s = session_open(o, &st);
        if (!s)
            return cdl_exit_code(st);
        int one = strcmp(o->file[k], "-") ? cdl_exit_code(cdl_fmt_file(s, o->file[k], o->check))
                                          : fmt_stdin(s, o->check);
        if (one == CDL_EXPECT && o->check)
            tell(stdout, "%s\n", o->file[k]);
        code = worse(code, one);
        cdl_free(s);
    }
    return code;
}

static const char *const stages[] = { "ast", "model", "equations", "ir", "jacobian", NULL };

static int show_main(const options *o)
{
    const char *what = o->file[0];
    size_t known = 0;
    while (stages[known] && strcmp(stages[known], what))
        known++;
    if (!stages[known]) {
        const char *near = closest(what, stages);
        tell(stderr, "cdl: show ast, model, equations, ir or jacobian, not '%s'", what);
        if (near)
            tell(stderr, "; did you mean '%s'?", near);
        fputc('\n', stderr);
        return CDL_USAGE;
    }
    int code = 0;
    for (size_t k = 1; k < o->nfile; k++) {
        cdl_status st;
        const char *p;
        size_t len;
        cdl *s = session_open(o, &st);
        if (!s)
            return cdl_exit_code(st);
        if (strcmp(o->file[k], "-"))
            st = cdl_show(s, what, o->file[k]);
        else if ((st = cdl_read(s, STDIN_FILENO, &p, &len)) == CDL_OK)
            st = cdl_show_text(s, what, "<stdin>", p, len);
        code = worse(code, cdl_exit_code(st));
        cdl_free(s);
    }
    return code;
}

static int emit_main(const options *o)
{
    if ((strcmp(o->file[0], "c") && strcmp(o->file[0], "fmu")) || o->nfile > 3) {
        tell(stderr, "cdl: write cdl emit c FILE [MODEL], or cdl emit fmu FILE [MODEL] [-o x.fmu]\n");
        return CDL_USAGE;
    }
    options with = *o;
    option_add(&with, "quiet", "yes");
    cdl_status st;
    cdl *s = session_open(&with, &st);
    if (!s)
        return cdl_exit_code(st);
    st = cdl_emit(s, o->file[0], o->file[1], o->nfile == 3 ? o->file[2] : NULL);
    cdl_free(s);
    return cdl_exit_code(st);
}

static int is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* folders among the files hold shards */
static int merge_main(const options *o)
{
    options with = *o;
    size_t room = 1;
    for (size_t k = 0; k < o->nfile; k++)
        room += strlen(o->file[k]) + 1;
    char *shards = calloc(room, 1);
    if (!shards)
        return cdl_exit_code(CDL_MEMORY);
    with.nfile = 0;
    for (size_t k = 0; k < o->nfile; k++)
        if (is_folder(o->file[k]))
            strcat(strcat(shards, o->file[k]), "\n");
        else
            with.file[with.nfile++] = o->file[k];
    option_add(&with, "merge", "yes");
    option_add(&with, "shards", shards);
    int code = run_main(&with);
    free(shards);
    return code;
}

/* ---- view ---- */

/* "models/ball.cdl" -> "ball.html", "results/" -> "results.html"; freed by the caller */
static char *page_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    const char *begin = path + n;
    while (begin > path && begin[-1] != '/')
        begin--;
    size_t stem = (size_t)(path + n - begin);
    if (stem > 4 && !strncmp(begin + stem - 4, ".cdl", 4))
        stem -= 4;
    char *name;
    if (!stem || *begin == '.')
        return strdup("view.html");
    return asprintf(&name, "%.*s.html", (int)stem, begin) < 0 ? NULL : name;
}

/* if there is a display; the viewer runs independently */
static void browser_open(const options *o, const char *page)
{
    const char *dir = "";
    for (size_t k = 0; k < o->nset; k++)
        if (!strcmp(o->set[k], "output"))
            dir = o->to[k];
    if (!isatty(1) || (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")))
        return;
    char *path = *dir ? path_of(dir, page) : strdup(page);
    if (path && fork() == 0) {
        execlp("xdg-open", "xdg-open", path, (char *)NULL);
        _exit(127);
    }
    free(path);
}

static int view_folder(const options *o, const char *folder, const char *page)
{
    cdl_status st;
    cdl *s = session_open(o, &st);
    if (!s)
        return cdl_exit_code(st);
    st = cdl_page_folder(s, folder, page);
    cdl_free(s);
    return cdl_exit_code(st);
}

static int view_main(const options *o)
{
    int code = 0;
    for (size_t k = 0; k < o->nfile && !interrupted; k++) {
        options with = *o;
        char *page = page_name(o->file[k]);
        if (!page)
            return cdl_exit_code(CDL_MEMORY);
        with.file = o->file + k;
        with.nfile = 1;
        if (is_folder(o->file[k]))
            code = worse(code, view_folder(&with, o->file[k], page));
        else {
            option_add(&with, "report", page);
            option_add(&with, "quiet", "yes");
            code = worse(code, run_main(&with));
        }
        browser_open(o, page);
        free(page);
    }
    return code;
}

static int version_main(const options *o)
{
    cdl_status st;
    cdl *s = o->json ? session_open(o, &st) : NULL;
    if (s)
        puts(cdl_version_json(s));
    else if (!o->json)
        tell(stdout, "cdl %s (%s)\n", cdl_version(), cdl_commit());
    cdl_free(s);
    return 0;
}

typedef struct {
    const char *name, *usage;
    size_t least;
    int (*main)(const options *);
    const char *help;
} command;
static const command commands[] = {
    { "run", "run FILE... [-p NAME=VALUE]... [-o DIR] [--json]", 1, run_main,
      "Checks each file, then executes its statements in order; - is standard input.\n"
      "  -p NAME=VALUE   value of every parameter of that name\n"
      "  -o DIR          directory for files that are written\n"
      "  -j N            processes for the points of an experiment\n"
      "  --resume        do not run finished points again\n"
      "  --shard=K/N     run every N-th point of each experiment, from the K-th; see merge\n"
      "  --json          print one JSON object per run or sweep point, one per line\n"
      "  --time=SECONDS  how long the command may take; unlimited by default\n"
      "  --memory=BYTES  how much memory it may use, such as 500M or 4G (3/4 of the memory available)\n"
      "  --disk=BYTES    how much it may write to files (64G)\n"
      "  --spill=MB      megabytes of samples kept in memory; further samples go to a file (256)\n"
      "  --checkpoint FILE          write the state of the run to FILE at its end, and when it is "
      "interrupted\n"
      "  --checkpoint-every S|t=T   also every S seconds, or every T of simulated time\n"
      "  --from FILE                continue the run whose state is in FILE\n"
      "  --problems X.hdf5          write the contact problems of steps as X-000001.hdf5, ... (FCLIB), or as "
      "X.txt\n"
      "  --problems-every K         write every K-th of them\n"
      "  --report FILE.html         write a page for a browser: the motion, plots, tables, the manifest\n"
      "  --keep-going    record a step that could not be solved instead of ending the run\n"
      "  -q, --quiet     no summaries\n" },
    { "check", "check [--wellposed] FILE...", 1, check_main,
      "Finds all errors without running anything.\n"
      "  --wellposed     reports what theory says about each model: whether the motion is unique, and "
      "where that is not known\n"
      "  --json          the same as JSON, one line per model\n" },
    { "fmt", "fmt [--check] FILE...", 1, fmt_main,
      "Rewrites files in the standard layout; - reads standard input and writes standard output.\n"
      "  --check         write nothing, name the files that differ, exit 1 if there are any\n" },
    { "show", "show ast|model|equations|ir|jacobian FILE...", 2, show_main,
      "Prints a stage of the compilation.\n" },
    { "emit", "emit c|fmu FILE [MODEL] [-p NAME=VALUE]...", 2, emit_main,
      "Writes the first run of the file, or of MODEL. c: as C that needs only libm and gives the same "
      "bytes;\n"
      "with -DMAIN it prints the samples. fmu: as an FMU (FMI 2.0) for co-simulation, MODEL.fmu.\n"
      "  -p NAME=VALUE   value of every parameter of that name\n"
      "  -o X.fmu        the file, or its folder\n"
      "  --inputs A,B    parameters that are inputs of the unit\n" },
    { "repro", "repro MANIFEST", 1, repro_main,
      "Repeats the runs that a manifest.json records, in a temporary folder, and compares the results: "
      "exit 0 if all\n"
      "bytes are the same, otherwise 1, with a list of the numbers that differ.\n"
      "  --time, --memory, --disk   limits, as for cdl run\n" },
    { "diff", "diff A B [--within=X]", 2, diff_main,
      "Compares two folders of results, or two files, number by number.\n"
      "  --within=X      relative difference that is allowed\n" },
    { "verify", "verify DIR|FILE... [--model=FILE.cdl]", 1, verify_main,
      "Recomputes gaps, slips, cones, complementarity and energies of saved results (.npz, .csv, .jsonl) "
      "from the\n"
      "model, and reports the largest error of each: exit 0 if all checks pass, otherwise 1.\n"
      "  --model=FILE    the model; by default that of the manifest beside the file, or in the folder\n"
      "  -p NAME=NUMBER  value of a parameter, with --model\n"
      "  --json          one JSON object per file, one per line\n" },
    { "merge", "merge FILE... [FOLDER...] -o DIR", 1, merge_main,
      "Merges the results of runs with --shard=k/n in DIR and in the folders, to the same files as "
      "without shards.\n" },
    { "view", "view FILE|DIR... [-o DIR]", 1, view_main,
      "Writes a page for a browser and opens it if there is a display. FILE.cdl is run first; for a "
      "folder of results\n"
      "(with its manifest.json) the tables are shown. The page is FILE.html or DIR.html, in the folder "
      "of -o or the current one.\n"
      "  -p, -j, --time, ...        as for cdl run\n" },
    { "lsp", "lsp", 0, lsp_main,
      "The language server for editors: messages of the Language Server Protocol on standard input and "
      "output.\n" },
    { "-e", "-e TEXT", 1, text_main, "Executes the text.\n" },
    { "--version", "--version [--json]", 0, version_main,
      "Prints the version, and with --json how the program was built.\n" },
    { NULL, NULL, 0, NULL, NULL }
};

static const char common_help[] =
    "\n"
    "Options of all commands:\n"
    "  --diagnostics=text|json   form of errors and warnings\n"
    "  --allow-outside           let models read outside their folder and write outside -o\n"
    "  --colour=yes|no           coloured messages; by default on terminals, unless NO_COLOR is set\n"
    "\n"
    "Exit: 0 ok, 1 an expectation failed, 2 usage, 3 the model has errors, 4 a solver failed, 5 input or "
    "output failed.\n"
    "The manual is in cdl(1), the language in cdl(5).\n";

static int help_all(FILE *to)
{
    fputs("usage: cdl                                  interactive session\n", to);
    for (const command *c = commands; c->name; c++)
        tell(to, "       cdl %s\n", c->usage);
    fputs("       cdl help [COMMAND]\n", to);
    fputs(common_help, to);
    return 0;
}

static int help_one(const command *c)
{
    tell(stdout, "usage: cdl %s\n%s%s", c->usage, c->help, common_help);
    return 0;
}

static const command *command_find(const char *name)
{
    for (const command *c = commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

/* ---- the command line ---- */

static int usage_near(const char *kind, const char *got, const char *const *names)
{
    const char *near = closest(got, names);
    tell(stderr, "cdl: unknown %s '%s'", kind, got);
    if (near)
        tell(stderr, "; did you mean '%s'?", near);
    fputs("\ntry 'cdl --help'\n", stderr);
    return CDL_USAGE;
}

static int unknown_command(const char *got)
{
    const char *names[sizeof commands / sizeof *commands + 2];
    size_t n = 0, len = strlen(got);
    for (const command *c = commands; c->name; c++)
        names[n++] = c->name;
    names[n++] = "help";
    names[n] = NULL;
    if (len > 4 && !strcmp(got + len - 4, ".cdl")) {
        tell(stderr, "cdl: unknown command '%s'; to run a file, type: cdl run %s\n", got, got);
        return CDL_USAGE;
    }
    return usage_near(*got == '-' ? "option" : "command", got, names);
}

static const char *const option_names[] = { "-p",
                                            "-o",
                                            "-j",
                                            "-q",
                                            "--json",
                                            "--quiet",
                                            "--keep-going",
                                            "--check",
                                            "--help",
                                            "--wellposed",
                                            "--diagnostics",
                                            "--resume",
                                            "--memory",
                                            "--shard",
                                            "--within",
                                            "--model",
                                            "--colour",
                                            "--color",
                                            "--time",
                                            "--disk",
                                            "--spill",
                                            "--report",
                                            "--inputs",
                                            "--allow-outside",
                                            "--checkpoint",
                                            "--from",
                                            "--checkpoint-every",
                                            "--problems",
                                            "--problems-every",
                                            NULL };

static int param_add(options *o, char *text)
{
    char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1]) {
        tell(stderr, "cdl: -p takes NAME=VALUE, not '%s'\n", text);
        return CDL_USAGE;
    }
    *eq = 0;
    o->param[o->nparam] = text;
    o->value[o->nparam++] = eq + 1;
    return 0;
}

static int valued_option(options *o, char kind, char *v)
{
    char *end;
    if (kind == 'p')
        return param_add(o, v);
    if (kind == 'o') {
        option_add(o, "output", v);
        return 0;
    }
    if (strtol(v, &end, 10) > 0 && !*end) {
        option_add(o, "jobs", v);
        return 0;
    }
    tell(stderr, "cdl: -j takes a number of processes, not '%s'\n", v);
    return CDL_USAGE;
}

/* the name of an option that takes a value, as --NAME=VALUE or --NAME VALUE, or NULL */
static const char *long_option(const char *a, size_t n)
{
    static const char *const names[] = { "--time",          "--memory",     "--disk",   "--spill",
                                         "--shard",         "--checkpoint", "--from",   "--checkpoint-every",
                                         "--within",        "--model",      "--colour", "--color",
                                         "--diagnostics",   "--report",     "--inputs", "--problems",
                                         "--problems-every" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strlen(names[k]) == n && !strncmp(a, names[k], n))
            return names[k] + 2;
    return NULL;
}

static int long_valued(options *o, const char *name, const char *v)
{
    char *end;
    if (!strcmp(name, "model"))
        o->model = v;
    else if (strcmp(name, "within"))
        option_add(o, !strcmp(name, "color") ? "colour" : name, v);
    else {
        o->within = strtod(v, &end);
        if (*end || end == v || !(o->within >= 0)) {
            tell(stderr, "cdl: --within takes a number that is not negative, not '%s'\n", v);
            return CDL_USAGE;
        }
    }
    return 0;
}

static int flag(options *o, char *a)
{
    char *eq = strchr(a, '=');
    if (!strcmp(a, "--stdio"))
        return 0; /* editors add it to the command of a server; lsp has no other way */
    if (!strcmp(a, "--json")) {
        o->json = 1;
        option_add(o, "json", "yes");
    } else if (!strcmp(a, "-q") || !strcmp(a, "--quiet"))
        option_add(o, "quiet", "yes");
    else if (!strcmp(a, "--keep-going"))
        option_add(o, "keep-going", "yes");
    else if (!strcmp(a, "--allow-outside"))
        option_add(o, "allow-outside", "yes");
    else if (!strcmp(a, "--resume"))
        option_add(o, "resume", "yes");
    else if (eq && long_option(a, (size_t)(eq - a)))
        return long_valued(o, long_option(a, (size_t)(eq - a)), eq + 1);
    else if (!strcmp(a, "--check"))
        o->check = 1;
    else if (!strcmp(a, "--wellposed"))
        o->wellposed = 1;
    else if (!strcmp(a, "--help") || !strcmp(a, "-h"))
        o->help = 1;
    else {
        if (eq)
            *eq = 0;
        return usage_near("option", a, option_names);
    }
    return 0;
}

static int options_read(options *o, int argc, char **argv)
{
    int only_files = 0, bad = 0;
    for (int k = 0; k < argc && !bad; k++) {
        char *a = argv[k];
        if (only_files || a[0] != '-' || !a[1])
            o->file[o->nfile++] = a;
        else if (!strcmp(a, "--"))
            only_files = 1;
        else if (long_option(a, strlen(a)) && k + 1 < argc)
            bad = long_valued(o, a + 2, argv[++k]);
        else if (long_option(a, strlen(a))) {
            tell(stderr, "cdl: %s needs a value\n", a);
            bad = CDL_USAGE;
        } else if (strchr("poj", a[1]) && a[2])
            bad = valued_option(o, a[1], a + 2);
        else if (strchr("poj", a[1]) && k + 1 < argc)
            bad = valued_option(o, a[1], argv[++k]);
        else if (strchr("poj", a[1])) {
            tell(stderr, "cdl: %s needs a value\n", a);
            bad = CDL_USAGE;
        } else
            bad = flag(o, a);
    }
    return bad;
}

static int dispatch(options *o, int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--allow-outside"))
        option_add(o, "allow-outside", "yes");
    if (argc < 2 || o->nset)
        return repl(o);
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        return help_all(stdout);
    if (!strcmp(name, "help")) {
        const command *c = argc > 2 ? command_find(argv[2]) : NULL;
        return c ? help_one(c) : argc > 2 ? unknown_command(argv[2]) : help_all(stdout);
    }
    const command *c = command_find(!strcmp(name, "-V") ? "--version" : name);
    if (!c)
        return unknown_command(name);
    /* the text after -e is no option, whatever it begins with */
    int from = 2, bad;
    if (!strcmp(c->name, "-e") && argc > 2) {
        o->file[o->nfile++] = argv[2];
        from = 3;
    }
    bad = options_read(o, argc - from, argv + from);
    if (bad)
        return bad;
    if (o->help)
        return help_one(c);
    if (o->nfile < c->least) {
        tell(stderr, "cdl: usage: cdl %s\n", c->usage);
        return CDL_USAGE;
    }
    return c->main(o);
}

int main(int argc, char **argv)
{
    options o = { 0 };
    size_t n = (size_t)argc + 1;
    const char **room = calloc(7 * n + 1, sizeof *room);
    if (!room)
        return cdl_exit_code(CDL_MEMORY);
    o.param = room;
    o.value = room + n;
    o.set = room + 2 * n;
    o.to = room + 4 * n;
    o.file = room + 6 * n;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk */
    interrupts_catch();
    int code = finish(dispatch(&o, argc, argv));
    free(room);
    return code;
}
