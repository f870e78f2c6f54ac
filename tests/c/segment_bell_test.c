/* SPDX-License-Identifier: BSD-3-Clause */
/* Bells: who awaits a node hears every ring, and is heard by nobody who need not ring. */
#include <pthread.h>

#include "node/segment.h"
#include "node_processes.h"

enum { NROUNDS = 10000, NOPERATIONS = 2000 };

static struct members members;

static uint32_t rings_of(uint32_t member)
{
	return atomic_load(&members.nodes[0]->head->bells[member].nrings);
}

static void a_ring_before_the_call_is_not_lost(void)
{
	uint32_t nrings = 0;

	members_open(&members, 2, members_options(2));
	mmc_node_rouse(members.nodes[0]);
	CHECK_EQ(mmc_node_await(members.nodes[0], &nrings), 0);
	CHECK_EQ(nrings, 1);
	/* Having returned, it hears the next ring, too. */
	mmc_node_ring(members.nodes[1], 0);
	CHECK_EQ(mmc_node_await(members.nodes[0], &nrings), 0);
	CHECK_EQ(nrings, 2);
	members_close(&members);
}

/* Many rings while nobody awaits them make one call return, not many. */
static void rings_are_counted_once(void)
{
	uint32_t nrings = 0;

	members_open(&members, 2, members_options(2));
	for (int i = 0; i < 5; i++)
		mmc_node_rouse(members.nodes[0]);
	CHECK_EQ(mmc_node_await(members.nodes[0], &nrings), 0);
	CHECK_EQ(nrings, 5);
	members_close(&members);
}

static void a_bell_that_is_not_armed_stays_silent(void)
{
	members_open(&members, 2, members_options(2));
	mmc_node_ring(members.nodes[0], 1);
	CHECK_EQ(rings_of(1), 0);
	mmc_node_arm(members.nodes[1]);
	CHECK_EQ(rings_of(1), 0);
	mmc_node_ring(members.nodes[0], 1);
	CHECK_EQ(rings_of(1), 1);
	/* One ring is enough until the member has listened again. */
	mmc_node_ring(members.nodes[0], 1);
	CHECK_EQ(rings_of(1), 1);
	CHECK_EQ(rings_of(0), 0);
	members_close(&members);
}

/* ---- threads ------------------------------------------------------------- */

static _Atomic uint32_t nmoves;
static _Atomic uint32_t nseen;
static _Atomic bool ends;

/* Sees every move of the other member, or else sleeps for ever. */
static void *listen_to_moves(void *argument)
{
	struct mmc_node *node = argument;
	uint32_t nrings = 0;

	while (atomic_load(&nseen) < NROUNDS) {
		mmc_node_await(node, &nrings);
		atomic_store(&nseen, atomic_load(&nmoves));
		mmc_futex_wake(&nseen);
	}
	return NULL;
}

static void no_ring_is_lost(void)
{
	pthread_t thread;
	uint32_t seen;

	members_open(&members, 2, members_options(2));
	atomic_store(&nmoves, 0);
	atomic_store(&nseen, 0);
	mmc_node_arm(members.nodes[0]);
	pthread_create(&thread, NULL, listen_to_moves, members.nodes[0]);
	for (uint32_t i = 1; i <= NROUNDS; i++) {
		atomic_store(&nmoves, i);
		mmc_node_ring(members.nodes[1], 0);
		while ((seen = atomic_load(&nseen)) != i)
			mmc_futex_wait(&nseen, seen, LONG_NS);
	}
	pthread_join(thread, NULL);
	CHECK(rings_of(0) <= NROUNDS);
	members_close(&members);
}

static void *await_once(void *argument)
{
	uint32_t nrings = 0;

	mmc_node_await(argument, &nrings);
	atomic_store(&ends, true);
	return NULL;
}

static void a_sleeper_can_be_roused(void)
{
	pthread_t thread;

	members_open(&members, 2, members_options(2));
	atomic_store(&ends, false);
	pthread_create(&thread, NULL, await_once, members.nodes[0]);
	usleep(5000);
	CHECK(!atomic_load(&ends));
	mmc_node_rouse(members.nodes[0]);
	pthread_join(thread, NULL);
	members_close(&members);
}

/* ---- requests that notify ------------------------------------------------ */

/* Starts a Bcast of rank 1's 8 bytes, which notifies of its end. */
static struct mmc_node_request *start_notifying(struct mmc_node_stream *stream,
						uint64_t *word)
{
	const struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.root = 1,
		.notifies = 1,
		.block_bytes = sizeof(*word),
		.recv = word,
	};
	struct mmc_node_request *request;

	CHECK(mmc_node_start(stream, &operation, 0, &request) >= 0);
	return request;
}

