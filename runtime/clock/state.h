/* state: a run at an instant as a value.  Each owner has one function (`keep`) that lists its data in a fixed
   order: the same calls write the numbers as bytes, or read them back and check that name, kind and count
   agree.  The bytes describe themselves:

       "CDLSTATE" version(u32) length(u64) items... sha256 of all that (64 hexadecimal digits)
       item: kind(u8) length of the name(u8) name count(u64) values, little-endian as they lie in memory

   Bytes that are read may come from anyone: every count is checked against the need of the program or the
   remaining bytes, and numbers used as an index have bounds. */
#ifndef CDL_STATE_H
#define CDL_STATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"

enum { STATE_VERSION = 1 };

typedef struct run_state run_state;

/* ---- the value ---- */
/* Bytes in an arena: the state as a value, to copy, compare, send. */
typedef struct state_bytes {
    char *at;
    size_t n;
} state_bytes;

/* Writes: `keep` lists everything that belongs to the state. It allocates no memory while it writes. */
state_bytes state_save(arena *a, void (*keep)(void *of, run_state *s), void *of);
/* Reads, with the same function. NULL, or what is wrong with the bytes; data read before the error have
 * then changed. */
const char *state_load(arena *a, const char *bytes, size_t n, void (*keep)(void *of, run_state *s), void *of);
/* The same to a file, whole or not at all.  NULL, or what went wrong. */
const char *state_save_file(arena *a, const char *path, void (*keep)(void *of, run_state *s), void *of);
const char *state_load_file(arena *a, const char *path, void (*keep)(void *of, run_state *s), void *of);

/* ---- for `keep` ---- */
bool state_reads(const run_state *s);
bool state_ok(const run_state *s); /* no error so far; after an error all further calls do nothing */
/* Reports that the data make no sense; the first report counts. */
void state_wrong(run_state *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void state_f64(run_state *s, const char *name, double *x, size_t n);
void state_i64(run_state *s, const char *name, int64_t *x, size_t n);
void state_u8(run_state *s, const char *name, uint8_t *x, size_t n);
void state_flags(run_state *s, const char *name, bool *x, size_t n); /* 0 or 1 each */
/* An integer that serves as an index or a choice, in lo..hi. */
void state_int(run_state *s, const char *name, int *x, int lo, int hi);
void state_skip(run_state *s); /* what follows is not read */
/* The count of something that grows: written as n, or read; `each` bytes per item follow. */
size_t state_count(run_state *s, const char *name, size_t n, size_t each);
/* A short name in plain letters, or NULL; a name that is read is allocated in `a`. */
void state_name(run_state *s, const char *name, const char **x, arena *a);
/* Data that must agree: the text, or the numbers bit by bit. `what` names them in the message. */
void state_same_text(run_state *s, const char *name, const char *x, const char *what);
void state_same_f64(run_state *s, const char *name, const double *x, size_t n, const char *what);
#endif
