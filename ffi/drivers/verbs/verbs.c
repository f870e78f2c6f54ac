/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "drivers/verbs/device.h"
#include "drivers/verbs/endpoint.h"
#include "drivers/verbs/grants.h"
#include "support/bits.h"
#include "support/error.h"

/*
 * How many receives all subgroups together have posted. Where memory that can be locked
 * is limited, they fit into 8 MiB, the limit of ordinary users on most systems. Where
 * it is not, they hold a large operation.
 */
#define RECEIVES_LIMITED 1024
#define RECEIVES_UNLIMITED 4096

/* The least number of receives that each subgroup has posted. */
#define RECEIVES_MIN 64

/* How many probes a rank multicasts to each group at open, and also receives itself. */
#define PROBES 2

/* Receives posted for datagrams to this rank alone. */
#define UNICAST_RECEIVES 256

static uint64_t verbs_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return mmc_verbs_clock_ns();
}

/* ---- opening ------------------------------------------------------------- */

static int check_path(const struct mmc_team_options *options)
{
	if (options->join > MMC_JOIN_ATTACH)
		mmc_error_set("join method %u is unknown", options->join);
	else if (options->qkey >> 31 != 0)
		mmc_error_set(
			"Q_Key %#x is privileged; use one below 0x80000000",
			options->qkey);
	else if (options->pkey_index > UINT16_MAX)
		mmc_error_set("P_Key index %u is out of range; use 0 to 65535",
			      options->pkey_index);
	else if (options->service_level > 15)
		mmc_error_set("service level %u is out of range; use 0 to 15",
			      options->service_level);
	else if (options->traffic_class > UINT8_MAX)
		mmc_error_set("traffic class %u is out of range; use 0 to 255",
			      options->traffic_class);
	else if (options->ttl > UINT8_MAX)
		mmc_error_set("TTL %u is out of range; use 0 to 255",
			      options->ttl);
	else
		return 0;
	return -MMC_EINVAL;
}

static int check_options(const struct mmc_team_options *options)
{
	const struct mmc_device *device = &options->device;
	uint32_t last = options->group + options->subgroups - 1;
	uint32_t head_bytes =
		mmc_verbs_head_bytes((enum mmc_checksum)options->checksum);

	if (options->nranks == 0 ||
	    options->nranks > UINT32_C(1) << MMC_ROUNDS_MAX ||
	    options->rank >= options->nranks)
		mmc_error_set("cannot be rank %u of %u ranks", options->rank,
			      options->nranks);
	else if (options->subgroups == 0 ||
		 options->subgroups > MMC_VERBS_SUBGROUPS_MAX)
		mmc_error_set("cannot use %u subgroups; use 1 to %u",
			      options->subgroups, MMC_VERBS_SUBGROUPS_MAX);
	else if (options->group >> 28 != 0xe || last >> 28 != 0xe)
		mmc_error_set(
			"groups %#x to %#x are not IPv4 multicast addresses",
			options->group, last);
	else if (options->chunk_bytes == 0 ||
		 options->chunk_bytes > device->mtu_bytes ||
		 options->chunk_bytes + head_bytes > device->mtu_bytes)
		mmc_error_set("chunks of %u bytes with %u bytes of headers do "
			      "not fit into the MTU of %s, %u bytes",
			      options->chunk_bytes, head_bytes, device->name,
			      device->mtu_bytes);
	else
		return check_path(options);
	return -MMC_EINVAL;
}

static int allocate(struct mmc_verbs *verbs)
{
	const struct mmc_team_options *options = &verbs->port.options;

	verbs->queues = calloc(options->subgroups, sizeof(*verbs->queues));
	verbs->group_ahs =
		calloc(options->subgroups, sizeof(*verbs->group_ahs));
	verbs->ranks = calloc(options->nranks, sizeof(*verbs->ranks));
	if (verbs->queues == NULL || verbs->group_ahs == NULL ||
	    verbs->ranks == NULL ||
	    mmc_verbs_groups_init(&verbs->groups, &verbs->port) < 0)
		return -MMC_ENOMEM;
	return mmc_verbs_peers_init(&verbs->peers,
				    options->nranks * (options->subgroups + 1));
}

/*
 * Chooses how many receives each subgroup's queue posts. Returns 0, or -MMC_EINVAL if
 * the option `receives`, or the device's limit, is too small for the probes.
 */
