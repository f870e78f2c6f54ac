/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint around another, to which it passes on what it does not do itself. */
#ifndef MMC_DRIVERS_FAULT_WRAPPER_H
#define MMC_DRIVERS_FAULT_WRAPPER_H

#include "drivers/driver.h"

struct mmc_fault_wrapper {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver;
	struct mmc_endpoint *inner;
};

/*
 * Makes a wrapper that passes on every call, and lacks those that `inner` lacks. The
 * caller sets `name`, `poll`, `send`, `deadline_ns` and `close` of its driver.
 */
void mmc_fault_wrapper_init(struct mmc_fault_wrapper *wrapper,
			    struct mmc_endpoint *inner);

#endif
