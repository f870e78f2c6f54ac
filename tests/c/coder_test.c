/* SPDX-License-Identifier: BSD-3-Clause */
/* The coder's thread does the tasks that it gets, and touches no memory that it must not. */
#include "engine/threads/coder.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include "code_group.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/threads/threads.h"
#include "support/bits.h"
#include "support/descriptor.h"

#define NDATA_MAX 20
#define NPARITY_MAX 6
#define CHUNK_BYTES_MAX 1500
#define ROUNDS 60

/* Chunks of this size keep the coder busy for a while; a test then fills them with MARK. */
#define LARGE_BYTES 60000u
#define MARK 0xee

/* How long a wake-up may take on a busy machine. */
#define PATIENCE_MS 60000

static struct mmc_engine *engine;
static struct mmc_prng prng;

/* A group that a task is to encode or to mend; it stands for the request of the task. */
struct problem {
	struct coded coded;
	unsigned nlost; /* 0: its parity is to be computed */
	uint8_t columns[NDATA_MAX];
	uint8_t rows[NPARITY_MAX];
	uint8_t *found[NDATA_MAX]; /* what is mended, or parity */
};

static struct problem problems[MMC_CODER_TASKS];

static void open(void)
{
	prng.state = check_seed();
	CHECK_EQ(mmc_engine_create(&engine), 0);
	CHECK(engine->coder == NULL);
	CHECK_EQ(mmc_coder_start(engine), 0);
	CHECK_EQ(mmc_coder_start(engine), 0);
	CHECK(engine->coder != NULL);
}

static unsigned draw(unsigned most)
{
	return 1 + (unsigned)mmc_prng_below(&prng, most);
}

static struct mmc_request *owner_of(struct problem *problem)
{
	return (struct mmc_request *)(void *)problem;
}

/* Draws a group of chunks of this size, and what is to be computed of it. */
static void draw_sized(struct problem *problem, bool mends,
		       unsigned chunk_bytes)
{
	struct coded *coded = &problem->coded;
	unsigned most;

	coded->group.ndata = draw(NDATA_MAX);
	coded->group.chunk_bytes = chunk_bytes;
	coded->group.last_bytes = draw((unsigned)coded->group.chunk_bytes);
	coded->nparity = draw(NPARITY_MAX);
	coded_draw(coded, &prng, &mmc_codec_plain);
	most = mmc_min_u32(coded->nparity, coded->group.ndata);
	problem->nlost = mends ? draw(most) : 0;
	draw_some(&prng, coded->group.ndata, problem->nlost, problem->columns);
	draw_some(&prng, coded->nparity, problem->nlost, problem->rows);
	for (unsigned i = 0; i < problem->nlost; i++)
		problem->found[i] =
			calloc(1, coded_bytes(coded, problem->columns[i]));
	for (unsigned i = 0; !mends && i < coded->nparity; i++)
		problem->found[i] = calloc(1, coded->group.chunk_bytes);
}

static void draw_problem(struct problem *problem, bool mends)
{
	draw_sized(problem, mends, draw(CHUNK_BYTES_MAX));
}

/* Submits the task of a problem. Returns false if the ring is full. */
static bool submit(struct problem *problem)
{
	struct mmc_coder_task *task = mmc_coder_next(engine->coder);

	if (task == NULL)
		return false;
	task->request = owner_of(problem);
	task->group = problem->coded.group;
	task->group.data = task->data;
	memcpy(task->data, problem->coded.data, sizeof(task->data));
	memcpy(task->columns, problem->columns, sizeof(problem->columns));
	memcpy(task->row_numbers, problem->rows, sizeof(problem->rows));
	for (unsigned i = 0; i < problem->nlost; i++) {
		task->data[problem->columns[i]] = problem->found[i];
		task->parity[i] = problem->coded.parity[problem->rows[i]];
	}
	task->loss = (struct mmc_code_loss){
		.columns = task->columns,
		.rows = task->row_numbers,
		.parity = (const uint8_t *const *)task->parity,
		.count = problem->nlost,
	};
	task->rows = (struct mmc_code_rows){ .count = problem->coded.nparity,
					     .parity = problem->found };
	mmc_coder_submit(engine->coder);
	return true;
}

