/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/action.h"

#include "support/assert.h"

struct mmc_action *mmc_actions_add(struct mmc_actions *actions,
				   enum mmc_action_kind kind, struct mmc_op *op)
{
	struct mmc_action *action;

	MMC_ASSERT(mmc_actions_room(actions));
	action = &actions->items[actions->count++];
	*action = (struct mmc_action){ .kind = kind, .op = op };
	return action;
}

struct mmc_action *mmc_actions_tell(struct mmc_actions *actions,
				    struct mmc_op *op, uint64_t channel,
				    uint32_t epoch, uint32_t peer,
				    const struct mmc_message *message)
{
	struct mmc_action *action =
		mmc_actions_add(actions, MMC_ACTION_CONTROL, op);
	uint8_t *bytes = actions->arena + actions->arena_bytes;
	struct mmc_header header = {
		.channel = channel,
		.epoch = epoch,
		.index = MMC_INDEX_CONTROL | (uint32_t)message->kind,
	};
	size_t datagram_bytes = MMC_HEADER_BYTES + mmc_message_bytes(message);

	action->peer = peer;
	action->offset = actions->arena_bytes;
	action->nbytes = (uint32_t)datagram_bytes;
	actions->arena_bytes += action->nbytes;
	if (actions->checksum == MMC_CHECKSUM_FULL)
		datagram_bytes += MMC_CRC_BYTES;
	mmc_header_encode(bytes, &header, datagram_bytes, actions->checksum);
	mmc_message_encode(bytes + MMC_HEADER_BYTES, message);
	return action;
}
