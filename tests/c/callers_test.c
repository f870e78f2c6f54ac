/* SPDX-License-Identifier: BSD-3-Clause */
/* Callers wait for their operations, in an engine that has a responder thread. */
#include "engine/threads/callers.h"

#include <sched.h>

#include "hub.h"

/* Longer than anything here takes: a test that waits this long has failed. */
#define LONG_NS (20 * MMC_S_NS)

static uint8_t recv[2 * HUB_CHUNK_BYTES];

/*
 * A caller sleeps by its own clock until something is due by the endpoint's clock.
 * However far the two clocks are apart, the caller neither oversleeps nor spins.
 */
static void sleeps_by_any_clock(void)
{
	static const uint64_t clocks_ns[] = { 1, UINT64_C(1) << 60 };

	for (size_t i = 0; i < sizeof(clocks_ns) / sizeof(*clocks_ns); i++) {
		struct mmc_request *request;
		uint64_t begin_ns = mmc_clock_now_ns();

		hub_open(&(struct hub_options){
			.nranks = 2,
			.nplayed = 1,
			.threaded = true,
			.clock_ns = clocks_ns[i],
			.timeout_ns = 100 * MMC_MS_NS,
		});
		request = hub_gather(0, recv, HUB_CHUNK_BYTES);
		CHECK_EQ(mmc_request_wait(request, LONG_NS), -MMC_ENOANSWER);
		CHECK(mmc_clock_now_ns() - begin_ns < LONG_NS / 2);
		CHECK(hub[0].npolls < 1000);
		mmc_request_free(request);
		hub_close();
	}
}

/* If a caller whose slice has ended does not come back, the responder takes over. */
static void stays_away(void)
{
	struct mmc_request *request;

	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.threaded = true,
		.timeout_ns = 100 * MMC_MS_NS,
	});
	request = hub_gather(0, recv, HUB_CHUNK_BYTES);
	CHECK_EQ(mmc_request_wait(request, MMC_MS_NS), MMC_EAGAIN);
	while (!mmc_request_is_complete(request))
		sched_yield();
	CHECK_EQ(mmc_request_wait(request, 0), -MMC_ENOANSWER);
	mmc_request_free(request);
	hub_close();
}

CHECK_MAIN(CHECK_TEST(sleeps_by_any_clock), CHECK_TEST(stays_away))
