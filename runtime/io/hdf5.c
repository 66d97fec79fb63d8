/* hdf5: the parts that the HDF5 File Format Specification, version 1.1, calls superblock 0, object headers 1,
   symbol tables and contiguous data: every reader supports them. Names of a group are in a local heap; its
   tree has one leaf, with room for the largest group. */
#include <stdbool.h>
#include <string.h>
#include "hdf5.h"

typedef enum { HDF5_GROUP, HDF5_INTS, HDF5_NUMBERS, HDF5_STRING } hdf5_kind;

struct hdf5_node {
    const char *name;
    hdf5_kind kind;
    const void *data; /* of an array */
    size_t n;         /* of its elements; bytes of a string */
    arena *a;
    vec(hdf5_node *) parts; /* of a group, by name */
    uint64_t header;        /* where its object header is, once it is written */
};

static const uint64_t NOWHERE = UINT64_MAX;
enum { MESSAGE_SPACE = 1, MESSAGE_TYPE = 3, MESSAGE_FILL = 5, MESSAGE_LAYOUT = 8, MESSAGE_TABLE = 0x11 };
enum { TREE_HALF = 16 };      /* a group's tree has room for twice as many leaves; one is used */
enum { LEAF_HALF_LEAST = 4 }; /* a leaf has room for twice as many names */
enum { SUPERBLOCK = 96 };

/* ---- what a file holds ---- */
hdf5_node *hdf5_new(arena *a)
{
    hdf5_node *root = arena_make(a, hdf5_node);
    root->a = a;
    return root;
}

static hdf5_node *part_new(hdf5_node *in, const char *name, hdf5_kind kind)
{
    hdf5_node *part = hdf5_new(in->a);
    size_t at = in->parts.n;
    part->name = name;
    part->kind = kind;
    (void)vec_push(in->a, &in->parts);
    for (; at > 0 && strcmp(in->parts.at[at - 1]->name, name) > 0; at--)
        in->parts.at[at] = in->parts.at[at - 1];
    in->parts.at[at] = part;
    return part;
}

hdf5_node *hdf5_group(hdf5_node *in, const char *name)
{
    return part_new(in, name, HDF5_GROUP);
}

static void put_array(hdf5_node *in, const char *name, hdf5_kind kind, const void *x, size_t n)
{
    hdf5_node *part = part_new(in, name, kind);
    part->data = x;
    part->n = n;
}

void hdf5_ints(hdf5_node *in, const char *name, const int *x, size_t n)
{
    put_array(in, name, HDF5_INTS, x, n);
}

void hdf5_int(hdf5_node *in, const char *name, int x)
{
    int *kept = arena_make(in->a, int);
    *kept = x;
    hdf5_ints(in, name, kept, 1);
}

void hdf5_numbers(hdf5_node *in, const char *name, const double *x, size_t n)
{
    put_array(in, name, HDF5_NUMBERS, x, n);
}

void hdf5_string(hdf5_node *in, const char *name, const char *x)
{
    put_array(in, name, HDF5_STRING, x, strlen(x) + 1);
}

/* ---- bytes ---- */
/* little endian, whatever the machine is */
static void put(text *out, uint64_t x, int bytes)
{
    for (int k = 0; k < bytes; k++)
        text_putc(out, (char)(x >> (8 * k) & 255));
}

static void put_zeros(text *out, size_t n)
{
    for (size_t k = 0; k < n; k++)
        text_putc(out, 0);
}

/* everything lies at multiples of 8 */
static void put_even(text *out)
{
    put_zeros(out, (8 - out->n % 8) % 8);
}

/* ---- object headers ---- */
/* its messages follow, `bytes` of them in all */
static uint64_t put_header(text *out, int messages, size_t bytes)
{
    uint64_t at = out->n;
    put(out, 1, 1); /* version */
    put(out, 0, 1);
    put(out, (uint64_t)messages, 2);
    put(out, 1, 4); /* one link to it */
    put(out, bytes, 4);
    put(out, 0, 4);
    return at;
}

enum { MESSAGE_HEAD = 8 };
static void put_message(text *out, int type, size_t bytes)
{
    put(out, (uint64_t)type, 2);
    put(out, bytes, 2);
    put(out, 0, 4); /* flags */
}

