/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/assert.h"

#include <stdio.h>

#include "firmware/machine.h"

void mmc_assert_failed(const char *expression, const char *file, int line)
{
	char text[256];

	snprintf(text, sizeof(text), "assertion failed: %s (%s:%d)\n",
		 expression, file, line);
	mmc_machine_print(text);
	mmc_machine_exit(1);
}
