/* version: what this build is. */
#include <string.h>
#include "base/foreign.h"
#include "clock/backend.h"
#include "cdl.h"
#include "session/commit.h"
#include "session.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

const char *cdl_version(void)
{
    return PACKAGE_VERSION;
}
const char *cdl_commit(void)
{
    return CDL_COMMIT;
}

static void put_pair(text *t, const char *key, const char *v)
{
    text_printf(t, "\"%s\":", key);
    text_json_str(t, v, strlen(v));
}

void version_json(text *t)
{
    text_putc(t, '{');
    put_pair(t, "version", cdl_version());
    text_putc(t, ',');
    put_pair(t, "commit", cdl_commit());
    text_putc(t, ',');
    put_pair(t, "compiler", __VERSION__);
    text_putc(t, ',');
    put_pair(t, "blas", foreign_blas()); /* it may be exchanged without a new build */
    text_puts(t, ",\"features\":{\"backends\":[");
    for (size_t k = 0, n = 0; backend_list[k]; k++) {
        if (!backend_list[k]->built)
            continue;
        if (n++)
            text_putc(t, ',');
        text_json_str(t, backend_list[k]->name, strlen(backend_list[k]->name));
    }
#if defined __SANITIZE_ADDRESS__
    text_puts(t, "],\"sanitize\":true}}");
#else
    text_puts(t, "],\"sanitize\":false}}");
#endif
}
