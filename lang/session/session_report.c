/* session_report: what a point of an experiment says and writes, as bytes that may come from another process
 * or a file. */
#include <string.h>
#include "session.h"

/* ---- bytes ---- */

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

/* ---- reports: entries of a tag and bytes ----
   o: text for out   e: text for err   T: statement, block of rows   J: object of the manifest   P: model,
   hash of its IR W: file that is written at once, its kind, its bytes   L: number of the point, the line that
   reports it C: expectations met, missed, not tried; status; whether it failed, or was interrupted */

void report_counts_put(session *s, bool interrupted)
{
    text c = { .a = s->report->a };
    put_u64(&c, s->met);
    put_u64(&c, s->missed);
    put_u64(&c, s->skipped);
    put_u64(&c, (uint64_t)s->worst);
    put_u64(&c, s->rec.failed);
    put_u64(&c, interrupted);
    text_putc(s->report, 'C');
    put_bytes(s->report, c.at, c.n);
}

static void counts_take(session *s, byte_reader r)
{
    uint64_t x[6] = { 0 };
    for (int k = 0; k < 6; k++)
        get_u64(&r, &x[k]);
    s->met += x[0];
    s->missed += x[1];
    s->skipped += x[2];
    session_worse(s, x[3] < CDL_STATUS_MAX ? (cdl_status)x[3] : CDL_IO);
    if (x[5])
        s->interrupted = true;
}

static void program_take(session *s, byte_reader r)
{
    program p = { .model = get_text(&r, s->a) };
    if (get_u64(&r, &p.hash))
        manifest_program(s, &p);
}

static void line_take(session *s, const ast *e, byte_reader r)
{
    uint64_t k;
    text t = { .a = s->tmp };
    if (!get_u64(&r, &k))
        return;
    text_printf(&t, "%s %lld/%lld: ", e->name, (long long)k + 1, (long long)s->points);
    text_putn(&t, r.p, (size_t)(r.end - r.p));
    session_out(s, &t);
}

static void file_take(session *s, const ast *e, byte_reader r)
{
    const char *path = get_text(&r, s->a), *kind = get_text(&r, s->a), *p;
    size_t n;
    if (!get_bytes(&r, &p, &n))
        return;
    outfile *f = whole_begin(s, path);
    outfile_put(f, p, n);
    whole_end(s, f, path, kind, e->name_at);
}

static void table_entry(session *s, const ast *e, byte_reader r)
{
    uint64_t k;
    if (get_u64(&r, &k) && k < e->n)
        table_take(s, e->kid[k], r.p, (size_t)(r.end - r.p));
}

static void say(session *s, bool err, const char *p, size_t n)
{
    text t = { .at = (char *)(uintptr_t)p, .n = n };
    if (err)
        session_steer(s, &t);
    else
        session_out(s, &t);
}

void report_take(session *s, const ast *e, const char *bytes, size_t n, taking how, bool shard)
{
    byte_reader r = { bytes, bytes + n };
    while (r.p < r.end) {
        char tag = *r.p++;
        const char *p;
        size_t len;
        if (!get_bytes(&r, &p, &len))
            return;
        if (how == TAKE_ERRORS || tag == 'e') {
            if (how == TAKE_ERRORS && tag == 'e')
                say(s, true, p, len);
            continue;
        }
        byte_reader in = { p, p + len };
        if (tag == 'o')
            say(s, false, p, len);
        else if (tag == 'L')
            line_take(s, e, in);
        else if (tag == 'T' && !shard)
            table_entry(s, e, in);
        else if (tag == 'J')
            manifest_record(s, p, len);
        else if (tag == 'P')
            program_take(s, in);
        else if (tag == 'W')
            file_take(s, e, in);
        else if (tag == 'C')
            counts_take(s, in);
    }
}

bool report_counts(const char *bytes, size_t n, uint64_t x[6])
{
    byte_reader r = { bytes, bytes + n };
    const char *p;
    size_t len;
    while (r.p < r.end) {
        char tag = *r.p++;
        if (!get_bytes(&r, &p, &len))
            return false;
        if (tag != 'C' || len != 6 * sizeof *x)
            continue;
        memcpy(x, p, len);
        return true;
    }
    return false;
}
