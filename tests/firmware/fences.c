/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows a word and then looks at the host's word, in each round; see fences.h. */
#include "fences.h"

#include "firmware/machine.h"
#include "firmware/nic.h"
#include "offload/ring.h"

int main(void)
{
	struct fences *fences = (struct fences *)&mmc_nic;

	for (uint32_t round = 1;; round++) {
		while (mmc_ring_see(&fences->began) != round)
			;
		mmc_ring_show(&fences->firmware, round);
		fences->seen = mmc_ring_see(&fences->host);
		mmc_ring_show(&fences->ended, round);
	}
}
