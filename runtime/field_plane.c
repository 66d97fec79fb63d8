#include "field.h"
field_result *plane_solve(field_work *w, const line_options *o) { (void)o; field_fail(w, SPAN_NONE, "active_set does not solve fields in the plane yet"); return NULL; }
