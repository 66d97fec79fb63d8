/* A session that has run a text: what some tests of the results begin with.  Include after cmocka.h. */
#ifndef CDL_MODEL_SESSION_H
#define CDL_MODEL_SESSION_H
#include <stdio.h>
#include <string.h>
#include "cdl.h"

static inline void session_say(void *ud, const char *said, size_t n)
{
    (void)ud;
    fwrite(said, 1, n, stderr);
}

static inline cdl *session_with(const char *program_text)
{
    cdl *s = cdl_new(NULL);
    cdl_set_callbacks(s, &(cdl_callbacks){ .err = session_say });
    cdl_set(s, "quiet", "yes");
    cdl_set(s, "manifest", "no");
    if (cdl_run_text(s, "model", program_text, strlen(program_text)) != CDL_OK)
        fail_msg("this does not run:\n%s", program_text);
    return s;
}
#endif
