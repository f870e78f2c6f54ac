/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares a chain with a model that keeps a state for every turn: which senders are
 * followed, of which no more is expected, and how many chunks count as drained.
 */
#include "core/repair/chain.h"

#include "check.h"
#include "support/prng.h"

#define NRANKS_MAX 90
#define BLOCK_CHUNKS 6
#define NCHAINS 2
#define CHAIN 1

struct turn {
	bool followed; /* now or before */
	bool over;
	bool given_up;
	uint32_t late_end;
	uint32_t lost_end;
	uint32_t nleft;
};

struct model {
	struct mmc_layout layout;
	struct mmc_schedule schedule;
	struct mmc_bitmap claimed;
	uint64_t words[NRANKS_MAX * BLOCK_CHUNKS / 64 + 1];
	struct mmc_sequence sequences[MMC_CHAIN_SEQUENCES];
	struct mmc_chain chain;
	struct turn turns[NRANKS_MAX];
	uint32_t nturns;
	uint32_t nbegun;
	uint32_t ndrained;
};

/* ---- the model ----------------------------------------------------------- */

static uint32_t rank_of(uint32_t turn)
{
	return turn * NCHAINS + CHAIN;
}

static uint32_t count_active(const struct model *model)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < model->nturns; t++)
		n += model->turns[t].followed && !model->turns[t].over;
	return n;
}

static bool is_full(const struct model *model)
{
	return count_active(model) == model->chain.nsequences;
}

/* Returns the first turn with more to come, or nturns. */
static uint32_t first_open(const struct model *model)
{
	uint32_t t = 0;

	while (t < model->nturns && model->turns[t].over)
		t++;
	return t;
}

static uint32_t count_followed(const struct model *model)
{
	uint32_t t = 0;

	while (t < model->nturns && model->turns[t].followed)
		t++;
	return t;
}

/* Makes the missing chunks below `end` late, and counts those that were not. */
static void expect_late(struct model *model, uint32_t turn, uint32_t end)
{
	uint32_t first = rank_of(turn) * BLOCK_CHUNKS;
	struct turn *at = &model->turns[turn];

	for (; at->late_end < end; at->late_end++)
		model->ndrained +=
			!mmc_bitmap_test(&model->claimed, first + at->late_end);
}

static void expect_followed(struct model *model, uint32_t turn)
{
	model->turns[turn].followed = true;
}

static void expect_look_ahead(struct model *model)
{
	uint32_t open = first_open(model);
	uint32_t end =
		MMC_CHAIN_AHEAD + (open > model->nbegun ? open : model->nbegun);

	for (uint32_t t = 0; t < model->nturns && t < end; t++)
		if (!model->turns[t].followed && !is_full(model))
			expect_followed(model, t);
}

static void expect_begin(struct model *model, uint32_t turn)
{
	if (turn < model->nbegun)
		return;
	for (uint32_t t = 0; t <= turn; t++) {
		uint32_t open = first_open(model);

		if (model->turns[t].followed)
			continue;
		if (is_full(model)) {
			expect_late(model, open, BLOCK_CHUNKS);
			model->turns[open].over = true;
			model->turns[open].given_up = true;
		}
		expect_followed(model, t);
	}
	model->nbegun = turn + 1;
	expect_look_ahead(model);
}

static void expect_pass(struct model *model)
{
	for (uint32_t t = 0; t < model->nturns; t++) {
		struct turn *at = &model->turns[t];

		at->over |= at->followed &&
			    (at->nleft == 0 || at->lost_end == BLOCK_CHUNKS);
	}
	expect_look_ahead(model);
}

/* ---- the chain and the model --------------------------------------------- */

