/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks of one stream in one process, in virtual time, over a network that delays,
 * reorders, repeats and loses datagrams. Instead of a payload a datagram carries a
 * number that only the right chunk of the right epoch has. The ranks must keep the
 * contracts of the core: they send only what is present, a place is written once, and
 * nothing touches a buffer that has been given back.
 */
#ifndef MMC_TESTS_RANKS_H
#define MMC_TESTS_RANKS_H

#include "actions.h"

/* ---- what happens to a rank ---------------------------------------------- */

static inline void ranks_on_control(struct ranks *net,
				    const struct event *event)
{
	static struct mmc_message message;
	struct mmc_header header;

	CHECK_EQ(mmc_header_decode(&header, event->control,
				   event->control_bytes, MMC_CHECKSUM_HEADER),
		 0);
	CHECK_EQ(mmc_message_decode(&message, header.index & MMC_INDEX_MASK,
				    event->control + MMC_HEADER_BYTES,
				    event->control_bytes - MMC_HEADER_BYTES),
		 0);
	mmc_epochs_on_message(&net->rank[event->rank].epochs, event->source,
			      header.epoch, &message, net->now_ns);
}

static inline void ranks_on_chunk(struct ranks *net, const struct event *event)
{
	struct ranks_rank *rank = &net->rank[event->rank];
	struct ranks_epoch *at = &rank->epoch[event->epoch];
	struct mmc_op *op = mmc_epochs_find(&rank->epochs, event->epoch);
	struct event placed = *event;
	enum mmc_verdict verdict;

	if (op == NULL)
		return;
	verdict = mmc_op_on_chunk(op, event->source, event->index,
				  event->payload_bytes, net->now_ns);
	CHECK(verdict != MMC_VERDICT_FOREIGN);
	if (verdict != MMC_VERDICT_PLACE)
		return;
	CHECK(!at->over);
	CHECK_EQ(at->places[event->index & MMC_INDEX_MASK], 0);
	at->nplacing++;
	placed.kind = EVENT_PLACED;
	placed.at_ns = ranks_some(net, net->shape.delay_ns / 8);
	events_push(&net->events, &placed);
}

static inline void ranks_on_placed(struct ranks *net, const struct event *event)
{
	struct ranks_rank *rank = &net->rank[event->rank];
	struct ranks_epoch *at = &rank->epoch[event->epoch];
	uint32_t chunk = event->index & MMC_INDEX_MASK;

	CHECK(!at->over);
	at->nplacing--;
	at->places[chunk] = event->value;
	mmc_op_on_placed(at->memory, chunk);
}

/* Starts the next epoch of a rank; mmc_epochs_ready() must hold. */
static inline void ranks_start(struct ranks *net, uint32_t r)
{
	const struct ranks_shape *shape = &net->shape;
	struct ranks_rank *rank = &net->rank[r];
	uint32_t epoch = rank->epochs.last + 1;
	struct ranks_epoch *at = &rank->epoch[epoch];
	const struct mmc_block own = mmc_layout_block(&net->layout, r);
	struct mmc_op_config config = {
		.nranks = shape->nranks,
		.signature = shape->block_bytes + (r == shape->odd),
		.block_bytes = shape->block_bytes,
		.blocks_bytes = shape->uneven ? net->blocks_bytes : NULL,
		.sole = shape->sole,
		.root = shape->root,
		.chunk_bytes = shape->chunk_bytes,
		.nchains = shape->nchains,
		.window_bytes = shape->window_bytes,
		.source_bytes = shape->window_bytes,
		.eager_bytes = shape->eager_bytes,
		.retain_bytes = shape->retain_bytes,
		.repair = shape->repair,
		.read_bytes = shape->read_bytes,
		.timeout_ns = 10 * MMC_S_NS,
		.entry_timeout_ns = shape->entry_timeout_ns,
		.late_timeout_ns = shape->late_timeout_ns,
		.inquires = shape->inquires,
		.unattended = shape->unattended,
		.seed = shape->seed + r,
	};

	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_op_footprint(&config));
	config.generation = shape->read_bytes > 0 ? epoch * 100 + r : 0;
	at->places = calloc(net->layout.nchunks + 1, sizeof(uint32_t));
	for (uint32_t c = own.first; c < own.first + own.nchunks; c++)
		at->places[c] = ranks_value(epoch, c);
	at->started = true;
	mmc_epochs_start(&rank->epochs, at->memory, &config, net->now_ns);
}

static inline void ranks_happen(struct ranks *net, struct event *event)
{
	struct ranks_rank *rank = &net->rank[event->rank];

	switch (event->kind) {
	case EVENT_DATAGRAM:
		if (event->control != NULL)
			ranks_on_control(net, event);
		else
			ranks_on_chunk(net, event);
		break;
	case EVENT_PLACED:
		ranks_on_placed(net, event);
		break;
	case EVENT_SENT:
		rank->epoch[event->epoch].nsending -= event->index;
		mmc_op_on_sent(rank->epoch[event->epoch].memory, event->index);
		break;
	case EVENT_START:
		rank->ready = true;
		break;
	case EVENT_ALIVE:
		mmc_epochs_on_alive(&rank->epochs, event->source);
		break;
	case EVENT_GONE:
		mmc_epochs_on_gone(&rank->epochs, event->source);
		break;
	case EVENT_READ:
	case EVENT_READ_MAP:
		reads_happen(net, event);
		break;
	}
}

