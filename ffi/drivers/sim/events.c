/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/events.h"

/* Frees what an event brings. */
static void drop_subject(struct mmc_network *network,
			 const struct mmc_heap_item *item)
{
	if (item->kind == MMC_EVENTS_FRAME)
		mmc_frames_release(&network->frames, item->subject);
	else if (item->kind == MMC_NETWORK_CONVOY)
		mmc_convoys_release(&network->convoys, item->subject);
}

void mmc_events_add(struct mmc_network *network,
		    const struct mmc_heap_item *item)
{
	if (mmc_heap_push(&network->heap, item) == 0)
		return;
	network->out_of_memory = true;
	drop_subject(network, item);
}

void mmc_events_free(struct mmc_network *network)
{
	struct mmc_heap_item item;

	while (mmc_heap_pop(&network->heap, &item))
		drop_subject(network, &item);
	mmc_heap_free(&network->heap);
}
