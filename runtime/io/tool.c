/* tool: runs gnuplot with access only to its script and its numbers. */
#define _GNU_SOURCE
#include "tool.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <linux/audit.h>
#include <linux/filter.h>
#if defined __has_include
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif
#endif
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/budget.h"

extern char **environ;

/* ---- the process ---- */

#if defined __x86_64__
#define TOOL_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define TOOL_ARCH AUDIT_ARCH_AARCH64
#endif

/* the head of a filter: calls of this machine alone, and their number; on x86-64 no other numbering of them
 */
#ifdef __x86_64__
#define TOOL_OTHER_NUMBERS                                   \
    , BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#else
#define TOOL_OTHER_NUMBERS
#endif
#define TOOL_CALLS                                                           \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)), \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TOOL_ARCH, 1, 0),                \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),                 \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) TOOL_OTHER_NUMBERS

/* A script cannot name a command. As a second barrier the system refuses processes: clone may create only
   threads, and clone3, whose arguments a filter cannot see, reports that it does not exist. */
static void forbid_processes(void)
{
#ifdef TOOL_ARCH
    static const struct sock_filter rules[] = {
        TOOL_CALLS,
#ifdef __x86_64__
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fork, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_vfork, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#endif
#ifdef __NR_clone3
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = { sizeof rules / sizeof *rules, (struct sock_filter *)rules };
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
#endif
}

/* variables needed to find programs, fonts and languages; none from which gnuplot reads commands */
static bool harmless(const char *variable)
{
    static const char *const kept[] = {
        "PATH=", "HOME=",       "LANG=",     "LC_",           "TMPDIR=",         "FONTCONFIG_",
        "XDG_",  "GDFONTPATH=", "LANGUAGE=", "ASAN_OPTIONS=", "LD_LIBRARY_PATH="
    };
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        if (!strncmp(variable, kept[k], strlen(kept[k])))
            return true;
    return false;
}

enum { VARIABLES = 64, NOT_THERE = 127 };

/* Restricts writing to this folder; does nothing if the kernel has no Landlock. */
static void write_only_in(int dir)
{
#if defined __NR_landlock_create_ruleset && defined LANDLOCK_ACCESS_FS_WRITE_FILE
    const uint64_t writes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                            LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
    const struct landlock_ruleset_attr all = { .handled_access_fs = writes };
    const struct landlock_path_beneath_attr here = { .allowed_access = writes, .parent_fd = dir };
    int rules = (int)syscall(__NR_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0)
        return;
    if (!syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &here, 0))
        syscall(__NR_landlock_restrict_self, rules, 0);
    close(rules);
#else
    (void)dir;
#endif
}

/* no network, no access to other processes */
static void forbid_network(void)
{
#ifdef TOOL_ARCH
    static const struct sock_filter rules[] = {
        TOOL_CALLS,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = { sizeof rules / sizeof *rules, (struct sock_filter *)rules };
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
#endif
}

/* no file may grow beyond what is left of the disk budget */
static void disk_bound(const budget *b)
{
    const int64_t left = b ? b->disk - b->disk_written : INT64_C(1) << 30;
    const struct rlimit most = { (rlim_t)left, (rlim_t)left }, none = { 0, 0 };
    const struct sigaction deadly = { .sa_handler = SIG_DFL };
    sigaction(SIGXFSZ, &deadly, NULL);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &most);
}

static void compile_bound(int dir)
{
    const struct rlimit seconds = { 120, 120 };
    setrlimit(RLIMIT_CPU, &seconds);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return;
    write_only_in(dir);
    forbid_network();
}

static void become(int dir, char *const *argv, process_kind kind, const budget *b, char **env)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || fchdir(dir))
        _exit(1);
    for (int k = 0; k < 3; k++)
        dup2(null, k);
    disk_bound(b);
    if (kind == PROCESS_COMPILES)
        compile_bound(dir);
    else
        forbid_processes();
    execvpe(argv[0], argv, env);
    _exit(NOT_THERE);
}

/* Waits for the process, and ends it on an interrupt or when time is up. */
static bool process_wait(pid_t pid, budget *b, double seconds, int *status)
{
    const long longest = 20000000;
    const double begin = clock_seconds();
    struct timespec pause = { 0, 500000 };
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid)
            return true;
        if (ended < 0 && errno != EINTR)
            return false;
        if ((b && budget_stopping(b)) || clock_seconds() - begin > seconds)
            kill(pid, SIGKILL);
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < longest)
            pause.tv_nsec *= 2;
    }
}

