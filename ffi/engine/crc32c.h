/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRC32C (Castagnoli, RFC 3720 appendix B.4) of CHECKSUM=full. */
#ifndef MMC_ENGINE_CRC32C_H
#define MMC_ENGINE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc`, 0 at the beginning, over `nbytes`, and returns it. */
uint32_t mmc_crc32c(uint32_t crc, const void *bytes, size_t nbytes);

#endif
