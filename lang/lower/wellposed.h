/* wellposed: what theory says about the motion of a model: whether it is unique, and where this is not
   known. */
#ifndef CDL_WELLPOSED_H
#define CDL_WELLPOSED_H
#include "model/model.h"

/* a switch of pieces; a place without power series; what is known; a remark; what is not known */
typedef enum { FOUND_SWITCH, FOUND_EXCEPT, FOUND_KNOWN, FOUND_NOTE, FOUND_UNKNOWN } found_kind;
typedef struct found {
    found_kind kind;
    span at;
    const char *text;
} found;

typedef struct posed {
    const model *m;
    const program *p;
    arena *a;
    double *param, *q, *v; /* the defaults, the start */
    const double *base;    /* bases of rotations there */
    vec(found) list;
    /* some piece has no power series where it begins; and it may be steeper than any line */
    bool flat, rough;
} posed;

void found_add(posed *w, found_kind kind, span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A formula, cut where it grows long. */
const char *posed_formula(posed *w, const index_names *over, ir_ref f);
/* Value at the defaults and the start; `speed` is that of slip. */
double posed_value(posed *w, const index_names *over, ir_ref f, double speed);
void posed_data(posed *w); /* wellposed_data.c: switches, exceptions, flat, rough */

/* One line for the model and one for each thing found; or an object of JSON on a line. */
void model_wellposed(text *out, const model *m, const program *p, bool json);
#endif
