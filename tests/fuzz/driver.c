/* driver: runs a fuzz target without libFuzzer. It tries the corpus, then random changes of it from a fixed
   seed until the time is up, so that a run can be repeated on any machine. An input that crashes, or takes
   longer than 10 s, is saved as crash-SIGNAL-PID.
       fuzz_X [-t SECONDS] [-s SEED] [-n RUNS] FILE|FOLDER... */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_BYTES = 1 << 14, CORPUS_FILES = 4096, HANG_SECONDS = 10 };
typedef struct {
    uint8_t *at;
    size_t n;
} input;
static input corpus[CORPUS_FILES];
static size_t corpus_n;

/* The current input, which the signal handler reads. */
static uint8_t now[INPUT_BYTES];
static size_t now_n;
static int folder; /* where inputs are saved: a target may change its directory */

/* Pieces of the language, which random bytes would rarely contain. */
static const char *const words[] = {
    "model m {",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\n",
    ";",
    ":",
    ",",
    "'",
    "''",
    "..",
    "^",
    "<=",
    ">=",
    "==",
    "=",
    "≤",
    "∈",
    "′",
    "·",
    "μ",
    "#",
    "##",
    "\"",
    "1e308",
    "1e-320",
    "99999999999999999999",
    "0x",
    ".5",
    "-",
    "[m/s^2]",
    "[kg",
    "dof x = 0",
    "param a in 0..1 = 2",
    "constraint c: x >= 0",
    "{ impact = newton(e) }",
    "{ friction = coulomb(mu) }",
    "for i in 1..N {",
    "sum(",
    "for s in ",
    "where ",
    "fn f(v) = ",
    "let ",
    "part p: m",
    "use std.planar",
    "cases { 1 if x < 0; 2 otherwise }",
    "if a then b else c",
    "run m for 1 with ",
    "expect ",
    "within rel(1e-6)",
    "experiment e {",
    "sweep a in ",
    "kinetic ",
    "potential ",
    "field u(x)",
    "domain x in 0..1",
    "obstacle u >= 0",
    "history x(s) = s",
    "x(t - 1)",
    "when x < 0 {",
    "stop when ",
    "not ",
    " and ",
    " or ",
    " in ",
    "\xff",
    "\xc3",
    "\r\n",
};

/* xorshift64*: small, and the same on every machine. */
static uint64_t seed = 1;
static uint64_t random_bits(void)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * UINT64_C(2685821657736338717);
}
static size_t below(size_t n)
{
    return n ? (size_t)((random_bits() >> 16) % n) : 0;
}

static void corpus_put(const uint8_t *at, size_t n)
{
    if (n > INPUT_BYTES)
        n = INPUT_BYTES;
    uint8_t *p = corpus_n < CORPUS_FILES ? malloc(n ? n : 1) : NULL;
    if (!p)
        return;
    memcpy(p, at, n);
    corpus[corpus_n++] = (input){ p, n };
}

/* A file of erroneous programs contains several inputs: each ends at its line of ====, the next one starts
   after ----. */
static void corpus_programs(const uint8_t *at, size_t n)
{
    size_t begin = 0, line = 0;
    bool inside = true;
    for (size_t k = 0; k < n; k++) {
        if (at[k] != '\n')
            continue;
        if (k - line == 4 && !memcmp(at + line, "====", 4) && inside) {
            corpus_put(at + begin, line - begin);
            inside = false;
        }
        if (k - line == 4 && !memcmp(at + line, "----", 4)) {
            begin = k + 1;
            inside = true;
        }
        line = k + 1;
    }
}

static void corpus_add(const char *path)
{
    static uint8_t whole[1 << 18];
    size_t name = strlen(path);
    bool programs = name > 5 && !strcmp(path + name - 5, ".test");
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    size_t n = fread(whole, 1, programs ? sizeof whole : INPUT_BYTES, f);
    fclose(f);
    if (programs)
        corpus_programs(whole, n);
    else
        corpus_put(whole, n);
}

static void corpus_read(const char *path)
{
    struct dirent **e;
    struct stat st;
    if (stat(path, &st))
        return;
    if (!S_ISDIR(st.st_mode)) {
        corpus_add(path);
        return;
    }
    /* sorted, because the effect of a seed depends on the order */
    int n = scandir(path, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char sub[4096];
        int k = snprintf(sub, sizeof sub, "%s/%s", path, e[i]->d_name);
        if (e[i]->d_name[0] != '.' && k > 0 && (size_t)k < sizeof sub)
            corpus_read(sub);
        free(e[i]);
    }
    if (n >= 0)
        free(e);
}

