/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes any bytes for what happens to one rank of a stream: starts, chunks and control
 * messages of any rank with any fields, placements, sends, reads that bring anything,
 * time and polls. Whatever the others say, the rank must keep its contracts: no
 * assertion fails, nothing is written twice, nothing is sent that is not present, DONE
 * comes only when all is present, and no deadline lies in the past.
 */
#include "op_contract.h"
#include "op_events.h"

/* Polls until nothing is left to do now, which must take a limited number of polls. */
static void poll(struct world *world)
{
	struct mmc_actions actions;
	unsigned nbatches = 0;

	do {
		MMC_ASSERT(nbatches++ < 10000);
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_epochs_poll(&world->epochs, world->now_ns, &actions);
		for (uint32_t i = 0; i < actions.count; i++)
			carry_out(world, &actions, &actions.items[i]);
	} while (actions.count > 0 ||
		 mmc_epochs_deadline(&world->epochs) <= world->now_ns);
	for (uint32_t e = 1; e <= EPOCHS_MAX; e++)
		if (world->epoch[e].op != NULL)
			check_op(world->epoch[e].op);
}

static void start(struct world *world)
{
	uint32_t epoch = world->epochs.last + 1;

	if (epoch > EPOCHS_MAX || !mmc_epochs_ready(&world->epochs))
		return;
	world->epoch[epoch].memory = aligned_alloc(
		MMC_ALIGN_BYTES, mmc_op_footprint(&world->config));
	world->epoch[epoch].op =
		mmc_epochs_start(&world->epochs, world->epoch[epoch].memory,
				 &world->config, world->now_ns);
}

static void end(struct world *world, uint32_t how)
{
	struct mmc_epochs *epochs = &world->epochs;
	struct mmc_poison poison = { MMC_ECANCELED, epochs->last,
				     epochs->rank };

	if (how == 255)
		mmc_epochs_poison(epochs, poison, true);
	else if (how == 254)
		mmc_epochs_leave(epochs, epochs->last);
}

static void step(struct world *world)
{
	uint32_t how;

	switch (take(&world->input, 1) % 16) {
	case 0:
		start(world);
		break;
	case 1:
	case 2:
	case 3:
		bring_chunk(world);
		break;
	case 4:
		bring_message(world);
		break;
	case 5:
	case 6:
		bring_record(world);
		break;
	case 7:
	case 8:
		finish_placing(world);
		break;
	case 9:
	case 10:
		finish_sending(world);
		break;
	case 11:
		world->now_ns += take(&world->input, 2) * MMC_US_NS;
		break;
	case 12:
		world->now_ns += take(&world->input, 1) * MMC_MS_NS;
		break;
	case 14:
		finish_reading(world);
		break;
	case 13:
		how = take(&world->input, 1);
		if (how < 128)
			bring_finding(world);
		else
			end(world, how);
		break;
	default:
		poll(world);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;

	world = (struct world){
		.input = { .data = data, .size = size },
		.now_ns = MMC_S_NS,
	};
	shape(&world);
	start(&world);
	while (world.input.size > 0)
		step(&world);
	poll(&world);
	for (uint32_t e = 1; e <= EPOCHS_MAX; e++)
		if (world.epoch[e].op != NULL)
			free(world.epoch[e].memory);
	free(world.epochs_memory);
	return 0;
}