static int choose_receives(const struct mmc_verbs_port *port,
			   uint32_t *nreceives)
{
	const struct mmc_team_options *options = &port->options;
	uint32_t nranks = mmc_min_u32(options->nranks, MMC_PROBE_RANKS);
	uint32_t least = PROBES * nranks;
	uint32_t most = mmc_min_u32((uint32_t)port->limits.max_qp_wr,
				    (uint32_t)port->limits.max_cqe);
	uint32_t wanted = RECEIVES_LIMITED;
	struct rlimit lockable;

	/* The limit usually does not apply to root. */
	if (geteuid() == 0 || (getrlimit(RLIMIT_MEMLOCK, &lockable) == 0 &&
			       lockable.rlim_cur == RLIM_INFINITY))
		wanted = RECEIVES_UNLIMITED;
	wanted = mmc_max_u32(wanted / options->subgroups, RECEIVES_MIN);
	*nreceives = mmc_min_u32(mmc_max_u32(wanted, least), most);
	if (options->receives != 0)
		*nreceives = options->receives;
	if (*nreceives >= least)
		return 0;
	mmc_error_set("%s: %u receives cannot hold the %u probes of %u ranks; "
		      "raise RECEIVES",
		      options->device.name, *nreceives, least, nranks);
	return -MMC_EINVAL;
}

/* Prepares the receives of the subgroups' queues for direct placement. */
static int open_placement(struct mmc_verbs *verbs, uint32_t nreceives)
{
	const struct mmc_team_options *options = &verbs->port.options;
	uint32_t head_bytes =
		mmc_verbs_head_bytes((enum mmc_checksum)options->checksum);

	for (uint32_t i = 0; i < options->subgroups; i++) {
		verbs->queues[i].ring.placement = &verbs->placement;
		verbs->queues[i].ring.placement_queue = i;
	}
	return mmc_placement_init(&verbs->placement, options->subgroups,
				  nreceives, head_bytes,
				  mmc_verbs_mtu_bytes(verbs->port.mtu));
}

static int open_queues(struct mmc_verbs *verbs, uint32_t nreceives)
{
	const struct mmc_verbs_port *port = &verbs->port;
	int rv = mmc_verbs_watch_init(verbs);

	if (rv == 0 && port->options.zero_copy)
		rv = open_placement(verbs, nreceives);
	if (rv == 0)
		rv = mmc_verbs_connections_init(&verbs->connections, port,
						verbs->control);
	if (rv == 0 && verbs->connections.count > 0)
		rv = mmc_verbs_reads_init(&verbs->reads, port);
	if (rv == 0)
		rv = mmc_verbs_queue_init(&verbs->unicast, port, verbs->control,
					  UNICAST_RECEIVES);
	for (uint32_t i = 0; i < port->options.subgroups && rv == 0; i++)
		rv = mmc_verbs_queue_init(&verbs->queues[i], port, verbs->data,
					  nreceives);
	return rv;
}

static void fill_address(struct mmc_verbs *verbs)
{
	const struct mmc_team_options *options = &verbs->port.options;
	struct mmc_verbs_address *own = &verbs->own;

	own->rank = options->rank;
	memcpy(own->gid, options->device.gid, sizeof(own->gid));
	own->ethernet = options->device.ethernet != 0;
	own->lid = own->ethernet ? 0 : (uint16_t)options->device.lid;
	own->mtu = (uint8_t)verbs->port.mtu;
	own->reads_max = verbs->port.reads_max;
	own->unicast_qpn = verbs->unicast.qp->qp_num;
	own->nsubgroups = options->subgroups;
	own->nconnections = verbs->connections.count;
	for (uint32_t i = 0; i < own->nsubgroups; i++)
		own->group_qpns[i] = verbs->queues[i].qp->qp_num;
	for (uint32_t i = 0; i < own->nconnections; i++)
		own->connections[i] = (struct mmc_verbs_end){
			.qpn = verbs->connections.items[i].qp->qp_num,
			.psn = verbs->connections.items[i].psn,
		};
}

static void verbs_close(struct mmc_endpoint *endpoint)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);

	for (uint32_t i = 0; i < verbs->nattached; i++) {
		struct mmc_verbs_group *group = &verbs->groups.items[i];

		mmc_ibv.detach_mcast(verbs->queues[i].qp, &group->attached_gid,
				     group->attached_lid);
	}
	mmc_verbs_connections_destroy(&verbs->connections);
	mmc_verbs_queue_destroy(&verbs->unicast);
	for (uint32_t i = 0;
	     verbs->queues != NULL && i < verbs->port.options.subgroups; i++)
		mmc_verbs_queue_destroy(&verbs->queues[i]);
	mmc_placement_destroy(&verbs->placement);
	mmc_verbs_reads_destroy(&verbs->reads);
	mmc_verbs_watch_destroy(verbs);
	for (uint32_t i = 0;
	     verbs->group_ahs != NULL && i < verbs->port.options.subgroups; i++)
		if (verbs->group_ahs[i] != NULL)
			mmc_ibv.destroy_ah(verbs->group_ahs[i]);
	for (uint32_t i = 0;
	     verbs->ranks != NULL && i < verbs->port.options.nranks; i++)
		if (verbs->ranks[i].ah != NULL)
			mmc_ibv.destroy_ah(verbs->ranks[i].ah);
	mmc_verbs_groups_destroy(&verbs->groups);
	mmc_verbs_port_close(&verbs->port);
	mmc_verbs_peers_destroy(&verbs->peers);
	free(verbs->ranks);
	free(verbs->group_ahs);
	free(verbs->queues);
	free(verbs);
}

