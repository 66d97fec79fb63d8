/* session_jobs: the points of an experiment, one after the other here, or several at a time in processes of
   their own; points that were finished before are read from a file. The output and files of a point are a
   report: bytes that are processed in the order of the points, so that files are the same however they were
   computed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "session.h"
#include "value/bytes.h"
#include "base/tolerances.h"

/* ---- the current experiment ---- */

typedef struct job job;
typedef struct points {
    session *s;
    const ast *e;
    const point_range *range;
    arena *a;               /* of this experiment */
    int64_t first, step, n; /* of a shard: point k is first + k*step */
    bool shard, last_here;  /* the results of the last point are needed afterwards */
    map64 kept;             /* key -> where a report starts that was found in files */
    const char **kept_at;
    size_t *kept_n;
    size_t nkept;
    bool journal;             /* points are written to a file as they are finished */
    bool full;                /* the file that could not be written */
    bool failures;            /* a point failed */
    const char *journal_path; /* in the output folder */
    uint64_t same;            /* of the key, what all points share */
    int64_t done, resumed;
    double begin, last_shown;
    bool shown;
    job *jobs;
    int njobs;
    struct report **ring;
    int64_t next, handed; /* the next to be processed, the next to be started */
} points;

typedef struct report {
    arena *a;
    text t;
} report;

static int64_t point_at(const points *w, int64_t k)
{
    return w->first + k * w->step;
}

static void progress_show(points *w, bool end)
{
    session *s = w->s;
    double t = clock_seconds(), rate = (double)(w->done - w->resumed) / (t - w->begin + NANOSECOND);
    if (!session_is(s, OPTION_PROGRESS) || !s->call.err || (!w->shown && t - w->begin < 0.5) ||
        (!end && t - w->last_shown < 0.1))
        return;
    arena_pos mark = arena_mark(s->tmp);
    text line = { .a = s->tmp };
    text_puts(&line, "\r\033[K");
    if (!end)
        text_printf(&line, "%s: %lld/%lld points, %.3g/s", w->e->name, (long long)w->done, (long long)w->n,
                    rate);
    if (!end && rate > 0)
        text_printf(&line, ", %.0f s left ", (double)(w->n - w->done) / rate);
    s->call.err(s->call.ud, line.at, line.n);
    arena_release(s->tmp, mark);
    w->last_shown = t;
    w->shown = !end;
}

static void progress_clear(points *w)
{
    if (w->shown)
        progress_show(w, true);
}

/* ---- keys: a point is the same when programs, formulas, parameters, seed and version are ---- */

static void key_run(session *s, const ast *e, text *t)
{
    scope *outer = &s->main->base;
    size_t errors = s->d->errors;
    const ast *decl = e->kid[0] ? session_model(s, e->kid[0], &outer) : NULL;
    const built *b = decl ? session_build(s, decl, outer, NULL, 0) : NULL;
    if (b)
        text_printf(t, "%016llx\n", (unsigned long long)b->p->hash);
    else if (decl)
        ast_dump(s->d, decl, false, t);
    /* reported when it is run */
    if (s->d->errors > errors) {
        s->d->errors = errors;
        s->d->list.n = 0;
    }
}

/* the values of the sweeps are not part of the shared key, so that points remain finished when values are
 * appended */
