/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares the waits of core/barrier/liveness.h with a model that keeps all events, and
 * computes each wait from that history.
 */
#include "core/barrier/liveness.h"

#include "check.h"
#include "support/prng.h"

#define NRANKS 5
#define NEVENTS_MAX 300

enum event_kind { HEARD, ADVANCED, NOTED, NOTED_AWAITED };

struct event {
	enum event_kind kind;
	uint64_t observed_ns; /* when it happened, in observed time */
	uint64_t age_ns;      /* how old the evidence was then */
};

struct model {
	struct mmc_liveness liveness;
	struct event events[NEVENTS_MAX];
	unsigned nevents;
	uint64_t now_ns;
	uint64_t observed_ns;
	uint32_t late_rank;
	uint64_t late_ns;
};

static void model_open(struct model *model)
{
	*model = (struct model){
		.now_ns = MMC_S_NS,
		.late_rank = MMC_PEER_NONE,
	};
	mmc_liveness_init(&model->liveness, model->now_ns);
}

static void record(struct model *model, enum event_kind kind, uint64_t age_ns)
{
	model->events[model->nevents++] = (struct event){
		.kind = kind,
		.observed_ns = model->observed_ns,
		.age_ns = age_ns,
	};
}

static void look(struct model *model, uint64_t elapsed_ns)
{
	model->now_ns += elapsed_ns;
	model->observed_ns += mmc_min_u64(elapsed_ns, MMC_OBSERVED_NS_MAX);
	mmc_liveness_observe(&model->liveness, model->now_ns);
}

/*
 * Notes that `rank` was late at `at_ns`, which may be long ago or after the last look.
 */
static void note(struct model *model, uint32_t rank, uint64_t at_ns,
		 bool awaited)
{
	uint64_t age_ns = at_ns > model->now_ns ? 0 : model->now_ns - at_ns;

	mmc_liveness_note_late(&model->liveness, rank, at_ns, awaited);
	record(model, awaited ? NOTED_AWAITED : NOTED, age_ns);
	if (model->late_rank != MMC_PEER_NONE && at_ns <= model->late_ns)
		return;
	model->late_rank = rank;
	model->late_ns = mmc_min_u64(at_ns, model->now_ns);
}

static void clear(struct model *model, uint32_t rank)
{
	mmc_liveness_hear_rank(&model->liveness, rank);
	if (model->late_rank == rank)
		model->late_rank = MMC_PEER_NONE;
}

/* Returns the observed time since the last event whose kind has its bit in `kinds`. */
static uint64_t since(const struct model *model, unsigned kinds)
{
	uint64_t least_ns = model->observed_ns;

	for (unsigned i = 0; i < model->nevents; i++) {
		const struct event *event = &model->events[i];

		if (kinds >> event->kind & 1)
			least_ns = mmc_min_u64(least_ns,
					       model->observed_ns -
						       event->observed_ns +
						       event->age_ns);
	}
	return least_ns;
}

static void check_waits(const struct model *model)
{
	const struct mmc_liveness *liveness = &model->liveness;
	const unsigned heard = 1 << HEARD | 1 << ADVANCED;
	const unsigned noted = 1 << NOTED | 1 << NOTED_AWAITED;

	CHECK_EQ(liveness->unheard_ns, since(model, heard));
	CHECK_EQ(liveness->unproven_ns,
		 since(model, heard | 1 << NOTED_AWAITED));
	CHECK_EQ(liveness->unexplained_ns, since(model, 1 << ADVANCED | noted));
	CHECK_EQ(liveness->stalled_ns, since(model, 1 << ADVANCED));
	CHECK_EQ(liveness->since_start_ns, model->observed_ns);
}

static void check_late(const struct model *model)
{
	static const uint64_t limits_ns[] = { 1, MMC_MS_NS, 50 * MMC_MS_NS,
					      MMC_S_NS };

	for (unsigned i = 0; i < sizeof(limits_ns) / sizeof(*limits_ns); i++) {
		bool fresh = model->now_ns - model->late_ns < limits_ns[i];

		CHECK_EQ(mmc_liveness_late(&model->liveness, limits_ns[i]),
			 fresh ? model->late_rank : MMC_PEER_NONE);
	}
}