static void check_found(const struct problem *problem)
{
	const struct coded *coded = &problem->coded;

	for (unsigned i = 0; i < problem->nlost; i++)
		CHECK_BYTES(problem->found[i], coded->data[problem->columns[i]],
			    coded_bytes(coded, problem->columns[i]));
	for (unsigned i = 0; problem->nlost == 0 && i < coded->nparity; i++)
		CHECK_BYTES(problem->found[i], coded->parity[i],
			    coded->group.chunk_bytes);
}

static void free_problem(struct problem *problem)
{
	unsigned nfound = problem->nlost > 0 ? problem->nlost
					     : problem->coded.nparity;

	for (unsigned i = 0; i < nfound; i++)
		free(problem->found[i]);
	coded_free(&problem->coded);
}

/* Takes the next task back, for which it waits. */
static struct mmc_coder_task *await_task(void)
{
	struct mmc_coder_task *task;

	while ((task = mmc_coder_take(engine->coder)) == NULL)
		if (!CHECK(mmc_coder_await(engine->coder)))
			exit(1);
	return task;
}

/* Groups are mended and parity is computed as without a thread, in the tasks' order. */
static void right_bytes(void)
{
	open();
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned nproblems = draw(MMC_CODER_TASKS);

		for (unsigned i = 0; i < nproblems; i++) {
			draw_problem(&problems[i], draw(2) == 1);
			CHECK(submit(&problems[i]));
		}
		for (unsigned i = 0; i < nproblems; i++) {
			CHECK(await_task()->request == owner_of(&problems[i]));
			check_found(&problems[i]);
			free_problem(&problems[i]);
		}
		CHECK(mmc_coder_take(engine->coder) == NULL);
		CHECK(!mmc_coder_await(engine->coder));
	}
	mmc_engine_destroy(engine);
}

/* The ring takes no more tasks than it has places, be the first of them done or not. */
static void full(void)
{
	open();
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < MMC_CODER_TASKS; i++) {
			draw_problem(&problems[i], true);
			CHECK(submit(&problems[i]));
		}
		CHECK(mmc_coder_next(engine->coder) == NULL);
		CHECK(mmc_coder_await(engine->coder));
		CHECK(mmc_coder_next(engine->coder) == NULL);
		for (unsigned i = 0; i < MMC_CODER_TASKS; i++) {
			await_task();
			check_found(&problems[i]);
			free_problem(&problems[i]);
			CHECK(mmc_coder_next(engine->coder) != NULL);
		}
	}
	mmc_engine_destroy(engine);
}

/*
 * Tasks of one request are forgotten, begun or not, and its memory is freed at once. The
 * other tasks are done.
 */
static void forgotten(void)
{
	open();
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned nproblems = draw(MMC_CODER_TASKS);
		unsigned gone = draw(nproblems) - 1;
		unsigned yields = (unsigned)mmc_prng_below(&prng, 4);

		for (unsigned i = 0; i < nproblems; i++) {
			draw_problem(&problems[i], draw(2) == 1);
			CHECK(submit(&problems[i]));
		}
		while (yields-- > 0)
			sched_yield();
		mmc_coder_forget(engine->coder, owner_of(&problems[gone]));
		free_problem(&problems[gone]);
		for (unsigned i = 0; i < nproblems; i++) {
			if (i == gone)
				continue;
			CHECK(await_task()->request == owner_of(&problems[i]));
			check_found(&problems[i]);
			free_problem(&problems[i]);
		}
		while (mmc_coder_await(engine->coder))
			CHECK(mmc_coder_take(engine->coder) == NULL);
	}
	mmc_engine_destroy(engine);
}

/* A task that has begun is not forgotten before its end: nothing is written later. */
static void forgotten_while_under_way(void)
{
	open();
	for (unsigned round = 0; round < 30; round++) {
		struct mmc_coder_task *task = mmc_coder_next(engine->coder);
		struct problem *problem = &problems[0];
		unsigned nwritten = 0;

		draw_sized(problem, false, LARGE_BYTES);
		CHECK(submit(problem));
		while (!task->claimed)
			sched_yield();
		mmc_coder_forget(engine->coder, owner_of(problem));
		for (unsigned i = 0; i < problem->coded.nparity; i++)
			memset(problem->found[i], MARK, LARGE_BYTES);
		mmc_coder_await(engine->coder);
		for (unsigned i = 0; i < problem->coded.nparity; i++)
			for (size_t at = 0; at < LARGE_BYTES; at++)
				nwritten += problem->found[i][at] != MARK;
		CHECK_EQ(nwritten, 0);
		CHECK(mmc_coder_take(engine->coder) == NULL);
		free_problem(problem);
	}
	mmc_engine_destroy(engine);
}

