/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/player.h"

#include <stdlib.h>

#include "drivers/sim/transit.h"
#include "support/bits.h"

/* In place of a message: none. */
#define NOBODY UINT32_MAX

struct mmc_player_message {
	uint64_t sent_bytes;	 /* of payload */
	uint64_t received_bytes; /* of payload */
	uint32_t nawaited; /* messages it waits for that were not received */
	uint32_t behind;   /* the next message in its sender's queue */
};

/* A node's queue of messages that it may send, first in, first out. */
struct mmc_player_node {
	uint32_t first; /* NOBODY: the queue is empty */
	uint32_t last;
	bool sending; /* a timer is set for the end of its last convoy */
	uint64_t
		begin_ns; /* when it began to send the first message of its queue */
	uint64_t end_ns;
};

static uint32_t nnodes_of(const struct mmc_player *player)
{
	return player->network->fabric.nhosts +
	       player->network->fabric.nswitches;
}

static bool script_is_sane(const struct mmc_script *script, uint32_t nnodes)
{
	uint32_t n = script->nmessages;

	if (script->packet_bytes == 0 || script->convoy_bytes == 0 ||
	    script->nmeasured > n || script->next_first[0] != 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (script->senders[i] >= nnodes ||
		    script->receivers[i] >= nnodes ||
		    script->senders[i] == script->receivers[i] ||
		    script->next_first[i + 1] < script->next_first[i])
			return false;
	for (uint64_t k = 0; k < script->next_first[n]; k++)
		if (script->next[k] >= n)
			return false;
	return true;
}

/*
 * Counts down what waits for a message that was received: each that waits for no other
 * is then written to `ready`, [nmessages]. Returns their number.
 */
static uint32_t release_waiting(struct mmc_player *player, uint32_t message,
				uint32_t *ready)
{
	const struct mmc_script *script = player->script;
	uint64_t end = script->next_first[message + 1];
	uint32_t nready = 0;

	for (uint64_t k = script->next_first[message]; k < end; k++)
		if (--player->messages[script->next[k]].nawaited == 0)
			ready[nready++] = script->next[k];
	return nready;
}

static void count_awaited(struct mmc_player *player)
{
	const struct mmc_script *script = player->script;

	for (uint64_t k = 0; k < script->next_first[script->nmessages]; k++)
		player->messages[script->next[k]].nawaited++;
}

/* Returns 0, -MMC_EINVAL if some messages wait for each other, or -MMC_ENOMEM. */
static int check_order(struct mmc_player *player)
{
	uint32_t n = player->script->nmessages;
	uint32_t *order = malloc(((size_t)n + 1) * sizeof(*order));
	uint32_t nordered = 0;

	if (!order)
		return -MMC_ENOMEM;
	count_awaited(player);
	for (uint32_t i = 0; i < n; i++)
		if (player->messages[i].nawaited == 0)
			order[nordered++] = i;
	for (uint32_t i = 0; i < nordered; i++)
		nordered += release_waiting(player, order[i], order + nordered);
	free(order);
	count_awaited(player);
	return nordered == n ? 0 : -MMC_EINVAL;
}

int mmc_player_open(struct mmc_player *player, const struct mmc_script *script,
		    struct mmc_network *network)
{
	player->script = script;
	player->network = network;
	if (!script_is_sane(script, nnodes_of(player)))
		return -MMC_EINVAL;
	player->messages = calloc((size_t)script->nmessages + 1,
				  sizeof(*player->messages));
	player->nodes = calloc(nnodes_of(player), sizeof(*player->nodes));
	if (!player->messages || !player->nodes)
		return -MMC_ENOMEM;
	for (uint32_t i = 0; i < nnodes_of(player); i++)
		player->nodes[i].first = NOBODY;
	player->nleft = script->nmeasured;
	return check_order(player);
}

void mmc_player_close(struct mmc_player *player)
{
	free(player->messages);
	free(player->nodes);
}

/* Sends a convoy of a message. Returns when its last packet will have left. */
static uint64_t send_convoy(struct mmc_player *player, uint32_t message)
{
	const struct mmc_script *script = player->script;
	struct mmc_player_message *state = &player->messages[message];
	uint64_t payload_bytes =
		mmc_min_u64(script->nbytes[message] - state->sent_bytes,
			    script->convoy_bytes);
	uint64_t npackets = (payload_bytes + script->packet_bytes - 1) /
			    script->packet_bytes;

	npackets = mmc_max_u64(1, npackets);
	state->sent_bytes += payload_bytes;
	return mmc_transit_send(
		player->network,
		&(struct mmc_convoy){
			.journey = { script->senders[message],
				     script->receivers[message] },
			.message = message,
			.payload_bytes = payload_bytes,
			.packets = {
				.nbytes = payload_bytes +
					  npackets * script->header_bytes,
				.packet_bytes =
					mmc_min_u64(payload_bytes,
						    script->packet_bytes) +
					script->header_bytes,
				.npackets = (uint32_t)npackets,
			},
		});
}

/* Adds to the trace that all of a message will have left its host at `end_ns`. */
static void note_sent(const struct mmc_player *player, uint32_t message,
		      uint64_t end_ns)
{
	const struct mmc_script *script = player->script;
	const struct mmc_fabric *fabric = &player->network->fabric;
	uint32_t sender = script->senders[message];
	uint32_t receiver = script->receivers[message];

	if (player->trace && message < script->nmeasured)
		mmc_trace_add(
			player->trace,
			&(struct mmc_trace_event){
				.begin_ns = player->nodes[sender].begin_ns,
				.end_ns = end_ns,
				.amount = script->nbytes[message],
				.peer = mmc_fabric_is_host(fabric, receiver)
						? receiver
						: UINT32_MAX,
				.track = (uint16_t)sender,
				.kind = MMC_TRACE_MESSAGE,
			});
}

/*
 * Sends the next convoy of a node's queue. A host then waits until it has left: what
 * else the host sends gets its turn.
 */
static void send_on(struct mmc_player *player, uint32_t index)
{
	struct mmc_player_node *node = &player->nodes[index];
	bool host = mmc_fabric_is_host(&player->network->fabric, index);

	node->sending = false;
	while (node->first != NOBODY && !node->sending) {
		uint32_t message = node->first;
		struct mmc_player_message *state = &player->messages[message];
		uint64_t left_ns;

		if (state->sent_bytes == 0)
			node->begin_ns = player->network->now_ns;
		left_ns = send_convoy(player, message);
		if (state->sent_bytes == player->script->nbytes[message]) {
			node->first = state->behind;
			if (host)
				note_sent(player, message, left_ns);
		}
		node->sending = host;
		if (host)
			mmc_network_at(player->network, left_ns,
				       player->send_kind, index);
	}
}

void mmc_player_on_send_due(struct mmc_player *player, uint32_t node)
{
	send_on(player, node);
}

void mmc_player_on_ready(struct mmc_player *player, uint32_t message)
{
	uint32_t sender = player->script->senders[message];
	struct mmc_player_node *node = &player->nodes[sender];

	player->messages[message].behind = NOBODY;
	if (node->first == NOBODY)
		node->first = message;
	else
		player->messages[node->last].behind = message;
	node->last = message;
	if (!node->sending)
		send_on(player, sender);
}

/* Plans the start of a message that waits for no other any more. */
static void plan(struct mmc_player *player, uint32_t message, uint64_t time_ns)
{
	const struct mmc_script *script = player->script;

	if (script->earliest_ns)
		time_ns = mmc_max_u64(time_ns, script->earliest_ns[message]);
	mmc_network_at(player->network, time_ns, player->ready_kind, message);
}

void mmc_player_start(struct mmc_player *player)
{
	for (uint32_t i = 0; player->script && i < player->script->nmessages;
	     i++)
		if (player->messages[i].nawaited == 0)
			plan(player, i, player->network->now_ns);
}

/* Notes that a message was received, and starts what has waited for it. */
static void receive(struct mmc_player *player, uint32_t message)
{
	const struct mmc_script *script = player->script;
	uint64_t now_ns = player->network->now_ns;
	uint64_t end = script->next_first[message + 1];

	if (message < script->nmeasured) {
		player->nodes[script->receivers[message]].end_ns = now_ns;
		player->nleft--;
	}
	for (uint64_t k = script->next_first[message]; k < end; k++)
		if (--player->messages[script->next[k]].nawaited == 0)
			plan(player, script->next[k],
			     now_ns + script->overhead_ns);
}

void mmc_player_on_convoy(struct mmc_player *player, struct mmc_convoy *convoy)
{
	uint32_t message = convoy->message;
	struct mmc_player_message *state = &player->messages[message];

	state->received_bytes += convoy->payload_bytes;
	mmc_convoys_release(&player->network->convoys, convoy);
	if (state->received_bytes == player->script->nbytes[message])
		receive(player, message);
}

uint64_t mmc_player_end_ns(const struct mmc_player *player, uint32_t node)
{
	return player->nodes ? player->nodes[node].end_ns : 0;
}
