/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/inquiries.h"

#include <stdlib.h>

#include "drivers/sim/endpoint.h"

struct mmc_sim_inquiry {
	struct mmc_sim_inquiry *next;
	uint32_t peer;
	uint64_t due_ns; /* when its answer arrives */
	bool answered;
	enum mmc_sim_kernel kernel; /* the answer, if `answered` */
};

void mmc_sim_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	struct mmc_sim_endpoint *self = (struct mmc_sim_endpoint *)endpoint;
	struct mmc_network *network = self->options.network;
	struct mmc_sim_inquiry *inquiry = malloc(sizeof(*inquiry));

	if (!inquiry)
		return;
	*inquiry = (struct mmc_sim_inquiry){
		.next = self->inquiries,
		.peer = peer,
		.due_ns =
			network->now_ns +
			mmc_network_reach_ns(network, self->options.host,
					     peer) +
			mmc_network_reach_ns(network, peer, self->options.host),
	};
	self->inquiries = inquiry;
	mmc_network_at(network, inquiry->due_ns, self->options.inquiry_kind,
		       self->options.host);
}

void mmc_sim_inquiries_due(struct mmc_sim_endpoint *self)
{
	for (struct mmc_sim_inquiry *at = self->inquiries; at; at = at->next) {
		if (at->answered || at->due_ns > self->options.network->now_ns)
			continue;
		at->answered = true;
		at->kernel = self->options.kernels[at->peer];
		self->nanswered++;
	}
}

unsigned mmc_sim_inquiries_poll(struct mmc_sim_endpoint *self,
				struct mmc_event *events, unsigned nmax)
{
	struct mmc_sim_inquiry **at = &self->inquiries;
	unsigned n = 0;

	while (*at && n < nmax && self->nanswered > 0) {
		struct mmc_sim_inquiry *inquiry = *at;

		if (!inquiry->answered) {
			at = &inquiry->next;
			continue;
		}
		if (inquiry->kernel != MMC_SIM_KERNEL_OFF)
			events[n++] = (struct mmc_event){
				.kind = inquiry->kernel ==
							MMC_SIM_KERNEL_ACCEPTS
						? MMC_EVENT_ALIVE
						: MMC_EVENT_GONE,
				.source = inquiry->peer,
			};
		*at = inquiry->next;
		self->nanswered--;
		free(inquiry);
	}
	return n;
}

void mmc_sim_inquiries_free(struct mmc_sim_endpoint *self)
{
	while (self->inquiries) {
		struct mmc_sim_inquiry *inquiry = self->inquiries;

		self->inquiries = inquiry->next;
		free(inquiry);
	}
	self->nanswered = 0;
}
