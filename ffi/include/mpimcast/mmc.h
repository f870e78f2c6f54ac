/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library as Python sees it: engines, teams, streams and requests.
 *
 * An engine serves one process. A team is this process's membership in one set
 * of processes: an endpoint of a transport and the addresses of the others. A
 * stream is a sequence of operations that all ranks of a team start in the same
 * order (the collectives of one communicator, say). A request is one operation
 * in flight.
 *
 * Nothing here calls MPI. Whatever must be equal on all ranks (options other
 * than ranks and addresses, channel ids, group, port) is agreed on beforehand.
 * Any thread may call; the calls on one request must not overlap. After fork()
 * a child's calls return -MMC_EFORKED and touch nothing.
 *
 * Functions return 0 (MMC_OK), MMC_EAGAIN where their contract says so, or a
 * negative mmc_error, with mmc_last_error() telling more.
 */
#ifndef MPIMCAST_MMC_H
#define MPIMCAST_MMC_H

#include <mpimcast/errors.h>
#include <stddef.h>
#include <stdint.h>

#define MMC_NAME_SIZE 64   /* bytes of a device's name with its final 0 */
#define MMC_FAULT_SIZE 512 /* bytes of a FAULT setting with its final 0 */

struct mmc_engine;
struct mmc_team;
struct mmc_stream;
struct mmc_request;

/* The version of wire format and state machine: differing ranks do not run. */
uint32_t mmc_wire_version(void);

/* A sentence for an error of either sign; never NULL. */
const char *mmc_strerror(int error);

/* What the calling thread's last failed call adds to its error, or "". */
const char *mmc_last_error(void);

/* ---- devices ------------------------------------------------------------ */

struct mmc_interface {
	char name[MMC_NAME_SIZE];
	uint32_t address; /* IPv4, host order */
	uint32_t netmask; /* likewise */
	uint32_t mtu_bytes;
	int loopback;
};

/*
 * Lists the interfaces that are up, can multicast, have an IPv4 address and are
 * not loopback, at most `nmax` of them, and writes how many to `*nfound`.
 * Returns 0, or -MMC_ENODEV with the reason in mmc_last_error().
 */
int mmc_udp_interfaces(struct mmc_interface *found, uint32_t nmax,
		       uint32_t *nfound);

/*
 * Finds the interface for multicast. `devices` is a comma-separated list of
 * interface names or IPv4 addresses, of which the first that is up wins; if it
 * is empty, the loopback interface when `same_host`, else the first interface
 * that is up, can multicast and is not loopback. Returns 0, or -MMC_ENODEV with
 * the reason in mmc_last_error().
 */
int mmc_udp_interface(const char *devices, int same_host,
		      struct mmc_interface *found);

/*
 * Finds the interface, with its address, that datagrams to `peer_address`
 * (IPv4, host order) leave from; nothing is sent. For an address of this host
 * that is the interface which has it. Returns 0, or -MMC_ENODEV with the reason
 * in mmc_last_error() if nothing leads there, or only an interface that is down
 * or cannot multicast.
 */
int mmc_udp_route(uint32_t peer_address, struct mmc_interface *found);

/*
 * The largest chunk, in bytes, that a datagram on `interface` carries beside
 * what `checksum` (0 off, 1 header, 2 full) takes; 0 if none finds room.
 */
uint32_t mmc_udp_chunk_bytes(const struct mmc_interface *interface,
			     uint32_t checksum);

/* A port of an RDMA device. */
struct mmc_device {
	char name[MMC_NAME_SIZE]; /* mlx5_0, say */
	uint32_t port;
	uint32_t ethernet;  /* 1: RoCE, 0: InfiniBand */
	uint32_t state;	    /* enum ibv_port_state; 4: active */
	uint32_t mtu_bytes; /* of a packet's payload, the active one */
	/*
	 * Of RoCE the GID that is the IPv4 address of a network interface, of
	 * InfiniBand the port's first; found by content, and its index.
	 */
	uint8_t gid[16];
	uint32_t gid_index;
	uint32_t lid;
	char interface[MMC_NAME_SIZE]; /* with `address`; "" for none */
	uint32_t address;	       /* IPv4, host order */
	uint32_t groups_max;	       /* multicast groups of the device */
	uint32_t group_members_max;    /* queue pairs in each */
};

/*
 * Lists the ports of all RDMA devices, at most `nmax` of them, usable or not,
 * and writes how many there are to `*nfound`. Returns 0, or -MMC_ENODEV if
 * libibverbs or librdmacm is missing or finds no device, with the reason.
 */
int mmc_verbs_list(struct mmc_device *found, uint32_t nmax, uint32_t *nfound);

