/* frames_vtk: `save p { file = "x.pvd" }` writes bodies as a series for ParaView: x.pvd names x/1.vtp,
   x/2.vtp ... with the times of samples.  A file has a point for each body: velocity, radius and rotation
   where they are known.  If contact forces were kept, contacts-1.vtp has a point for each contact with a
   reaction; if there are shapes, shapes-1.vtp has their polygons.  Numbers are those of the samples, to the
   last bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/tolerances.h"
#include "scene.h"

enum { FRAMES_MOST = 20000 };
typedef vec(int64_t) sample_list;

/* A contact with a reaction, as seen by the first body whose position its gap reads. */
typedef struct {
    double place[3], normal[3], force[3], friction[3], gap;
    int32_t body, other, family, status;
} pushing;
typedef vec(pushing) pushing_list;

typedef struct {
    scene m;
    const results *r;
    int32_t *body, *axis; /* see scene_axes */
    double *q, *v, *reg;
    pushing_list contacts;
} frames;

/* ---- XML ---- */
static void put_head(text *t, size_t points, size_t verts, size_t lines, size_t polys)
{
    text_printf(
        t,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"0.1\" "
        "byte_order=\"LittleEndian\">\n<PolyData>\n<Piece NumberOfPoints=\"%zu\" NumberOfVerts=\"%zu\" "
        "NumberOfLines=\"%zu\" NumberOfStrips=\"0\" NumberOfPolys=\"%zu\">\n",
        points, verts, lines, polys);
}

static void put_end(text *t)
{
    text_puts(t, "</Piece>\n</PolyData>\n</VTKFile>\n");
}

static void array_begin(text *t, const char *name, bool whole, int wide)
{
    text_printf(t, "<DataArray type=\"%s\" Name=\"%s\"", whole ? "Int32" : "Float64", name);
    if (wide > 1)
        text_printf(t, " NumberOfComponents=\"%d\"", wide);
    text_puts(t, " format=\"ascii\">\n");
}

static void put_row(text *t, const double *x, int n)
{
    for (int k = 0; k < n; k++)
        text_printf(t, "%s%.17g", k ? " " : "", x[k]);
    text_putc(t, '\n');
}

static void put_wholes(text *t, const char *name, const whole_list *x)
{
    array_begin(t, name, true, 1);
    for (size_t k = 0; k < x->n; k++)
        text_printf(t, "%d\n", (int)x->at[k]);
    text_puts(t, "</DataArray>\n");
}

/* cells through points that are named one after the other */
static void put_cells(text *t, const char *kind, const whole_list *points, const whole_list *ends)
{
    text_printf(t, "<%s>\n", kind);
    put_wholes(t, "connectivity", points);
    put_wholes(t, "offsets", ends);
    text_printf(t, "</%s>\n", kind);
}

/* ---- bodies ---- */
/* points alone are vertices, corners of lines make lines */
static void cells_of(const scene *m, whole_list cells[2], whole_list ends[2])
{
    for (size_t k = 0; k < m->all.n;) {
        size_t n = line_length(m, k);
        int which = n > 1;
        for (size_t i = 0; i < n; i++, k++)
            *vec_push(m->s->tmp, &cells[which]) = (int32_t)k;
        *vec_push(m->s->tmp, &ends[which]) = (int32_t)cells[which].n;
    }
}

/* rates of the coordinates that are dofs; NaN for a formula */
static void velocity_of(const frames *f, const mover *b, int64_t sample, double *v)
{
    int n = b->n == LONE ? 1 : b->n;
    memset(v, 0, 3 * sizeof *v);
    for (int i = 0; i < n && !b->space; i++) {
        int32_t c = column_of(&f->m, &b->v[i]);
        v[b->n == LONE ? 1 : i] = c < 0 ? NAN : f->r->v[sample * f->r->prog->nq + c];
    }
}

