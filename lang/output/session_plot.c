/* session_plot: plots. The numbers are written as CSV, with a gnuplot script, and the picture if gnuplot is
   installed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "session_output.h"
#include "io/tool.h"

/* ---- plots ---- */

/* by = e: the swept name that distinguishes curves, as a name and not as a value */
static const char *by_name(session *s, const ast *e)
{
    const ast *b = block_of(e);
    for (uint32_t k = 0; b && k < b->n; k++) {
        const ast *set = b->kid[k];
        if (set->kind != AST_SET || set->kid[0]->kind != AST_NAME || strcmp(set->kid[0]->name, "by"))
            continue;
        for (size_t i = 0; i < s->rec.point.n && set->kid[1]->kind == AST_NAME; i++)
            if (s->rec.point.at[i].name == set->kid[1]->name)
                return set->kid[1]->name;
        diag_error(s->d, DIAG_OPTION_VALUE, set->kid[1]->at, "'by' is a name that the experiment sweeps");
    }
    return NULL;
}

/* which rows are one curve: those of the point, or those with the same value of the name after by */
static curve block_curve(session *s, const block *b)
{
    text t = { .a = s->tmp };
    if (!s->now.experiment || (!b->series && !b->by))
        return (curve){ 0 };
    for (size_t k = 0; b->by && k < s->rec.point.n; k++) {
        const measured *p = &s->rec.point.at[k];
        double x;
        if (strcmp(p->name, b->by) || !v_scalar(&p->v, &x))
            continue;
        text_printf(&t, "%s = %.10g", p->name, x);
        size_t at = 0;
        while (at < b->names.n && strcmp(b->names.at[at], p->name))
            at++;
        return b->series ? (curve){ 0, (double)s->now.point + 1, t.at } : (curve){ at, x, t.at };
    }
    point_show(s, &t);
    return (curve){ 0, (double)s->now.point + 1, t.at ? t.at : " " };
}

enum { MARKS = 500 };

/* the places of impacts on the curves, two numbers each */
static number_list marks_of(session *s, const columns *c)
{
    const results *r = s->last ? s->last->r : NULL;
    number_list all = { 0 };
    size_t n = 0;
    for (size_t i = 0; r && i < r->prog->ncontact; i++)
        for (size_t k = 0; k < r->contact[i].impacts.n && n++ < MARKS; k++) {
            double at = r->contact[i].impacts.at[k].t;
            for (size_t y = 1; y < c->list.n; y++) {
                if (c->list.at[y].v.kind != V_SERIES)
                    continue;
                *vec_push(s->tmp, &all) = column_at_time(&c->list.at[0], at);
                *vec_push(s->tmp, &all) = column_at_time(&c->list.at[y], at);
            }
        }
    return n < MARKS ? all : (number_list){ 0 };
}

static bool pair_read(const value *v, double *a, double *b)
{
    if (v->kind != V_NUM || v->num.rank != 1 || v_count(v) != 2)
        return false;
    value x = v_element(v, 0), y = v_element(v, 1);
    return v_scalar(&x, a) && v_scalar(&y, b);
}

/* the intervals in which a field touches its obstacle */
static number_list shades_of(session *s)
{
    number_list all = { 0 };
    if (!s->last || !s->last->r->field)
        return all;
    ast name = { .kind = AST_NAME, .at = SPAN_NONE, .name = sym_str(s->names, "contact_set") };
    value v = session_eval(s, &name);
    for (size_t k = 0; v.kind == V_LIST && k < v.list.n && k < 100; k++) {
        double a, b;
        if (!pair_read(&v.list.at[k], &a, &b))
            continue;
        *vec_push(s->tmp, &all) = a;
        *vec_push(s->tmp, &all) = b;
    }
    return all;
}

static void plot_more(session *s, const columns *c, block *b)
{
    b->of = block_curve(s, b);
    if (b->series)
        b->marks = marks_of(s, c);
    if (!s->now.experiment)
        b->shades = shades_of(s);
}

