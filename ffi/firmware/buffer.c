/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers results with the adapter's device, which writes payloads there by itself. */
#include <stdlib.h>
#include <string.h>

#include "drivers/predictor.h"
#include "firmware/endpoint.h"
#include "support/bits.h"

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

/* ---- harts --------------------------------------------------------------- */

void mmc_nic_stop(struct mmc_adapter *adapter, uint32_t number)
{
	if (adapter->stopped != 0)
		return;
	adapter->stopped = number;
	mmc_nic_ask(MMC_NIC_HALT, &number, sizeof(number));
}

/* Clears a bitmap of `nchunks` for each hart. Returns false if there is no memory. */
static bool clear_claimed(struct mmc_adapter *adapter, uint32_t nchunks)
{
	size_t map_bytes = mmc_bitmap_bytes(nchunks);
	size_t nbytes = (mmc_nic.nqueues - 1) * map_bytes;

	if (map_bytes > adapter->claimed_bytes) {
		free(adapter->claimed);
		adapter->claimed = malloc(nbytes);
		adapter->claimed_bytes = adapter->claimed == NULL ? 0
								  : map_bytes;
	}
	if (adapter->claimed != NULL)
		memset(adapter->claimed, 0, nbytes);
	return adapter->claimed != NULL;
}

static void register_with_harts(struct mmc_adapter *adapter,
				const struct mmc_nic_buffer *buffer,
				uint32_t nchunks)
{
	size_t map_bytes = mmc_bitmap_bytes(nchunks);

	for (uint32_t i = 1; i < mmc_nic.nqueues; i++) {
		const struct mmc_bitmap claimed = {
			.words = adapter->claimed +
				 (i - 1) * map_bytes / sizeof(uint64_t),
			.nbits = nchunks,
		};

		mmc_hart_register(adapter->inlets[i].hart, buffer,
				  adapter->blocks, &claimed);
	}
}

/* Waits until no hart uses the buffer; one that goes on to do so has stopped. */
static void deregister_with_harts(struct mmc_adapter *adapter)
{
	uint64_t before_ns = mmc_machine_now_ns();
	uint64_t waited_ns = 0;

	for (uint32_t i = 1; i < mmc_nic.nqueues; i++)
		mmc_hart_deregister(adapter->inlets[i].hart);
	for (uint32_t i = 1; i < mmc_nic.nqueues; i++)
		while (!mmc_hart_has_let_go(adapter->inlets[i].hart)) {
			uint64_t now_ns = mmc_machine_now_ns();

			mmc_nic_relay();
			waited_ns +=
				mmc_nic_lapse_ns(adapter, before_ns, now_ns);
			before_ns = now_ns;
			if (waited_ns < mmc_nic_patience_ns(adapter))
				continue;
			mmc_nic_stop(adapter, i);
			break;
		}
}

/* ---- placement ----------------------------------------------------------- */

/* Writes the table of blocks. Returns how many chunks there are but this rank's own. */
static uint32_t tabulate(struct mmc_adapter *adapter,
			 const struct mmc_predictor *predictor)
{
	uint32_t nchunks = 0;

	for (uint32_t r = 0; r < adapter->nranks; r++) {
		struct mmc_destination to =
			predictor->destination(predictor->context, r);
		uint64_t nbytes = to.memory == NULL ? 0 : to.nbytes;

		adapter->blocks[r] = (struct mmc_nic_block){
			.offset = mmc_nic_offset(to.memory),
			.nbytes = nbytes,
			.first = to.first,
		};
		nchunks = mmc_max_u32(
			nchunks,
			to.first +
				(uint32_t)((nbytes + adapter->chunk_bytes - 1) /
					   adapter->chunk_bytes));
	}
	return nchunks;
}

/*
 * Has the device write what carries the operation's tag to its places, or the harts have
 * it placed there. They learn of the buffer before the device tells them of it.
 */
int mmc_nic_begin(struct mmc_endpoint *endpoint,
		  const struct mmc_predictor *predictor)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	const struct mmc_nic_buffer buffer = {
		.channel = predictor->header.channel,
		.cookie = ++adapter->nregistered,
		.blocks_offset = mmc_nic_offset(adapter->blocks),
		.epoch = predictor->header.epoch,
		.chunk_bytes = adapter->chunk_bytes,
	};
	uint32_t nchunks = tabulate(adapter, predictor);
	int rv = 0;

	if (adapter->stopped != 0 || !clear_claimed(adapter, nchunks))
		return -MMC_ENODEV;
	adapter->registered = buffer.cookie;
	adapter->cookie = predictor->cookie;
	register_with_harts(adapter, &buffer, nchunks);
	if (mmc_nic.mode == MMC_NIC_UC)
		rv = mmc_nic_ask(MMC_NIC_REGISTER, &buffer, sizeof(buffer));
	if (rv != 0)
		mmc_nic_end(endpoint, true);
	return rv;
}

/*
 * Has nothing more written. What was told until now is not for the engine: the stream that
 * an event names may have been closed, and another be open in its place, when the engine
 * takes the event in.
 */
int mmc_nic_end(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_adapter *adapter = (struct mmc_adapter *)endpoint;
	int rv = 0;

	(void)forget;
	if (mmc_nic.mode == MMC_NIC_UC)
		rv = mmc_nic_ask(MMC_NIC_DEREGISTER, adapter, 0);
	deregister_with_harts(adapter);
	adapter->registered = 0;
	return rv;
}
