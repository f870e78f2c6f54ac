/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File descriptors that wake the thread which polls them: an eventfd, once another
 * thread has written to it, or a timerfd, once it has expired. Both are non-blocking.
 */
#ifndef MMC_SUPPORT_DESCRIPTOR_H
#define MMC_SUPPORT_DESCRIPTOR_H

#include <stdint.h>
#include <unistd.h>

/* Makes the eventfd `fd` readable, which wakes a thread that polls it. */
static inline void mmc_descriptor_wake(int fd)
{
	uint64_t one = 1;
	ssize_t rv = write(fd, &one, sizeof(one));

	/* The write fails only if the counter is full, and then `fd` is readable. */
	(void)rv;
}

/* Makes an eventfd or a timerfd unreadable until it is written to or expires again. */
static inline void mmc_descriptor_drain(int fd)
{
	uint64_t count;
	ssize_t rv = read(fd, &count, sizeof(count));

	/* The read fails only if `fd` was not readable in the first place. */
	(void)rv;
}

#endif