static uint64_t key_common(session *s, const ast *e)
{
    text t = { .a = s->tmp };
    text_printf(&t, "%s %s\n%s\n", cdl_version(), cdl_commit(), e->name);
    for (uint32_t k = 0; k < e->n; k++)
        ast_dump(s->d, e->kid[k]->kind == AST_SWEEP ? e->kid[k]->kid[0] : e->kid[k], false, &t);
    for (uint32_t k = 0; k < e->n; k++)
        if (e->kid[k]->kind == AST_RUN)
            key_run(s, e->kid[k], &t);
    for (size_t k = 0; k < s->main->order.n; k++) {
        const def *d = s->main->order.at[k];
        if (d->kind == DEF_FN || d->kind == DEF_LET || d->kind == DEF_PARAM)
            ast_dump(s->d, d->at, false, &t);
    }
    for (size_t k = 0; k < s->loaded.all.n; k++) {
        const module *m = s->loaded.all.at[k];
        if (m != s->main && m->file)
            ast_dump(s->d, m->file, false, &t);
    }
    for (size_t k = 0; k < s->params.n; k++)
        text_printf(&t, "%s=%s\n", s->params.at[k].name, s->params.at[k].text);
    text_printf(&t, "%lld\n", (long long)s->now.seed);
    return hash_bytes(t.at, t.n, 17);
}

/* its place counts too: random numbers and the names of files depend on it */
static uint64_t key_of(const points *w, int64_t k)
{
    arena_pos mark = arena_mark(w->s->tmp);
    text t = { .a = w->s->tmp };
    text_printf(&t, "%lld\n", (long long)k);
    w->range->tell(w->s, w->range->axes, k, &t);
    uint64_t key = hash_bytes(t.at, t.n, w->same) >> 1;
    arena_release(w->s->tmp, mark);
    return key;
}

/* ---- the file of finished points: key, length, report, check ---- */

static const char *journal_name(session *s, const ast *e)
{
    int k, n;
    const char *name = arena_printf(s->a, "%s.points", e->name);
    if (sscanf(s->option[OPTION_SHARD], "%d/%d", &k, &n) == 2)
        name = arena_printf(s->a, "%s.%d-of-%d.points", e->name, k, n);
    return name;
}

static void kept_add(points *w, uint64_t key, const char *p, size_t n)
{
    uint64_t *at = map64_put(&w->kept, key);
    if (!*at) {
        if ((w->nkept & (w->nkept + 1)) == 0) { /* room doubles */
            w->kept_at = arena_grow(w->a, w->kept_at, w->nkept * sizeof *w->kept_at,
                                    (2 * w->nkept + 2) * sizeof *w->kept_at);
            w->kept_n = arena_grow(w->a, w->kept_n, w->nkept * sizeof *w->kept_n,
                                   (2 * w->nkept + 2) * sizeof *w->kept_n);
        }
        *at = ++w->nkept;
    }
    w->kept_at[*at - 1] = p;
    w->kept_n[*at - 1] = n;
}

/* an incomplete entry is skipped */
static size_t journal_read(points *w, const file_root *in, const char *name, bool failed_too)
{
    size_t n, good = 0;
    char *all = NULL;
    if (file_whole(w->a, in, name, SIZE_MAX, &all, &n))
        all = NULL;
    byte_reader r = { all, all ? all + n : NULL };
    uint64_t key, check, x[6];
    const char *p;
    size_t len;
    while (all && get_u64(&r, &key) && get_bytes(&r, &p, &len) && get_u64(&r, &check) &&
           check == hash_bytes(p, len, key)) {
        arena_tick(w->a, (int64_t)len);
        good = (size_t)(r.p - all);
        if (report_counts(p, len, x) && !x[5] && (failed_too || !x[4]))
            kept_add(w, key, p, len);
    }
    return good;
}

/* without it later points could not be kept, so nothing more is run */
static void journal_failed(points *w, int error)
{
    session *s = w->s;
    diag_error(s->d, DIAG_IO, w->e->name_at, "cannot write '%s': %s", session_path(s, w->journal_path),
               error_text(s->tmp, error));
    session_flush(s);
    w->full = true;
}

/* If the folder is not writable, points are run without a file of points; a shard consists only of this
   file. */
static void journal_open(points *w, bool go_on, size_t good)
{
    int error;
    file_root out = session_folder(w->s);
    if (!go_on)
        place_unlink(&out, w->journal_path);
    int fd = place_open(&out, w->journal_path, O_WRONLY | O_CREAT, &error);
    if (fd >= 0 && go_on && ftruncate(fd, (off_t)good))
        error = errno;
    if (fd >= 0)
        close(fd);
    w->journal = !error;
    if (error && (w->shard || (error != EACCES && error != EROFS && error != EPERM)))
        journal_failed(w, error);
}

