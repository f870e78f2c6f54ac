/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/error.h"

/* Reads the address of `rank`, and checks that it can be that rank's. */
static int read_address(const struct mmc_verbs *verbs, uint32_t rank,
			const uint8_t *bytes, struct mmc_verbs_address *address)
{
	uint8_t own[MMC_ADDRESS_BYTES_MAX];

	if (mmc_verbs_address_decode(address, bytes, verbs->own.nsubgroups,
				     verbs->own.nconnections) < 0 ||
	    address->rank != rank) {
		mmc_error_set(
			"rank %u did not publish a verbs address of its own",
			rank);
		return -MMC_EINVAL;
	}
	if (address->ethernet != verbs->own.ethernet) {
		mmc_error_set("rank %u is on %s, but this rank is on %s", rank,
			      address->ethernet ? "Ethernet" : "InfiniBand",
			      verbs->own.ethernet ? "Ethernet" : "InfiniBand");
		return -MMC_EINVAL;
	}
	mmc_verbs_address_encode(own, &verbs->own);
	if (rank == verbs->own.rank &&
	    memcmp(own, bytes, verbs->endpoint.address_bytes) != 0) {
		mmc_error_set("the address given for rank %u is not its own",
			      rank);
		return -MMC_EINVAL;
	}
	return 0;
}

/* Adds the rank's queue pairs to `peers`, so that their datagrams are recognized. */
static int add_queues(struct mmc_verbs *verbs,
		      const struct mmc_verbs_address *address)
{
	int rv = mmc_verbs_peers_add(&verbs->peers, address->gid,
				     address->unicast_qpn, address->rank);

	for (uint32_t i = 0; i < address->nsubgroups && rv == 0; i++)
		rv = mmc_verbs_peers_add(&verbs->peers, address->gid,
					 address->group_qpns[i], address->rank);
	if (rv < 0)
		mmc_error_set("rank %u has the same address as another rank",
			      address->rank);
	return rv;
}

bool mmc_verbs_find_ah(struct mmc_verbs *verbs, struct mmc_verbs_rank *rank)
{
	struct mmc_endpoint *endpoint = &verbs->endpoint;
	struct ibv_ah_attr ah_attr;

	if (rank->ah != NULL)
		return true;
	/* A failed attempt may ask the network for a second, so attempts are rare. */
	if (endpoint->driver->now_ns(endpoint) < rank->retry_ns)
		return false;
	ah_attr = mmc_verbs_ah_attr(&verbs->port, rank->gid, rank->lid,
				    MMC_VERBS_HOPS_MAX);
	rank->ah = mmc_ibv.create_ah(verbs->port.pd, &ah_attr);
	rank->retry_ns =
		endpoint->driver->now_ns(endpoint) + MMC_VERBS_RETRY_NS;
	return rank->ah != NULL;
}

/* Adopts the address of a rank, and connects to it if it is a partner. */
static int add_rank(struct mmc_verbs *verbs, uint32_t rank,
		    const uint8_t *bytes)
{
	struct mmc_verbs_rank *added = &verbs->ranks[rank];
	struct mmc_verbs_address address;
	int rv = read_address(verbs, rank, bytes, &address);

	if (rv == 0)
		rv = add_queues(verbs, &address);
	if (rv < 0)
		return rv;
	memcpy(added->gid, address.gid, sizeof(added->gid));
	added->lid = address.lid;
	added->unicast_qpn = address.unicast_qpn;
	added->data_qpn = address.group_qpns[0];
	for (uint32_t i = 0; i < verbs->connections.count && rv == 0; i++) {
		struct mmc_verbs_connection *connection =
			&verbs->connections.items[i];
		uint32_t at;

		if (connection->peer != rank)
			continue;
		at = mmc_verbs_partner_index(rank, verbs->port.options.nranks,
					     verbs->own.rank);
		added->connection = connection;
		rv = mmc_verbs_connection_start(connection, &verbs->port,
						&address,
						&address.connections[at]);
		/*
		 * Make the address handle now. Datagrams need it when the connection
		 * has broken, and by then the network may no longer resolve the
		 * address.
		 */
		mmc_verbs_find_ah(verbs, added);
	}
	return rv;
}

/*
 * Attaches each subgroup's queue pair to its group, to receive from it, and makes the
 * address handle to send to it.
 */
static int attach(struct mmc_verbs *verbs)
{
	int error = 0;

	for (uint32_t i = 0; i < verbs->groups.count; i++) {
		struct mmc_verbs_group *group = &verbs->groups.items[i];

		error = mmc_ibv.attach_mcast(verbs->queues[i].qp, &group->gid,
					     group->lid);
		if (error != 0)
			return mmc_verbs_explain(&verbs->port,
						 "attach to a group", error);
		group->attached_gid = group->gid;
		group->attached_lid = group->lid;
		group->renewed = false;
		verbs->nattached++;
		verbs->group_ahs[i] =
			mmc_ibv.create_ah(verbs->port.pd, &group->ah_attr);
		if (verbs->group_ahs[i] == NULL)
			return mmc_verbs_explain(&verbs->port,
						 "create an address handle",
						 errno);
	}
	return 0;
}

int mmc_verbs_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	int rv = 0;

	for (uint32_t rank = 0; rank < verbs->port.options.nranks && rv == 0;
	     rank++)
		rv = add_rank(verbs, rank,
			      addresses +
				      (size_t)rank * endpoint->address_bytes);
	if (verbs->port.options.pair != 0)
		return rv;
	if (rv == 0)
		rv = mmc_verbs_groups_join(&verbs->groups);
	return rv == 0 ? attach(verbs) : rv;
}
