/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of Intel's library ISA-L, which computes by the processor's vector instructions. It is opened
 * at run time. mmc_codec_choose() and mmc_code_library_open() are implemented here for hosts.
 */
#ifndef MMC_CODE_ISAL_H
#define MMC_CODE_ISAL_H

#include <mpimcast/code.h>

#include "code/codec.h"

/* The codec, which may be used once mmc_code_library_open() has returned 0. */
extern const struct mmc_codec mmc_codec_isal;

#endif
