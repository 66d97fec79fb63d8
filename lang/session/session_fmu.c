/* session_fmu: `cdl emit fmu`: a run as a unit of FMI 2.0 for co-simulation.  A zip file of the C of the run,
   what the system's compiler made of it, and modelDescription.xml.  The order of variables and their value
   references are those of runtime/native/fmu.c. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/sha256.h"
#include "io/compiled.h"
#include "motion/sweep_emit.h"
#include "session.h"

/* A dimension that a variable has, and its name. */
typedef struct {
    dim of;
    const char *name;
} unit_row;

typedef struct {
    session *s;
    const run *r;
    const emitted_run *from;
    vec(unit_row) units;
    vec(const char *) names; /* that are taken */
    text variables, outputs, unknowns;
    int n;
} description;

/* ---- text ---- */
static void put_escaped(text *t, const char *p)
{
    for (; *p; p++)
        switch (*p) {
        case '&':
            text_puts(t, "&amp;");
            break;
        case '<':
            text_puts(t, "&lt;");
            break;
        case '>':
            text_puts(t, "&gt;");
            break;
        case '"':
            text_puts(t, "&quot;");
            break;
        default:
            text_putc(t, (unsigned char)*p < ' ' ? ' ' : *p);
        }
}

static void put_attribute(text *t, const char *name, const char *is)
{
    if (!is || !*is)
        return;
    text_printf(t, " %s=\"", name);
    put_escaped(t, is);
    text_putc(t, '"');
}

static bool is_identifier(const char *p)
{
    while (isalnum((unsigned char)*p) || *p == '_' || (*p && strchr(".[],", *p)))
        p++;
    return !*p;
}

/* A name of the structured convention: no blanks, and quotes if it has characters that FMI does not permit.
 */
static const char *structured(session *s, const char *name)
{
    text t = { .a = s->tmp };
    for (const char *p = name; *p; p++)
        if (*p != ' ')
            text_putc(&t, *p);
    return is_identifier(t.at) ? t.at : arena_printf(s->tmp, "'%s'", t.at);
}

/* ---- units ---- */
static const char *unit_add(description *d, dim u)
{
    text t = { .a = d->s->tmp };
    if (u.any)
        return NULL;
    dim_text(&t, u);
    for (size_t k = 0; k < d->units.n; k++)
        if (!strcmp(d->units.at[k].name, t.at))
            return d->units.at[k].name;
    *vec_push(d->s->tmp, &d->units) = (unit_row){ u, t.at };
    return t.at;
}

static void put_unit(text *t, const unit_row *u)
{
    static const char *const bases[DIM_BASES] = { "m", "kg", "s", "A", "K", "mol", "cd" };
    bool whole = true;
    for (int k = 0; k < DIM_BASES; k++)
        whole &= u->of.e[k] % DIM_ONE == 0;
    text_puts(t, "    <Unit");
    put_attribute(t, "name", u->name);
    text_puts(t, whole ? "><BaseUnit" : "/>\n");
    for (int k = 0; whole && k < DIM_BASES; k++)
        if (u->of.e[k])
            text_printf(t, " %s=\"%d\"", bases[k], u->of.e[k] / DIM_ONE);
    text_puts(t, whole ? "/></Unit>\n" : "");
}

/* ---- variables ---- */
typedef struct {
    const char *name, *doc, *causality, *variability, *initial, *unit;
    unsigned reference;
    const double *start; /* NULL: none */
    double lo, hi;       /* bounds; both 0: none */
    const char *type;    /* "Real", or with its attributes */
    int derivative;      /* of the variable of this number; 0: of none */
} variable;

/* names of the model come first: a result of the run gives way to a parameter of the same name */
static const char *name_free(description *d, const char *name)
{
    for (size_t k = 0; k < d->names.n; k++)
        if (!strcmp(d->names.at[k], name))
            return name_free(d, arena_printf(d->s->tmp, "run.%s", name));
    *vec_push(d->s->tmp, &d->names) = name;
    return name;
}

