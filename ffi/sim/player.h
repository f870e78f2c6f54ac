/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays a script (mpimcast/script.h): sends each of its messages over the network as soon
 * as those that it waits for have been received.
 */
#ifndef MMC_SIM_PLAYER_H
#define MMC_SIM_PLAYER_H

#include <mpimcast/script.h>
#include <mpimcast/trace.h>

#include "drivers/sim/network.h"

/* A player is all zeros if there is nothing to play. */
struct mmc_player {
	const struct mmc_script *script;
	struct mmc_network *network;
	uint32_t ready_kind;	 /* timer: the message `target` can start */
	uint32_t send_kind;	 /* timer: the host `target` can send on */
	struct mmc_trace *trace; /* of hosts' measured messages; NULL: none */
	struct mmc_player_message *messages; /* [nmessages] */
	struct mmc_player_node *nodes;	     /* [nhosts + nswitches] */
	uint32_t nleft; /* measured messages that were not received */
};

/*
 * Prepares to play a script, which must outlive the player. Returns 0, -MMC_EINVAL if
 * the script does not fit the network's fabric or waits for itself, or -MMC_ENOMEM;
 * mmc_player_close() must be called in either case. The caller sets the kinds of timers
 * and the trace beforehand.
 */
int mmc_player_open(struct mmc_player *player, const struct mmc_script *script,
		    struct mmc_network *network);

void mmc_player_close(struct mmc_player *player);

/* Starts the messages that wait for no other. */
void mmc_player_start(struct mmc_player *player);

/* Handle the events of a player: its timers, and the arrival of its convoys. */
void mmc_player_on_ready(struct mmc_player *player, uint32_t message);
void mmc_player_on_send_due(struct mmc_player *player, uint32_t node);
void mmc_player_on_convoy(struct mmc_player *player, struct mmc_convoy *convoy);

/* Returns whether all measured messages were received. */
static inline bool mmc_player_ended(const struct mmc_player *player)
{
	return player->nleft == 0;
}

/* Returns when a node received the last of its measured messages, or 0 if it got none. */
uint64_t mmc_player_end_ns(const struct mmc_player *player, uint32_t node);

#endif
