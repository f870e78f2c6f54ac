/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the C library's <inttypes.h> that the simulator uses. */
#ifndef MMC_FIRMWARE_INTTYPES_H
#define MMC_FIRMWARE_INTTYPES_H

#include <stdint.h>

#define PRIu64 "lu"

#endif