static void vector_add(columns *c, const char *name, const double *x, int64_t n, int64_t stride)
{
    column k = { .name = name, .v = v_vector(c->s->tmp, 0), .y = x, .n = n, .stride = stride };
    *vec_push(c->s->tmp, &c->arrays) = (rows_array){ .name = name, .first = c->list.n, .n = 1 };
    *vec_push(c->s->tmp, &c->list) = k;
}

/* the obstacles of fields that are drawn, behind them */
static size_t obstacles_add(session *s, columns *c)
{
    size_t before = c->list.n;
    const run *r = s->last;
    if (s->now.experiment || !r || !r->r->field)
        return 0;
    for (size_t k = 1; k < before; k++) {
        const double *psi;
        const column *x = &c->list.at[k];
        for (int i = 0; (psi = field_obstacle_at(r, &x->v, i, s->tmp)); i++)
            vector_add(c, i ? OBSTACLE "'" : OBSTACLE, psi, x->n, 1);
    }
    return c->list.n - before;
}

/* The graph of an inclusion, and the path of the solution on it: rows of one have no numbers of the other. */
static bool graph_columns(session *s, const ast *e, columns *c)
{
    value v = session_eval(s, e);
    const double *x[4];
    int64_t n[2];
    if (!inclusion_graph(&v, x, n))
        return false;
    int64_t all = n[0] + n[1];
    double *y[3];
    for (int k = 0; k < 3; k++)
        y[k] = arena_array(s->tmp, double, all ? all : 1);
    for (int64_t k = 0; k < all; k++) {
        bool graph = k < n[0];
        y[0][k] = graph ? x[0][k] : x[2][k - n[0]];
        y[1][k] = graph ? x[1][k] : NAN;
        y[2][k] = graph ? NAN : x[3][k - n[0]];
    }
    static const char *const names[] = { "v", "graph", "orbit" };
    for (int k = 0; k < 3; k++)
        vector_add(c, names[k], y[k], all, 1);
    return true;
}

enum { SURFACE_LINES = 60 };

static int32_t thinned(int32_t k, int32_t n)
{
    int32_t step = n > SURFACE_LINES ? n / SURFACE_LINES : 1;
    return k + step < n ? step : 1;
}

/* a surface is drawn from nodes in lines: thinned, three numbers each */
static void surface_read(session *s, const columns *c, block *b)
{
    int32_t m = c->grid[1], n = c->grid[0];
    for (int32_t j = 0; j < n; j += thinned(j, n)) {
        b->surface = 0;
        for (int32_t i = 0; i < m; i += thinned(i, m), b->surface++)
            for (int k = 0; k < 3; k++)
                *vec_push(s->tmp, &b->shades) = column_at(&c->list.at[k], (int64_t)j * m + i);
    }
}

static void plane_more(session *s, const columns *c, block *b)
{
    if (b->style && !strcmp(b->style, "surface") && c->grid[0])
        surface_read(s, c, b);
}

/* a field in the plane: coordinates, values, where it touches */
static bool plot_plane(session *s, const ast *e, block *b)
{
    columns c = { .s = s, .at = e, .alone = true };
    int field;
    value v = e->kid[0]->n == 1 && !e->kid[1] ? session_eval(s, e->kid[0]->kid[0]) : v_error();
    if (!value_plane(&v, &field))
        return false;
    column_read(&c, e->kid[0]->kid[0]);
    if (!b->style)
        b->style = "map";
    b->path = point_path(s, b->path);
    b->shown = point_path(s, b->shown);
    rows_wanted all = { 0 };
    block_send(s, e, &c, &all, b, plane_more);
    return true;
}

