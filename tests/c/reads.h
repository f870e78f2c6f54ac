/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of the left neighbour's memory in a test's network. The stretches of a
 * read are taken one after the other, and the reader gets them later still.
 * Every read ends; a read of a dead rank's memory fails.
 */
#ifndef MMC_TESTS_READS_H
#define MMC_TESTS_READS_H

#include "network.h"

#define READS_DEAD_NS MMC_S_NS

/* Begins a READ or READ_MAP of rank `r`. */
static inline void reads_begin(struct ranks *net, uint32_t r,
			       const struct mmc_action *action)
{
	uint32_t epoch = action->op->config.epoch;
	struct event event = {
		.at_ns = ranks_some(net, net->shape.delay_ns),
		.kind = action->kind == MMC_ACTION_READ ? EVENT_READ
							: EVENT_READ_MAP,
		.rank = r,
		.source = action->peer,
		.epoch = epoch,
		.index = action->run.first,
		.count = action->run.count,
	};

	CHECK_EQ(action->peer, (r + net->shape.nranks - 1) % net->shape.nranks);
	CHECK(action->run.count > 0);
	CHECK(action->op->repair.fetcher.advert.has_data);
	event.control_bytes = event.count * (event.kind == EVENT_READ ? 4 : 8) +
			      MMC_GENERATION_BYTES;
	event.control = malloc(event.control_bytes);
	net->rank[r].epoch[epoch].nreads++;
	events_push(&net->events, &event);
}

/* Takes what memory holds now: in step 1 the generation, in step 0 the rest. */
static inline void reads_take(struct ranks *net, struct event *event)
{
	struct ranks_epoch *repairer =
		&net->rank[event->source].epoch[event->epoch];
	uint32_t nbytes = event->control_bytes - MMC_GENERATION_BYTES;
	const struct mmc_op *op = repairer->memory;

	if (repairer->forgotten) {
		/*
		 * Only after a failure: the engine keeps the generation at 0.
		 */
		CHECK(net->rank[event->source].epochs.poison.error != MMC_OK);
		memset(event->control, 0, event->control_bytes);
	} else if (event->step == 1) {
		memcpy(event->control + nbytes, op->repair.advertiser.word,
		       MMC_GENERATION_BYTES);
	} else if (event->kind == EVENT_READ) {
		memcpy(event->control, repairer->places + event->index, nbytes);
	} else {
		memcpy(event->control, op->present.words + event->index,
		       nbytes);
	}
}

/* Places the chunks of a read, as far as the operation accepts them. */
static inline void reads_place(struct ranks *net, const struct event *event)
{
	struct ranks_epoch *at = &net->rank[event->rank].epoch[event->epoch];

	for (uint32_t i = 0; i < event->count; i++) {
		struct event placed = *event;

		placed.index = event->index + i;
		placed.control = NULL;
		memcpy(&placed.value, event->control + 4 * i, 4);
		CHECK_EQ(placed.value, event->epoch << 20 | (placed.index + 1));
		if (mmc_op_on_fetched(at->memory, placed.index, net->now_ns) !=
		    MMC_VERDICT_PLACE)
			continue;
		CHECK_EQ(at->places[placed.index], 0);
		at->nplacing++;
		placed.kind = EVENT_PLACED;
		placed.at_ns = ranks_some(net, net->shape.delay_ns / 8);
		events_push(&net->events, &placed);
	}
}

/* Ends a read, whether it succeeded or failed. */
static inline void reads_end(struct ranks *net, const struct event *event)
{
	struct ranks_epoch *at = &net->rank[event->rank].epoch[event->epoch];
	const struct mmc_run run = { .first = event->index,
				     .count = event->count };
	uint64_t generation = 0;

	at->nreads--;
	if (at->over)
		return;
	if (event->kind == EVENT_READ_MAP) {
		mmc_op_on_map(at->memory, run,
			      event->failed ? NULL : event->control,
			      net->now_ns);
		return;
	}
	if (!event->failed)
		memcpy(&generation,
		       event->control + event->control_bytes -
			       MMC_GENERATION_BYTES,
		       sizeof(generation));
	if (mmc_op_on_read(at->memory, run, generation))
		reads_place(net, event);
}

/* Takes the next step of a read. */
static inline void reads_happen(struct ranks *net, struct event *event)
{
	if (event->step == 2 || event->failed) {
		reads_end(net, event);
		return;
	}
	event->at_ns = ranks_some(net, net->shape.delay_ns);
	event->failed = event->source == net->shape.dead;
	if (event->failed)
		event->at_ns += READS_DEAD_NS;
	else
		reads_take(net, event);
	event->step++;
	events_push(&net->events, event);
	event->control = NULL; /* the pushed event has it */
}

#endif
