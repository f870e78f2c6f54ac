/* SPDX-License-Identifier: BSD-3-Clause */
/* A proxy carries out operations as this process's engine would, and its end is noticed. */
#include <mpimcast/proxy.h>
#include <signal.h>
#include <sys/prctl.h>

#include "membership.h"
#include "offloaded.h"
#include "support/clock.h"

#define NBYTES_MAX 100000

static uint8_t results[RANKS_MAX][RANKS_MAX * NBYTES_MAX];
static uint8_t blocks[RANKS_MAX][NBYTES_MAX];

/* Returns an Allgather of short blocks into the results of a rank, in place. */
static struct mmc_operation gather_in_place(uint32_t rank)
{
	return (struct mmc_operation){
		.kind = MMC_ALLGATHER,
		.block_bytes = 5000,
		.recv = results[rank],
	};
}

static uint8_t byte_of(uint32_t rank, uint32_t round, uint64_t at)
{
	return (uint8_t)(at * 7 + at / 251 + rank * 31 + round * 57);
}

/* Gathers a block of `nbytes` from each rank, and checks every byte. */
static void gather(struct job *job, uint32_t round, uint64_t nbytes)
{
	for (uint32_t r = 0; r < job->nranks; r++) {
		const struct mmc_operation operation = {
			.kind = MMC_ALLGATHER,
			.block_bytes = nbytes,
			.send = blocks[r],
			.recv = results[r],
		};

		memset(results[r], 0xee, sizeof(results[r]));
		for (uint64_t i = 0; i < nbytes; i++)
			blocks[r][i] = byte_of(r, round, i);
		CHECK(begin(&job->ranks[r], &operation) >= 0);
	}
	for (uint32_t r = 0; r < job->nranks; r++)
		CHECK_EQ(finish(&job->ranks[r]), 0);
	for (uint32_t r = 0; r < job->nranks; r++) {
		for (uint64_t i = 0; i < job->nranks * nbytes; i++)
			if (!CHECK_EQ(results[r][i],
				      byte_of((uint32_t)(i / nbytes), round,
					      i % nbytes)))
				return;
		CHECK_EQ(results[r][job->nranks * nbytes], 0xee);
	}
}

