/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/queue.h"

#include <errno.h>

#include "drivers/verbs/device.h"

/* The most completions that are taken in one go. */
#define COMPLETIONS 16

/* Takes a new or reset queue pair to the state in which it can receive and send. */
static int start(struct mmc_verbs_queue *queue,
		 const struct mmc_verbs_port *port)
{
	const struct mmc_team_options *options = &port->options;
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)options->pkey_index,
		.port_num = (uint8_t)options->device.port,
		.qkey = options->qkey,
	};
	int error;

	error = mmc_ibv.modify_qp(queue->qp, &attributes,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					  IBV_QP_PORT | IBV_QP_QKEY);
	if (error == 0) {
		mmc_verbs_ring_post(&queue->ring);
		attributes.qp_state = IBV_QPS_RTR;
		error = mmc_ibv.modify_qp(queue->qp, &attributes, IBV_QP_STATE);
	}
	if (error == 0) {
		attributes.qp_state = IBV_QPS_RTS;
		error = mmc_ibv.modify_qp(queue->qp, &attributes,
					  IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	if (error == 0)
		return 0;
	return mmc_verbs_explain(port, "start a datagram queue pair", error);
}

/* Creates the queue pair and its completion queues. */
static int create(struct mmc_verbs_queue *queue,
		  const struct mmc_verbs_port *port,
		  struct ibv_comp_channel *channel, uint32_t nreceives)
{
	struct ibv_qp_init_attr attributes = {
		.cap = {
			.max_send_wr = MMC_VERBS_SENDS,
			.max_recv_wr = nreceives,
			.max_send_sge = 1,
			.max_recv_sge = queue->ring.placement != NULL ? 3 : 2,
		},
		.qp_type = IBV_QPT_UD,
	};

	queue->received.queue = mmc_ibv.create_cq(port->context, (int)nreceives,
						  NULL, channel, 0);
	queue->send_cq = mmc_ibv.create_cq(port->context, MMC_VERBS_SENDS, NULL,
					   NULL, 0);
	if (queue->received.queue == NULL || queue->send_cq == NULL)
		return mmc_verbs_explain(port, "create a completion queue",
					 errno);
	attributes.recv_cq = queue->received.queue;
	attributes.send_cq = queue->send_cq;
	queue->qp = mmc_ibv.create_qp(port->pd, &attributes);
	queue->ring.qp = queue->qp;
	if (queue->qp != NULL)
		return 0;
	return mmc_verbs_explain(port, "create a datagram queue pair", errno);
}

/*
 * A slot has room for the longest datagram that the port can receive, since a stranger
 * may send it: on some devices a datagram that does not fit ends the queue pair.
 */
int mmc_verbs_queue_init(struct mmc_verbs_queue *queue,
			 const struct mmc_verbs_port *port,
			 struct ibv_comp_channel *channel, uint32_t nreceives)
{
	uint32_t head_bytes =
		mmc_verbs_head_bytes((enum mmc_checksum)port->options.checksum);
	uint32_t mtu_bytes = mmc_verbs_mtu_bytes(port->mtu);
	int rv = create(queue, port, channel, nreceives);

	if (rv == 0)
		rv = mmc_verbs_ring_init(&queue->ring, port, nreceives,
					 MMC_VERBS_GRH_BYTES + head_bytes,
					 mtu_bytes - head_bytes);
	if (rv == 0)
		rv = mmc_verbs_slots_init(&queue->slots, port, MMC_VERBS_SENDS,
					  mtu_bytes);
	return rv == 0 ? start(queue, port) : rv;
}

void mmc_verbs_queue_destroy(struct mmc_verbs_queue *queue)
{
	if (queue->qp != NULL)
		mmc_ibv.destroy_qp(queue->qp);
	if (queue->send_cq != NULL)
		mmc_ibv.destroy_cq(queue->send_cq);
	if (queue->received.queue != NULL)
		mmc_ibv.destroy_cq(queue->received.queue);
	mmc_verbs_slots_destroy(&queue->slots);
	mmc_verbs_ring_destroy(&queue->ring);
}

bool mmc_verbs_queue_reap(struct mmc_verbs_queue *queue,
			  enum ibv_wc_status *status)
{
	struct ibv_wc found[COMPLETIONS];
	int count;

	do {
		count = ibv_poll_cq(queue->send_cq, COMPLETIONS, found);
		for (int i = 0; i < count; i++) {
			if (found[i].status != IBV_WC_SUCCESS) {
				*status = found[i].status;
				return false;
			}
			mmc_verbs_slots_complete(&queue->slots, found[i].wr_id);
			queue->proven = true;
		}
	} while (count == COMPLETIONS);
	if (count >= 0)
		return true;
	*status = IBV_WC_GENERAL_ERR;
	return false;
}

int mmc_verbs_queue_flush(struct mmc_verbs_queue *queue,
			  const struct mmc_verbs_port *port)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };
	struct mmc_placement *placement = queue->ring.placement;
	struct mmc_verbs_slots *slots = &queue->slots;
	struct ibv_wc found[COMPLETIONS];
	int error = mmc_ibv.modify_qp(queue->qp, &attributes, IBV_QP_STATE);

	if (error != 0)
		return mmc_verbs_explain(port, "reset a datagram queue pair",
					 error);
	queue->received.peeked = false;
	while (ibv_poll_cq(queue->received.queue, COMPLETIONS, found) > 0)
		;
	while (ibv_poll_cq(queue->send_cq, COMPLETIONS, found) > 0)
		;
	slots->nsent = slots->nfilled;
	if (placement != NULL) {
		mmc_placement_clear(
			&placement->queues[queue->ring.placement_queue]);
		placement->queues[queue->ring.placement_queue].nplugs = 0;
	}
	mmc_verbs_ring_take_back(&queue->ring);
	queue->down = false;
	queue->proven = false;
	return start(queue, port);
}
