/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partial completion: a program uses parts of a result while the rest is on its way. It
 * can be had of operations that were started with `partial` set.
 *
 * A block *lands* when all of it is in its place in `recv`. This rank's block lands when
 * the operation begins on this rank, and so do empty ones; an operation may have to wait
 * for earlier ones of its stream. All others land as they arrive, in any order. What one
 * of these functions has reported is final: it may be read while the operation goes on.
 * It must not be written before the operation is complete, since other ranks may ask for
 * it.
 *
 * Where an adapter's firmware carries out the operation, all other blocks land together at
 * its end, in rank order; so do all of an operation without `partial`, this rank's first.
 * Where a proxy carries it out (mpimcast/proxy.h), it is asked what has landed from the
 * first of these calls on that finds something missing.
 *
 * Any thread may call at any time until the request is freed, also while another thread
 * waits for the same request.
 */
#ifndef MPIMCAST_PARTIAL_H
#define MPIMCAST_PARTIAL_H

#include <stdint.h>

struct mmc_request;
struct mmc_node_request;
struct mmc_present;

/* Bytes of the block of `rank`; of a Bcast, only the root has a block. */
struct mmc_range {
	uint32_t rank;
	uint32_t reserved;
	uint64_t first_bytes; /* where they begin in the block */
	uint64_t nbytes;
};

/*
 * Waits until a range is present, for at most `slice_ns`, or longer where MMC_SLICES_MAX
 * says so; with 0, only looks, and takes no lock, but for the one that asks a proxy. Returns 0 if it is; MMC_EAGAIN if it is
 * not yet; -MMC_EINVAL if it does not lie in a block; or the error with which the
 * operation has failed.
 */
int mmc_request_wait_range(struct mmc_request *request,
			   const struct mmc_range *range, uint64_t slice_ns);

/*
 * As mmc_request_wait_range(), but waits until `index` + 1 blocks have landed, and writes
 * to `rank` whose the last of these is: `index` counts blocks from 0 on in the order in
 * which they have landed. Returns -MMC_EINVAL if there are not as many.
 */
int mmc_request_wait_block(struct mmc_request *request, uint32_t index,
			   uint64_t slice_ns, uint32_t *rank);

/*
 * From now on each block that lands wakes mmc_engine_await(), as the operation's end
 * does. The operation has `notifies` set.
 */
void mmc_request_tell_blocks(struct mmc_request *request);

/*
 * Writes to `present` the bits that say which chunks of the result are present. They
 * change while the operation goes on, and stay as they are once it has ended; they may be
 * looked at until mmc_present_free(), even after the request is freed and the stream
 * closed. A chunk may be read by who has loaded its bit in acquire order. To all others
 * they are a hint, for progress bars: nothing may be read on their account that was not
 * reported otherwise. Returns 0; MMC_EAGAIN, and NULL, if the operation has not
 * begun on this rank or tells of no chunks; or -MMC_ENOMEM.
 */
int mmc_request_present(struct mmc_request *request,
			struct mmc_present **present);

/*
 * Returns the bits, in words of 64 of which the lowest bit is the first, and writes their
 * number. The chunks of each block follow those of the rank before; each block begins a
 * new chunk.
 */
const uint64_t *mmc_present_words(const struct mmc_present *present,
				  uint32_t *nbits);

/* Frees bits. NULL is allowed. Any thread may call, whatever became of the engine. */
void mmc_present_free(struct mmc_present *present);

/*
 * The same for requests of node streams (mpimcast/node.h). Their chunks are parts of
 * pieces, each block's in order. A block that is read from another member's own memory
 * lands at the end.
 */
int mmc_node_request_wait_range(struct mmc_node_request *request,
				const struct mmc_range *range,
				uint64_t slice_ns);
int mmc_node_request_wait_block(struct mmc_node_request *request,
				uint32_t index, uint64_t slice_ns,
				uint32_t *rank);

/* Each block that lands wakes mmc_node_await(). */
void mmc_node_request_tell_blocks(struct mmc_node_request *request);
int mmc_node_request_present(struct mmc_node_request *request,
			     struct mmc_present **present);

#endif