static void model_open(struct model *model, uint32_t nranks)
{
	memset(model, 0, sizeof(*model));
	CHECK_EQ(mmc_layout_init(&model->layout, nranks, BLOCK_CHUNKS * 100,
				 100),
		 0);
	mmc_schedule_init(&model->schedule, NULL, &model->layout, NCHAINS, 4000,
			  UINT32_MAX);
	mmc_bitmap_init(&model->claimed, model->words, model->layout.nchunks);
	model->nturns = mmc_schedule_turns(&model->schedule, CHAIN);
	for (uint32_t t = 0; t < model->nturns; t++)
		model->turns[t].nleft = BLOCK_CHUNKS;
	mmc_chain_init(&model->chain, model->sequences, &model->schedule, CHAIN,
		       0);
	expect_look_ahead(model);
}

static void check_turn(const struct model *model, uint32_t turn)
{
	const struct turn *at = &model->turns[turn];
	const struct mmc_chain *chain = &model->chain;
	const struct mmc_sequence *sequence = mmc_chain_sequence(chain, turn);
	uint32_t lost_end = at->over && !at->given_up ? BLOCK_CHUNKS : 0;

	CHECK_EQ(sequence != NULL, at->followed && !at->over);
	CHECK_EQ(mmc_chain_turn_has_ended(chain, turn), at->over);
	if (sequence != NULL) {
		CHECK_EQ(sequence->turn, turn);
		CHECK_EQ(sequence->rank, rank_of(turn));
		CHECK_EQ(sequence->first, rank_of(turn) * BLOCK_CHUNKS);
		CHECK_EQ(sequence->nchunks, BLOCK_CHUNKS);
		CHECK_EQ(sequence->start, turn * BLOCK_CHUNKS);
		CHECK_EQ(sequence->late_end, at->late_end);
		CHECK(sequence->end >= at->late_end);
		lost_end = at->lost_end;
	}
	/* Only the loss detector knows which chunks of given-up senders are lost. */
	if (turn >= chain->late_turns || sequence != NULL)
		CHECK_EQ(mmc_chain_lost_end(chain, turn, BLOCK_CHUNKS),
			 lost_end);
	else
		CHECK_EQ(mmc_chain_lost_end(chain, turn, BLOCK_CHUNKS), 0);
}

static void check_chain(const struct model *model)
{
	const struct mmc_chain *chain = &model->chain;

	CHECK_EQ(chain->turn, first_open(model));
	CHECK_EQ(chain->nfollowed, count_followed(model));
	CHECK_EQ(chain->nbegun, model->nbegun);
	CHECK_EQ(chain->ndrained, model->ndrained);
	for (uint32_t t = 0; t < model->nturns; t++)
		check_turn(model, t);
}

static void begin(struct model *model, uint32_t turn)
{
	const struct mmc_sequence *sequence =
		mmc_chain_follow(&model->chain, &model->schedule, CHAIN,
				 &model->claimed, turn, 0);

	expect_begin(model, turn);
	CHECK_EQ(sequence == NULL, model->turns[turn].over);
	if (sequence != NULL)
		CHECK_EQ(sequence->turn, turn);
}

static void claim(struct model *model, uint32_t turn, uint32_t place)
{
	struct mmc_sequence *sequence = mmc_chain_sequence(&model->chain, turn);

	if (sequence == NULL ||
	    mmc_bitmap_test_and_set(&model->claimed, sequence->first + place))
		return;
	sequence->nleft--;
	model->turns[turn].nleft--;
}

/*
 * Counts the chunks of a followed sender below `end` as late or, with `lost`, as lost.
 */
static void pass(struct model *model, uint32_t turn, uint32_t end, bool lost)
{
	struct turn *at = &model->turns[turn];
	struct mmc_sequence *sequence = mmc_chain_sequence(&model->chain, turn);

	if (sequence == NULL)
		return;
	expect_late(model, turn, end);
	if (lost) {
		mmc_chain_lose(&model->chain, sequence, &model->claimed, end);
		at->lost_end = end > at->lost_end ? end : at->lost_end;
	} else {
		mmc_chain_mark_late(&model->chain, sequence, &model->claimed,
				    end);
	}
}

