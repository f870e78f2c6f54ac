/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/error.h"

#include <mpimcast/mmc.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[512];

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

const char *mmc_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case MMC_OK:
		return "success";
	case MMC_EAGAIN:
		return "not over yet";
	case MMC_EINVAL:
		return "invalid argument";
	case MMC_ENOMEM:
		return "out of memory";
	case MMC_EIO:
		return "a system call failed";
	case MMC_ENODEV:
		return "no usable device";
	case MMC_ESHORT:
		return "datagram too short";
	case MMC_ECORRUPT:
		return "checksum mismatch";
	case MMC_EFORKED:
		return "opened by the parent process before fork()";
	case MMC_ENOANSWER:
		return "no answer";
	case MMC_ENOPROGRESS:
		return "no progress";
	case MMC_ENOENTRY:
		return "not entered";
	case MMC_EMISMATCH:
		return "ranks started different operations";
	case MMC_ECANCELED:
		return "interrupted";
	case MMC_ELEFT:
		return "a rank has left";
	case MMC_EPOISONED:
		return "an earlier operation failed";
	case MMC_EADDRINUSE:
		return "port in use";
	case MMC_EGONE:
		return "its process has ended";
	case MMC_ELATE:
		return "its process stands still";
	default:
		return "unknown error";
	}
}
