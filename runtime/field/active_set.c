/* active_set: boundary value and obstacle problems on grids, by primal-dual active sets (a semi-smooth Newton
 * method): field_line.c, field_plane.c. */
#include "base/whole.h"
#include "field.h"
#include <math.h>

enum { OPT_CELLS, OPT_TOLERANCE, OPT_CELLS2 };

static field_result *active_set_solve(field_work *w)
{
    line_options o = { .tolerance = w->o->value[OPT_TOLERANCE] };
    double cells = w->o->value[OPT_CELLS];
    o.cells = !isnan(cells) ? whole_clamp(cells, 4, 10000000) : w->fp->ncoord == 1 ? 1000 : 128;
    if (!isnan(w->o->value[OPT_CELLS2]))
        o.cells2 = whole_clamp(w->o->value[OPT_CELLS2], 4, 8192);
    field_result *r = w->fp->ncoord == 1 ? line_solve(w, &o) : plane_solve(w, &o);
    if (r)
        field_error(w, &o, r);
    return r;
}

static void active_set_run(const program *p, const run_options *o, results *r)
{
    field_run(p, o, r, active_set_solve);
}

static const char *active_set_refuse(const program *p, span *at)
{
    return field_refuse(p, at, "active_set solves fields");
}

static const backend_option active_set_options[] = {
    { "cells", OPT_INT, NAN, 4, 1e7, NULL,
      "number of cells in each direction; default 1000 on a line, 128 in the plane", KIND_ANY },
    { "tolerance", OPT_REAL, 1e-10, 1e-15, 1e-2, NULL, "relative change at which Newton's method stops",
      KIND_ANY },
    { "cells2", OPT_INT, NAN, 4, 8192, NULL,
      "number of cells in the second coordinate of a rectangle; default as in the first", KIND_PLANE },
};
const backend backend_active_set = {
    .name = "active_set",
    .doc = "fields on grids, obstacles by primal-dual active sets",
    .option = active_set_options,
    .noption = sizeof active_set_options / sizeof *active_set_options,
    .built = true,
    .refuse = active_set_refuse,
    .run = active_set_run,
};
