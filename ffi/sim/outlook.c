/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpimcast/sim.h>

#include "core/flow/forecast.h"

#define PPM 1000000

uint64_t mmc_sim_forecast_ns(const struct mmc_sim_outlook *outlook,
			     uint32_t data_chunks, uint32_t parity_chunks)
{
	const struct mmc_forecast forecast = {
		.data_ns = outlook->data_ns,
		.trip_ns = outlook->trip_ns,
		.block_chunks = outlook->block_chunks,
		.tail_chunks = outlook->tail_chunks,
		.nreceivers = outlook->nreceivers,
		.loss = (uint32_t)(((uint64_t)outlook->loss_ppm << 32) / PPM),
		.run_chunks = 1,
	};

	return data_chunks == 0 ? mmc_forecast_repeat_ns(&forecast)
				: mmc_forecast_code_ns(&forecast, data_chunks,
						       parity_chunks);
}
