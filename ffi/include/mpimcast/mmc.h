/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C API, as Python uses it: engines, teams, streams and requests.
 *
 * An engine serves one process. A team is this process's membership in one set of
 * processes: an endpoint of a transport, and the addresses of the other ranks. A stream
 * is a sequence of operations that all ranks of a team start in the same order, such as
 * the collectives of one communicator. A request is one operation in flight.
 *
 * The library never calls MPI. Its user agrees beforehand on everything that must be
 * equal on all ranks: options other than ranks and addresses, channel ids, group, port.
 * Any thread may call, but calls on one request must not overlap. In a child of fork()
 * calls return -MMC_EFORKED and change nothing.
 *
 * Functions return 0 (MMC_OK), MMC_EAGAIN where their contract says so, or a negative
 * mmc_error; mmc_last_error() then tells more.
 */
#ifndef MPIMCAST_MMC_H
#define MPIMCAST_MMC_H

#include <mpimcast/errors.h>
#include <stddef.h>
#include <stdint.h>

#define MMC_NAME_SIZE 64   /* bytes of a device's name, with the final 0 */
#define MMC_FAULT_SIZE 512 /* bytes of a FAULT setting, with the final 0 */

struct mmc_engine;
struct mmc_team;
struct mmc_stream;
struct mmc_request;

/* Returns the wire format's and state machine's version; equal on all ranks. */
uint32_t mmc_wire_version(void);

/* Returns a sentence for an error of either sign; never NULL. */
const char *mmc_strerror(int error);

/* Returns details of the calling thread's last failed call, or "". */
const char *mmc_last_error(void);

/* ---- devices ------------------------------------------------------------ */

struct mmc_interface {
	char name[MMC_NAME_SIZE];
	uint32_t address; /* IPv4, host order */
	uint32_t netmask; /* IPv4, host order */
	uint32_t mtu_bytes;
	int loopback;
};

/*
 * Lists at most `nmax` interfaces that are up, can multicast, have an IPv4 address and
 * are not loopback, and writes their number to `*nfound`. Returns 0, or -MMC_ENODEV
 * with the reason in mmc_last_error().
 */
int mmc_udp_interfaces(struct mmc_interface *found, uint32_t nmax,
		       uint32_t *nfound);

/*
 * Finds the interface for multicast. `devices` is a comma-separated list of interface
 * names or IPv4 addresses: the first one that is up is chosen. With an empty list, the
 * loopback interface is chosen if `same_host`, else the first interface that is up, can
 * multicast and is not loopback. Returns 0, or -MMC_ENODEV with the reason in
 * mmc_last_error().
 */
int mmc_udp_interface(const char *devices, int same_host,
		      struct mmc_interface *found);

/*
 * Finds the interface, and its address, from which datagrams to `peer_address` (IPv4,
 * host order) leave; sends nothing. An address of this host yields the interface that
 * has it. Returns 0, or -MMC_ENODEV with the reason in mmc_last_error() if there is no
 * route, or only one through an interface that is down or cannot multicast.
 */
int mmc_udp_route(uint32_t peer_address, struct mmc_interface *found);

/*
 * Returns the largest chunk, in bytes, that a datagram on `interface` carries with
 * `checksum` (0 off, 1 header, 2 full); 0 if not even one byte fits.
 */
uint32_t mmc_udp_chunk_bytes(const struct mmc_interface *interface,
			     uint32_t checksum);

/* A port of an RDMA device. */
struct mmc_device {
	char name[MMC_NAME_SIZE]; /* mlx5_0, say */
	uint32_t port;
	uint32_t ethernet;  /* 1: RoCE; 0: InfiniBand */
	uint32_t state;	    /* enum ibv_port_state; 4: active */
	uint32_t mtu_bytes; /* active MTU: payload of a packet */
	/*
	 * On RoCE, the GID that holds the IPv4 address of a network interface; on
	 * InfiniBand, the port's first. It is found by content; `gid_index` is its
	 * index.
	 */
	uint8_t gid[16];
	uint32_t gid_index;
	uint32_t lid;
	char interface[MMC_NAME_SIZE]; /* the one with `address`; "" if none */
	uint32_t address;	       /* IPv4, host order */
	uint32_t groups_max; /* multicast groups that the device supports */
	uint32_t group_members_max; /* queue pairs in each group */
};

/*
 * Lists at most `nmax` ports of all RDMA devices, usable or not, and writes the number
 * that exist to `*nfound`. Returns 0, or -MMC_ENODEV with the reason if libibverbs or
 * librdmacm is missing or finds no device.
 */
int mmc_verbs_list(struct mmc_device *found, uint32_t nmax, uint32_t *nfound);