/* Lets a rank compute for a while before it starts its next epoch. */
static inline void ranks_start_later(struct ranks *net, uint32_t r)
{
	struct event start = {
		.at_ns = net->now_ns,
		.kind = EVENT_START,
		.rank = r,
	};

	net->rank[r].ready = false;
	if (net->shape.tardy == r)
		start.at_ns += net->shape.tardy_ns;
	if (net->shape.late == r)
		start.at_ns += net->shape.late_ns;
	else if (net->shape.late == MMC_PEER_ALL)
		start.at_ns += mmc_prng_below(&net->prng, net->shape.late_ns);
	events_push(&net->events, &start);
}

/* Draws the size of each rank's block, up to that of the shape. */
static inline void ranks_draw_blocks(struct ranks *net)
{
	struct mmc_prng prng = { .state = net->shape.seed ^ 0x5eed };

	for (uint32_t r = 0; r < net->shape.nranks; r++)
		net->blocks_bytes[r] =
			mmc_prng_below(&prng, 3) == 0
				? 0
				: mmc_prng_below(&prng,
						 net->shape.block_bytes + 1);
}

static inline int ranks_lay_out(struct ranks *net)
{
	const struct ranks_shape *shape = &net->shape;
	int rv;

	if (shape->sole)
		return mmc_layout_init_sole(&net->layout, shape->nranks,
					    shape->root, shape->block_bytes,
					    shape->chunk_bytes);
	if (!shape->uneven)
		return mmc_layout_init(&net->layout, shape->nranks,
				       shape->block_bytes, shape->chunk_bytes);
	ranks_draw_blocks(net);
	rv = mmc_layout_init_each(&net->layout, shape->nranks,
				  net->blocks_bytes, shape->chunk_bytes);
	CHECK(mmc_layout_bytes(&net->layout) <= sizeof(net->table));
	mmc_layout_tabulate(&net->layout, net->table, net->blocks_bytes);
	return rv;
}

/* ---- the whole ----------------------------------------------------------- */

static inline void ranks_open(struct ranks *net,
			      const struct ranks_shape *shape)
{
	*net = (struct ranks){
		.shape = *shape,
		.prng = { .state = shape->seed },
		.now_ns = MMC_S_NS,
	};
	CHECK_EQ(ranks_lay_out(net), 0);
	for (uint32_t r = 0; r < shape->nranks; r++) {
		net->rank[r].deadline_ns = MMC_NEVER_NS;
		mmc_epochs_init(&net->rank[r].epochs,
				net->rank[r].epochs_memory, UINT64_C(5) << 16,
				r, shape->nranks, &net->rank[r].counters);
		ranks_start_later(net, r);
	}
}

static inline void ranks_close(struct ranks *net)
{
	events_close(&net->events);
	for (uint32_t r = 0; r < net->shape.nranks; r++)
		for (uint32_t e = 1; e <= net->shape.nepochs; e++) {
			struct ranks_epoch *at = &net->rank[r].epoch[e];

			for (uint32_t c = 0;
			     at->over && c < net->layout.nchunks; c++)
				CHECK_EQ(at->places[c], RANKS_GIVEN_BACK);
			free(at->memory);
			free(at->places);
		}
}

/* Starts epochs while the rank may: at most `nactive` are not yet done. */
static inline void ranks_go_on(struct ranks *net, uint32_t r)
{
	struct mmc_epochs *epochs = &net->rank[r].epochs;

	while (net->rank[r].ready && epochs->last < net->shape.nepochs &&
	       epochs->last - epochs->done < net->shape.nactive &&
	       mmc_epochs_ready(epochs)) {
		ranks_start(net, r);
		ranks_poll(net, r);
		ranks_start_later(net, r);
	}
}

static inline bool ranks_is_over(const struct ranks *net)
{
	for (uint32_t r = 0; r < net->shape.nranks; r++) {
		const struct mmc_epochs *epochs = &net->rank[r].epochs;

		if (r != net->shape.dead && epochs->poison.error == MMC_OK &&
		    epochs->done != net->shape.nepochs)
			return false;
		if (epochs->done != epochs->last && r != net->shape.dead)
			return false;
	}
	return true;
}

static inline uint64_t ranks_deadline(const struct ranks *net, uint32_t r)
{
	if (r == net->shape.dead)
		return MMC_NEVER_NS;
	return ranks_when(net, r, net->rank[r].deadline_ns);
}

/* Returns the rank whose deadline comes first. */
static inline uint32_t ranks_first(const struct ranks *net)
{
	uint32_t first = 0;

	for (uint32_t r = 1; r < net->shape.nranks; r++)
		if (ranks_deadline(net, r) < ranks_deadline(net, first))
			first = r;
	return first;
}

/* Lets the next event or deadline happen; returns false if there is none. */
static inline bool ranks_step(struct ranks *net)
{
	uint32_t r = ranks_first(net);
	uint64_t due_ns = ranks_deadline(net, r);

	if (net->events.nitems > 0 && events_first_ns(&net->events) <= due_ns) {
		struct event event = events_pop(&net->events);

		net->now_ns = event.at_ns;
		r = event.rank;
		event.at_ns = ranks_when(net, r, net->now_ns);
		if (event.at_ns > net->now_ns) {
			events_push(&net->events, &event);
			return true;
		}
		if (r != net->shape.dead)
			ranks_happen(net, &event);
		free(event.control);
	} else if (due_ns == MMC_NEVER_NS) {
		return false;
	} else if (due_ns > net->now_ns) {
		net->now_ns = due_ns;
	}
	if (r != net->shape.dead) {
		ranks_poll(net, r);
		ranks_go_on(net, r);
	}
	return true;
}

/* Runs until every live rank is done or has failed; returns false on a hang. */
static inline bool ranks_run(struct ranks *net)
{
	while (!ranks_is_over(net))
		if (!CHECK(ranks_step(net)) ||
		    !CHECK(net->nsteps++ < RANKS_STEPS_MAX))
			return false;
	return true;
}

#endif