static void rotation_of(const mover *b, int64_t sample, double t, double *R)
{
    double a = b->turns ? number_at(&b->angle, t) : 0;
    const double plane[] = { cos(a), -sin(a), 0, sin(a), cos(a), 0, 0, 0, 1 };
    memcpy(R, b->attitude ? b->attitude + 9 * sample : plane, sizeof plane);
}

static void put_bodies(text *t, const frames *f, int64_t sample)
{
    const scene *m = &f->m;
    double time = f->r->t[sample], x[9];
    bool turns = false;
    whole_list cells[2] = { { 0 } }, ends[2] = { { 0 } }, number = { 0 };
    cells_of(m, cells, ends);
    put_head(t, m->all.n, ends[0].n, ends[1].n, 0);
    text_puts(t, "<Points>\n");
    array_begin(t, "place", false, 3);
    for (size_t k = 0; k < m->all.n; k++) {
        mover_place(m, k, time, x);
        put_row(t, x, 3);
        turns |= m->all.at[k].turns || m->all.at[k].attitude;
        *vec_push(m->s->tmp, &number) = (int32_t)k + 1;
    }
    text_puts(t, "</DataArray>\n</Points>\n");
    put_cells(t, "Verts", &cells[0], &ends[0]);
    put_cells(t, "Lines", &cells[1], &ends[1]);
    text_puts(t, "<PointData Scalars=\"radius\" Vectors=\"velocity\">\n");
    array_begin(t, "velocity", false, 3);
    for (size_t k = 0; k < m->all.n; k++) {
        velocity_of(f, &m->all.at[k], sample, x);
        put_row(t, x, 3);
    }
    text_puts(t, "</DataArray>\n");
    array_begin(t, "radius", false, 1);
    for (size_t k = 0; k < m->all.n; k++)
        put_row(t, &m->all.at[k].r, 1);
    text_puts(t, "</DataArray>\n");
    if (turns) {
        array_begin(t, "rotation", false, 9);
        for (size_t k = 0; k < m->all.n; k++) {
            rotation_of(&m->all.at[k], sample, time, x);
            put_row(t, x, 9);
        }
        text_puts(t, "</DataArray>\n");
    }
    put_wholes(t, "body", &number);
    text_puts(t, "</PointData>\n");
    put_end(t);
}

/* ---- shapes ---- */
static void solid_polys(frames *f, size_t k, double time, polygons *all, whole_list *body, whole_list *shape)
{
    const solid *s = &f->m.solids.at[k];
    arena *a = f->m.s->tmp;
    body_pose at = solid_pose(&f->m, k, time);
    polygons own;
    solid_polygons(&f->m, s, &own);
    int32_t first = (int32_t)(all->x.n / 3);
    for (size_t c = 0; c < own.x.n; c += 3)
        for (int i = 0; i < 3; i++) {
            const double *y = own.x.at + c, *row = at.A + 3 * i;
            *vec_push(a, &all->x) = at.p[i] + row[0] * y[0] + row[1] * y[1] + row[2] * y[2];
        }
    int32_t corners = (int32_t)all->corner.n;
    for (size_t c = 0; c < own.corner.n; c++)
        *vec_push(a, &all->corner) = first + own.corner.at[c];
    for (size_t c = 0; c < own.end.n; c++) {
        *vec_push(a, &all->end) = corners + own.end.at[c];
        *vec_push(a, body) = s->body + 1;
        *vec_push(a, shape) = (int32_t)k + 1;
    }
}

static void put_shapes(text *t, frames *f, int64_t sample)
{
    polygons all = { 0 };
    whole_list body = { 0 }, shape = { 0 };
    double time = f->r->t[sample];
    solids_move(&f->m, time);
    for (size_t k = 0; k < f->m.solids.n; k++)
        solid_polys(f, k, time, &all, &body, &shape);
    put_head(t, all.x.n / 3, 0, 0, all.end.n);
    text_puts(t, "<Points>\n");
    array_begin(t, "place", false, 3);
    for (size_t k = 0; k < all.x.n; k += 3)
        put_row(t, all.x.at + k, 3);
    text_puts(t, "</DataArray>\n</Points>\n");
    put_cells(t, "Polys", &all.corner, &all.end);
    text_puts(t, "<CellData Scalars=\"body\">\n");
    put_wholes(t, "body", &body); /* 0: it is fixed, or its body is not saved */
    put_wholes(t, "shape", &shape);
    text_puts(t, "</CellData>\n");
    put_end(t);
}