/* opened for each point: it is not held while memory is allocated */
static int journal_append(budget *b, const file_root *out, const char *name, const char *p, size_t n)
{
    if (!budget_write(b, (int64_t)n))
        return ERROR_DISK_BUDGET;
    int error, fd = place_open(out, name, O_WRONLY | O_APPEND, &error);
    while (!error && n) {
        ssize_t m = write(fd, p, n);
        if (m >= 0) {
            p += m;
            n -= (size_t)m;
        } else if (errno != EINTR)
            error = errno;
    }
    if (fd >= 0)
        close(fd);
    return error;
}

static void journal_add(points *w, int64_t k, const text *t)
{
    uint64_t key = key_of(w, k), x[6];
    if (!w->journal || !report_counts(t->at, t->n, x) || x[5])
        return;
    arena_pos mark = arena_mark(w->s->tmp);
    text b = { .a = w->s->tmp };
    put_u64(&b, key);
    put_bytes(&b, t->at, t->n);
    put_u64(&b, hash_bytes(t->at, t->n, key));
    file_root out = session_folder(w->s);
    int error = journal_append(&w->s->budget, &out, w->journal_path, b.at, b.n);
    arena_release(w->s->tmp, mark);
    w->failures |= x[4] != 0;
    w->journal = !error;
    if (error)
        journal_failed(w, error);
}

/* files NAME.k-of-n.points in a folder */
static void shards_read_in(points *w, const char *path)
{
    size_t n = strlen(w->e->name);
    vec(const char *) names = { 0 };
    file_root in = { path, session_is(w->s, OPTION_ALLOW_OUTSIDE) };
    DIR *d = opendir(*path ? path : ".");
    const struct dirent *x;
    char found[64][256];
    for (bool more = d != NULL; more;) { /* in portions, so that nothing is allocated while it is open */
        int k = 0, a, b, len;
        while (k < 64 && (x = readdir(d))) {
            if (strncmp(x->d_name, w->e->name, n) || x->d_name[n] != '.')
                continue;
            len = 0;
            if (sscanf(x->d_name + n, ".%d-of-%d.points%n", &a, &b, &len) < 2 || !len ||
                x->d_name[n + (size_t)len])
                continue;
            snprintf(found[k++], sizeof *found, "%s", x->d_name);
        }
        more = k == 64;
        for (int i = 0; i < k; i++)
            *vec_push(w->a, &names) = arena_strdup(w->a, found[i]);
    }
    if (d)
        closedir(d);
    for (size_t k = 0; k < names.n; k++)
        journal_read(w, &in, names.at[k], true);
}

/* those in the output folder, and those in other folders */
static void shards_read(points *w)
{
    shards_read_in(w, w->s->option[OPTION_OUTPUT]);
    for (const char *p = w->s->option[OPTION_SHARDS], *end; *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, "\n");
        if (end > p)
            shards_read_in(w, arena_strndup(w->a, p, (size_t)(end - p)));
    }
}

static const uint64_t *kept_find(const points *w, int64_t k)
{
    return map64_get(&w->kept, key_of(w, k));
}

static bool shards_whole(points *w)
{
    session *s = w->s;
    int64_t missing = 0;
    text t = { .a = s->tmp };
    for (int64_t k = 0; k < w->n; k++) {
        if (kept_find(w, k))
            continue;
        if (missing++ < 8)
            text_printf(&t, "%s%lld", missing > 1 ? ", " : "", (long long)k + 1);
    }
    if (!missing)
        return true;
    diag *d = diag_error(
        s->d, DIAG_IO, w->e->name_at, "%lld of %lld points of '%s' are in no shard in '%s': %s%s",
        (long long)missing, (long long)w->n, w->e->name,
        *s->option[OPTION_OUTPUT] ? s->option[OPTION_OUTPUT] : ".", t.at, missing > 8 ? ", ..." : "");
    diag_hint(s->d, d, "run the shards that are missing with --shard=k/n, and this file and version");
    return false;
}

