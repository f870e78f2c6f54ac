/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operation looks at depends on what its configuration asks for. */
#include "core/operation/config.h"

#include "check.h"

static void follows_what_is_asked_for(void)
{
	struct mmc_op_config config = { 0 };

	CHECK(!mmc_config_is_partial(&config));
	CHECK(!mmc_op_may_be_coded(&config));
	CHECK(!mmc_op_follows_placed(&config));
	config.partial = true;
	CHECK(mmc_config_is_partial(&config));
	CHECK(mmc_op_follows_placed(&config));
	config.partial = false;
	config.code_data = 4;
	CHECK(mmc_op_may_be_coded(&config));
	CHECK(mmc_op_follows_placed(&config));
	CHECK(!mmc_config_is_partial(&config));
}

CHECK_MAIN(CHECK_TEST(follows_what_is_asked_for))
