/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/strangers.h"

_Static_assert(sizeof(((struct mmc_stranger *)0)->ndatagrams) ==
		       MMC_REFUSAL_COUNT * sizeof(uint64_t),
	       "each cause is counted");
_Static_assert(MMC_STRANGER_NO_RANK == MMC_PEER_NONE,
	       "no rank has the number that stands for none");

/* Returns the stranger that refused datagrams like this one are accounted to. */
static struct mmc_stranger stranger_of(const struct mmc_event *event)
{
	if (event->source != MMC_PEER_UNKNOWN)
		return (struct mmc_stranger){ .rank = event->source };
	return (struct mmc_stranger){
		.rank = MMC_STRANGER_NO_RANK,
		.ip = event->from_ip,
		.port = event->from_port,
	};
}

/* Returns the item of a stranger, or NULL. */
static struct mmc_stranger *find(struct mmc_strangers *strangers,
				 const struct mmc_stranger *stranger)
{
	for (uint32_t i = 0; i < strangers->count; i++) {
		struct mmc_stranger *item = &strangers->items[i];

		if (item->rank == stranger->rank && item->ip == stranger->ip &&
		    item->port == stranger->port)
			return item;
	}
	return NULL;
}

/* Returns an item for another stranger: a new one, or the one refused longest ago. */
static struct mmc_stranger *take_item(struct mmc_strangers *strangers)
{
	struct mmc_stranger *oldest = &strangers->items[0];

	if (strangers->count < MMC_STRANGERS_MAX)
		return &strangers->items[strangers->count++];
	for (uint32_t i = 1; i < strangers->count; i++)
		if (strangers->items[i].last_ns < oldest->last_ns)
			oldest = &strangers->items[i];
	return oldest;
}

void mmc_strangers_note(struct mmc_strangers *strangers,
			const struct mmc_event *event, enum mmc_refusal cause,
			uint64_t ndatagrams, uint64_t now_ns)
{
	const struct mmc_stranger stranger = stranger_of(event);
	struct mmc_stranger *item = find(strangers, &stranger);

	if (item == NULL) {
		item = take_item(strangers);
		*item = stranger;
		item->first_ns = now_ns;
	}
	item->last_ns = now_ns;
	item->ndatagrams[cause] += ndatagrams;
}
