/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/reads.h"

#include "drivers/verbs/windows.h"
#include "support/assert.h"

/* The most completions that are taken in one go. */
#define COMPLETIONS 16

/* Marks the id of a request as a read's; the rest of it is the index of the read. */
#define ID_READ (UINT64_C(1) << 63)

int mmc_verbs_reads_init(struct mmc_verbs_reads *reads,
			 const struct mmc_verbs_port *port)
{
	return mmc_verbs_memory_init(&reads->memory, port,
				     (size_t)MMC_VERBS_NREADS *
					     MMC_VERBS_READ_BYTES_MAX);
}

void mmc_verbs_reads_destroy(struct mmc_verbs_reads *reads)
{
	mmc_verbs_memory_destroy(&reads->memory);
}

static uint8_t *memory_of(const struct mmc_verbs_reads *reads,
			  const struct mmc_verbs_read *read)
{
	return reads->memory.bytes +
	       (size_t)(read - reads->items) * MMC_VERBS_READ_BYTES_MAX;
}

/* ---- starting ------------------------------------------------------------ */

static struct mmc_verbs_read *find_free(struct mmc_verbs_reads *reads)
{
	for (unsigned i = 0; i < MMC_VERBS_NREADS; i++)
		if (reads->items[i].state == MMC_VERBS_READ_FREE)
			return &reads->items[i];
	return NULL;
}

/*
 * Posts one request for each stretch of a read. A device carries out the reads of a
 * queue pair in their order, even if it has to repeat some; IBTA requires no fence
 * between two reads for that, but one is set to be sure. Only the last stretch is
 * signalled: once it has completed, all have. Returns 0 or an errno value.
 */
static int post(const struct mmc_verbs_reads *reads,
		const struct mmc_verbs_read *read,
		const struct mmc_stretch *stretches)
{
	struct ibv_send_wr requests[MMC_STRETCHES_MAX];
	struct ibv_sge places[MMC_STRETCHES_MAX];
	uint8_t *to = memory_of(reads, read);
	struct ibv_send_wr *refused;

	for (uint32_t i = 0; i < read->nstretches; i++) {
		bool last = i + 1 == read->nstretches;

		places[i] = (struct ibv_sge){
			.addr = (uintptr_t)to,
			.length = stretches[i].nbytes,
			.lkey = reads->memory.region->lkey,
		};
		requests[i] = (struct ibv_send_wr){
			.wr_id = ID_READ | (uint64_t)(read - reads->items),
			.next = last ? NULL : &requests[i + 1],
			.sg_list = &places[i],
			.num_sge = stretches[i].nbytes > 0,
			.opcode = IBV_WR_RDMA_READ,
			.send_flags = (last ? IBV_SEND_SIGNALED : 0) |
				      (i > 0 ? IBV_SEND_FENCE : 0),
			.wr.rdma = {
				.remote_addr = stretches[i].address,
				.rkey = stretches[i].key,
			},
		};
		to += stretches[i].nbytes;
	}
	return ibv_post_send(read->connection->qp, requests, &refused);
}

int mmc_verbs_reads_start(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections,
			  struct mmc_verbs_connection *connection,
			  const struct mmc_stretch *stretches,
			  unsigned nstretches, uint64_t cookie)
{
	struct mmc_verbs_read *read = find_free(reads);
	uint32_t nbytes = 0;

	MMC_ASSERT(nstretches > 0 && nstretches <= MMC_STRETCHES_MAX);
	/* More reads than the peer serves at a time would hold up control messages. */
	if (read == NULL ||
	    (connection->nreads > 0 &&
	     connection->nreads + nstretches > connection->reads_max))
		return -MMC_EAGAIN;
	for (unsigned i = 0; i < nstretches; i++) {
		MMC_ASSERT(stretches[i].nbytes <=
			   MMC_VERBS_READ_BYTES_MAX - nbytes);
		nbytes += stretches[i].nbytes;
	}
	*read = (struct mmc_verbs_read){
		.state = MMC_VERBS_READ_UNDER_WAY,
		.connection = connection,
		.cookie = cookie,
		.nbytes = nbytes,
		.nstretches = nstretches,
	};
	connection->nreads += nstretches;
	/* Some stretches may have been posted, so the read fails like any other. */
	if (post(reads, read, stretches) != 0)
		mmc_verbs_reads_break(reads, connections, connection,
				      IBV_WC_GENERAL_ERR);
	return 0;
}

