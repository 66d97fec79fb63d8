/* fuzz: what the targets share.  Each is a function of bytes that aborts when a promise is broken; driver.c
   or libFuzzer calls it.  Files are written into the current folder, which is one for the target alone. */
#ifndef CDL_FUZZ_H
#define CDL_FUZZ_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cdl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool ok)
{
    if (!ok)
        abort();
}

/* counts what a session says */
static inline void fuzz_count(void *ud, const char *said, size_t len)
{
    if (len)
        *(size_t *)ud += len + (said[len - 1] == '\n');
}

static inline void fuzz_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    require(f && fwrite(p, 1, n, f) == n);
    fclose(f);
}

/* a session that may take half a second, a little memory and a little disk; pictures are not drawn, as
   another program would be measured then */
static inline cdl *fuzz_session(size_t *said)
{
    static const char *const option[][2] = {
        { "time", "0.5" }, { "memory", "300M" }, { "disk", "4M" }, { "spill", "8" }, { "output", "out" },
    };
    const cdl_callbacks to = { .out = fuzz_count, .err = fuzz_count, .ud = said };
    setenv("PATH", "/nonexistent", 1);
    cdl *s = cdl_new(NULL);
    require(s != NULL);
    cdl_set_callbacks(s, &to);
    for (size_t k = 0; k < sizeof option / sizeof *option; k++)
        require(cdl_set(s, option[k][0], option[k][1]) == CDL_OK);
    return s;
}

/* numbers of results: what is there is finite */
static inline void fuzz_finite(cdl *s, const char *expression)
{
    double x[4096];
    size_t n = 0;
    if (cdl_values(s, expression, x, sizeof x / sizeof *x, &n) != CDL_OK)
        return;
    for (size_t k = 0; k < n && k < sizeof x / sizeof *x; k++)
        require(x[k] - x[k] == 0);
}
#endif
