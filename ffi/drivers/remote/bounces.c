/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/remote/endpoint.h"
#include "offload/meeting.h"
#include "support/error.h"

/* A bounce buffer has at least so many bytes, and a power of two of them. */
#define BOUNCE_BYTES_MIN (64 << 10)

/* ---- regions and bounce buffers ------------------------------------------ */

int mmc_remote_share(struct mmc_endpoint *endpoint, int fd, uint64_t nbytes,
		     uint32_t *region)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);
	uint32_t number = 0;
	int rv;

	if (remote->link.region != NULL)
		return -MMC_ENODEV;
	while (number < MMC_OFFLOAD_REGIONS && remote->is_shared[number])
		number++;
	if (number == MMC_OFFLOAD_REGIONS) {
		mmc_error_set("a proxy maps at most %d regions of a team",
			      MMC_OFFLOAD_REGIONS);
		return -MMC_ENOMEM;
	}
	rv = mmc_link_share(&remote->link, number, fd, nbytes);
	if (rv != 0)
		return rv;
	remote->is_shared[number] = true;
	*region = number;
	return 0;
}

void mmc_remote_unshare(struct mmc_endpoint *endpoint, uint32_t region)
{
	const uint64_t number = region;

	mmc_link_call(&mmc_remote_of(endpoint)->link,
		      &(struct mmc_link_call){
			      .kind = MMC_OFFLOAD_UNREGION,
			      .arguments = &number,
			      .argument_bytes = sizeof(number),
		      });
	mmc_remote_of(endpoint)->is_shared[region] = false;
}

static void free_bounce(struct mmc_remote *remote, struct mmc_bounce *bounce)
{
	mmc_remote_unshare(&remote->endpoint, bounce->region);
	munmap(bounce->bytes, bounce->nbytes);
	free(bounce);
}

/* Cuts a buffer off an adapter's memory, to which none goes back. */
static bool cut_bounce(struct mmc_remote *remote, struct mmc_bounce *bounce)
{
	uint64_t left_bytes = remote->link.region_bytes - remote->bounced_bytes;

	if (bounce->nbytes > left_bytes) {
		mmc_error_set(
			"%llu bytes of results do not fit in the adapter's "
			"memory, of which %llu are left",
			(unsigned long long)bounce->nbytes,
			(unsigned long long)left_bytes);
		return false;
	}
	bounce->bytes = remote->link.region + remote->bounced_bytes;
	bounce->offset_bytes = remote->bounced_bytes;
	remote->bounced_bytes += bounce->nbytes;
	return true;
}

/* Creates memory for a buffer, and shares it. Returns whether that worked. */
static bool create_bounce(struct mmc_remote *remote, struct mmc_bounce *bounce)
{
	void *bytes = NULL;
	int fd;
	int rv;

	fd = mmc_meeting_create(bounce->nbytes, &bytes);
	if (fd < 0) {
		mmc_error_set("cannot create %llu bytes of shared memory",
			      (unsigned long long)bounce->nbytes);
		return false;
	}
	bounce->bytes = bytes;
	rv = mmc_remote_share(&remote->endpoint, fd, bounce->nbytes,
			      &bounce->region);
	close(fd);
	if (rv != 0)
		munmap(bytes, bounce->nbytes);
	return rv == 0;
}

static struct mmc_bounce *new_bounce(struct mmc_remote *remote, uint64_t nbytes)
{
	struct mmc_bounce *bounce = calloc(1, sizeof(*bounce));
	bool made;

	if (bounce == NULL)
		return NULL;
	bounce->nbytes = BOUNCE_BYTES_MIN;
	while (bounce->nbytes < nbytes)
		bounce->nbytes *= 2;
	made = remote->link.region != NULL ? cut_bounce(remote, bounce)
					   : create_bounce(remote, bounce);
	if (made)
		return bounce;
	free(bounce);
	return NULL;
}

struct mmc_bounce *mmc_remote_take_bounce(struct mmc_endpoint *endpoint,
					  uint64_t nbytes)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	for (struct mmc_bounce **at = &remote->bounces; *at != NULL;) {
		struct mmc_bounce *bounce = *at;

		if (bounce->nbytes < nbytes && remote->link.region != NULL) {
			at = &bounce->next;
			continue;
		}
		*at = bounce->next;
		if (bounce->nbytes >= nbytes)
			return bounce;
		/* It would never be used by operations like the present ones. */
		free_bounce(remote, bounce);
	}
	return new_bounce(remote, nbytes);
}

void mmc_remote_give_bounce(struct mmc_endpoint *endpoint,
			    struct mmc_bounce *bounce)
{
	struct mmc_remote *remote = mmc_remote_of(endpoint);

	if (bounce == NULL)
		return;
	bounce->next = remote->bounces;
	remote->bounces = bounce;
}

void mmc_remote_free_bounces(struct mmc_remote *remote)
{
	while (remote->bounces != NULL) {
		struct mmc_bounce *bounce = remote->bounces;

		remote->bounces = bounce->next;
		/* The runner unmaps all regions when the link is closed. */
		if (remote->link.region == NULL)
			munmap(bounce->bytes, bounce->nbytes);
		free(bounce);
	}
}
