/* Arbitrary bytes as the file of points for the shape of a rod: read, and run if they form a rod. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char model[] =
        "model m {\n"
        "    rod w { length = 3, radius = 0.01, young = 1e6, elements = 8, reference = \"p.csv\" }\n"
        "    at w.s = 0 { position = [0, 0, 0], frame = eye(3) }\n"
        "}\n"
        "run m for 0 with auglag()\n";
    size_t said = 0;
    fuzz_write("p.csv", data, size);
    cdl *s = fuzz_session(&said);
    cdl_status st = cdl_run_text(s, "t.cdl", model, sizeof model - 1);
    require(st == CDL_OK || said > 0);
    if (st == CDL_OK)
        fuzz_finite(s, "w.energy");
    cdl_free(s);
    return 0;
}
