/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/status.h"

bool mmc_verbs_is_silence(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ||
	       status == IBV_WC_RNR_RETRY_EXC_ERR ||
	       status == IBV_WC_RESP_TIMEOUT_ERR;
}

bool mmc_verbs_is_transient(enum ibv_wc_status status)
{
	return mmc_verbs_is_silence(status) || status == IBV_WC_WR_FLUSH_ERR ||
	       status == IBV_WC_LOC_QP_OP_ERR;
}

bool mmc_verbs_lacks_right(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_MW_BIND_ERR;
}
