#include "state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sha256.h"
#include "io/write.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "states are written in memory order, which must be little-endian"
#endif

static const char MAGIC[8] = "CDLSTATE";
enum { HEAD = 8 + 4 + 8, DIGEST = 64, NAME_MOST = 255, TEXT_MOST = 4096 };
enum { ITEM_F64 = 'd', ITEM_I64 = 'i', ITEM_U8 = 'b', ITEM_COUNT = 'n', ITEM_TEXT = 't' };

struct run_state {
    arena *a;
    bool reads;
    const char *error;
    /* reading: what is left */
    const char *at;
    size_t left;
    /* writing: counted only, or put where */
    uint64_t bytes;
    bool counts;
    text *memory;
    outfile *file;
    sha256 hash;
};

bool state_reads(const run_state *s)
{
    return s->reads;
}
bool state_ok(const run_state *s)
{
    return !s->error;
}

void state_wrong(run_state *s, const char *fmt, ...)
{
    va_list ap;
    if (s->error)
        return;
    va_start(ap, fmt);
    s->error = arena_vprintf(s->a, fmt, ap);
    va_end(ap);
}

void state_skip(run_state *s)
{
    s->left = 0;
}

/* ---- bytes ---- */
static void put(run_state *s, const void *p, size_t n)
{
    s->bytes += n;
    if (s->counts || !n)
        return;
    sha256_put(&s->hash, p, n);
    if (s->file)
        outfile_put(s->file, p, n);
    else
        text_putn(s->memory, p, n);
}

static bool get(run_state *s, void *p, size_t n)
{
    if (s->error)
        return false;
    if (n > s->left) {
        state_wrong(s, "it ends too early");
        return false;
    }
    if (n)
        memcpy(p, s->at, n);
    s->at += n;
    s->left -= n;
    return true;
}

static void item_begin(run_state *s, uint8_t kind, const char *name, uint64_t count)
{
    uint8_t len = (uint8_t)strlen(name);
    put(s, &kind, 1);
    put(s, &len, 1);
    put(s, name, len);
    put(s, &count, sizeof count);
}

/* the next item must be this one; its count */
static uint64_t item_next(run_state *s, uint8_t kind, const char *name)
{
    uint8_t head[2];
    char got[NAME_MOST + 1] = { 0 };
    uint64_t count = 0;
    if (!get(s, head, 2) || !get(s, got, head[1]) || !get(s, &count, sizeof count))
        return 0;
    if (head[0] != kind || strlen(name) != head[1] || memcmp(got, name, head[1]) != 0) {
        state_wrong(s, "it has no '%s' where this version expects it", name);
        return 0;
    }
    return count;
}

static void item(run_state *s, uint8_t kind, const char *name, void *x, size_t n, size_t size)
{
    if (s->error)
        return;
    if (!s->reads) {
        item_begin(s, kind, name, n);
        put(s, x, n * size);
        return;
    }
    uint64_t count = item_next(s, kind, name);
    if (s->error)
        return;
    if (count != n) {
        state_wrong(s, "it has %llu numbers of '%s', not %zu", (unsigned long long)count, name, n);
        return;
    }
    get(s, x, n * size);
}

void state_f64(run_state *s, const char *name, double *x, size_t n)
{
    item(s, ITEM_F64, name, x, n, sizeof *x);
}
void state_i64(run_state *s, const char *name, int64_t *x, size_t n)
{
    item(s, ITEM_I64, name, x, n, sizeof *x);
}
void state_u8(run_state *s, const char *name, uint8_t *x, size_t n)
{
    item(s, ITEM_U8, name, x, n, sizeof *x);
}

void state_flags(run_state *s, const char *name, bool *x, size_t n)
{
    if (!s->reads) {
        item_begin(s, ITEM_U8, name, n);
        for (size_t i = 0; i < n; i++)
            put(s, &(uint8_t){ x[i] }, 1);
        return;
    }
    uint64_t count = item_next(s, ITEM_U8, name);
    if (!s->error && count != n)
        state_wrong(s, "it has %llu numbers of '%s', not %zu", (unsigned long long)count, name, n);
    for (size_t i = 0; i < n && !s->error; i++) {
        uint8_t byte = 0;
        if (get(s, &byte, 1) && byte > 1)
            state_wrong(s, "'%s' is neither true nor false", name);
        x[i] = byte == 1;
    }
}

void state_int(run_state *s, const char *name, int *x, int lo, int hi)
{
    int64_t wide = *x;
    state_i64(s, name, &wide, 1);
    if (!s->reads || s->error)
        return;
    if (wide < lo || wide > hi) {
        state_wrong(s, "'%s' is %lld, which is not in %d..%d", name, (long long)wide, lo, hi);
        return;
    }
    *x = (int)wide;
}

size_t state_count(run_state *s, const char *name, size_t n, size_t each)
{
    if (s->error)
        return 0;
    if (!s->reads) {
        item_begin(s, ITEM_COUNT, name, n);
        return n;
    }
    uint64_t count = item_next(s, ITEM_COUNT, name);
    if (!s->error && each && count > s->left / each)
        state_wrong(s, "it is too short for %llu of '%s'", (unsigned long long)count, name);
    return s->error ? 0 : (size_t)count;
}

void state_name(run_state *s, const char *name, const char **x, arena *a)
{
    enum { MOST = 256 };
    char got[MOST + 1] = { 0 };
    size_t n = *x ? strlen(*x) : 0;
    n = n < MOST ? n : MOST;
    if (s->error)
        return;
    if (!s->reads) {
        item_begin(s, ITEM_TEXT, name, n);
        put(s, *x, n);
        return;
    }
    uint64_t count = item_next(s, ITEM_TEXT, name);
    if (!s->error && count > MOST)
        state_wrong(s, "'%s' is too long", name);
    if (!get(s, got, (size_t)count))
        return;
    for (size_t i = 0; i < count; i++)
        if (got[i] < ' ' || got[i] > '~')
            state_wrong(s, "'%s' is not a name", name);
    *x = count ? arena_strdup(a, got) : NULL;
}

