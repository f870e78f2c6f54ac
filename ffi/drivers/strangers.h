/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An account of the addresses from which datagrams came that were refused. It is
 * bounded: of more than MMC_STRANGERS_MAX addresses, the one that was refused least
 * recently is forgotten.
 */
#ifndef MMC_DRIVERS_STRANGERS_H
#define MMC_DRIVERS_STRANGERS_H

#include <mpimcast/counters.h>

#include "drivers/driver.h"

struct mmc_strangers {
	uint32_t count;
	struct mmc_stranger items[MMC_STRANGERS_MAX];
};

/*
 * Records that `ndatagrams` like that of `event` were refused for `cause`. They are
 * accounted to the event's source if that is a rank, and otherwise to the address that
 * they came from.
 */
void mmc_strangers_note(struct mmc_strangers *strangers,
			const struct mmc_event *event, enum mmc_refusal cause,
			uint64_t ndatagrams, uint64_t now_ns);

#endif
