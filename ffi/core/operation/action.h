/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The actions that the core wants done, in batches. The engine carries them out in
 * order, and then asks for more.
 */
#ifndef MMC_CORE_OPERATION_ACTION_H
#define MMC_CORE_OPERATION_ACTION_H

#include "core/wire/message.h"

struct mmc_op;

enum mmc_action_kind {
	/*
	 * Send the control message of `nbytes`, header included, at `offset` of the
	 * arena. If `run` has any blocks, the message is one of their part from byte
	 * `first` on without its bytes: send one for this and each later part.
	 */
	MMC_ACTION_CONTROL,
	/*
	 * Send the chunks of `run`, one datagram each, and call mmc_op_on_sent() once
	 * their memory is not read for that any more.
	 */
	MMC_ACTION_SEND,
	/*
	 * Send the parity chunks of the rows `run` of group `first` of this rank's own
	 * block (mmc_op_own_group()), and call mmc_op_on_sent() as for SEND.
	 */
	MMC_ACTION_PARITY,
	/*
	 * Mend group `first` of the block of `peer`, as mmc_op_describe_mend() says, and
	 * call mmc_op_on_mended().
	 */
	MMC_ACTION_MEND,
	/*
	 * The operation has completed, and its buffers are the user's again. With
	 * `retain`, first copy what mmc_op_copied() says: others are served from that.
	 */
	MMC_ACTION_DONE,
	/*
	 * The operation has failed, and its buffers are the user's again. Reads that
	 * are under way must not be placed any more.
	 */
	MMC_ACTION_FAILED,
	/* Reuse the operation's memory at will: nothing refers to it any more. */
	MMC_ACTION_CLOSED,
	/*
	 * Read the words of `run` of the bitmap of `peer`, and last its generation,
	 * from where mmc_op_left_advert() says, and call mmc_op_on_map().
	 */
	MMC_ACTION_READ_MAP,
	/*
	 * Read the chunks of `run` of `peer`, and last its generation, from where
	 * mmc_op_left_advert() says, and call mmc_op_on_read().
	 */
	MMC_ACTION_READ,
	/*
	 * Let the right neighbour read the operation's memory and the result, and call
	 * mmc_op_registered().
	 */
	MMC_ACTION_REGISTER,
	/*
	 * Find out by the transport whether the process of `peer` exists, and call
	 * mmc_epochs_on_alive() or mmc_epochs_on_gone().
	 */
	MMC_ACTION_INQUIRE,
};

struct mmc_action {
	enum mmc_action_kind kind;
	/* NULL: the action answers about an epoch that has no operation here. */
	struct mmc_op *op;
	uint32_t peer; /* a rank, or MMC_PEER_ALL for multicast */
	bool repair;   /* SEND: chunks are sent again; PARITY: on request */
	bool retain;   /* DONE: a copy is needed */
	/*
	 * SEND, READ: chunks; PARITY: rows; READ_MAP: words of a bitmap; CONTROL: the blocks that are
	 * carried, after the last one those from block 0 on (carried.h).
	 */
	struct mmc_run run;
	/* CONTROL: the first byte that is carried of the blocks; PARITY, MEND: a group. */
	uint32_t first;
	uint32_t offset; /* CONTROL: where the message is in the arena */
	uint32_t nbytes; /* CONTROL: how long it is */
};

/* The most actions in a batch, and the room for its control messages. */
#define MMC_ACTIONS_MAX 32
#define MMC_ACTIONS_ARENA_BYTES (4 * MMC_MESSAGE_BYTES_MAX)

struct mmc_actions {
	uint32_t count;	      /* actions in `items` */
	uint32_t arena_bytes; /* bytes of `arena` in use */
	enum mmc_checksum checksum;
	struct mmc_action items[MMC_ACTIONS_MAX];
	uint8_t arena[MMC_ACTIONS_ARENA_BYTES];
};

/* Empties the batch. Its datagrams will be protected by `checksum`. */
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

/* Adds an action of `kind` for `op`, and returns it to be filled in. Needs room. */
struct mmc_action *mmc_actions_add(struct mmc_actions *actions,
				   enum mmc_action_kind kind,
				   struct mmc_op *op);

/*
 * Adds an action that sends `message` to `peer`, about `epoch` of `channel`. `op` is
 * the operation of that epoch, or NULL if there is none here. Needs room. Returns the
 * action.
 */
struct mmc_action *mmc_actions_tell(struct mmc_actions *actions,
				    struct mmc_op *op, uint64_t channel,
				    uint32_t epoch, uint32_t peer,
				    const struct mmc_message *message);

#endif
