/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies by which chunks that multicast lost are repaired. A policy says which
 * rank is asked and how, and when a rank may give its buffers back. How losses are
 * detected, when a rank asks (loss.h) and how a repairer answers (repairer.h) is common
 * to all.
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
	MMC_RELEASE_ALL,   /* when all ranks are done, or it keeps a copy */
	MMC_RELEASE_RIGHT, /* when its right neighbour is done */
};

/* How many chunks of a block were lost in an operation. */
struct mmc_repair_losses {
	uint32_t block_chunks; /* the chunks of the block */
	uint32_t nlost;	       /* those that some rank lacked */
	uint32_t nshared;      /* those that several ranks lacked */
};

struct mmc_repair_policy {
	const char *name; /* the value of the setting REPAIR */
	enum mmc_release release;

	/*
	 * Whether a repairer waits for more NAKs and may answer several by multicast.
	 */
	bool gathers;

	/* Whether answers for many ranks share a queue, as those of one owner do. */
	bool answers_queue;

	/* Whether the entry barrier brings the right neighbour this rank's advert. */
	bool advertises;

	/*
	 * Returns the rank that `rank` asks for chunks of `owner`'s block after
	 * `nasked` earlier requests. If each rank waits for its first choice, the waits
	 * for a chunk all lead to its owner, so they form no circle.
	 */
	uint32_t (*repairer)(uint32_t rank, uint32_t nranks, uint32_t owner,
			     uint32_t nasked);

	/* Returns whether `rank` serves chunks of `owner`'s block to `asker`. */
	bool (*serves)(uint32_t rank, uint32_t nranks, uint32_t owner,
		       uint32_t asker);

	/*
	 * Takes `nak`, which asks for missing chunks. Returns whether it is to be sent;
	 * otherwise poll() will get the chunks in another way.
	 */
	bool (*on_missing)(struct mmc_repair_state *repair,
			   const struct mmc_nak *nak, uint64_t now_ns);

	/*
	 * Takes a NAK that has arrived. Returns true if it only asks for an advert of
	 * this rank's memory, and the chunks that it names need not be sent.
	 */
	bool (*on_nak)(struct mmc_repair_state *repair,
		       const struct mmc_nak *nak);

	/* Takes an advert that has arrived from `peer`. */
	void (*on_advert)(struct mmc_repair_state *repair, uint32_t peer,
			  const struct mmc_advert *advert, uint64_t now_ns);

	/*
	 * Takes the news, which may be old, that `peer` is done and so has all chunks.
	 */
	void (*on_peer_done)(struct mmc_repair_state *repair, uint32_t peer,
			     uint64_t now_ns);

	/*
	 * Returns whether something is to be done now to get chunks, other than to send
	 * what on_missing() has let through. If so, writes what to `step`. To be called
	 * until it returns false.
	 */
	bool (*poll)(struct mmc_repair_state *repair, uint64_t now_ns,
		     struct mmc_fetch_step *step);

	/* Returns when to call poll() again although nothing arrives. */
	uint64_t (*deadline)(const struct mmc_repair_state *repair);

	/*
	 * Returns the losses of this rank's own block of `own_chunks`, or an estimate.
	 */
	struct mmc_repair_losses (*losses)(
		const struct mmc_repair_state *repair, uint32_t own_chunks);
};

/* Returns the policy of this name. */
const struct mmc_repair_policy *mmc_repair_policy(enum mmc_repair repair);

#endif