/*
 * Finds the port for this rank, which is number `place` on its host. `devices` is a
 * comma-separated list of "device" or "device:port", or empty for all; the ranks of a
 * host are spread over the usable ports. Returns 0, or -MMC_ENODEV with the reason: no
 * port is active, has a suitable GID, or can be opened by this process.
 */
int mmc_verbs_device(const char *devices, uint32_t place,
		     struct mmc_device *found);

/* Returns the largest chunk, in bytes, that a packet on `device` carries. */
uint32_t mmc_verbs_chunk_bytes(const struct mmc_device *device,
			       uint32_t checksum);

/* Checks a FAULT setting. Returns 0, or -MMC_EINVAL with the reason. */
int mmc_fault_check(const char *fault);

/* ---- engine and team ---------------------------------------------------- */

/* Creates this process's engine and starts its responder thread. */
int mmc_engine_create(struct mmc_engine **engine);

/* Stops the thread and frees the engine; free its teams and memories first. */
void mmc_engine_destroy(struct mmc_engine *engine);

/*
 * Sleeps until a request whose operation `notifies` has ended since this call last
 * wrote `*nended` (0 at first), or until mmc_engine_rouse(). Writes the number of such
 * requests that have ended. Returns 0 or a negative error.
 */
int mmc_engine_await(struct mmc_engine *engine, uint64_t *nended);

/* Wakes a thread in mmc_engine_await(), or the next one to call it. */
void mmc_engine_rouse(struct mmc_engine *engine);

/*
 * Makes all progress that is possible without waiting. For a caller that waits for
 * something else while its teams are unattended.
 */
void mmc_engine_move(struct mmc_engine *engine);

/*
 * Lets the calling thread run on every CPU of the process's cpuset if it is bound to
 * one core: a new thread inherits that from one that computes there, to which a
 * launcher has given the core. A wider mask stays, since it keeps threads near their
 * memory. The responder thread calls this itself.
 */
void mmc_thread_unbind(void);

/*
 * Allocates memory that the engine owns. A result in such memory is registered for
 * other ranks once per team, not once per operation. Returns 0 or a negative error.
 */
int mmc_memory_allocate(struct mmc_engine *engine, size_t nbytes,
			void **memory);

/* Frees memory of mmc_memory_allocate(); no operation on it may be in flight. */
void mmc_memory_free(struct mmc_engine *engine, void *memory);

/* A range of ports; if `count` is 0, the kernel chooses ports. */
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
	MMC_JOIN_AUTO = 0, /* the first of the other two that works */
	MMC_JOIN_CM = 1,   /* rdma_join_multicast(): through the SM, or IGMP */
	MMC_JOIN_ATTACH = 2, /* ibv_attach_mcast() and a socket's membership */
};

struct mmc_team_options {
	uint32_t transport; /* enum mmc_transport */
	uint32_t rank;
	uint32_t nranks;
	uint32_t group;	    /* the first multicast group, IPv4, host order */
	uint32_t subgroups; /* number of consecutive groups */
	uint32_t ttl;
	uint32_t spins; /* waiting callers poll and yield instead of sleeping */
	uint32_t unattended; /* progress is made in callers' calls only */
	uint32_t crowded;    /* some machine has fewer CPUs than ranks */
	/*
	 * How long a peer may be silent, unless a stream says less. Over verbs the
	 * adapter's retries end within three eighths of it, and the other five eighths
	 * are left to reconnect a broken connection; with 0 none is reconnected.
	 */
	uint64_t timeout_ns;

	/* UDP. */
	struct mmc_interface interface;
	uint32_t port;		/* all groups are received on it */
	struct mmc_ports ports; /* for this rank's own sockets */

	/* Verbs. */
	struct mmc_device device;
	uint32_t join; /* enum mmc_join */
	uint32_t qkey; /* random, bit 31 clear */
	uint32_t pkey_index;
	uint32_t service_level;
	uint32_t traffic_class;
	uint32_t receives;  /* posted per subgroup; 0: the driver chooses */
	uint32_t zero_copy; /* chunks may come in place, to engine memory */

	uint32_t chunk_bytes; /* payload of a full datagram; not 0 */
	uint32_t checksum;    /* 0 off, 1 header, 2 full */
	uint64_t channel;     /* of probes and surveys: random, no stream's */
	char fault[MMC_FAULT_SIZE]; /* a FAULT setting, or "" */
};

/*
 * Opens this rank's side of an endpoint, without joining groups or connecting to peers.
 * Returns 0 or a negative error; -MMC_EADDRINUSE if another `port` may be free.
 */
int mmc_team_create(struct mmc_engine *engine,
		    const struct mmc_team_options *options,
		    struct mmc_team **team);

/* Returns the length of an address in bytes, equal on every rank. */
uint32_t mmc_team_address_bytes(const struct mmc_team *team);