/* Replaces `cut` bytes at `at` by n bytes; drops what does not fit. */
static void replace(size_t at, size_t cut, const void *p, size_t n)
{
    if (cut > now_n - at)
        cut = now_n - at;
    if (n > INPUT_BYTES - (now_n - cut))
        n = INPUT_BYTES - (now_n - cut);
    memmove(now + at + n, now + at + cut, now_n - at - cut);
    memcpy(now + at, p, n);
    now_n += n - cut;
}

static void mutate(void)
{
    static uint8_t piece[INPUT_BYTES];
    size_t at = below(now_n + 1), n;
    uint8_t byte = (uint8_t)random_bits();
    const char *w = words[below(sizeof words / sizeof *words)];
    const input *other = &corpus[below(corpus_n)];
    switch (below(8)) {
    case 0:
        replace(at, 1, &byte, 1);
        break;
    /* remove a little */
    case 1:
        replace(at, 1 + below(16), "", 0);
        break;
    /* remove a lot */
    case 2:
        replace(at, below(now_n), "", 0);
        break;
    case 3:
    case 4:
        replace(at, below(2) ? 0 : strlen(w), w, strlen(w));
        break;
    case 5: /* a piece of another input */
        n = below(other->n + 1);
        if (n > 200)
            n = 200;
        replace(at, below(20), other->at + below(other->n - n + 1), n);
        break;
    case 6: /* a piece of itself, once or several times */
        n = below(now_n - at + 1);
        if (n > 100)
            n = 100;
        memcpy(piece, now + at, n);
        for (size_t k = below(2) ? 1 : below(300); k; k--)
            replace(at, 0, piece, n);
        break;
    default: /* deep nesting */
        for (size_t k = below(400); k; k--)
            replace(at, 0, &"([{-'"[below(5)], 1);
    }
}

static void on_signal(int sig)
{
    char name[64];
    snprintf(name, sizeof name, "crash-%d-%ld", sig, (long)getpid());
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        ssize_t k = write(fd, now, now_n);
        close(fd);
        (void)k;
    }
    fprintf(stderr, "%s: signal %d, input in %s\n", sig == SIGALRM ? "hang" : "crash", sig, name);
    signal(sig, SIG_DFL);
    raise(sig == SIGALRM ? SIGKILL : sig);
}

static void catch_signals(void)
{
    static char stack[1 << 16]; /* after a stack overflow the normal stack is full */
    stack_t ss = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER };
    static const int sigs[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM };
    folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sigaltstack(&ss, NULL);
    for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
        sigaction(sigs[i], &sa, NULL);
}

static void try_now(void)
{
    /* a copy of exact size, so that a sanitizer sees a read past the end */
    uint8_t *p = malloc(now_n ? now_n : 1);
    if (!p)
        return;
    memcpy(p, now, now_n);
    alarm(HANG_SECONDS);
    LLVMFuzzerTestOneInput(p, now_n);
    alarm(0);
    free(p);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    double limit = 60, start = seconds_now();
    long runs = -1, done = 0;
    for (int c; (c = getopt(argc, argv, "t:s:n:")) != -1;)
        switch (c) {
        case 't':
            limit = atof(optarg);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10) | 1;
            break;
        case 'n':
            runs = atol(optarg);
            break;
        default:
            fprintf(stderr, "usage: %s [-t seconds] [-s seed] [-n runs] file|folder...\n", argv[0]);
            return 2;
        }
    for (int i = optind; i < argc; i++)
        corpus_read(argv[i]);
    if (!corpus_n) {
        fprintf(stderr, "%s: no corpus\n", argv[0]);
        return 2;
    }
    int out = dup(STDOUT_FILENO); /* a target may redirect its output */
    catch_signals();

    /* first the unchanged corpus, then changed inputs */
    for (size_t i = 0; i < corpus_n; i++, done++) {
        memcpy(now, corpus[i].at, now_n = corpus[i].n);
        try_now();
    }
    while (done != runs && seconds_now() - start < limit) {
        const input *in = &corpus[below(corpus_n)];
        memcpy(now, in->at, now_n = in->n);
        for (size_t k = 1 + below(6); k; k--)
            mutate();
        try_now();
        done++;
    }
    dprintf(out, "%ld inputs from %zu in the corpus, %.1f s\n", done, corpus_n, seconds_now() - start);
    for (size_t i = 0; i < corpus_n; i++)
        free(corpus[i].at);
    return 0;
}
