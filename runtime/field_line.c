#include "field.h"
field_result *line_solve(field_work *w, const line_options *o) { (void)o; field_fail(w, SPAN_NONE, "not yet"); return NULL; }
