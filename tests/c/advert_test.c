/* SPDX-License-Identifier: BSD-3-Clause */
/* Other ranks may read a request's memory from the advert on until the request ends. */
#include "engine/advert.h"

#include "hub.h"

static const struct hub_options readable = {
	.nranks = 2,
	.nplayed = 1,
	.repair = MMC_REPAIR_READ,
	.read_bytes_max = 4096,
};

static uint8_t recv[2 * HUB_CHUNK_BYTES];

static void end(struct mmc_request *request)
{
	mmc_request_cancel(request);
	mmc_request_free(request);
	hub_close();
}

/* An advert offers the bitmap from the start, and user memory once it is registered. */
static void user_memory(void)
{
	struct mmc_request *request;
	struct mmc_advert advert;
	struct mmc_advert other;

	hub_open(&readable);
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	advert = mmc_request_advert(request);
	CHECK(advert.generation != 0);
	CHECK_EQ(advert.map_address, request->map.address);
	CHECK_EQ(advert.map_key, request->map.key);
	CHECK(!advert.has_data);
	other = mmc_request_advert(request);
	CHECK(other.generation != advert.generation);
	/* Generation 0 is left out: it would mean that nothing can be read. */
	hub[0].team->generation = UINT64_MAX;
	CHECK(mmc_request_advert(request).generation != 0);
	end(request);
}

/* An advert offers a result in engine memory from the start. */
static void engine_memory(void)
{
	struct mmc_request *request;
	struct mmc_advert advert;
	uint8_t *memory;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_allocate(hub[0].engine, sizeof(recv),
				     (void **)&memory),
		 0);
	request = hub_gather(0, memory, HUB_CHUNK_BYTES);
	advert = mmc_request_advert(request);
	CHECK(advert.has_data);
	CHECK_EQ(advert.data_address, (uintptr_t)memory);
	CHECK(hub[0].regions[advert.data_key].live);
	mmc_request_cancel(request);
	mmc_request_free(request);
	mmc_memory_free(hub[0].engine, memory);
	hub_close();
}

/* If memory cannot be registered, the advert offers nothing. */
static void nothing_to_read(void)
{
	struct mmc_request *request;

	hub_open(&readable);
	hub[0].register_rv = -MMC_ENOMEM;
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	CHECK_EQ(mmc_request_advert(request).generation, 0);
	CHECK_EQ(hub[0].nregions, 0);
	end(request);
}

/* The result is deregistered at once; after a failure, only when the team closes. */
static void until_when(void)
{
	for (int failed = 0; failed <= 1; failed++) {
		struct mmc_request *request;
		uint32_t key;

		hub_open(&readable);
		request = hub_gather(0, recv, HUB_CHUNK_BYTES);
		mmc_request_register(request);
		key = request->data.key;
		CHECK(request->registered);
		CHECK_EQ(request->data.address, (uintptr_t)recv);
		CHECK_EQ(hub[0].regions[key].nbytes, sizeof(recv));
		mmc_request_deregister(request, failed);
		CHECK(!request->registered);
		CHECK_EQ(hub[0].regions[key].live, failed);
		mmc_request_deregister(request, failed);
		end(request);
		CHECK(!hub[0].regions[key].live);
	}
}

CHECK_MAIN(CHECK_TEST(user_memory), CHECK_TEST(engine_memory),
	   CHECK_TEST(nothing_to_read), CHECK_TEST(until_when))
