/* session_problems: contact problems of steps as files, where the option `problems` names some. */
#include <stdlib.h>
#include <string.h>
#include "io/problems.h"
#include "io/write.h"
#include "session.h"

struct problem_files {
    session *s;
    const char *model, *path; /* as the option has it */
    problem_watch watch;
    int64_t every;
    int64_t seen, written, refused; /* of this run */
    int error;                      /* the first one, of the file */
    const char *file;
};

/* ---- the option ---- */
/* the ending of a name that may be taken, or NULL */
static const char *ending_of(const char *path)
{
    static const char *const endings[] = { ".hdf5", ".h5", ".txt" };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    for (size_t k = 0; dot && dot > name && k < sizeof endings / sizeof *endings; k++)
        if (!strcmp(dot, endings[k]))
            return dot;
    return NULL;
}

bool problems_named(const char *path)
{
    return !*path || ending_of(path);
}

/* ---- files ---- */
/* x-000012.hdf5 for the twelfth of the session; of an experiment x-NAME-POINT-000012.hdf5 */
static const char *next_file(problem_files *f, arena *a)
{
    session *s = f->s;
    problem_count *count = &s->problems;
    const ast *experiment = s->now.experiment;
    const char *end = ending_of(f->path);
    int64_t *n = experiment ? &count->inside : &count->outside;
    if (experiment && (count->experiment != experiment || count->point != s->now.point)) {
        count->experiment = experiment;
        count->point = s->now.point;
        count->inside = 0;
    }
    text name = { .a = a };
    text_putn(&name, f->path, (size_t)(end - f->path));
    if (experiment)
        text_printf(&name, "-%s-%lld", experiment->name, (long long)s->now.point + 1);
    text_printf(&name, "-%06lld%s", (long long)++*n, end);
    return name.at;
}

static void problem_see(void *ud, const step_problem *x, arena *scratch)
{
    problem_files *f = ud;
    session *s = f->s;
    text out = { .a = scratch };
    bool lines = !strcmp(ending_of(f->path), ".txt");
    if (f->seen++ % f->every || f->error)
        return;
    if (!(lines ? problem_lines(x, &out) : problem_fclib(x, f->model, &out, scratch))) {
        f->refused++;
        return;
    }
    const char *name = next_file(f, scratch);
    file_root in = session_folder(s);
    f->error = outfile_whole(scratch, &in, name, out.at, out.n);
    if (f->error)
        f->file = arena_strdup(s->a, session_path(s, name));
    else
        f->written++;
}

/* ---- a run ---- */
problem_files *problems_begin(session *s, const run *r, run_options *o)
{
    const char *path = s->option[OPTION_PROBLEMS];
    if (!*path)
        return NULL;
    problem_files *f = arena_make(s->tmp, problem_files);
    *f = (problem_files){ .s = s, .model = r->of->p->model, .path = path };
    f->every = strtoll(s->option[OPTION_PROBLEMS_EVERY], NULL, 10);
    f->watch = (problem_watch){ problem_see, f };
    o->watch = &f->watch;
    o->only_general = true; /* short ways pose no problem; the numbers are the same */
    file_root in = session_folder(s);
    parts_clean(&in, path);
    return f;
}

void problems_end(const problem_files *f, const ast *e)
{
    session *s = f ? f->s : NULL;
    if (!f)
        return;
    if (f->error)
        diag_error(s->d, DIAG_IO, e->at, "cannot write '%s': %s", f->file, error_text(s->tmp, f->error));
    if (f->refused)
        session_note(s,
                     "%lld contact problems of '%s' have no form in these files: bounds of friction that do "
                     "not follow from the normal force, or more than two directions of slip",
                     (long long)f->refused, f->model);
    if (f->seen == 0)
        session_note(s, "no contact problem of '%s' was written: the run solved none step by step", f->model);
    else
        session_note(s, "%lld of %lld contact problems of '%s' are in %s", (long long)f->written,
                     (long long)f->seen, f->model, session_path(s, f->path));
}
