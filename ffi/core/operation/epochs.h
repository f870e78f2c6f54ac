/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The epochs of one stream: its open operations, what other ranks have said of
 * operations that have not started here, and the answers that this rank owes. An epoch
 * whose operation has started and ended is closed, and nothing is kept of it.
 */
#ifndef MMC_CORE_OPERATION_EPOCHS_H
#define MMC_CORE_OPERATION_EPOCHS_H

#include "core/barrier/answers.h"
#include "core/operation/op.h"

/* The most open operations: these, and those that only serve others still. */
#define MMC_EPOCHS_OPEN_MAX (2 * MMC_EPOCHS_ACTIVE_MAX)

/* The most records that are kept for operations that have not started here. */
#define MMC_EPOCHS_EARLY_MAX (4 * MMC_ROUNDS_MAX)

/* The record and advert of one rank for an operation that has not started here. */
struct mmc_early {
	uint32_t epoch;
	uint32_t source; /* the rank that has said it */
	struct mmc_record record;
	struct mmc_advert advert; /* valid if `advertised` */
	bool advertised;
};

/* The first failure of a stream: all open and later operations fail with it. */
struct mmc_poison {
	enum mmc_error error; /* MMC_OK: nothing has failed */
	uint32_t epoch;	      /* the operation that has failed */
	uint32_t culprit;     /* a rank; MMC_PEER_NONE: none in particular */
};

struct mmc_epochs {
	uint64_t channel;
	uint32_t rank;
	uint32_t nranks;
	uint64_t lead; /* see mmc_carried_bare() */
	uint32_t last; /* the epoch started last; the first is 1 */
	uint32_t done; /* all epochs up to this one have ended for the user */
	bool left;     /* this rank enters no epoch after `final` */
	uint32_t final;
	/* The open operations, each in the place that mmc_epochs_slot() says. */
	struct mmc_op *open[MMC_EPOCHS_OPEN_MAX];
	uint32_t nopen;
	/*
	 * The entry barrier of the operation in this place was passed, and taken note
	 * of.
	 */
	bool settled[MMC_EPOCHS_OPEN_MAX];
	struct mmc_poison poison;      /* the first failure */
	struct mmc_terms poison_terms; /* the failed operation's, if known */
	/* The first epoch without multicast; 0: none. */
	uint32_t unicast_epoch;
	uint32_t nmulticast; /* operations by multicast in a row */
	uint64_t deaf;	     /* the term `deaf` of epoch `unicast_epoch` */
	struct mmc_early early[MMC_EPOCHS_EARLY_MAX];
	uint32_t nearly; /* how many of `early` are in use */
	struct mmc_answers answers;
	struct mmc_path path;
	struct mmc_counters *counters;
};

/* Returns the bytes of memory for a stream of `nranks` ranks. */
size_t mmc_epochs_bytes(uint32_t nranks);

/*
 * Initializes the epochs of a stream. `memory`, mmc_epochs_bytes() long, and `counters`
 * must outlive them.
 */
void mmc_epochs_init(struct mmc_epochs *epochs, void *memory, uint64_t channel,
		     uint32_t rank, uint32_t nranks,
		     struct mmc_counters *counters);

/*
 * Returns whether another operation may start now. On a poisoned stream none may;
 * otherwise the next one may as soon as there is room.
 */
bool mmc_epochs_ready(const struct mmc_epochs *epochs);

/*
 * Starts the next operation in `memory`, as mmc_op_init() does, and returns it.
 * mmc_epochs_ready() must be true. Of `config`, the fields channel, epoch, rank,
 * nranks, lag_epochs, path and counters are ignored, and the stream's are used.
 */
struct mmc_op *mmc_epochs_start(struct mmc_epochs *epochs, void *memory,
				const struct mmc_op_config *config,
				uint64_t now_ns);

/* Returns the place of an open epoch among MMC_EPOCHS_OPEN_MAX. */
static inline uint32_t mmc_epochs_slot(uint32_t epoch)
{
	return epoch % MMC_EPOCHS_OPEN_MAX;
}

/* Returns the open operation of `epoch`, or NULL. */
static inline struct mmc_op *mmc_epochs_find(const struct mmc_epochs *epochs,
					     uint32_t epoch)
{
	struct mmc_op *op = epochs->open[mmc_epochs_slot(epoch)];

	return op != NULL && op->config.epoch == epoch ? op : NULL;
}

/* Returns whether `epoch` is one of the next to start, so that data is kept for it. */
static inline bool mmc_epochs_is_next(const struct mmc_epochs *epochs,
				      uint32_t epoch)
{
	return epoch - epochs->last - 1 < MMC_EPOCHS_ACTIVE_MAX;
}

/* Returns the epoch that was started last, or 0 if none was. */
static inline uint32_t mmc_epochs_last(const struct mmc_epochs *epochs)
{
	return epochs->last;
}

