/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation of a node stream, from its start until the user frees it. */
#ifndef MMC_NODE_REQUEST_H
#define MMC_NODE_REQUEST_H

#include "node/copy.h"
#include "node/stream.h"
#include "support/bits.h"

/* How an operation's result gets to where the members want it. */
enum mmc_node_delivery {
	MMC_NODE_COPIES,   /* each member copies it out of slots */
	MMC_NODE_ONE_COPY, /* a node leader copies what other nodes have sent */
	MMC_NODE_IN_PLACE, /* it arrives in the members' shared memory itself */
	MMC_NODE_CROSS, /* each member reads it from the senders' own memory */
};

struct mmc_node_landing;

struct mmc_node_request {
	struct mmc_node_request *next; /* in flight, or a spare */
	struct mmc_node_stream *stream;
	struct mmc_operation operation; /* its tables lie in `tables` */
	/*
	 * With MMC_NODE_IN_PLACE a piece is of all blocks of a node together, whose
	 * lengths are the stream's `nodes_bytes` once they are added up.
	 */
	struct mmc_pieces pieces;
	uint32_t first_piece;
	uint32_t
		first_rail; /* which carries the first piece behind the entry */
	/*
	 * 1 if the first piece is an entry: it moves nothing, and is read once all
	 * members have filled it. Thus nobody writes to shared memory which another
	 * member still reads. 2 with MMC_NODE_CROSS, see node/cross.h.
	 */
	uint32_t nentries;
	uint32_t npieces; /* with the entries */
	uint32_t epoch;
	uint32_t digest; /* of kind, root, sizes and shared memory */
	enum mmc_node_delivery delivery;
	bool lacks;	 /* whether a cross read has failed */
	bool is_large;	 /* whether the result is larger than caches are */
	uint32_t ntaken; /* parts of the piece that is being read */
	uint32_t nread;	 /* the stream's cursors at the last look */
	uint32_t nfilled;
	uint64_t put_ns;      /* when it was put, if its stream is traced */
	uint64_t entered_ns;  /* if traced: when those it awaited had entered */
	uint64_t start_ns;    /* 0: nobody has waited for it yet */
	uint64_t observed_ns; /* when a waiter last looked at the clock */
	uint64_t stalled_ns;  /* observed time since anything has moved */
	uint64_t looked_ns;   /* when it was last asked whether ranks live */
	struct mmc_node_landing *landing; /* NULL: nobody asks for parts */
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
	return piece - request->first_piece < request->npieces;
}

/* Returns whether a piece of the request is its entry. */
static inline bool
mmc_node_request_enters(const struct mmc_node_request *request, uint32_t piece)
{
	return piece - request->first_piece < request->nentries;
}

/* Returns the number among the request's pieces of one that is not its entry. */
static inline uint32_t
mmc_node_request_index(const struct mmc_node_request *request, uint32_t piece)
{
	return piece - request->first_piece - request->nentries;
}

/* Returns the rail that carries a piece of the request which is not its entry. */
static inline uint32_t
mmc_node_request_rail(const struct mmc_node_request *request, uint32_t piece)
{
	return (request->first_rail + mmc_node_request_index(request, piece)) %
	       request->stream->options.nrails;
}

/* Returns whether this rank is the one on its node to exchange a piece. */
static inline bool
mmc_node_request_carries(const struct mmc_node_request *request, uint32_t piece)
{
	const struct mmc_node_stream *stream = request->stream;

	return mmc_node_leads(stream) &&
	       !mmc_node_request_enters(request, piece) &&
	       mmc_node_request_rail(request, piece) == stream->rail;
}

/* Returns how many pieces this rank lacks of a request that is not complete. */
static inline uint32_t
mmc_node_request_missing(const struct mmc_node_request *request)
{
	uint32_t nread = request->stream->nread;

	if (!mmc_node_request_has(request, nread))
		return request->npieces;
	return request->npieces - (nread - request->first_piece);
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

/* Returns the size of a rank's block, of a Bcast that of the root's. */
static inline uint64_t
mmc_node_request_bytes(const struct mmc_node_request *request, uint32_t rank)
{
	const struct mmc_operation *operation = &request->operation;

	return operation->kind == MMC_ALLGATHERV ? operation->blocks_bytes[rank]
						 : operation->block_bytes;
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

/* Copies a part to its place in the request's result. */
static inline void mmc_node_request_copy(const struct mmc_node_request *request,
					 uint8_t *to, const uint8_t *from,
					 uint64_t nbytes)
{
	if (request->is_large)
		mmc_copy_past_caches(to, from, nbytes);
	else
		memcpy(to, from, nbytes);
}

#endif