/* ---- contacts ---- */
/* adds a derivative with respect to one dof: to the first body; for the other body only its number is
   stored */
static void part_add(const frames *f, pushing *p, double *to, int32_t dof, double x)
{
    int32_t body = f->body[dof];
    if (body < 0)
        return;
    if (p->body < 0)
        p->body = body;
    if (body == p->body)
        to[f->axis[dof]] += x;
    else
        p->other = body;
}

static void friction_add(const frames *f, const contact_family *of, const inputs *in, const int32_t *ix,
                         const double *rt, pushing *p)
{
    const kernel *k = &of->slip_map;
    if (!rt || !of->slip_given || !k->tape.nout)
        return;
    tape_start(&k->tape, f->reg);
    kernel_run(k, in, ix, f->reg);
    for (uint32_t j = 0; j < k->tape.nout; j++)
        part_add(f, p, p->friction, slot_at(&k->col[j], ix, of->over.n),
                 rt[k->row[j].base] * f->reg[k->tape.out[j]]);
}

/* where it touches: on the surface of the body, along the normal */
static void disk_place(const frames *f, pushing *p, double rn, double time)
{
    double size = sqrt(p->normal[0] * p->normal[0] + p->normal[1] * p->normal[1] +
                       p->normal[2] * p->normal[2]);
    mover_place(&f->m, (size_t)p->body, time, p->place);
    for (int i = 0; i < 3; i++) {
        p->force[i] = rn * p->normal[i];
        p->normal[i] = size > 0 ? p->normal[i] / size : 0;
        p->place[i] -= f->m.all.at[p->body].r * p->normal[i];
    }
}

/* for shapes; whether it is between shapes. Friction on a body whose position is not a dof is not known. */
static bool shape_place(const frames *f, const contact_family *of, const inputs *in, const int32_t *ix,
                        double rn, pushing *p)
{
    if (!touching_at(of, in, ix, f->reg, p->place, p->normal))
        return false;
    for (int i = 0; i < 3; i++) {
        p->force[i] = rn * p->normal[i];
        if (p->body < 0 && of->nslip)
            p->friction[i] = NAN;
    }
    return true;
}

static void family_read(frames *f, size_t c, int64_t sample, const inputs *in)
{
    const contact_family *of = &f->r->prog->contact[c];
    const contact_result *x = &f->r->contact[c];
    int32_t ix[MAX_INDEX] = { 0 };
    if (!x->kept || !x->rn || !of->gradient.tape.nout || (of->over.n && !index_first(&of->over, ix)))
        return;
    int64_t member = 0;
    for (bool more = true; more && member < x->members;
         member++, more = of->over.n && index_next(&of->over, ix)) {
        int64_t at = sample * x->members + member;
        pushing p = { .body = -1, .other = -1, .family = (int32_t)c, .gap = x->gap[at] };
        if (x->rn[at] == 0)
            continue;
        shapes_index(f->r->prog, of, member, ix);
        tape_start(&of->gradient.tape, f->reg);
        kernel_run(&of->gradient, in, ix, f->reg);
        for (uint32_t k = 0; k < of->gradient.tape.nout; k++)
            part_add(f, &p, p.normal, slot_at(&of->gradient.row[k], ix, of->over.n),
                     f->reg[of->gradient.tape.out[k]]);
        friction_add(f, of, in, ix, x->nslip ? x->rt + at * x->nslip : NULL, &p);
        if (!shape_place(f, of, in, ix, x->rn[at], &p)) {
            if (p.body < 0)
                continue;
            disk_place(f, &p, x->rn[at], in->t);
        }
        p.status = x->status ? x->status[at] : STATUS_SLIP;
        *vec_push(f->m.s->tmp, &f->contacts) = p;
    }
}

