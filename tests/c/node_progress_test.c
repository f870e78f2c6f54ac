/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that are moved one by one in any order keep the laws, and end as MPI says. */
#include "node/progress.h"

#include "node_program.h"

enum { NROUNDS = 40 };

/* One member, moved by hand. */
struct mover {
	struct runner runner;
	struct mmc_node_request *requests[IN_FLIGHT_MAX];
	uint8_t *memory;
	uint32_t nstarted;
	uint32_t nfinished;
};

static struct members members;
static struct mover movers[MEMBERS_MAX];
static struct program program;

static uint8_t *send_of(const struct mover *mover, uint32_t i)
{
	return mover->memory + i % IN_FLIGHT_MAX * 2 * RESULT_BYTES_MAX;
}

/* Starts an operation, or looks at one in flight. */
static void move(struct mover *mover, bool starts)
{
	bool can_start = mover->nstarted < NOPERATIONS &&
			 mover->nstarted - mover->nfinished < IN_FLIGHT_MAX;
	uint32_t i = mover->nstarted;
	struct mmc_node_request **request;

	if (can_start && (starts || mover->nfinished == mover->nstarted)) {
		uint8_t *send = send_of(mover, i);

		mover->requests[i % IN_FLIGHT_MAX] = start_one(
			&mover->runner, i, send, send + RESULT_BYTES_MAX);
		mover->nstarted++;
		return;
	}
	if (mover->nfinished == mover->nstarted)
		return;
	i = mover->nfinished;
	request = &mover->requests[i % IN_FLIGHT_MAX];
	if (*request != NULL && mmc_node_request_wait(*request, 0) != 0)
		return;
	finish_one(&mover->runner, i, *request,
		   send_of(mover, i) + RESULT_BYTES_MAX);
	mover->nfinished++;
}

/* Cursors never pass what they wait for, and slots are never used twice at a time. */
static void check_cursors(void)
{
	uint32_t nslots = members.streams[0]->options.nslots;
	const struct mmc_node_line *lines = members.streams[0]->lines;
	uint32_t least_read = members.streams[0]->nread;

	for (uint32_t i = 0; i < members.n; i++) {
		struct mmc_node_stream *stream = members.streams[i];

		CHECK_EQ(lines[i].filled.npieces, stream->nfilled);
		CHECK_EQ(lines[i].read.npieces, stream->nread);
		CHECK(!mmc_cursor_before(stream->nfilled, stream->nread));
		CHECK(!mmc_cursor_before(stream->next_piece, stream->nfilled));
		if (mmc_cursor_before(stream->nread, least_read))
			least_read = stream->nread;
	}
	for (uint32_t i = 0; i < members.n; i++)
		CHECK(members.streams[i]->nfilled - least_read <= nslots);
}

/* What went into the segment came out of it once for each other member. */
static void check_counts(uint32_t first)
{
	uint64_t tx_bytes = 0;
	uint64_t rx_bytes = 0;

	for (uint32_t i = 0; i < members.n; i++) {
		struct mmc_node_counts counts;

		mmc_node_stream_counts(members.streams[i], &counts);
		CHECK_EQ(counts.operations, NOPERATIONS);
		CHECK_EQ(counts.pieces, members.streams[i]->next_piece - first);
		CHECK_EQ(counts.sleeps, 0);
		tx_bytes += counts.tx_bytes;
		rx_bytes += counts.rx_bytes;
	}
	CHECK_EQ(rx_bytes, tx_bytes * (members.n - 1));
}

/* Lets all streams go on as if `first` pieces had been moved before. */
static void begin_at(uint32_t first)
{
	for (uint32_t i = 0; i < members.n; i++) {
		struct mmc_node_stream *stream = members.streams[i];

		stream->next_piece = first;
		stream->nfilled = first;
		stream->nread = first;
		stream->nfree = first + stream->options.nslots;
		mmc_cursor_set(&stream->lines[i].filled, first);
		mmc_cursor_set(&stream->lines[i].read, first);
	}
}

