/* SPDX-License-Identifier: BSD-3-Clause */
/* A datagram as read by the monitor, which knows the streams' channels. */
#ifndef MMC_SIM_WIRE_H
#define MMC_SIM_WIRE_H

#include "sim/monitor.h"

struct mmc_wire {
	const struct mmc_frame *frame;
	struct mmc_header header;
	uint32_t stream;     /* index of its stream */
	uint32_t index;	     /* of the operation in its stream, from 0 on */
	bool control;	     /* it carries a message, not a chunk */
	const uint8_t *body; /* what follows the header, and the CRC if any */
	uint32_t body_bytes;
	struct mmc_message message; /* valid if `control` */
};

/* Decodes `wire->frame`. Returns what is wrong with it, or NULL. */
const char *mmc_wire_read(struct mmc_wire *wire,
			  const struct mmc_monitor *monitor);

/*
 * Returns what is wrong with the numbers of a parity chunk, or NULL. Which chunks it protects
 * depends on a window, which the monitor does not know; that results are right shows that its
 * payload is.
 */
const char *mmc_wire_parity_flaw(const struct mmc_wire *wire,
				 const struct mmc_monitor *monitor,
				 const struct mmc_layout *layout);

#endif
