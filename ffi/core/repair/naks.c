/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/naks.h"

#include "support/bits.h"

bool mmc_asks_by(const struct mmc_asks *asks, uint32_t peer, uint32_t chunk,
		 uint32_t *nothers)
{
	bool asked = false;

	*nothers = 0;
	for (uint32_t i = 0; i < asks->count; i++) {
		const struct mmc_ask *ask = &asks->items[i];

		if (chunk - ask->run.first >= ask->run.count)
			continue;
		asked |= ask->peer == peer;
		*nothers += ask->peer != peer;
	}
	return asked;
}

/*
 * Takes `run` out of an ask, which may leave two pieces of it; the second is dropped if
 * there is no room for it.
 */
static void cut(struct mmc_asks *asks, struct mmc_ask *ask, struct mmc_run run)
{
	uint32_t end = ask->run.first + ask->run.count;
	uint32_t cut_end = run.first + run.count;

	if (cut_end <= ask->run.first || end <= run.first)
		return;
	if (cut_end < end && run.first > ask->run.first && mmc_asks_room(asks))
		mmc_asks_add(asks, ask->peer,
			     (struct mmc_run){ cut_end, end - cut_end });
	if (run.first > ask->run.first) {
		ask->run.count = run.first - ask->run.first;
	} else {
		ask->run.first = mmc_min_u32(cut_end, end);
		ask->run.count = end - ask->run.first;
	}
}

void mmc_asks_settle(struct mmc_asks *asks, uint32_t peer, struct mmc_run run)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < asks->count; i++)
		if (peer == MMC_PEER_ALL || asks->items[i].peer == peer)
			cut(asks, &asks->items[i], run);
	for (uint32_t i = 0; i < asks->count; i++)
		if (asks->items[i].run.count > 0)
			asks->items[n++] = asks->items[i];
	asks->count = n;
}
