/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The actions that the core wants done, in batches. The caller carries them out in
 * order and then asks for more.
 */
#ifndef MMC_CORE_OPERATION_ACTION_H
#define MMC_CORE_OPERATION_ACTION_H

#include "core/wire/message.h"

struct mmc_op;

enum mmc_action_kind {
	/* Send the `nbytes` at `offset` of the arena, header included. */
	MMC_ACTION_CONTROL,
	/*
	 * Send the chunks of `run`, one datagram each, and call mmc_op_on_sent() when
	 * the network no longer reads them.
	 */
	MMC_ACTION_SEND,
	/*
	 * The operation has completed and its buffers are the user's again; with
	 * `retain`, after a copy of this rank's block has been taken, which serves
	 * later repairs.
	 */
	MMC_ACTION_DONE,
	/*
	 * The operation has failed and its buffers are the user's again. The results of
	 * reads under way are not used.
	 */
	MMC_ACTION_FAILED,
	/* Nothing refers to the operation any more: its memory may be reused. */
	MMC_ACTION_CLOSED,
	/*
	 * Read the words of `run` of the bitmap of `peer`, and after them its
	 * generation, where its advert in the fetcher says, and call mmc_op_on_map().
	 */
	MMC_ACTION_READ_MAP,
	/*
	 * Read the chunks of `run` of `peer`, and after them its generation, and call
	 * mmc_op_on_read().
	 */
	MMC_ACTION_READ,
	/* Let others read the result's memory, and call mmc_op_registered(). */
	MMC_ACTION_REGISTER,
	/*
	 * Find out by the transport whether the process of `peer` exists, and call
	 * mmc_epochs_on_alive() or mmc_epochs_on_gone().
	 */
	MMC_ACTION_INQUIRE,
};

struct mmc_action {
	enum mmc_action_kind kind;
	/* NULL for an answer about an epoch without an operation here. */
	struct mmc_op *op;
	uint32_t peer; /* a rank, or MMC_PEER_ALL for multicast */
	bool repair;   /* the chunks of `run` are sent again */
	bool retain;
	struct mmc_run run;
	uint32_t offset;
	uint32_t nbytes;
};

#define MMC_ACTIONS_MAX 32
#define MMC_ACTIONS_ARENA_BYTES (4 * MMC_MESSAGE_BYTES_MAX)

struct mmc_actions {
	uint32_t count;
	uint32_t arena_bytes; /* bytes of `arena` in use */
	enum mmc_checksum checksum;
	struct mmc_action items[MMC_ACTIONS_MAX];
	uint8_t arena[MMC_ACTIONS_ARENA_BYTES];
};

/* Begins an empty batch of datagrams protected by `checksum`. */
static inline void mmc_actions_init(struct mmc_actions *actions,
				    enum mmc_checksum checksum)
{
	actions->count = 0;
	actions->arena_bytes = 0;
	actions->checksum = checksum;
}

/* Returns whether there is room for one more action, even the longest message. */
static inline bool mmc_actions_room(const struct mmc_actions *actions)
{
	return actions->count < MMC_ACTIONS_MAX &&
	       MMC_ACTIONS_ARENA_BYTES - actions->arena_bytes >=
		       MMC_MESSAGE_BYTES_MAX;
}

/* Returns whether there is room for `n` more actions, even the longest messages. */
static inline bool mmc_actions_room_for(const struct mmc_actions *actions,
					uint32_t n)
{
	return actions->count + n <= MMC_ACTIONS_MAX &&
	       MMC_ACTIONS_ARENA_BYTES - actions->arena_bytes >=
		       n * MMC_MESSAGE_BYTES_MAX;
}

/* Adds an action of `kind`; there must be room. */
struct mmc_action *mmc_actions_add(struct mmc_actions *actions,
				   enum mmc_action_kind kind,
				   struct mmc_op *op);

/* Adds a control message of `channel` and `epoch` to `peer`; there must be room. */
void mmc_actions_tell(struct mmc_actions *actions, struct mmc_op *op,
		      uint64_t channel, uint32_t epoch, uint32_t peer,
		      const struct mmc_message *message);

#endif