/* Each member that fills its part rings, though nobody has the whole result yet. */
static void each_part_rings(void)
{
	static uint8_t recv[3][3];
	struct mmc_node_request *requests[3];

	members_open(&members, 3, members_options(3));
	for (uint32_t i = 0; i < 3; i++) {
		const struct mmc_operation operation = {
			.kind = MMC_ALLGATHER,
			.notifies = i == 0,
			.block_bytes = 1,
			.recv = recv[i],
		};

		CHECK_EQ(rings_of(0), i == 2);
		CHECK_EQ(mmc_node_start(members.streams[i], &operation, 0,
					&requests[i]),
			 i == 2 ? 0 : MMC_EAGAIN);
	}
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(mmc_node_request_wait(requests[i], 0), 0);
		mmc_node_request_free(requests[i]);
	}
	members_close(&members);
}

/*
 * A call that found nothing to watch sleeps until a ring; it must learn of the first
 * request, since it alone looks whether members are alive meanwhile.
 */
static void the_first_request_wakes_a_sleeper(void)
{
	struct mmc_node_request *request;
	uint64_t word;
	pthread_t thread;

	members_open(&members, 2, members_options(2));
	atomic_store(&ends, false);
	pthread_create(&thread, NULL, await_once, members.nodes[0]);
	usleep(20000);
	request = start_notifying(members.streams[0], &word);
	for (int i = 0; i < 5000 && !atomic_load(&ends); i++)
		usleep(1000);
	CHECK(atomic_load(&ends));
	mmc_node_rouse(members.nodes[0]);
	pthread_join(thread, NULL);
	mmc_node_request_cancel(request);
	mmc_node_request_free(request);
	members_close(&members);
}

/* Carries out rank 1's operations without ever waiting for rank 0. */
static void *send_words(void *argument)
{
	struct mmc_node_stream *stream = argument;
	uint64_t word;

	for (uint64_t i = 0; i < NOPERATIONS; i++) {
		const struct mmc_operation operation = {
			.kind = MMC_BCAST,
			.root = 1,
			.block_bytes = sizeof(word),
			.recv = &word,
		};
		struct mmc_node_request *request;

		word = i + 1;
		if (mmc_node_start(stream, &operation, LONG_NS, &request) != 0)
			break;
	}
	return NULL;
}

/* A member that only awaits its node completes all its requests. */
static void each_end_is_notified(void)
{
	uint32_t nrings = 0;
	pthread_t thread;

	members_open(&members, 2, members_options(2));
	pthread_create(&thread, NULL, send_words, members.streams[1]);
	for (uint64_t i = 0; i < NOPERATIONS; i++) {
		uint64_t word = 0;
		struct mmc_node_request *request =
			start_notifying(members.streams[0], &word);

		while (request != NULL &&
		       mmc_node_request_wait(request, 0) == MMC_EAGAIN)
			mmc_node_await(members.nodes[0], &nrings);
		mmc_node_request_free(request);
		if (!CHECK_EQ(word, i + 1))
			break;
	}
	pthread_join(thread, NULL);
	CHECK_EQ(atomic_load(&members.nodes[0]->nwatched), 0);
	CHECK_EQ(atomic_load(&members.streams[0]->head->nattended), 0);
	members_close(&members);
}

/* Where a request is watched, a member's death is noticed without any ring. */
static void a_death_is_noticed_without_a_ring(void)
{
	processes_act *const acts[] = { NULL, act_idle };
	struct mmc_node_request *request;
	struct mmc_failure failure;
	struct processes processes;
	uint32_t nrings = 0;
	uint64_t word;

	processes_open(&processes, 2, members_options(2), acts);
	request = start_notifying(processes.stream, &word);
	processes_kill(&processes, 1);
	while (mmc_node_request_wait(request, 0) == MMC_EAGAIN)
		CHECK_EQ(mmc_node_await(processes.node, &nrings), 0);
	mmc_node_request_failure(request, &failure);
	CHECK_EQ(failure.error, -MMC_EGONE);
	CHECK_EQ(failure.culprit, 1);
	mmc_node_request_free(request);
	processes_close(&processes);
}

CHECK_MAIN(CHECK_TEST(a_ring_before_the_call_is_not_lost),
	   CHECK_TEST(rings_are_counted_once),
	   CHECK_TEST(a_bell_that_is_not_armed_stays_silent),
	   CHECK_TEST(no_ring_is_lost), CHECK_TEST(a_sleeper_can_be_roused),
	   CHECK_TEST(each_part_rings),
	   CHECK_TEST(the_first_request_wakes_a_sleeper),
	   CHECK_TEST(each_end_is_notified),
	   CHECK_TEST(a_death_is_noticed_without_a_ring))