/* Without `against`, values are drawn over the time, or the coordinate, of their run. */
static const ast *own_axis(session *s, const ast *item)
{
    value v = session_eval(s, item);
    const char *coord = line_coordinate(&v);
    const ast *base = item;
    while (base->kind != AST_NAME && base->n > 0 && base->kid[0])
        base = base->kid[0];
    const def *d = base != item && base->kind == AST_NAME ? module_find(s->main, base->name) : NULL;
    bool of_run = d && d->kind == DEF_RUN;
    ast *axis = ast_new(s->tmp, of_run ? AST_MEMBER : AST_NAME, item->at, of_run);
    axis->name = sym_str(s->names, coord ? coord : "t");
    axis->name_at = item->at;
    if (of_run)
        axis->kid[0] = (ast *)base;
    return axis;
}

void plot_statement(session *s, const ast *e)
{
    columns c = { .s = s, .at = e };
    const char *picture = output_path(s, e, ".svg");
    if (!picture_kind(picture)) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at, "a picture must be a .svg, .png or .pdf file, not '%s'",
                   picture);
        return;
    }
    block b = { .path = arena_printf(s->tmp, "%s.csv", picture),
                .shown = picture,
                .title = key_text(s, e, "title"),
                .log = key_text(s, e, "log"),
                .by = by_name(s, e),
                .style = key_text(s, e, "style") };
    if (plot_plane(s, e, &b))
        return;
    if (b.style) {
        diag_error(s->d, DIAG_OPTION_VALUE, e->at,
                   "'style' is for a field in the plane, drawn alone: plot u");
        return;
    }
    rows_wanted want = { .number_blocks = true, .thin = true };
    if (!e->kid[1] && e->kid[0]->n == 1 && graph_columns(s, e->kid[0]->kid[0], &c)) {
        block_send(s, e, &c, &want, &b, NULL);
        return;
    }
    const ast *axis = e->kid[1] ? e->kid[1] : own_axis(s, e->kid[0]->kid[0]);
    column_read(&c, axis);
    if (!e->kid[1] && c.list.n)
        c.list.at[0].name = axis->name;
    if (c.list.n > 1) {
        diag_error(s->d, DIAG_SHAPE, e->kid[1]->at, "one series or vector is needed after 'against'");
        return;
    }
    for (uint32_t k = 0; k < e->kid[0]->n; k++)
        column_read(&c, e->kid[0]->kid[k]);
    if (!c.bad)
        b.behind = obstacles_add(s, &c);
    block_send(s, e, &c, &want, &b, plot_more);
}

bool picture_kind(const char *file)
{
    const char *end = file_ending(file);
    return !strcmp(end, ".svg") || !strcmp(end, ".png") || !strcmp(end, ".pdf");
}

/* Text for gnuplot, in double quotes: all special characters are written as octal numbers.  (In single
   quotes gnuplot 5 reads two apostrophes in a row as the end.)  The end of a line is a space, other control
   characters are dropped. */
