/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch of actions keeps all that is added to it, and says in time that it is full.
 */
#include "core/operation/action.h"

#include "messages.h"

#define CHANNEL UINT64_C(0x123456789abc0000)

static const enum mmc_checksum checksums[] = {
	MMC_CHECKSUM_OFF,
	MMC_CHECKSUM_HEADER,
	MMC_CHECKSUM_FULL,
};

/*
 * Returns a random message that is no report, with any number of items that its kind
 * may have.
 */
static struct mmc_message draw(struct mmc_prng *prng)
{
	uint32_t kind;
	uint32_t least;
	uint32_t span;

	do
		kind = (uint32_t)mmc_prng_below(prng, MMC_MESSAGE_COUNT);
	while (is_report(kind));
	least = items_min(kind);
	span = items_max(kind) - least + 1;
	return random_message(prng, kind,
			      least + (uint32_t)mmc_prng_below(prng, span));
}

/*
 * Checks that the datagram of an action has the header and the message that were added.
 */
static void check_datagram(const struct mmc_actions *actions,
			   const struct mmc_action *action,
			   const struct mmc_message *message)
{
	bool full = actions->checksum == MMC_CHECKSUM_FULL;
	const uint8_t *bytes = actions->arena + action->offset;
	struct mmc_header header;
	struct mmc_message read;

	CHECK_EQ(action->nbytes, MMC_HEADER_BYTES + mmc_message_bytes(message));
	/*
	 * The header's checksum covers the length with the CRC that will be appended.
	 */
	CHECK_EQ(mmc_header_decode(&header, bytes,
				   action->nbytes + (full ? MMC_CRC_BYTES : 0),
				   actions->checksum),
		 0);
	CHECK_EQ(header.channel, CHANNEL);
	CHECK_EQ(header.epoch, message->stamp_us);
	CHECK_EQ(header.index, MMC_INDEX_CONTROL | (uint32_t)message->kind);
	CHECK_EQ(decode(&read, message->kind, bytes + MMC_HEADER_BYTES,
			action->nbytes - MMC_HEADER_BYTES),
		 0);
	check_equal_messages(&read, message);
}

static void keeps_every_message(void)
{
	static struct mmc_message messages[MMC_ACTIONS_MAX];
	static struct mmc_actions actions;
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned i = 0; i < 300; i++) {
		uint32_t n = 0;

		mmc_actions_init(&actions, checksums[i % 3]);
		while (mmc_actions_room(&actions)) {
			messages[n] = draw(&prng);
			mmc_actions_tell(&actions, (struct mmc_op *)&prng,
					 CHANNEL, messages[n].stamp_us, n,
					 &messages[n]);
			n++;
		}
		CHECK_EQ(actions.count, n);
		for (uint32_t a = 0; a < n; a++) {
			CHECK_EQ(actions.items[a].kind, MMC_ACTION_CONTROL);
			CHECK(actions.items[a].op == (struct mmc_op *)&prng);
			CHECK_EQ(actions.items[a].peer, a);
			check_datagram(&actions, &actions.items[a],
				       &messages[a]);
		}
	}
}

/* A new action has its kind and operation; all its other fields are zero. */
static void actions_are_blank(void)
{
	static struct mmc_actions actions;

	memset(&actions, 0xa5, sizeof(actions));
	mmc_actions_init(&actions, MMC_CHECKSUM_OFF);
	for (uint32_t n = 0; n < MMC_ACTIONS_MAX; n++) {
		const struct mmc_action *action;

		CHECK(mmc_actions_room(&actions));
		action = mmc_actions_add(&actions, MMC_ACTION_READ, NULL);
		CHECK(action == &actions.items[n]);
		CHECK_EQ(action->kind, MMC_ACTION_READ);
		CHECK(action->op == NULL);
		CHECK_EQ(action->run.count + action->nbytes + action->peer, 0);
		CHECK(!action->repair && !action->retain);
	}
	CHECK(!mmc_actions_room(&actions));
}

/* There is room for n actions if, and only if, n of the longest messages still fit. */
static void room_for_the_longest(void)
{
	static struct mmc_actions actions;
	struct mmc_message longest = { .kind = MMC_MESSAGE_REPORT,
				       .nitems = MMC_CHAINS_MAX };

	for (uint32_t i = 1; i < MMC_CHAINS_MAX; i++)
		longest.positions[i] = MMC_CHUNKS_MAX - 1;
	longest.record.sent_chunks = MMC_CHUNKS_MAX - 1;
	CHECK(mmc_message_bytes(&longest) <=
	      MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES);
	for (uint32_t nadded = 0; nadded <= MMC_ACTIONS_MAX; nadded++) {
		uint32_t nfit = 0;

		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		for (uint32_t i = 0; i < nadded; i++)
			mmc_actions_add(&actions, MMC_ACTION_SEND, NULL);
		CHECK_EQ(mmc_actions_room(&actions),
			 mmc_actions_room_for(&actions, 1));
		while (mmc_actions_room_for(&actions, nfit + 1))
			nfit++;
		CHECK_EQ(nfit, nadded + 4 <= MMC_ACTIONS_MAX
				       ? 4
				       : MMC_ACTIONS_MAX - nadded);
		for (uint32_t i = 0; i < nfit; i++) {
			CHECK(mmc_actions_room(&actions));
			mmc_actions_tell(&actions, NULL, CHANNEL, 1, 0,
					 &longest);
		}
		CHECK(actions.arena_bytes <= MMC_ACTIONS_ARENA_BYTES);
	}
}

CHECK_MAIN(CHECK_TEST(keeps_every_message), CHECK_TEST(actions_are_blank),
	   CHECK_TEST(room_for_the_longest))
