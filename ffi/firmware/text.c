/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements support/error.h and the end of a program by a failed assertion. */
#include <mpimcast/mmc.h>
#include <stdio.h>

#include "firmware/machine.h"
#include "support/assert.h"
#include "support/error.h"

static char text[512]; /* what mmc_last_error() returns */

void mmc_error_set(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
}

const char *mmc_last_error(void)
{
	return text;
}

void mmc_assert_failed(const char *expression, const char *file, int line)
{
	mmc_error_set("assertion failed: %s (%s:%u)\n", expression, file,
		      (unsigned)line);
	mmc_machine_print(text);
	mmc_machine_exit(1);
}