static void put_quoted(text *t, const char *p)
{
    static const char plain[] = " .,:;+-*/=()[]_<>^?&~";
    text_putc(t, '"');
    for (; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 128;
        if (letter || (c && strchr(plain, c)))
            text_putc(t, (char)c);
        else if (c == '\n' || c == '\t')
            text_putc(t, ' ');
        else if (c >= 32 && c != 127)
            text_printf(t, "\\%03o", c);
    }
    text_putc(t, '"');
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_setting(text *t, const char *key, const char *v)
{
    text_printf(t, "set %s ", key);
    put_quoted(t, v);
    text_putc(t, '\n');
}

/* curve y of block k (the first column numbers the blocks), or of all rows */
static void put_curve(text *t, const table *b, size_t x, size_t y, size_t which)
{
    const char *title = b->header.at[y];
    if (b->curves.n) {
        const curve *c = &b->curves.at[which];
        text_printf(t, "data skip 1 using ($%zu == ", c->column + 1);
        text_num(t, c->is);
        text_printf(t, " ? $%zu : NaN):%zu with %s title ", x + 1, y + 1,
                    b->series ? "lines" : "linespoints");
    } else
        text_printf(t, "data skip 1 using %zu:%zu with %s title ", x + 1, y + 1,
                    b->rows <= 200 ? "linespoints" : "lines");
    if (b->curves.n)
        title = arena_printf(t->a, b->header.n - x > 2 ? "%s, %s" : "%s", b->curves.at[which].title, title);
    put_quoted(t, title);
}

static void put_curves(text *t, const table *b, size_t x)
{
    size_t blocks = b->curves.n ? b->curves.n : 1, n = 0;
    if (!*b->log)
        text_puts(t, "set offsets 0, 0, graph 0.03, graph 0.03\n");
    text_puts(t, "plot ");
    for (size_t y = b->header.n - b->behind; y < b->header.n; y++)
        text_printf(t, "%sdata skip 1 using %zu:%zu with lines linewidth 3 linecolor rgb 'gray60' title '%s'",
                    n++ ? ", \\\n     " : "", x + 1, y + 1,
                    strcmp(b->header.at[y], OBSTACLE) ? "" : OBSTACLE);
    for (size_t k = 0; k < blocks; k++)
        for (size_t y = x + 1; y < b->header.n - b->behind; y++) {
            if (n++)
                text_puts(t, ", \\\n     ");
            put_curve(t, b, x, y, k);
        }
    if (b->marks.n)
        text_puts(t, ", \\\n     $impacts with points pointtype 6 linecolor rgb 'red' title 'impacts'");
    text_putc(t, '\n');
}

/* where it touches, the map is shaded */
static void put_plane(text *t, const table *b)
{
    size_t touch = 0;
    for (size_t k = 0; k < b->header.n; k++)
        if (!strcmp(b->header.at[k], "contact"))
            touch = k + 1;
    put_setting(t, "ylabel", b->labels.at[1]);
    if (!strcmp(b->style, "surface")) {
        put_setting(t, "zlabel", b->labels.at[2]);
        text_puts(
            t, "set hidden3d\nset ticslevel 0\nset xyplane relative 0\nsplot $surface using 1:2:3 with pm3d "
               "notitle, "
               "\\\n     $surface using 1:2:3 with lines linecolor rgb '#40000000' linewidth 0.5 notitle\n");
        return;
    }
    put_setting(t, "cblabel", b->labels.at[2]);
    text_puts(t, "set size ratio -1\nset autoscale fix\nset key below\nunset grid\nplot data skip 1 using "
                 "1:2:3 with image notitle");
    if (touch)
        text_printf(
            t, ", \\\n     data skip 1 using 1:2:(255):(255):(255):(110*$%zu) with rgbalpha title 'contact'",
            touch);
    text_putc(t, '\n');
}

static void put_numbers(text *t, const double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        text_num(t, x[k]);
        text_putc(t, k + 1 < n ? ',' : '\n');
    }
}

static void put_points(text *t, const char *name, const number_list *x, size_t wide, int32_t line)
{
    text_printf(t, "$%s << end\n", name);
    for (size_t k = 0; k + wide <= x->n; k += wide) {
        put_numbers(t, x->at + k, wide);
        if (line && (k / wide + 1) % (size_t)line == 0)
            text_putc(t, '\n');
    }
    text_puts(t, "end\n");
}

static void put_backdrop(text *t, const table *b)
{
    if (b->surface)
        put_points(t, "surface", &b->shades, 3, b->surface);
    for (size_t k = 0; !b->surface && k + 1 < b->shades.n; k += 2) {
        text_puts(t, "set object rectangle from ");
        text_num(t, b->shades.at[k]);
        text_puts(t, ", graph 0 to ");
        text_num(t, b->shades.at[k + 1]);
        text_puts(t, ", graph 1 behind fillcolor rgb 'gray90' fillstyle solid noborder\n");
    }
    if (b->marks.n)
        put_points(t, "impacts", &b->marks, 2, 0);
}

