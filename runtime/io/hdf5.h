/* hdf5: files of HDF5 with groups and arrays of one dimension, made in memory.  They are written without
   libhdf5, which keeps times in its files and has state of its own: the same numbers give the same bytes. */
#ifndef CDL_HDF5_H
#define CDL_HDF5_H
#include "base/arena.h"

typedef struct hdf5_node hdf5_node;

hdf5_node *hdf5_new(arena *a); /* the root of a file */
hdf5_node *hdf5_group(hdf5_node *in, const char *name);
/* Arrays stay where they are until the file is made. */
void hdf5_ints(hdf5_node *in, const char *name, const int *x, size_t n);
void hdf5_int(hdf5_node *in, const char *name, int x);
void hdf5_numbers(hdf5_node *in, const char *name, const double *x, size_t n);
void hdf5_string(hdf5_node *in, const char *name, const char *x);
/* The bytes of the file, appended to an empty text. */
void hdf5_put(text *out, hdf5_node *root);

#endif
