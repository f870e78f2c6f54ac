/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/assert.h"

#include <stdio.h>
#include <stdlib.h>

void mmc_assert_failed(const char *expression, const char *file, int line)
{
	fprintf(stderr, "mpimcast: assertion failed: %s (%s:%d)\n", expression,
		file, line);
	abort();
}
