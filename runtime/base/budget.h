/* budget: what a session may use of time, memory and disk, and whether it was interrupted.  Every arena of
   the session has access to it (through its allocator), so code with an arena can count work with
   arena_tick; when the budget is spent, the arena jumps to the handler of its owner, as if memory had run
   out. */
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
    spent stopping; /* why work must stop in order; after `until` it is cut off */
    double until;
    double grace; /* seconds for the current work to stop in order */
    spent why;    /* of the last jump */
    int64_t ticks;
    span at;                 /* what is being evaluated, for messages */
    struct outfile *writing; /* files being written, the last one first: see write.h */
} budget;

/* What error_text calls a spent disk budget: an errno that no system has. */
enum { ERROR_DISK_BUDGET = 32000 };

double clock_seconds(void); /* of the monotonic clock */
/* Three quarters of the memory that this machine, or the group of processes, has; at most 64 GB. */
int64_t budget_default_memory(void);
/* "1e9", "500M", "4G", "4GiB": bytes; false when it is none of them or not positive. */
bool budget_bytes(const char *s, int64_t *out);

/* Whether work must stop in order: interrupted, or out of time. Call it from time to time. */
bool budget_stopping(budget *b);
/* The same for loops whose resources a jump would lose: they end as if they had failed. NULL is allowed. */
bool budget_cuts(budget *b);
/* The remaining work after an orderly stop (writing partial results) may take a tenth of the time used. */
void budget_wind_up(budget *b);
/* As budget_stopping, and the time for an orderly stop is over. */
bool budget_over(budget *b);
/* Counts bytes before they are allocated or written; false: they exceed the budget. */
bool budget_hold(budget *b, int64_t bytes);
bool budget_write(budget *b, int64_t bytes);
#endif
