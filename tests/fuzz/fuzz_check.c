/* Arbitrary bytes through the public header: check returns a status; a text that it accepts can be shown in
   all stages, and is still accepted after formatting. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const stages[] = { "ast", "model", "ir", "jacobian" };
    const char *p = (const char *)data, *out;
    size_t said = 0, n;
    const cdl_callbacks to = { .out = fuzz_count, .err = fuzz_count, .ud = &said };
    cdl *s = cdl_new(NULL);
    require(s != NULL);
    cdl_set_callbacks(s, &to);
    cdl_status st = cdl_check_text(s, "t.cdl", p, size);
    require(st == CDL_OK || st == CDL_MODEL || st == CDL_IO);
    require(st == CDL_OK || said > 0); /* every failure has a message */
    if (st == CDL_OK) {
        for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
            cdl *one = cdl_new(NULL);
            require(one != NULL);
            cdl_set_callbacks(one, &to);
            said = 0;
            cdl_status shown = cdl_show_text(one, stages[i], "t.cdl", p, size);
            /* a model whose sizes depend on a parameter without a value is accepted but cannot be shown; the
               status says so */
            require(shown == CDL_OK || (i > 0 && shown == CDL_MODEL && said > 0));
            cdl_free(one);
        }
        require(cdl_fmt(s, "t.cdl", p, size, &out, &n) == CDL_OK);
        cdl *again = cdl_new(NULL);
        require(again && cdl_check_text(again, "t.cdl", out, n) == CDL_OK);
        cdl_free(again);
    }
    cdl_free(s);
    return 0;
}