/*
 * Finds the port for this rank, the `place`th on its host. `devices` is a
 * comma-separated list of "device" or "device:port", or empty for all; the
 * ranks of a host are spread over the usable ones. Returns 0, or -MMC_ENODEV
 * with the reason: none is active, has a fit GID, or lets this process open it.
 */
int mmc_verbs_device(const char *devices, uint32_t place,
		     struct mmc_device *found);

/* The largest chunk, in bytes, that a packet on `device` carries. */
uint32_t mmc_verbs_chunk_bytes(const struct mmc_device *device,
			       uint32_t checksum);

/* Checks a FAULT setting. Returns 0, or -MMC_EINVAL and why. */
int mmc_fault_check(const char *fault);

/* ---- engine and team ---------------------------------------------------- */

/* Starts this process's engine and its responder thread. */
int mmc_engine_create(struct mmc_engine **engine);

/* Stops the thread and frees the engine; its teams and memories must be gone. */
void mmc_engine_destroy(struct mmc_engine *engine);

/*
 * Sleeps until a request whose operation `notifies` has ended since this wrote
 * `*nended` last (0 at first), or until mmc_engine_rouse(). Writes how many have.
 * Returns 0 or a negative error.
 */
int mmc_engine_await(struct mmc_engine *engine, uint64_t *nended);

/* Wakes whoever sleeps in mmc_engine_await(), or the next who is about to. */
void mmc_engine_rouse(struct mmc_engine *engine);

/*
 * Moves everything on that can be without waiting, for a caller who waits for
 * something else while nobody attends to its teams.
 */
void mmc_engine_move(struct mmc_engine *engine);

/*
 * Lets the calling thread run on every CPU of the process's cpuset if it is bound
 * to one core: it has inherited that from a thread which computes there, and to
 * which a launcher has given the core. A wider mask stays, for it keeps threads
 * near their memory. The engine's own thread does so by itself.
 */
void mmc_thread_unbind(void);

/*
 * Allocates memory that is the engine's: as a result's place it is made readable
 * for other ranks once for each team, not again for every operation. Returns 0 or
 * a negative error.
 */
int mmc_memory_allocate(struct mmc_engine *engine, size_t nbytes,
			void **memory);

/* Frees it; no operation on it is in flight. */
void mmc_memory_free(struct mmc_engine *engine, void *memory);

/* A range of ports; with a count of 0 the kernel chooses. */
struct mmc_ports {
	uint32_t first;
	uint32_t count;
};

enum mmc_transport {
	MMC_TRANSPORT_UDP = 0,
	MMC_TRANSPORT_VERBS = 1,
};

/* How a rank of the verbs transport becomes a member of a group. */
enum mmc_join {
	MMC_JOIN_AUTO = 0,   /* by the first of the others that works */
	MMC_JOIN_CM = 1,     /* rdma_join_multicast(): the SM's, or IGMP's */
	MMC_JOIN_ATTACH = 2, /* ibv_attach_mcast(), a socket's membership */
};

struct mmc_team_options {
	uint32_t transport; /* enum mmc_transport */
	uint32_t rank;
	uint32_t nranks;
	uint32_t group; /* first multicast group, IPv4, host order */
	uint32_t
		subgroups; /* consecutive groups, that chunks are spread over */
	uint32_t ttl;
	uint32_t spins; /* a caller that waits polls and yields, not sleeps */
	uint32_t unattended; /* it moves in callers' own calls only */
	uint32_t crowded; /* some ranks wait for others to free a processor */
	/*
	 * How long a peer may be silent, if no stream says less. Over verbs the
	 * adapter's retries end in three eighths of it, and in the others a
	 * broken connection is made anew; 0: none is.
	 */
	uint64_t timeout_ns;

	/* UDP. */
	struct mmc_interface interface;
	uint32_t port;		/* that all groups are received on */
	struct mmc_ports ports; /* of this rank's own sockets */

	/* Verbs. */
	struct mmc_device device;
	uint32_t join; /* enum mmc_join */
	uint32_t qkey; /* random, bit 31 clear */
	uint32_t pkey_index;
	uint32_t service_level;
	uint32_t traffic_class;
	uint32_t receives;  /* posted for each subgroup; 0 chooses */
	uint32_t zero_copy; /* chunks may come right to the engine's memory */

	uint32_t chunk_bytes;	    /* payload of a full datagram; not 0 */
	uint32_t checksum;	    /* 0 off, 1 header, 2 full */
	uint64_t channel;	    /* of its probes: random, and no stream's */
	char fault[MMC_FAULT_SIZE]; /* "" for none */
};

