/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of an adapter: it carries out the operations of one team of a host, from
 * its commands to its completions, and sleeps in between.
 */
#include "engine/engine.h"
#include "engine/progress.h"
#include "firmware/hart.h"
#include "firmware/machine.h"
#include "firmware/nic.h"
#include "offload/ring.h"
#include "server/server.h"

struct mmc_hart *mmc_harts[MMC_NIC_HARTS_MAX];

static void ring(void *context)
{
	(void)context;
	mmc_nic_ring_host();
}

static int map(void *context, uint32_t number, uint64_t nbytes, void **memory)
{
	return mmc_memory_map(context, (int)number, nbytes, memory);
}

static void unmap(void *context, void *memory)
{
	mmc_memory_free(context, memory);
}

static const struct mmc_server_host host = {
	.ring = ring,
	.map = map,
	.unmap = unmap,
};

/* Sleeps until the host, the device or the clock has something to do. */
static void doze(struct mmc_server *server, const struct mmc_engine *engine)
{
	bool come = mmc_server_arm(server);

	come |= mmc_nic_arm();
	if (!come)
		mmc_machine_doze(mmc_engine_idle_ns(engine));
}

void mmc_hart_main(uint32_t number)
{
	struct mmc_hart *hart = mmc_harts[number];

	while (number < mmc_ring_see(&mmc_nic.nharts))
		if (!mmc_hart_step(hart) && !mmc_hart_arm(hart))
			mmc_machine_sleep(number);
}

int main(void)
{
	struct mmc_engine *engine;
	struct mmc_server *server;
	uint32_t nfinished = 0;

	if (mmc_nic.magic != MMC_NIC_MAGIC ||
	    mmc_nic.version != MMC_NIC_VERSION)
		return 3;
	mmc_machine_listen();
	if (mmc_engine_create_stepped(&engine) != 0 ||
	    mmc_server_create(engine, mmc_nic_memory(mmc_nic.bridge_offset),
			      mmc_nic.bridge_bytes, &host, engine,
			      &server) != 0)
		return 4;
	while (!mmc_server_is_broken(server)) {
		bool busy;

		/* The host may change its blocks once it knows that they were sent. */
		if (engine->nfinished != nfinished)
			mmc_nic_flush();
		nfinished = engine->nfinished;
		busy = mmc_server_progress(server);
		busy |= mmc_engine_progress(engine);
		if (!busy)
			doze(server, engine);
	}
	return 5;
}
