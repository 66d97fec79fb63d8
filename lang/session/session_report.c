/* session_report: the output and files of a point of an experiment, as bytes that may come from another
   process or a file. */
#include <string.h>
#include "session.h"
#include "value/bytes.h"

/* ---- reports: entries of a tag and bytes ----
   o: text for out   e: text for err   T: statement, block of rows   J: object of the manifest   P: model,
   hash of its IR W: file that is written at once, its kind, its bytes   L: number of the point, the line that
   reports it C: expectations met, missed, not tried; status; whether it failed, or was interrupted */

void report_counts_put(session *s, bool interrupted)
{
    text c = { .a = s->now.report->a };
    put_u64(&c, s->tally.met);
    put_u64(&c, s->tally.missed);
    put_u64(&c, s->tally.skipped);
    put_u64(&c, (uint64_t)s->tally.worst);
    put_u64(&c, s->rec.failed);
    put_u64(&c, interrupted);
    text_putc(s->now.report, 'C');
    put_bytes(s->now.report, c.at, c.n);
}

static void counts_take(session *s, byte_reader r)
{
    uint64_t x[6] = { 0 };
    for (int k = 0; k < 6; k++)
        get_u64(&r, &x[k]);
    s->tally.met += x[0];
    s->tally.missed += x[1];
    s->tally.skipped += x[2];
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
    text_printf(&t, "%s %lld/%lld: ", e->name, (long long)k + 1, (long long)s->now.points);
    text_putn(&t, r.p, (size_t)(r.end - r.p));
    session_out(s, &t);
}

static void file_take(session *s, const ast *e, byte_reader r)
{
    const char *path = get_text(&r, s->a), *kind = get_text(&r, s->a), *p;
    size_t n;
    if (!get_bytes(&r, &p, &n) || !whole_named(path)) {
        kept_damaged(s, e->name_at);
        return;
    }
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
