/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The epochs of one stream: which operations are open, what others have said
 * of one that has not started here, and the answers that a rank owes although
 * it is elsewhere. An epoch that has started and has no operation any more is
 * closed: that one number is all that is kept of it.
 */
#ifndef MMC_CORE_OPERATION_EPOCHS_H
#define MMC_CORE_OPERATION_EPOCHS_H

#include "core/barrier/answers.h"
#include "core/operation/op.h"

/* Operations that may be in flight; further starts wait in order. */
#define MMC_EPOCHS_ACTIVE_MAX 4

/* With those that only serve others: a later barrier closes them in time. */
#define MMC_EPOCHS_OPEN_MAX (2 * MMC_EPOCHS_ACTIVE_MAX)

/* Records kept for epochs to come, before any are dropped. */
#define MMC_EPOCHS_EARLY_MAX (4 * MMC_ROUNDS_MAX)

struct mmc_early {
	uint32_t epoch;
	uint32_t source;
	struct mmc_record record;
	struct mmc_advert advert; /* if `advertised` */
	bool advertised;
};

/* The first failure of a stream: with it all its open and later operations fail. */
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
	uint32_t done; /* all epochs up to this one are over for the user */
	bool left;     /* no epoch is entered any more after `final` */
	uint32_t final;
	struct mmc_op *open[MMC_EPOCHS_OPEN_MAX]; /* by epoch */
	uint32_t nopen;
	bool settled[MMC_EPOCHS_OPEN_MAX]; /* its barrier has closed others */
	struct mmc_poison poison;	   /* the first */
	struct mmc_terms poison_terms;	   /* of its operation, if known */
	uint32_t unicast_epoch; /* the first without multicast; 0: none */
	uint32_t nmulticast;	/* operations by multicast in a row */
	uint64_t deaf;		/* then: its terms' */
	struct mmc_early early[MMC_EPOCHS_EARLY_MAX];
	uint32_t nearly;
	struct mmc_answers answers;
	struct mmc_path path;
	struct mmc_counters *counters;
};

/* The memory for a stream of `nranks` ranks, in bytes. */
size_t mmc_epochs_bytes(uint32_t nranks);

/* Begins a stream in `memory`, mmc_epochs_bytes() long. It and `counters` outlive it. */
void mmc_epochs_init(struct mmc_epochs *epochs, void *memory, uint64_t channel,
		     uint32_t rank, uint32_t nranks,
		     struct mmc_counters *counters);

/* Whether a further operation may start now; never on a poisoned stream. */
bool mmc_epochs_ready(const struct mmc_epochs *epochs);

/*
 * Starts the next operation in `memory`, as mmc_op_init() does; the stream must
 * be ready. Of `config` the fields channel, epoch, rank, nranks, lag_epochs,
 * path and counters are filled in here.
 */
struct mmc_op *mmc_epochs_start(struct mmc_epochs *epochs, void *memory,
				const struct mmc_op_config *config,
				uint64_t now_ns);

/* The open operation of `epoch`, or NULL. */
static inline struct mmc_op *mmc_epochs_find(const struct mmc_epochs *epochs,
					     uint32_t epoch)
{
	struct mmc_op *op = epochs->open[epoch % MMC_EPOCHS_OPEN_MAX];

	return op != NULL && op->config.epoch == epoch ? op : NULL;
}

/* Whether `epoch` is still to start and near enough to keep data for it. */
static inline bool mmc_epochs_is_next(const struct mmc_epochs *epochs,
				      uint32_t epoch)
{
	return epoch - epochs->last - 1 < MMC_EPOCHS_ACTIVE_MAX;
}

/* A control message of `source`, below nranks, about `epoch` has come. */
void mmc_epochs_on_message(struct mmc_epochs *epochs, uint32_t source,
			   uint32_t epoch, const struct mmc_message *message,
			   uint64_t now_ns);

/*
 * Poisons the stream: open operations that lack data fail with `poison`, with
 * `tell` on all ranks; nothing starts any more.
 */
void mmc_epochs_poison(struct mmc_epochs *epochs, struct mmc_poison poison,
		       bool tell);

/*
 * No epoch after `final`, which is not before the last one started, will be
 * entered: whoever waits for this rank there learns so, and fails.
 */
void mmc_epochs_leave(struct mmc_epochs *epochs, uint32_t final);

/* The transport has found that the process of `peer` exists. */
void mmc_epochs_on_alive(struct mmc_epochs *epochs, uint32_t peer);

/*
 * The transport has found that the process of `peer` has ended. Operations that
 * await it fail; others have what they need of it, or will ask for themselves.
 */
void mmc_epochs_on_gone(struct mmc_epochs *epochs, uint32_t peer);

/* Adds what is to be done now to `actions`, as far as there is room. */
void mmc_epochs_poll(struct mmc_epochs *epochs, uint64_t now_ns,
		     struct mmc_actions *actions);

/* When to poll again although nothing comes. */
uint64_t mmc_epochs_deadline(const struct mmc_epochs *epochs);

#endif
