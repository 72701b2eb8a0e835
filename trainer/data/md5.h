/* md5.h - MD5 checksums (RFC 1321), by which published data sets are checked for damage. Pure. */
#ifndef TK_TRAINER_DATA_MD5_H
#define TK_TRAINER_DATA_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_TEXT_BYTES = 33 };

struct md5 {
    uint32_t state[4];
    uint64_t len; /* bytes so far */
    uint8_t block[64];
};

void md5_begin(struct md5 *m);
void md5_add(struct md5 *m, const void *bytes, size_t len);

/* Write 32 hexadecimal digits; `m` cannot be used afterwards. */
void md5_text(struct md5 *m, char out[static MD5_TEXT_BYTES]);

#endif