/*
 * Opens this rank's endpoint: its own side of it, not yet groups or peers.
 * Returns 0 or a negative error; -MMC_EADDRINUSE if another `port` might do.
 */
int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team);

/* The bytes of an address; as many on every rank. */
uint32_t mmc_team_address_bytes(const struct mmc_team *team);

/* Writes this rank's address for the other ranks. */
void mmc_team_address(struct mmc_team *team, uint8_t *address);

/*
 * Takes the addresses of all ranks in rank order, connects to them and joins
 * the groups. Datagrams of others are served from here on.
 */
int mmc_team_connect(struct mmc_team *team, const uint8_t *addresses);

struct mmc_probe {
	uint32_t unheard;      /* ranks whose multicast has not come here */
	uint32_t unheard_full; /* likewise as long as a datagram can be */
	uint32_t rank;	       /* the first of the latter; UINT32_MAX: none */
};

/*
 * Multicasts probes, short and full-size, to every subgroup, and listens for at
 * most `slice_ns`, or until every rank's have come: call it again until all
 * ranks say so or patience ends. What was heard stays heard. Returns 0, with
 * `probe` written, or a negative error.
 */
int mmc_team_probe(struct mmc_team *team, uint64_t slice_ns,
		   struct mmc_probe *probe);

#define MMC_SURVEY_NUMBERS_MAX 65536
#define MMC_SURVEY_BYTES_MIN 8 /* the shortest payload */

/* What a rank has heard of another in a survey. */
struct mmc_hearing {
	uint32_t ndistinct;	/* numbers */
	uint32_t nduplicates;	/* of these */
	uint32_t longest_bytes; /* the longest payload */
	uint32_t nanswers;
	uint32_t round_trip_us; /* the least that an answer took */
	uint64_t first_ns;	/* when the first number came, and the last */
	uint64_t last_ns;
};

/*
 * Begins to count what each other rank sends in a survey, by numbers below
 * `nnumbers`, and forgets the one before. No rank sends before all have begun,
 * with the same `id`, which is no earlier one's. Returns 0 or a negative error.
 */
int mmc_team_survey_begin(struct mmc_team *team, uint32_t id,
			  uint32_t nnumbers);

/* Datagrams numbered from `first` on. */
struct mmc_salvo {
	uint32_t peer; /* a rank, or UINT32_MAX for multicast */
	uint32_t first;
	uint32_t count;
	uint32_t nbytes; /* of payload */
	uint32_t asks;	 /* they go the way of control, and want an answer */
};

/* Sends them as fast as they go. Returns 0 or a negative error. */
int mmc_team_survey_send(struct mmc_team *team, const struct mmc_salvo *salvo);

/*
 * Listens for `slice_ns`; a rank that does so, or sends, answers. Returns 0, with
 * what has been heard since the survey began in `heard` [nranks], or a negative
 * error.
 */
int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard);

/* Leaves the groups and closes the endpoint; its streams must be closed. */
void mmc_team_close(struct mmc_team *team);

/* ---- streams ------------------------------------------------------------ */

struct mmc_stream_options {
	uint64_t channel;      /* random; the low 16 bits are ignored */
	uint32_t chains;       /* 0 chooses */
	uint32_t window_bytes; /* 0: what the endpoint's buffers hold */
	uint32_t eager_bytes;  /* operations up to this in all skip the wait */
	uint32_t repair;       /* 0 nak, 1 neighbour, 2 read */
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns; /* 0: none */
	uint64_t late_timeout_ns;  /* for a rank that stands still; 0: none */
};

int mmc_stream_create(struct mmc_team *team,
		      const struct mmc_stream_options *options,
		      struct mmc_stream **stream);

/*
 * Starts nothing on the stream any more: mmc_start() fails with -MMC_EINVAL.
 * What has been started goes on, and others are served. A rank that waits for
 * this one in a later operation fails with -MMC_ELEFT, and so do all.
 */
void mmc_stream_leave(struct mmc_stream *stream);

/* Why nothing is multicast for the time being. */
struct mmc_detour {
	uint32_t epoch;	 /* the first without multicast; 0: multicast goes on */
	uint32_t rank;	 /* which gets no multicast of `sender` */
	uint32_t sender; /* UINT32_MAX: of any rank */
};

/* The first epoch without multicast, as mmc_detour.epoch says. */
uint32_t mmc_stream_unicast_epoch(struct mmc_stream *stream);

/* Writes since when, and why, blocks go round the ring instead. */
void mmc_stream_detour(struct mmc_stream *stream, struct mmc_detour *detour);