static void contacts_read(frames *f, int64_t sample)
{
    inputs in;
    touching_read(&f->m, &in, f->q, f->v, f->r->t[sample]);
    for (size_t c = 0; c < f->r->prog->ncontact; c++)
        family_read(f, c, sample, &in);
}

static void contact_array(text *t, const frames *f, const char *name, size_t offset, int wide)
{
    array_begin(t, name, false, wide);
    for (size_t k = 0; k < f->contacts.n; k++) {
        double x[3];
        memcpy(x, (const char *)&f->contacts.at[k] + offset, (size_t)wide * sizeof *x);
        put_row(t, x, wide);
    }
    text_puts(t, "</DataArray>\n");
}

static void contact_numbers(text *t, const frames *f, const char *name, size_t offset, int32_t first)
{
    whole_list all = { 0 };
    for (size_t k = 0; k < f->contacts.n; k++) {
        int32_t x;
        memcpy(&x, (const char *)&f->contacts.at[k] + offset, sizeof x);
        *vec_push(f->m.s->tmp, &all) = x + first;
    }
    put_wholes(t, name, &all);
}

static void put_contacts(text *t, const frames *f)
{
    whole_list points = { 0 }, ends = { 0 }, none = { 0 };
    for (size_t k = 0; k < f->contacts.n; k++) {
        *vec_push(f->m.s->tmp, &points) = (int32_t)k;
        *vec_push(f->m.s->tmp, &ends) = (int32_t)k + 1;
    }
    put_head(t, f->contacts.n, f->contacts.n, 0, 0);
    text_puts(t, "<Points>\n");
    contact_array(t, f, "place", offsetof(pushing, place), 3);
    text_puts(t, "</Points>\n");
    put_cells(t, "Verts", &points, &ends);
    put_cells(t, "Lines", &none, &none);
    text_puts(t, "<PointData Vectors=\"force\">\n");
    contact_array(t, f, "force", offsetof(pushing, force), 3);
    contact_array(t, f, "friction", offsetof(pushing, friction), 3);
    contact_array(t, f, "normal", offsetof(pushing, normal), 3);
    contact_array(t, f, "gap", offsetof(pushing, gap), 1);
    contact_numbers(t, f, "status", offsetof(pushing, status), 0);
    contact_numbers(t, f, "body", offsetof(pushing, body), 1);
    contact_numbers(t, f, "other", offsetof(pushing, other), 1); /* 0: a wall */
    contact_numbers(t, f, "constraint", offsetof(pushing, family), 1);
    text_puts(t, "</PointData>\n");
    put_end(t);
}

/* ---- the series ---- */
/* All samples, or some at regular intervals, and the last one. */
static sample_list samples_of(const frames *f, double every)
{
    sample_list all = { 0 };
    const results *r = f->r;
    double last = -INFINITY;
    for (int64_t k = 0; k < r->samples; k++) {
        if (r->t[k] - last < every * (1 - SAMPLE_EARLY) && k + 1 < r->samples)
            continue;
        last = r->t[k];
        *vec_push(f->m.s->tmp, &all) = k;
    }
    return all;
}

static bool frame_write(session *s, const ast *e, const char *path, const text *t)
{
    outfile *f = whole_begin(s, path);
    outfile_put(f, t->at, t->n);
    return whole_end(s, f, path, "frame", e->at);
}

static const char *frame_name(session *s, const char *stem, const char *what, size_t k)
{
    return arena_printf(s->tmp, "%s/%s%zu.vtp", stem, what, k + 1);
}

static void list_add(text *t, const char *name, double time, int part)
{
    const char *slash = strrchr(name, '/'), *folder = slash;
    while (folder > name && folder[-1] != '/')
        folder--;
    text_printf(t, "<DataSet timestep=\"%.17g\" part=\"%d\" file=\"%s\"/>\n", time, part, folder);
}