/* ---- arrays ---- */
static size_t element_size(const hdf5_node *x)
{
    if (x->kind == HDF5_STRING)
        return x->n;
    return x->kind == HDF5_INTS ? 4 : 8;
}

static uint64_t put_data(text *out, const hdf5_node *x)
{
    uint64_t at = out->n;
    if (x->n == 0)
        return NOWHERE;
    if (x->kind == HDF5_STRING)
        text_putn(out, x->data, x->n);
    for (size_t k = 0; x->kind == HDF5_INTS && k < x->n; k++)
        put(out, (uint32_t)((const int *)x->data)[k], 4);
    for (size_t k = 0; x->kind == HDF5_NUMBERS && k < x->n; k++) {
        uint64_t bits;
        memcpy(&bits, (const double *)x->data + k, sizeof bits);
        put(out, bits, 8);
    }
    put_even(out);
    return at;
}

/* class with its version, bits of the class, size; then what the class asks for */
static void put_type(text *out, const hdf5_node *x)
{
    enum { FIRST_VERSION = 1 << 4, WHOLE = 0, FLOATING = 1, STRING = 3 };
    enum { SIGNED = 8, IMPLIED_ONE = 0x20, SIGN_AT = 63, UTF8 = 1 << 4 };
    size_t size = element_size(x);
    if (x->kind == HDF5_STRING) {
        bool plain = true;
        for (size_t k = 0; k < x->n; k++)
            plain = plain && !(((const char *)x->data)[k] & 0x80);
        put(out, FIRST_VERSION | STRING, 1);
        put(out, plain ? 0 : UTF8, 3);
        put(out, size, 4);
    } else if (x->kind == HDF5_INTS) {
        put(out, FIRST_VERSION | WHOLE, 1);
        put(out, SIGNED, 3);
        put(out, size, 4);
        put(out, 0, 2);        /* first bit */
        put(out, 8 * size, 2); /* number of bits */
    } else {
        put(out, FIRST_VERSION | FLOATING, 1);
        put(out, IMPLIED_ONE | SIGN_AT << 8, 3);
        put(out, size, 4);
        put(out, 0, 2);
        put(out, 8 * size, 2);
        put(out, 52, 1); /* exponent: first bit, number of bits */
        put(out, 11, 1);
        put(out, 0, 1); /* mantissa */
        put(out, 52, 1);
        put(out, 1023, 4); /* bias */
    }
    put_even(out);
}

static size_t type_bytes(const hdf5_node *x)
{
    if (x->kind == HDF5_STRING)
        return 8;
    return x->kind == HDF5_INTS ? 16 : 24;
}

static void put_set(text *out, hdf5_node *x)
{
    enum { FILL = 8, LAYOUT = 24 };
    bool scalar = x->kind == HDF5_STRING;
    size_t space = scalar ? 8 : 16, type = type_bytes(x);
    uint64_t data = put_data(out, x);
    x->header = put_header(out, 4, 4 * MESSAGE_HEAD + space + type + FILL + LAYOUT);
    put_message(out, MESSAGE_SPACE, space);
    put(out, 1, 1); /* version */
    put(out, scalar ? 0 : 1, 1);
    put(out, 0, 6);
    if (!scalar)
        put(out, x->n, 8);
    put_message(out, MESSAGE_TYPE, type);
    put_type(out, x);
    put_message(out, MESSAGE_FILL, FILL);
    put(out, 2, 1); /* version; room is made late, 0 is filled in where it is wanted */
    put(out, 2, 1);
    put(out, 2, 1);
    put(out, 1, 1);
    put(out, 0, 4);
    put_message(out, MESSAGE_LAYOUT, LAYOUT);
    put(out, 3, 1); /* version */
    put(out, 1, 1); /* contiguous */
    put(out, data, 8);
    put(out, scalar ? x->n : x->n * element_size(x), 8);
    put_even(out);
}

/* ---- groups ---- */
/* the number of names that the largest group has */
static size_t most_parts(const hdf5_node *x)
{
    size_t most = x->parts.n;
    for (size_t k = 0; k < x->parts.n; k++) {
        size_t below = most_parts(x->parts.at[k]);
        most = below > most ? below : most;
    }
    return most;
}

/* where a group's heap and its tree are */
typedef struct hdf5_places {
    uint64_t heap, tree;
} hdf5_places;

