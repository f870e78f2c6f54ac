/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/options.h"

#include "core/types.h"
#include "support/error.h"

int mmc_options_check(const struct mmc_team_options *options)
{
	if (options->nranks == 0 || options->rank >= options->nranks ||
	    options->nranks > UINT32_C(1) << MMC_ROUNDS_MAX) {
		mmc_error_set("rank %u of %u ranks is out of range",
			      options->rank, options->nranks);
		return -MMC_EINVAL;
	}
	if (options->pair != 0 && options->nranks != 2) {
		mmc_error_set("a pair has two ranks, not %u", options->nranks);
		return -MMC_EINVAL;
	}
	if (options->chunk_bytes == 0 || options->subgroups == 0 ||
	    options->checksum > MMC_CHECKSUM_FULL ||
	    options->protect > MMC_PROTECT_ENCRYPT) {
		mmc_error_set("invalid options: %u bytes per chunk, %u "
			      "subgroups, checksum mode %u, protection %u",
			      options->chunk_bytes, options->subgroups,
			      options->checksum, options->protect);
		return -MMC_EINVAL;
	}
	return 0;
}
