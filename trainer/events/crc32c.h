/* crc32c.h - CRC-32C (Castagnoli), which TensorBoard's records carry. Pure. */
#ifndef TK_TRAINER_EVENTS_CRC32C_H
#define TK_TRAINER_EVENTS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const void *bytes, size_t len);

/* The same by table only: what machines without the instruction run, and what tests compare with. */
uint32_t crc32c_table(const void *bytes, size_t len);

/* TensorBoard's disguise of a CRC that is stored beside its data. */
uint32_t crc32c_mask(uint32_t crc);

#endif
