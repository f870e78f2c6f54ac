/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of the engine, CLOCK_MONOTONIC, which the responder's timerfd uses too. */
#ifndef MMC_SUPPORT_CLOCK_H
#define MMC_SUPPORT_CLOCK_H

#include <time.h>

#include "support/time.h"

/* Returns the time in nanoseconds since a moment before the process began. */
static inline uint64_t mmc_clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MMC_S_NS + (uint64_t)now.tv_nsec;
}

/* Returns `ns` as a struct timespec, which system calls take. */
static inline struct timespec mmc_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / MMC_S_NS),
				  .tv_nsec = (long)(ns % MMC_S_NS) };
}

#endif
