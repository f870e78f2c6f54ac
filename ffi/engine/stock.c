/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/stock.h"

#include "support/memory.h"

size_t mmc_stock_bytes(size_t group_bytes)
{
	return mmc_part_bytes(sizeof(struct mmc_stock)) +
	       mmc_part_bytes(MMC_STOCK_GROUPS * group_bytes);
}

struct mmc_stock *mmc_stock_init(void *memory, size_t group_bytes)
{
	struct mmc_stock *stock = memory;

	*stock = (struct mmc_stock){ .group_bytes = group_bytes };
	return stock;
}

static uint8_t *parity_of(struct mmc_stock *stock, uint32_t group)
{
	return (uint8_t *)stock + mmc_part_bytes(sizeof(*stock)) +
	       group % MMC_STOCK_GROUPS * stock->group_bytes;
}

uint8_t *mmc_stock_room(struct mmc_stock *stock, uint32_t group)
{
	return stock->items[group % MMC_STOCK_GROUPS].state ==
			       MMC_STOCKED_NOTHING
		       ? parity_of(stock, group)
		       : NULL;
}

void mmc_stock_order(struct mmc_stock *stock, uint32_t group,
		     struct mmc_coder_task *task)
{
	stock->items[group % MMC_STOCK_GROUPS] = (struct mmc_stock_item){
		.state = MMC_STOCKED_ORDERED,
		.group = group,
		.task = task,
	};
	stock->next = group + 1;
}

void mmc_stock_end(struct mmc_stock *stock, uint32_t group)
{
	struct mmc_stock_item *item = &stock->items[group % MMC_STOCK_GROUPS];

	item->state = item->state == MMC_STOCKED_ORDERED ? MMC_STOCKED_READY
							 : MMC_STOCKED_NOTHING;
}

const uint8_t *mmc_stock_take(struct mmc_stock *stock,
			      const struct mmc_coder *coder, uint32_t group)
{
	struct mmc_stock_item *item = &stock->items[group % MMC_STOCK_GROUPS];
	bool ready = item->state == MMC_STOCKED_READY;

	if (item->group != group ||
	    (!ready && item->state != MMC_STOCKED_ORDERED))
		return NULL;
	if (ready || mmc_coder_cancel(item->task)) {
		item->state = MMC_STOCKED_NOTHING;
	} else {
		item->state = MMC_STOCKED_OLD;
		ready = mmc_coder_has_ended(coder, item->task);
	}
	return ready ? parity_of(stock, group) : NULL;
}
