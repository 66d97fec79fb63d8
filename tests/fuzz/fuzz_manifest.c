/* Arbitrary bytes as a manifest whose run is repeated: `cdl repro`, which is a part of the command. */
#define _GNU_SOURCE
#include <stdarg.h>
#include "fuzz.h"
#include "cmd/repro.c"

void tell(FILE *to, const char *fmt, ...)
{
    char line[1024];
    va_list v;
    (void)to;
    va_start(v, fmt);
    vsnprintf(line, sizeof line, fmt, v);
    va_end(v);
}

int interrupts_seen(void)
{
    return 0;
}

int interrupts_callback(void *ud)
{
    (void)ud;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *set[] = { "time", "memory", "disk" }, *to[] = { "0.5", "300M", "4M" };
    static int here = -1;
    const char *file[] = { "manifest.json" };
    const options o = { .set = set, .to = to, .nset = 3, .file = file, .nfile = 1 };
    if (here < 0) {
        setenv("PATH", "/nonexistent", 1);
        require((here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
        require(freopen("/dev/null", "w", stdout) != NULL);
    }
    fuzz_write("manifest.json", data, size);
    int code = repro_main(&o);
    require(code >= 0 && code < CDL_STATUS_MAX);
    require(fchdir(here) == 0);
    return 0;
}