/* the heap of names: an empty one first; name k begins at begin[k] */
static uint64_t put_heap(text *out, const hdf5_node *x, size_t *begin)
{
    enum { NO_FREE_BLOCK = 1 };
    text names = { .a = x->a };
    put_zeros(&names, 8);
    for (size_t k = 0; k < x->parts.n; k++) {
        begin[k] = names.n;
        text_putn(&names, x->parts.at[k]->name, strlen(x->parts.at[k]->name) + 1);
        put_even(&names);
    }
    uint64_t data = out->n;
    text_putn(out, names.at, names.n);
    uint64_t at = out->n;
    text_puts(out, "HEAP");
    put(out, 0, 4);
    put(out, names.n, 8);
    put(out, NO_FREE_BLOCK, 8);
    put(out, data, 8);
    return at;
}

static void put_entry(text *out, size_t name, uint64_t header, const hdf5_places *of)
{
    put(out, name, 8);
    put(out, header, 8);
    put(out, of ? 1 : 0, 4); /* whether the places follow */
    put(out, 0, 4);
    put(out, of ? of->tree : 0, 8);
    put(out, of ? of->heap : 0, 8);
}

static uint64_t put_leaf(text *out, const hdf5_node *x, const size_t *begin, size_t half)
{
    enum { ENTRY = 40 };
    uint64_t at = out->n;
    text_puts(out, "SNOD");
    put(out, 1, 1); /* version */
    put(out, 0, 1);
    put(out, x->parts.n, 2);
    for (size_t k = 0; k < x->parts.n; k++)
        put_entry(out, begin[k], x->parts.at[k]->header, NULL);
    put_zeros(out, (2 * half - x->parts.n) * ENTRY);
    return at;
}

static uint64_t put_tree(text *out, uint64_t leaf, size_t last_name)
{
    uint64_t at = out->n;
    text_puts(out, "TREE");
    put(out, 0, 1); /* of a group */
    put(out, 0, 1); /* lowest level */
    put(out, 1, 2); /* leaves */
    put(out, NOWHERE, 8);
    put(out, NOWHERE, 8);
    put(out, 0, 8); /* names lie between the empty one and the last one */
    put(out, leaf, 8);
    put(out, last_name, 8);
    put_zeros(out, (2 * TREE_HALF - 1) * 16);
    return at;
}

static hdf5_places put_group(text *out, hdf5_node *x, size_t half)
{
    for (size_t k = 0; k < x->parts.n; k++) {
        hdf5_node *part = x->parts.at[k];
        if (part->kind == HDF5_GROUP)
            put_group(out, part, half);
        else
            put_set(out, part);
    }
    size_t *begin = arena_array(x->a, size_t, x->parts.n + 1);
    hdf5_places of = { .heap = put_heap(out, x, begin) };
    uint64_t leaf = put_leaf(out, x, begin, half);
    of.tree = put_tree(out, leaf, x->parts.n ? begin[x->parts.n - 1] : 0);
    x->header = put_header(out, 1, MESSAGE_HEAD + 16);
    put_message(out, MESSAGE_TABLE, 16);
    put(out, of.tree, 8);
    put(out, of.heap, 8);
    return of;
}

/* ---- the file ---- */
static void put_superblock(text *out, const hdf5_node *root, const hdf5_places *of, uint64_t end, size_t half)
{
    static const unsigned char signature[] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
    text_putn(out, (const char *)signature, sizeof signature);
    put(out, 0, 5); /* versions */
    put(out, 8, 1); /* bytes of an address, of a length */
    put(out, 8, 1);
    put(out, 0, 1);
    put(out, half, 2);
    put(out, TREE_HALF, 2);
    put(out, 0, 4);
    put(out, 0, 8); /* addresses count from here */
    put(out, NOWHERE, 8);
    put(out, end, 8);
    put(out, NOWHERE, 8);
    put_entry(out, 0, root->header, of);
}

void hdf5_put(text *out, hdf5_node *root)
{
    text head = { .a = root->a };
    size_t half = (most_parts(root) + 1) / 2;
    half = half > LEAF_HALF_LEAST ? half : LEAF_HALF_LEAST;
    put_zeros(out, SUPERBLOCK);
    hdf5_places of = put_group(out, root, half);
    put_superblock(&head, root, &of, out->n, half);
    memcpy(out->at, head.at, SUPERBLOCK);
}
