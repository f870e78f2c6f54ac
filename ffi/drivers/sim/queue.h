/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of frames, first in, first out, in a ring buffer that grows. */
#ifndef MMC_DRIVERS_SIM_QUEUE_H
#define MMC_DRIVERS_SIM_QUEUE_H

#include "drivers/sim/frame.h"

/* A queue begins as all zeros. */
struct mmc_sim_queue {
	struct mmc_frame **frames;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t first;	   /* the index of the first frame */
	uint32_t nframes;
};

/* Adds a frame, which may be NULL, at the end. Returns 0 or -MMC_ENOMEM. */
int mmc_sim_queue_append(struct mmc_sim_queue *queue, struct mmc_frame *frame);

/* Removes and returns the first frame of a queue that is not empty. */
struct mmc_frame *mmc_sim_queue_take(struct mmc_sim_queue *queue);

#endif