/* ---- a point ---- */

/* runs it into a report: counts start from nothing, and come back with the report */
static void point_into(points *w, int64_t k, text *to, bool crashed)
{
    session *s = w->s;
    size_t met = s->tally.met, missed = s->tally.missed, skipped = s->tally.skipped,
           records = s->tally.records.n;
    cdl_status worst = s->tally.worst;
    __typeof__(s->tally.programs) programs = s->tally.programs;
    s->tally.met = s->tally.missed = s->tally.skipped = 0;
    s->tally.worst = CDL_OK;
    memset(&s->tally.programs, 0, sizeof s->tally.programs);
    s->now.report = to;
    s->now.point = k;
    s->now.draw_name = "";
    s->now.drawn = 0;
    w->range->run(s, w->e, w->range->axes, k, crashed);
    report_counts_put(s, s->interrupted);
    record_flush(s);
    for (size_t i = records; i < s->tally.records.n; i++) {
        text_putc(to, 'J');
        put_bytes(to, s->tally.records.at[i], strlen(s->tally.records.at[i]));
    }
    for (size_t i = 0; i < s->tally.programs.n; i++) {
        text p = { .a = to->a };
        put_bytes(&p, s->tally.programs.at[i].model, strlen(s->tally.programs.at[i].model));
        put_u64(&p, s->tally.programs.at[i].hash);
        text_putc(to, 'P');
        put_bytes(to, p.at, p.n);
    }
    s->now.report = NULL;
    s->tally.met = met;
    s->tally.missed = missed;
    s->tally.skipped = skipped;
    s->tally.worst = worst;
    s->tally.records.n = records;
    s->tally.programs = programs;
}

static report *report_new(points *w)
{
    arena *a = session_arena(w->s);
    report *r = arena_make(a, report);
    *r = (report){ .a = a, .t.a = a };
    return r;
}

static void point_finish(points *w, const char *p, size_t n)
{
    progress_clear(w);
    report_take(w->s, w->e, p, n, TAKE_ALL, w->shard);
    session_flush(w->s);
}

static void point_here(points *w, int64_t k)
{
    report *r = report_new(w);
    progress_clear(w);
    point_into(w, k, &r->t, false);
    journal_add(w, k, &r->t);
    point_finish(w, r->t.at, r->t.n);
    session_arena_free(w->s, r->a);
}

static bool stopped(const points *w)
{
    const session *s = w->s;
    return s->interrupted || w->full || tables_failed(s) ||
           (s->tally.worst == CDL_MODEL && !session_is(s, OPTION_KEEP_GOING));
}

static bool is_kept(const points *w, int64_t k)
{
    return kept_find(w, k) && !(w->last_here && k == w->range->points - 1);
}

static void point_kept(points *w, int64_t k)
{
    size_t at = (size_t)*kept_find(w, k) - 1;
    report_take(w->s, w->e, w->kept_at[at], w->kept_n[at], TAKE_ERRORS, w->shard);
    point_finish(w, w->kept_at[at], w->kept_n[at]);
}

static void points_here(points *w)
{
    for (int64_t i = 0; i < w->n && !stopped(w); i++) {
        int64_t k = point_at(w, i);
        if (is_kept(w, k)) {
            point_kept(w, k);
            w->resumed++;
        } else
            point_here(w, k);
        w->done++;
        progress_show(w, false);
    }
    progress_clear(w);
}

/* ---- several processes ---- */

struct job {
    pid_t pid; /* 0: idle */
    int fd;
    int64_t at, end; /* indices of points: the next to come, after the last */
    report *in;      /* received bytes of an incomplete report */
};
enum { RING = 1 << 14 };

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        } else if (k < 0 && errno != EINTR)
            return false;
    }
    return true;
}

