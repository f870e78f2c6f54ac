/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets a thread sleep until something completes, and handles the events of the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "drivers/verbs/endpoint.h"
#include "support/bits.h"
#include "support/error.h"

/* ---- the channels -------------------------------------------------------- */

/* Opens a completion channel whose descriptor does not block; NULL with errno set. */
static struct ibv_comp_channel *open_channel(const struct mmc_verbs_port *port)
{
	struct ibv_comp_channel *channel =
		mmc_ibv.create_comp_channel(port->context);
	int flags;

	if (channel == NULL)
		return NULL;
	flags = fcntl(channel->fd, F_GETFL);
	if (flags >= 0 && fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return channel;
	mmc_ibv.destroy_comp_channel(channel);
	return NULL;
}

int mmc_verbs_watch_init(struct mmc_verbs *verbs)
{
	verbs->control = open_channel(&verbs->port);
	verbs->data = open_channel(&verbs->port);
	if (verbs->control != NULL && verbs->data != NULL)
		return 0;
	return mmc_verbs_explain(&verbs->port, "open a completion channel",
				 errno);
}

void mmc_verbs_watch_destroy(struct mmc_verbs *verbs)
{
	if (verbs->control != NULL)
		mmc_ibv.destroy_comp_channel(verbs->control);
	if (verbs->data != NULL)
		mmc_ibv.destroy_comp_channel(verbs->data);
}

/* Takes all notifications from a channel. Returns whether there was any. */
static bool drain(struct ibv_comp_channel *channel)
{
	struct ibv_cq *queue;
	void *context;
	bool any = false;

	while (mmc_ibv.get_cq_event(channel, &queue, &context) == 0) {
		mmc_ibv.ack_cq_events(queue, 1);
		any = true;
	}
	return any;
}

/*
 * Takes all notifications from both channels. Returns whether there was any. Each queue
 * notifies only once for each request, so both channels must be emptied.
 */
static bool drain_both(struct mmc_verbs *verbs)
{
	bool control = drain(verbs->control);

	return drain(verbs->data) || control;
}

/* Asks all completion queues to notify their channel at the next completion. */
static void request_notifications(struct mmc_verbs *verbs)
{
	ibv_req_notify_cq(verbs->unicast.received.queue, 0);
	for (uint32_t i = 0; i < verbs->port.options.subgroups; i++)
		ibv_req_notify_cq(verbs->queues[i].received.queue, 0);
	if (verbs->connections.count > 0) {
		ibv_req_notify_cq(verbs->connections.received.queue, 0);
		ibv_req_notify_cq(verbs->connections.send_cq, 0);
	}
}

/* Returns whether a reconnection or a recovery is due now. */
static bool is_due(const struct mmc_verbs *verbs)
{
	uint64_t due_ns = mmc_min_u64(mmc_verbs_reconnect_deadline_ns(verbs),
				      mmc_verbs_recover_deadline_ns(verbs));

	return due_ns != MMC_NEVER_NS && mmc_verbs_clock_ns() >= due_ns;
}

/* Returns whether a poll would find something. */
static bool has_events(struct mmc_verbs *verbs)
{
	struct mmc_verbs_connections *connections = &verbs->connections;

	if (connections->count > 0) {
		mmc_verbs_reads_reap(&verbs->reads, connections);
		if (mmc_verbs_completions_peek(&connections->received))
			return true;
	}
	for (uint32_t i = 0; i < verbs->port.options.subgroups; i++)
		if (mmc_verbs_completions_peek(&verbs->queues[i].received))
			return true;
	return mmc_verbs_completions_peek(&verbs->unicast.received) ||
	       is_due(verbs) || verbs->reads.nended > 0 ||
	       connections->nbroken > 0 || connections->nvouched > 0 ||
	       (verbs->failure[0] != '\0' && !verbs->told);
}

/*
 * A completion queue notifies once for each request, and only of what completes after
 * the request. So this asks again after each notification, and then looks for what has
 * completed before.
 */
bool mmc_verbs_arm(struct mmc_endpoint *endpoint)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);

	mmc_verbs_watch_device(verbs);
	if (drain_both(verbs) || !verbs->armed)
		request_notifications(verbs);
	verbs->armed = true;
	return has_events(verbs);
}

unsigned mmc_verbs_fds(struct mmc_endpoint *endpoint, int *fds,
		       unsigned *ncontrol)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(endpoint);

	/*
	 * Threads that wait for control also handle events of the device and of the
	 * fabric, so their descriptors count as control's.
	 */
	fds[0] = verbs->control->fd;
	fds[1] = verbs->port.context->async_fd;
	fds[2] = verbs->data->fd;
	*ncontrol = 2;
	if (verbs->groups.channel == NULL)
		return 3;
	fds[2] = verbs->groups.channel->fd;
	fds[3] = verbs->data->fd;
	*ncontrol = 3;
	return 4;
}

/* ---- the device ---------------------------------------------------------- */

/* Returns whether an event of a port is about this rank's port. */
static bool is_ours(const struct mmc_verbs *verbs,
		    const struct ibv_async_event *event)
{
	return (uint32_t)event->element.port_num ==
	       verbs->port.options.device.port;
}

/*
 * Handles an event of the device. The event that a port goes down is ignored: the port
 * may come up again, and if not, the operations time out.
 */
static void take_device_event(struct mmc_verbs *verbs,
			      const struct ibv_async_event *event)
{
	const char *what = mmc_ibv.event_type_str(event->event_type);
	struct mmc_verbs_connection *connection;

	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		connection = mmc_verbs_connection_find(
			&verbs->connections, event->element.qp->qp_num);
		if (connection != NULL)
			mmc_verbs_reads_break(
				&verbs->reads, &verbs->connections, connection,
				event->event_type == IBV_EVENT_QP_ACCESS_ERR
					? IBV_WC_LOC_ACCESS_ERR
					: IBV_WC_GENERAL_ERR);
		else
			mmc_verbs_fail(verbs, "datagram queue pair %#x: %s",
				       event->element.qp->qp_num, what);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		if (is_ours(verbs, event))
			mmc_verbs_recover_soon(verbs, false);
		break;
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		if (is_ours(verbs, event))
			mmc_verbs_recover_soon(verbs, true);
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		mmc_verbs_fail(verbs, "%s", what);
		break;
	default:
		break;
	}
}

void mmc_verbs_watch_device(struct mmc_verbs *verbs)
{
	struct ibv_async_event event;

	while (mmc_ibv.get_async_event(verbs->port.context, &event) == 0) {
		take_device_event(verbs, &event);
		mmc_ibv.ack_async_event(&event);
	}
	mmc_verbs_recover_listen(verbs);
}
