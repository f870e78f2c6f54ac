/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the options of a team. */
#ifndef MMC_ENGINE_OPTIONS_H
#define MMC_ENGINE_OPTIONS_H

#include <mpimcast/mmc.h>

/*
 * Checks those options that do not depend on the endpoint. Returns 0, or -MMC_EINVAL with
 * the reason in mmc_last_error().
 */
int mmc_options_check(const struct mmc_team_options *options);

#endif
