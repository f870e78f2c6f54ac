/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A predictor tells a driver which datagram each posted receive will most likely take,
 * and where the payload of that datagram belongs. The engine provides it, since only
 * the engine knows what the ranks will send. The datagrams of a subgroup have
 * positions: the order in which they arrive if none is lost and none overtakes another.
 * To a driver a position is a mere number.
 */
#ifndef MMC_DRIVERS_PREDICTOR_H
#define MMC_DRIVERS_PREDICTOR_H

#include "core/wire/header.h"
#include "drivers/driver.h"

/* A datagram that is expected to arrive. */
struct mmc_prediction {
	/* Where its payload belongs; NULL: no receive may aim there. */
	uint8_t *place;
	uint32_t nbytes;   /* the length of its payload */
	uint32_t source;   /* the rank that sends it */
	uint32_t index;	   /* the index in its header */
	uint32_t position; /* among the datagrams of its subgroup */
};

/* The memory for one sender's payloads, in order of their indices, without gaps. */
struct mmc_destination {
	uint8_t *memory; /* NULL: none of them may be placed */
	uint64_t nbytes;
	uint32_t first; /* the index in the header of the first one */
};

/* How far the datagrams of a subgroup have been predicted. */
struct mmc_cursor {
	uint32_t subgroup;
	uint32_t position; /* of the next datagram to predict */
	/* Whether this rank's own multicast comes back to it and takes receives. */
	bool loops;
};

struct mmc_predictor {
	const void *context;	  /* the first argument of each function */
	struct mmc_region region; /* the registered memory with all places */
	/* All places lie in these `nbytes`, if they are predicted: adjacent, in order. */
	uint8_t *memory;
	uint64_t nbytes;
	uint64_t cookie; /* of events that tell what the device has placed */
	/* The header of every predicted datagram, except for the index. */
	struct mmc_header header;
	/* Only the datagrams of subgroups below this number can be predicted. */
	uint32_t nsubgroups;

	/*
	 * Moves the cursor to the datagram that is to arrive after `count` others that
	 * are still expected.
	 */
	void (*seek)(const void *context, struct mmc_cursor *cursor,
		     uint32_t count);

	/*
	 * Predicts the next `count` datagrams, and moves the cursor behind them. The
	 * predictions hold until the driver hands the engine another datagram.
	 */
	void (*predict)(const void *context, struct mmc_cursor *cursor,
			struct mmc_prediction *predictions, uint32_t count);

	/*
	 * Finds the datagram whose payload belongs at `place`. Returns false if there
	 * is none; otherwise writes its subgroup and position.
	 */
	bool (*locate)(const void *context, const uint8_t *place,
		       uint32_t *subgroup, uint32_t *position);

	/* Returns where what a rank sends belongs, for a device that places by itself. */
	struct mmc_destination (*destination)(const void *context,
					      uint32_t source);
};

#endif
