/* shape_mesh: the points of a hull from a file: a mesh of triangles (.stl, text or binary), one of polygons
   (.obj), or a table of points.  Which corners make a triangle does not matter to a hull. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "elab.h"

typedef vec(double) numbers;
enum { MESH_POINTS = 5000 };

typedef struct {
    model_file file;
    size_t at, word, end; /* next position; the last word */
    numbers points;
} mesh;

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool next_word(mesh *m)
{
    const char *s = m->file.text;
    while (m->at < m->file.len && is_blank(s[m->at]))
        m->at++;
    m->word = m->at;
    while (m->at < m->file.len && !is_blank(s[m->at]))
        m->at++;
    m->end = m->at;
    return m->end > m->word;
}

static bool word_is(const mesh *m, const char *what)
{
    size_t n = strlen(what);
    return m->end - m->word == n && !memcmp(m->file.text + m->word, what, n);
}

static void skip_line(mesh *m)
{
    while (m->at < m->file.len && m->file.text[m->at] != '\n')
        m->at++;
}

static bool mesh_bad(const mesh *m, const char *what)
{
    return model_file_bad(&m->file, m->word, m->end, what);
}

/* three numbers in a row */
static bool next_numbers(mesh *m, double *x)
{
    for (int k = 0; k < 3; k++) {
        char buf[64], *end;
        if (!next_word(m) || m->end - m->word >= sizeof buf)
            return mesh_bad(m, "three numbers are needed here");
        memcpy(buf, m->file.text + m->word, m->end - m->word);
        buf[m->end - m->word] = 0;
        x[k] = strtod(buf, &end);
        if (*end || !isfinite(x[k]))
            return mesh_bad(m, "a coordinate is a finite number");
    }
    return true;
}

/* ---- points ---- */

static void point_put(mesh *m, const double *x)
{
    arena_tick(m->file.e->m->a, 50);
    for (int k = 0; k < 3; k++)
        *vec_push(m->file.e->m->a, &m->points) = x[k] == 0 ? 0 : x[k];
}

static int by_place(const void *a, const void *b)
{
    const double *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x[k] != y[k])
            return x[k] < y[k] ? -1 : 1;
    return 0;
}

/* each once: triangles share their corners */
static value points_once(mesh *m)
{
    size_t n = m->points.n / 3, kept = 0;
    double *x = m->points.at;
    if (n)
        qsort(x, n, 3 * sizeof *x, by_place);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || by_place(x + 3 * i, x + 3 * (kept - 1)))
            memmove(x + 3 * kept++, x + 3 * i, 3 * sizeof *x);
    if (kept > MESH_POINTS) {
        diag_error(m->file.e->m->d, DIAG_LIMIT, m->file.from,
                   "'%s' contains %zu different points, more than the %d that a hull may have", m->file.path,
                   kept, MESH_POINTS);
        return v_error();
    }
    return model_file_points(&m->file, x, kept);
}

/* ---- formats ---- */

enum { STL_HEAD = 80, STL_TRIANGLE = 50 };

static uint32_t whole_at(const char *s)
{
    const unsigned char *b = (const unsigned char *)s;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* recognised by its length: a header, the number of triangles, 50 bytes for each */
static bool stl_binary(const mesh *m)
{
    return m->file.len >= STL_HEAD + 4 &&
           m->file.len == STL_HEAD + 4 + (size_t)STL_TRIANGLE * whole_at(m->file.text + STL_HEAD);
}

static bool stl_triangles(mesh *m)
{
    enum { NORMAL = 12, CORNERS = 3 };
    for (size_t at = STL_HEAD + 4; at < m->file.len; at += STL_TRIANGLE)
        for (size_t c = 0; c < CORNERS; c++) {
            double x[3];
            for (size_t k = 0; k < 3; k++) {
                uint32_t bits = whole_at(m->file.text + at + NORMAL + 12 * c + 4 * k);
                float f;
                memcpy(&f, &bits, sizeof f);
                x[k] = (double)f;
                if (isfinite(f))
                    continue;
                diag_error(m->file.e->m->d, DIAG_IO, m->file.from,
                           "'%s': corner %zu of triangle %zu is not a finite point", m->file.path, c + 1,
                           (at - STL_HEAD - 4) / STL_TRIANGLE + 1);
                return false;
            }
            point_put(m, x);
        }
    return true;
}

static bool stl_words(mesh *m)
{
    static const char *const others[] = { "normal", "outer", "loop", "endloop", "endfacet", "facet" };
    double x[3];
    bool solid = false;
    while (next_word(m)) {
        bool known = false;
        if (word_is(m, "solid") || word_is(m, "endsolid")) {
            solid = true;
            skip_line(m); /* its name */
            continue;
        }
        if (!solid)
            return mesh_bad(m,
                            "an STL file begins with 'solid', or has the length that its number of triangles "
                            "requires");
        if (word_is(m, "vertex") || word_is(m, "normal")) {
            bool corner = word_is(m, "vertex");
            if (!next_numbers(m, x))
                return false;
            if (corner)
                point_put(m, x);
            continue;
        }
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            known |= word_is(m, others[k]);
        if (!known)
            return mesh_bad(m, "unknown word of an STL file");
    }
    return true;
}

/* lines that begin with v are corners; other lines are ignored */
static bool obj_lines(mesh *m)
{
    double x[3];
    while (next_word(m)) {
        if (word_is(m, "v")) {
            if (!next_numbers(m, x))
                return false;
            point_put(m, x);
        }
        skip_line(m);
    }
    return true;
}

static bool mesh_points(mesh *m, bool stl)
{
    if (stl && stl_binary(m))
        return stl_triangles(m);
    const char *zero = m->file.len ? memchr(m->file.text, 0, m->file.len) : NULL;
    if (zero) {
        size_t at = (size_t)(zero - m->file.text);
        return model_file_bad(&m->file, at, at + 1,
                              stl ? "a zero byte: not a text file, and the length is not that of a "
                                    "binary STL file"
                                  : "a zero byte: this is not a text file");
    }
    return stl ? stl_words(m) : obj_lines(m);
}

static bool ends_in(const ast *x, const char *ending)
{
    size_t n = strlen(ending);
    if (x->len < n)
        return false;
    for (size_t k = 0; k < n; k++) {
        char c = x->text[x->len - n + k];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != ending[k])
            return false;
    }
    return true;
}

static const ast *call_of(const elab *e, const ast *x, const char *name)
{
    bool is = x->kind == AST_CALL && x->n == 2 && x->kid[0]->kind == AST_NAME &&
              x->kid[0]->name == sym_str(e->m->names, name);
    return is ? x->kid[1] : NULL;
}

bool shape_mesh(elab *e, const ast *x, value *out)
{
    const ast *of = call_of(e, x, "hull"), *table = of ? call_of(e, of, "table") : NULL;
    bool stl = of && of->kind == AST_STR && ends_in(of, ".stl"),
         obj = of && of->kind == AST_STR && ends_in(of, ".obj");
    mesh m = { 0 };
    if (table && table->kind != AST_STR)
        return false;
    if (!table && !(of && of->kind == AST_STR))
        return false;
    value points = v_error();
    if (!stl && !obj)
        points = table_points(e, table ? table : of, false);
    else if (model_file_read(e, of, &m.file) && mesh_points(&m, stl))
        points = points_once(&m);
    *out = points;
    if (points.kind == V_ERROR)
        return true;
    *out = (value){ .kind = V_SET };
    out->set.kind = sym_str(e->m->names, "hull");
    out->set.n = 1;
    out->set.arg = arena_make(e->m->a, value);
    out->set.arg[0] = points;
    return true;
}
