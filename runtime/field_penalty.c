#include "field.h"