/* ---- ending -------------------------------------------------------------- */

void mmc_verbs_reads_break(struct mmc_verbs_reads *reads,
			   struct mmc_verbs_connections *connections,
			   struct mmc_verbs_connection *connection,
			   enum ibv_wc_status status)
{
	mmc_verbs_connection_on_error(connections, connection, status);
	for (unsigned i = 0; i < MMC_VERBS_NREADS; i++) {
		struct mmc_verbs_read *read = &reads->items[i];

		if (read->state != MMC_VERBS_READ_UNDER_WAY ||
		    read->connection != connection)
			continue;
		read->state = MMC_VERBS_READ_FAILED;
		read->reset = connection->link == MMC_VERBS_LINK_DOWN;
		reads->nended++;
	}
}

/* Handles the successful end of the request with this id. */
static void finish(struct mmc_verbs_reads *reads,
		   struct mmc_verbs_connections *connections,
		   struct mmc_verbs_connection *connection, uint64_t id)
{
	struct mmc_verbs_read *read;

	connection->proven = true;
	if (id == MMC_VERBS_ID_INQUIRY) {
		mmc_verbs_inquiry_ended(connections, connection);
		return;
	}
	if (id == MMC_VERBS_ID_BIND) {
		mmc_verbs_window_bound(connection);
		return;
	}
	if (!(id & ID_READ)) {
		mmc_verbs_slots_complete(&connection->slots, id);
		return;
	}
	read = &reads->items[id & ~ID_READ];
	if (read->state != MMC_VERBS_READ_UNDER_WAY)
		return;
	connection->nreads -= read->nstretches;
	read->state = MMC_VERBS_READ_DONE;
	reads->nended++;
}

bool mmc_verbs_reads_reap(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections)
{
	struct ibv_wc found[COMPLETIONS];
	bool any = false;
	int count;

	if (connections->count == 0)
		return false;
	do {
		count = ibv_poll_cq(connections->send_cq, COMPLETIONS, found);
		for (int i = 0; i < count; i++) {
			struct mmc_verbs_connection *connection =
				mmc_verbs_connection_find(connections,
							  found[i].qp_num);

			MMC_ASSERT(connection != NULL);
			/* This completion is from before the reset. */
			if (connection->link == MMC_VERBS_LINK_DOWN)
				continue;
			if (found[i].status == IBV_WC_SUCCESS)
				finish(reads, connections, connection,
				       found[i].wr_id);
			else
				mmc_verbs_reads_break(reads, connections,
						      connection,
						      found[i].status);
		}
		any |= count > 0;
	} while (count == COMPLETIONS);
	return any;
}

/*
 * Returns the next state of a failed read that was reported. If its connection was
 * reset, nothing uses the read's memory any more.
 */
static enum mmc_verbs_read_state
state_of_failed(const struct mmc_verbs_read *read)
{
	return read->reset ? MMC_VERBS_READ_FREE : MMC_VERBS_READ_LOST;
}

bool mmc_verbs_reads_take(struct mmc_verbs_reads *reads,
			  struct mmc_event *event)
{
	struct mmc_verbs_read *read = reads->items;
	bool done;

	if (reads->nended == 0)
		return false;
	while (read->state != MMC_VERBS_READ_DONE &&
	       read->state != MMC_VERBS_READ_FAILED)
		read++;
	done = read->state == MMC_VERBS_READ_DONE;
	*event = (struct mmc_event){
		.kind = MMC_EVENT_READ,
		.body = done ? memory_of(reads, read) : NULL,
		.nbytes = done ? read->nbytes : 0,
		.source = read->connection->peer,
		.cookie = read->cookie,
	};
	read->state = done ? MMC_VERBS_READ_LENT : state_of_failed(read);
	reads->nended--;
	reads->nlent += done;
	return true;
}

void mmc_verbs_reads_reuse(struct mmc_verbs_reads *reads)
{
	for (unsigned i = 0; i < MMC_VERBS_NREADS && reads->nlent > 0; i++) {
		if (reads->items[i].state != MMC_VERBS_READ_LENT)
			continue;
		reads->items[i].state = MMC_VERBS_READ_FREE;
		reads->nlent--;
	}
}
