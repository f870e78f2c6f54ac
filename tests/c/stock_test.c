/* SPDX-License-Identifier: BSD-3-Clause */
/* A stock gives out the parity that a coder has computed, and no other. */
#include "engine/stock.h"

#include "code_group.h"
#include "engine/state.h"

#define NDATA 5
#define NPARITY 3
#define CHUNK_BYTES 777
#define GROUP_BYTES (NPARITY * CHUNK_BYTES)

static struct mmc_engine *engine;
static struct mmc_stock *stock;
static struct mmc_prng prng;
static struct coded groups[2 * MMC_STOCK_GROUPS];

static void open(void)
{
	CHECK_EQ(mmc_engine_create(&engine), 0);
	CHECK_EQ(mmc_coder_start(engine), 0);
	stock = mmc_stock_init(malloc(mmc_stock_bytes(GROUP_BYTES)),
			       GROUP_BYTES);
	prng.state = check_seed();
	for (unsigned g = 0; g < 2 * MMC_STOCK_GROUPS; g++) {
		groups[g].group = (struct mmc_code_group){
			.ndata = NDATA,
			.chunk_bytes = CHUNK_BYTES,
			.last_bytes = CHUNK_BYTES,
		};
		groups[g].nparity = NPARITY;
		coded_draw(&groups[g], &prng, &mmc_codec_plain);
	}
}

static void close_all(void)
{
	mmc_coder_forget(engine->coder, NULL);
	mmc_engine_destroy(engine);
	for (unsigned g = 0; g < 2 * MMC_STOCK_GROUPS; g++)
		coded_free(&groups[g]);
	free(stock);
}

/* Orders the parity of a group, for which there must be room, from the coder. */
static void order(uint32_t group)
{
	uint8_t *room = mmc_stock_room(stock, group);
	struct mmc_coder_task *task = mmc_coder_next(engine->coder);

	if (!CHECK(room != NULL && task != NULL))
		exit(1);
	task->request = NULL;
	task->action.first = group;
	task->group = groups[group].group;
	task->loss.count = 0;
	task->rows = (struct mmc_code_rows){ .count = NPARITY,
					     .parity = task->parity };
	for (unsigned i = 0; i < NPARITY; i++)
		task->parity[i] = room + i * CHUNK_BYTES;
	mmc_stock_order(stock, group, task);
	mmc_coder_submit(engine->coder);
}

/* Waits for the end of a task, and takes it back for the stock. */
static void end_next(void)
{
	struct mmc_coder_task *task;

	CHECK(mmc_coder_await(engine->coder));
	task = mmc_coder_take(engine->coder);
	if (CHECK(task != NULL))
		mmc_stock_end(stock, task->action.first);
}

static const uint8_t *take(uint32_t group)
{
	return mmc_stock_take(stock, engine->coder, group);
}

static void check_parity(uint32_t group, const uint8_t *found)
{
	if (!CHECK(found != NULL))
		return;
	for (unsigned i = 0; i < NPARITY; i++)
		CHECK_BYTES(found + i * CHUNK_BYTES, groups[group].parity[i],
			    CHUNK_BYTES);
}

/* What was ordered is taken out once, and makes room for later groups. */
static void groups_follow_each_other(void)
{
	open();
	for (uint32_t g = 0; g < MMC_STOCK_GROUPS; g++) {
		CHECK(take(g) == NULL);
		order(g);
		CHECK(mmc_stock_room(stock, g + MMC_STOCK_GROUPS) == NULL);
	}
	for (uint32_t g = 0; g < 2 * MMC_STOCK_GROUPS; g++) {
		end_next();
		CHECK(mmc_stock_room(stock, g + MMC_STOCK_GROUPS) == NULL);
		CHECK(take(g + MMC_STOCK_GROUPS) == NULL);
		check_parity(g, take(g));
		CHECK(take(g) == NULL);
		if (g < MMC_STOCK_GROUPS)
			order(g + MMC_STOCK_GROUPS);
	}
	close_all();
}

/* A task that has ended suffices, although nobody has taken it back yet. */
static void ended_tasks_suffice(void)
{
	open();
	order(0);
	CHECK(mmc_coder_await(engine->coder));
	check_parity(0, take(0));
	CHECK(take(0) == NULL);
	CHECK(mmc_stock_room(stock, MMC_STOCK_GROUPS) == NULL);
	end_next();
	CHECK(mmc_stock_room(stock, MMC_STOCK_GROUPS) != NULL);
	CHECK(take(0) == NULL);
	close_all();
}

/* Nobody waits for a task: it is cancelled, and there is room at once. */
static void tasks_that_have_not_begun(void)
{
	struct mmc_coder_task *task;

	open();
	task = mmc_coder_next(engine->coder);
	mmc_stock_order(stock, 0, task);
	CHECK(take(0) == NULL);
	CHECK(task->cancelled);
	CHECK(mmc_stock_room(stock, MMC_STOCK_GROUPS) != NULL);
	close_all();
}

/* The room of a task that has begun is not used again before its end. */
static void tasks_that_have_begun(void)
{
	struct mmc_coder_task *task;

	open();
	task = mmc_coder_next(engine->coder);
	mmc_stock_order(stock, 0, task);
	task->claimed = true;
	CHECK(take(0) == NULL);
	CHECK(take(0) == NULL);
	CHECK(!task->cancelled);
	CHECK(mmc_stock_room(stock, MMC_STOCK_GROUPS) == NULL);
	mmc_stock_end(stock, 0);
	CHECK(take(0) == NULL);
	CHECK(mmc_stock_room(stock, MMC_STOCK_GROUPS) != NULL);
	close_all();
}

CHECK_MAIN(CHECK_TEST(groups_follow_each_other),
	   CHECK_TEST(ended_tasks_suffice),
	   CHECK_TEST(tasks_that_have_not_begun),
	   CHECK_TEST(tasks_that_have_begun))
