/* equal: a contact problem with each row in a unit of its own, so that reactions of contacts whose gaps and
 * slips are written in other units are compared with each other and not their units. */
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

/* Rows are multiplied by powers of two (power_unit), so that nothing is rounded, until the diagonal entries
   of W are of like size.  One contact has one unit for all of its tangent rows.  `unit` has room for the rows
   of p; laws of p are in its new units until equal_undo, which leaves W as it is. */
void equal_make(equal_units *e, contact_problem *p, double *unit);
void equal_undo(equal_units *e);
/* emit c] */

/* The same for a list whose contacts have their blocks: rows and blocks, once.  all: else the largest row
   keeps its unit, and so do those alike, which costs nothing where all are. */
void list_equal(contact_list *l, bool all);
static inline double list_unit(const contact_list *l, int row)
{
    return l->equal ? l->unit[row] : 1;
}
void list_cone_in(const contact_list *l, cone *c); /* of the model, into the units of its rows */
#endif
