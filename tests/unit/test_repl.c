/* the interactive session through a pseudo-terminal: completion, history, paste, interrupts */
#define _GNU_SOURCE
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

typedef struct {
    int fd;
    pid_t pid;
    char seen[1 << 16];
    size_t n;
} terminal;
static char home[64];

static void terminal_open(terminal *t)
{
    struct winsize size = { .ws_row = 40, .ws_col = 200 };
    memset(t, 0, sizeof *t);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    assert_true(t->pid >= 0);
    if (t->pid)
        return;
    setenv("HOME", home, 1);
    setenv("TERM", "xterm", 1);
    setenv("INPUTRC", "/dev/null", 1);
    if (chdir(home))
        _exit(126);
    execl(getenv("CDL"), "cdl", (char *)NULL);
    _exit(127);
}

/* waits for a text, for some seconds; forgets what came before its end */
static int sees(terminal *t, const char *what)
{
    for (int tries = 0; tries < 200; tries++) {
        char *at = strstr(t->seen, what);
        if (at) {
            at += strlen(what);
            t->n -= (size_t)(at - t->seen);
            memmove(t->seen, at, t->n + 1);
            return 1;
        }
        struct pollfd p = { .fd = t->fd, .events = POLLIN };
        if (poll(&p, 1, 100) <= 0)
            continue;
        if (t->n > sizeof t->seen / 2)
            t->n = 0;
        ssize_t k = read(t->fd, t->seen + t->n, sizeof t->seen - t->n - 1);
        if (k <= 0)
            break;
        for (ssize_t i = 0; i < k; i++)
            if (!t->seen[t->n + (size_t)i])
                t->seen[t->n + (size_t)i] = ' ';
        t->n += (size_t)k;
        t->seen[t->n] = 0;
    }
    fprintf(stderr, "not seen: %s\nin: %s\n", what, t->seen);
    return 0;
}

static void types(terminal *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static int terminal_close(terminal *t)
{
    int status = -1;
    char rest[4096];
    for (int k = 0; k < 400 && waitpid(t->pid, &status, WNOHANG) == 0; k++) {
        /* again now and then: keys typed before the session reads a line belong to the terminal, not to it */
        if (k % 20 == 0 && write(t->fd, "\x15\x04", 2) != 2)
            usleep(50000);
        struct pollfd p = { .fd = t->fd, .events = POLLIN };
        if (poll(&p, 1, 50) > 0 && read(t->fd, rest, sizeof rest) < 0)
            usleep(50000);
    }
    kill(t->pid, SIGKILL);
    close(t->fd);
    return status;
}

static const char model[] =
    "model ball {\n dof y = 1\n y'' = -9.81\n constraint floor: y >= 0 { impact = newton(0.5) }\n}\n";

static void names_are_completed(void **state)
{
    static terminal t;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, model);
    assert_true(sees(&t, "cdl> "));
    types(&t, "run ball for 1 with swee\t(h = 1e-3)\n");
    assert_true(sees(&t, "ball: sweeping, 1000 steps"));
    types(&t, "settle_t\t(floor)\n");
    assert_true(sees(&t, "settle_time(floor)"));
    types(&t, "count(floor.imp\t)\n");
    assert_true(sees(&t, "floor.impacts)"));
    assert_true(sees(&t, "2"));
    types(&t, "model two { part b[i in 1..2]: ball }\n");
    assert_true(sees(&t, "cdl> "));
    types(&t, "run two for 0.1\n");
    assert_true(sees(&t, "two: sweeping"));
    types(&t, "count(b[1].fl\t.imp\t)\n");
    assert_true(sees(&t, "b[1].floor.impacts)"));
    types(&t, "run ball for 1 with sweeping(h = 1e-3)\n");
    assert_true(sees(&t, "ball: sweeping, 1000 steps"));
    types(&t, ":hist\t\n");
    assert_true(sees(&t, "history"));
    assert_true(sees(&t, "model ball {"));
    types(&t, "y\n");
    assert_true(sees(&t, "█"));
    assert_true(sees(&t, "series of 1001 samples"));
    assert_int_equal(terminal_close(&t), 0);
}

static void blocks_come_back_in_another_session(void **state)
{
    static terminal t;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, "let v = [1,\n 41]\n");
    assert_true(sees(&t, "cdl> "));
    types(&t, "1 + 1\n");
    assert_true(sees(&t, "2"));
    assert_int_equal(terminal_close(&t), 0);
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x10\x10\n"); /* the block as one entry */
    types(&t, "v[1] + v[2]\n");
    assert_true(sees(&t, "42"));
    assert_int_equal(terminal_close(&t), 0);
}

