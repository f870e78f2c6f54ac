/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of each block is in its place in a request's result. Pieces are read in order,
 * so that is the beginning of each block; a block *lands* when it is whole. The holder of
 * the stream's mutex writes here, and any thread may read.
 */
#ifndef MMC_NODE_LANDING_H
#define MMC_NODE_LANDING_H

#include "node/request.h"

struct mmc_present;

struct mmc_node_landing {
	uint32_t nblocks;    /* one of each rank or, of a Bcast, the root's */
	uint32_t first_rank; /* whose is the first */
	_Atomic uint32_t nlanded; /* the length of `order` so far */
	uint32_t *order;  /* [nblocks] the ranks whose blocks have landed */
	uint32_t *firsts; /* [nblocks] the first chunk of each block */
	_Atomic uint64_t *present_bytes; /* [nblocks] from the beginning on */
	uint64_t chunk_bytes;		 /* what a bit stands for */
	_Atomic uint64_t *words;	 /* a bit for each chunk, see `bits` */
	struct mmc_present *bits;	 /* holds `words` */
	bool tells;			 /* blocks that land ring this member */
};

/*
 * Begins to follow the blocks of a `partial` request whose pieces have been cut. Returns 0
 * or -MMC_ENOMEM.
 */
int mmc_node_landing_begin(struct mmc_node_request *request);

/* Frees what follows a request, if anything does. */
void mmc_node_landing_end(struct mmc_node_request *request);

/*
 * Records that the part of a member of this node is in its place, of the request's piece
 * number `index`. Does nothing, as the next two, if nothing follows the request.
 */
void mmc_node_landing_note_member(struct mmc_node_request *request,
				  uint32_t index, uint32_t rank);

/* Records that all parts of a piece are in their places. */
void mmc_node_landing_note_piece(struct mmc_node_request *request,
				 uint32_t index);

/* Records that all blocks are in their places. */
void mmc_node_landing_note_all(struct mmc_node_request *request);

/* Returns how many bytes of the block of `rank` are in their place. Any thread may ask. */
uint64_t mmc_node_landing_bytes(const struct mmc_node_landing *landing,
				uint32_t rank);

/*
 * Writes whose block was the one with number `index` to land. Returns false if it has
 * not. Any thread may ask.
 */
bool mmc_node_landing_rank(const struct mmc_node_landing *landing,
			   uint32_t index, uint32_t *rank);

#endif
