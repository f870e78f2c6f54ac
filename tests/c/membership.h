/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells whether this host has joined a group. */
#ifndef MMC_TESTS_MEMBERSHIP_H
#define MMC_TESTS_MEMBERSHIP_H

#include <arpa/inet.h>

#include "check.h"

/* Returns whether the kernel lists this host as a member of `group`. */
static inline bool is_joined(uint32_t group)
{
	FILE *list = fopen("/proc/net/igmp", "re");
	char line[256], text[16];
	bool found = false;

	if (!CHECK(list != NULL))
		return false;
	snprintf(text, sizeof(text), "\t%08" PRIX32 " ", htonl(group));
	while (!found && fgets(line, sizeof(line), list) != NULL)
		found = strstr(line, text) != NULL;
	fclose(list);
	return found;
}

#endif
