/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks that are taken in runs leave the same state, to the last bit, as the same chunks
 * taken one by one: in any order, with gaps, repetitions and repairs, whatever is polled
 * in between.
 */
#include "subject.h"

#define BLOCK_CHUNKS 300
#define NSTEPS 200
#define RUN_MAX 24

/* All that an operation may change. */
struct state {
	struct subject subject;
	uint8_t *memory;
	size_t nbytes;
};

static struct subject subject;

static void save(struct state *state)
{
	state->subject = subject;
	memcpy(state->memory, subject.op, state->nbytes);
}

static void restore(const struct state *state)
{
	subject = state->subject;
	memcpy(subject.op, state->memory, state->nbytes);
}

/* Returns a digest of the operation's memory, of what it counts, and of its path. */
static uint64_t digest(size_t nbytes)
{
	const void *parts[] = { subject.op, &subject.path, &subject.counters };
	const size_t lengths[] = { nbytes, sizeof(subject.path),
				   sizeof(subject.counters) };
	uint64_t sum = UINT64_C(14695981039346656037);

	for (unsigned p = 0; p < 3; p++)
		for (size_t i = 0; i < lengths[p]; i++)
			sum = (sum ^ ((const uint8_t *)parts[p])[i]) *
			      UINT64_C(1099511628211);
	return sum;
}

/* Delivers chunks of `source`, as a run if `in_runs` and the operation takes that. */
static void deliver(uint32_t source, struct mmc_run run, bool in_runs)
{
	const struct mmc_layout *layout = &subject.op->layout;
	uint32_t last = run.first + run.count - 1;

	if (in_runs &&
	    mmc_op_on_run(subject.op, source, run,
			  mmc_layout_payload(layout, last), subject.now_ns)) {
		mmc_op_on_run_placed(subject.op, run);
		return;
	}
	for (uint32_t c = run.first; c <= last; c++)
		if (mmc_op_on_chunk(subject.op, source, c,
				    mmc_layout_payload(layout, c),
				    subject.now_ns) == MMC_VERDICT_PLACE)
			mmc_op_on_placed(subject.op, c);
}

/* Delivers a random run of a random rank, mostly the next one of its block. */
static void deliver_some(struct mmc_prng *prng, uint32_t *next, bool in_runs)
{
	uint32_t nranks = subject.op->config.nranks;
	uint32_t source = (uint32_t)mmc_prng_below(prng, nranks);
	struct mmc_block block;
	uint32_t place = next[source];
	struct mmc_run run;

	if (source == subject.op->config.rank)
		return;
	block = mmc_layout_block(&subject.op->layout, source);
	if (mmc_prng_below(prng, 4) == 0)
		place = (uint32_t)mmc_prng_below(prng, BLOCK_CHUNKS);
	if (mmc_prng_below(prng, 8) == 0)
		place += (uint32_t)mmc_prng_below(prng, 20);
	run.count = 1 + (uint32_t)mmc_prng_below(prng, RUN_MAX);
	if (place >= BLOCK_CHUNKS)
		return;
	run.count = mmc_min_u32(run.count, BLOCK_CHUNKS - place);
	run.first = block.first + place;
	next[source] = place + run.count;
	deliver(source, run, in_runs);
}

/* Tells the operation something of the chunks that it lacks. */
static void hear_some(struct mmc_prng *prng)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	uint32_t source = (uint32_t)mmc_prng_below(prng, 4);

	if (source == subject.op->config.rank)
		return;
	message.record.sent_chunks =
		(uint32_t)mmc_prng_below(prng, BLOCK_CHUNKS + 1);
	if (mmc_prng_below(prng, 2) == 0) {
		message.kind = MMC_MESSAGE_NCF;
		message.nitems = 1;
		message.runs[0] = (struct mmc_run){
			.first = (uint32_t)mmc_prng_below(prng,
							  4 * BLOCK_CHUNKS),
			.count = 1 + (uint32_t)mmc_prng_below(prng, 9),
		};
	}
	subject_hear(&subject, source, &message);
}

/* Plays a seed's events; writes a digest of the state after each. */
static void play(uint64_t seed, bool in_runs, size_t nbytes, uint64_t *digests)
{
	struct mmc_prng prng = { .state = seed };
	uint32_t next[4] = { 0 };

	for (unsigned i = 0; i < NSTEPS; i++) {
		uint64_t event = mmc_prng_below(&prng, 10);

		subject.now_ns += mmc_prng_below(&prng, 300 * MMC_US_NS);
		if (event == 0)
			subject_run(&subject);
		else if (event == 1)
			hear_some(&prng);
		else
			deliver_some(&prng, next, in_runs);
		digests[i] = digest(nbytes);
	}
}

static void compare(uint64_t seed, bool begun)
{
	static uint64_t singly[NSTEPS];
	static uint64_t in_runs[NSTEPS];
	struct mmc_op_config config = subject_config;
	struct state state;

	config.block_bytes = BLOCK_CHUNKS * 100 - seed % 2 * 30;
	config.nchains = seed % 3 == 0 ? 2 : 0;
	subject_open(&subject, &config);
	if (begun)
		subject_begin(&subject);
	state.nbytes = mmc_op_footprint(&subject.op->config);
	state.memory = malloc(state.nbytes);
	save(&state);
	play(seed, false, state.nbytes, singly);
	restore(&state);
	play(seed, true, state.nbytes, in_runs);
	for (unsigned i = 0; i < NSTEPS; i++)
		if (!CHECK_EQ(singly[i], in_runs[i])) {
			fprintf(stderr, "seed %" PRIu64 ", step %u\n", seed, i);
			break;
		}
	free(state.memory);
	subject_close(&subject);
}

static void same_state(void)
{
	for (uint64_t i = 0; i < 300; i++)
		compare(check_seed() + i, i % 4 > 0);
}

/* A run that is not wholly this sender's, or partly here already, is refused whole. */
static void refuses(void)
{
	static const struct {
		uint32_t source;
		struct mmc_run run;
		size_t last_bytes;
	} wrong[] = {
		{ 2, { 10, 6 }, 100 },		/* into the next block */
		{ 2, { 9, 2 }, 100 },		/* from the block before */
		{ 0, { 10, 2 }, 100 },		/* another rank's block */
		{ 2, { 10, 2 }, 99 },		/* too short */
		{ 2, { 10, UINT32_MAX }, 100 }, /* too many */
		{ 2, { UINT32_MAX, 2 }, 100 },
		{ 1, { 5, 2 }, 100 }, /* this rank's own */
	};

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint32_t nclaimed = mmc_bitmap_count_run(
			&subject.op->claimed, (struct mmc_run){ 0, 20 });

		CHECK(!mmc_op_on_run(subject.op, wrong[i].source, wrong[i].run,
				     wrong[i].last_bytes, subject.now_ns));
		CHECK_EQ(mmc_bitmap_count_run(&subject.op->claimed,
					      (struct mmc_run){ 0, 20 }),
			 nclaimed);
	}
	CHECK(mmc_op_on_run(subject.op, 2, (struct mmc_run){ 11, 2 }, 100,
			    subject.now_ns));
	CHECK(!mmc_op_on_run(subject.op, 2, (struct mmc_run){ 10, 2 }, 100,
			     subject.now_ns));
	CHECK_EQ(subject.op->nplacing, 2);
	mmc_op_on_run_placed(subject.op, (struct mmc_run){ 11, 2 });
	CHECK_EQ(subject.op->nplacing, 0);
	CHECK(mmc_bitmap_test(&subject.op->present, 12));
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(same_state), CHECK_TEST(refuses))
