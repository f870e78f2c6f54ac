/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of frames, first in, first out, in a ring that grows. */
#ifndef MMC_DRIVERS_SIM_QUEUE_H
#define MMC_DRIVERS_SIM_QUEUE_H

#include "drivers/sim/frame.h"

/* All zeros is an empty queue. */
struct mmc_sim_queue {
	struct mmc_frame **frames;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t first;
	uint32_t nframes;
};

/* Adds a frame, which may be NULL, at the end. Returns 0 or -MMC_ENOMEM. */
int mmc_sim_queue_append(struct mmc_sim_queue *queue, struct mmc_frame *frame);

/* Takes the first frame out of a queue that is not empty. */
struct mmc_frame *mmc_sim_queue_take(struct mmc_sim_queue *queue);

#endif
