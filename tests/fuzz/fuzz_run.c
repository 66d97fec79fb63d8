/* Arbitrary text, run to its end or to the end of its budget. A run that is reported as ok has finite times,
   energies and checks; any other run has a message. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const checked[] = { "t", "energy", "dissipated", "max_penetration", "residual" };
    size_t said = 0;
    cdl *s = fuzz_session(&said);
    cdl_status st = cdl_run_text(s, "t.cdl", (const char *)data, size);
    require(st == CDL_OK || said > 0);
    for (size_t k = 0; st == CDL_OK && k < sizeof checked / sizeof *checked; k++)
        fuzz_finite(s, checked[k]);
    cdl_finish(s);
    cdl_free(s);
    return 0;
}
