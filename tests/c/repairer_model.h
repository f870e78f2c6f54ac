/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks a repairer against what was requested of it: it sends nothing unrequested,
 * nothing twice within the resting time, and serves every rank that goes on asking.
 */
#ifndef MMC_TESTS_REPAIRER_MODEL_H
#define MMC_TESTS_REPAIRER_MODEL_H

#include "check.h"
#include "core/repair/repairer.h"
#include "core/types.h"
#include "support/prng.h"

#define NCHUNKS 150
#define NPEERS 6
#define GATHER_NS (100 * MMC_US_NS)
#define REST_NS (400 * MMC_US_NS)

struct model {
	struct mmc_repairer repairer;
	uint8_t *memory;
	uint64_t words[(NCHUNKS + 63) / 64];
	struct mmc_bitmap present;
	uint64_t now_ns;
	uint64_t asked_ns[NPEERS][NCHUNKS]; /* 0: not asked, or served since */
	uint64_t sent_ns[NPEERS][NCHUNKS];  /* 0: never */
	unsigned nsent;
	unsigned nmulticast;
};

static inline void model_open(struct model *model, bool gathers)
{
	*model = (struct model){
		.memory = malloc(mmc_repairer_bytes(NCHUNKS)),
		.now_ns = MMC_S_NS,
	};
	mmc_bitmap_init(&model->present, model->words, NCHUNKS);
	mmc_bitmap_set_run(&model->present,
			   (struct mmc_run){ .count = NCHUNKS });
	mmc_repairer_init(&model->repairer, model->memory,
			  &(struct mmc_repairer_config){
				  .present = &model->present,
				  .own = { 0, NCHUNKS },
				  .gathers = gathers,
				  .multicast_min = 2,
				  .gather_ns = GATHER_NS,
				  .rest_ns = REST_NS,
			  });
}

static inline void model_close(struct model *model)
{
	free(model->memory);
}

static inline void ask(struct model *model, uint32_t peer, uint32_t first,
		       uint32_t count)
{
	struct mmc_run run = { .first = first, .count = count };

	for (uint32_t i = 0; i < count; i++)
		if (model->asked_ns[peer][first + i] == 0)
			model->asked_ns[peer][first + i] = model->now_ns;
	mmc_repairer_on_nak(&model->repairer, peer, run, model->now_ns);
}

/* Records that a chunk was sent to `peer`, and checks that it should have been. */
static inline void check_sent(struct model *model, uint32_t peer,
			      uint32_t chunk)
{
	unsigned nasked = 0;
	bool rested = false;

	for (uint32_t p = 0; p < NPEERS; p++)
		nasked += model->asked_ns[p][chunk] != 0;
	CHECK(nasked > 0);
	for (uint32_t p = 0; p < NPEERS; p++)
		if (peer == p || peer == MMC_PEER_ALL) {
			uint64_t sent_ns = model->sent_ns[p][chunk];

			rested |= sent_ns == 0 ||
				  sent_ns + REST_NS <= model->now_ns;
			model->sent_ns[p][chunk] = model->now_ns;
		}
	CHECK(rested);
	if (peer != MMC_PEER_ALL) {
		CHECK(model->asked_ns[peer][chunk] != 0);
		model->asked_ns[peer][chunk] = 0;
		return;
	}
	model->nmulticast++;
	CHECK(model->repairer.gathers);
	for (uint32_t p = 0; p < NPEERS; p++)
		model->asked_ns[p][chunk] = 0;
}

/* Sends all that is due; returns the number of chunks. */
static inline unsigned serve(struct model *model)
{
	unsigned before = model->nsent;
	struct mmc_run run;
	uint32_t peer;

	while (mmc_repairer_next(&model->repairer, model->now_ns, 5, &peer,
				 &run)) {
		CHECK(run.count >= 1);
		CHECK(run.count <= 5);
		CHECK(peer < NPEERS || peer == MMC_PEER_ALL);
		if (!CHECK(run.first + run.count <= NCHUNKS))
			break;
		for (uint32_t i = 0; i < run.count; i++)
			check_sent(model, peer, run.first + i);
		model->nsent += run.count;
	}
	CHECK(mmc_repairer_deadline(&model->repairer) > model->now_ns);
	return model->nsent - before;
}

#endif
