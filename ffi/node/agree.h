/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the members of a node fill a piece of the same operation. */
#ifndef MMC_NODE_AGREE_H
#define MMC_NODE_AGREE_H

#include "node/request.h"

/*
 * Returns whether `member` has filled a piece, which is one of the request's. Fails the
 * stream, and returns false, if it filled it for another operation. The caller holds
 * the mutex.
 */
bool mmc_node_has_filled(struct mmc_node_request *request, uint32_t member,
			 uint32_t piece);

#endif