/* The chain and the model agree after every step of a random history. */
static void any_order(void)
{
	static const uint32_t sizes[] = { 2, 5, 30, 33, 60, NRANKS_MAX };
	static struct model model;
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned i = 0; i < 120; i++) {
		model_open(&model, sizes[i % 6]);
		check_chain(&model);
		for (unsigned k = 0; k < 300; k++) {
			uint32_t open = first_open(&model);
			uint32_t turn =
				(open + (uint32_t)mmc_prng_below(&prng, 20)) %
				model.nturns;
			uint32_t end = (uint32_t)mmc_prng_below(
				&prng, BLOCK_CHUNKS + 1);

			switch (mmc_prng_below(&prng, 6)) {
			case 0:
				begin(&model, turn);
				break;
			case 1:
				pass(&model, turn, end, end % 2 != 0);
				break;
			case 2:
				mmc_chain_pass(&model.chain, &model.schedule,
					       CHAIN, 0);
				expect_pass(&model);
				break;
			default:
				claim(&model, turn, end % BLOCK_CHUNKS);
			}
			check_chain(&model);
		}
	}
}

/* ---- single rules -------------------------------------------------------- */

/* There are enough sequences for all senders that the chains may follow at a time. */
static void enough_sequences(void)
{
	for (uint32_t nsenders = 1; nsenders < 200; nsenders++)
		for (uint32_t nchains = 1; nchains <= nsenders; nchains++) {
			uint32_t total = 0;

			for (uint32_t c = 0; c < nchains; c++) {
				uint32_t nturns =
					(nsenders - c + nchains - 1) / nchains;

				total += nturns < MMC_CHAIN_SEQUENCES
						 ? nturns
						 : MMC_CHAIN_SEQUENCES;
			}
			CHECK(mmc_chain_sequences(nsenders, nchains) >= total);
		}
}

/* The wait for a sender begins when its turn is reached, not before. */
static void waits_from_its_turn_on(void)
{
	static struct model model;
	const struct mmc_sequence *second;

	model_open(&model, NRANKS_MAX);
	second = mmc_chain_sequence(&model.chain, 1);
	CHECK_EQ(second->heard_ns, 0);
	for (uint32_t place = 0; place < BLOCK_CHUNKS; place++)
		claim(&model, 0, place);
	mmc_chain_pass(&model.chain, &model.schedule, CHAIN, 77);
	CHECK_EQ(model.chain.turn, 1);
	CHECK_EQ(second->heard_ns, 77);
	mmc_chain_pass(&model.chain, &model.schedule, CHAIN, 88);
	CHECK_EQ(second->heard_ns, 77);
	/*
	 * For a sender that has begun already, the wait began when it was last heard.
	 */
	begin(&model, 2);
	for (uint32_t place = 0; place < BLOCK_CHUNKS; place++)
		claim(&model, 1, place);
	mmc_chain_pass(&model.chain, &model.schedule, CHAIN, 99);
	CHECK_EQ(model.chain.turn, 2);
	CHECK_EQ(mmc_chain_sequence(&model.chain, 2)->heard_ns, 0);
}

static void nothing_is_expected_after_the_end(void)
{
	static struct model model;

	model_open(&model, NRANKS_MAX);
	begin(&model, MMC_CHAIN_SEQUENCES + 3);
	CHECK(model.turns[0].given_up);
	mmc_chain_end(&model.chain);
	CHECK_EQ(model.chain.turn, model.nturns);
	CHECK_EQ(model.chain.ndrained, model.ndrained);
	for (uint32_t t = 0; t < model.nturns; t++) {
		CHECK(mmc_chain_turn_has_ended(&model.chain, t));
		CHECK(mmc_chain_sequence(&model.chain, t) == NULL);
		CHECK_EQ(mmc_chain_lost_end(&model.chain, t, BLOCK_CHUNKS),
			 BLOCK_CHUNKS);
	}
}

CHECK_MAIN(CHECK_TEST(any_order), CHECK_TEST(enough_sequences),
	   CHECK_TEST(waits_from_its_turn_on),
	   CHECK_TEST(nothing_is_expected_after_the_end))