static void prompts_in_pasted_text_are_dropped(void **state)
{
    static terminal t;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x1b[200~cdl> let a = 40\ncdl> a + 2\x1b[201~\n");
    assert_true(sees(&t, "42"));
    assert_int_equal(terminal_close(&t), 0);
}

static void an_interrupt_stops_a_run_not_the_session(void **state)
{
    static terminal t;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, model);
    types(&t, "run ball for 1e6 with sweeping(h = 1e-4)\n");
    usleep(500000);
    types(&t, "\x03");
    assert_true(sees(&t, "partial results are kept"));
    types(&t, "last(t) > 0\n");
    assert_true(sees(&t, "true"));
    assert_int_equal(terminal_close(&t), 0);
}

/* the prompt comes back and the session answers */
static void answers(terminal *t)
{
    types(t, "40 + 2\n");
    assert_true(sees(t, "42"));
    assert_true(sees(t, "cdl> "));
}

static void interrupts_never_end_the_session(void **state)
{
    static terminal t;
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/long.cdl", home);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%srun ball for 1e7 with sweeping(h = 1e-4, every = 1)\n", model);
    fclose(f);
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    for (int k = 0; k < 4; k++) { /* at an empty prompt */
        types(&t, "\x03");
        assert_true(sees(&t, "cdl> "));
    }
    answers(&t);
    types(&t, "1 + \x03"); /* within a line */
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x03");
    assert_true(sees(&t, "cdl> "));
    answers(&t);
    types(&t, "model lost {\n"); /* within a block, which is dropped */
    assert_true(sees(&t, "...> "));
    types(&t, "\x03");
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x03");
    assert_true(sees(&t, "cdl> "));
    answers(&t);
    types(&t, ":type 3\n"); /* after a command */
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x03");
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x03");
    assert_true(sees(&t, "cdl> "));
    answers(&t);
    types(&t, ":load long.cdl\n"); /* within a file */
    usleep(700000);
    types(&t, "\x03");
    assert_true(sees(&t, "partial results are kept"));
    assert_true(sees(&t, "cdl> "));
    answers(&t);
    types(&t, ":time run ball for 1e7 with sweeping(h = 1e-4, every = 1)\n"); /* two and three times */
    usleep(700000);
    for (int k = 0; k < 5; k++)
        types(&t, "\x03");
    assert_true(sees(&t, "interrupted"));
    assert_true(sees(&t, "cdl> "));
    usleep(200000);
    answers(&t);
    types(&t, "fn h(a, b) = if a == 0 then b else h(a-1, b+0.1*a) + h(a-1, b-0.1*a*a)\n");
    assert_true(sees(&t, "cdl> "));
    types(&t, "h(150, 0.5)\n"); /* in a value */
    usleep(500000);
    types(&t, "\x03");
    assert_true(sees(&t, "interrupted"));
    assert_true(sees(&t, "cdl> "));
    answers(&t);
    assert_int_equal(terminal_close(&t), 0);
    unlink(path);
}

static void history_outlives_a_kill(void **state)
{
    static terminal t;
    int status;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, "let kept = 4200 + 42\n");
    assert_true(sees(&t, "cdl> "));
    kill(t.pid, SIGKILL);
    waitpid(t.pid, &status, 0);
    close(t.fd);
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, "\x10\n");
    assert_true(sees(&t, "kept = 4200"));
    types(&t, "kept\n");
    assert_true(sees(&t, "4242"));
    assert_int_equal(terminal_close(&t), 0);
}

static const char spaced[] =
    "model spaced {\n\n dof y = 1\n\n\n y'' = -9.81\n \n constraint floor: y >= 0 {\n\n"
    " impact = newton(0.5)\n\n }\n\n}";

static void empty_lines_inside_brackets_go_on(void **state)
{
    static terminal t;
    (void)state;
    terminal_open(&t);
    assert_true(sees(&t, "cdl> "));
    types(&t, spaced); /* typed */
    types(&t, "\n");
    types(&t, "run spaced for 1 with sweeping(h = 1e-2)\n");
    assert_true(sees(&t, "spaced: sweeping, 100 steps"));
    types(&t, "\x1b[200~"); /* pasted */
    types(&t, spaced);
    types(&t, "\nrun spaced for 2 with sweeping(h = 1e-2)\x1b[201~\n");
    assert_true(sees(&t, "spaced: sweeping, 200 steps"));
    assert_int_equal(terminal_close(&t), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_completed),
        cmocka_unit_test(blocks_come_back_in_another_session),
        cmocka_unit_test(prompts_in_pasted_text_are_dropped),
        cmocka_unit_test(an_interrupt_stops_a_run_not_the_session),
        cmocka_unit_test(interrupts_never_end_the_session),
        cmocka_unit_test(history_outlives_a_kill),
        cmocka_unit_test(empty_lines_inside_brackets_go_on),
    };
    if (!getenv("CDL")) {
        puts("1..0 # SKIP no CDL in the environment");
        return 0;
    }
    strcpy(home, "/tmp/cdl-repl.XXXXXX");
    if (!mkdtemp(home))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char path[128];
    snprintf(path, sizeof path, "%s/.cdl_history", home);
    unlink(path);
    snprintf(path, sizeof path, "%s/manifest.json", home);
    unlink(path);
    rmdir(home);
    return failed;
}
