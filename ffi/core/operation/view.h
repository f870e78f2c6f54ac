/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that show an operation to the engine and the simulator; its fields are the
 * core's own. They are inline, since some are called for every chunk.
 */
#ifndef MMC_CORE_OPERATION_VIEW_H
#define MMC_CORE_OPERATION_VIEW_H

#include "core/operation/op.h"

/* Returns the operation's epoch. */
static inline uint32_t mmc_op_epoch(const struct mmc_op *op)
{
	return op->config.epoch;
}

/* Returns how the blocks are laid out in chunks. */
static inline const struct mmc_layout *mmc_op_layout(const struct mmc_op *op)
{
	return &op->layout;
}

/* Returns this rank's block. */
static inline const struct mmc_block *mmc_op_own_block(const struct mmc_op *op)
{
	return &op->own;
}

/*
 * Returns what a copy holds that serves others (MMC_ACTION_DONE): this rank's block or,
 * if the entry barrier's messages carry the blocks of all, these as if they were one.
 */
static inline struct mmc_block mmc_op_copied(const struct mmc_op *op)
{
	if (op->mode != MMC_OP_CARRIED || op->layout.sole)
		return op->own;
	return (struct mmc_block){
		.nbytes = op->layout.total_bytes,
		.nchunks = op->layout.nchunks,
	};
}

/*
 * Returns which blocks have landed, for as long as the operation's memory lasts; NULL if
 * nobody asks.
 */
static inline const struct mmc_landing *mmc_op_landing(const struct mmc_op *op)
{
	return mmc_config_is_partial(&op->config) ? &op->landing : NULL;
}

/* Returns how many chunks are not present yet. */
static inline uint32_t mmc_op_missing_chunks(const struct mmc_op *op)
{
	return op->layout.nchunks - op->npresent;
}

/* Returns the header of a datagram that carries `chunk`; with `repair`, once again. */
static inline struct mmc_header mmc_op_header(const struct mmc_op *op,
					      uint32_t chunk, bool repair)
{
	return (struct mmc_header){
		.channel = op->config.channel,
		.epoch = op->config.epoch,
		.index = chunk | (repair ? MMC_INDEX_REPAIR : 0),
	};
}

/*
 * Returns the advert that says where READ_MAP and READ find the left neighbour's
 * memory. It is valid once one of these actions was handed out.
 */
static inline const struct mmc_advert *
mmc_op_left_advert(const struct mmc_op *op)
{
	return &op->repair.fetcher.advert;
}

/* Returns whether this or another rank is known to have failed in this operation. */
static inline bool mmc_op_has_failed(const struct mmc_op *op)
{
	return (op->record.flags & MMC_RECORD_FAILED) != 0;
}

/* Returns why the operation has failed; MMC_OK if it has not. */
static inline enum mmc_error mmc_op_error(const struct mmc_op *op)
{
	return (enum mmc_error)op->record.failure;
}

/* Returns the rank that caused the failure, or MMC_PEER_NONE for none in particular. */
static inline uint32_t mmc_op_culprit(const struct mmc_op *op)
{
	return op->record.culprit;
}

/* Returns when all ranks were known to have entered. The operation must have begun. */
static inline uint64_t mmc_op_begun_ns(const struct mmc_op *op)
{
	return op->repair.loss.begun_ns;
}

/*
 * Returns when the last chunk arrived that was no repair; if none has, when the flow
 * began. The operation must have begun.
 */
static inline uint64_t mmc_op_heard_ns(const struct mmc_op *op)
{
	return op->repair.loss.heard_ns;
}

/* Returns when every chunk was present and sent; 0 if that is not so yet. */
static inline uint64_t mmc_op_complete_ns(const struct mmc_op *op)
{
	return (op->record.flags & MMC_RECORD_DONE) != 0 ? op->stage_ns : 0;
}

/* Returns the merged terms of all ranks that have been heard so far. */
static inline const struct mmc_terms *mmc_op_terms(const struct mmc_op *op)
{
	return &op->record.terms;
}

#endif
