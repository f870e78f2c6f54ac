/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses this rank's port among those of its host. A struct mmc_device describes one
 * port of a device; if the device could not be opened, one with the port number 0
 * stands for it.
 */
#include <mpimcast/mmc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/verbs/address.h"
#include "drivers/verbs/device.h"
#include "support/bits.h"
#include "support/error.h"

static bool has_gid(const struct mmc_device *device)
{
	static const uint8_t none[MMC_VERBS_GID_BYTES];

	return memcmp(device->gid, none, sizeof(none)) != 0;
}

static bool is_usable(const struct mmc_device *device)
{
	return device->port != 0 && device->state == IBV_PORT_ACTIVE &&
	       has_gid(device) && device->address != 0;
}

/* Writes why a port is not usable, truncated to `size` bytes. */
static void explain(const struct mmc_device *device, char *text, size_t size)
{
	if (device->port == 0) {
		/* Opens the device once more, since that sets the reason. */
		struct ibv_context *context =
			mmc_verbs_open_device(device->name);

		if (context == NULL) {
			snprintf(text, size, "%s", mmc_last_error());
			return;
		}
		mmc_ibv.close_device(context);
		snprintf(text, size,
			 "%s could not be opened, but can be now: try again",
			 device->name);
	} else if (device->state != IBV_PORT_ACTIVE) {
		snprintf(text, size, "%s:%u is not active: check its link",
			 device->name, device->port);
	} else if (device->ethernet) {
		snprintf(text, size,
			 "%s:%u has no RoCE v2 GID with an IPv4 address",
			 device->name, device->port);
	} else {
		snprintf(text, size,
			 "%s:%u has no IP interface (IPoIB), which joining "
			 "groups needs",
			 device->name, device->port);
	}
}

/*
 * Returns whether `wanted`, which has `length` characters, names this port: "device"
 * names all ports of the device, and "device:port" one of them. If the device could not
 * be opened, so that its ports are unknown, "device:port" matches any port.
 */
static bool is_named(const struct mmc_device *device, const char *wanted,
		     size_t length)
{
	size_t name_length = strlen(device->name);
	char port[16];

	if (length < name_length ||
	    strncmp(device->name, wanted, name_length) != 0)
		return false;
	if (length == name_length)
		return true;
	if (device->port == 0)
		return wanted[name_length] == ':';
	snprintf(port, sizeof(port), ":%u", device->port);
	return strlen(port) == length - name_length &&
	       strncmp(wanted + name_length, port, length - name_length) == 0;
}

struct choice {
	const struct mmc_device *all;
	uint32_t nall;
	const struct mmc_device **usable; /* those of `all` to choose from */
	uint32_t nusable;
	bool found_any;	  /* whether any port was considered */
	char reason[256]; /* why the first unusable one is not usable, or "" */
};

/* Adds a port that may be chosen to the usable ones, or notes why it is not usable. */
static void consider(struct choice *choice, const struct mmc_device *device)
{
	choice->found_any = true;
	if (is_usable(device))
		choice->usable[choice->nusable++] = device;
	else if (choice->reason[0] == '\0')
		explain(device, choice->reason, sizeof(choice->reason));
}

/*
 * Collects the usable ports that `devices` names, in the order of the names; if it
 * names none, all usable ports.
 */
static void collect(struct choice *choice, const char *devices)
{
	devices += strspn(devices, ", ");
	if (*devices == '\0')
		for (uint32_t i = 0; i < choice->nall; i++)
			consider(choice, &choice->all[i]);
	while (*devices != '\0') {
		size_t length = strcspn(devices, ", ");

		for (uint32_t i = 0; i < choice->nall; i++)
			if (choice->nusable < choice->nall &&
			    is_named(&choice->all[i], devices, length))
				consider(choice, &choice->all[i]);
		devices += length;
		devices += strspn(devices, ", ");
	}
}

/* Sets the error's text: why there is no usable port. */
static void explain_none(const struct choice *choice, const char *devices)
{
	if (choice->found_any)
		mmc_error_set("no RDMA device can be used: %s", choice->reason);
	else
		mmc_error_set("no RDMA device can be used: none has one of "
			      "these names: '%s'; `ibv_devices` lists the "
			      "names that NET_DEVICES may have",
			      devices);
}

int mmc_verbs_device(const char *devices, uint32_t local_rank,
		     struct mmc_device *found)
{
	struct mmc_device *all = calloc(MMC_VERBS_PORTS_MAX, sizeof(*all));
	const struct mmc_device **usable =
		calloc(MMC_VERBS_PORTS_MAX, sizeof(*usable));
	struct choice choice = { .all = all, .usable = usable };
	int rv = -MMC_ENOMEM;

	if (all != NULL && usable != NULL)
		rv = mmc_verbs_list(all, MMC_VERBS_PORTS_MAX, &choice.nall);
	if (rv == 0) {
		choice.nall = mmc_min_u32(choice.nall, MMC_VERBS_PORTS_MAX);
		collect(&choice, devices);
		if (choice.nusable > 0) {
			*found = *usable[local_rank % choice.nusable];
		} else {
			explain_none(&choice, devices);
			rv = -MMC_ENODEV;
		}
	}
	free(usable);
	free(all);
	return rv;
}
