/* SPDX-License-Identifier: BSD-3-Clause */
/* A completed operation counts the time of its stages, and tells the path of losses. */
#include "core/operation/learn.h"

#include "subject.h"

#define RANK 1
#define BLOCK_CHUNKS 5

/* The times of the stages add up to the time of the whole operation. */
static void stages_fill_the_time(void)
{
	static struct subject subject;
	const uint64_t *counted = subject.counters.value;
	uint64_t begin_ns;

	subject_open(&subject, &subject_config);
	begin_ns = subject.now_ns;
	subject.now_ns += 3 * MMC_MS_NS;
	subject_begin(&subject);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS], 3 * MMC_MS_NS);
	subject.now_ns += 5 * MMC_MS_NS;
	subject_deliver_all(&subject);
	subject.now_ns += 7 * MMC_MS_NS;
	subject_run(&subject);
	CHECK_EQ(counted[MMC_COUNT_MULTICAST_NS], 5 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_REPAIR_NS], 7 * MMC_MS_NS);
	subject.now_ns += 11 * MMC_MS_NS;
	subject_all_are_done(&subject);
	subject_run(&subject);
	CHECK_EQ(counted[MMC_COUNT_RELEASE_NS], 11 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS] + counted[MMC_COUNT_MULTICAST_NS] +
			 counted[MMC_COUNT_REPAIR_NS] +
			 counted[MMC_COUNT_RELEASE_NS],
		 subject.now_ns - begin_ns);
	subject_close(&subject);
}

/* The path counts as lossy once others have asked for this rank's chunks. */
static void a_loss_is_learnt(void)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct mmc_message nak = subject_message(MMC_MESSAGE_NAK);
		static struct subject subject;

		nak.nitems = 1;
		nak.runs[0] = (struct mmc_run){ RANK * BLOCK_CHUNKS, 2 };
		subject_open(&subject, &subject_config);
		subject_begin(&subject);
		if (lost)
			subject_hear(&subject, 3, &nak);
		subject.now_ns += MMC_MS_NS;
		subject_deliver_all(&subject);
		subject_run(&subject);
		CHECK(subject.op->state > MMC_OP_FLOW);
		CHECK_EQ(subject.op->config.path->nlossy > 0, lost);
		subject_close(&subject);
	}
}

/* Only a window that limits an operation is widened, if a rank waits for processors. */
static void a_wait_is_learnt(void)
{
	for (uint64_t percent = 0; percent <= 100; percent += 10)
		for (uint32_t wide = 0; wide < 2; wide++) {
			struct mmc_op_config config = subject_config;
			static struct subject subject;
			struct mmc_window *window;

			config.window_bytes = wide ? UINT32_MAX : 300;
			subject_open(&subject, &config);
			subject_begin(&subject);
			window = &subject.op->config.path->window;
			window->bytes = 300;
			subject.now_ns += MMC_MS_NS;
			subject_deliver_all(&subject);
			subject_run(&subject);
			mmc_op_learn_delay(subject.op, percent * MMC_MS_NS,
					   100 * MMC_MS_NS);
			CHECK_EQ(window->widening,
				 percent >= MMC_WINDOW_WIDEN_PERCENT && !wide);
			subject_close(&subject);
		}
}

/*
 * Runs an operation with a window of a fifth of its bytes on a path of 20 ms, or of 1 ms, of
 * which this rank repairs `nlost` chunks. Returns how far the window is widened then.
 */
static uint32_t widening_after(bool is_long, uint32_t nlost)
{
	struct mmc_op_config config = subject_config;
	static struct subject subject;
	struct mmc_path path;
	uint32_t widening;

	mmc_path_init(&path);
	mmc_path_round_trip(&path, (is_long ? 20 : 1) * MMC_MS_NS);
	config.block_bytes = 50000;
	config.window_bytes = 40000;
	path.window.bytes = 40000;
	subject_open_on(&subject, &config, &path);
	subject_begin(&subject);
	subject.op->repair.repairer.nlost = nlost;
	subject.now_ns += 10 * MMC_MS_NS;
	while (subject.op->state == MMC_OP_FLOW) {
		/* The others have everything, so this rank may go on. */
		subject.op->turn.next = subject.op->own.nchunks;
		subject_deliver_all(&subject);
		subject_run(&subject);
	}
	mmc_op_learn_delay(subject.op, 0, 100 * MMC_MS_NS);
	widening = subject.op->config.path->window.widening;
	subject_close(&subject);
	return widening;
}

