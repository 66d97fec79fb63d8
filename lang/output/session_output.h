/* session_output: columns, blocks of rows and the tables they go to; shared by save and plot. */
#ifndef CDL_SESSION_OUTPUT_H
#define CDL_SESSION_OUTPUT_H
#include "session/session.h"

/* A column of numbers, and the array that neighbouring columns make together (p[1][1], p[1][2], … are p). */
typedef struct column {
    const char *name;
    value v;
    const double *t, *y;
    int64_t n, stride;
} column;
typedef struct columns {
    session *s;
    const ast *at;
    const char *name; /* of the current expression */
    bool alone;       /* it is the only one: its table needs no name before those of its columns */
    vec(column) list;
    vec(rows_array) arrays;
    int32_t grid[2]; /* rows are nodes in the plane, or 0 */
    bool bad;
} columns;

/* A block of rows: what a point gives to the table of a statement. */
#define OBSTACLE "obstacle" /* the column of a backdrop; those of further obstacles end in ' */

typedef struct block {
    const char *path, *shown; /* files, in the output folder */
    vec(const char *) names, labels;
    vec(rows_array) arrays;
    int32_t grid[2];
    size_t ncol, behind; /* columns; plot: those at the end that are a backdrop */
    bool series;
    int64_t rows;
    curve of; /* plot: rows that are a curve of their own; title NULL: none */
    const char *title, *log, *by, *style;
    number_list marks, shades;
    int32_t surface;
    text data;
} block;

const ast *block_of(const ast *e); /* { … } */
/* of the block; V_ERROR when it is absent or was reported */
value key_value(session *s, const ast *e, const char *name);
const char *key_text(session *s, const ast *e, const char *name); /* NULL when it is absent */
const char *output_path(session *s, const ast *e, const char *ending);
void column_read(columns *c, const ast *e);
double column_at(const column *x, int64_t k);
double column_at_time(const column *x, double t);
/* Sends the rows of a point to the table of the statement: all, those at intervals of `every`, or those
   picked. The block contains the rest. False after an error. */
typedef struct rows_wanted {
    double every;
    bool number_blocks, thin;
} rows_wanted;
bool block_send(session *s, const ast *e, columns *c, const rows_wanted *w, block *b,
                void (*more)(session *s, const columns *c, block *b));
/* A file of its own for each point of an experiment: u.vtk, or u.3.vtk. */
const char *point_path(session *s, const char *path);
const char *file_ending(const char *path); /* ".svg", or "" */

/* ---- frames_vtk.c: `save p { file = "x.pvd" }` ---- */
void save_frames(session *s, const ast *e, const char *path, double every);

/* ---- session_plot.c ---- */
bool picture_kind(const char *file);
void table_draw(session *s, const table *t);
#endif
