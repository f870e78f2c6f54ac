/* SPDX-License-Identifier: BSD-3-Clause */
/* On a simulated network a host reads what was granted to it, until that is revoked. */
#include "check.h"
#include "core/wire/header.h"
#include "drivers/sim/endpoint.h"

enum { NHOSTS = 3, NBYTES = 200, TIMER_READ = MMC_NETWORK_TIMER };

static struct mmc_network network;
static struct mmc_sim_regions regions;
static struct mmc_endpoint *hosts[NHOSTS];
static uint8_t memory[NBYTES]; /* of host 0 */

static void open_hosts(void)
{
	const struct mmc_network_options options = {
		.nhosts = NHOSTS,
		.nswitches = 1,
		.link_mbits = 10000,
		.trunk_mbits = 10000,
		.latency_ns = 1000,
		.queue_bytes = 1 << 20,
		.datagram_bytes_max = 4096,
		.head_bytes = MMC_HEADER_BYTES,
		.payload_scale = 1,
	};

	CHECK_EQ(mmc_network_init(&network, &options), 0);
	for (uint32_t r = 0; r < NHOSTS; r++) {
		const struct mmc_sim_endpoint_options own = {
			.network = &network,
			.host = r,
			.subgroups = 1,
			.buffer_bytes = 100000,
			.control_bytes = 100000,
			.regions = &regions,
			.registrations_max = 2,
			.read_kind = TIMER_READ,
		};
		struct mmc_sim_endpoint *made;

		CHECK_EQ(mmc_sim_endpoint_create(&own, &made), 0);
		hosts[r] = &made->base;
	}
	for (uint32_t i = 0; i < NBYTES; i++)
		memory[i] = (uint8_t)(i + 1);
}

static void close_hosts(void)
{
	for (uint32_t r = 0; r < NHOSTS; r++)
		hosts[r]->driver->close(hosts[r]);
	mmc_sim_regions_free(&regions);
	mmc_network_free(&network);
}

static struct mmc_grant grant(uint32_t reader, uint32_t first, uint32_t nbytes)
{
	struct mmc_grant granted = { .key = UINT32_MAX };

	CHECK_EQ(hosts[0]->driver->grant_read(hosts[0], reader, NULL,
					      memory + first, nbytes, &granted),
		 0);
	return granted;
}

static struct mmc_stretch stretch_of(const struct mmc_grant *granted,
				     uint32_t offset, uint32_t nbytes)
{
	return (struct mmc_stretch){
		.address = granted->address + offset,
		.key = granted->key,
		.nbytes = nbytes,
	};
}

static void begin(uint32_t reader, struct mmc_stretch stretch)
{
	CHECK_EQ(hosts[reader]->driver->read(hosts[reader], 0, &stretch, 1, 7),
		 0);
}

/* Moves time on to the next step of a read. */
static bool step(void)
{
	struct mmc_heap_item event;

	if (!mmc_network_next(&network, &event))
		return false;
	CHECK_EQ(event.kind, TIMER_READ);
	mmc_sim_endpoint_step_reads(
		(struct mmc_sim_endpoint *)hosts[event.target]);
	return true;
}

/* Returns how many bytes the reader gets; reads break no connection. */
static uint32_t end(uint32_t reader, uint8_t *bytes)
{
	struct mmc_event events[4];

	while (step())
		;
	CHECK_EQ(hosts[reader]->driver->poll(hosts[reader], events, 4), 1);
	CHECK_EQ(events[0].kind, MMC_EVENT_READ);
	CHECK_EQ(events[0].cookie, 7);
	CHECK_EQ(events[0].source, 0);
	if (bytes != NULL)
		memcpy(bytes, events[0].body, events[0].nbytes);
	return events[0].nbytes;
}

/* Only the host to which memory was granted can read there, and only within it. */
static void who_may_read_and_where(void)
{
	struct mmc_grant granted;
	uint8_t bytes[NBYTES];

	open_hosts();
	granted = grant(1, 50, 100);
	begin(1, stretch_of(&granted, 10, 90));
	CHECK_EQ(end(1, bytes), 90);
	CHECK_BYTES(bytes, memory + 60, 90);
	begin(2, stretch_of(&granted, 10, 90));
	CHECK_EQ(end(2, NULL), 0);
	begin(1, stretch_of(&granted, 10, 91));
	CHECK_EQ(end(1, NULL), 0);
	begin(1, stretch_of(&granted, 0, 100));
	CHECK_EQ(end(1, NULL), 100);
	hosts[0]->driver->revoke_read(hosts[0], &granted);
	close_hosts();
}

/* After a revocation reads fail, even those that were on their way. */
static void until_it_is_revoked(void)
{
	struct mmc_grant granted;
	struct mmc_grant other;

	open_hosts();
	granted = grant(1, 0, NBYTES);
	other = grant(1, 0, NBYTES);
	begin(1, stretch_of(&granted, 0, NBYTES));
	hosts[0]->driver->revoke_read(hosts[0], &granted);
	CHECK_EQ(end(1, NULL), 0);
	begin(1, stretch_of(&granted, 0, 1));
	CHECK_EQ(end(1, NULL), 0);
	/* Another grant of the same memory is none of that one's business. */
	begin(1, stretch_of(&other, 0, NBYTES));
	CHECK_EQ(end(1, NULL), NBYTES);
	CHECK(mmc_sim_regions_are_granted(&regions, memory + 199, 5));
	CHECK(!mmc_sim_regions_are_granted(&regions, memory + 200, 5));
	hosts[0]->driver->revoke_read(hosts[0], &other);
	CHECK(!mmc_sim_regions_are_granted(&regions, memory, NBYTES));
	close_hosts();
}

/* A grant of memory that is not registered counts as a registration, others do not. */
static void what_counts_as_registered(void)
{
	struct mmc_region region;
	struct mmc_region more;
	struct mmc_grant first;
	struct mmc_grant second;

	open_hosts();
	first = grant(1, 0, 10);
	CHECK_EQ(hosts[0]->driver->register_memory(hosts[0], memory, NBYTES,
						   &region),
		 0);
	CHECK_EQ(hosts[0]->driver->register_memory(hosts[0], memory, NBYTES,
						   &more),
		 -MMC_ENOMEM);
	CHECK_EQ(hosts[0]->driver->grant_read(hosts[0], 1, NULL, memory, 10,
					      &second),
		 -MMC_ENOMEM);
	CHECK_EQ(hosts[0]->driver->grant_read(hosts[0], 1, &region, memory, 10,
					      &second),
		 0);
	hosts[0]->driver->revoke_read(hosts[0], &first);
	hosts[0]->driver->revoke_read(hosts[0], &second);
	CHECK_EQ(hosts[0]->driver->register_memory(hosts[0], memory, NBYTES,
						   &more),
		 0);
	hosts[0]->driver->deregister_memory(hosts[0], &region);
	hosts[0]->driver->deregister_memory(hosts[0], &more);
	close_hosts();
}

CHECK_MAIN(CHECK_TEST(who_may_read_and_where), CHECK_TEST(until_it_is_revoked),
	   CHECK_TEST(what_counts_as_registered))
