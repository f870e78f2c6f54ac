/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks a partner's adapter whether the partner's process exists. The inquiry is a read
 * of no bytes, which needs no key (IBTA C9-88) and no posted receive. The adapter
 * answers it without the process, but only as long as the process's queue pair exists.
 */
#include <string.h>

#include "drivers/verbs/endpoint.h"

/*
 * A request that the adapter does not answer fails within this time: after 7 attempts,
 * of at most 4 * 134 ms each (IBTA 9.7.6.1.3). If a request is older and has not
 * failed, the adapter answers, but makes an earlier message wait for a receive to be
 * posted: so the process exists.
 */
#define UNANSWERED_NS_MAX (4 * MMC_S_NS)

/* Posts an inquiry. Returns 0 or an errno value. */
static int post(const struct mmc_verbs_connection *connection)
{
	struct ibv_send_wr request = {
		.wr_id = MMC_VERBS_ID_INQUIRY,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *refused;

	return ibv_post_send(connection->qp, &request, &refused);
}

void mmc_verbs_inquire(struct mmc_endpoint *endpoint, uint32_t peer)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	struct mmc_verbs_connection *connection = verbs->ranks[peer].connection;
	uint64_t now_ns = endpoint->driver->now_ns(endpoint);

	if (connection == NULL || connection->reads_max == 0)
		return;
	mmc_verbs_reads_reap(&verbs->reads, &verbs->connections);
	if (connection->link != MMC_VERBS_LINK_UP)
		return;
	connection->silent = true;
	if (!connection->inquiring) {
		connection->inquiring = post(connection) == 0;
		connection->inquired_ns = now_ns;
	} else if (now_ns - connection->inquired_ns >= UNANSWERED_NS_MAX) {
		mmc_verbs_connection_vouch(&verbs->connections, connection);
	}
}

void mmc_verbs_inquiry_start(struct mmc_verbs_connection *connection)
{
	if (connection->reads_max == 0)
		connection->proven = true;
	else
		connection->inquiring = post(connection) == 0;
	connection->inquired_ns = mmc_verbs_clock_ns();
}

bool mmc_verbs_inquiries_take(struct mmc_verbs_connections *connections,
			      struct mmc_event *event)
{
	struct mmc_verbs_connection *connection = connections->items;

	if (connections->nvouched == 0)
		return false;
	while (!connection->vouched)
		connection++;
	connection->vouched = false;
	connections->nvouched--;
	*event = (struct mmc_event){
		.kind = MMC_EVENT_ALIVE,
		.source = connection->peer,
	};
	return true;
}
