/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation, and the request that stands for it while it is in flight. */
#ifndef MPIMCAST_REQUEST_H
#define MPIMCAST_REQUEST_H

#include <stdint.h>

struct mmc_stream;
struct mmc_request;

enum mmc_kind {
	MMC_ALLGATHER = 1,
	MMC_ALLGATHERV = 2,
	MMC_BCAST = 3,
};

/*
 * How lost chunks of an operation are made up for. What one rank decides holds for all; a
 * code can be decided on only if the stream has one.
 */
enum mmc_decision {
	MMC_DECIDE_NOTHING = 0, /* it is as the stream's options say */
	MMC_DECIDE_REPEAT = 1,
	MMC_DECIDE_CODE = 2,
};

/*
 * The arguments of an operation, which moves each rank's block from that rank's `send`
 * to its place in `recv` on all ranks (MPI-4.1, sections 6.7 and 6.4). Kind, root and
 * sizes must be equal on all ranks; addresses and offsets may differ.
 */
struct mmc_operation {
	uint32_t kind;	   /* enum mmc_kind */
	uint32_t root;	   /* Bcast: the only rank that has a block */
	uint32_t notifies; /* whether its end wakes mmc_engine_await() */
	uint32_t unready;  /* whether it begins with mmc_request_ready() only */
	uint32_t partial;  /* whether parts of it are asked for (partial.h) */
	uint32_t reliability; /* enum mmc_decision */
	uint64_t block_bytes; /* each rank's block; Bcast: the root's */
	/*
	 * For an Allgatherv: the size of each rank's block, and where it begins in
	 * `recv`. Both are [nranks], and not read after the call; if `offsets_bytes` is
	 * NULL, the blocks lie one behind the other.
	 */
	const uint64_t *blocks_bytes;
	const uint64_t *offsets_bytes;
	const void *send; /* NULL: this rank's block is already in its place */
	void *recv;
	/*
	 * On node streams: 0, or what names the memory at `recv` among all that the
	 * node's members share, equal on all of them. The result then arrives there
	 * once for all. Other streams do not read this.
	 */
	uint64_t shared;
};

/*
 * Starts an operation, then waits for it for at most `slice_ns`, as mmc_request_wait()
 * does. With a `slice_ns` of 0 it returns at once, whatever other ranks do. Both
 * buffers belong to the library until the operation completes.
 *
 * Returns 0 with `*request` NULL if the operation is complete already, MMC_EAGAIN with
 * a `*request` that is to be waited for and freed, or a negative error. If the
 * operation itself has failed, `*request` is set, and is to be asked for its failure
 * and freed; otherwise `*request` is NULL, and nothing was started.
 */
int mmc_start(struct mmc_stream *stream, const struct mmc_operation *operation,
	      uint64_t slice_ns, struct mmc_request **request);

/*
 * The most slices for which one call waits. It waits for more than one where all ranks
 * have entered an operation that takes long already.
 */
#define MMC_SLICES_MAX 16

/*
 * Waits for the operation for at most `slice_ns`, or longer where MMC_SLICES_MAX says so.
 * Returns 0 if it is complete, MMC_EAGAIN if it is not yet, or the negative error with which it has failed. Unless
 * MMC_EAGAIN is returned, the buffers are the program's again.
 */
int mmc_request_wait(struct mmc_request *request, uint64_t slice_ns);

/*
 * Lets an `unready` operation begin on this rank. Until then the memory at `send` and
 * `recv` is neither read nor written, and the operations behind it in the stream wait.
 */
void mmc_request_ready(struct mmc_request *request);

/*
 * Cancels an operation that is not complete: it fails with -MMC_ECANCELED on every rank
 * that has not completed it, and the stream is poisoned. On return the buffers are the
 * program's again.
 */
void mmc_request_cancel(struct mmc_request *request);

/* Frees a request that is complete or has failed. NULL is allowed. */
void mmc_request_free(struct mmc_request *request);

/* Why an operation failed. */
struct mmc_failure {
	int error;	  /* negative enum mmc_error; 0 if nothing failed */
	uint32_t epoch;	  /* the number of the operation that failed first */
	uint32_t culprit; /* a rank; UINT32_MAX: none in particular */
	uint32_t missing_chunks; /* chunks that this rank lacks */

	/*
	 * For -MMC_EMISMATCH, the least and the greatest value on any rank: of the
	 * kind, an enum mmc_kind; of the root, if all ranks called a Bcast; of the
	 * bytes of a block, modulo 2^40, if none called an Allgatherv. Where both
	 * values are equal, the ranks do not differ in that.
	 */
	uint32_t kind_min;
	uint32_t kind_max;
	uint32_t root_min;
	uint32_t root_max;
	uint64_t block_bytes_min;
	uint64_t block_bytes_max;
};

/* Writes why a request failed. */
void mmc_request_failure(struct mmc_request *request,
			 struct mmc_failure *failure);

/* How far an operation is, and for what it waits. */
struct mmc_waiting {
	uint64_t waited_ns; /* time since the operation's start */
	uint32_t entered;   /* whether all ranks are known to have entered */
	uint32_t epoch;	    /* 0 while it waits for earlier operations */
	uint32_t rank;	    /* the rank awaited first; UINT32_MAX: none */
	/* A rank that has not entered; UINT32_MAX: none is known. */
	uint32_t unentered;
	uint32_t silent; /* whether the awaited process exists but is silent */
	uint32_t missing_chunks; /* chunks that this rank lacks */
};

/* Writes what a request waits for, for log lines. */
void mmc_request_waiting(struct mmc_request *request,
			 struct mmc_waiting *waiting);

#endif
