/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/copies.h"

#include <stdlib.h>
#include <string.h>

struct mmc_sim_copy {
	struct mmc_sim_copy *next;
	void *to;
	uint64_t cookie;
	size_t nbytes;
	uint8_t bytes[];
};

static void free_all(struct mmc_sim_copy *copy)
{
	while (copy) {
		struct mmc_sim_copy *next = copy->next;

		free(copy);
		copy = next;
	}
}

void mmc_sim_copies_init(struct mmc_sim_copies *copies)
{
	copies->due_end = &copies->due;
	copies->made_end = &copies->made;
}

void mmc_sim_copies_free(struct mmc_sim_copies *copies)
{
	free_all(copies->due);
	free_all(copies->made);
}

int mmc_sim_copies_add(struct mmc_sim_copies *copies, void *to,
		       const void *from, size_t nbytes, uint64_t cookie)
{
	struct mmc_sim_copy *copy = malloc(sizeof(*copy) + nbytes);

	if (!copy)
		return -MMC_ENOMEM;
	*copy = (struct mmc_sim_copy){
		.to = to,
		.cookie = cookie,
		.nbytes = nbytes,
	};
	memcpy(copy->bytes, from, nbytes);
	*copies->due_end = copy;
	copies->due_end = &copy->next;
	return 0;
}

void mmc_sim_copies_make(struct mmc_sim_copies *copies)
{
	struct mmc_sim_copy *copy = copies->due;

	if (!copy)
		return;
	copies->due = copy->next;
	if (!copies->due)
		copies->due_end = &copies->due;
	memcpy(copy->to, copy->bytes, copy->nbytes);
	copy->next = NULL;
	*copies->made_end = copy;
	copies->made_end = &copy->next;
}

void mmc_sim_copies_forget(struct mmc_sim_copies *copies)
{
	free_all(copies->due);
	copies->due = NULL;
	copies->due_end = &copies->due;
}

unsigned mmc_sim_copies_poll(struct mmc_sim_copies *copies,
			     struct mmc_event *events, unsigned nmax)
{
	unsigned n = 0;

	while (n < nmax && copies->made) {
		struct mmc_sim_copy *copy = copies->made;

		events[n++] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = copy->cookie,
			.count = 1,
		};
		copies->made = copy->next;
		if (!copies->made)
			copies->made_end = &copies->made;
		free(copy);
	}
	return n;
}
