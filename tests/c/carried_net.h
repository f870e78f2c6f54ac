/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks whose entry barriers carry the blocks of small operations, and a network between
 * them that loses, repeats and reorders messages.
 */
#ifndef MMC_TESTS_CARRIED_NET_H
#define MMC_TESTS_CARRIED_NET_H

#include "check.h"
#include "core/operation/carried.h"
#include "core/operation/epochs.h"
#include "support/bits.h"
#include "support/memory.h"
#include "support/prng.h"

#define NRANKS_MAX 33
#define NEPOCHS 9
#define BLOCK_BYTES_MAX 700
#define CHUNK_BYTES 100
#define MESSAGES_MAX 8192
#define STEP_NS (500 * MMC_US_NS)

struct message {
	uint32_t source;
	uint32_t target;
	uint32_t epoch;
	uint32_t kind;
	uint32_t nbytes;
	uint8_t bytes[MMC_MESSAGE_BYTES + MMC_PART_HEAD_BYTES + MMC_PART_BYTES];
};

struct rank {
	struct mmc_epochs epochs;
	void *epochs_memory;
	struct mmc_counters counters;
	struct mmc_op *ops[NEPOCHS + 1];
	void *memory[NEPOCHS + 1];
	uint8_t result[NEPOCHS + 1][NRANKS_MAX * BLOCK_BYTES_MAX];
	bool done[NEPOCHS + 1];
	uint32_t nfailed; /* operations that have failed */
};

struct net {
	struct mmc_prng prng;
	uint32_t nranks;
	uint32_t block_bytes;
	bool sole;
	uint32_t
		odd; /* starts something else in epoch `odd_epoch`; or nobody */
	uint32_t odd_epoch;
	uint64_t loss; /* of 2^32 messages */
	uint64_t now_ns;
	struct rank ranks[NRANKS_MAX];
	struct message messages[MESSAGES_MAX];
	uint32_t nmessages;
	uint32_t nsent;
	uint32_t nmulticast;
};

static inline uint32_t root_of(const struct net *net, uint32_t epoch)
{
	return epoch * 5 % net->nranks;
}

static inline uint8_t truth(uint32_t owner, uint32_t epoch, uint32_t byte)
{
	return (uint8_t)(1 + owner * 7 + epoch * 31 + byte);
}

static inline void put_own(struct net *net, uint32_t r, uint32_t epoch)
{
	uint8_t *result = net->ranks[r].result[epoch];
	uint32_t owner = net->sole ? root_of(net, epoch) : r;

	for (uint32_t b = 0; b < net->block_bytes && owner == r; b++)
		result[(net->sole ? 0 : r) * net->block_bytes + b] =
			truth(r, epoch, b);
}

static inline void start(struct net *net, uint32_t r)
{
	struct rank *rank = &net->ranks[r];
	uint32_t epoch = mmc_epochs_last(&rank->epochs) + 1;
	bool odd = r == net->odd && epoch == net->odd_epoch;
	const struct mmc_op_config config = {
		.epoch = epoch,
		.rank = r,
		.nranks = net->nranks,
		.signature = odd ? 8 : 7,
		.block_bytes = net->block_bytes,
		.sole = net->sole && !odd,
		.root = root_of(net, epoch),
		.chunk_bytes = CHUNK_BYTES,
		.window_bytes = 10000,
		.source_bytes = 10000,
		.eager_bytes = 65536,
		.carried_bytes = MMC_PARTS_MAX * MMC_PART_BYTES,
		.retain_bytes = 1000,
		.timeout_ns = 10 * MMC_S_NS,
	};

	rank->memory[epoch] = aligned_alloc(
		MMC_ALIGN_BYTES, mmc_op_footprint(&config) + 4096 -
					 mmc_op_footprint(&config) % 4096);
	put_own(net, r, epoch);
	rank->ops[epoch] = mmc_epochs_start(&rank->epochs, rank->memory[epoch],
					    &config, net->now_ns);
}

