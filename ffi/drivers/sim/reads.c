/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/reads.h"

#include <stdlib.h>
#include <string.h>

#include "support/assert.h"

/* The most reads that a host may have under way. */
enum { READS_MAX = 16 };

/* How long a read tries to reach a host that is off before it fails. */
#define UNREACHABLE_NS (100 * MMC_MS_NS)

struct mmc_sim_read {
	struct mmc_sim_read *next;
	uint64_t due_ns; /* when its next step is due */
	uint64_t cookie;
	uint32_t peer;
	unsigned nstretches;
	unsigned ndone; /* stretches read so far; the last may have failed */
	bool back;	/* whether the answer is on its way back */
	int error;	/* 0, or why a stretch could not be read */
	struct mmc_stretch stretches[MMC_STRETCHES_MAX];
	uint32_t nbytes;
	uint8_t bytes[];
};

static struct mmc_sim_endpoint *self_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_sim_endpoint *)endpoint;
}

/* Counts one more registration. Returns 0, or -MMC_ENOMEM if there are too many. */
static int count_registration(struct mmc_sim_endpoint *self)
{
	if (self->nregistered >= self->options.registrations_max)
		return -MMC_ENOMEM;
	self->nregistered++;
	return 0;
}

int mmc_sim_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			    size_t nbytes, struct mmc_region *region)
{
	(void)memory, (void)nbytes;
	*region = (struct mmc_region){ .handle = NULL };
	return count_registration(self_of(endpoint));
}

void mmc_sim_deregister_memory(struct mmc_endpoint *endpoint,
			       struct mmc_region *region)
{
	(void)region;
	self_of(endpoint)->nregistered--;
}

int mmc_sim_grant_read(struct mmc_endpoint *endpoint, uint32_t peer,
		       const struct mmc_region *region, const void *memory,
		       size_t nbytes, struct mmc_grant *grant)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	const struct mmc_sim_granted granted = {
		.host = self->options.host,
		.reader = peer,
		.memory = memory,
		.nbytes = nbytes,
		.registers = region == NULL,
	};

	if (granted.registers && count_registration(self) < 0)
		return -MMC_ENOMEM;
	return mmc_sim_regions_grant(self->options.regions, &granted, grant);
}

void mmc_sim_revoke_read(struct mmc_endpoint *endpoint, struct mmc_grant *grant)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);

	if (mmc_sim_regions_revoke(self->options.regions, grant).registers)
		self->nregistered--;
}

/* Sets the time of a read's next step, and a timer for it. */
static void await(struct mmc_sim_endpoint *self, struct mmc_sim_read *read,
		  uint64_t time_ns)
{
	read->due_ns = time_ns;
	mmc_network_at(self->options.network, time_ns, self->options.read_kind,
		       self->options.host);
}

int mmc_sim_read(struct mmc_endpoint *endpoint, uint32_t peer,
		 const struct mmc_stretch *stretches, unsigned nstretches,
		 uint64_t cookie)
{
	struct mmc_sim_endpoint *self = self_of(endpoint);
	struct mmc_network *network = self->options.network;
	struct mmc_sim_read *read;
	uint32_t nbytes = 0;

	MMC_ASSERT(nstretches <= MMC_STRETCHES_MAX);
	for (unsigned i = 0; i < nstretches; i++)
		nbytes += stretches[i].nbytes;
	MMC_ASSERT(nbytes <= self->base.read_bytes_max);
	if (self->nreads == READS_MAX)
		return -MMC_EAGAIN;
	read = malloc(sizeof(*read) + nbytes);
	if (!read)
		return -MMC_ENOMEM;
	*read = (struct mmc_sim_read){
		.next = self->reads,
		.cookie = cookie,
		.peer = peer,
		.nstretches = nstretches,
		.nbytes = nbytes,
	};
	memcpy(read->stretches, stretches, nstretches * sizeof(*stretches));
	self->reads = read;
	self->nreads++;
	await(self, read,
	      network->now_ns +
		      mmc_network_reach_ns(network, self->options.host, peer));
	return 0;
}

/*
 * Reads the next stretch, and sets the time of the step after it: the read of the
 * following stretch, half a link's latency later, or the arrival of the answer.
 */
static void read_stretch(struct mmc_sim_endpoint *self,
			 struct mmc_sim_read *read)
{
	struct mmc_network *network = self->options.network;
	const struct mmc_stretch *stretch = &read->stretches[read->ndone];
	uint64_t now_ns = network->now_ns;
	uint32_t offset = 0;

	for (unsigned i = 0; i < read->ndone; i++)
		offset += read->stretches[i].nbytes;
	read->error = mmc_sim_regions_read(self->options.regions, read->peer,
					   self->options.host, stretch,
					   read->bytes + offset);
	read->ndone++;
	read->back = read->ndone == read->nstretches || read->error != 0;
	if (read->error == -MMC_ENOANSWER)
		await(self, read, now_ns + UNREACHABLE_NS);
	else if (!read->back)
		await(self, read, now_ns + 1 + network->options.latency_ns / 2);
	else
		await(self, read,
		      mmc_network_transfer(network, read->peer,
					   self->options.host, read->nbytes));
}

void mmc_sim_endpoint_step_reads(struct mmc_sim_endpoint *self)
{
	uint64_t now_ns = self->options.network->now_ns;
	struct mmc_sim_read **at = &self->reads;

	while (*at) {
		struct mmc_sim_read *read = *at;

		if (read->due_ns > now_ns) {
			at = &read->next;
		} else if (!read->back) {
			read_stretch(self, read);
			at = &read->next;
		} else {
			*at = read->next;
			read->next = self->ended_reads;
			self->ended_reads = read;
		}
	}
}

unsigned mmc_sim_reads_poll(struct mmc_sim_endpoint *self,
			    struct mmc_event *events, unsigned nmax)
{
	unsigned n = 0;

	/* A read that got no answer takes two events. */
	while (n + 2 <= nmax && self->ended_reads) {
		struct mmc_sim_read *read = self->ended_reads;

		self->ended_reads = read->next;
		read->next = self->reads_lent;
		self->reads_lent = read;
		self->nreads--;
		events[n++] = (struct mmc_event){
			.kind = MMC_EVENT_READ,
			.body = read->bytes,
			.nbytes = read->error == 0 ? read->nbytes : 0,
			.source = read->peer,
			.cookie = read->cookie,
		};
		if (read->error == -MMC_ENOANSWER)
			events[n++] = (struct mmc_event){
				.kind = MMC_EVENT_BROKEN,
				.source = read->peer,
				.error = read->error,
			};
	}
	return n;
}

static void free_reads(struct mmc_sim_read **reads)
{
	while (*reads) {
		struct mmc_sim_read *read = *reads;

		*reads = read->next;
		free(read);
	}
}

void mmc_sim_reads_give_back(struct mmc_sim_endpoint *self)
{
	free_reads(&self->reads_lent);
}

void mmc_sim_reads_free(struct mmc_sim_endpoint *self)
{
	free_reads(&self->reads);
	free_reads(&self->ended_reads);
	free_reads(&self->reads_lent);
}