int process_run(int dir, char *const *argv, process_kind kind, budget *b, double seconds)
{
    char *env[VARIABLES + 1];
    int n = 0, status;
    char here[] = "TMPDIR=."; /* a compiler has files of its own */
    bool own = kind == PROCESS_COMPILES;
    if (own)
        env[n++] = here;
    for (char **e = environ; *e && n < VARIABLES; e++)
        if (harmless(*e) && !(own && !strncmp(*e, here, strlen("TMPDIR="))))
            env[n++] = *e;
    env[n] = NULL;
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        become(dir, argv, kind, b, env);
    if (!process_wait(pid, b, seconds, &status))
        return -1;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        return ERROR_DISK_BUDGET;
    if (!WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == NOT_THERE ? ENOENT : -1;
}

/* ---- its folder ---- */

typedef struct workroom {
    int above, dir; /* the picture's folder, and the one in it */
    char name[64];
} workroom;

static int room_make(workroom *r, int above)
{
    r->above = above;
    r->dir = -1;
    for (unsigned k = 0; k < 1000; k++) {
        snprintf(r->name, sizeof r->name, TOOL_FOLDER "%ld-%u", (long)getpid(), k);
        if (!mkdirat(above, r->name, 0700)) {
            r->dir = openat(above, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (r->dir >= 0)
                flock(r->dir, LOCK_EX | LOCK_NB); /* like a file being written: it is in use */
            return r->dir < 0 ? errno : 0;
        }
        if (errno != EEXIST)
            return errno;
    }
    return EEXIST;
}

void tool_folder_drop(int above, const char *name)
{
    static const char *const files[] = { TOOL_DATA, TOOL_SCRIPT, TOOL_PICTURE };
    int dir = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        unlinkat(dir, files[k], 0);
    close(dir);
    unlinkat(above, name, AT_REMOVEDIR);
}

static void room_clear(workroom *r)
{
    if (r->dir < 0)
        return;
    tool_folder_drop(r->above, r->name);
    close(r->dir);
}

static int script_write(const workroom *r, const tool_job *job)
{
    const char *p = job->script;
    size_t n = job->len;
    if (!budget_write(job->budget, (int64_t)n))
        return ERROR_DISK_BUDGET;
    int error = 0, fd = openat(r->dir, TOOL_SCRIPT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    while (n && !error) {
        ssize_t k = write(fd, p, n);
        if (k >= 0) {
            p += k;
            n -= (size_t)k;
        } else if (errno != EINTR)
            error = errno;
    }
    if (close(fd) && !error)
        error = errno;
    return error;
}

/* a second name of the file with the numbers; where a file can have one name only, a link */
static int data_bring(const workroom *r, const file_root *in, const char *path)
{
    file_place at;
    char up[NAME_MAX + 8];
    int error = place_find(in, path, false, &at);
    if (error)
        return error;
    snprintf(up, sizeof up, "../%s", at.name);
    if (linkat(at.dir, at.name, r->dir, TOOL_DATA, 0) && symlinkat(up, r->dir, TOOL_DATA))
        error = errno;
    place_close(&at);
    return error;
}

/* whether a picture is complete: gnuplot does not notice a full disk */
static bool picture_whole(const workroom *r, off_t size)
{
    static const char *const ends[] = { "</svg>", "IEND", "%%EOF" };
    char last[32];
    int fd = openat(r->dir, TOOL_PICTURE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    off_t from = size > (off_t)sizeof last ? size - (off_t)sizeof last : 0;
    ssize_t n = pread(fd, last, sizeof last, from);
    close(fd);
    for (size_t k = 0; n > 0 && k < sizeof ends / sizeof *ends; k++)
        for (ssize_t i = 0, m = (ssize_t)strlen(ends[k]); i + m <= n; i++)
            if (!memcmp(last + i, ends[k], (size_t)m))
                return true;
    return false;
}

static int picture_take(const workroom *r, const file_place *to, budget *b)
{
    struct stat st;
    if (fstatat(r->dir, TOOL_PICTURE, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || !st.st_size)
        return -1;
    if (!picture_whole(r, st.st_size))
        return ENOSPC;
    if (!budget_write(b, (int64_t)st.st_size))
        return ERROR_DISK_BUDGET;
    return renameat(r->dir, TOOL_PICTURE, to->dir, to->name) ? errno : 0;
}

int tool_draw(const file_root *in, const tool_job *job)
{
    file_place to;
    struct stat st;
    workroom room = { -1, -1, "" };
    int error = place_find(in, job->picture, true, &to);
    if (error)
        return error;
    error = place_stat(in, &to, &st);
    if (!error && !S_ISREG(st.st_mode))
        error = ERROR_SPECIAL;
    if (!error || error == ENOENT)
        error = room_make(&room, to.dir);
    if (!error)
        error = script_write(&room, job);
    if (!error)
        error = data_bring(&room, in, job->data);
    if (!error)
        error = process_run(room.dir, job->argv, PROCESS_DRAWS, job->budget, INFINITY);
    if (!error)
        error = picture_take(&room, &to, job->budget);
    room_clear(&room);
    place_close(&to);
    return error;
}