static void variable_put(description *d, const variable *x)
{
    text *t = &d->variables;
    d->n++;
    text_puts(t, "    <ScalarVariable");
    put_attribute(t, "name", name_free(d, x->name));
    text_printf(t, " valueReference=\"%u\"", x->reference);
    put_attribute(t, "description", x->doc);
    put_attribute(t, "causality", x->causality);
    put_attribute(t, "variability", x->variability);
    put_attribute(t, "initial", x->initial);
    text_printf(t, "><%s", x->type);
    put_attribute(t, "unit", x->unit);
    if (x->lo < x->hi && isfinite(x->lo))
        text_printf(t, " min=\"%.17g\"", x->lo);
    if (x->lo < x->hi && isfinite(x->hi))
        text_printf(t, " max=\"%.17g\"", x->hi);
    if (x->start)
        text_printf(t, " start=\"%.17g\"", *x->start);
    if (x->derivative)
        text_printf(t, " derivative=\"%d\"", x->derivative);
    text_puts(t, "/></ScalarVariable>\n");
    if (!strcmp(x->causality, "output")) {
        text_printf(&d->outputs, "      <Unknown index=\"%d\"/>\n", d->n);
        if (!strcmp(x->initial, "calculated"))
            text_printf(&d->unknowns, "      <Unknown index=\"%d\"/>\n", d->n);
    }
}

/* [2,3]: the place of element k */
static const char *element_name(session *s, const cdl_quantity *q, size_t k)
{
    text t = { .a = s->tmp };
    size_t below = q->n, rest = k;
    text_puts(&t, q->name);
    for (int i = 0; i < q->rank; i++) {
        below /= q->shape[i];
        text_printf(&t, "%s%d", i ? "," : "[", q->first[i] + (int)(rest / below));
        rest %= below;
    }
    text_puts(&t, q->rank ? "]" : "");
    return t.at;
}

/* positions, then rates: their numbers at the start can be set */
static void put_dofs(description *d)
{
    const results *r = d->r->r;
    named_dof *list;
    size_t n;
    dim second = dim_none();
    second.e[2] = DIM_ONE;
    session_dofs(d->s, d->r->of->m, &list, &n);
    int nq = r->prog->nq, *number = arena_array(d->s->tmp, int, nq + 1);
    for (int rate = 0; rate < 2; rate++)
        for (size_t i = 0; i < n; i++) {
            const mdof *dof = list[i].dof;
            cdl_quantity q = { .name = list[i].name, .n = (size_t)dof->size };
            q.rank = dof_shape(dof, true, q.shape, q.first);
            for (size_t k = 0; k < q.n; k++) {
                int at = list[i].at + (int)k;
                const char *name = structured(d->s, element_name(d->s, &q, k));
                variable x = { .name = rate ? arena_printf(d->s->tmp, "der(%s)", name) : name,
                               .doc = rate ? arena_printf(d->s->tmp, "rate of %s", name) : dof->doc,
                               .causality = "output",
                               .variability = "continuous",
                               .initial = "exact",
                               .unit = unit_add(d, rate ? dim_div(dof->unit, second) : dof->unit),
                               .reference = (unsigned)(rate * nq + at),
                               .start = (rate ? r->v : r->q) + at,
                               .type = "Real",
                               .derivative = rate ? number[at] : 0 };
                variable_put(d, &x);
                if (!rate)
                    number[at] = d->n;
            }
        }
}

static void put_output(description *d, const char *name, const char *doc, unsigned reference)
{
    variable_put(d, &(variable){ .name = name,
                                 .doc = doc,
                                 .causality = "output",
                                 .variability = "continuous",
                                 .initial = "calculated",
                                 .reference = reference,
                                 .type = "Real" });
}

static void put_contact(description *d, size_t k, unsigned nq, unsigned nc)
{
    session *s = d->s;
    const emitted_contact *c = &d->from->contacts.at[k];
    const char *name = c->name;
    unsigned gaps = 2 * nq, at = (unsigned)k;
#define MEMBER(what) structured(s, arena_printf(s->tmp, "%s." what, name))
    put_output(d, MEMBER("gap"), "gap", gaps + at);
    put_output(d, MEMBER("rn"), "normal force, mean over the last step", gaps + nc + at);
    for (int j = 0; j < c->shown; j++)
        put_output(
            d, c->shown == 1 ? MEMBER("rt") : structured(s, arena_printf(s->tmp, "%s.rt[%d]", name, j + 1)),
            "friction force, mean over the last step", gaps + 2 * nc + 3 * at + (unsigned)j);
    variable_put(d, &(variable){ .name = MEMBER("status"),
                                 .causality = "output",
                                 .variability = "discrete",
                                 .initial = "calculated",
                                 .reference = at,
                                 .type = "Enumeration declaredType=\"contact_state\"" });
#undef MEMBER
}