/* Writes this rank's address, to be passed to the other ranks. */
void mmc_team_address(struct mmc_team *team, uint8_t *address);

/*
 * Takes the addresses of all ranks in rank order, connects to the ranks and joins the
 * groups. From here on the team receives and answers datagrams. Returns 0 or a negative
 * error.
 */
int mmc_team_connect(struct mmc_team *team, const uint8_t *addresses);

struct mmc_probe {
	uint32_t unheard; /* ranks whose probes are missing in a subgroup */
	uint32_t unheard_full; /* ranks whose full-size probes are missing */
	uint32_t rank; /* the first of `unheard_full`; UINT32_MAX: none */
};

/*
 * Multicasts short and full-size probes to every subgroup, and listens for at most
 * `slice_ns`, or until every rank's probes have arrived. To be called again until all
 * ranks report success or the caller gives up; what was heard stays heard. Returns 0
 * with `probe` written, or a negative error.
 */
int mmc_team_probe(struct mmc_team *team, uint64_t slice_ns,
		   struct mmc_probe *probe);

#define MMC_SURVEY_NUMBERS_MAX 65536
#define MMC_SURVEY_BYTES_MIN 8 /* the shortest payload */

/* This rank's observations of another rank in a survey. */
struct mmc_hearing {
	uint32_t ndistinct;	/* distinct numbers received */
	uint32_t nduplicates;	/* datagrams that repeat a number */
	uint32_t longest_bytes; /* longest payload received */
	uint32_t nanswers;
	uint32_t round_trip_us; /* the shortest time that an answer took */
	uint64_t first_ns;	/* arrival of the first distinct number */
	uint64_t last_ns;	/* arrival of the last distinct number */
};

/*
 * Begins a survey: counts what each other rank sends under numbers below `nnumbers`,
 * and forgets the previous survey. Ranks may send only after all have begun, with the
 * same `id`, which no earlier survey had. Returns 0 or a negative error.
 */
int mmc_team_survey_begin(struct mmc_team *team, uint32_t id,
			  uint32_t nnumbers);

/* Datagrams with consecutive numbers from `first` on. */
struct mmc_salvo {
	uint32_t peer; /* a rank, or UINT32_MAX for multicast */
	uint32_t first;
	uint32_t count;
	uint32_t nbytes; /* payload of each datagram */
	uint32_t asks;	 /* sent as control; each asks for an answer */
};

/* Sends the datagrams of `salvo` as fast as they go. Returns 0 or a negative error. */
int mmc_team_survey_send(struct mmc_team *team, const struct mmc_salvo *salvo);

/*
 * Listens for `slice_ns`. A rank answers questions while it listens or sends. Returns 0
 * with what has been heard since the survey began in `heard` [nranks], or a negative
 * error.
 */
int mmc_team_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			   struct mmc_hearing *heard);

/* Leaves the groups and closes the endpoint. Close the team's streams first. */
void mmc_team_close(struct mmc_team *team);

/* ---- streams ------------------------------------------------------------ */

struct mmc_stream_options {
	uint64_t channel;      /* random; the low 16 bits are ignored */
	uint32_t chains;       /* number of chains; 0: chosen by the library */
	uint32_t window_bytes; /* 0: as measured, at most what buffers hold */
	uint32_t eager_bytes;  /* total up to which no barrier is waited for */
	uint32_t repair;       /* 0 nak, 1 neighbour, 2 read */
	uint64_t timeout_ns;
	uint64_t entry_timeout_ns; /* 0: none */
	uint64_t late_timeout_ns;  /* silence of an existing process; 0: none */
};

int mmc_stream_create(struct mmc_team *team,
		      const struct mmc_stream_options *options,
		      struct mmc_stream **stream);

/*
 * Announces that this rank starts nothing on the stream any more: mmc_start() then
 * fails with -MMC_EINVAL. Operations that were started continue, and other ranks are
 * still served. A rank that waits for this one in a later operation fails with
 * -MMC_ELEFT, and so do all ranks.
 */
void mmc_stream_leave(struct mmc_stream *stream);

/* Why a stream has stopped using multicast. */
struct mmc_detour {
	uint32_t epoch;	 /* the first without multicast; 0: none */
	uint32_t rank;	 /* the rank that hears no multicast of `sender` */
	uint32_t sender; /* UINT32_MAX: it hears no rank's */
};

/* Returns the first epoch without multicast, as mmc_detour.epoch does. */
uint32_t mmc_stream_unicast_epoch(struct mmc_stream *stream);

/* Writes since which epoch, and why, blocks travel round the ring instead. */
void mmc_stream_detour(struct mmc_stream *stream, struct mmc_detour *detour);

