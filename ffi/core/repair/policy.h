/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies by which chunks that multicast lost are repaired. All share how losses
 * are detected and when to ask (loss.h), and how a repairer answers (repairer.h). A
 * policy says which rank is asked and how, and when buffers are free.
 */
#ifndef MMC_CORE_REPAIR_POLICY_H
#define MMC_CORE_REPAIR_POLICY_H

#include "core/types.h"

struct mmc_advert;
struct mmc_fetch_step;
struct mmc_nak;
struct mmc_repair_state;

/* When a rank may give its buffers back. */
enum mmc_release {
	MMC_RELEASE_ALL,   /* all ranks are done, or it keeps a copy */
	MMC_RELEASE_RIGHT, /* its right neighbour is done */
};

/* How many of an operation's chunks were lost, as its senders can judge. */
struct mmc_repair_losses {
	uint32_t
		block_chunks; /* the chunks of a block; the others count in it */
	uint32_t nlost;	      /* those that some rank lacked */
	uint32_t nshared;     /* those that several ranks lacked */
};

struct mmc_repair_policy {
	const char *name;
	enum mmc_release release;

	/* A repairer waits for further requests and answers several by multicast. */
	bool gathers;

	/* The answers to many ranks share a queue: neighbours' and reads do not. */
	bool answers_queue;

	/* The right neighbour is told of this rank's memory when it enters. */
	bool advertises;

	/*
	 * Returns the rank that `rank` asks for chunks of `owner`'s block after
	 * `nasked` earlier requests. For one chunk, the first choices of all ranks
	 * always lead to its owner, so waiting for them is acyclic.
	 */
	uint32_t (*repairer)(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked);

	/* Returns whether `rank` serves chunks of `owner`'s block to `asker`. */
	bool (*serves)(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker);

	/*
	 * Takes the chunks of `nak`, which are missing. Returns whether to send it;
	 * otherwise poll() gets them in another way.
	 */
	bool (*on_missing)(struct mmc_repair_state *repair,
			   const struct mmc_nak *nak, uint64_t now_ns);

	/*
	 * Takes a NAK. Returns whether it asks for this rank's memory, and so for none
	 * of the chunks that it names.
	 */
	bool (*on_nak)(struct mmc_repair_state *repair,
		       const struct mmc_nak *nak);

	/* Takes the advert of `peer`. */
	void (*on_advert)(struct mmc_repair_state *repair, uint32_t peer,
			  const struct mmc_advert *advert, uint64_t now_ns);

	/* Records that `peer`, heard to be done for the first time, has all chunks. */
	void (*on_peer_done)(struct mmc_repair_state *repair, uint32_t peer,
			     uint64_t now_ns);

	/*
	 * Returns whether something is to be done now to get chunks; if so, writes
	 * what. Call until it returns false.
	 */
	bool (*poll)(struct mmc_repair_state *repair, uint64_t now_ns,
		     struct mmc_fetch_step *step);

	/* Returns when to call poll() again. */
	uint64_t (*deadline)(const struct mmc_repair_state *repair);

	/* Returns the losses; a sender's own block has `own_chunks`. */
	struct mmc_repair_losses (*losses)(
		const struct mmc_repair_state *repair, uint32_t own_chunks);
};

/* Returns the policy of a setting, one of enum mmc_repair. */
const struct mmc_repair_policy *mmc_repair_policy(enum mmc_repair repair);

#endif
