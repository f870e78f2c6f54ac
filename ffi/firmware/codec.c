/* SPDX-License-Identifier: BSD-3-Clause */
/* Erasure codes without a library. */
#include "code/codec.h"

const struct mmc_codec *mmc_codec_choose(void)
{
	return &mmc_codec_plain;
}
