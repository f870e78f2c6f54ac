/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries out the actions of each rank's core, and checks that they are allowed: a rank
 * sends only chunks that are present, and touches no buffer that it has given back.
 */
#ifndef MMC_TESTS_ACTIONS_H
#define MMC_TESTS_ACTIONS_H

#include "core/operation/due.h"
#include "reads.h"
#include "support/memory.h"

/* The transitions that were seen: [old state][new state][whether by failure]. */
static bool ranks_seen[MMC_OP_REFUSED + 1][MMC_OP_REFUSED + 1][2];

static inline uint32_t ranks_value(uint32_t epoch, uint32_t chunk)
{
	return epoch << 20 | (chunk + 1);
}

static inline void ranks_note_state(struct ranks *net, uint32_t r,
				    const struct mmc_op *op)
{
	struct ranks_epoch *at = &net->rank[r].epoch[op->config.epoch];
	bool failed = (op->record.flags & MMC_RECORD_FAILED) != 0;

	ranks_seen[at->state][op->state][failed] = true;
	at->state = op->state;
}

/* Sends a run, which must be present in the user's buffer or in its copy. */
static inline void ranks_send_run(struct ranks *net, uint32_t r,
				  const struct mmc_action *action)
{
	uint32_t epoch = action->op->config.epoch;
	struct ranks_epoch *at = &net->rank[r].epoch[epoch];
	uint64_t sent_ns = ranks_some(net, net->shape.delay_ns / 4);
	struct event sent = { .at_ns = sent_ns,
			      .kind = EVENT_SENT,
			      .rank = r,
			      .epoch = epoch,
			      .index = action->run.count };

	CHECK(!at->over || at->retained);
	CHECK(action->run.count > 0);
	for (uint32_t i = 0; i < action->run.count; i++) {
		uint32_t chunk = action->run.first + i;
		uint32_t owner = mmc_layout_owner(&net->layout, chunk);
		struct event event = {
			.kind = EVENT_DATAGRAM,
			.source = r,
			.epoch = epoch,
			.index = chunk |
				 (action->repair ? MMC_INDEX_REPAIR : 0),
			.payload_bytes =
				mmc_layout_payload(&net->layout, chunk),
			.value = at->places[chunk],
		};

		if (at->over && at->retained && CHECK_EQ(owner, r))
			event.value = ranks_value(epoch, chunk);
		CHECK_EQ(event.value, ranks_value(epoch, chunk));
		CHECK(owner == r || action->repair);
		ranks_send(net, &event, action->peer);
	}
	at->nsending += action->run.count;
	events_push(&net->events, &sent);
}

/*
 * Gives the buffers back to the user, and checks that they are complete unless the
 * operation failed.
 */
static inline void ranks_give_back(struct ranks *net, uint32_t r,
				   const struct mmc_action *action)
{
	uint32_t epoch = action->op->config.epoch;
	struct ranks_epoch *at = &net->rank[r].epoch[epoch];

	CHECK(!at->over);
	CHECK_EQ(at->nplacing, 0);
	CHECK_EQ(at->nsending, 0);
	at->over = true;
	at->failed = action->kind == MMC_ACTION_FAILED;
	at->retained = action->retain;
	CHECK(at->failed || at->nreads == 0);
	for (uint32_t c = 0; c < net->layout.nchunks; c++) {
		if (!at->failed)
			CHECK_EQ(at->places[c], ranks_value(epoch, c));
		at->places[c] = RANKS_GIVEN_BACK;
	}
}

/* Overwrites the memory of a closed operation, which nothing may use any more. */
static inline void ranks_forget(struct ranks *net, uint32_t r,
				const struct mmc_op *op)
{
	struct ranks_epoch *at = &net->rank[r].epoch[op->config.epoch];

	CHECK(at->over);
	ranks_note_state(net, r, op);
	at->forgotten = true;
	memset(at->memory, 0xdd, mmc_op_footprint(&op->config));
}

/* Asks a rank's kernel whether its process exists; a dead machine gives no answer. */
static inline void ranks_inquire(struct ranks *net, uint32_t r,
				 const struct mmc_action *action)
{
	struct event answer = {
		.at_ns = ranks_some(net, net->shape.delay_ns),
		.kind = action->peer == net->shape.dead ? EVENT_GONE
							: EVENT_ALIVE,
		.rank = r,
		.source = action->peer,
	};

	CHECK(net->shape.inquires);
	CHECK(action->peer < net->shape.nranks && action->peer != r);
	if (action->peer != net->shape.dead || net->shape.ended)
		events_push(&net->events, &answer);
}

