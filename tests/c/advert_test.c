/* SPDX-License-Identifier: BSD-3-Clause */
/* The right neighbour may read a request's memory once it asks, until the request ends. */
#include "engine/advert.h"

#include "hub.h"

static const struct hub_options readable = {
	.nranks = 3,
	.nplayed = 2,
	.repair = MMC_REPAIR_READ,
	.read_bytes_max = 4096,
};

static uint8_t recv[3 * HUB_CHUNK_BYTES];

static void end(struct mmc_request *request)
{
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* Each operation has another generation, and grants nothing by itself. */
static void nothing_is_granted_unasked(void)
{
	struct mmc_request *request;
	uint64_t generation;

	hub_open(&readable);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	generation = mmc_request_generation(request);
	CHECK(generation != 0);
	CHECK(mmc_request_generation(request) != generation);
	/* Generation 0 is left out: it would mean that nothing can be read. */
	hub[0].team->generation = UINT64_MAX;
	CHECK(mmc_request_generation(request) != 0);
	CHECK_EQ(hub[0].ngrants, 0);
	end(request);
}

/* Where memory cannot be registered, nothing can be read. */
static void nothing_to_read(void)
{
	struct mmc_request *request;

	hub_open(&readable);
	hub[0].register_rv = -MMC_ENOMEM;
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	CHECK_EQ(mmc_request_generation(request), 0);
	CHECK_EQ(hub[0].nregions, 0);
	end(request);
}

/* Checks that rank 1 alone may read the operation's memory and the result. */
static void check_granted(const struct mmc_request *request)
{
	const struct mmc_advert *advert =
		&request->op->repair.advertiser.advert;
	const struct mmc_stretch map = {
		.address = advert->map_address - MMC_GENERATION_BYTES,
		.key = advert->map_key,
		.nbytes = MMC_GENERATION_BYTES + 8,
	};
	const struct mmc_stretch data = {
		.address = (uintptr_t)request->base,
		.key = advert->data_key,
		.nbytes = sizeof(recv),
	};

	CHECK(advert->has_data);
	CHECK_EQ(advert->data_address, data.address);
	CHECK(hub_may_read(1, 0, &map) && hub_may_read(1, 0, &data));
	CHECK(!hub_may_read(2, 0, &map) && !hub_may_read(2, 0, &data));
}

static void until_the_request_ends(void)
{
	struct mmc_request *request;
	uint64_t nregistrations;

	hub_open(&readable);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	nregistrations = hub_count(0, MMC_COUNT_REGISTRATIONS);
	mmc_request_register(request);
	check_granted(request);
	CHECK_EQ(hub_count(0, MMC_COUNT_REGISTRATIONS), nregistrations + 1);
	mmc_request_cancel(request);
	CHECK(!request->granted);
	CHECK_EQ(hub[0].ngrants, 2);
	CHECK(!hub[0].grants[0].live && !hub[0].grants[1].live);
	mmc_request_revoke(request);
	end(request);
}

/* Of engine memory the neighbour may read the result alone; it stays registered. */
static void engine_memory(void)
{
	struct mmc_request *request;
	uint8_t *memory;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_allocate(hub[0].engine, 3 * sizeof(recv),
				     (void **)&memory),
		 0);
	request = hub_gather(0, memory, HUB_CHUNK_BYTES);
	mmc_request_register(request);
	check_granted(request);
	CHECK_EQ(hub[0].grants[1].nbytes, sizeof(recv));
	mmc_request_cancel(request);
	CHECK(!hub[0].grants[1].live);
	CHECK(hub[0].regions[hub[0].nregions - 1].live);
	mmc_request_free(request);
	mmc_memory_free(hub[0].engine, memory);
	hub_close();
}

/* If either part cannot be granted, the neighbour gets neither. */
static void all_or_nothing(void)
{
	struct mmc_request *request;

	hub_open(&readable);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	hub[0].grants_max = 1;
	mmc_request_register(request);
	CHECK(!request->granted);
	CHECK_EQ(hub[0].ngrants, 1);
	CHECK(!hub[0].grants[0].live);
	CHECK_EQ(request->op->repair.advertiser.advert.generation, 0);
	end(request);
}

CHECK_MAIN(CHECK_TEST(nothing_is_granted_unasked), CHECK_TEST(nothing_to_read),
	   CHECK_TEST(until_the_request_ends), CHECK_TEST(engine_memory),
	   CHECK_TEST(all_or_nothing))
