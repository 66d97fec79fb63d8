/* What the interactive session calls, line by line: whether the input is complete, completion, help, the type
   and the value of an expression, statements that replace earlier ones. A first byte below 8 selects how it
   is typed: bit 0, each input twice; bit 1, pasted: all lines are one input; bit 2, interrupted after some
   calls, after which the session continues. */
#include "fuzz.h"

enum { TWICE = 1, PASTED = 2, INTERRUPTED = 4, LOOKS = 40 };

typedef struct typing {
    size_t said;
    int calls, stop_after; /* calls of the interrupt callback; 0: never stops */
} typing;

static void typing_count(void *ud, const char *said, size_t len)
{
    typing *t = ud;
    fuzz_count(&t->said, said, len);
}

static int typing_interrupt(void *ud)
{
    typing *t = ud;
    return t->stop_after ? ++t->calls / t->stop_after : 0;
}

static void line_look(cdl *s, const char *line)
{
    double x[8];
    size_t n;
    require(cdl_complete(s, line, strlen(line)) >= 0 && cdl_open_brackets(s, line, strlen(line)) >= 0);
    for (size_t k = 0; k < 5; k++) {
        cdl_name(s, line, k);
        cdl_name_at(s, line, k);
    }
    cdl_help(s, line);
    cdl_type(s, line);
    cdl_values(s, line, x, sizeof x / sizeof *x, &n);
}

/* As typed: the line up to several places in it, and with the rest deleted and typed again. */
static void line_edit(cdl *s, const char *line, size_t n)
{
    char *part = malloc(n + 1);
    require(part != NULL);
    for (size_t k = n; k > 0; k /= 2) {
        memcpy(part, line, k);
        part[k] = 0;
        cdl_complete(s, part, k);
        cdl_name_at(s, part, 0);
    }
    free(part);
}

static void input_run(cdl *s, const char *text, size_t n, int how)
{
    for (int k = how & TWICE ? 2 : 1; k > 0; k--)
        cdl_run_text(s, "t.cdl", text, n);
}

/* Lines are joined until the input is complete, as at the prompt. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int how = size && data[0] < 8 ? data[0] : 0;
    typing t = { .stop_after = how & INTERRUPTED ? 50 : 0 };
    const cdl_callbacks to = { typing_count, typing_count, typing_interrupt, &t };
    size_t begin = how > 0, looks = 0;
    cdl *s = fuzz_session(&t.said);
    cdl_set_callbacks(s, &to);
    cdl_set(s, "interactive", "yes");
    for (size_t k = begin; k < size; k++) {
        bool end = k + 1 == size;
        if ((data[k] != '\n' || how & PASTED) && !end)
            continue;
        size_t n = k + 1 - begin;
        char *text = malloc(n + 1);
        require(text != NULL);
        memcpy(text, data + begin, n);
        text[n] = 0;
        if (looks++ < LOOKS) {
            line_look(s, text);
            line_edit(s, text, n);
        }
        if (end || cdl_complete(s, text, n)) {
            t.calls = 0; /* the prompt is shown again */
            input_run(s, text, n, how);
            begin = k + 1;
        }
        free(text);
    }
    cdl_finish(s);
    cdl_free(s);
    return 0;
}