/* A task that has ended cannot be cancelled; others are, and then never begin. */
static void cancelled(void)
{
	struct mmc_coder_task *tasks[MMC_CODER_TASKS];

	open();
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned ncancelled = 0;

		for (unsigned i = 0; i < MMC_CODER_TASKS; i++) {
			draw_problem(&problems[i], false);
			tasks[i] = mmc_coder_next(engine->coder);
			CHECK(submit(&problems[i]));
		}
		CHECK(mmc_coder_await(engine->coder));
		CHECK(!mmc_coder_cancel(tasks[0]));
		for (unsigned i = MMC_CODER_TASKS - 1; i > 0; i--) {
			if (!mmc_coder_cancel(tasks[i]))
				break;
			free_problem(&problems[i]);
			ncancelled++;
		}
		for (unsigned i = 0; i < MMC_CODER_TASKS - ncancelled; i++) {
			CHECK(await_task() == tasks[i]);
			check_found(&problems[i]);
			free_problem(&problems[i]);
		}
		while (mmc_coder_await(engine->coder))
			CHECK(mmc_coder_take(engine->coder) == NULL);
	}
	mmc_engine_destroy(engine);
}

/* An engine ends while tasks are under way, which were forgotten. */
static void closed(void)
{
	for (unsigned round = 0; round < 50; round++) {
		unsigned nproblems = draw(MMC_CODER_TASKS);

		open();
		prng.state += round;
		for (unsigned i = 0; i < nproblems; i++) {
			draw_problem(&problems[i], true);
			CHECK(submit(&problems[i]));
		}
		for (unsigned i = 0; i < nproblems; i++) {
			mmc_coder_forget(engine->coder, owner_of(&problems[i]));
			free_problem(&problems[i]);
		}
		mmc_engine_destroy(engine);
	}
}

/* Returns whether the leader, or the responder, is woken in this time. */
static bool is_woken(bool leader, int timeout_ms)
{
	struct pollfd polled = { .fd = engine->threads->wake_fd,
				 .events = POLLIN };
	struct epoll_event event;

	if (leader)
		return poll(&polled, 1, timeout_ms) == 1;
	return epoll_wait(engine->threads->epoll_fd, &event, 1, timeout_ms) ==
	       1;
}

/* Whoever sleeps is woken by each group that is mended. */
static void wakes(void)
{
	open();
	for (unsigned round = 0; round < 10 * ROUNDS; round++) {
		bool leader = draw(2) == 1;

		draw_problem(&problems[0], true);
		CHECK(submit(&problems[0]));
		while (mmc_coder_take(engine->coder) == NULL) {
			if (!mmc_engine_rearm(engine, leader) &&
			    !CHECK(is_woken(leader, PATIENCE_MS)))
				exit(1);
			if (leader)
				mmc_descriptor_drain(engine->threads->wake_fd);
		}
		check_found(&problems[0]);
		free_problem(&problems[0]);
	}
	mmc_engine_destroy(engine);
}

/* Nobody is woken because of parity, nor who has not said that it will sleep. */
static void wakes_nobody_else(void)
{
	for (unsigned mends = 0; mends < 2; mends++) {
		open();
		draw_problem(&problems[0], mends > 0);
		if (mends == 0)
			CHECK(!mmc_engine_rearm(engine, true));
		CHECK(submit(&problems[0]));
		CHECK(mmc_coder_await(engine->coder));
		/* Once the thread has ended it wakes nobody any more. */
		mmc_coder_stop(engine);
		CHECK(!is_woken(true, 0));
		free_problem(&problems[0]);
		mmc_engine_destroy(engine);
	}
}

/* A stepped engine has no coder. */
static void stepped(void)
{
	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(mmc_coder_start(engine), 0);
	CHECK(engine->coder == NULL);
	mmc_engine_destroy(engine);
}

CHECK_MAIN(CHECK_TEST(right_bytes), CHECK_TEST(full), CHECK_TEST(forgotten),
	   CHECK_TEST(forgotten_while_under_way), CHECK_TEST(cancelled),
	   CHECK_TEST(closed), CHECK_TEST(wakes), CHECK_TEST(wakes_nobody_else),
	   CHECK_TEST(stepped))
