/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/naks.h"

#include "support/bits.h"

bool mmc_naks_include(const struct mmc_naks *naks, uint32_t peer,
		      uint32_t chunk, uint32_t *nothers)
{
	bool asked = false;

	*nothers = 0;
	for (uint32_t i = 0; i < naks->count; i++) {
		const struct mmc_peer_run *nak = &naks->items[i];

		if (chunk - nak->run.first >= nak->run.count)
			continue;
		asked |= nak->peer == peer;
		*nothers += nak->peer != peer;
	}
	return asked;
}

/*
 * Removes the chunks of `run` from a NAK, of which two runs may be left. The second
 * run is dropped if there is no room for it: its sender will ask again.
 */
static void cut(struct mmc_naks *naks, struct mmc_peer_run *nak,
		struct mmc_run run)
{
	uint32_t end = nak->run.first + nak->run.count;
	uint32_t cut_end = run.first + run.count;

	if (cut_end <= nak->run.first || end <= run.first)
		return;
	if (cut_end < end && run.first > nak->run.first &&
	    mmc_naks_has_room(naks))
		mmc_naks_add(naks, nak->peer,
			     (struct mmc_run){ .first = cut_end,
					       .count = end - cut_end });
	if (run.first > nak->run.first) {
		nak->run.count = run.first - nak->run.first;
	} else {
		nak->run.first = mmc_min_u32(cut_end, end);
		nak->run.count = end - nak->run.first;
	}
}

void mmc_naks_remove(struct mmc_naks *naks, uint32_t peer, struct mmc_run run)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < naks->count; i++)
		if (peer == MMC_PEER_ALL || naks->items[i].peer == peer)
			cut(naks, &naks->items[i], run);
	for (uint32_t i = 0; i < naks->count; i++)
		if (naks->items[i].run.count > 0)
			naks->items[n++] = naks->items[i];
	naks->count = n;
}
