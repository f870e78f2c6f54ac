/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/display.h"

#include "offload/ring.h"
#include "server/state.h"

/* Returns the words of 64 bits that a number of chunks takes. */
static uint64_t nwords(uint32_t nchunks)
{
	return ((uint64_t)nchunks + 63) / 64;
}

bool mmc_server_begin_display(struct mmc_server *server,
			      const struct mmc_offload_command *command)
{
	struct mmc_display *display;
	uint8_t *bits;

	if (command->request >= MMC_OFFLOAD_REQUESTS)
		return false;
	if (server->served[command->request].request == NULL)
		return true;
	display = &server->displays[command->request];
	bits = mmc_server_find(server, &command->bits,
			       nwords(command->nchunks) * sizeof(uint64_t));
	if (display->shown != NULL || bits == NULL ||
	    command->bits.offset_bytes % sizeof(uint64_t) != 0)
		return false;
	*display = (struct mmc_display){
		.shown = (uint64_t *)(void *)bits,
		.nchunks = command->nchunks,
		.region = command->bits.region,
	};
	server->mapped[display->region].nused++;
	server->ndisplays++;
	return true;
}

void mmc_server_end_display(struct mmc_server *server, uint32_t number)
{
	struct mmc_display *display = &server->displays[number];

	if (display->shown == NULL)
		return;
	mmc_present_free(display->present);
	server->mapped[display->region].nused--;
	server->ndisplays--;
	*display = (struct mmc_display){ .shown = NULL };
}

/* Copies the engine's bits to the host's memory. Returns whether any were new there. */
static bool update(struct mmc_server *server, const struct mmc_display *display)
{
	uint32_t nbits;
	const uint64_t *words = mmc_present_words(display->present, &nbits);
	bool changed = false;

	if (nbits != display->nchunks) {
		server->broken = true;
		return false;
	}
	for (uint32_t i = 0; i < nwords(nbits); i++) {
		uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);

		if (word ==
		    __atomic_load_n(&display->shown[i], __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&display->shown[i], word, __ATOMIC_RELEASE);
		changed = true;
	}
	return changed;
}

void mmc_server_update_displays(struct mmc_server *server)
{
	struct mmc_offload_bridge *bridge = server->bridge;
	bool changed = false;

	for (uint32_t i = 0, seen = 0; seen < server->ndisplays; i++) {
		struct mmc_display *display = &server->displays[i];

		if (display->shown == NULL)
			continue;
		seen++;
		if (display->present != NULL ||
		    mmc_request_present(server->served[i].request,
					&display->present) == 0)
			changed |= update(server, display);
	}
	if (!changed)
		return;
	mmc_ring_show(&bridge->nshown, bridge->nshown + 1);
	if (mmc_ring_must_ring(&bridge->completions))
		server->host->ring(server->context);
}