/* After any history, the waits and the late rank are those of the model. */
static void any_history(void)
{
	static struct model model;
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned i = 0; i < 200; i++) {
		model_open(&model);
		while (model.nevents < NEVENTS_MAX) {
			uint32_t rank = (uint32_t)mmc_prng_below(&prng, NRANKS);
			uint64_t age_ns = mmc_prng_below(&prng, 80 * MMC_MS_NS);

			look(&model, mmc_prng_below(&prng, 200 * MMC_MS_NS));
			switch (mmc_prng_below(&prng, 5)) {
			case 0:
				mmc_liveness_hear_awaited(&model.liveness);
				record(&model, HEARD, 0);
				break;
			case 1:
				mmc_liveness_reset(&model.liveness);
				record(&model, ADVANCED, 0);
				break;
			case 2:
				clear(&model, rank);
				break;
			default:
				note(&model, rank,
				     model.now_ns + 20 * MMC_MS_NS - age_ns,
				     mmc_prng_below(&prng, 2) != 0);
			}
			check_waits(&model);
			check_late(&model);
		}
	}
}

/* A stopped process has not waited: it could not hear its peers. */
static void a_pause_is_no_wait(void)
{
	struct model model;

	model_open(&model);
	look(&model, 3600 * MMC_S_NS);
	CHECK_EQ(model.liveness.unheard_ns, MMC_OBSERVED_NS_MAX);
	CHECK_EQ(model.liveness.since_start_ns, MMC_OBSERVED_NS_MAX);
}

/* The wait for the owner of missing chunks ends only when the owner itself is heard. */
static void the_owner_is_seen(void)
{
	struct mmc_liveness liveness;

	mmc_liveness_init(&liveness, 0);
	CHECK_EQ(liveness.owner, MMC_PEER_NONE);
	liveness.owner = 3;
	mmc_liveness_observe(&liveness, MMC_MS_NS);
	mmc_liveness_hear_rank(&liveness, 2);
	mmc_liveness_hear_awaited(&liveness);
	mmc_liveness_reset(&liveness);
	CHECK_EQ(liveness.owner_unheard_ns, MMC_MS_NS);
	mmc_liveness_hear_rank(&liveness, 3);
	CHECK_EQ(liveness.owner_unheard_ns, 0);
}

/* Hearsay that is passed around with its age does not keep itself alive. */
static void a_circle_of_hearsay_wears_out(void)
{
	struct mmc_liveness ranks[2];
	uint64_t now_ns = MMC_S_NS;

	for (unsigned r = 0; r < 2; r++)
		mmc_liveness_init(&ranks[r], now_ns);
	mmc_liveness_note_late(&ranks[0], 4, now_ns, true);
	for (unsigned i = 0; i < 100; i++) {
		const struct mmc_liveness *from = &ranks[i % 2];

		now_ns += MMC_MS_NS;
		for (unsigned r = 0; r < 2; r++)
			mmc_liveness_observe(&ranks[r], now_ns);
		if (mmc_liveness_late(from, MMC_S_NS) == 4)
			mmc_liveness_note_late(&ranks[1 - i % 2], 4,
					       from->late_ns, true);
	}
	CHECK_EQ(ranks[0].unproven_ns, 100 * MMC_MS_NS);
	CHECK_EQ(ranks[1].unproven_ns, 100 * MMC_MS_NS);
	CHECK_EQ(mmc_liveness_late(&ranks[1], 100 * MMC_MS_NS), MMC_PEER_NONE);
	CHECK_EQ(mmc_liveness_late(&ranks[1], 101 * MMC_MS_NS), 4);
}

CHECK_MAIN(CHECK_TEST(any_history), CHECK_TEST(a_pause_is_no_wait),
	   CHECK_TEST(the_owner_is_seen),
	   CHECK_TEST(a_circle_of_hearsay_wears_out))