/*
 * Frees a stream. Operations in flight are given up; on return their buffers are no
 * longer touched, and nothing about the stream is answered any more. Peers must have
 * finished its operations, or have failed.
 */
void mmc_stream_close(struct mmc_stream *stream);

/* ---- operations --------------------------------------------------------- */

enum mmc_kind {
	MMC_ALLGATHER = 1,
	MMC_ALLGATHERV = 2,
	MMC_BCAST = 3,
};

/*
 * The arguments of an operation, which moves each rank's block from `send` to its place
 * in `recv` on all ranks (MPI-4.1 sections 6.7 and 6.4). Kind, root and sizes are equal
 * on all ranks; addresses and offsets are each rank's own.
 */
struct mmc_operation {
	uint32_t kind;	      /* enum mmc_kind */
	uint32_t root;	      /* Bcast: the only rank that has a block */
	uint32_t notifies;    /* its end wakes mmc_engine_await() */
	uint64_t block_bytes; /* each rank's block; Bcast: the root's */
	/* For an Allgatherv, [nranks] each; not read after the call. */
	const uint64_t *blocks_bytes;  /* the size of each rank's block */
	const uint64_t *offsets_bytes; /* of each in `recv`; NULL: adjacent */
	const void *send; /* NULL: this rank's block is already in its place */
	void *recv;
};

/*
 * Starts an operation, then waits as mmc_request_wait() does. With a `slice_ns` of 0 it
 * only starts the operation, which needs no other rank. Both buffers belong to the
 * library until the request completes.
 *
 * Returns 0 if the operation is already complete, MMC_EAGAIN with `*request` to be
 * waited for, or an error. After an error of the operation itself `*request` is set, to
 * be asked for its failure and freed; else it is NULL and nothing was started.
 */
int mmc_start(struct mmc_stream *stream, const struct mmc_operation *operation,
	      uint64_t slice_ns, struct mmc_request **request);

/*
 * Waits for at most `slice_ns`. Returns 0 (complete), MMC_EAGAIN (not yet) or the
 * operation's error; unless it is MMC_EAGAIN, the buffers are the caller's again.
 */
int mmc_request_wait(struct mmc_request *request, uint64_t slice_ns);

/*
 * Cancels an operation: the other ranks fail with -MMC_ECANCELED and the stream is
 * poisoned. On return nothing touches the buffers.
 */
void mmc_request_cancel(struct mmc_request *request);

/* Frees a request that has completed. NULL is allowed. */
void mmc_request_free(struct mmc_request *request);

struct mmc_failure {
	int error; /* negative mmc_error; 0 if nothing failed */
	uint32_t epoch;
	uint32_t culprit;	 /* a rank; UINT32_MAX: none in particular */
	uint32_t missing_chunks; /* chunks that this rank lacks */
	/*
	 * For -MMC_EMISMATCH, how two ranks' operations differ: their kinds (enum
	 * mmc_kind); if both are Bcasts, their roots; unless one is an Allgatherv, the
	 * bytes of a block, modulo 2^40. A pair of equal values is not the difference.
	 */
	uint32_t kind_min;
	uint32_t kind_max;
	uint32_t root_min;
	uint32_t root_max;
	uint64_t block_bytes_min;
	uint64_t block_bytes_max;
};

/* Writes why a request failed. */
void mmc_request_failure(struct mmc_request *request,
			 struct mmc_failure *failure);

/* Writes the first failure of a stream, which poisoned it. */
void mmc_stream_failure(struct mmc_stream *stream, struct mmc_failure *failure);

struct mmc_waiting {
	uint64_t waited_ns; /* time since the operation's start */
	uint32_t entered;   /* whether all ranks are known to have entered */
	uint32_t epoch;	    /* 0 while it waits for earlier operations */
	uint32_t rank;	    /* the rank awaited first; UINT32_MAX: none */
	uint32_t late; /* a rank that has not entered; UINT32_MAX: none known */
	uint32_t still; /* whether the awaited process exists but is silent */
	uint32_t missing_chunks;
};

/* Writes what a request waits for, for log lines. */
void mmc_request_waiting(struct mmc_request *request,
			 struct mmc_waiting *waiting);

/* ---- counters ----------------------------------------------------------- */

/* Returns the number of a stream's counters. */
uint32_t mmc_counter_count(void);

/* Returns the name of counter `index`, below mmc_counter_count(), as in stats(). */
const char *mmc_counter_name(uint32_t index);

/* Copies a stream's mmc_counter_count() counters to `values`. */
void mmc_stream_counters(struct mmc_stream *stream, uint64_t *values);

/* Copies a team's mmc_counter_count() counters, those of no stream, to `values`. */
void mmc_team_counters(struct mmc_team *team, uint64_t *values);

#endif
