/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams on their way through the simulated network, and memory for them. */
#ifndef MMC_DRIVERS_SIM_FRAME_H
#define MMC_DRIVERS_SIM_FRAME_H

#include "core/wire/header.h"

/* A datagram on its way; copies for several receivers share one frame. */
struct mmc_frame {
	uint32_t references;
	uint32_t source;
	uint32_t peer; /* a host or MMC_PEER_ALL */
	uint32_t subgroup;
	bool control; /* sent to the peer's control address */
	enum mmc_traffic traffic;
	uint32_t nbytes;	/* of `bytes` */
	uint32_t scaled_bytes;	/* bytes it stands for, header included */
	struct mmc_frame *next; /* in the list of unused frames */
	uint8_t bytes[];
};

/* Frames of one size to use again; all zeros is none. */
struct mmc_frames {
	struct mmc_frame *unused;
};

/*
 * Returns a frame with room for `nbytes`, the same number in every call, and with one
 * reference; NULL without memory.
 */
struct mmc_frame *mmc_frames_take(struct mmc_frames *frames, uint32_t nbytes);

/* Gives back a reference; the last one makes the frame unused. */
void mmc_frames_release(struct mmc_frames *frames, struct mmc_frame *frame);

/* Frees the unused frames. */
void mmc_frames_free(struct mmc_frames *frames);

/* Numbers of datagrams and of their bytes, scaled, our header included. */
struct mmc_traffic_count {
	uint64_t datagrams[MMC_TRAFFIC_COUNT];
	uint64_t bytes[MMC_TRAFFIC_COUNT];
};

static inline void mmc_traffic_add(struct mmc_traffic_count *count,
				   const struct mmc_frame *frame)
{
	count->datagrams[frame->traffic]++;
	count->bytes[frame->traffic] += frame->scaled_bytes;
}

#endif
