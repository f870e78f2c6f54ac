/* SPDX-License-Identifier: BSD-3-Clause */
/* When a lease ends, owners are asked for the chunks that the ring has not brought. */
#include "check.h"
#include "core/repair/lease.h"
#include "support/memory.h"

#define NRANKS 4
#define BLOCK_CHUNKS 50
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define SRTT_NS (50 * MMC_US_NS)
#define LEFT 1

struct world {
	struct mmc_layout layout;
	struct mmc_lease lease;
	struct mmc_bitmap wanted;
	uint64_t words[(NCHUNKS + 63) / 64];
	uint8_t *memory;
	uint64_t now_ns;
};

static void open_world(struct world *at)
{
	*at = (struct world){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, NRANKS, BLOCK_CHUNKS * 100, 100),
		 0);
	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_lease_bytes(NCHUNKS));
	mmc_lease_init(&at->lease, at->memory, NCHUNKS);
	mmc_bitmap_init(&at->wanted, at->words, NCHUNKS);
}

static void close_world(struct world *at)
{
	free(at->memory);
}

static void want(struct world *at, uint32_t first, uint32_t count)
{
	mmc_bitmap_set_run(&at->wanted, (struct mmc_run){ first, count });
	mmc_lease_want(&at->lease, at->now_ns, SRTT_NS);
}

/* Ends the lease under way, and returns how many NAKs follow. */
static unsigned end_lease(struct world *at, struct mmc_nak *naks)
{
	unsigned n = 0;

	at->now_ns = mmc_lease_deadline(&at->lease);
	CHECK(mmc_lease_expire(&at->lease, at->now_ns));
	CHECK(!mmc_lease_expire(&at->lease, at->now_ns));
	CHECK_EQ(mmc_lease_deadline(&at->lease), 0);
	while (n < NRANKS &&
	       mmc_lease_ask(&at->lease, &at->layout, LEFT, &naks[n]))
		n++;
	mmc_lease_renew(&at->lease, &at->wanted, at->now_ns, SRTT_NS);
	return n;
}

/* Chunks are overdue only if they were wanted during a whole lease. */
static void one_to_two_leases(void)
{
	struct mmc_nak naks[NRANKS];
	struct world at;

	open_world(&at);
	CHECK_EQ(mmc_lease_deadline(&at.lease), MMC_NEVER_NS);
	want(&at, 10, 5);
	CHECK_EQ(end_lease(&at, naks), 0);
	want(&at, 160, 1);
	CHECK_EQ(end_lease(&at, naks), 1);
	CHECK_EQ(naks[0].peer, 0);
	CHECK_EQ(naks[0].nruns, 1);
	CHECK_EQ(naks[0].runs[0].first, 10);
	CHECK_EQ(naks[0].runs[0].count, 5);
	CHECK(!naks[0].direct);
	close_world(&at);
}

/* Each owner is asked for its own chunks, in as many NAKs as their runs take. */
static void by_owner(void)
{
	struct mmc_nak naks[NRANKS];
	struct world at;

	open_world(&at);
	for (uint32_t c = 0; c < 2 * MMC_RUNS_MAX - 15; c += 2)
		want(&at, c, 1);
	want(&at, 140, 20); /* of ranks 2 and 3 */
	CHECK_EQ(end_lease(&at, naks), 0);
	CHECK_EQ(end_lease(&at, naks), 3);
	CHECK_EQ(naks[0].peer, 0);
	CHECK_EQ(naks[0].nruns, MMC_RUNS_MAX - 7);
	CHECK_EQ(naks[1].peer, 2);
	CHECK_EQ(naks[1].runs[0].count, 10);
	CHECK_EQ(naks[2].peer, 3);
	CHECK_EQ(naks[2].runs[0].first, 150);
	close_world(&at);
}

/*
 * The NAK to the left neighbour is direct, and so is each NAK that follows one in vain.
 */
static void direct_when_in_vain(void)
{
	struct mmc_nak naks[NRANKS];
	struct world at;

	open_world(&at);
	want(&at, 0, 200);
	CHECK_EQ(end_lease(&at, naks), 0);
	for (unsigned round = 0; round < 3; round++) {
		CHECK_EQ(end_lease(&at, naks), NRANKS);
		for (uint32_t r = 0; r < NRANKS; r++)
			CHECK_EQ(naks[r].direct, r == LEFT || round > 0);
	}
	close_world(&at);
}

/* No lease runs once nothing is wanted, and the next one begins anew. */
static void ends_with_the_last(void)
{
	struct mmc_nak naks[NRANKS];
	struct world at;

	open_world(&at);
	want(&at, 0, 1);
	CHECK_EQ(end_lease(&at, naks), 0);
	mmc_bitmap_clear(&at.wanted, 0);
	mmc_bitmap_clear(&at.lease.overdue, 0);
	CHECK_EQ(end_lease(&at, naks), 0);
	CHECK_EQ(mmc_lease_deadline(&at.lease), MMC_NEVER_NS);
	want(&at, 7, 1);
	CHECK(mmc_lease_deadline(&at.lease) > at.now_ns);
	CHECK(mmc_lease_deadline(&at.lease) < MMC_NEVER_NS);
	close_world(&at);
}

CHECK_MAIN(CHECK_TEST(one_to_two_leases), CHECK_TEST(by_owner),
	   CHECK_TEST(direct_when_in_vain), CHECK_TEST(ends_with_the_last))
