/* md5.h - MD5 checksums (RFC 1321), by which fetch.c checks published data sets. Pure. */
#ifndef TK_TRAINER_DATA_MD5_H
#define TK_TRAINER_DATA_MD5_H

#include <stddef.h>

enum { MD5_TEXT_BYTES = 33 };

/* Write 32 hexadecimal digits. */
void md5_text(const void *bytes, size_t len, char out[static MD5_TEXT_BYTES]);

#endif
