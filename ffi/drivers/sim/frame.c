/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/frame.h"

#include <stdlib.h>

#include "support/assert.h"

struct mmc_frame *mmc_frames_take(struct mmc_frames *frames, uint32_t nbytes)
{
	struct mmc_frame *frame = frames->unused;

	if (frame)
		frames->unused = frame->next;
	else
		frame = malloc(sizeof(*frame) + nbytes);
	if (frame)
		frame->references = 1;
	return frame;
}

void mmc_frames_release(struct mmc_frames *frames, struct mmc_frame *frame)
{
	MMC_ASSERT(frame->references > 0);
	if (--frame->references > 0)
		return;
	frame->next = frames->unused;
	frames->unused = frame;
}

void mmc_frames_free(struct mmc_frames *frames)
{
	while (frames->unused) {
		struct mmc_frame *frame = frames->unused;

		frames->unused = frame->next;
		free(frame);
	}
}