/* the child: never comes back.  It holds no file of the parent's, and ends soon after it. */
static void worker(points *w, int fd, int64_t from, int64_t to)
{
    session *s = w->s;
    if (setjmp(s->oom))
        _exit(s->interrupted ? 0 : 7);
    s->now.worker = true;
    /* its share of the remaining memory */
    s->jobs = NULL;
    s->budget.held = 0;
    s->budget.memory = s->budget.memory_held + (s->budget.memory - s->budget.memory_held) / w->njobs;
    s->budget.disk = s->budget.disk_written + (s->budget.disk - s->budget.disk_written) / w->njobs;
    for (int j = 0; j < w->njobs; j++)
        if (w->jobs[j].pid > 0)
            close(w->jobs[j].fd);
    for (table *t = s->tables; t; t = t->next)
        outfile_leave(t->file);
    bool heard = true;
    for (int64_t i = from; i < to && heard && !s->interrupted; i++) {
        if (is_kept(w, point_at(w, i)))
            continue;
        report *r = report_new(w);
        point_into(w, point_at(w, i), &r->t, false);
        uint64_t n = r->t.n;
        heard = write_all(fd, (const char *)&n, sizeof n) && write_all(fd, r->t.at, r->t.n);
        session_arena_free(w->s, r->a);
    }
    close(fd);
    _exit(0);
}

static bool job_start(points *w, job *j, int64_t from, int64_t to)
{
    int fd[2];
    while (from < to && is_kept(w, point_at(w, from)))
        from++;
    *j = (job){ .at = from, .end = to, .in = j->in };
    if (from == to)
        return true;
    if (!j->in)
        j->in = report_new(w);
    j->in->t.n = 0;
    if (pipe2(fd, O_CLOEXEC))
        return false;
    j->pid = fork();
    if (j->pid == 0) {
        close(fd[0]);
        worker(w, fd[1], from, to);
    }
    close(fd[1]);
    j->fd = fd[0];
    if (j->pid > 0)
        return true;
    close(fd[0]);
    j->pid = 0;
    return false;
}

static void ring_put(points *w, int64_t i, const char *p, size_t n)
{
    report *r = report_new(w);
    text_putn(&r->t, p, n);
    w->ring[i % RING] = r;
    w->done++;
    journal_add(w, point_at(w, i), &r->t);
    progress_clear(w);
    report_take(w->s, w->e, p, n, TAKE_ERRORS, w->shard);
}

/* processes all reports that are next in order */
static void ring_take(points *w, bool gaps)
{
    for (; w->next < w->handed; w->next++) {
        int64_t k = point_at(w, w->next);
        report **at = &w->ring[w->next % RING];
        if (*at) {
            point_finish(w, (*at)->t.at, (*at)->t.n);
            session_arena_free(w->s, (*at)->a);
            *at = NULL;
        } else if (is_kept(w, k)) {
            point_kept(w, k);
            w->done++;
            w->resumed++;
        } else if (!gaps)
            return;
    }
}

static void job_bytes(points *w, job *j)
{
    text *t = &j->in->t;
    size_t used = 0;
    for (uint64_t n; t->n - used >= sizeof n; used += sizeof n + (size_t)n) {
        memcpy(&n, t->at + used, sizeof n);
        if (t->n - used - sizeof n < n)
            break;
        while (is_kept(w, point_at(w, j->at)))
            j->at++;
        ring_put(w, j->at++, t->at + used + sizeof n, (size_t)n);
    }
    if (used)
        memmove(t->at, t->at + used, t->n - used);
    t->n -= used;
}

