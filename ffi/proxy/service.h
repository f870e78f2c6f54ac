/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process does for the ranks that attach to it: a proxy serves them itself. */
#ifndef MMC_PROXY_SERVICE_H
#define MMC_PROXY_SERVICE_H

#include <mpimcast/proxy.h>

#include "proxy/attachment.h"

struct mmc_service {
	uint32_t kind; /* enum mmc_runner_kind */

	/* Attaches a rank: see mmc_attachment_open(). */
	int (*open)(int socket, struct mmc_attachment **attachment);

	/* Ends what `open` has begun. */
	void (*close)(struct mmc_attachment *attachment);
};

/* As mmc_proxy_open(), for a process that serves ranks in another way. */
int mmc_service_open(const char *name, const struct mmc_service *service,
		     struct mmc_proxy **proxy);

#endif
