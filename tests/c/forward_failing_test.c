/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of several nodes that fail: all ranks of all nodes learn of it. */
#include "node/forward.h"

#include <pthread.h>
#include <sched.h>

#include "node_jobs.h"
#include "support/prng.h"

enum { NBYTES = 3000 };

static struct leaders leaders;
static struct job job;

/* One rank's gathers, until one fails. */
struct gatherer {
	uint32_t rank;
	uint32_t ncancel; /* the operation that it cancels; UINT32_MAX: none */
	int error;
	struct mmc_failure failure;
};

/*
 * Opens ranks 0, 1 and 4 on the first node, and 2 and 3 on the second, which ranks 1 and 3
 * lead on the first rail, and 4 and 2 on the second.
 */
static void open_five_over(uint32_t nrails)
{
	static const uint32_t nodes[5] = { 0, 0, 1, 1, 0 };
	struct mmc_node_stream_options options = members_options(1);

	leaders_open(&leaders, 2, nrails);
	job = (struct job){
		.nranks = 5,
		.nnodes = 2,
		.leaders = { 1, 3, 4, 2 },
	};
	memcpy(job.nodes, nodes, sizeof(nodes));
	job_open(&job, &leaders, options);
}

static void open_five(void)
{
	open_five_over(1);
}

static void close_five(void)
{
	job_close(&job);
	leaders_close(&leaders);
}

static int start(uint32_t rank, uint8_t *recv,
		 struct mmc_node_request **request)
{
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.recv = recv,
	};

	return mmc_node_start(job.streams[rank], &operation, 0, request);
}

static void *gather_until_it_fails(void *argument)
{
	struct gatherer *gatherer = argument;
	uint8_t *recv = calloc(job.nranks, NBYTES);

	for (uint32_t i = 0; gatherer->error == 0; i++) {
		struct mmc_node_request *request;
		int rv = start(gatherer->rank, recv, &request);

		/* One that has ended at once cannot be cancelled. */
		if (i >= gatherer->ncancel && request != NULL)
			mmc_node_request_cancel(request);
		while (rv == MMC_EAGAIN)
			rv = mmc_node_request_wait(request, MMC_S_NS);
		gatherer->error = rv;
		mmc_node_request_free(request);
	}
	mmc_node_stream_failure(job.streams[gatherer->rank],
				&gatherer->failure);
	free(recv);
	return NULL;
}

/* Lets all ranks gather until one cancels; checks that all of them end. */
static void run_until(uint32_t canceler, uint32_t ncancel, uint32_t nrails)
{
	struct gatherer gatherers[5];
	pthread_t threads[5];

	open_five_over(nrails);
	for (uint32_t r = 0; r < 5; r++) {
		gatherers[r] = (struct gatherer){
			.rank = r,
			.ncancel = r == canceler ? ncancel : UINT32_MAX,
		};
		pthread_create(&threads[r], NULL, gather_until_it_fails,
			       &gatherers[r]);
	}
	for (uint32_t r = 0; r < 5; r++) {
		pthread_join(threads[r], NULL);
		CHECK(gatherers[r].error < 0);
		/* A leader that has none under way when it learns of it just leaves. */
		CHECK(gatherers[r].failure.error == -MMC_ECANCELED ||
		      gatherers[r].failure.error == -MMC_ELEFT);
		if (job.nodes[r] == job.nodes[canceler]) {
			CHECK_EQ(gatherers[r].failure.error, -MMC_ECANCELED);
			CHECK_EQ(gatherers[r].failure.culprit, canceler);
		} else {
			uint32_t culprit = gatherers[r].failure.culprit;

			CHECK(job_between(&job, &leaders, culprit) != NULL);
			CHECK_EQ(job.nodes[culprit], job.nodes[canceler]);
		}
	}
	close_five();
}

static void a_failure_reaches_all_nodes(void)
{
	struct mmc_prng prng = { check_seed() };

	for (uint32_t canceler = 0; canceler < 5; canceler++)
		for (uint32_t i = 0; i < 4; i++)
			run_until(canceler, (uint32_t)mmc_prng_below(&prng, 20),
				  1 + i % 2);
}

/* Moves all ranks by turns until the first has failed. */
static void move_until_failed(uint32_t rank, struct mmc_node_request **requests)
{
	while (mmc_node_request_wait(requests[rank], MMC_MS_NS) == MMC_EAGAIN)
		for (uint32_t r = 0; r < 5; r++)
			if (requests[r] != NULL)
				mmc_node_request_wait(requests[r], 0);
}

/* Frees requests of a stream that has failed, once each rank has learnt of it. */
static void free_all(struct mmc_node_request **requests)
{
	for (uint32_t r = 0; r < 5; r++) {
		while (requests[r] != NULL &&
		       mmc_node_request_wait(requests[r], MMC_MS_NS) ==
			       MMC_EAGAIN)
			;
		mmc_node_request_free(requests[r]);
	}
}

/*
 * A node that starts after another one has failed names the cause, not merely that
 * something had failed before.
 */