/*
 * Frees a stream. What is in flight is given up, its buffers are no longer
 * touched on return, and nothing about the stream is answered any more: peers
 * must have finished its operations or have failed.
 */
void mmc_stream_close(struct mmc_stream *stream);

/* ---- operations --------------------------------------------------------- */

enum mmc_kind {
	MMC_ALLGATHER = 1,
	MMC_ALLGATHERV = 2,
	MMC_BCAST = 3,
};

/*
 * What an operation moves: each rank's block from `send` to its place in `recv`
 * on all ranks (MPI-4.1 sections 6.7 and 6.4). Kind, root and sizes are equal on
 * all ranks; addresses and offsets are each rank's own.
 */
struct mmc_operation {
	uint32_t kind;	      /* enum mmc_kind */
	uint32_t root;	      /* of a Bcast: the only rank that has a block */
	uint32_t notifies;    /* its end wakes mmc_engine_await() */
	uint64_t block_bytes; /* each rank's block, of a Bcast the root's */
	/* Of an Allgatherv [nranks], not needed any more on return: */
	const uint64_t *blocks_bytes; /* the ranks' blocks */
	/* Where in `recv` they begin; NULL: one behind the other. */
	const uint64_t *offsets_bytes;
	const void *send; /* NULL: the own block lies in its place in `recv` */
	void *recv;
};

/*
 * Starts an operation, then waits as mmc_request_wait() does; 0 for `slice_ns`
 * only starts, which needs no other rank. Both buffers stay the library's until
 * the request is over.
 *
 * Returns 0 when it is over already, MMC_EAGAIN with `*request` to be waited
 * for, or an error. On an error of the operation itself `*request` is set, to
 * be asked for its failure and freed; else it is NULL and nothing was started.
 */
int mmc_start(struct mmc_stream *stream, const struct mmc_operation *operation,
	      uint64_t slice_ns, struct mmc_request **request);

/*
 * Waits for at most `slice_ns`. Returns 0 (over), MMC_EAGAIN (not yet) or the
 * operation's error; unless MMC_EAGAIN, the buffers are the caller's again.
 */
int mmc_request_wait(struct mmc_request *request, uint64_t slice_ns);

/*
 * Gives an operation up: the other ranks fail with -MMC_ECANCELED and the
 * stream is poisoned. On return nothing touches the buffers.
 */
void mmc_request_cancel(struct mmc_request *request);

/* Frees a request that is over. NULL is allowed. */
void mmc_request_free(struct mmc_request *request);

struct mmc_failure {
	int error; /* negative mmc_error; 0 if nothing failed */
	uint32_t epoch;
	uint32_t culprit;	 /* a rank; UINT32_MAX if none in particular */
	uint32_t missing_chunks; /* on this rank */
	/*
	 * For -MMC_EMISMATCH, of two ranks that differ: enum mmc_kind; if both
	 * are Bcasts their roots; unless it is an Allgatherv the bytes of a
	 * block, modulo 2^40. What then is equal is not what differs.
	 */
	uint32_t kind_min;
	uint32_t kind_max;
	uint32_t root_min;
	uint32_t root_max;
	uint64_t block_bytes_min;
	uint64_t block_bytes_max;
};

/* Why a request failed. */
void mmc_request_failure(struct mmc_request *request,
			 struct mmc_failure *failure);

/* The first failure of a stream: what poisoned it. */
void mmc_stream_failure(struct mmc_stream *stream, struct mmc_failure *failure);

struct mmc_waiting {
	uint64_t waited_ns; /* since the start of the operation */
	uint32_t entered;   /* whether all ranks have entered it */
	uint32_t epoch;	    /* 0 while earlier ones have to end first */
	uint32_t rank;	    /* whom it waits for first; UINT32_MAX: nobody */
	uint32_t late;	/* who has not entered; UINT32_MAX: nobody is known */
	uint32_t still; /* whether its process exists, but does not answer */
	uint32_t missing_chunks;
};

/* What a request waits for, for log lines. */
void mmc_request_waiting(struct mmc_request *request,
			 struct mmc_waiting *waiting);

/* ---- counters ----------------------------------------------------------- */

/* The number of counters of a stream. */
uint32_t mmc_counter_count(void);

/* The name of counter `index`, below mmc_counter_count(), as in stats(). */
const char *mmc_counter_name(uint32_t index);

/* Copies a stream's counters, mmc_counter_count() of them, to `values`. */
void mmc_stream_counters(struct mmc_stream *stream, uint64_t *values);

/* Likewise those of what has come to a team and is of no stream. */
void mmc_team_counters(struct mmc_team *team, uint64_t *values);

#endif
