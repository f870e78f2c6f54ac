/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void mmc_finding_add(struct mmc_finding *finding, uint64_t now_ns,
		     const char *format, ...)
{
	va_list arguments;
	int used;

	if (mmc_finding_exists(finding))
		return;
	used = snprintf(finding->text, sizeof(finding->text),
			"at %" PRIu64 " ns: ", now_ns);
	va_start(arguments, format);
	vsnprintf(finding->text + used, sizeof(finding->text) - (size_t)used,
		  format, arguments);
	va_end(arguments);
}
