/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/nonce.h"

#include "support/error.h"

int mmc_nonce_take(uint64_t *latest, uint64_t *number)
{
	if (*latest >= MMC_NONCE_NUMBER_MAX) {
		mmc_error_set("the key of these ranks has ended, after 2^40 "
			      "datagrams of this one: free their "
			      "communicators, and make them again");
		return -MMC_EIO;
	}
	*number = ++*latest;
	return 0;
}
