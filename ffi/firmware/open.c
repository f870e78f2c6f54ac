/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens teams on the adapter's device, and refuses what an adapter cannot do. */
#include <mpimcast/mmc.h>

#include "engine/engine.h"
#include "engine/options.h"
#include "firmware/nic.h"
#include "support/error.h"

static int refuse(const char *what)
{
	mmc_error_set("the firmware of an adapter does not %s", what);
	return -MMC_EINVAL;
}

int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team)
{
	struct mmc_team_options own = *options;
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;
	int rv = mmc_options_check(options);

	if (rv == 0 && options->protect != MMC_PROTECT_OFF)
		rv = refuse("protect datagrams: set PROTECT=off");
	if (rv == 0)
		rv = mmc_nic_open(options, &buffer_bytes, &endpoint);
	if (rv != 0)
		return rv;
	own.zero_copy = false;
	return mmc_team_create_on(engine, endpoint, &own, buffer_bytes, team);
}

int mmc_team_protect(struct mmc_team *team, struct mmc_secret *secret)
{
	(void)team;
	(void)secret;
	return refuse("protect datagrams");
}

int mmc_team_survey_begin(struct mmc_team *team, uint32_t id, uint32_t nnumbers)
{
	(void)team;
	(void)id;
	(void)nnumbers;
	return refuse("take part in surveys");
}

int mmc_team_survey_send(struct mmc_team *team, const struct mmc_burst *burst)
{
	(void)team;
	(void)burst;
	return refuse("take part in surveys");
}

int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard)
{
	(void)team;
	(void)slice_ns;
	(void)heard;
	return refuse("take part in surveys");
}

/* Makes the progress that is possible now, for a call that waits for its effect. */
void mmc_engine_make_progress(struct mmc_engine *engine)
{
	mmc_engine_step(engine);
}
