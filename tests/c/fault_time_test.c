/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault driver delays and reorders datagrams as its setting says. */
#include "fault_traffic.h"

static void reordered_datagrams_come_a_little_later(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("reorder=0.2,seed=3");
	struct mmc_event events[64];
	unsigned total = 0, nlate = 0;
	uint64_t next = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		unsigned count;

		memory_arrive(i, i);
		count = poll_all(endpoint, events);
		for (unsigned k = 0; k < count; k++) {
			uint64_t number = datagram_number(events[k].bytes);

			total++;
			if (number >= next)
				next = number + 1;
			else
				nlate++;
			CHECK(number + 64 > i);
		}
	}
	CHECK(nlate > TRIALS / 8 && nlate < TRIALS / 4);
	CHECK(total + 16 > TRIALS && total <= TRIALS);
	memory_unwrap(endpoint);
}

/* A reordered datagram comes out after a millisecond, even if no other follows. */
static void a_reordered_last_one_is_not_forgotten(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("reorder=1");
	struct mmc_event events[64];

	memory.now_ns = MMC_S_NS;
	memory_arrive(0, 42);
	CHECK_EQ(poll_all(endpoint, events), 0);
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), MMC_S_NS + MMC_MS_NS);
	memory.now_ns += MMC_MS_NS;
	CHECK_EQ(poll_all(endpoint, events), 1);
	CHECK_EQ(datagram_number(events[0].bytes), 42);
	CHECK_EQ(events[0].source, 3);
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), MMC_NEVER_NS);
	memory_unwrap(endpoint);
}

static void delays_keep_the_order(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("delay_us=100;delay_us=50;dir=tx,delay_us=30");
	struct mmc_event events[64];

	for (unsigned i = 0; i < 20; i += 2) {
		memory_arrive(i, i);
		memory_arrive(i + 1, i + 1);
		CHECK_EQ(poll_all(endpoint, events), 0);
		memory.now_ns += MMC_US_NS;
	}
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), 150 * MMC_US_NS);
	memory.now_ns = 154 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 10);
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQ(datagram_number(events[i].bytes), i);
	send_number(endpoint, 0, 77);
	CHECK_EQ(memory.nsent, 0);
	memory.now_ns += 30 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 10);
	CHECK_EQ(memory.nsent, 1);
	CHECK_EQ(datagram_number(memory.sent[0].bytes), 77);
	memory_unwrap(endpoint);
}

/* The driver holds back MMC_FAULT_HELD_MAX datagrams at most, and drops the rest. */
static void a_full_pool_loses(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("delay_us=10");
	struct mmc_event events[64];
	unsigned count = 0, more;

	for (unsigned i = 0; i < MMC_FAULT_HELD_MAX + 100; i++)
		CHECK_EQ(through(endpoint, i), 0);
	memory.now_ns += 10 * MMC_US_NS;
	while ((more = poll_all(endpoint, events)) > 0)
		count += more;
	CHECK_EQ(count, MMC_FAULT_HELD_MAX);
	CHECK_EQ(through(endpoint, 0), 0);
	memory.now_ns += 10 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 1);
	memory_unwrap(endpoint);
}

static void a_stall_keeps_everything_for_its_end(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("stall_ms=20,seed=4");
	struct mmc_event events[64];
	unsigned ntold = 0, nstalled = 0, waiting = 0;

	for (unsigned ms = 0; ms < 1000; ms++) {
		unsigned count;

		memory.now_ns += MMC_MS_NS;
		memory_arrive(MMC_INDEX_CONTROL, ms);
		count = poll_all(endpoint, events);
		waiting += 1 - count;
		if (count == 0) {
			uint64_t end_ns =
				endpoint->driver->deadline_ns(endpoint);

			nstalled++;
			CHECK(end_ns > memory.now_ns);
			CHECK(end_ns <= memory.now_ns + 20 * MMC_MS_NS);
		}
		for (unsigned k = 0; k < count; k++)
			ntold += datagram_number(events[k].bytes) <= ms;
	}
	CHECK_EQ(nstalled, 200);
	CHECK_EQ(ntold + waiting, 1000);
	CHECK(waiting <= 20);
	memory_unwrap(endpoint);
}

static void placed_events_pass_a_stall(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("stall_ms=10000,loss=1");
	struct mmc_event events[64];
	unsigned nplaced = 0;

	for (unsigned s = 0; s < 50; s++) {
		memory.now_ns += MMC_S_NS;
		memory.narrived = 1;
		memory.inbox[0] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = s,
		};
		CHECK_EQ(poll_all(endpoint, events), 1);
		nplaced += events[0].kind == MMC_EVENT_PLACED &&
			   events[0].cookie == s;
	}
	CHECK_EQ(nplaced, 50);
	memory_unwrap(endpoint);
}

CHECK_MAIN(CHECK_TEST(reordered_datagrams_come_a_little_later),
	   CHECK_TEST(a_reordered_last_one_is_not_forgotten),
	   CHECK_TEST(delays_keep_the_order), CHECK_TEST(a_full_pool_loses),
	   CHECK_TEST(a_stall_keeps_everything_for_its_end),
	   CHECK_TEST(placed_events_pass_a_stall))