static void verbs_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	mmc_verbs_address_encode(address, &mmc_verbs_of(endpoint)->own);
}

/* ---- reads and deadlines ------------------------------------------------- */

static int verbs_read(struct mmc_endpoint *endpoint, uint32_t peer,
		      const struct mmc_stretch *stretches, unsigned nstretches,
		      uint64_t cookie)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	struct mmc_verbs_connection *connection = verbs->ranks[peer].connection;

	if (connection == NULL || connection->link != MMC_VERBS_LINK_UP ||
	    connection->reads_max == 0)
		return -MMC_ENODEV;
	return mmc_verbs_reads_start(&verbs->reads, &verbs->connections,
				     connection, stretches, nstretches, cookie);
}

static uint64_t verbs_deadline_ns(struct mmc_endpoint *endpoint)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(endpoint);

	return mmc_min_u64(mmc_verbs_placement_deadline_ns(endpoint),
			   mmc_min_u64(mmc_verbs_reconnect_deadline_ns(verbs),
				       mmc_verbs_recover_deadline_ns(verbs)));
}

/* ---- the driver ---------------------------------------------------------- */

static const struct mmc_driver driver = {
	.name = "verbs",
	.now_ns = verbs_now_ns,
	.address = verbs_address,
	.connect = mmc_verbs_connect,
	.poll = mmc_verbs_poll,
	.send = mmc_verbs_send,
	.place = mmc_verbs_place,
	.begin_placement = mmc_verbs_begin_placement,
	.end_placement = mmc_verbs_end_placement,
	.register_memory = mmc_verbs_register_memory,
	.deregister_memory = mmc_verbs_deregister_memory,
	.grant_read = mmc_verbs_grant_read,
	.revoke_read = mmc_verbs_revoke_read,
	.read = verbs_read,
	.inquire = mmc_verbs_inquire,
	.fds = mmc_verbs_fds,
	.arm = mmc_verbs_arm,
	.deadline_ns = verbs_deadline_ns,
	.close = verbs_close,
};

/*
 * Returns how many bytes, in full chunks, seven eighths of the receives of all
 * subgroups hold. With zero-copy receive, counts those of one subgroup only, since a
 * rank then sends all its chunks to one subgroup.
 */
static uint32_t buffer_bytes_of(const struct mmc_team_options *options,
				uint32_t nreceives)
{
	uint32_t nqueues = options->zero_copy ? 1 : options->subgroups;
	uint64_t nchunks = (uint64_t)(nreceives - nreceives / 8) * nqueues;
	uint64_t most = UINT32_MAX / options->chunk_bytes;

	return (uint32_t)(mmc_min_u64(nchunks, most) * options->chunk_bytes);
}

int mmc_verbs_open(const struct mmc_team_options *options,
		   uint32_t *buffer_bytes, struct mmc_endpoint **endpoint)
{
	int rv = check_options(options);
	uint32_t nreceives = 0;
	struct mmc_verbs *verbs;

	if (rv < 0)
		return rv;
	verbs = calloc(1, sizeof(*verbs));
	if (verbs == NULL)
		return -MMC_ENOMEM;
	verbs->driver = driver;
	verbs->recover_ns = MMC_NEVER_NS;
	if (!options->zero_copy) {
		verbs->driver.place = NULL;
		verbs->driver.begin_placement = NULL;
		verbs->driver.end_placement = NULL;
	}
	verbs->endpoint.driver = &verbs->driver;
	rv = mmc_verbs_port_open(&verbs->port, options);
	if (rv == 0)
		rv = allocate(verbs);
	if (rv == 0)
		rv = choose_receives(&verbs->port, &nreceives);
	if (rv == 0)
		rv = open_queues(verbs, nreceives);
	if (rv < 0) {
		verbs_close(&verbs->endpoint);
		return rv;
	}
	fill_address(verbs);
	verbs->endpoint.address_bytes = mmc_verbs_address_bytes(
		verbs->own.nsubgroups, verbs->own.nconnections);
	verbs->endpoint.read_bytes_max = MMC_VERBS_READ_BYTES_MAX;
	verbs->endpoint.control_is_reliable = true;
	verbs->endpoint.timeout_ns = options->timeout_ns;
	/* Half of the slots, so that one batch is filled in while another leaves. */
	verbs->endpoint.batch_datagrams = MMC_VERBS_SENDS / 2;
	*buffer_bytes = buffer_bytes_of(options, nreceives);
	*endpoint = &verbs->endpoint;
	return 0;
}
