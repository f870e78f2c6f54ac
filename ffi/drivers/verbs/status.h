/* SPDX-License-Identifier: BSD-3-Clause */
/* What the status of a request that has failed says of the cause. */
#ifndef MMC_DRIVERS_VERBS_STATUS_H
#define MMC_DRIVERS_VERBS_STATUS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * Returns whether `status` says that the peer was silent: its adapter did not answer,
 * or answered only that the peer had no receive posted.
 */
bool mmc_verbs_is_silence(enum ibv_wc_status status);

/*
 * Returns whether `status` may be due to a port that is down, which may come up again.
 * On Soft-RoCE all queue pairs then enter the error state, and the only sign of that is
 * that requests end as flushed.
 */
bool mmc_verbs_is_transient(enum ibv_wc_status status);

/*
 * Returns whether `status` says that a right to memory was missing: the peer's to this
 * rank's memory, or this rank's to the peer's. It may just have ended, and the
 * connection is sound.
 */
bool mmc_verbs_lacks_right(enum ibv_wc_status status);

#endif