/* Ranks with and without a proxy gather blocks of all sizes, with and without loss. */
static void gathers(void)
{
	static const uint64_t sizes[] = {
		0, 1, 999, 1000, 1001, 12345, 99999, 7
	};
	static const uint32_t proxied[] = { 7, 5, 2, 0 };

	begin_proxy();
	for (size_t i = 0; i < 2 * sizeof(proxied) / sizeof(*proxied); i++) {
		struct job job = {
			.nranks = 3,
			.proxied = proxied[i / 2],
			.fault = i % 2 == 1 ? "loss=0.1,dup=0.1,seed=7" : NULL,
		};

		open_job(&job);
		for (uint32_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
			gather(&job, k, sizes[k]);
		close_job(&job);
	}
	end_proxy();
}

/* Blocks of different sizes arrive where they belong, and nothing is written between. */
static void gathers_blocks_apart(void)
{
	static const uint64_t nbytes[] = { 5000, 0, 777 };
	static const uint64_t offsets[] = { 9000, 3, 100 };
	struct job job = { .nranks = 3, .proxied = 3 };

	begin_proxy();
	open_job(&job);
	for (uint32_t r = 0; r < 3; r++) {
		const struct mmc_operation operation = {
			.kind = MMC_ALLGATHERV,
			.blocks_bytes = nbytes,
			.offsets_bytes = offsets,
			.send = blocks[r],
			.recv = results[r],
		};

		memset(results[r], 0xee, sizeof(results[r]));
		memset(blocks[r], (int)r + 1, nbytes[r]);
		CHECK(begin(&job.ranks[r], &operation) >= 0);
	}
	for (uint32_t r = 0; r < 3; r++)
		CHECK_EQ(finish(&job.ranks[r]), 0);
	for (uint32_t r = 0; r < 3; r++)
		for (uint64_t i = 0; i < 20000; i++) {
			uint8_t expected = 0xee;

			if (i >= 9000 && i < 14000)
				expected = 1;
			if (i >= 100 && i < 877)
				expected = 3;
			if (!CHECK_EQ(results[r][i], expected))
				break;
		}
	close_job(&job);
	end_proxy();
}

/* Many operations are started at once, more than a bridge takes. */
static void starts_many_at_once(void)
{
	enum { NOPS = 600 };
	static struct mmc_request *requests[2][NOPS];
	static uint32_t values[2][NOPS];
	struct job job = { .nranks = 2, .proxied = 3 };

	begin_proxy();
	open_job(&job);
	for (uint32_t i = 0; i < NOPS; i++)
		for (uint32_t r = 0; r < 2; r++) {
			const struct mmc_operation operation = {
				.kind = MMC_BCAST,
				.root = i % 2,
				.block_bytes = sizeof(uint32_t),
				.recv = &values[r][i],
			};

			values[r][i] = r == i % 2 ? i * 3 : 0;
			CHECK(mmc_start(job.ranks[r].stream, &operation, 0,
					&requests[r][i]) >= 0);
		}
	for (uint32_t i = 0; i < NOPS; i++)
		for (uint32_t r = 0; r < 2; r++) {
			job.ranks[r].request = requests[r][i];
			CHECK_EQ(finish(&job.ranks[r]), 0);
			CHECK_EQ(values[r][i], i * 3);
		}
	close_job(&job);
	end_proxy();
}

/* A rank that has a proxy and waits for each operation has no thread of the library. */
static void needs_no_thread(void)
{
	struct job job = { .nranks = 2, .proxied = 3 };
	struct mmc_runner runner;

	begin_proxy();
	open_job(&job);
	gather(&job, 1, 5000);
	mmc_team_runner(job.ranks[0].team, &runner);
	CHECK_EQ(runner.kind, MMC_RUNNER_PROXY);
	CHECK_EQ(runner.pid, getpid());
	CHECK(strcmp(runner.name, proxy_name) == 0);
	close_job(&job);
	end_proxy();
}

/* Who cancels an operation gets its buffers back, and the other rank learns of it. */
static void cancels(void)
{
	struct job job = { .nranks = 2, .proxied = 1 };
	const struct mmc_operation operation = gather_in_place(0);
	const struct mmc_operation other = gather_in_place(1);

	begin_proxy();
	open_job(&job);
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	mmc_request_cancel(job.ranks[0].request);
	CHECK_EQ(mmc_request_wait(job.ranks[0].request, 0), -MMC_ECANCELED);
	/* It may learn of it as soon as it starts. */
	begin(&job.ranks[1], &other);
	CHECK(finish(&job.ranks[1]) < 0);
	mmc_request_free(job.ranks[0].request);
	/* Nothing more is possible on the stream. */
	CHECK(begin(&job.ranks[0], &operation) != 0);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_EPOISONED);
	close_job(&job);
	end_proxy();
}

/* When the proxy is killed, its ranks fail at once, and the others soon. */
static void killed(void)
{
	/* The timeout is such that nobody could wait for it. */
	struct job job = {
		.nranks = 3,
		.proxied = 3,
		.timeout_ns = 1000 * MMC_S_NS,
	};
	struct mmc_failure failure;
	const struct mmc_operation mine = gather_in_place(0);

	fork_proxy();
	open_job(&job);
	gather(&job, 1, 5000);
	for (uint32_t r = 1; r < 3; r++) {
		const struct mmc_operation operation = gather_in_place(r);

		CHECK_EQ(begin(&job.ranks[r], &operation), MMC_EAGAIN);
	}
	kill_proxy();
	CHECK_EQ(finish(&job.ranks[1]), -MMC_EIO);
	CHECK(strstr(mmc_last_error(), "has ended") != NULL);
	CHECK_EQ(finish(&job.ranks[2]), -MMC_EGONE);
	mmc_stream_failure(job.ranks[1].stream, &failure);
	CHECK_EQ(failure.error, -MMC_EIO);
	/* A rank without an operation in flight learns of it when it starts one. */
	CHECK(begin(&job.ranks[0], &mine) != 0);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_EIO);
	close_job(&job);
}

/* An operation can be cancelled even if nobody is left to carry that out. */
static void cancelled_after_the_end(void)
{
	struct job job = { .nranks = 2, .proxied = 1 };
	const struct mmc_operation operation = gather_in_place(0);

	fork_proxy();
	open_job(&job);
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	kill_proxy();
	mmc_request_cancel(job.ranks[0].request);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_EIO);
	CHECK(begin(&job.ranks[0], &operation) != 0);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_EIO);
	close_job(&job);
}

