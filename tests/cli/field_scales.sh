#!/bin/bash
# The same fields in other units: lengths, u and the coefficients are scaled, answers scale along to 1e-9.
. "$(dirname "$0")/lib.sh" 2>/dev/null || true