/* declared ones: inputs can be set, some before the start; the others are part of the C as numbers */
static void put_params(description *d, unsigned first)
{
    const mclass *c = d->r->of->m->classes.at[0];
    for (size_t i = 0; i < c->params.n; i++) {
        const mparam *p = c->params.at[i];
        bool fixed = p->offset < 0;
        for (int32_t k = 0; !fixed && k < p->size; k++) {
            bool set = !p->structural && d->from->settable[p->offset + k];
            cdl_quantity q = { .name = p->name, .n = (size_t)p->size, .rank = p->rank };
            for (int j = 0; j < p->rank; j++) {
                q.first[j] = 1;
                q.shape[j] = (size_t)p->n[j];
            }
            variable_put(d, &(variable){ .name = structured(d->s, element_name(d->s, &q, (size_t)k)),
                                         .doc = p->doc,
                                         .causality = p->input ? "input"
                                                      : set    ? "parameter"
                                                               : "local",
                                         .variability = p->input ? "continuous"
                                                        : set    ? "fixed"
                                                                 : "constant",
                                         .initial = p->input ? "" : "exact",
                                         .unit = unit_add(d, p->unit),
                                         .reference = first + (unsigned)(p->offset + k),
                                         .start = d->r->r->param + p->offset + k,
                                         .lo = p->lo,
                                         .hi = p->hi,
                                         .type = "Real" });
        }
    }
}

static void put_variables(description *d)
{
    unsigned nq = (unsigned)d->r->of->p->nq, nc = (unsigned)d->from->contacts.n, books = 2 * nq + 5 * nc;
    put_dofs(d);
    put_params(d, books + 3);
    for (size_t k = 0; k < nc; k++)
        put_contact(d, k, nq, nc);
    put_output(d, "work", result_doc(OF_RUN, "work"), books);
    put_output(d, "dissipated", result_doc(OF_RUN, "dissipated"), books + 1);
    put_output(d, "max_penetration", result_doc(OF_RUN, "max_penetration"), books + 2);
    variable_put(d, &(variable){ .name = "impacts",
                                 .doc = "number of impacts",
                                 .causality = "output",
                                 .variability = "discrete",
                                 .initial = "calculated",
                                 .reference = nc,
                                 .type = "Integer" });
}

/* ---- the description ---- */
static const char *identifier_of(session *s, const char *name)
{
    text t = { .a = s->tmp };
    text_puts(&t, isalpha((unsigned char)*name) || *name == '_' ? "" : "m_");
    for (; *name; name++)
        text_putc(&t, isalnum((unsigned char)*name) ? *name : '_');
    return t.at;
}

static void put_head(text *t, const char *name, const char *guid)
{
    text_puts(t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"2.0\"");
    put_attribute(t, "modelName", name);
    put_attribute(t, "guid", guid);
    put_attribute(t, "generationTool", arena_printf(t->a, "cdl %s", cdl_version()));
    text_puts(t, " variableNamingConvention=\"structured\" numberOfEventIndicators=\"0\">\n");
}

static void put_abilities(text *t, const char *identifier, size_t ninput)
{
    text_printf(t,
                "  <CoSimulation modelIdentifier=\"%s\" canHandleVariableCommunicationStepSize=\"true\""
                " canInterpolateInputs=\"%s\" maxOutputDerivativeOrder=\"0\" canGetAndSetFMUstate=\"true\""
                " canSerializeFMUstate=\"true\">\n    <SourceFiles><File name=\"%s.c\"/></SourceFiles>\n"
                "  </CoSimulation>\n",
                identifier, ninput ? "true" : "false", identifier);
}