static inline void net_open(struct net *net, uint32_t nranks, bool sole,
			    uint64_t seed, uint64_t loss)
{
	*net = (struct net){
		.prng = { .state = seed },
		.nranks = nranks,
		.block_bytes = 3,
		.sole = sole,
		.loss = loss,
		.odd = MMC_PEER_NONE,
		.now_ns = MMC_S_NS,
	};
	for (uint32_t r = 0; r < nranks; r++) {
		struct rank *rank = &net->ranks[r];

		rank->epochs_memory = aligned_alloc(
			MMC_ALIGN_BYTES,
			(mmc_epochs_bytes(nranks) / 4096 + 1) * 4096);
		mmc_epochs_init(&rank->epochs, rank->epochs_memory,
				UINT64_C(3) << 16, r, nranks, &rank->counters);
	}
}

static inline void net_close(struct net *net)
{
	for (uint32_t r = 0; r < net->nranks; r++) {
		for (uint32_t e = 1; e <= NEPOCHS; e++)
			free(net->ranks[r].memory[e]);
		free(net->ranks[r].epochs_memory);
	}
}

static inline void post_to(struct net *net, const struct message *message)
{
	unsigned copies = 1 + mmc_prng_chance(&net->prng, net->loss / 2);

	if (mmc_prng_chance(&net->prng, net->loss))
		return;
	while (copies-- > 0 && CHECK(net->nmessages < MESSAGES_MAX))
		net->messages[net->nmessages++] = *message;
}

/* Returns where byte `at` of the blocks of a run from block `first` on is in a result. */
static inline uint32_t place_of(const struct net *net, uint32_t first,
				uint32_t at)
{
	uint32_t nblocks = net->sole ? 1 : net->nranks;

	return (first * net->block_bytes + at) % (nblocks * net->block_bytes);
}

/* Sends a message to its target, or to all but its sender. */
static inline void post_each(struct net *net, struct message *message)
{
	net->nsent++;
	net->nmulticast += message->target == MMC_PEER_ALL;
	if (message->target != MMC_PEER_ALL) {
		post_to(net, message);
		return;
	}
	for (uint32_t target = 0; target < net->nranks; target++) {
		message->target = target;
		if (target != message->source)
			post_to(net, message);
	}
}

/* Sends a message, or one for each part of the blocks that it carries. */
static inline void post(struct net *net, uint32_t r,
			const struct mmc_actions *actions,
			const struct mmc_action *action)
{
	const uint8_t *bytes = actions->arena + action->offset;
	const struct mmc_header header = mmc_header_peek(bytes);
	struct message message = {
		.source = r,
		.target = action->peer,
		.epoch = header.epoch,
		.kind = header.index & MMC_INDEX_MASK,
		.nbytes = action->nbytes - MMC_HEADER_BYTES,
	};
	const uint8_t *result = net->ranks[r].result[header.epoch];
	uint32_t all_bytes = action->run.count * net->block_bytes;
	uint32_t head_bytes = message.nbytes;

	CHECK(head_bytes <= sizeof(message.bytes));
	memcpy(message.bytes, bytes + MMC_HEADER_BYTES, head_bytes);
	if (all_bytes == 0)
		post_each(net, &message);
	for (uint32_t at = action->first; at < all_bytes;
	     at += MMC_PART_BYTES) {
		uint32_t nbytes = mmc_min_u32(all_bytes - at, MMC_PART_BYTES);

		mmc_message_set_part(message.bytes, at, nbytes);
		for (uint32_t i = 0; i < nbytes; i++)
			message.bytes[head_bytes + i] = result[place_of(
				net, action->run.first, at + i)];
		message.nbytes = head_bytes + nbytes;
		message.target = action->peer;
		post_each(net, &message);
	}
}

