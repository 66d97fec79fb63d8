/* sha256: the hash of FIPS 180-4, as hexadecimal text. */
#ifndef CDL_SHA256_H
#define CDL_SHA256_H
#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t buf[64];
} sha256;
void sha256_start(sha256 *s);
void sha256_put(sha256 *s, const void *p, size_t n);
void sha256_end(sha256 *s, char hex[65]);
void sha256_of(const void *p, size_t n, char hex[65]);
/* Of the bytes of an open file, from where it is.  0, or the errno; EINTR when stop (NULL: never) returned
   true, which is called now and then. */
int sha256_fd(int fd, char hex[65], int (*stop)(void *ud), void *ud);
#endif