/* Moves a random member a random step, until all have run the program. */
static void run_by_hand(struct mmc_prng *prng, uint32_t first)
{
	uint32_t ndone = 0;

	begin_at(first);
	for (uint32_t i = 0; i < members.n; i++) {
		movers[i] = (struct mover){
			.runner = { .program = &program,
				    .stream = members.streams[i],
				    .rank = i },
			.memory = malloc(IN_FLIGHT_MAX * 2 * RESULT_BYTES_MAX),
		};
	}
	while (ndone < members.n) {
		struct mover *mover = &movers[mmc_prng_below(prng, members.n)];
		uint32_t nfinished = mover->nfinished;

		move(mover, mmc_prng_below(prng, 2));
		check_cursors();
		ndone += nfinished < NOPERATIONS &&
			 mover->nfinished == NOPERATIONS;
	}
	for (uint32_t i = 0; i < members.n; i++) {
		CHECK_EQ(movers[i].runner.nwrong, 0);
		free(movers[i].memory);
	}
	check_counts(first);
}

/* Draws a program and members, which begin with piece number `first`. */
static void run_round(struct mmc_prng *prng, uint32_t first)
{
	struct mmc_node_stream_options options;

	program.nranks = 1 + (uint32_t)mmc_prng_below(prng, 7);
	draw(&program, prng);
	options = members_options(program.nranks);
	options.nslots = 1U << mmc_prng_below(prng, 4);
	options.slot_bytes = 512 * (1 + mmc_prng_below(prng, 40));
	members_open(&members, program.nranks, options);
	run_by_hand(prng, first);
	members_close(&members);
}

static void any_order_of_steps_is_right(void)
{
	struct mmc_prng prng = { check_seed() };

	for (uint32_t i = 0; i < NROUNDS; i++)
		run_round(&prng, 0);
}

/* After 2^32 pieces their numbers begin again, and no slot is taken twice. */
static void numbers_of_pieces_wrap_round(void)
{
	struct mmc_prng prng = { check_seed() };

	for (uint32_t i = 0; i < NROUNDS; i++)
		run_round(&prng,
			  UINT32_MAX - (uint32_t)mmc_prng_below(&prng, 50));
}

/* One call moves all operations that can be moved, as far as they can be. */
static void one_call_moves_all(void)
{
	enum { N = 5 };
	static uint8_t recv[2][N][200];
	struct mmc_node_request *requests[2][N];

	members_open(&members, 2, members_options(2));
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < N; i++) {
			const struct mmc_operation operation = {
				.kind = MMC_ALLGATHER,
				.block_bytes = 100,
				.recv = recv[r][i],
			};

			mmc_node_start(members.streams[r], &operation, 0,
				       &requests[r][i]);
		}
	/* Two slots: of rank 1 two have ended, and two more have been filled. */
	CHECK(requests[1][0] == NULL && requests[1][1] == NULL);
	CHECK_EQ(members.streams[0]->nread, 0);
	pthread_mutex_lock(&members.streams[0]->mutex);
	mmc_node_progress(members.streams[0]);
	CHECK_EQ(members.streams[0]->nread, 2);
	CHECK_EQ(members.streams[0]->nfilled, 4);
	mmc_node_progress(members.streams[1]);
	CHECK_EQ(members.streams[1]->nread, 4);
	CHECK_EQ(members.streams[1]->nfilled, 4);
	mmc_node_progress(members.streams[0]);
	mmc_node_progress(members.streams[1]);
	mmc_node_progress(members.streams[0]);
	pthread_mutex_unlock(&members.streams[0]->mutex);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK(members.streams[r]->first == NULL);
		for (uint32_t i = 0; i < N; i++)
			mmc_node_request_free(requests[r][i]);
	}
	members_close(&members);
}

CHECK_MAIN(CHECK_TEST(any_order_of_steps_is_right),
	   CHECK_TEST(numbers_of_pieces_wrap_round),
	   CHECK_TEST(one_call_moves_all))
