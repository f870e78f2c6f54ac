/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drivers/verbs/device.h"
#include "support/bits.h"
#include "support/error.h"

#define PAGE_BYTES 4096

uint64_t mmc_verbs_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MMC_S_NS + (uint64_t)now.tv_nsec;
}

int mmc_verbs_explain(const struct mmc_verbs_port *port, const char *what,
		      int error)
{
	bool memory = error == ENOMEM;

	mmc_error_set("%s: cannot %s: %s%s", port->options.device.name, what,
		      strerror(error),
		      memory ? " (check ulimit -l and the device's limits)"
			     : "");
	return memory ? -MMC_ENOMEM : -MMC_EIO;
}

/*
 * Sets the error's text from errno: why the device cannot be used. Returns -MMC_ENODEV
 * even if the limit on locked memory is the cause, since the device is of no use
 * without its resources.
 */
static int refuse(const struct mmc_verbs_port *port, const char *what)
{
	mmc_verbs_explain(port, what, errno);
	return -MMC_ENODEV;
}

/* Makes `fd` non-blocking: device events are polled for, not waited for. */
static bool unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/*
 * Returns whether there are memory windows of type 2, which are bound to a queue pair.
 * A window is made to find out: the device may have them but its library may not.
 */
static bool find_windows(const struct mmc_verbs_port *port)
{
	const unsigned type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	struct ibv_mw *window;

	if ((port->limits.device_cap_flags & type_2) == 0)
		return false;
	window = ibv_alloc_mw(port->pd, IBV_MW_TYPE_2);
	return window != NULL && ibv_dealloc_mw(window) == 0;
}

int mmc_verbs_port_open(struct mmc_verbs_port *port,
			const struct mmc_team_options *options)
{
	const struct mmc_device *device = &options->device;
	struct ibv_port_attr attributes = { .state = IBV_PORT_NOP };
	int rv = mmc_verbs_load();

	port->options = *options;
	if (rv < 0)
		return rv;
	port->context = mmc_verbs_open_device(device->name);
	if (port->context == NULL)
		return -MMC_ENODEV;
	if (!unblock(port->context->async_fd))
		return refuse(port, "watch the device");
	errno = mmc_ibv.query_device(port->context, &port->limits);
	if (errno == 0)
		errno = mmc_ibv.query_port(port->context, (uint8_t)device->port,
					   (void *)&attributes);
	if (errno != 0)
		return refuse(port, "query the device");
	port->mtu = attributes.active_mtu;
	port->reads_max = mmc_min_u32(
		(uint32_t)port->limits.max_qp_rd_atom,
		mmc_min_u32((uint32_t)port->limits.max_qp_init_rd_atom,
			    MMC_VERBS_READS_MAX));
	port->pd = mmc_ibv.alloc_pd(port->context);
	if (port->pd == NULL)
		return refuse(port, "allocate a protection domain");
	port->has_windows = find_windows(port);
	return 0;
}

bool mmc_verbs_port_active(const struct mmc_verbs_port *port,
			   struct ibv_port_attr *attributes)
{
	struct ibv_port_attr now = { .state = IBV_PORT_NOP };

	if (mmc_ibv.query_port(port->context,
			       (uint8_t)port->options.device.port,
			       (void *)&now) != 0)
		return false;
	if (attributes != NULL)
		*attributes = now;
	return now.state == IBV_PORT_ACTIVE;
}

void mmc_verbs_port_close(struct mmc_verbs_port *port)
{
	if (port->pd != NULL)
		mmc_ibv.dealloc_pd(port->pd);
	if (port->context != NULL)
		mmc_ibv.close_device(port->context);
}

struct ibv_ah_attr mmc_verbs_ah_attr(const struct mmc_verbs_port *port,
				     const uint8_t *gid, uint16_t lid,
				     uint8_t hop_limit)
{
	const struct mmc_team_options *options = &port->options;
	struct ibv_ah_attr ah_attr = {
		.grh = {
			.sgid_index = (uint8_t)options->device.gid_index,
			.hop_limit = hop_limit,
			.traffic_class = (uint8_t)options->traffic_class,
		},
		.dlid = lid,
		.sl = (uint8_t)options->service_level,
		.is_global = 1,
		.port_num = (uint8_t)options->device.port,
	};

	memcpy(ah_attr.grh.dgid.raw, gid, sizeof(ah_attr.grh.dgid.raw));
	return ah_attr;
}

int mmc_verbs_memory_init(struct mmc_verbs_memory *memory,
			  const struct mmc_verbs_port *port, size_t nbytes)
{
	nbytes = (nbytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	memory->bytes = aligned_alloc(PAGE_BYTES, nbytes);
	if (memory->bytes == NULL)
		return -MMC_ENOMEM;
	memset(memory->bytes, 0, nbytes);
	memory->region = mmc_ibv.reg_mr(port->pd, memory->bytes, nbytes,
					IBV_ACCESS_LOCAL_WRITE);
	if (memory->region != NULL)
		return 0;
	return mmc_verbs_explain(port, "register memory", errno);
}

void mmc_verbs_memory_destroy(struct mmc_verbs_memory *memory)
{
	if (memory->region != NULL)
		mmc_ibv.dereg_mr(memory->region);
	free(memory->bytes);
}
