/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what other ranks say of operations that have not started here. */
#ifndef MMC_CORE_OPERATION_EARLY_H
#define MMC_CORE_OPERATION_EARLY_H

#include "core/operation/epochs.h"

/* Keeps what `source` says of an epoch that is to start. */
void mmc_epochs_park(struct mmc_epochs *epochs, uint32_t source, uint32_t epoch,
		     const struct mmc_message *message);

/* Hands a new operation what others have said of it already. */
void mmc_epochs_hand_over(struct mmc_epochs *epochs, struct mmc_op *op,
			  uint64_t now_ns);

#endif
