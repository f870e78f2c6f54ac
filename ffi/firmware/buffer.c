/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers results with the adapter's device, which writes payloads there by itself. */
#include "drivers/predictor.h"
#include "firmware/endpoint.h"

/* The device may be told to write anywhere in the adapter's memory. */
int mmc_nic_register(struct mmc_endpoint *endpoint, const void *memory,
		     size_t nbytes, struct mmc_region *region)
{
	(void)endpoint;
	(void)memory;
	(void)nbytes;
	region->handle = NULL;
	return 0;
}

void mmc_nic_deregister(struct mmc_endpoint *endpoint,
			struct mmc_region *region)
{
	(void)endpoint;
	(void)region;
}

/*
 * Has the device write what carries the operation's tag to its places. The events of the
 * buffer before, if the engine has not taken them in by now, are not for this one.
 */
int mmc_nic_begin(struct mmc_endpoint *endpoint,
		  const struct mmc_predictor *predictor)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	const struct mmc_nic_buffer buffer = {
		.channel = predictor->header.channel,
		.cookie = predictor->cookie,
		.blocks_offset = mmc_nic_offset(adapter->blocks),
		.epoch = predictor->header.epoch,
		.chunk_bytes = adapter->chunk_bytes,
	};

	for (uint32_t r = 0; r < adapter->nranks; r++) {
		struct mmc_destination to =
			predictor->destination(predictor->context, r);

		adapter->blocks[r] = (struct mmc_nic_block){
			.offset = mmc_nic_offset(to.memory),
			.nbytes = to.memory == NULL ? 0 : to.nbytes,
			.first = to.first,
		};
	}
	return mmc_nic_ask(MMC_NIC_REGISTER, &buffer, sizeof(buffer));
}

/*
 * Has the device write nothing more. What it has told until now is not for the engine: the
 * stream that an event names may have been closed, and another be open in its place, when
 * the engine takes the event in.
 */
int mmc_nic_end(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	int rv = mmc_nic_ask(MMC_NIC_DEREGISTER, adapter, 0);

	(void)forget;
	adapter->nstale = mmc_ring_see(&mmc_nic.events.nproduced);
	return rv;
}