/* How many epochs behind the last one, and ahead of it, a message may be about. */
#define MMC_EPOCHS_BEHIND_MAX 64
#define MMC_EPOCHS_AHEAD_MAX 16

/*
 * Returns whether a rank can have sent this message about `epoch`: ranks are never
 * further apart, and a failure's culprit is a rank or none.
 */
static inline bool mmc_epochs_allow(const struct mmc_epochs *epochs,
				    uint32_t epoch,
				    const struct mmc_message *message)
{
	const struct mmc_record *record = &message->record;

	return epoch - (epochs->last - MMC_EPOCHS_BEHIND_MAX) <=
		       MMC_EPOCHS_BEHIND_MAX + MMC_EPOCHS_AHEAD_MAX &&
	       (!(record->flags & MMC_RECORD_FAILED) ||
		record->culprit < epochs->nranks ||
		record->culprit == MMC_PEER_NONE);
}

/* Returns the stream's channel. */
static inline uint64_t mmc_epochs_channel(const struct mmc_epochs *epochs)
{
	return epochs->channel;
}

/* Returns whether every operation that has started has ended for the user. */
static inline bool mmc_epochs_all_ended(const struct mmc_epochs *epochs)
{
	return epochs->done == epochs->last;
}

/* Returns whether mmc_epochs_leave() was called. */
static inline bool mmc_epochs_has_left(const struct mmc_epochs *epochs)
{
	return epochs->left;
}

/* Returns whether the stream has failed, so that no operation can start any more. */
static inline bool mmc_epochs_is_poisoned(const struct mmc_epochs *epochs)
{
	return epochs->poison.error != MMC_OK;
}

/* Returns the first failure of the stream; its error is MMC_OK if there is none. */
static inline struct mmc_poison
mmc_epochs_first_failure(const struct mmc_epochs *epochs)
{
	return epochs->poison;
}

/*
 * Returns the first epoch without multicast, or 0 if multicast is used. Any thread may
 * call this and, if it gets an epoch, mmc_epochs_deaf() next.
 */
static inline uint32_t mmc_epochs_unicast_epoch(const struct mmc_epochs *epochs)
{
	return __atomic_load_n(&epochs->unicast_epoch, __ATOMIC_ACQUIRE);
}

/* Returns the term `deaf` for which multicast was given up (core/wire/record.h). */
static inline uint64_t mmc_epochs_deaf(const struct mmc_epochs *epochs)
{
	return epochs->deaf;
}

/* Returns what the stream's operations have learnt of the network. */
static inline const struct mmc_path *
mmc_epochs_path(const struct mmc_epochs *epochs)
{
	return &epochs->path;
}

/* Replaces what is known of the network by what another stream has learnt. */
static inline void mmc_epochs_set_path(struct mmc_epochs *epochs,
				       const struct mmc_path *path)
{
	epochs->path = *path;
}

/*
 * Says whether datagrams may lie unread on this rank. While they do, a silence of other
 * ranks proves nothing.
 */
static inline void mmc_epochs_set_backlog(struct mmc_epochs *epochs,
					  bool backlog)
{
	epochs->path.backlog = backlog;
}

/* Records that a chunk arrived by multicast after its operation had closed. */
static inline void mmc_epochs_on_late_chunk(struct mmc_epochs *epochs)
{
	mmc_path_late(&epochs->path);
}

/* Takes a control message of `source`, a rank below nranks, about `epoch`. */
void mmc_epochs_on_message(struct mmc_epochs *epochs, uint32_t source,
			   uint32_t epoch, const struct mmc_message *message,
			   uint64_t now_ns);

/*
 * Poisons the stream, unless it is: all open operations that lack data fail with
 * `poison`, and no other starts any more. With `tell`, the other ranks are told.
 */
void mmc_epochs_poison(struct mmc_epochs *epochs, struct mmc_poison poison,
		       bool tell);

/*
 * Declares that this rank enters no epoch after `final`, which must not be before the
 * last one that was started. Ranks that ask this one about a later epoch are told so,
 * and fail.
 */
void mmc_epochs_leave(struct mmc_epochs *epochs, uint32_t final);

/* Records that the transport has found that the process of `peer` exists. */
void mmc_epochs_on_alive(struct mmc_epochs *epochs, uint32_t peer);

/*
 * Records that the transport has found that the process of `peer` has ended. Operations
 * that await `peer` and hear nothing of it fail. The others may have what they need of
 * it.
 */
void mmc_epochs_on_gone(struct mmc_epochs *epochs, uint32_t peer);

/* Adds to `actions` what is due now, as far as there is room. */
void mmc_epochs_poll(struct mmc_epochs *epochs, uint64_t now_ns,
		     struct mmc_actions *actions);

/* Returns when to poll again although nothing arrives. */
uint64_t mmc_epochs_deadline(const struct mmc_epochs *epochs);

/* Does what mmc_op_coalescing_ns() does, for all operations of the stream. */
uint64_t mmc_epochs_coalescing_ns(const struct mmc_epochs *epochs);

#endif
