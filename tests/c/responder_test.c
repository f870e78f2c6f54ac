/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's thread, which moves an engine while no caller is inside. */
#include "engine/threads/responder.h"

#include "engine/threads/lock.h"
#include "hub.h"
#include "lock_waiters.h"

static uint8_t recv[2 * HUB_CHUNK_BYTES];

static struct mmc_request *start(uint32_t notifies)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = HUB_CHUNK_BYTES,
		.notifies = notifies,
		.recv = recv,
	};
	struct mmc_request *request;

	CHECK_EQ(mmc_start(hub[0].stream, &operation, 0, &request), MMC_EAGAIN);
	return request;
}

/*
 * The responder's timer has a clock of its own: what is due by the endpoint's clock is
 * done in time, whenever that clock started, and not more often than it is due.
 */
static void wakes_by_any_clock(void)
{
	static const uint64_t clocks_ns[] = { 1, UINT64_C(1) << 60 };

	for (size_t i = 0; i < sizeof(clocks_ns) / sizeof(*clocks_ns); i++) {
		uint64_t nended = 0;
		struct mmc_request *request;

		hub_open(&(struct hub_options){
			.nranks = 2,
			.nplayed = 1,
			.threaded = true,
			.clock_ns = clocks_ns[i],
			.timeout_ns = 100 * MMC_MS_NS,
		});
		request = start(1);
		CHECK_EQ(mmc_engine_await(hub[0].engine, &nended), 0);
		CHECK_EQ(nended, 1);
		CHECK_EQ(mmc_request_wait(request, 0), -MMC_ENOANSWER);
		CHECK(hub[0].npolls < 1000);
		mmc_request_free(request);
		hub_close();
	}
}

/* Woken while another thread has the lock, the responder sleeps until that gives it. */
static void sleeps_while_the_lock_is_held(void)
{
	hub_open(&(struct hub_options){
		.nranks = 2,
		.nplayed = 1,
		.threaded = true,
	});
	for (int i = 0; i < 10; i++) {
		mmc_lock_take(hub[0].engine);
		mmc_responder_wake(hub[0].engine);
		await_lock_waiters(hub[0].engine, 1);
		mmc_lock_give(hub[0].engine);
		await_lock_waiters(hub[0].engine, 0);
	}
	hub_close();
}

CHECK_MAIN(CHECK_TEST(wakes_by_any_clock),
	   CHECK_TEST(sleeps_while_the_lock_is_held))
