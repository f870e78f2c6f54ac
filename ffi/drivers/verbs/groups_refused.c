/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>

#include "drivers/verbs/groups.h"
#include "support/error.h"

int mmc_verbs_groups_refused(const struct mmc_verbs_groups *groups,
			     const struct mmc_verbs_group *group,
			     const char *why)
{
	struct in_addr address = { .s_addr = htonl(group->address) };
	char text[INET_ADDRSTRLEN];

	mmc_error_set("%s: cannot join %s: %s",
		      groups->port->options.device.name,
		      inet_ntop(AF_INET, &address, text, sizeof(text)), why);
	return -MMC_EIO;
}
