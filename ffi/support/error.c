/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/error.h"

#include <mpimcast/mmc.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[512]; /* what mmc_last_error() returns */

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