static void a_late_node_learns_of_the_cause(void)
{
	static uint8_t recv[5][5 * NBYTES];
	struct mmc_node_request *requests[5] = { NULL };
	struct mmc_failure failure;

	open_five();
	for (uint32_t r = 0; r < 5; r++)
		if (job.nodes[r] == 0)
			CHECK_EQ(start(r, recv[r], &requests[r]), MMC_EAGAIN);
	mmc_node_request_wait(requests[1], MMC_MS_NS);
	CHECK(mmc_node_is_forwarding(job.streams[1]));
	mmc_node_request_cancel(requests[1]);
	for (uint32_t r = 2; r < 4; r++)
		CHECK(start(r, recv[r], &requests[r]) != -MMC_EINVAL);
	for (uint32_t r = 2; r < 4; r++) {
		if (requests[r] != NULL)
			move_until_failed(r, requests);
		mmc_node_stream_failure(job.streams[r], &failure);
		CHECK_EQ(failure.error, -MMC_ECANCELED);
		CHECK_EQ(failure.culprit, 1);
	}
	free_all(requests);
	close_five();
}

/* Where the stream between nodes has failed before, its failure is the cause. */
static void a_stream_between_that_has_failed(void)
{
	static uint8_t recv[5][5 * NBYTES];
	const struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 8,
		.recv = recv[0],
	};
	struct mmc_node_request *requests[5] = { NULL };
	struct mmc_request *request;
	struct mmc_failure failure;

	open_five();
	CHECK_EQ(mmc_start(job.between[1], &operation, 0, &request),
		 MMC_EAGAIN);
	mmc_request_cancel(request);
	mmc_request_free(request);
	for (uint32_t r = 2; r < 4; r++)
		start(r, recv[r], &requests[r]);
	move_until_failed(2, requests);
	for (uint32_t r = 2; r < 4; r++) {
		mmc_node_stream_failure(job.streams[r], &failure);
		CHECK_EQ(failure.error, -MMC_ECANCELED);
		CHECK_EQ(failure.culprit, 3);
		CHECK_EQ(failure.epoch, 1);
	}
	free_all(requests);
	close_five();
}

static void *wait_until_failed(void *request)
{
	while (mmc_node_request_wait(request, MMC_S_NS) == MMC_EAGAIN)
		;
	return NULL;
}

/* Waits until a thread waits for a piece of a leader's stream. */
static void await_waiting(struct mmc_node_stream *stream)
{
	bool waits = false;

	while (!waits) {
		sched_yield();
		pthread_mutex_lock(&stream->mutex);
		waits = stream->waits_between;
		pthread_mutex_unlock(&stream->mutex);
	}
}

/* A thread that waits for a piece gives it up itself when another thread cancels. */
static void a_cancel_while_a_thread_waits(void)
{
	static uint8_t recv[5][5 * NBYTES];

	for (int round = 0; round < 20; round++) {
		struct mmc_node_request *requests[5];
		pthread_t thread;

		open_five();
		for (uint32_t r = 0; r < 5; r++)
			if (job.nodes[r] == 0)
				start(r, recv[r], &requests[r]);
		pthread_create(&thread, NULL, wait_until_failed, requests[1]);
		await_waiting(job.streams[1]);
		mmc_node_request_cancel(requests[1]);
		pthread_join(thread, NULL);
		for (uint32_t i = 0; i < MMC_NODE_SLOTS_MAX; i++)
			CHECK(job.streams[1]->forwarded[i] == NULL);
		for (uint32_t r = 0; r < 5; r++)
			if (job.nodes[r] == 0) {
				CHECK_EQ(mmc_node_request_wait(requests[r], 0),
					 -MMC_ECANCELED);
				mmc_node_request_free(requests[r]);
			}
		close_five();
	}
}

/* Nodes that start different operations are told, whoever of them looks first. */
static void nodes_that_disagree(void)
{
	static uint8_t recv[5][5 * NBYTES];
	struct mmc_node_request *requests[5];
	struct mmc_failure failure;

	open_five();
	for (uint32_t r = 0; r < 5; r++) {
		const struct mmc_operation operation = {
			.kind = job.nodes[r] == 0 ? MMC_ALLGATHER : MMC_BCAST,
			.root = 2,
			.block_bytes = 100,
			.recv = recv[r],
		};

		mmc_node_start(job.streams[r], &operation, 0, &requests[r]);
	}
	/* Rank 2 is its Bcast's root, and waits for nobody. */
	CHECK(requests[2] == NULL);
	for (uint32_t r = 0; r < 5; r++) {
		if (requests[r] == NULL)
			continue;
		move_until_failed(r, requests);
		CHECK_EQ(mmc_node_request_wait(requests[r], 0), -MMC_EMISMATCH);
		mmc_node_request_failure(requests[r], &failure);
		CHECK_EQ(failure.kind_min, MMC_ALLGATHERV);
		CHECK_EQ(failure.kind_max, MMC_BCAST);
	}
	free_all(requests);
	close_five();
}

/* Closing a node leader's stream frees what it has begun to exchange. */
static void a_close_while_pieces_are_forwarded(void)
{
	static uint8_t recv[5][5 * NBYTES];
	struct mmc_node_request *requests[5];

	open_five();
	for (uint32_t r = 0; r < 5; r++)
		if (job.nodes[r] == 0)
			CHECK_EQ(start(r, recv[r], &requests[r]), MMC_EAGAIN);
	mmc_node_request_wait(requests[1], MMC_MS_NS);
	CHECK(mmc_node_is_forwarding(job.streams[1]));
	close_five();
}

CHECK_MAIN(CHECK_TEST(a_failure_reaches_all_nodes),
	   CHECK_TEST(a_late_node_learns_of_the_cause),
	   CHECK_TEST(a_stream_between_that_has_failed),
	   CHECK_TEST(a_cancel_while_a_thread_waits),
	   CHECK_TEST(nodes_that_disagree),
	   CHECK_TEST(a_close_while_pieces_are_forwarded))
