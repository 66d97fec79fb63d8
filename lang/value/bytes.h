/* bytes: numbers and strings as bytes, one after the other. */
#ifndef CDL_BYTES_H
#define CDL_BYTES_H
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"

void put_u64(text *t, uint64_t x);
void put_bytes(text *t, const char *p, size_t n);
/* Reading them back: false at the end or when the bytes make no sense. */
typedef struct byte_reader {
    const char *p, *end;
} byte_reader;
bool get_u64(byte_reader *r, uint64_t *x);
bool get_bytes(byte_reader *r, const char **p, size_t *n);
const char *get_text(byte_reader *r, arena *a); /* a copy; "" when there is none */
#endif
