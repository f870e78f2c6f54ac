/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the input as a list of what happens to one rank of a stream: operations start,
 * chunks and control messages with any fields come from any rank, placements, sends and
 * reads end, time passes, the core is polled. Whatever other ranks say, the core must
 * keep its contracts: no assertion fails, no chunk is written twice, no chunk is sent
 * that is not present, DONE comes only when all chunks are present, and no deadline
 * lies in the past.
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

/* Starts the next operation, if the stream is ready for it. */
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

/*
 * A byte with one of these values ends the stream. They are rare, since little
 * happens afterwards.
 */
enum { HOW_LEAVE = 254, HOW_CANCEL = 255 };

/* Has the rank cancel its operations, or leave the stream, or do nothing. */
static void end(struct world *world, uint32_t how)
{
	struct mmc_epochs *epochs = &world->epochs;
	struct mmc_poison poison = {
		.error = MMC_ECANCELED,
		.epoch = epochs->last,
		.culprit = epochs->rank,
	};

	if (how == HOW_CANCEL)
		mmc_epochs_poison(epochs, poison, true);
	else if (how == HOW_LEAVE)
		mmc_epochs_leave(epochs, epochs->last);
}

/* Takes one event from the input; frequent events have several numbers. */
static void step(struct world *world)
{
	uint32_t how;

	switch (take(&world->input, 1) % 16) {
	case 0:
		start(world);
		break;
	case 1:
	case 2:
		bring_chunk(world);
		break;
	case 3:
		bring_run(world);
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
