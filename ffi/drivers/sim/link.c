/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/link.h"

#include "support/bits.h"

struct mmc_link mmc_link_make(const struct mmc_fabric_link *described)
{
	return (struct mmc_link){
		.byte_ps = mmc_link_byte_ps(described->mbits),
		.burst_byte_ps =
			described->burst_bytes > 0
				? mmc_link_byte_ps(described->burst_mbits)
				: 0,
		.burst_bytes = described->burst_bytes,
		.queue_bytes = described->queue_bytes,
		.losses = mmc_gilbert_make(described->loss,
					   described->loss_period),
		.latency_ns = described->latency_ns,
		.jitter_ns = described->jitter_ns,
	};
}

/*
 * Takes tokens for `nbytes`, of which none leaves before `start_ps`. Returns when the
 * last byte has left: bytes for which the bucket has tokens leave at the burst's rate,
 * and the others at the rate at which the bucket fills.
 */
static uint64_t leave_with_tokens(struct mmc_link *link, uint64_t nbytes,
				  uint64_t start_ps)
{
	uint64_t bucket_ps = link->burst_bytes * link->byte_ps;
	uint64_t in_burst_ps = start_ps + nbytes * link->burst_byte_ps;

	link->full_ps =
		mmc_max_u64(link->full_ps, start_ps) + nbytes * link->byte_ps;
	return link->full_ps > bucket_ps
		       ? mmc_max_u64(in_burst_ps, link->full_ps - bucket_ps)
		       : in_burst_ps;
}

/* Takes the time that `nbytes` need to leave from the link, after all before them. */
static void occupy(struct mmc_link *link, uint64_t nbytes, uint64_t now_ps)
{
	uint64_t start_ps = mmc_max_u64(link->free_ps, now_ps);

	link->free_ps = link->burst_bytes > 0
				? leave_with_tokens(link, nbytes, start_ps)
				: start_ps + nbytes * link->byte_ps;
	link->bytes += nbytes;
}

/* Returns the time that a byte of the queue takes at present. */
static uint64_t present_byte_ps(const struct mmc_link *link, uint64_t now_ps)
{
	uint64_t bucket_ps = link->burst_bytes * link->byte_ps;
	bool bursting = link->burst_bytes > 0 &&
			link->full_ps < now_ps + bucket_ps;

	return bursting ? link->burst_byte_ps : link->byte_ps;
}

/* Returns how many bytes the queue holds. */
static uint64_t waiting_bytes(const struct mmc_link *link, uint64_t now_ps)
{
	if (link->free_ps <= now_ps)
		return 0;
	return (link->free_ps - now_ps) / present_byte_ps(link, now_ps);
}

bool mmc_link_enter(struct mmc_link *link, uint64_t nbytes, uint64_t now_ns,
		    uint64_t *left_ns)
{
	uint64_t now_ps = now_ns * MMC_LINK_NS_PS;
	uint64_t depth_bytes = waiting_bytes(link, now_ps) + nbytes;

	link->entered++;
	if (depth_bytes > link->queue_bytes) {
		link->overflowed++;
		return false;
	}
	link->deepest_bytes = mmc_max_u64(link->deepest_bytes, depth_bytes);
	occupy(link, nbytes, now_ps);
	*left_ns = mmc_link_ps_to_ns(link->free_ps);
	return true;
}

/*
 * A convoy whose packets come more slowly than this link is occupies it no longer than
 * its bytes need: others may go between its packets.
 */
void mmc_link_enter_convoy(struct mmc_link *link,
			   struct mmc_link_convoy *convoy, uint64_t now_ns,
			   uint64_t *first_ns)
{
	uint64_t now_ps = now_ns * MMC_LINK_NS_PS;
	uint64_t packet_ps = convoy->packet_bytes * link->byte_ps;
	uint64_t start_ps = mmc_max_u64(link->free_ps, now_ps);
	uint64_t last_ps = convoy->last_ns * MMC_LINK_NS_PS + packet_ps;
	uint64_t depth_bytes = waiting_bytes(link, now_ps) + convoy->nbytes;

	link->packets += convoy->npackets;
	link->deepest_bytes = mmc_max_u64(link->deepest_bytes, depth_bytes);
	occupy(link, convoy->nbytes, now_ps);
	*first_ns = mmc_link_ps_to_ns(start_ps + packet_ps);
	convoy->last_ns =
		mmc_link_ps_to_ns(mmc_max_u64(link->free_ps, last_ps));
}

uint64_t mmc_link_busy_ns(const struct mmc_link *link, uint64_t queue_bytes,
			  uint64_t now_ns)
{
	uint64_t now_ps = now_ns * MMC_LINK_NS_PS;
	uint64_t allowed_ps =
		now_ps + queue_bytes * present_byte_ps(link, now_ps);

	if (link->free_ps <= allowed_ps)
		return 0;
	return mmc_link_ps_to_ns(link->free_ps - allowed_ps);
}