void state_same_text(run_state *s, const char *name, const char *x, const char *what)
{
    char got[TEXT_MOST + 1] = { 0 };
    size_t n = x ? strlen(x) : 0;
    if (s->error)
        return;
    if (!s->reads) {
        n = n < TEXT_MOST ? n : TEXT_MOST;
        item_begin(s, ITEM_TEXT, name, n);
        put(s, x, n);
        return;
    }
    uint64_t count = item_next(s, ITEM_TEXT, name);
    if (count > TEXT_MOST)
        state_wrong(s, "'%s' is too long for a text", name);
    if (!get(s, got, (size_t)count))
        return;
    if (strlen(got) != count || count != (n < TEXT_MOST ? n : TEXT_MOST) ||
        memcmp(got, x ? x : "", count) != 0)
        state_wrong(s, "%s", what);
}

void state_same_f64(run_state *s, const char *name, const double *x, size_t n, const char *what)
{
    if (!s->reads) {
        item_begin(s, ITEM_F64, name, n);
        put(s, x, n * sizeof *x);
        return;
    }
    uint64_t count = item_next(s, ITEM_F64, name);
    if (!s->error && count != n)
        state_wrong(s, "%s", what);
    for (size_t i = 0; i < n && !s->error; i++) {
        double got = 0;
        if (get(s, &got, sizeof got) && memcmp(&got, &x[i], sizeof got) != 0)
            state_wrong(s, "%s", what);
    }
}

/* ---- the whole ---- */
/* written twice, because the head contains the length */
static void write_all(run_state *s, void (*keep)(void *, run_state *), void *of)
{
    run_state measure = { .a = s->a, .counts = true };
    uint32_t version = STATE_VERSION;
    char hex[DIGEST + 1];
    keep(of, &measure);
    sha256_start(&s->hash);
    put(s, MAGIC, sizeof MAGIC);
    put(s, &version, sizeof version);
    put(s, &measure.bytes, sizeof measure.bytes);
    keep(of, s);
    sha256 hash = s->hash;
    sha256_end(&hash, hex);
    put(s, hex, DIGEST);
}

state_bytes state_save(arena *a, void (*keep)(void *of, run_state *s), void *of)
{
    text memory = { .a = a };
    run_state s = { .a = a, .memory = &memory };
    write_all(&s, keep, of);
    return (state_bytes){ memory.at, memory.n };
}

/* head and digest are those of a state: what lies between them is ready to be read */
static void open_bytes(run_state *s, const char *bytes, size_t n)
{
    uint32_t version;
    uint64_t length;
    char hex[DIGEST + 1];
    if (n < HEAD + DIGEST || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
        state_wrong(s, "it is not a checkpoint");
        return;
    }
    memcpy(&version, bytes + 8, sizeof version);
    memcpy(&length, bytes + 12, sizeof length);
    if (version != STATE_VERSION) {
        state_wrong(s, "it is in version %u of the format, and this program reads version %d", version,
                    STATE_VERSION);
        return;
    }
    sha256_of(bytes, n - DIGEST, hex);
    if (length != n - HEAD - DIGEST || memcmp(hex, bytes + n - DIGEST, DIGEST) != 0) {
        state_wrong(s, "it is damaged");
        return;
    }
    s->at = bytes + HEAD;
    s->left = (size_t)length;
}

const char *state_load(arena *a, const char *bytes, size_t n, void (*keep)(void *of, run_state *s), void *of)
{
    run_state s = { .a = a, .reads = true };
    open_bytes(&s, bytes, n);
    if (!s.error)
        keep(of, &s);
    if (!s.error && s.left)
        state_wrong(&s, "it contains more than this version can read");
    return s.error;
}

const char *state_save_file(arena *a, const char *path, void (*keep)(void *of, run_state *s), void *of)
{
    arena_pos mark = arena_mark(a);
    file_root anywhere = { "", true }; /* the path is that of the command line */
    outfile *f = outfile_open(a, &anywhere, path);
    run_state s = { .a = a, .file = f };
    write_all(&s, keep, of);
    if (outfile_commit(f)) {
        arena_release(a, mark);
        return NULL;
    }
    return arena_printf(a, "cannot write checkpoint '%s': %s", path, error_text(a, f->to.error));
}

static int size_of_file(const char *path, size_t *n)
{
    struct stat st;
    if (stat(path, &st))
        return errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    *n = (size_t)st.st_size;
    return 0;
}

static int read_file(const char *path, char *out, size_t *n)
{
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    while (!error && got < *n) {
        ssize_t k = read(fd, out + got, *n - got);
        if (k == 0)
            break;
        if (k > 0)
            got += (size_t)k;
        else if (errno != EINTR)
            error = errno;
    }
    if (fd >= 0)
        close(fd);
    *n = got;
    return error;
}

const char *state_load_file(arena *a, const char *path, void (*keep)(void *of, run_state *s), void *of)
{
    size_t n = 0;
    int error = size_of_file(path, &n);
    /* no file is open while memory is allocated */
    char *bytes = error ? NULL : arena_alloc(a, n + 1);
    if (!error)
        error = read_file(path, bytes, &n);
    if (error)
        return arena_printf(a, "cannot read checkpoint '%s': %s", path, error_text(a, error));
    const char *why = state_load(a, bytes, n, keep, of);
    return why ? arena_printf(a, "cannot continue from checkpoint '%s': %s", path, why) : NULL;
}
