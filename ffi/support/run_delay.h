/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a thread was ready to run but had no processor, since others had them. The
 * kernel counts that for each thread, see proc_pid_schedstat in its documentation.
 */
#ifndef MMC_SUPPORT_RUN_DELAY_H
#define MMC_SUPPORT_RUN_DELAY_H

#include <stdbool.h>
#include <stdint.h>

/* One look at a thread's run delay. */
struct mmc_run_delay {
	const void *thread; /* whose it is; NULL: it is not known */
	uint64_t delay_ns;  /* since the thread began */
	uint64_t at_ns;	    /* when that was, by mmc_clock_now_ns() */
};

/* Returns the run delay of the calling thread, if the kernel counts it. */
struct mmc_run_delay mmc_run_delay_look(void);

/*
 * Sets `delay` to what the calling thread's run delay has grown by since `before`, and
 * its `at_ns` to the time since then. Returns false if it was another thread's, or is
 * not known.
 */
bool mmc_run_delay_since(const struct mmc_run_delay *before,
			 struct mmc_run_delay *delay);

#endif
