/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrivals gather only while chunks flow on a link that is slower than this rank. */
#include "core/operation/coalescing.h"

#include "subject.h"

static const uint64_t rates_bytes_per_s[] = { 10000000, 1000000, 100000, 1000 };

static struct subject subject;

static void open_flow(uint64_t block_bytes, uint32_t window_bytes,
		      uint64_t rate_bytes_per_s)
{
	struct mmc_op_config config = subject_config;

	config.block_bytes = block_bytes;
	config.window_bytes = window_bytes;
	subject_open(&subject, &config);
	if (rate_bytes_per_s > 0)
		mmc_path_set_rate(&subject.path, rate_bytes_per_s);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), 0);
	subject_begin(&subject);
}

/* The time is that of a eighth of the window, within its bounds. */
static void a_part_of_the_window(void)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t rate = rates_bytes_per_s[i];
		uint64_t window_ns = 32000 * MMC_S_NS / rate / 8;
		uint64_t expected_ns =
			window_ns < MMC_COALESCING_MIN_NS
				? 0
				: mmc_min_u64(window_ns, MMC_COALESCING_MAX_NS);

		open_flow(50000, 32000, rate);
		CHECK_EQ(mmc_op_coalescing_ns(subject.op), expected_ns);
		subject_close(&subject);
	}
}

/* An operation that awaits nothing more holds up nobody's sleep. */
static void until_all_is_here(void)
{
	open_flow(500, 32000, 1000);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), MMC_COALESCING_MAX_NS);
	subject.now_ns += MMC_MS_NS;
	subject_deliver_all(&subject);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), 0);
	subject_run(&subject);
	subject_all_are_done(&subject);
	subject_run(&subject);
	CHECK(subject.op->state > MMC_OP_RELEASE);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), MMC_NEVER_NS);
	subject_close(&subject);
}

/*
 * While the rate is a guess nothing gathers; nor where processors are the limit, which
 * would idle for that time.
 */
static void not_at_any_time(void)
{
	open_flow(50000, 32000, 0);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), 0);
	subject_close(&subject);
	open_flow(50000, 32000, 1000000);
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), MMC_COALESCING_MAX_NS);
	subject.path.window.widening = 1;
	CHECK_EQ(mmc_op_coalescing_ns(subject.op), 0);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(a_part_of_the_window), CHECK_TEST(until_all_is_here),
	   CHECK_TEST(not_at_any_time))
