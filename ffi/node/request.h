/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation of a node stream, from its start until the user frees it. */
#ifndef MMC_NODE_REQUEST_H
#define MMC_NODE_REQUEST_H

#include "node/stream.h"
#include "support/bits.h"

struct mmc_node_request {
	struct mmc_node_request *next; /* in flight, or a spare */
	struct mmc_node_stream *stream;
	struct mmc_operation operation; /* its tables lie in `tables` */
	struct mmc_pieces pieces;
	uint32_t first_piece;
	uint32_t epoch;
	uint32_t digest;      /* of kind, root and sizes */
	uint32_t ntaken;      /* parts of the piece that is being read */
	uint64_t start_ns;    /* 0: nobody has waited for it yet */
	uint64_t observed_ns; /* when a waiter last looked at the clock */
	uint64_t stalled_ns;  /* observed time since anything has moved */
	uint64_t looked_ns;   /* when it was last asked whether ranks live */
	struct mmc_failure failure;
	_Atomic bool complete; /* read without the mutex */
	/*
	 * [nranks] block sizes and [nranks] offsets of an Allgatherv, then a bit for
	 * each member: whether its part of the piece that is being read is taken.
	 */
	uint64_t tables[];
};

/*
 * Makes a request for an operation, and puts it behind those in flight. Returns 0, or
 * -MMC_EINVAL or -MMC_ENOMEM and changes nothing. The caller holds the mutex.
 */
int mmc_node_request_put(struct mmc_node_stream *stream,
			 const struct mmc_operation *operation,
			 struct mmc_node_request **request);

/*
 * Takes the first request off those in flight, complete or, if its stream has failed,
 * with the stream's failure. The caller holds the mutex.
 */
void mmc_node_request_take_first(struct mmc_node_stream *stream);

/* Keeps a request that is over as a spare. The caller holds the mutex. */
void mmc_node_request_keep(struct mmc_node_request *request);

/* Frees the spares of a stream that is closed. */
void mmc_node_requests_free(struct mmc_node_stream *stream);

/* Returns whether a piece is one of the request's. */
static inline bool mmc_node_request_has(const struct mmc_node_request *request,
					uint32_t piece)
{
	return piece - request->first_piece < request->pieces.npieces;
}

/* Returns whether a rank contributes to the operation. */
static inline bool
mmc_node_request_sends(const struct mmc_node_request *request, uint32_t rank)
{
	return request->operation.kind != MMC_BCAST ||
	       request->operation.root == rank;
}

/* Returns the number of a rank's block among the pieces' blocks. */
static inline uint32_t
mmc_node_request_block(const struct mmc_node_request *request, uint32_t rank)
{
	return request->operation.kind == MMC_BCAST ? 0 : rank;
}

/* Returns where a rank's block begins in the result. */
static inline uint8_t *
mmc_node_request_result(const struct mmc_node_request *request, uint32_t rank)
{
	const struct mmc_operation *operation = &request->operation;
	uint64_t offset_bytes = 0;

	if (operation->kind == MMC_ALLGATHER)
		offset_bytes = rank * operation->block_bytes;
	else if (operation->kind == MMC_ALLGATHERV)
		offset_bytes = operation->offsets_bytes[rank];
	return (uint8_t *)operation->recv + offset_bytes;
}

/* Returns the bits of the members whose parts of the piece being read are taken. */
static inline uint64_t *mmc_node_request_taken(struct mmc_node_request *request)
{
	return request->tables + 2 * request->stream->options.nranks;
}

#endif