/* A name that gnuplot opens: what begins with | or < would be a command, + or - no file. */
static void put_file(text *t, const char *name)
{
    put_quoted(t, arena_printf(t->a, "./%s", name));
}

/* data, picture: names of the files for gnuplot, in its folder */
static text script_of(session *s, const table *b, const char *data, const char *picture)
{
    static const struct {
        const char *ending, *terminal;
    } terminals[] = { { ".svg", "svg size 800,500 noenhanced background 'white'" },
                      { ".png", "pngcairo size 1000,625 noenhanced" },
                      { ".pdf", "pdfcairo size 6in,3.75in noenhanced" } };
    int kind = 0;
    text t = { .a = s->tmp };
    size_t x = b->header.n - b->ncol;
    while (kind < 2 && strcmp(terminals[kind].ending, file_ending(b->shown)))
        kind++;
    text_puts(&t, "# gnuplot script: draws the numbers beside it\n");
    text_puts(&t, "data = ");
    put_file(&t, data);
    text_puts(&t, "\npicture = ");
    put_file(&t, picture);
    text_printf(&t, "\nset terminal %s\nset output picture\nset datafile separator ','\nset grid\n",
                terminals[kind].terminal);
    if (*b->title)
        put_setting(&t, "title", b->title);
    put_setting(&t, "xlabel", b->labels.at[x]);
    if (b->ncol - b->behind == 2 && !*b->style)
        put_setting(&t, "ylabel", b->labels.at[x + 1]);
    if (*b->log)
        text_printf(&t, "set logscale %s\n", !strcmp(b->log, "xy") ? "xy" : b->log[0] == 'x' ? "x" : "y");
    put_backdrop(&t, b);
    if (b->curves.n)
        text_puts(&t, "set datafile missing NaN\n");
    if (*b->style)
        put_plane(&t, b);
    else
        put_curves(&t, b, x);
    text_puts(&t, "set output\n");
    return t;
}

void table_draw(session *s, const table *b)
{
    file_root out = session_folder(s);
    const char *script = arena_printf(s->tmp, "%s.gp", b->shown);
    text kept = script_of(s, b, base_name(b->path), base_name(b->shown));
    text code = script_of(s, b, TOOL_DATA, TOOL_PICTURE);
    char word[] = "gnuplot", settings[] = "-d", file[] = TOOL_SCRIPT; /* -d: no file of settings is read */
    char *argv[] = { word, settings, file, NULL };
    tool_job job = { .argv = argv,
                     .script = code.at,
                     .len = code.n,
                     .data = b->path,
                     .picture = b->shown,
                     .budget = &s->budget };
    int error = outfile_whole(s->tmp, &out, script, kept.at, kept.n);
    if (error) {
        diag_error(s->d, DIAG_IO, b->at->at, "cannot write '%s': %s", session_path(s, script),
                   error_text(s->tmp, error));
        return;
    }
    error = tool_draw(&out, &job);
    manifest_file(s, script, "script");
    if (error < 0 && budget_stopping(&s->budget)) { /* so it was ended, and the statement ends with it */
        s->budget.until = 0;
        arena_tick(s->tmp, INT32_MAX);
    }
    const char *shown = session_path(s, b->shown), *data = session_path(s, b->path);
    script = session_path(s, script);
    if (!error) {
        manifest_file(s, b->shown, "picture");
        session_note(s, "wrote %s", shown);
    } else if (error == ENOENT)
        session_note(s,
                     "gnuplot is not installed, so there is no %s; its numbers are in %s, the script in %s",
                     shown, data, script);
    else if (error < 0)
        session_note(s, "gnuplot could not draw %s; its numbers are in %s, try gnuplot %s", shown, data,
                     script);
    else
        diag_error(s->d, DIAG_IO, b->at->at, "cannot write '%s': %s", shown, error_text(s->tmp, error));
}
