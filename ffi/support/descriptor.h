/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that wake a thread: an eventfd, which is written to, or a timerfd. */
#ifndef MMC_SUPPORT_DESCRIPTOR_H
#define MMC_SUPPORT_DESCRIPTOR_H

#include <stdint.h>
#include <unistd.h>

/* Makes an eventfd readable. */
static inline void mmc_descriptor_wake(int fd)
{
	uint64_t one = 1;
	ssize_t rv = write(fd, &one, sizeof(one));

	/* A full counter is readable already. */
	(void)rv;
}

/* Makes an eventfd or a timerfd unreadable until it is woken or expires again. */
static inline void mmc_descriptor_drain(int fd)
{
	uint64_t count;
	ssize_t rv = read(fd, &count, sizeof(count));

	(void)rv;
}

#endif
