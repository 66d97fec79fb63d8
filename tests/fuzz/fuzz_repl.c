/* What the interactive session calls, line by line: whether the input is whole, completion, help, the type
   and the value of an expression, statements that replace earlier ones. */
#include "fuzz.h"

static void line_ask(cdl *s, const char *line)
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

/* lines are put together until they are whole, as at the prompt */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t said = 0, begin = 0, asked = 0;
    cdl *s = fuzz_session(&said);
    cdl_set(s, "interactive", "yes");
    for (size_t k = 0; k < size; k++) {
        if (data[k] != '\n' && k + 1 < size)
            continue;
        size_t n = k + 1 - begin;
        char *text = malloc(n + 1);
        require(text != NULL);
        memcpy(text, data + begin, n);
        text[n] = 0;
        if (asked++ < 40)
            line_ask(s, text);
        if (k + 1 == size || cdl_complete(s, text, n)) {
            cdl_run_text(s, "t.cdl", text, n);
            begin = k + 1;
        }
        free(text);
    }
    cdl_finish(s);
    cdl_free(s);
    return 0;
}
