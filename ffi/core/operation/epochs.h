/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The epochs of one stream: the operations that are open, what others have said of an
 * operation that has not started here, and the answers that this rank owes. An epoch
 * that has started and has no operation any more is closed: its number is all that is
 * kept of it.
 */
#ifndef MMC_CORE_OPERATION_EPOCHS_H
#define MMC_CORE_OPERATION_EPOCHS_H

#include "core/barrier/answers.h"
#include "core/operation/op.h"

/* Operations that may be in flight; further starts wait in order. */
#define MMC_EPOCHS_ACTIVE_MAX 4

/* Open operations, with those that only serve others until a later barrier. */
#define MMC_EPOCHS_OPEN_MAX (2 * MMC_EPOCHS_ACTIVE_MAX)

/* Records kept for epochs to come; further ones are dropped. */
#define MMC_EPOCHS_EARLY_MAX (4 * MMC_ROUNDS_MAX)

struct mmc_early {
	uint32_t epoch;
	uint32_t source;
	struct mmc_record record;
	struct mmc_advert advert; /* valid if `advertised` */
	bool advertised;
};

/* The first failure of a stream: all open and later operations fail with it. */
struct mmc_poison {
	enum mmc_error error; /* MMC_OK: nothing has failed */
	uint32_t epoch;
	uint32_t culprit;
};

struct mmc_epochs {
	uint64_t channel;
	uint32_t rank;
	uint32_t nranks;
	uint32_t last; /* the epoch started last; the first is 1 */
	uint32_t done; /* all epochs up to this one have ended for the user */
	bool left;     /* no epoch after `final` is entered any more */
	uint32_t final;
	struct mmc_op *open[MMC_EPOCHS_OPEN_MAX]; /* indexed by epoch */
	uint32_t nopen;
	/* The barrier of the operation in this place has closed earlier epochs. */
	bool settled[MMC_EPOCHS_OPEN_MAX];
	struct mmc_poison poison;      /* the first failure */
	struct mmc_terms poison_terms; /* the failed operation's, if known */
	uint32_t unicast_epoch; /* the first epoch without multicast; 0: none */
	uint32_t nmulticast;	/* operations by multicast in a row */
	uint64_t deaf;		/* the term `deaf` of epoch `unicast_epoch` */
	struct mmc_early early[MMC_EPOCHS_EARLY_MAX];
	uint32_t nearly;
	struct mmc_answers answers;
	struct mmc_path path;
	struct mmc_counters *counters;
};

/* Returns the bytes of memory for a stream of `nranks` ranks. */
size_t mmc_epochs_bytes(uint32_t nranks);

/*
 * Begins a stream in `memory`, mmc_epochs_bytes() long. `memory` and `counters` outlive
 * the stream.
 */
void mmc_epochs_init(struct mmc_epochs *epochs, void *memory, uint64_t channel,
		     uint32_t rank, uint32_t nranks,
		     struct mmc_counters *counters);

/* Returns whether a further operation may start now; never on a poisoned stream. */
bool mmc_epochs_ready(const struct mmc_epochs *epochs);

/*
 * Starts the next operation in `memory`, as mmc_op_init() does; the stream must be
 * ready. The fields channel, epoch, rank, nranks, lag_epochs, path and counters of
 * `config` are filled in here.
 */
struct mmc_op *mmc_epochs_start(struct mmc_epochs *epochs, void *memory,
				const struct mmc_op_config *config,
				uint64_t now_ns);

/* Returns the open operation of `epoch`, or NULL. */
static inline struct mmc_op *mmc_epochs_find(const struct mmc_epochs *epochs,
					     uint32_t epoch)
{
	struct mmc_op *op = epochs->open[epoch % MMC_EPOCHS_OPEN_MAX];

	return op != NULL && op->config.epoch == epoch ? op : NULL;
}

/* Returns whether `epoch` is still to start and near enough to keep data for it. */
static inline bool mmc_epochs_is_next(const struct mmc_epochs *epochs,
				      uint32_t epoch)
{
	return epoch - epochs->last - 1 < MMC_EPOCHS_ACTIVE_MAX;
}

/* Takes a control message of `source`, which is below nranks, about `epoch`. */
void mmc_epochs_on_message(struct mmc_epochs *epochs, uint32_t source,
			   uint32_t epoch, const struct mmc_message *message,
			   uint64_t now_ns);

/*
 * Poisons the stream: open operations that lack data fail with `poison`, with `tell` on
 * all ranks; no operation starts any more.
 */
void mmc_epochs_poison(struct mmc_epochs *epochs, struct mmc_poison poison,
		       bool tell);

/*
 * Announces that this rank enters no epoch after `final`, which is not before the last
 * one started: a rank that awaits this one in a later epoch learns so, and fails.
 */
void mmc_epochs_leave(struct mmc_epochs *epochs, uint32_t final);

/* Records that the transport found the process of `peer` to exist. */
void mmc_epochs_on_alive(struct mmc_epochs *epochs, uint32_t peer);

/*
 * Records that the transport found the process of `peer` to have ended. Operations that
 * await `peer` fail; others have what they need of it, or will ask for themselves.
 */
void mmc_epochs_on_gone(struct mmc_epochs *epochs, uint32_t peer);

/* Adds the actions that are due to `actions`, as far as there is room. */
void mmc_epochs_poll(struct mmc_epochs *epochs, uint64_t now_ns,
		     struct mmc_actions *actions);

/* Returns when to poll again although nothing arrives. */
uint64_t mmc_epochs_deadline(const struct mmc_epochs *epochs);

#endif
