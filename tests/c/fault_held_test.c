/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue gives its elements back in the same order as a list that is searched. */
#include "drivers/fault/held.h"

#include "check.h"
#include "support/prng.h"

#define STEPS 20000u
#define LISTED_MAX 300

/* Elements in the order of their times, and of insertion if these are equal. */
struct list {
	const struct mmc_fault_held *places[LISTED_MAX];
	unsigned count;
};

static void list_insert(struct list *list, const struct mmc_fault_held *held)
{
	unsigned at = list->count++;

	for (; at > 0 && list->places[at - 1]->due_ns > held->due_ns; at--)
		list->places[at] = list->places[at - 1];
	list->places[at] = held;
}

static const struct mmc_fault_held *list_due(struct list *list, uint64_t now_ns,
					     uint64_t passed)
{
	const struct mmc_fault_held *due;
	unsigned at = 0;

	while (at < list->count && list->places[at]->due_ns > now_ns &&
	       list->places[at]->due_passed > passed)
		at++;
	if (at == list->count)
		return NULL;
	due = list->places[at];
	list->count--;
	for (; at < list->count; at++)
		list->places[at] = list->places[at + 1];
	return due;
}

/* Inserts an element that is due after one delay, or after others have passed. */
static void insert(struct mmc_fault_pool *pool, struct mmc_fault_queue *queue,
		   struct list *list, struct mmc_prng *prng, uint64_t now_ns)
{
	struct mmc_fault_held *held = mmc_fault_pool_take(pool, 1);
	bool reordered = mmc_prng_below(prng, 4) == 0;

	held->due_ns = now_ns + (reordered ? mmc_prng_below(prng, 50) : 30);
	held->due_passed = reordered ? now_ns + mmc_prng_below(prng, 9)
				     : UINT64_MAX;
	mmc_fault_queue_insert(queue, held);
	list_insert(list, held);
}

static void order(void)
{
	struct mmc_prng prng = { check_seed() };
	struct mmc_fault_pool pool = { 0 };
	struct mmc_fault_queue queue = { 0 };
	static struct list list;

	for (uint64_t now_ns = 0; now_ns < STEPS; now_ns++) {
		const struct mmc_fault_held *expected;
		struct mmc_fault_held *held;

		/* It fills up and empties again and again. */
		if (list.count < LISTED_MAX &&
		    mmc_prng_below(&prng, 100) < now_ns / 1000 % 2 * 60 + 20)
			insert(&pool, &queue, &list, &prng, now_ns);
		CHECK_EQ(mmc_fault_queue_deadline_ns(&queue),
			 list.count > 0 ? list.places[0]->due_ns
					: MMC_NEVER_NS);
		if (mmc_prng_below(&prng, 5) == 0)
			continue;
		expected = list_due(&list, now_ns, now_ns);
		held = mmc_fault_queue_due(&queue, now_ns, now_ns);
		if (!CHECK(held == expected))
			break;
		if (held != NULL)
			mmc_fault_pool_give(&pool, held);
	}
	CHECK_EQ(pool.nheld, list.count);
	mmc_fault_pool_drain(&pool, &queue);
	CHECK(queue.first == NULL && queue.last == NULL);
	CHECK_EQ(queue.nreordered, 0);
	mmc_fault_pool_destroy(&pool);
}

CHECK_MAIN(CHECK_TEST(order))