/* the point that was being run when its process ended: failed, with a message */
static void point_crashed(points *w, int64_t i, int status)
{
    session *s = w->s;
    report *r = report_new(w);
    text why = { .a = s->tmp };
    if (WIFSIGNALED(status))
        text_printf(&why, "its process was ended by signal %d", WTERMSIG(status));
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 7)
        text_puts(&why, "there was not enough memory");
    else
        text_puts(&why, "its process ended early");
    s->now.worker = true; /* printed once, from the report */
    s->now.report = &r->t;
    session_note(s, "%s, point %lld: %s", w->e->name, (long long)point_at(w, i) + 1, why.at);
    point_into(w, point_at(w, i), &r->t, true);
    s->now.worker = false;
    ring_put(w, i, r->t.at, r->t.n);
    session_arena_free(w->s, r->a);
}

static void job_ended(points *w, job *j)
{
    int status = 0;
    close(j->fd);
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    j->pid = 0;
    while (j->at < j->end && is_kept(w, point_at(w, j->at)))
        j->at++;
    if (j->at >= j->end || stopped(w))
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return; /* interrupted */
    point_crashed(w, j->at, status);
    job_start(w, j, j->at + 1, j->end);
}

static void job_read(points *w, job *j)
{
    char buf[1 << 16];
    ssize_t n = read(j->fd, buf, sizeof buf);
    if (n > 0) {
        text_putn(&j->in->t, buf, (size_t)n);
        job_bytes(w, j);
    } else if (n == 0 || errno != EINTR)
        job_ended(w, j);
}

static void jobs_feed(points *w, int64_t many)
{
    int64_t chunk = many / (8 * (int64_t)w->njobs) + 1;
    if (chunk > 64)
        chunk = 64;
    for (int k = 0; k < w->njobs && !stopped(w); k++) {
        job *j = &w->jobs[k];
        int64_t to = w->handed + chunk < many ? w->handed + chunk : many;
        if (j->pid || w->handed >= many || to - w->next > RING)
            continue;
        int64_t from = w->handed;
        w->handed = to;
        if (!job_start(w, j, from, to)) /* no more processes: done here */
            for (int64_t i = from; i < to && !stopped(w); i++) {
                report *r = report_new(w);
                bool kept = is_kept(w, point_at(w, i));
                if (!kept)
                    point_into(w, point_at(w, i), &r->t, false);
                if (!kept)
                    ring_put(w, i, r->t.at, r->t.n);
                session_arena_free(w->s, r->a);
            }
    }
}

static bool jobs_busy(const points *w)
{
    for (int k = 0; k < w->njobs; k++)
        if (w->jobs[k].pid)
            return true;
    return false;
}

static void jobs_stop(points *w, int sig)
{
    for (int k = 0; k < w->njobs; k++)
        if (w->jobs[k].pid > 0)
            kill(w->jobs[k].pid, sig);
}