/* A proxy that stands still is given up within the timeout; nobody waits for ever. */
static void stopped(void)
{
	struct job job = {
		.nranks = 2,
		.proxied = 1,
		.timeout_ns = MMC_S_NS,
	};
	const struct mmc_operation mine = gather_in_place(0);

	fork_proxy();
	open_job(&job);
	gather(&job, 1, 5000);
	CHECK_EQ(begin(&job.ranks[0], &mine), MMC_EAGAIN);
	kill(proxy_pid, SIGSTOP);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_EIO);
	kill_proxy();
	close_job(&job);
}

/* A proxy that works is not given up, however long an operation waits for a rank. */
static void patient(void)
{
	struct job job = {
		.nranks = 2,
		.proxied = 1,
		.timeout_ns = MMC_S_NS / 2,
	};
	struct mmc_request *request;
	uint64_t until_ns;
	const struct mmc_operation mine = gather_in_place(0);
	const struct mmc_operation other = gather_in_place(1);

	begin_proxy();
	open_job(&job);
	CHECK_EQ(begin(&job.ranks[0], &mine), MMC_EAGAIN);
	request = job.ranks[0].request;
	until_ns = mmc_clock_now_ns() + 3 * job.timeout_ns;
	while (mmc_clock_now_ns() < until_ns)
		CHECK_EQ(mmc_request_wait(request, SLICE_NS), MMC_EAGAIN);
	CHECK(begin(&job.ranks[1], &other) >= 0);
	CHECK_EQ(finish(&job.ranks[0]), 0);
	CHECK_EQ(finish(&job.ranks[1]), 0);
	close_job(&job);
	end_proxy();
}

/* A name has one proxy at a time; a drained one gives it up, and serves on. */
static void names(void)
{
	struct job job = { .nranks = 2, .proxied = 3 };
	struct mmc_proxy *other;
	struct mmc_runner runner;

	begin_proxy();
	CHECK_EQ(mmc_proxy_open(proxy_name, &other), -MMC_EADDRINUSE);
	CHECK_EQ(mmc_proxy_open("", &other), -MMC_EINVAL);
	CHECK_EQ(mmc_proxy_find(proxy_name, &runner), 0);
	CHECK_EQ(runner.kind, MMC_RUNNER_PROXY);
	open_job(&job);
	mmc_proxy_drain(proxy);
	while (mmc_proxy_find(proxy_name, &runner) == 0)
		;
	CHECK_EQ(mmc_proxy_open(proxy_name, &other), 0);
	mmc_proxy_close(other);
	gather(&job, 1, 5000);
	close_job(&job);
	end_proxy();
	CHECK_EQ(mmc_proxy_find(proxy_name, &runner), -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "no proxy") != NULL);
}

static int forked[2]; /* a pipe: the proxy's child writes a byte to it */

/* Forks a child, which holds all descriptors of its parent until the parent ends. */
static void fork_child(int number)
{
	(void)number;
	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(forked[1], "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

/* A proxy detaches a rank once, even if a child that it has forked holds the rank's socket. */
static void forks(void)
{
	struct job job = { .nranks = 2, .proxied = 3 };
	char byte;

	CHECK_EQ(pipe(forked), 0);
	signal(SIGUSR1, fork_child);
	fork_proxy();
	open_job(&job);
	kill(proxy_pid, SIGUSR1);
	CHECK_EQ(read(forked[0], &byte, 1), 1);
	close_job(&job);
	for (uint32_t round = 0; round < 3; round++) {
		open_job(&job);
		gather(&job, round, 5000);
		close_job(&job);
	}
	kill_proxy();
}

/* A proxy whose ranks have gone leaves their groups, though it has nothing to do. */
static void leaves_groups(void)
{
	struct job job = { .nranks = 2, .proxied = 3 };
	uint32_t group;

	begin_proxy();
	open_job(&job);
	gather(&job, 1, 5000);
	group = options_of(&job, 0).group;
	CHECK(is_joined(group));
	close_job(&job);
	while (is_joined(group))
		usleep(10000);
	end_proxy();
}

CHECK_MAIN(CHECK_TEST(gathers), CHECK_TEST(gathers_blocks_apart),
	   CHECK_TEST(starts_many_at_once), CHECK_TEST(needs_no_thread),
	   CHECK_TEST(cancels), CHECK_TEST(killed), CHECK_TEST(stopped),
	   CHECK_TEST(cancelled_after_the_end), CHECK_TEST(patient),
	   CHECK_TEST(names), CHECK_TEST(forks), CHECK_TEST(leaves_groups))
