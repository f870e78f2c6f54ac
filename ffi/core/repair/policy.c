/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/repair/policy.h"

#include "core/repair/repair.h"
#include "support/assert.h"

static uint32_t left_of(uint32_t rank, uint32_t nranks)
{
	return (rank + nranks - 1) % nranks;
}

/* ---- repair by message ---------------------------------------------------- */

static bool send_nak(struct mmc_repair_state *repair, const struct mmc_nak *nak,
		     uint64_t now_ns)
{
	(void)repair, (void)nak, (void)now_ns;
	return true;
}

static bool asks_for_chunks(struct mmc_repair_state *repair,
			    const struct mmc_nak *nak)
{
	(void)repair, (void)nak;
	return false;
}

static void ignore_advert(struct mmc_repair_state *repair, uint32_t peer,
			  const struct mmc_advert *advert, uint64_t now_ns)
{
	(void)repair, (void)peer, (void)advert, (void)now_ns;
}

static void ignore_done(struct mmc_repair_state *repair, uint32_t peer,
			uint64_t now_ns)
{
	(void)repair, (void)peer, (void)now_ns;
}

static bool fetch_nothing(struct mmc_repair_state *repair, uint64_t now_ns,
			  struct mmc_fetch_step *step)
{
	(void)repair, (void)now_ns, (void)step;
	return false;
}

static uint64_t never(const struct mmc_repair_state *repair)
{
	(void)repair;
	return MMC_NEVER_NS;
}

/* Owners learn from NAKs how many of their own chunks others lacked. */
static struct mmc_repair_losses asked_for(const struct mmc_repair_state *repair,
					  uint32_t own_chunks)
{
	return (struct mmc_repair_losses){
		.block_chunks = own_chunks,
		.nlost = repair->repairer.nlost,
		.nshared = repair->repairer.nshared,
	};
}

/*
 * Policy nak: the owner is asked, and multicasts the chunks that several ranks lack
 * (after NORM, RFC 5740, and PGM, RFC 3208).
 */
static uint32_t nak_repairer(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked)
{
	(void)rank, (void)nranks, (void)nasked;
	return owner;
}

static bool nak_serves(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker)
{
	(void)nranks, (void)asker;
	return rank == owner;
}

static const struct mmc_repair_policy nak_policy = {
	.name = "nak",
	.release = MMC_RELEASE_ALL,
	.gathers = true,
	.answers_queue = true,
	.repairer = nak_repairer,
	.serves = nak_serves,
	.on_missing = send_nak,
	.on_nak = asks_for_chunks,
	.on_advert = ignore_advert,
	.on_peer_done = ignore_done,
	.poll = fetch_nothing,
	.deadline = never,
	.losses = asked_for,
};

/*
 * Policy neighbour: the left neighbour in the ring is asked, which spreads the work if
 * many ranks share a loss. The neighbour may lack the chunk itself, so of six requests
 * the last two go to the owner, which helps as long as it has not given its block back.
 * They are two in a row since a chunk may be asked for only in every second retry
 * interval.
 */
static uint32_t neighbour_repairer(uint32_t rank, uint32_t nranks,
				   uint32_t owner, uint32_t nasked)
{
	return nasked % 6 >= 4 ? owner : left_of(rank, nranks);
}

static bool neighbour_serves(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t asker)
{
	return rank == owner || asker == (rank + 1) % nranks;
}

static const struct mmc_repair_policy neighbour_policy = {
	.name = "neighbour",
	.release = MMC_RELEASE_RIGHT,
	.repairer = neighbour_repairer,
	.serves = neighbour_serves,
	.on_missing = send_nak,
	.on_nak = asks_for_chunks,
	.on_advert = ignore_advert,
	.on_peer_done = ignore_done,
	.poll = fetch_nothing,
	.deadline = never,
	.losses = asked_for,
};

/* ---- repair by RDMA Read -------------------------------------------------- */

static uint32_t read_repairer(uint32_t rank, uint32_t nranks, uint32_t owner,
			      uint32_t nasked)
{
	(void)owner, (void)nasked;
	return left_of(rank, nranks);
}

static bool read_missing(struct mmc_repair_state *repair,
			 const struct mmc_nak *nak, uint64_t now_ns)
{
	for (uint32_t i = 0; i < nak->nruns; i++)
		mmc_fetcher_want(&repair->fetcher, repair->claimed,
				 nak->runs[i], now_ns);
	return false;
}

/*
 * The right neighbour sends a direct NAK when it wants chunks, and others for adverts.
 */
static bool asks_for_memory(struct mmc_repair_state *repair,
			    const struct mmc_nak *nak)
{
	if (nak->direct || nak->peer != mmc_repair_right(repair))
		return false;
	mmc_advertiser_ask(&repair->advertiser);
	return true;
}

static bool is_left(const struct mmc_repair_state *repair, uint32_t peer)
{
	return peer == left_of(repair->rank, repair->layout->nranks);
}

static void learn_advert(struct mmc_repair_state *repair, uint32_t peer,
			 const struct mmc_advert *advert, uint64_t now_ns)
{
	if (is_left(repair, peer))
		mmc_fetcher_learn(&repair->fetcher, advert, now_ns);
}

static void hurry(struct mmc_repair_state *repair, uint32_t peer,
		  uint64_t now_ns)
{
	if (is_left(repair, peer))
		mmc_fetcher_hurry(&repair->fetcher, now_ns);
}

static bool fetch(struct mmc_repair_state *repair, uint64_t now_ns,
		  struct mmc_fetch_step *step)
{
	return mmc_fetcher_next(&repair->fetcher, repair->claimed, now_ns,
				step);
}

static uint64_t fetch_deadline(const struct mmc_repair_state *repair)
{
	return mmc_fetcher_deadline(&repair->fetcher);
}

/*
 * Owners do not learn which of their chunks are read elsewhere. So the loss is
 * estimated: an average block is taken to lose as large a share as this rank has lost
 * of all others.
 */
static struct mmc_repair_losses
extrapolate(const struct mmc_repair_state *repair, uint32_t own_chunks)
{
	const struct mmc_layout *layout = repair->layout;
	uint32_t block_chunks = layout->nchunks / layout->nsenders;
	uint32_t others = layout->nchunks - own_chunks;
	uint64_t nlost = repair->loss.nlost;
	uint32_t scaled = others == 0
				  ? repair->repairer.nlost
				  : (uint32_t)(nlost * block_chunks / others);

	return (struct mmc_repair_losses){
		.block_chunks = block_chunks,
		.nlost = scaled,
		.nshared = scaled,
	};
}

/*
 * Policy read: the left neighbour's memory is read, which costs the neighbour nothing.
 * If that takes too long, the fetcher asks the owners, which gather requests as with
 * nak.
 */
static const struct mmc_repair_policy read_policy = {
	.name = "read",
	.release = MMC_RELEASE_RIGHT,
	.gathers = true,
	.advertises = true,
	.repairer = read_repairer,
	.serves = neighbour_serves,
	.on_missing = read_missing,
	.on_nak = asks_for_memory,
	.on_advert = learn_advert,
	.on_peer_done = hurry,
	.poll = fetch,
	.deadline = fetch_deadline,
	.losses = extrapolate,
};

const struct mmc_repair_policy *mmc_repair_policy(enum mmc_repair repair)
{
	switch (repair) {
	case MMC_REPAIR_NAK:
		return &nak_policy;
	case MMC_REPAIR_NEIGHBOUR:
		return &neighbour_policy;
	case MMC_REPAIR_READ:
		return &read_policy;
	}
	MMC_ASSERT(false);
	return NULL;
}
