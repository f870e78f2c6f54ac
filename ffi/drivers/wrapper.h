/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint around another, `inner`, to which it passes on calls. */
#ifndef MMC_DRIVERS_WRAPPER_H
#define MMC_DRIVERS_WRAPPER_H

#include "drivers/driver.h"

struct mmc_wrapper {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver;
	struct mmc_endpoint *inner;
};

/*
 * Makes a wrapper that passes every call on to `inner`; calls that `inner` lacks are
 * NULL. The caller then sets `name`, `poll`, `send`, `deadline_ns` and `close` of the
 * wrapper's driver, which are NULL until then.
 */
void mmc_wrapper_init(struct mmc_wrapper *wrapper, struct mmc_endpoint *inner);

/*
 * Polls `inner`, as poll() of a driver does. Passes on to it the time after which a silent
 * peer counts as failed, and takes over its counts.
 */
int mmc_wrapper_poll(struct mmc_wrapper *wrapper, struct mmc_event *events,
		     unsigned nmax);

#endif
