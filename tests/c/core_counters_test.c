/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/counters.h"

#include "check.h"

/* mmc_count() adds to one counter, and leaves the others as they are. */
static void counts_add_up(void)
{
	for (unsigned c = 0; c < MMC_COUNTER_COUNT; c++) {
		struct mmc_counters counters = { 0 };

		mmc_count(&counters, (enum mmc_counter)c, 5);
		mmc_count(&counters, (enum mmc_counter)c, 0);
		mmc_count(&counters, (enum mmc_counter)c, UINT32_MAX);
		for (unsigned i = 0; i < MMC_COUNTER_COUNT; i++)
			CHECK_EQ(counters.value[i],
				 i == c ? UINT64_C(5) + UINT32_MAX : 0);
	}
}

/* A sent or a received datagram is counted with its bytes, by its kind of traffic. */
static void datagrams_by_their_kind(void)
{
	struct mmc_counters counters = { 0 };

	mmc_count_sent(&counters, MMC_TRAFFIC_MULTICAST, 3000, 3);
	mmc_count_sent(&counters, MMC_TRAFFIC_CONTROL, 70, 2);
	mmc_count_sent(&counters, MMC_TRAFFIC_REPAIR, 11, 1);
	mmc_count_received(&counters, MMC_TRAFFIC_MULTICAST, 1000, 1);
	mmc_count_received(&counters, MMC_TRAFFIC_CONTROL, 35, 1);
	mmc_count_received(&counters, MMC_TRAFFIC_REPAIR, 12, 1);
	mmc_count_received(&counters, MMC_TRAFFIC_REPAIR, 13, 1);
	CHECK_EQ(counters.value[MMC_COUNT_TX_MULTICAST_BYTES], 3000);
	CHECK_EQ(counters.value[MMC_COUNT_TX_MULTICAST_DATAGRAMS], 3);
	CHECK_EQ(counters.value[MMC_COUNT_TX_CONTROL_BYTES], 70);
	CHECK_EQ(counters.value[MMC_COUNT_TX_CONTROL_DATAGRAMS], 2);
	CHECK_EQ(counters.value[MMC_COUNT_TX_REPAIR_BYTES], 11);
	CHECK_EQ(counters.value[MMC_COUNT_TX_REPAIR_DATAGRAMS], 1);
	CHECK_EQ(counters.value[MMC_COUNT_RX_MULTICAST_BYTES], 1000);
	CHECK_EQ(counters.value[MMC_COUNT_RX_MULTICAST_DATAGRAMS], 1);
	CHECK_EQ(counters.value[MMC_COUNT_RX_CONTROL_BYTES], 35);
	CHECK_EQ(counters.value[MMC_COUNT_RX_CONTROL_DATAGRAMS], 1);
	CHECK_EQ(counters.value[MMC_COUNT_RX_REPAIR_BYTES], 25);
	CHECK_EQ(counters.value[MMC_COUNT_RX_REPAIR_DATAGRAMS], 2);
}

CHECK_MAIN(CHECK_TEST(counts_add_up), CHECK_TEST(datagrams_by_their_kind))