/*
 * On a long path a window that limits operations doubles, though no rank waits for a
 * processor; but not where it loses.
 */
static void a_long_path_is_learnt(void)
{
	CHECK_EQ(widening_after(true, 0), 1);
	CHECK_EQ(widening_after(true, 500), 0);
	CHECK_EQ(widening_after(false, 0), 0);
}

/* Chunks that other ranks request after this rank's last one count when the operation closes. */
static void late_losses_are_learnt(void)
{
	static struct subject subject;
	struct mmc_window *window;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	window = &subject.op->config.path->window;
	window->widening = 2;
	mmc_op_learn_last(subject.op);
	CHECK_EQ(window->widening, 2);
	subject.op->repair.repairer.nlost = 1;
	mmc_op_learn_last(subject.op);
	CHECK_EQ(window->widening, 0);
	CHECK_EQ(window->lossy_widening, 2);
	mmc_op_learn_last(subject.op);
	CHECK_EQ(window->lossy_widening, 2);
	subject_close(&subject);
}

/*
 * Returns the path after an operation whose first chunk arrives `wait_ns` after this rank has
 * entered, and the others `apart_ns` later.
 */
static struct mmc_path path_after(uint32_t code_data, uint64_t wait_ns,
				  uint64_t apart_ns)
{
	struct mmc_op_config config = subject_config;
	static struct subject subject;

	config.code_data = code_data;
	subject_open(&subject, &config);
	subject_begin(&subject);
	subject.now_ns += wait_ns;
	subject_deliver(&subject, 0);
	subject.now_ns += apart_ns;
	for (uint32_t chunk = 1; chunk < 4 * BLOCK_CHUNKS; chunk++)
		if (chunk / BLOCK_CHUNKS != RANK)
			subject_deliver(&subject, chunk);
	subject_run(&subject);
	CHECK(subject.op->state > MMC_OP_FLOW);
	subject_close(&subject);
	return subject.path;
}

/* With a code, the time between the first chunk and the last shows the rate of the link. */
static void the_link_is_learnt(void)
{
	/* 14 chunks follow the first one, of 100 bytes each. */
	const uint64_t rate = 1400 * 1000 / 2;

	CHECK_EQ(path_after(2, 0, 2 * MMC_MS_NS).link_bytes_per_s, rate);
	CHECK_EQ(path_after(2, 9 * MMC_MS_NS, 2 * MMC_MS_NS).link_bytes_per_s,
		 rate);
	CHECK_EQ(path_after(2, MMC_MS_NS, 0).link_bytes_per_s, 0);
	CHECK_EQ(path_after(0, MMC_MS_NS, 2 * MMC_MS_NS).link_bytes_per_s, 0);
}

/* With a code, the time from the entry to the first chunk bounds the round trip. */
static void a_trip_is_no_longer_than_the_entry(void)
{
	CHECK_EQ(path_after(2, 3 * MMC_MS_NS, MMC_MS_NS).trip_most_ns,
		 3 * MMC_MS_NS + 1);
	CHECK_EQ(path_after(2, 30 * MMC_MS_NS, MMC_MS_NS).trip_most_ns,
		 MMC_PATH_SRTT_SHORT_NS);
	CHECK_EQ(path_after(0, 3 * MMC_MS_NS, MMC_MS_NS).trip_most_ns, 0);
}

CHECK_MAIN(CHECK_TEST(the_link_is_learnt),
	   CHECK_TEST(a_trip_is_no_longer_than_the_entry),
	   CHECK_TEST(late_losses_are_learnt),
	   CHECK_TEST(a_long_path_is_learnt), CHECK_TEST(a_wait_is_learnt),
	   CHECK_TEST(stages_fill_the_time), CHECK_TEST(a_loss_is_learnt))
