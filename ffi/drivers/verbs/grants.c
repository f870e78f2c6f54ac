/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/grants.h"

#include <errno.h>
#include <sched.h>

#include "drivers/verbs/device.h"
#include "drivers/verbs/endpoint.h"
#include "drivers/verbs/windows.h"

/* ---- registering --------------------------------------------------------- */

/*
 * Registers memory with these rights. Returns 0 with `registered` written, or an error,
 * with the reason set.
 */
static int register_with(const struct mmc_verbs *verbs, const void *memory,
			 size_t nbytes, int rights, struct ibv_mr **registered)
{
	*registered = mmc_ibv.reg_mr(verbs->port.pd, (void *)(uintptr_t)memory,
				     nbytes, rights);
	if (*registered != NULL)
		return 0;
	return mmc_verbs_explain(&verbs->port, "register memory", errno);
}

int mmc_verbs_register_memory(struct mmc_endpoint *endpoint, const void *memory,
			      size_t nbytes, struct mmc_region *region)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	int placing = verbs->port.options.zero_copy ? IBV_ACCESS_LOCAL_WRITE
						    : 0;
	int binding = verbs->port.has_windows ? IBV_ACCESS_MW_BIND : 0;
	struct ibv_mr *registered;
	int rv = register_with(verbs, memory, nbytes, placing | binding,
			       &registered);

	region->handle = registered;
	return rv;
}

void mmc_verbs_deregister_memory(struct mmc_endpoint *endpoint,
				 struct mmc_region *region)
{
	(void)endpoint;
	mmc_ibv.dereg_mr(region->handle);
	region->handle = NULL;
}

/* ---- windows ------------------------------------------------------------- */

/*
 * Binds a window to `part` by a request to the connection's queue pair, and waits until
 * that is done. So no advert, by whatever way it goes, comes before the right. Returns
 * whether it was done in time.
 */
static bool bind_window(struct mmc_verbs *verbs,
			struct mmc_verbs_window *window,
			const struct ibv_mw_bind_info *part, uint32_t key)
{
	struct mmc_verbs_connection *connection = window->connection;
	uint64_t until_ns = mmc_verbs_clock_ns() + MMC_VERBS_ROOM_NS;
	struct ibv_send_wr request = {
		.wr_id = MMC_VERBS_ID_BIND,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = window->mw,
			     .rkey = key,
			     .bind_info = *part },
	};
	struct ibv_send_wr *refused;

	if (ibv_post_send(connection->qp, &request, &refused) != 0)
		return false;
	connection->binding = window;
	while (connection->binding != NULL &&
	       connection->link == MMC_VERBS_LINK_UP &&
	       mmc_verbs_clock_ns() < until_ns) {
		/* Soft-RoCE needs a processor, and there may be only one. */
		if (!mmc_verbs_reads_reap(&verbs->reads, &verbs->connections))
			sched_yield();
	}
	return connection->binding == NULL && window->mw != NULL;
}

/*
 * Makes a window and binds it to `part`. Returns 0 with `key` written, or a negative
 * error.
 */
static int open_window(struct mmc_verbs *verbs, struct mmc_verbs_window *window,
		       const struct ibv_mw_bind_info *part, uint32_t *key)
{
	window->mw = ibv_alloc_mw(verbs->port.pd, IBV_MW_TYPE_2);
	if (window->mw == NULL)
		return mmc_verbs_explain(&verbs->port, "make a memory window",
					 errno);
	*key = ibv_inc_rkey(window->mw->rkey);
	return bind_window(verbs, window, part, *key) ? 0 : -MMC_EAGAIN;
}

/* ---- grants -------------------------------------------------------------- */

/*
 * Gives the peer of a window's connection the right to read. Returns 0 with `key`
 * written, or a negative error.
 */
static int give_right(struct mmc_verbs *verbs, struct mmc_verbs_window *window,
		      struct ibv_mr *region, const void *memory, size_t nbytes,
		      uint32_t *key)
{
	bool has_windows = verbs->port.has_windows;
	struct ibv_mw_bind_info part = {
		.mr = region,
		.addr = (uintptr_t)memory,
		.length = nbytes,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	int rv = 0;

	if (!has_windows || region == NULL) {
		rv = register_with(verbs, memory, nbytes,
				   has_windows ? IBV_ACCESS_MW_BIND
					       : IBV_ACCESS_REMOTE_READ,
				   &window->region);
		if (rv < 0)
			return rv;
		part.mr = window->region;
	}
	*key = part.mr->rkey;
	return has_windows ? open_window(verbs, window, &part, key) : 0;
}

int mmc_verbs_grant_read(struct mmc_endpoint *endpoint, uint32_t peer,
			 const struct mmc_region *region, const void *memory,
			 size_t nbytes, struct mmc_grant *grant)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	struct mmc_verbs_connection *connection = verbs->ranks[peer].connection;
	struct mmc_verbs_window *window;
	uint32_t key;
	int rv;

	if (connection == NULL)
		return -MMC_ENODEV;
	if (connection->link != MMC_VERBS_LINK_UP ||
	    connection->binding != NULL)
		return -MMC_EAGAIN;
	/* No window can be bound to no bytes. */
	if (nbytes == 0)
		return -MMC_EINVAL;
	window = mmc_verbs_window_new(connection);
	if (window == NULL)
		return -MMC_ENOMEM;
	rv = give_right(verbs, window, region != NULL ? region->handle : NULL,
			memory, nbytes, &key);
	if (rv < 0) {
		mmc_verbs_window_free(window);
		return rv;
	}
	*grant = (struct mmc_grant){
		.address = (uintptr_t)memory,
		.key = key,
		.handle = window,
	};
	return 0;
}

void mmc_verbs_revoke_read(struct mmc_endpoint *endpoint,
			   struct mmc_grant *grant)
{
	(void)endpoint;
	mmc_verbs_window_free(grant->handle);
	grant->handle = NULL;
}