void points_abandon(session *s)
{
    points *w = s->jobs;
    if (!w)
        return;
    s->jobs = NULL;
    jobs_stop(w, SIGKILL);
    for (int k = 0; k < w->njobs; k++) {
        if (w->jobs[k].pid <= 0)
            continue;
        close(w->jobs[k].fd);
        while (waitpid(w->jobs[k].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
}

static void jobs_wait(points *w)
{
    struct pollfd *f = arena_array(w->s->tmp, struct pollfd, (size_t)w->njobs);
    for (int k = 0; k < w->njobs; k++)
        f[k] = (struct pollfd){ .fd = w->jobs[k].pid ? w->jobs[k].fd : -1, .events = POLLIN };
    if (poll(f, (nfds_t)w->njobs, 200) <= 0)
        return;
    for (int k = 0; k < w->njobs; k++)
        if (f[k].fd >= 0 && f[k].revents)
            job_read(w, &w->jobs[k]);
}

static void points_jobs(points *w)
{
    session *s = w->s;
    int64_t many = w->n - (w->last_here && w->n && point_at(w, w->n - 1) == w->range->points - 1);
    double stop = INFINITY; /* when processes that have not ended are killed */
    w->jobs = arena_array(w->a, job, (size_t)w->njobs);
    w->ring = arena_array(w->a, report *, RING);
    s->jobs = w;
    s->budget.held++; /* processes end in order: the loop looks for interrupts itself */
    do {
        arena_pos mark = arena_mark(s->tmp);
        jobs_feed(w, many);
        if (jobs_busy(w))
            jobs_wait(w);
        ring_take(w, false);
        if (budget_stopping(&s->budget))
            s->interrupted = true;
        if (stopped(w) && stop == INFINITY) {
            jobs_stop(w, SIGINT);
            stop = clock_seconds() + 1;
        }
        if (clock_seconds() > stop)
            jobs_stop(w, SIGKILL);
        progress_show(w, false);
        arena_release(s->tmp, mark);
    } while (jobs_busy(w) || (w->handed < many && !stopped(w)));
    s->jobs = NULL;
    s->budget.held--;
    if (s->budget.stopping)
        budget_wind_up(&s->budget);
    ring_take(w, true);
    progress_clear(w);
    if (many < w->n && !stopped(w))
        point_here(w, point_at(w, many));
    for (int k = 0; k < w->njobs; k++)
        if (w->jobs[k].in)
            session_arena_free(w->s, w->jobs[k].in->a);
    if (stop == INFINITY || !s->interrupted)
        return;
    session_worse(s, CDL_SOLVER);
    session_note(s, "%s after %lld of %lld points; partial results are kept",
                 s->budget.stopping == SPENT_TIME ? "the time limit of --time was reached" : "interrupted",
                 (long long)w->done, (long long)w->n);
}

/* ---- all of it ---- */

static bool followed(const session *s, const ast *e)
{
    const ast *file = s->main->file;
    if (session_is(s, OPTION_INTERACTIVE))
        return true;
    for (uint32_t k = 0; k < file->n; k++)
        if (file->kid[k] == e)
            return k + 1 < file->n;
    return true;
}

static void points_prepare(points *w)
{
    session *s = w->s;
    bool merge = session_is(s, OPTION_MERGE), resume = session_is(s, OPTION_RESUME);
    int k, n;
    size_t good = 0;
    file_root out = session_folder(s);
    w->n = w->range->points;
    w->step = 1;
    w->kept.a = w->a;
    if (sscanf(s->option[OPTION_SHARD], "%d/%d", &k, &n) == 2) {
        w->shard = true;
        w->first = k - 1;
        w->step = n;
        w->n = w->range->points > w->first ? (w->range->points - w->first + n - 1) / n : 0;
    }
    w->last_here = !w->shard && followed(s, w->e);
    w->same = key_common(s, w->e);
    if (merge) {
        shards_read(w);
        return;
    }
    w->journal_path = journal_name(s, w->e);
    if (resume)
        good = journal_read(w, &out, w->journal_path, false);
    if (w->range->points > 1 || w->shard)
        journal_open(w, resume, good);
}

void points_run(session *s, const ast *e, const point_range *range)
{
    points w = { .s = s, .e = e, .range = range };
    w.a = session_arena(s);
    points_prepare(&w);
    int jobs = 1;
    sscanf(s->option[OPTION_JOBS], "%d", &jobs);
    w.njobs = w.n < jobs ? (int)w.n : jobs;
    w.begin = clock_seconds();
    s->now.points = range->points;
    if (!w.full && (!session_is(s, OPTION_MERGE) || shards_whole(&w))) {
        if (w.njobs > 1)
            points_jobs(&w);
        else
            points_here(&w);
    }
    if (w.resumed && session_is(s, OPTION_RESUME))
        session_note(s, "%s: %lld of %lld points were finished before", e->name, (long long)w.resumed,
                     (long long)w.n);
    /* failed points may be run again, without the others */
    bool whole = !stopped(&w) && !w.failures;
    file_root out = session_folder(s);
    if (w.journal && !w.shard && !session_is(s, OPTION_RESUME) && whole)
        place_unlink(&out, w.journal_path);
    session_arena_free(s, w.a);
}
