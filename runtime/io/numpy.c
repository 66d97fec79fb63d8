/* numpy: arrays in the format of NumPy.  Numbers come as rows from a spool; each array is gathered from its
   columns there, in portions, so that memory does not grow with their number. */
#include <string.h>
#include "write.h"

enum { PORTION = 1 << 16 }; /* bytes of rows at a time */

/* ---- .npy, format 1.0: magic, length of the header, a Python dictionary, blanks up to 64 bytes, the numbers
 * ---- */

static void npy_head(text *out, const rows_table *t, const rows_array *x)
{
    text h = { .a = out->a };
    text_puts(&h, "{'descr': '<f8', 'fortran_order': False, 'shape': (");
    if (t->grid[0])
        text_printf(&h, "%d, %d,", t->grid[0], t->grid[1]);
    else
        text_printf(&h, "%lld,", (long long)t->rows);
    for (int k = 0; k < x->ndim; k++)
        text_printf(&h, " %d,", x->dim[k]);
    text_puts(&h, "), }");
    while ((10 + h.n + 1) % 64)
        text_putc(&h, ' ');
    text_putc(&h, '\n');
    const unsigned char front[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(h.n & 255), (unsigned char)(h.n >> 8)
    };
    text_putn(out, (const char *)front, sizeof front);
    text_putn(out, h.at, h.n);
}

/* little endian, whatever the machine is */
static char *put_le(char *p, uint64_t x, int bytes)
{
    for (int k = 0; k < bytes; k++)
        *p++ = (char)(x >> (8 * k) & 255);
    return p;
}

typedef struct {
    const rows_table *t;
    const rows_array *x;
    int64_t row;
    double *in;
    char *out;
    arena *a;
} gathering;

static gathering gather(arena *a, const rows_table *t, const rows_array *x)
{
    size_t rows = PORTION / (t->width * sizeof(double)) + 1;
    return (gathering){
        t, x, 0, arena_array(a, double, rows * t->width), arena_alloc(a, rows * x->n * sizeof(double) + 1), a
    };
}

/* the next numbers of the array in g->out; 0 after the last */
static size_t gather_next(gathering *g)
{
    size_t width = g->t->width, rows = PORTION / (width * sizeof(double)) + 1;
    arena_tick(g->a, PORTION);
    if ((int64_t)rows > g->t->rows - g->row)
        rows = (size_t)(g->t->rows - g->row);
    if (!rows || !spool_read(g->t->from, g->row * (int64_t)(width * sizeof(double)), (char *)g->in,
                             rows * width * sizeof(double)))
        return 0;
    g->row += (int64_t)rows;
    char *p = g->out;
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < g->x->n; k++) {
            uint64_t bits;
            memcpy(&bits, &g->in[r * width + g->x->first + k], sizeof bits);
            p = put_le(p, bits, sizeof bits);
        }
    return (size_t)(p - g->out);
}

static void put_numbers(outfile *to, arena *a, const rows_table *t, const rows_array *x)
{
    gathering g = gather(a, t, x);
    for (size_t n; (n = gather_next(&g));)
        outfile_put(to, g.out, n);
    if (t->from->to.error && !to->to.error)
        to->to.error = t->from->to.error;
}

void npy_write(outfile *to, arena *a, const rows_table *t, const rows_array *x)
{
    text h = { .a = a };
    npy_head(&h, t, x);
    outfile_put(to, h.at, h.n);
    put_numbers(to, a, t, x);
}

/* ---- zip: members are stored; sizes and places beyond 4 GB go into a 64-bit field ---- */

typedef struct {
    const char *name;
    uint64_t at, size;
    uint32_t crc;
} member;

static uint32_t crc_add(const uint32_t *table, uint32_t crc, const char *p, size_t n)
{
    for (size_t k = 0; k < n; k++)
        crc = table[(crc ^ (unsigned char)p[k]) & 255] ^ crc >> 8;
    return crc;
}

