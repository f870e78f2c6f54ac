/* SPDX-License-Identifier: BSD-3-Clause */
/* What other ranks say of operations that have not started here is kept for them. */
#include "core/operation/early.h"
#include "one_stream.h"

/* A second record of a rank joins its first; other epochs' are kept apart. */
static void kept_by_rank_and_epoch(void)
{
	static struct stream stream;
	struct mmc_message message = entered(0);

	stream_open(&stream, 0);
	mmc_epochs_park(&stream.epochs, 1, 1, &message);
	mmc_epochs_park(&stream.epochs, 1, 2, &message);
	message = entered(1);
	mmc_epochs_park(&stream.epochs, 1, 1, &message);
	CHECK_EQ(stream.epochs.nearly, 2);
	CHECK_EQ(stream.epochs.early[0].record.entry_rounds, 1);
	CHECK_EQ(stream.epochs.early[1].record.entry_rounds, 0);
	/* The operation that starts takes its own, and leaves the others. */
	start(&stream);
	CHECK_EQ(stream.epochs.nearly, 1);
	CHECK_EQ(stream.epochs.early[0].epoch, 2);
	stream_close(&stream);
}

/* What finds no room is counted. */
static void no_more_than_there_is_room_for(void)
{
	static struct stream stream;
	struct mmc_message message = entered(0);

	stream_open(&stream, 0);
	for (uint32_t i = 0; i < MMC_EPOCHS_EARLY_MAX + 3; i++)
		mmc_epochs_park(&stream.epochs, i, 3, &message);
	CHECK_EQ(stream.epochs.nearly, MMC_EPOCHS_EARLY_MAX);
	CHECK_EQ(stream.epochs.counters->value[MMC_COUNT_RX_UNPARKED_DATAGRAMS],
		 3);
	stream_close(&stream);
}

CHECK_MAIN(CHECK_TEST(kept_by_rank_and_epoch),
	   CHECK_TEST(no_more_than_there_is_room_for))
