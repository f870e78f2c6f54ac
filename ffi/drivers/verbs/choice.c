/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses this rank's port among those of its host. */
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

/* Writes why a port is not usable; the text ends at `size`. */
static void explain(const struct mmc_device *device, char *text, size_t size)
{
	if (device->port == 0) {
		struct ibv_context *context =
			mmc_verbs_open_device(device->name);

		/* If the device still does not open, the reason is set now. */
		snprintf(text, size, "%s",
			 context == NULL ? mmc_last_error() : device->name);
		if (context != NULL)
			mmc_ibv.close_device(context);
	} else if (device->state != IBV_PORT_ACTIVE) {
		snprintf(text, size, "%s:%u is not active", device->name,
			 device->port);
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

/* Returns whether `wanted`, "device" or "device:port", is this port. */
static bool is_named(const struct mmc_device *device, const char *wanted,
		     size_t length)
{
	size_t name = strlen(device->name);
	char port[16];

	if (length < name || strncmp(device->name, wanted, name) != 0)
		return false;
	if (length == name || device->port == 0)
		return length == name || wanted[name] == ':';
	snprintf(port, sizeof(port), ":%u", device->port);
	return strlen(port) == length - name &&
	       strncmp(wanted + name, port, length - name) == 0;
}

struct choice {
	const struct mmc_device *all;
	uint32_t nall;
	const struct mmc_device **usable;
	uint32_t nusable;
	bool any; /* a port that is named exists */
	char reason[256];
};

static void consider(struct choice *choice, const struct mmc_device *device)
{
	choice->any = true;
	if (is_usable(device))
		choice->usable[choice->nusable++] = device;
	else if (choice->reason[0] == '\0')
		explain(device, choice->reason, sizeof(choice->reason));
}

/*
 * Collects the usable ports that `devices` names, in its order; all usable ones if it
 * is empty.
 */
static void collect(struct choice *choice, const char *devices)
{
	devices += strspn(devices, ", ");
	for (uint32_t i = 0; i < choice->nall && *devices == '\0'; i++)
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

int mmc_verbs_device(const char *devices, uint32_t place,
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
			*found = *usable[place % choice.nusable];
		} else {
			mmc_error_set("no RDMA device can be used: %s",
				      choice.any
					      ? choice.reason
					      : "none has one of these names");
			rv = -MMC_ENODEV;
		}
	}
	free(usable);
	free(all);
	return rv;
}
