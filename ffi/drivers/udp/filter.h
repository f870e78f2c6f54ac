/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel filter by which a socket refuses datagrams before they take up its buffer. */
#ifndef MMC_DRIVERS_UDP_FILTER_H
#define MMC_DRIVERS_UDP_FILTER_H

#include <netinet/in.h>
#include <stdbool.h>

/* Which datagrams to drop. Arrays are read by mmc_udp_filter() only. */
struct mmc_udp_filter {
	/* Those from these sources, at most MMC_UDP_RANKS_APART_MAX. */
	const struct sockaddr_in *refused;
	unsigned nrefused;
	/*
	 * Whether to drop strangers' datagrams, too: all but one in MMC_SAMPLED, which
	 * passes, cut to a header's length. The other fields say what a stranger's is. A
	 * train of datagrams, which the kernel takes for one, is judged by its first.
	 */
	bool samples;
	/* Its channel is none of these, at most MMC_GUARD_CHANNELS_MAX, if there are any. */
	const uint64_t *channels;
	unsigned nchannels;
	/*
	 * With `knows_sources`, its source is in neither of these, which are `nranks`
	 * long each, at most MMC_UDP_RANKS_APART_MAX.
	 */
	bool knows_sources;
	const struct sockaddr_in *known[2];
	unsigned nranks;
};

/*
 * Has the kernel filter what a socket receives. Replaces an earlier filter of the
 * socket. Returns 0, or -1 with errno set.
 */
int mmc_udp_filter(int fd, const struct mmc_udp_filter *filter);

#endif