static inline void ranks_carry_out(struct ranks *net, uint32_t r,
				   const struct mmc_actions *actions,
				   const struct mmc_action *action)
{
	struct event event = {
		.kind = EVENT_DATAGRAM,
		.source = r,
		.control_bytes = action->nbytes,
	};

	switch (action->kind) {
	case MMC_ACTION_CONTROL:
		CHECK(action->peer != r);
		event.control = malloc(action->nbytes);
		memcpy(event.control, actions->arena + action->offset,
		       action->nbytes);
		ranks_send(net, &event, action->peer);
		free(event.control);
		break;
	case MMC_ACTION_SEND:
		ranks_send_run(net, r, action);
		break;
	case MMC_ACTION_PARITY:
	case MMC_ACTION_MEND:
		CHECK(false); /* no code was asked for */
		break;
	case MMC_ACTION_DONE:
	case MMC_ACTION_FAILED:
		ranks_give_back(net, r, action);
		break;
	case MMC_ACTION_CLOSED:
		ranks_forget(net, r, action->op);
		break;
	case MMC_ACTION_READ:
	case MMC_ACTION_READ_MAP:
		reads_begin(net, r, action);
		break;
	case MMC_ACTION_REGISTER:
		mmc_op_registered(action->op,
				  net->shape.unregistrable
					  ? NULL
					  : &(struct mmc_readable){ 0 });
		break;
	case MMC_ACTION_INQUIRE:
		ranks_inquire(net, r, action);
		break;
	}
}

static inline void ranks_note_states(struct ranks *net, uint32_t r)
{
	for (uint32_t e = 1; e <= net->shape.nepochs; e++) {
		struct ranks_epoch *at = &net->rank[r].epoch[e];

		if (at->started && at->state != MMC_OP_CLOSED &&
		    at->state < MMC_OP_FAILED)
			ranks_note_state(net, r, at->memory);
	}
}

/*
 * Returns whether an operation that waits for its turn, or for its window, may have
 * changed its mind on how long to wait: that follows the rate of the path, which other
 * operations measure, too.
 */
static inline bool ranks_may_hurry(const struct mmc_op *op,
				   const struct mmc_action *action)
{
	return op->turn.open_loop || (action->kind == MMC_ACTION_CONTROL &&
				      action->peer == op->turn.predecessor);
}

/*
 * Checks that a full poll of operations that are not due yet does nothing. Since it is a
 * poll all the same, only one network in four checks it.
 */
static inline void ranks_check_due(struct ranks *net, uint32_t r)
{
	static struct mmc_actions actions;
	struct mmc_epochs *epochs = &net->rank[r].epochs;

	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++) {
		struct mmc_op *op = epochs->open[i];
		enum mmc_op_state state;

		if (op == NULL || mmc_op_due_ns(op) <= net->now_ns)
			continue;
		state = op->state;
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_op_poll(op, net->now_ns, &actions);
		CHECK_EQ(op->state, state);
		for (uint32_t a = 0; a < actions.count; a++) {
			CHECK(ranks_may_hurry(op, &actions.items[a]));
			ranks_carry_out(net, r, &actions, &actions.items[a]);
		}
	}
}

/* Polls a rank and carries out its actions, until nothing more is due now. */
static inline void ranks_poll(struct ranks *net, uint32_t r)
{
	static struct mmc_actions actions;
	struct ranks_rank *rank = &net->rank[r];
	unsigned nbatches = 0;

	do {
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_epochs_poll(&rank->epochs, net->now_ns, &actions);
		for (uint32_t i = 0; i < actions.count; i++)
			ranks_carry_out(net, r, &actions, &actions.items[i]);
		ranks_note_states(net, r);
		rank->deadline_ns = mmc_epochs_deadline(&rank->epochs);
	} while ((actions.count > 0 || rank->deadline_ns <= net->now_ns) &&
		 CHECK(nbatches++ < 10000));
	if (net->shape.seed % 4 == 0)
		ranks_check_due(net, r);
	rank->deadline_ns = mmc_epochs_deadline(&rank->epochs);
}

#endif