/* the files of a frame: their names begin with these words, and have these numbers in the list */
enum { BODIES, CONTACTS, SHAPES, PARTS };
static const char *const part_names[PARTS] = { "", "contacts-", "shapes-" };

static bool frame_put(frames *f, const ast *e, const char *stem, size_t k, int64_t sample, int part,
                      text *list)
{
    session *s = f->m.s;
    arena_pos mark = arena_mark(s->tmp);
    text t = { .a = s->tmp };
    const char *name = frame_name(s, stem, part_names[part], k);
    f->contacts = (pushing_list){ 0 };
    if (part == CONTACTS) {
        contacts_read(f, sample);
        put_contacts(&t, f);
    } else if (part == SHAPES)
        put_shapes(&t, f, sample);
    else
        put_bodies(&t, f, sample);
    list_add(list, name, f->r->t[sample], part);
    bool ok = frame_write(s, e, name, &t);
    arena_release(s->tmp, mark);
    return ok;
}

static bool bodies_read(session *s, const ast *e, scene *m)
{
    scene_begin(m, s);
    m->most = SIZE_MAX;
    for (uint32_t k = 0; k < e->kid[0]->n; k++) {
        value v = session_eval(s, e->kid[0]->kid[k]);
        if (v.kind == V_ERROR)
            return false;
        scene_add(m, span_text(s->d, e->kid[0]->kid[k]->at, s->tmp), &v);
    }
    if (!m->bad && !m->field && m->all.n && s->last && s->last->r->samples && s->last->r->prog->nq)
        return true;
    diag *d = diag_error(s->d, DIAG_TYPE, e->at, "a .pvd file contains bodies, points or lines that move");
    diag_hint(s->d, d,
              "save p { file = \"p.pvd\" }, where p are positions in the plane or in space, or "
              "parts");
    return false;
}

void save_frames(session *s, const ast *e, const char *path, double every)
{
    frames f = { 0 };
    if (!bodies_read(s, e, &f.m))
        return;
    f.r = s->last->r;
    stage_of(&f.m, 1); /* scalars, which move up and down, are placed side by side */
    size_t nq = (size_t)f.r->prog->nq;
    sample_list samples = samples_of(&f, every);
    if (samples.n > FRAMES_MOST) {
        diag *d = diag_error(s->d, DIAG_OPTION_VALUE, e->at, "this series would have %zu files", samples.n);
        diag_hint(s->d, d, "save fewer frames: { file = \"%s\", every = 0.01 }", path);
        return;
    }
    f.q = arena_array(s->tmp, double, nq);
    f.v = arena_array(s->tmp, double, nq);
    f.reg = arena_array(s->tmp, double, contact_registers(f.r->prog));
    scene_axes(&f.m, f.r, &f.body, &f.axis);
    bool parts[PARTS] = { [BODIES] = true };
    for (size_t c = 0; c < f.r->prog->ncontact; c++)
        parts[CONTACTS] |= f.r->contact[c].kept && f.r->contact[c].rn;
    for (size_t c = 0; c < f.m.solids.n; c++)
        parts[SHAPES] |= f.m.solids.at[c].of != NULL;
    const char *stem = arena_strndup(s->a, path, (size_t)(file_ending(path) - path));
    text list = { .a = s->a };
    text_puts(&list, "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\" "
                     "byte_order=\"LittleEndian\">\n<Collection>\n");
    for (size_t k = 0; k < samples.n; k++)
        for (int part = 0; part < PARTS; part++)
            if (parts[part] && !frame_put(&f, e, stem, k, samples.at[k], part, &list))
                return;
    text_puts(&list, "</Collection>\n</VTKFile>\n");
    outfile *to = whole_begin(s, path);
    outfile_put(to, list.at, list.n);
    whole_end(s, to, path, "data", e->at);
}
