/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/early.h"

static void keep_advert(struct mmc_early *early,
			const struct mmc_message *message)
{
	if (message->kind != MMC_MESSAGE_ADVERT)
		return;
	early->advert = message->advert;
	early->advertised = true;
}

/* Returns what is kept of `source` about `epoch`, or NULL. */
static struct mmc_early *find_early(struct mmc_epochs *epochs, uint32_t source,
				    uint32_t epoch)
{
	for (uint32_t i = 0; i < epochs->nearly; i++)
		if (epochs->early[i].epoch == epoch &&
		    epochs->early[i].source == source)
			return &epochs->early[i];
	return NULL;
}

void mmc_epochs_park(struct mmc_epochs *epochs, uint32_t source, uint32_t epoch,
		     const struct mmc_message *message)
{
	struct mmc_early *early = find_early(epochs, source, epoch);

	if (early != NULL) {
		mmc_record_merge(&early->record, &message->record);
		keep_advert(early, message);
		return;
	}
	if (epochs->nearly == MMC_EPOCHS_EARLY_MAX) {
		mmc_count(epochs->counters, MMC_COUNT_RX_UNPARKED_DATAGRAMS, 1);
		return;
	}
	mmc_count(epochs->counters, MMC_COUNT_RX_PARKED_DATAGRAMS, 1);
	early = &epochs->early[epochs->nearly++];
	*early = (struct mmc_early){
		.epoch = epoch,
		.source = source,
		.record = message->record,
	};
	keep_advert(early, message);
}

void mmc_epochs_hand_over(struct mmc_epochs *epochs, struct mmc_op *op,
			  uint64_t now_ns)
{
	struct mmc_message message;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < epochs->nearly; i++) {
		const struct mmc_early *early = &epochs->early[i];

		if (early->epoch != op->config.epoch) {
			epochs->early[kept++] = *early;
			continue;
		}
		message.kind = early->advertised ? MMC_MESSAGE_ADVERT
						 : MMC_MESSAGE_RECORD;
		message.stamp_us = 0;
		message.echo_us = 0;
		message.late_rank = MMC_PEER_NONE;
		message.late_age_ms = 0;
		message.record = early->record;
		message.nitems = early->advertised;
		if (early->advertised)
			message.advert = early->advert;
		mmc_op_on_message(op, early->source, &message, now_ns);
	}
	epochs->nearly = kept;
}
