/* SPDX-License-Identifier: BSD-3-Clause */
/* A team: this process's endpoint, and the addresses of the other ranks. */
#ifndef MPIMCAST_TEAM_H
#define MPIMCAST_TEAM_H

#include <mpimcast/devices.h>
#include <mpimcast/protect.h>
#include <mpimcast/proxy.h>
#include <stdint.h>

struct mmc_engine;
struct mmc_team;

#define MMC_FAULT_SIZE 512 /* bytes of a FAULT setting, with the final 0 */

/*
 * Checks a FAULT setting. Returns 0, or -MMC_EINVAL with the reason in
 * mmc_last_error().
 */
int mmc_fault_check(const char *fault);

/* The UDP ports from `first` on, `count` of them; if it is 0, the kernel chooses. */
struct mmc_ports {
	uint32_t first;
	uint32_t count;
};

enum mmc_transport {
	MMC_TRANSPORT_UDP = 0,
	MMC_TRANSPORT_VERBS = 1,
};

/* How a rank on the verbs transport joins a multicast group. */
enum mmc_join {
	MMC_JOIN_AUTO = 0, /* MMC_JOIN_CM or, if that fails, MMC_JOIN_ATTACH */
	MMC_JOIN_CM = 1,   /* rdma_join_multicast(): subnet manager or IGMP */
	MMC_JOIN_ATTACH = 2, /* ibv_attach_mcast(), and a socket for IGMP */
};

struct mmc_team_options {
	uint32_t transport; /* enum mmc_transport */
	uint32_t rank;
	uint32_t nranks;
	uint32_t group;	    /* the first multicast group, IPv4, host order */
	uint32_t subgroups; /* number of consecutive groups */
	uint32_t ttl;	    /* of multicast packets */
	/* Whether callers that wait poll and yield the CPU instead of sleeping. */
	uint32_t spins;
	/* Whether progress is made inside calls only, not by the responder. */
	uint32_t unattended;
	uint32_t crowded; /* whether some machine has fewer CPUs than ranks */
	/*
	 * Whether the team is a pair: two ranks, each of which sends by unicast to the
	 * other what a team multicasts. It joins no groups. In a pair the option
	 * `window_bytes` of a stream counts even if receive buffers hold less: on a long
	 * link most of a window is on its way.
	 */
	uint32_t pair;
	/*
	 * How long a peer may be silent, unless a stream says less. Over verbs the
	 * adapter's retries take up to three eighths of it; the other five eighths are
	 * left to set up a connection anew that has come down. With 0 none is set up
	 * anew.
	 */
	uint64_t timeout_ns;

	/* UDP. */
	struct mmc_interface interface;
	uint32_t port;		/* all groups are received on it */
	struct mmc_ports ports; /* for this rank's own sockets */
	uint32_t workers;	/* whether a thread receives each subgroup */

	/* Verbs. */
	struct mmc_device device;
	uint32_t join; /* enum mmc_join */
	uint32_t qkey; /* random, bit 31 clear */
	uint32_t pkey_index;
	uint32_t service_level;
	uint32_t traffic_class;
	uint32_t receives; /* posted per subgroup; 0: the driver chooses */
	/* Whether the device may put chunks in place in the engine's memory. */
	uint32_t zero_copy;

	uint32_t chunk_bytes; /* payload of a full datagram; not 0 */
	uint32_t checksum;    /* 0 off, 1 header, 2 full */
	/* The channel of probes and surveys: random, and not that of a stream. */
	uint64_t channel;
	/*
	 * enum mmc_protect, and unless that is off, the enum mmc_primitive_kind by which.
	 * Chunks and control messages become longer by MMC_SEAL_BYTES. A seal covers all
	 * that a checksum does, so CHECKSUM=full adds nothing, and neither zero-copy
	 * receive nor reads of other ranks' memory are possible.
	 */
	uint32_t protect;
	uint32_t primitive;
	char fault[MMC_FAULT_SIZE]; /* a FAULT setting, or "" */
	/* The proxy that runs the team's operations; "": this process's engine does. */
	char proxy[MMC_PROXY_NAME_SIZE];
};

/*
 * Opens this rank's endpoint, but joins no group and connects to no peer yet, and
 * writes the team to `*team`. Returns 0 or a negative error; it is -MMC_EADDRINUSE if
 * `port` is taken and another port may be free.
 */
int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team);

/* Writes to `*runner` what runs the team's operations. */
void mmc_team_runner(const struct mmc_team *team, struct mmc_runner *runner);

/*
 * Returns the length in bytes of an address of the team, which is equal on all ranks.
 */
uint32_t mmc_team_address_bytes(const struct mmc_team *team);

/*
 * Writes this rank's address to `address`, mmc_team_address_bytes() long. The program
 * passes it to the other ranks.
 */
void mmc_team_address(struct mmc_team *team, uint8_t *address);

/*
 * Gives a protected team its secret, equal on all ranks, before it is connected. The
 * secret is wiped: it keys one team only. Returns 0, -MMC_ENOMEM, or -MMC_EINVAL if the
 * team is not protected, or it or the secret was keyed before.
 */
int mmc_team_protect(struct mmc_team *team, struct mmc_secret *secret);

/*
 * Connects to the ranks whose addresses are in `addresses`, those of all ranks in rank
 * order, and joins the groups. From now on the team receives and answers datagrams.
 * Returns 0 or a negative error.
 */
int mmc_team_connect(struct mmc_team *team, const uint8_t *addresses);

/*
 * Leaves the groups and closes the endpoint. The team's streams must have been closed
 * before.
 */
void mmc_team_close(struct mmc_team *team);

#endif
