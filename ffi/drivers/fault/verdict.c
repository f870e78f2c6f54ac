/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/fault/verdict.h"

#include "support/bits.h"
#include "support/error.h"

/* A datagram that is reordered waits until 1 to this many later ones have passed. */
#define BEHIND_MAX 4

/* Stalls begin at intervals of this many times their length. */
#define STALL_PERIOD_RATIO 5

/*
 * Returns the random generator of the clause with this index. Generators whose seeds or
 * ranks differ in a single bit give unrelated numbers.
 */
static struct mmc_prng generator_of(uint64_t seed, uint32_t rank,
				    uint32_t index)
{
	struct mmc_prng prng = { .state = seed };

	prng.state = mmc_prng_next(&prng) ^ rank;
	prng.state = mmc_prng_next(&prng) ^ index;
	prng.state = mmc_prng_next(&prng);
	return prng;
}

static uint64_t stall_period_ns(const struct mmc_fault_clause *clause)
{
	return STALL_PERIOD_RATIO * clause->stall_ms * MMC_MS_NS;
}

/*
 * Returns 0 if receivers would notice all corrupted datagrams, else -MMC_EINVAL. Looks
 * at all clauses, so that the result is the same on all ranks.
 */
static int check_corruption(const struct mmc_fault_setting *setting,
			    enum mmc_checksum checksum)
{
	bool rx = false, tx = false;

	for (unsigned i = 0; i < setting->nclauses; i++) {
		if (setting->clauses[i].corrupt == 0)
			continue;
		rx = rx || !setting->clauses[i].tx;
		tx = tx || setting->clauses[i].tx;
	}
	if (checksum == MMC_CHECKSUM_OFF && (rx || tx)) {
		mmc_error_set("FAULT: 'corrupt' would go unnoticed; use "
			      "CHECKSUM=header or full");
		return -MMC_EINVAL;
	}
	if (checksum == MMC_CHECKSUM_HEADER && rx && tx) {
		mmc_error_set("FAULT: 'corrupt' in both directions could go "
			      "unnoticed; use CHECKSUM=full");
		return -MMC_EINVAL;
	}
	return 0;
}

int mmc_fault_judge_init(struct mmc_fault_judge *judge,
			 const struct mmc_fault_setting *setting, uint32_t rank,
			 enum mmc_checksum checksum)
{
	int rv = check_corruption(setting, checksum);

	if (rv < 0)
		return rv;
	*judge = (struct mmc_fault_judge){ .checksum = checksum };
	for (uint32_t i = 0; i < setting->nclauses; i++) {
		const struct mmc_fault_clause *clause = &setting->clauses[i];
		struct mmc_fault_clause_state *state;

		if (!clause->applies)
			continue;
		state = &judge->clauses[judge->nclauses++];
		state->clause = *clause;
		state->losses =
			mmc_gilbert_make(clause->loss, clause->loss_period);
		state->prng = generator_of(clause->seed, rank, i);
		state->phase_ns =
			mmc_prng_below(&state->prng, stall_period_ns(clause));
	}
	return 0;
}

/* Returns the bit of `kinds` that stands for a datagram with this head. */
static uint32_t kind_of(const uint8_t *head, uint32_t head_bytes)
{
	enum mmc_traffic traffic = MMC_TRAFFIC_CONTROL;

	if (head_bytes >= MMC_HEADER_BYTES)
		traffic = mmc_header_traffic(mmc_header_peek(head).index);
	return 1u << traffic;
}

/* Returns how many bits, counted from the first, a checksum protects. */
static uint64_t protected_bits(enum mmc_checksum checksum, uint32_t nbytes)
{
	if (checksum == MMC_CHECKSUM_HEADER)
		nbytes = mmc_min_u32(nbytes, MMC_HEADER_BYTES);
	return (uint64_t)nbytes * 8;
}

/*
 * Adds what one clause decides to the verdict on a datagram whose first `nbits` may be
 * corrupted. Returns false if the clause drops the datagram.
 */
static bool apply(struct mmc_fault_clause_state *state,
		  struct mmc_fault_verdict *verdict, uint64_t nbits)
{
	const struct mmc_fault_clause *clause = &state->clause;
	struct mmc_prng *prng = &state->prng;

	if (mmc_gilbert_loses(&state->losses, prng))
		return false;
	if (mmc_prng_chance(prng, clause->corrupt)) {
		/*
		 * Only one bit is flipped in all: a second could cancel the first in
		 * the checksum.
		 */
		verdict->corrupt = nbits > 0;
		verdict->bit = (uint32_t)mmc_prng_below(prng, nbits);
	}
	if (mmc_prng_chance(prng, clause->dup))
		verdict->ncopies++;
	if (mmc_prng_chance(prng, clause->reorder)) {
		uint32_t behind =
			1 + (uint32_t)mmc_prng_below(prng, BEHIND_MAX);

		verdict->behind = mmc_max_u32(verdict->behind, behind);
	}
	verdict->delay_ns += clause->delay_us * MMC_US_NS;
	return true;
}

struct mmc_fault_verdict mmc_fault_judge_datagram(struct mmc_fault_judge *judge,
						  bool tx, const uint8_t *head,
						  uint32_t head_bytes,
						  uint32_t nbytes)
{
	struct mmc_fault_verdict verdict = { .ncopies = 1 };
	uint32_t kind = kind_of(head, head_bytes);
	uint64_t nbits = protected_bits(judge->checksum, nbytes);

	for (unsigned i = 0; i < judge->nclauses && !verdict.lost; i++) {
		struct mmc_fault_clause_state *state = &judge->clauses[i];

		if (state->clause.tx == tx && state->clause.kinds & kind)
			verdict.lost = !apply(state, &verdict, nbits);
	}
	return verdict;
}

uint64_t mmc_fault_judge_stall_end_ns(const struct mmc_fault_judge *judge,
				      uint64_t now_ns)
{
	uint64_t end_ns = now_ns;

	for (unsigned i = 0; i < judge->nclauses; i++) {
		const struct mmc_fault_clause_state *state = &judge->clauses[i];
		uint64_t stall_ns = state->clause.stall_ms * MMC_MS_NS;
		uint64_t at_ns;

		if (stall_ns == 0)
			continue;
		at_ns = (now_ns + state->phase_ns) %
			stall_period_ns(&state->clause);
		if (at_ns < stall_ns)
			end_ns = mmc_max_u64(end_ns, now_ns + stall_ns - at_ns);
	}
	return end_ns;
}
