/* equal: a contact problem with each row in a unit of its own, so that comparisons of reactions do not depend
   on the units in which gaps and slips are written. */
#ifndef CDL_EQUAL_H
#define CDL_EQUAL_H
#include "contact.h"
#include "impulses.h"

/* [emit c */
typedef struct equal_units {
    contact_problem *p;
    double *unit; /* of the reaction in each row */
    void (*law)(void *ud, int contact, double speed, double *mu, double *radius); /* in units of the model */
    void *ud;
} equal_units;

/* Multiplies rows by powers of two (power_unit), which causes no rounding, until the diagonal entries of W
   are of similar size. All tangential rows of a contact have one unit. `unit` has room for the rows of p.
   Laws of p are in its new units until equal_undo, which leaves W as it is. */
void equal_make(equal_units *e, contact_problem *p, double *unit);
void equal_undo(equal_units *e);
/* emit c] */

/* The same for a list whose contacts have their blocks: scales rows and blocks, once. all: otherwise the
   largest row keeps its unit, and so do rows of similar size, which saves time if all are similar. */
void list_equal(contact_list *l, bool all);
static inline double list_unit(const contact_list *l, int row)
{
    return l->equal ? l->unit[row] : 1;
}
void list_cone_in(const contact_list *l, cone *c); /* from the model into the units of its rows */
#endif
