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

const char *mmc_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case MMC_OK:
		return "success";
	case MMC_EAGAIN:
		return "not complete yet";
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
		return "not usable in a child process after fork()";
	case MMC_ENOANSWER:
		return "a rank did not answer";
	case MMC_ENOPROGRESS:
		return "the operation made no progress";
	case MMC_ENOENTRY:
		return "a rank did not enter the operation";
	case MMC_EMISMATCH:
		return "the ranks started different operations";
	case MMC_ECANCELED:
		return "a rank cancelled the operation";
	case MMC_ELEFT:
		return "a rank has left the stream";
	case MMC_EPOISONED:
		return "an earlier operation failed";
	case MMC_EADDRINUSE:
		return "port in use";
	case MMC_EGONE:
		return "a rank's process has ended";
	case MMC_ELATE:
		return "a rank's process is not responding";
	default:
		return "unknown error";
	}
}