static inline void check_result(const struct net *net, uint32_t r,
				uint32_t epoch)
{
	const uint8_t *result = net->ranks[r].result[epoch];

	for (uint32_t i = 0; i < (net->sole ? 1 : net->nranks); i++)
		for (uint32_t b = 0; b < net->block_bytes; b++)
			CHECK_EQ(result[i * net->block_bytes + b],
				 truth(net->sole ? root_of(net, epoch) : i,
				       epoch, b));
}

/* Polls a rank. Returns whether it had anything to do. */
static inline bool poll_rank(struct net *net, uint32_t r)
{
	struct rank *rank = &net->ranks[r];
	static struct mmc_actions actions;

	mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
	mmc_epochs_poll(&rank->epochs, net->now_ns, &actions);
	for (uint32_t i = 0; i < actions.count; i++) {
		const struct mmc_action *action = &actions.items[i];
		uint32_t epoch = action->op ? action->op->config.epoch : 0;

		if (action->kind == MMC_ACTION_CONTROL)
			post(net, r, &actions, action);
		else if (action->kind == MMC_ACTION_SEND)
			mmc_op_on_sent(action->op, action->run.count);
		else if (action->kind == MMC_ACTION_FAILED)
			rank->nfailed++;
		else if (action->kind == MMC_ACTION_CLOSED)
			rank->ops[epoch] = NULL;
		else if (action->kind == MMC_ACTION_DONE) {
			rank->done[epoch] = true;
			check_result(net, r, epoch);
		}
	}
	return actions.count > 0;
}

/* Delivers one waiting message, chosen at random. */
static inline void deliver_any(struct net *net)
{
	uint32_t pick = (uint32_t)mmc_prng_below(&net->prng, net->nmessages);
	struct message wire = net->messages[pick];
	struct rank *rank = &net->ranks[wire.target];
	struct mmc_op *op = wire.epoch <= NEPOCHS ? rank->ops[wire.epoch]
						  : NULL;
	struct mmc_message message;
	struct mmc_run run;

	net->messages[pick] = net->messages[--net->nmessages];
	CHECK_EQ(mmc_message_decode(&message, wire.kind, wire.bytes,
				    wire.nbytes),
		 0);
	if (mmc_message_brings(&message) && op != NULL &&
	    mmc_op_on_part(op, wire.source, message.part.first, message.nitems,
			   &run) == MMC_VERDICT_PLACE) {
		uint8_t *result = rank->result[wire.epoch];

		for (uint32_t i = 0; i < message.nitems; i++)
			result[place_of(net, run.first,
					message.part.first + i)] =
				message.part.bytes[i];
		mmc_op_on_carried(op, wire.source, message.part.first,
				  net->now_ns);
	}
	mmc_epochs_on_message(&rank->epochs, wire.source, wire.epoch, &message,
			      net->now_ns);
	poll_rank(net, wire.target);
}

/* Returns whether a rank has ended all operations for its user, or has failed. */
static inline bool has_ended(const struct rank *rank)
{
	return mmc_epochs_is_poisoned(&rank->epochs) ||
	       (mmc_epochs_last(&rank->epochs) == NEPOCHS &&
		mmc_epochs_all_ended(&rank->epochs));
}

/* Runs all ranks, each of which starts its next operation when one has ended. */
static inline void run(struct net *net)
{
	bool ended = false;

	for (uint32_t nsteps = 0; !ended && CHECK(nsteps < 20000); nsteps++) {
		ended = true;
		for (uint32_t r = 0; r < net->nranks; r++) {
			struct mmc_epochs *epochs = &net->ranks[r].epochs;

			if (mmc_epochs_last(epochs) < NEPOCHS &&
			    mmc_epochs_all_ended(epochs) &&
			    mmc_epochs_ready(epochs) &&
			    mmc_prng_below(&net->prng, 3) > 0)
				start(net, r);
			while (poll_rank(net, r))
				;
			ended &= has_ended(&net->ranks[r]);
		}
		while (net->nmessages > 0)
			deliver_any(net);
		net->now_ns += STEP_NS;
	}
}

#endif
