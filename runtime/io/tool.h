/* tool: another program that draws from files that CDL chose. It runs in its own folder, without output,
   with a few harmless environment variables, and cannot start a shell or any other process. */
#ifndef CDL_TOOL_H
#define CDL_TOOL_H
#include <stdbool.h>
#include <stddef.h>
#include "confine.h"

/* All names that it sees; the name of the folder is followed by numbers. */
#define TOOL_FOLDER  ".cdl-plot."
#define TOOL_DATA    "data.csv"
#define TOOL_SCRIPT  "script.gp"
#define TOOL_PICTURE "picture"

typedef struct tool_job {
    char *const *argv;  /* found by $PATH */
    const char *script; /* of len bytes, for TOOL_SCRIPT */
    size_t len;
    const char *data;      /* an existing file, which it finds as TOOL_DATA */
    const char *picture;   /* where TOOL_PICTURE goes */
    struct budget *budget; /* whose disk it may fill, and whose time it takes */
} tool_job;

/* What another program may do: draw, without starting a process; or compile, writing only in its folder and
   without network, as far as the system can enforce it. */
typedef enum { PROCESS_DRAWS, PROCESS_COMPILES } process_kind;
/* Runs it in the folder, without output, for at most this number of seconds. 0, ENOENT, another error, or -1:
   it failed, took longer, or the budget (may be NULL) is spent. */
int process_run(int dir, char *const *argv, process_kind kind, struct budget *b, double seconds);

/* Both files are below `in`.  0; ENOENT when the program is not installed; another error; or -1 when it
   failed. */
int tool_draw(const file_root *in, const tool_job *job);
/* Removes its folder, which a killed process may have left. */
void tool_folder_drop(int above, const char *name);
#endif
