/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stock of a request: the parity of this rank's next groups, which the coder computes before
 * it is due. There is room for the groups of one span.
 */
#ifndef MMC_ENGINE_STOCK_H
#define MMC_ENGINE_STOCK_H

#include "core/plan/grouping.h"
#include "engine/threads/coder.h"

#define MMC_STOCK_GROUPS MMC_GROUPING_DEPTH_MAX

enum mmc_stocked {
	MMC_STOCKED_NOTHING,
	MMC_STOCKED_ORDERED, /* a task computes it */
	MMC_STOCKED_READY,
	MMC_STOCKED_OLD, /* its group was taken, but its task has yet to end */
};

struct mmc_stock {
	size_t group_bytes; /* of the parity of one group */
	uint32_t next;	    /* the first group that was not ordered yet */
	/* Group number g has the item number g modulo MMC_STOCK_GROUPS. */
	struct mmc_stock_item {
		enum mmc_stocked state;
		uint32_t group;
		struct mmc_coder_task *task; /* unless nothing, or ready */
	} items[MMC_STOCK_GROUPS];
};

/* Returns the bytes of memory that a stock takes whose groups have `group_bytes` of parity. */
size_t mmc_stock_bytes(size_t group_bytes);

/* Makes an empty stock in `memory`, mmc_stock_bytes() long, and returns it. */
struct mmc_stock *mmc_stock_init(void *memory, size_t group_bytes);

/* Returns where the parity of a group is to be written, or NULL if there is no room now. */
uint8_t *mmc_stock_room(struct mmc_stock *stock, uint32_t group);

/* Records that `task` is to write the parity of a group, for which there is room. */
void mmc_stock_order(struct mmc_stock *stock, uint32_t group,
		     struct mmc_coder_task *task);

/* Records that the task of a group was taken back from the coder. */
void mmc_stock_end(struct mmc_stock *stock, uint32_t group);

/*
 * Takes the parity of a group out of the stock, and returns it, as long as nothing more is
 * ordered. Returns NULL if it is not ready; then nobody computes it for the stock any more.
 */
const uint8_t *mmc_stock_take(struct mmc_stock *stock,
			      const struct mmc_coder *coder, uint32_t group);

#endif
