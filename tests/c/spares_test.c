/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests are used again: a loop of one shape allocates nothing after its beginning. */
#include "engine/spares.h"

#include "hub.h"

static uint8_t recv[2][4 * HUB_CHUNK_BYTES];

static void gather(uint64_t nbytes)
{
	struct mmc_request *requests[2];

	for (uint32_t r = 0; r < 2; r++)
		requests[r] = hub_gather(r, recv[r], nbytes);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(hub_complete(requests[r], MMC_S_NS));
		hub_check(recv[r], nbytes);
		mmc_request_free(requests[r]);
	}
}

static uint32_t count_spares(void)
{
	uint32_t n = 0;

	for (const struct mmc_request *spare = hub[0].stream->spares;
	     spare != NULL; spare = spare->next)
		n++;
	return n;
}

static void a_loop_allocates_once(void)
{
	uint64_t nallocations;

	hub_open(&(struct hub_options){ .nranks = 2 });
	gather(HUB_CHUNK_BYTES);
	nallocations = hub_count(0, MMC_COUNT_ALLOCATIONS);
	CHECK(nallocations > 0);
	for (int i = 0; i < 20; i++)
		gather(HUB_CHUNK_BYTES);
	CHECK_EQ(hub_count(0, MMC_COUNT_ALLOCATIONS), nallocations);
	hub_close();
}

/* Spares that are too small for a new shape are freed: they would pile up. */
static void spares_of_another_shape(void)
{
	struct mmc_request *small;
	struct mmc_request *large;

	hub_open(&(struct hub_options){ .nranks = 2, .nplayed = 1 });
	small = mmc_request_get(hub[0].stream, 1000);
	CHECK_EQ(count_spares(), 1);
	small->complete = true;
	mmc_request_recycle(small);
	CHECK_EQ(count_spares(), 2);
	CHECK(mmc_request_get(hub[0].stream, 900) == small);
	mmc_request_recycle(small);
	large = mmc_request_get(hub[0].stream, 2000);
	CHECK_EQ(large->memory_bytes, 2000);
	CHECK_EQ((uintptr_t)large->memory % 64, 0);
	CHECK_EQ(count_spares(), 1);
	large->complete = true;
	/* A request that the user holds is no spare. */
	large->held = true;
	mmc_request_recycle(large);
	CHECK_EQ(count_spares(), 1);
	large->held = false;
	mmc_request_recycle(large);
	CHECK_EQ(count_spares(), 2);
	hub_close();
}

/* A stream that closes frees all requests, in flight, queued and spare. */
static void closing_frees_all(void)
{
	static uint8_t many[MMC_EPOCHS_OPEN_MAX][2 * HUB_CHUNK_BYTES];

	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.repair = MMC_REPAIR_READ,
		.read_bytes_max = 4096,
	});
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		hub_gather(0, many[i], HUB_CHUNK_BYTES);
	hub_settle();
	CHECK(hub[0].regions[0].live);
	mmc_stream_close(hub[0].stream);
	hub[0].stream = NULL;
	for (uint32_t i = 0; i < hub[0].nregions; i++)
		CHECK(!hub[0].regions[i].live);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(a_loop_allocates_once),
	   CHECK_TEST(spares_of_another_shape), CHECK_TEST(closing_frees_all))
