/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines on a simulated network mend what it loses: the simulator checks every byte, and
 * each datagram, of the ranks.
 */
#include <mpimcast/sim.h>

#include "check.h"
#include "engine/parity.h"

struct sum {
	uint64_t sent_bytes;
	uint64_t parity_sent;
	uint64_t parity_used;
	uint64_t groups_mended;
	uint64_t fell_back;
	uint64_t repairs;
};

static struct sum run(const struct mmc_sim_spec *spec)
{
	struct mmc_sim_result result;
	struct sum sum = { 0 };

	if (!CHECK_EQ(mmc_sim_run(spec, &result), 0))
		return sum;
	CHECK_EQ(result.violation[0], 0);
	for (uint32_t r = 0; r < result.nranks; r++) {
		const struct mmc_sim_rank *rank = &result.ranks[r];

		CHECK_EQ(rank->error, 0);
		sum.sent_bytes += rank->tx.bytes[0];
		sum.repairs += rank->tx.datagrams[2];
		sum.parity_sent += rank->parity_sent;
		sum.parity_used += rank->parity_used;
		sum.groups_mended += rank->groups_mended;
		sum.fell_back += rank->fell_back;
	}
	mmc_sim_result_clear(&result);
	return sum;
}

static struct mmc_sim_spec spec_of(uint32_t data, uint32_t parity)
{
	struct mmc_sim_spec spec;

	mmc_sim_spec_init(&spec);
	spec.block_bytes = 1 << 20;
	spec.chunk_bytes = 1408;
	spec.code_data = data;
	spec.code_parity = parity;
	spec.seed = check_seed();
	return spec;
}

/* Without loss (k + m) / k of the bytes are sent and, within 2 %, no more. */
static void parity_is_as_much_as_was_asked_for(void)
{
	static const uint32_t codes[][2] = {
		{ 32, 4 }, { 8, 2 },	{ 8, 1 },
		{ 1, 1 },  { 128, 32 }, { 10, 10 },
	};
	uint64_t plain_bytes;
	struct mmc_sim_spec spec = spec_of(0, 0);

	plain_bytes = run(&spec).sent_bytes;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		uint32_t k = codes[i][0];
		uint32_t m = codes[i][1];
		struct sum sum;

		spec = spec_of(k, m);
		sum = run(&spec);
		CHECK(sum.parity_sent > 0);
		CHECK_EQ(sum.parity_used, 0);
		CHECK(sum.sent_bytes * k * 100 <=
		      plain_bytes * (k + m) * 100 + plain_bytes * k * 2);
	}
}

/* At 1 % loss nearly everything is mended, and hardly anything asked for. */
static void losses_are_mended(void)
{
	struct mmc_sim_spec spec = spec_of(32, 8);
	struct sum sum;

	spec.loss_ppm = 10000;
	sum = run(&spec);
	CHECK(sum.groups_mended > 50);
	CHECK(sum.parity_used >= sum.groups_mended);
	CHECK(sum.fell_back < sum.parity_used / 20);
}

/* What is lost beyond m chunks of a group is sent again. */
static void more_losses_fall_back(void)
{
	struct mmc_sim_spec spec = spec_of(8, 1);
	struct sum sum;

	spec.loss_ppm = 100000;
	sum = run(&spec);
	CHECK(sum.groups_mended > 50);
	CHECK(sum.fell_back > 50);
}

/*
 * At 1 % independent loss owners that answer by parity send at most 0.6 of the repairs that
 * they send otherwise.
 */
static void parity_on_request_saves_repairs(void)
{
	struct mmc_sim_spec spec = spec_of(0, 0);
	uint64_t plain;

	spec.nranks = 16;
	spec.loss_ppm = 10000;
	plain = run(&spec).repairs;
	spec.code_data = 32;
	CHECK(run(&spec).repairs * 10 <= plain * 6);
}

/* With zero-copy receive there is no code, and chunks are sent again. */
static void zero_copy_has_no_code(void)
{
	struct mmc_sim_spec spec = spec_of(8, 2);
	struct sum sum;

	spec.zero_copy = 16;
	spec.chains = 2;
	spec.subgroups = 3;
	spec.loss_ppm = 1000;
	sum = run(&spec);
	CHECK_EQ(sum.parity_sent, 0);
	CHECK(sum.repairs > 0);
}

/* In random cases, with losses, reordering and duplicates, every byte is right. */
static void random_cases(void)
{
	uint64_t nmended = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		struct mmc_sim_spec spec;
		struct mmc_sim_result result;

		mmc_sim_coded_case(seed, &spec);
		if (!CHECK_EQ(mmc_sim_run(&spec, &result), 0))
			continue;
		if (!CHECK_EQ(result.violation[0], 0))
			fprintf(stderr, "case %u: %s\n", (unsigned)seed,
				result.violation);
		for (uint32_t r = 0; r < result.nranks; r++)
			nmended += result.ranks[r].groups_mended;
		mmc_sim_result_clear(&result);
	}
	CHECK(nmended > 1000);
}

CHECK_MAIN(CHECK_TEST(parity_is_as_much_as_was_asked_for),
	   CHECK_TEST(losses_are_mended), CHECK_TEST(more_losses_fall_back),
	   CHECK_TEST(parity_on_request_saves_repairs),
	   CHECK_TEST(zero_copy_has_no_code), CHECK_TEST(random_cases))
