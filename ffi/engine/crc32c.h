/* SPDX-License-Identifier: BSD-3-Clause */
/* The CRC32C (RFC 3720, appendix B.4) that protects datagrams under CHECKSUM=full. */
#ifndef MMC_ENGINE_CRC32C_H
#define MMC_ENGINE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the CRC of some bytes followed by the `nbytes` at `bytes`. `crc` is the CRC
 * of the bytes before, or 0 if there are none.
 */
uint32_t mmc_crc32c(uint32_t crc, const void *bytes, size_t nbytes);

#endif