static void crc_table(uint32_t *table)
{
    for (uint32_t k = 0; k < 256; k++) {
        uint32_t c = k;
        for (int i = 0; i < 8; i++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[k] = c;
    }
}

static bool is_large(const member *m)
{
    return m->size >= UINT32_MAX || m->at >= UINT32_MAX;
}

/* the common part of a member's local entry and its entry in the directory */
static char *put_entry(char *p, const member *m, bool directory)
{
    bool large = is_large(m);
    p = put_le(p, large ? 45 : 20, 2);
    p = put_le(p, 1 << 11, 2);    /* names are UTF-8 */
    p = put_le(p, 0, 2);          /* stored */
    p = put_le(p, 0x00210000, 4); /* the first of January 1980: the same bytes whenever it is written */
    p = put_le(p, m->crc, 4);
    p = put_le(p, large ? UINT32_MAX : m->size, 4);
    p = put_le(p, large ? UINT32_MAX : m->size, 4);
    p = put_le(p, strlen(m->name), 2);
    return put_le(p, !large ? 0 : directory ? 28 : 20, 2);
}

static char *put_wide(char *p, const member *m, bool directory)
{
    if (!is_large(m))
        return p;
    p = put_le(p, 1, 2);
    p = put_le(p, directory ? 24 : 16, 2);
    p = put_le(p, m->size, 8);
    p = put_le(p, m->size, 8);
    return directory ? put_le(p, m->at, 8) : p;
}

static uint64_t member_begin(outfile *to, const member *m)
{
    char b[64], *p = put_le(b, 0x04034b50, 4);
    p = put_entry(p, m, false);
    size_t n = (size_t)(p - b), len = strlen(m->name);
    outfile_put(to, b, n);
    outfile_put(to, m->name, len);
    p = put_wide(b, m, false);
    outfile_put(to, b, (size_t)(p - b));
    return n + len + (uint64_t)(p - b);
}

static uint64_t member_listed(outfile *to, const member *m)
{
    char b[64], *p = put_le(b, 0x02014b50, 4);
    p = put_le(p, 45 | 3 << 8, 2);
    p = put_entry(p, m, true);
    p = put_le(p, 0, 2); /* no comment */
    p = put_le(p, 0, 2);
    p = put_le(p, 0, 2);
    p = put_le(p, (uint64_t)0100644 << 16, 4);
    p = put_le(p, is_large(m) ? UINT32_MAX : m->at, 4);
    size_t n = (size_t)(p - b), len = strlen(m->name);
    outfile_put(to, b, n);
    outfile_put(to, m->name, len);
    p = put_wide(b, m, true);
    outfile_put(to, b, (size_t)(p - b));
    return n + len + (uint64_t)(p - b);
}

static void directory_end(outfile *to, uint64_t at, uint64_t bytes, size_t n)
{
    char b[128], *p = b;
    bool large = at >= UINT32_MAX || n >= UINT16_MAX;
    if (large) {
        p = put_le(p, 0x06064b50, 4);
        p = put_le(p, 44, 8);
        p = put_le(p, 45, 2);
        p = put_le(p, 45, 2);
        p = put_le(p, 0, 4);
        p = put_le(p, 0, 4);
        p = put_le(p, n, 8);
        p = put_le(p, n, 8);
        p = put_le(p, bytes, 8);
        p = put_le(p, at, 8);
        p = put_le(p, 0x07064b50, 4);
        p = put_le(p, 0, 4);
        p = put_le(p, at + bytes, 8);
        p = put_le(p, 1, 4);
    }
    p = put_le(p, 0x06054b50, 4);
    p = put_le(p, 0, 4);
    p = put_le(p, large ? UINT16_MAX : n, 2);
    p = put_le(p, large ? UINT16_MAX : n, 2);
    p = put_le(p, large ? UINT32_MAX : bytes, 4);
    p = put_le(p, large ? UINT32_MAX : at, 4);
    p = put_le(p, 0, 2);
    outfile_put(to, b, (size_t)(p - b));
}

/* the checksum precedes the numbers, so they are gathered twice */
static void member_write(outfile *to, arena *a, const rows_table *t, const rows_array *x,
                         const uint32_t *crcs, member *m)
{
    arena_pos mark = arena_mark(a);
    text h = { .a = a };
    npy_head(&h, t, x);
    uint32_t crc = crc_add(crcs, UINT32_MAX, h.at, h.n);
    gathering g = gather(a, t, x);
    for (size_t n; (n = gather_next(&g));)
        crc = crc_add(crcs, crc, g.out, n);
    m->crc = ~crc;
    m->size = h.n + (uint64_t)t->rows * x->n * sizeof(double);
    uint64_t front = member_begin(to, m);
    outfile_put(to, h.at, h.n);
    put_numbers(to, a, t, x);
    m[1].at = m->at + front + m->size;
    arena_release(a, mark);
}

void npz_write(outfile *to, arena *a, const rows_table *t, const rows_array *x, size_t n)
{
    uint32_t crcs[256];
    member *all = arena_array(a, member, n + 1);
    uint64_t bytes = 0;
    crc_table(crcs);
    for (size_t k = 0; k < n; k++) {
        all[k].name = arena_printf(a, "%s.npy", x[k].name);
        member_write(to, a, t, &x[k], crcs, &all[k]);
    }
    for (size_t k = 0; k < n; k++)
        bytes += member_listed(to, &all[k]);
    directory_end(to, all[n].at, bytes, n);
}

void zip_write(outfile *to, arena *a, const zip_file *file, size_t n)
{
    uint32_t crcs[256];
    member *all = arena_array(a, member, n + 1);
    uint64_t bytes = 0;
    crc_table(crcs);
    for (size_t k = 0; k < n; k++) {
        all[k].name = file[k].name;
        all[k].size = file[k].n;
        all[k].crc = ~crc_add(crcs, UINT32_MAX, file[k].at, file[k].n);
        all[k + 1].at = all[k].at + member_begin(to, &all[k]) + file[k].n;
        outfile_put(to, file[k].at, file[k].n);
    }
    for (size_t k = 0; k < n; k++)
        bytes += member_listed(to, &all[k]);
    directory_end(to, all[n].at, bytes, n);
}
