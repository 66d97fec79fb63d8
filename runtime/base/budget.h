/* budget: what a session may use of time, memory and disk, and whether it was interrupted.  Every arena of
   the session knows it (through its allocator), so whoever has an arena can count work with arena_tick; when
   the budget is spent the arena jumps to the handler of its owner, as it does without memory. */
#ifndef CDL_BUDGET_H
#define CDL_BUDGET_H
#include <stdbool.h>
#include <stdint.h>
#include "diag.h"

typedef enum { SPENT_NOTHING, SPENT_INTERRUPTED, SPENT_TIME, SPENT_MEMORY, SPENT_DISK } spent;

typedef struct budget {
    /* limits: seconds (INFINITY: none) and bytes */
    double time;
    int64_t memory, disk;
    /* used so far */
    double begin; /* clock at the start */
    int64_t memory_held, disk_written;
    /* interrupts so far, 0: none; may be NULL */
    int (*interrupted)(void *ud);
    void *ud;
    int seen;       /* interrupts that were answered or are being answered */
    int held;       /* > 0: nothing jumps, neither time nor interrupts */
    spent stopping; /* why work has to end in order; it is cut off from `until` on */
    double until;
    double grace; /* seconds that work at hand has to end in order */
    spent why;    /* of the last jump */
    int64_t ticks;
    span at;                 /* what is being evaluated, for messages */
    struct outfile *writing; /* files on their way, the last one first: see write.h */
} budget;

/* What error_text calls a spent disk budget: an errno that no system has. */
enum { ERROR_DISK_BUDGET = 32000 };

double clock_seconds(void); /* of the monotonic clock */
/* Three quarters of the memory that this machine, or the group of processes, has; at most 64 GB. */
int64_t budget_default_memory(void);
/* "1e9", "500M", "4G", "4GiB": bytes; false when it is none of them or not positive. */
bool budget_bytes(const char *s, int64_t *out);

/* Whether work has to end in order: interrupted, or out of time.  To be called now and then. */
bool budget_stopping(budget *b);
/* The same for loops that hold what a jump would lose: they end as if they had failed.  NULL is fine. */
bool budget_cuts(budget *b);
/* What is left to do after an end in order (writing what was computed) may take a tenth of the time used. */
void budget_wind_up(budget *b);
/* As budget_stopping, and the time to end in order is over. */
bool budget_over(budget *b);
/* Counts bytes that are about to be held or written; false: they do not fit. */
bool budget_hold(budget *b, int64_t bytes);
bool budget_write(budget *b, int64_t bytes);
#endif
