/* budget: limits and the clock. */
#define _GNU_SOURCE
#include "budget.h"
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "whole.h"
#include "tolerances.h"

double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + NANOSECOND * (double)t.tv_nsec;
}

/* the number in a system file; 0 if there is none */
static double number_in(const char *path)
{
    char buf[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, sizeof buf - 1);
    close(fd);
    return n > 0 ? strtod(buf, NULL) : 0;
}

int64_t budget_default_memory(void)
{
    static const char *const group[] = { "/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    const double most = 64 * 1073741824.0;
    double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (!(all > 0))
        all = most;
    for (size_t k = 0; k < sizeof group / sizeof *group; k++) {
        double limit = number_in(group[k]);
        if (limit > 0 && limit < all)
            all = limit;
    }
    return whole_clamp(0.75 * all, 0, (int64_t)most);
}

bool budget_bytes(const char *s, int64_t *out)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*s) && *s != '.')
        return false;
    double x = strtod(s, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        x = ldexp(x, 10 * (int)(unit - units + 1));
        end++;
        if (!strcmp(end, "iB") || !strcmp(end, "B"))
            end += strlen(end);
    }
    if (*end || !(x >= 1) || x > 9e18)
        return false;
    *out = whole_clamp(x, 1, INT64_MAX);
    return true;
}

/* notes an interrupt or the end of the time; a second interrupt leaves no more time */
static void look(budget *b, double now)
{
    int n = b->interrupted ? b->interrupted(b->ud) : 0;
    if (n > b->seen) {
        b->until = b->seen ? now : now + b->grace;
        b->seen = n;
        b->stopping = SPENT_INTERRUPTED;
    } else if (!b->stopping && now - b->begin > b->time) {
        b->until = now + b->grace;
        b->stopping = SPENT_TIME;
    }
}

bool budget_stopping(budget *b)
{
    look(b, clock_seconds());
    return b->stopping != SPENT_NOTHING;
}

bool budget_cuts(budget *b)
{
    return b && !b->held && budget_stopping(b) && clock_seconds() >= b->until;
}

bool budget_over(budget *b)
{
    double now = clock_seconds();
    b->ticks = 0;
    if (b->held)
        return false;
    look(b, now);
    if (!b->stopping || now < b->until)
        return false;
    b->why = b->stopping;
    return true;
}

void budget_wind_up(budget *b)
{
    double now = clock_seconds();
    b->until = now + fmax(0.4, 0.1 * (now - b->begin));
}

bool budget_hold(budget *b, int64_t bytes)
{
    /* messages about the end need some memory */
    const int64_t reserve = b->held ? 4 << 20 : 0;
    if (bytes > 0 && bytes > b->memory + reserve - b->memory_held) {
        b->why = SPENT_MEMORY;
        return false;
    }
    b->memory_held += bytes;
    return true;
}

bool budget_write(budget *b, int64_t bytes)
{
    if (bytes > b->disk - b->disk_written)
        return false;
    b->disk_written += bytes;
    return true;
}
