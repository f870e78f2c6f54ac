/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that put payloads right in their places: see drivers/cover.h. */
#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/bits.h"

/* A queue is flushed when for this long none of its covering receives has completed. */
#define LIFT_NS (100 * MMC_MS_NS)

uint8_t *mmc_verbs_cover_take(struct mmc_verbs *verbs,
			      const struct mmc_verbs_queue *queue,
			      uint32_t slot, uint32_t source,
			      const uint8_t *head, uint32_t nbytes)
{
	struct mmc_covers *covers = queue->ring.covers;
	uint32_t index = queue->ring.cover_index;
	uint32_t *nplugs = &covers->queues[index].nplugs;

	if (source == verbs->own.rank) {
		if (nbytes > 0)
			covers->loops = true;
		else if (*nplugs > 0)
			--*nplugs;
		nbytes = 0;
	}
	return mmc_covers_complete(covers, index, slot, source, head, nbytes,
				   &verbs->endpoint.evacuated);
}

void mmc_verbs_cover_resume(struct mmc_verbs *verbs)
{
	for (uint32_t i = 0; i < verbs->covers.nqueues; i++)
		mmc_covers_resume(&verbs->covers, i);
}

/*
 * Resets the queue, so that no receive posted before is filled any more. Where the
 * device refuses, places stay covered until the operation has failed.
 */
static int flush(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue)
{
	int rv = mmc_verbs_queue_flush(queue, &verbs->port);

	if (rv < 0)
		mmc_verbs_fail(verbs, "datagram queue pair %#x: cannot reset",
			       queue->qp->qp_num);
	queue->lift_ns = 0;
	return rv;
}

/*
 * Uses up the covering receives of a queue that has stopped predicting: by plugs, or by
 * a flush if these do not help in time.
 */
static void clear(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue)
{
	struct mmc_endpoint *endpoint = &verbs->endpoint;
	struct mmc_cover_queue *covering =
		&verbs->covers.queues[queue->ring.cover_index];
	uint64_t now_ns;

	if (!covering->off || covering->ncovering == 0) {
		queue->lift_ns = 0;
		return;
	}
	now_ns = endpoint->driver->now_ns(endpoint);
	if (queue->lift_ns == 0 || covering->ncovering < queue->ncovering)
		queue->lift_ns = now_ns + LIFT_NS;
	queue->ncovering = covering->ncovering;
	if (now_ns >= queue->lift_ns || verbs->failure[0] != '\0') {
		flush(verbs, queue);
		return;
	}
	covering->nplugs +=
		mmc_verbs_plug(verbs, queue, mmc_covers_plugs(covering));
}

unsigned mmc_verbs_cover_poll(struct mmc_verbs *verbs, struct mmc_event *events,
			      unsigned nmax)
{
	unsigned count = 0;
	uint64_t cookie;

	for (uint32_t i = 0; i < verbs->covers.nqueues; i++)
		clear(verbs, &verbs->queues[i]);
	while (count < nmax && mmc_covers_placed(&verbs->covers, &cookie))
		events[count++] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = cookie,
		};
	return count;
}

int mmc_verbs_place(struct mmc_endpoint *endpoint, void *to, const void *from,
		    size_t nbytes, uint64_t cookie)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);

	if (mmc_covers_defer(&verbs->covers, to, from, nbytes, cookie))
		return -MMC_EAGAIN;
	memcpy(to, from, nbytes);
	return 0;
}

int mmc_verbs_cover(struct mmc_endpoint *endpoint, const struct mmc_cover *plan)
{
	return mmc_covers_begin(&mmc_verbs_of(endpoint)->covers, plan);
}

int mmc_verbs_uncover(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	int rv = 0;

	for (uint32_t i = 0; i < verbs->covers.nqueues; i++)
		if (verbs->covers.queues[i].ncovering > 0 &&
		    flush(verbs, &verbs->queues[i]) < 0)
			rv = -MMC_EIO;
	mmc_covers_end(&verbs->covers, forget);
	return rv;
}

uint64_t mmc_verbs_cover_deadline_ns(struct mmc_endpoint *endpoint)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	uint64_t at_ns = MMC_NEVER_NS;

	for (uint32_t i = 0; i < verbs->covers.nqueues; i++)
		if (verbs->queues[i].lift_ns != 0)
			at_ns = mmc_min_u64(at_ns, verbs->queues[i].lift_ns);
	return at_ns;
}
