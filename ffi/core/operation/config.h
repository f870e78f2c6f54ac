/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments with which an operation starts. */
#ifndef MMC_CORE_OPERATION_CONFIG_H
#define MMC_CORE_OPERATION_CONFIG_H

#include "core/counters.h"
#include "core/flow/path.h"
#include "core/repair/policy.h"

/* How lost chunks are made up for: the setting RELIABILITY, or what a message's sender says. */
enum mmc_reliability {
	MMC_RELIABILITY_CODE,
	MMC_RELIABILITY_AUTO,	     /* as forecast (core/flow/forecast.h) */
	MMC_RELIABILITY_DECIDE_CODE, /* for all ranks, whatever they forecast */
	MMC_RELIABILITY_DECIDE_REPEAT,
};

struct mmc_op_config {
	uint64_t channel;
	uint32_t epoch;
	uint32_t rank;
	uint32_t nranks;
	uint64_t signature; /* kind and sizes; equal on all ranks */
	/*
	 * The size of each rank's block. With `sole`, only `root` has a block. If
	 * `blocks_bytes` is not NULL, it has the size of each rank's block instead, and
	 * is read by mmc_op_footprint() and mmc_op_init() only.
	 */
	uint64_t block_bytes;
	const uint64_t *blocks_bytes; /* [nranks] sizes */
	bool sole;
	uint32_t root;
	uint32_t chunk_bytes;
	uint32_t nchains;      /* or MMC_CHAINS_AUTO */
	uint32_t window_bytes; /* what this rank can buffer */
	uint32_t source_bytes; /* what it can buffer of a single sender */
	/* All blocks together up to this size may be sent before all have entered. */
	uint64_t eager_bytes;
	/*
	 * Of operations that are that small, and whose blocks are equal, the entry
	 * barrier carries the blocks if no round brings more; MMC_PARTS_MAX at most.
	 */
	uint32_t carried_bytes;
	/* Ranks may take this operation for a bare Bcast (carried.h); this rank does. */
	bool may_be_bare;
	bool is_bare;
	/* A block up to this size is copied, and the copy serves repairs. */
	uint64_t retain_bytes;
	uint32_t code_data; /* data chunks of a group; 0: no code (parity.h) */
	/* The most parity chunks that are sent with them, unasked. */
	uint32_t code_parity;
	/* Epochs back to the last one that is done on this rank. */
	uint32_t lag_epochs;
	enum mmc_repair repair;
	bool control_is_reliable; /* messages are hardly ever lost */
	/* Chunks sent in one go; 0: as many as the path suggests (train.h). */
	uint32_t batch_chunks;
	/* The chunks that the transport sends as one train; 0: it sends none. */
	uint32_t train_chunks;
	/* The most that one read of others' memory brings. */
	uint32_t read_bytes;
	/* The generation of this rank's adverts; 0: others cannot read its memory. */
	uint64_t generation;
	uint64_t timeout_ns;	   /* see struct mmc_stream_options */
	uint64_t entry_timeout_ns; /* 0: none */
	uint64_t late_timeout_ns;  /* 0: none */
	bool inquires;	  /* the transport can tell whether a rank exists */
	bool unattended;  /* ranks answer only inside calls of the library */
	bool partial;	  /* mmc_config_is_partial() is to be asked */
	bool mends_aside; /* mending takes no time of those who receive */
	enum mmc_reliability reliability; /* if there is a code */
	uint64_t seed;			  /* of random delays */
	struct mmc_path *path;		  /* outlives the operation */
	struct mmc_counters *counters;	  /* outlive the operation */
};

/* Returns whether the user asks which blocks have landed. */
static inline bool mmc_config_is_partial(const struct mmc_op_config *config)
{
#ifdef MMC_BARE
	/* Who has a processor without an operating system for runner sees only the end. */
	(void)config;
	return false;
#else
	return config->partial;
#endif
}

/*
 * Returns whether a code was asked for. An adapter's processor has none: it asks for none, and
 * what only codes need is not linked.
 */
static inline bool mmc_op_may_be_coded(const struct mmc_op_config *config)
{
#ifdef MMC_BARE
	(void)config;
	return false;
#else
	return config->code_data > 0;
#endif
}

/* Returns whether more depends on chunks that are placed than the operation's end. */
static inline bool mmc_op_follows_placed(const struct mmc_op_config *config)
{
	return mmc_config_is_partial(config) || mmc_op_may_be_coded(config);
}

#endif