static void put_description(text *t, description *d, const run_options *o, const char *identifier,
                            const char *guid)
{
    put_head(t, d->r->of->p->model, guid);
    put_abilities(t, identifier, d->from->ninput);
    text_puts(t, d->units.n ? "  <UnitDefinitions>\n" : "");
    for (size_t k = 0; k < d->units.n; k++)
        put_unit(t, &d->units.at[k]);
    text_puts(t, d->units.n ? "  </UnitDefinitions>\n" : "");
    if (d->from->contacts.n)
        text_puts(t, "  <TypeDefinitions>\n    <SimpleType name=\"contact_state\"><Enumeration>"
                     "<Item name=\"open\" value=\"0\"/><Item name=\"stick\" value=\"1\"/>"
                     "<Item name=\"slip\" value=\"2\"/></Enumeration></SimpleType>\n  </TypeDefinitions>\n");
    text_puts(t, "  <LogCategories>\n    <Category name=\"logAll\"/>\n    <Category "
                 "name=\"logStatusError\"/>\n  </LogCategories>\n");
    text_printf(t, "  <DefaultExperiment startTime=\"0\" stopTime=\"%.17g\" stepSize=\"%.17g\"/>\n",
                d->from->duration, o->value[0]);
    text_printf(t, "  <ModelVariables>\n%s  </ModelVariables>\n", d->variables.at);
    text_printf(t, "  <ModelStructure>\n    <Outputs>\n%s    </Outputs>\n", d->outputs.at);
    text_printf(t, "    <InitialUnknowns>\n%s    </InitialUnknowns>\n  </ModelStructure>\n", d->unknowns.at);
    text_puts(t, "</fmiModelDescription>\n");
}

/* a name for this description with this C, of the form that FMI likes */
static const char *guid_of(session *s, const text *c, const description *d)
{
    sha256 h;
    char hex[65];
    sha256_start(&h);
    sha256_put(&h, c->at, c->n);
    sha256_put(&h, d->variables.at, d->variables.n);
    sha256_end(&h, hex);
    return arena_printf(s->tmp, "{%.8s-%.4s-%.4s-%.4s-%.12s}", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/* ---- the file ---- */
/* -o x.fmu is the file, any other -o the folder of MODEL.fmu */
static const char *unit_path(session *s, const char *identifier, file_root *in)
{
    const char *given = s->option[OPTION_OUTPUT], *end = strrchr(given, '.');
    *in = (file_root){ given, session_is(s, OPTION_ALLOW_OUTSIDE) };
    if (!end || strcmp(end, ".fmu"))
        return arena_printf(s->tmp, "%s.fmu", identifier);
    const char *slash = strrchr(given, '/');
    in->path = !slash ? "" : slash == given ? "/" : arena_strndup(s->tmp, given, (size_t)(slash - given));
    return slash ? slash + 1 : given;
}

void fmu_write(session *s, const ast *e, const run *r, const run_options *o, const emitted_run *from)
{
    description d = { .s = s, .r = r, .from = from };
    d.variables.a = d.outputs.a = d.unknowns.a = s->tmp;
    put_variables(&d);
    const char *identifier = identifier_of(s, r->of->p->model), *guid = guid_of(s, &from->out, &d);
    text c = { .a = s->tmp }, xml = { .a = s->tmp };
    text_printf(&c, "#define FMU_GUID \"%s\"\n", guid);
    text_putn(&c, from->out.at, from->out.n);
    put_description(&xml, &d, o, identifier, guid);
    size_t n = 0;
    const char *code = compiled_bytes(s->tmp, c.at, c.n, &s->budget, &n);
    if (!code) {
        diag *bad = diag_error(s->d, DIAG_IO, e->at,
                               "the C code of this run could not be compiled for "
                               "the unit");
        diag_hint(s->d, bad, "a unit needs a C compiler, cc, and a folder for its cache below $HOME");
        return;
    }
    file_root in;
    const char *path = unit_path(s, identifier, &in);
    const zip_file files[] = {
        { "modelDescription.xml", xml.at, xml.n },
        { arena_printf(s->tmp, "sources/%s.c", identifier), c.at, c.n },
        { arena_printf(s->tmp, "binaries/linux64/%s.so", identifier), code, n },
    };
    outfile *f = outfile_open(s->tmp, &in, path);
    zip_write(f, s->tmp, files, sizeof files / sizeof *files);
    if (!outfile_commit(f))
        diag_error(s->d, DIAG_IO, e->at, "cannot write '%s': %s", path_join(s->tmp, in.path, path),
                   error_text(s->tmp, f->to.error));
}
