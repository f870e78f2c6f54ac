/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks an endpoint as failed, and takes down queues, which a recovery may start again.
 */
#include <stdarg.h>
#include <stdio.h>

#include "drivers/verbs/endpoint.h"
#include "drivers/verbs/status.h"
#include "support/bits.h"

void mmc_verbs_fail(struct mmc_verbs *verbs, const char *format, ...)
{
	va_list arguments;
	int used;

	if (verbs->failure[0] != '\0')
		return;
	used = snprintf(verbs->failure, sizeof(verbs->failure),
			"%s: ", verbs->port.options.device.name);
	va_start(arguments, format);
	vsnprintf(verbs->failure + used, sizeof(verbs->failure) - (size_t)used,
		  format, arguments);
	va_end(arguments);
}

void mmc_verbs_fail_queue(struct mmc_verbs *verbs,
			  const struct mmc_verbs_queue *queue)
{
	mmc_verbs_fail(verbs, "datagram queue pair %#x: %s", queue->qp->qp_num,
		       mmc_ibv.wc_status_str(queue->status));
}

void mmc_verbs_break_queue(struct mmc_verbs *verbs,
			   struct mmc_verbs_queue *queue,
			   enum ibv_wc_status status)
{
	uint64_t now_ns = mmc_verbs_clock_ns();

	if (queue->down)
		return;
	queue->status = status;
	if (!mmc_verbs_is_transient(status) ||
	    verbs->port.options.timeout_ns == 0) {
		mmc_verbs_fail_queue(verbs, queue);
		return;
	}
	queue->down = true;
	if (queue->proven || queue->down_ns == 0)
		queue->down_ns = now_ns;
	verbs->recover_ns = mmc_min_u64(verbs->recover_ns, now_ns);
}
