/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that are refused: counted by cause and by address, and dropped. They are no
 * sign of life and no backlog, and are never answered. In a flood of them the kernel is
 * asked to drop most before they cost a system call.
 */
#ifndef MMC_ENGINE_REFUSAL_H
#define MMC_ENGINE_REFUSAL_H

#include "engine/state.h"

/* So many refused datagrams within MMC_FLOOD_NS are a flood. */
#define MMC_FLOOD_DATAGRAMS 1024
#define MMC_FLOOD_NS (100 * MMC_MS_NS)

/*
 * Accounts to its source that the datagram of `event` was refused for `cause`, which is
 * counted elsewhere.
 */
void mmc_team_note_refusal(struct mmc_team *team, const struct mmc_event *event,
			   enum mmc_refusal cause, uint64_t now_ns);

/* Does the same, and counts the datagram among those of no stream. */
void mmc_team_refuse(struct mmc_team *team, const struct mmc_event *event,
		     enum mmc_refusal cause, uint64_t now_ns);

/* Tells the driver the team's channels anew, if it guards the endpoint. */
void mmc_team_guard(struct mmc_team *team);

#endif
