/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/endpoint.h"

/* Has `filter` know the addresses of all ranks, if these are few enough. */
static void know_ranks(const struct mmc_udp *udp, struct mmc_udp_filter *filter)
{
	if (udp->options.nranks > MMC_UDP_RANKS_APART_MAX)
		return;
	filter->knows_sources = true;
	filter->known[0] = udp->control;
	filter->known[1] = udp->data;
	filter->nranks = udp->options.nranks;
}

/*
 * Says what the socket of this index receives: unicast of all ranks, a group without
 * those whom other sockets hear, or a single rank.
 */
static void describe(const struct mmc_udp *udp, unsigned socket,
		     struct mmc_udp_filter *filter)
{
	unsigned first_single = MMC_UDP_GROUP0 + udp->options.nsubgroups;

	if (socket >= first_single)
		return;
	if (socket >= MMC_UDP_GROUP0)
		mmc_udp_refuse_known(udp, filter);
	/* Where each rank has a socket, a group's first one hears only strangers. */
	if (socket >= MMC_UDP_GROUP0 && mmc_udp_has_sources(&udp->options))
		filter->knows_sources = true;
	else
		know_ranks(udp, filter);
}

void mmc_udp_guard(struct mmc_endpoint *endpoint, const uint64_t *channels,
		   unsigned nchannels)
{
	const struct mmc_udp *udp = (const struct mmc_udp *)endpoint;

	for (unsigned i = 0; i < udp->nsockets; i++) {
		struct mmc_udp_filter filter = {
			.samples = true,
			.channels = channels,
			.nchannels = nchannels,
		};

		describe(udp, i, &filter);
		/* Without it a flood costs more, and the earlier filter stays. */
		mmc_udp_filter(udp->sockets[i].fd, &filter);
	}
}
