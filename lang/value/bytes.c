/* bytes: numbers and strings as bytes, one after the other. */
#include <string.h>
#include "bytes.h"

void put_u64(text *t, uint64_t x)
{
    text_putn(t, (const char *)&x, sizeof x);
}
void put_bytes(text *t, const char *p, size_t n)
{
    put_u64(t, n);
    if (n)
        text_putn(t, p, n);
}

bool get_u64(byte_reader *r, uint64_t *x)
{
    if (r->end - r->p < (ptrdiff_t)sizeof *x)
        return false;
    memcpy(x, r->p, sizeof *x);
    r->p += sizeof *x;
    return true;
}

bool get_bytes(byte_reader *r, const char **p, size_t *n)
{
    uint64_t k;
    if (!get_u64(r, &k) || k > (uint64_t)(r->end - r->p))
        return false;
    *p = r->p;
    *n = (size_t)k;
    r->p += k;
    return true;
}

const char *get_text(byte_reader *r, arena *a)
{
    const char *p;
    size_t n;
    return get_bytes(r, &p, &n) ? arena_strndup(a, p, n) : "";
}
