/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine knows and a driver does not: which datagram a posted receive will
 * most likely take, and where its payload belongs. The datagrams of a subgroup have
 * positions, in the order in which they arrive if none is lost and none overtakes
 * another. To a driver a position is a mere number.
 */
#ifndef MMC_DRIVERS_PREDICTOR_H
#define MMC_DRIVERS_PREDICTOR_H

#include "core/wire/header.h"
#include "drivers/driver.h"

/* A datagram that is expected to arrive. */
struct mmc_prediction {
	uint8_t *
		place; /* where its payload belongs; NULL: not to be aimed at */
	uint32_t nbytes; /* the length of its payload */
	uint32_t source; /* the rank that sends it */
	uint32_t index;	 /* the index in its header */
	uint32_t position;
};

/* How far the datagrams of a subgroup have been predicted. */
struct mmc_cursor {
	uint32_t subgroup;
	uint32_t position; /* of the next datagram to predict */
	/* This rank's own multicast comes back to it, and takes receives. */
	bool loops;
};

struct mmc_predictor {
	const void *context;	  /* the first argument of each function */
	struct mmc_region region; /* all places, registered */
	/* The header of every predicted datagram, but for its index. */
	struct mmc_header header;
	/* Only the datagrams of subgroups below this number can be predicted. */
	uint32_t nsubgroups;

	/*
	 * Moves the cursor to the datagram that arrives behind all those received
	 * already and `count` more.
	 */
	void (*seek)(const void *context, struct mmc_cursor *cursor,
		     uint32_t count);

	/*
	 * Writes what the next `count` datagrams are, and moves the cursor behind
	 * them. A prediction holds until the engine has been given another datagram.
	 */
	void (*predict)(const void *context, struct mmc_cursor *cursor,
			struct mmc_prediction *predictions, uint32_t count);

	/*
	 * Finds the datagram whose payload belongs at `place`. Returns false if there
	 * is none; otherwise writes its subgroup and position.
	 */
	bool (*locate)(const void *context, const uint8_t *place,
		       uint32_t *subgroup, uint32_t *position);
};

#endif
