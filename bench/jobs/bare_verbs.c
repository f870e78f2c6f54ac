/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare multicast Allgather over verbs, which mpimcast is measured against: nothing
 * that checks and repairs can be faster. It has no headers, no bitmap, no window and no
 * repairs, and does not check who has sent a datagram. A datagram's immediate data is
 * the number of its chunk. All ranks send at the same time, and have as many receives
 * posted as an operation can need. A lost chunk ends the program.
 *
 *	bare_verbs RANKS BYTES REPEAT
 *
 * forks RANKS ranks, each of which uses an RDMA device of its own, and gathers blocks
 * of BYTES bytes REPEAT times. For each operation it prints a line with the seconds
 * from the last rank's start to the last rank's end.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 16
#define CHUNK_BYTES 4096
#define GRH_BYTES 40 /* before the payload of a received datagram */
#define SLOT_BYTES (GRH_BYTES + CHUNK_BYTES)
#define SENDS_MAX 64 /* posted and not yet completed */
#define BATCH 16     /* sends; the device reports only the end of the last */
#define PORT 1
#define GIDS_MAX 16 /* how many of a port's GIDs are looked at */
#define GROUP "239.192.77.1"
#define MULTICAST_QPN 0xffffff /* as InfiniBand has it for every group */
#define QKEY 0x1234
#define LIMIT_S 20.0 /* for one operation */

/* The memory that the ranks share. */
struct shared {
	volatile uint32_t narrived;  /* ranks that wait in the barrier */
	volatile uint32_t nbarriers; /* barriers that have ended */
	volatile double begin_s[RANKS_MAX];
	volatile double end_s[RANKS_MAX];
};

struct rank {
	struct shared *shared;
	uint32_t number, nranks, block_chunks;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *block_mr, *slots_mr;
	uint8_t *result;
	uint8_t *slots; /* where the posted receives put datagrams */
	uint32_t nslots;
	uint32_t nsending; /* sends that were posted and have not completed */
};

/* Exits with the reason in errno. */
static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns what a call has created; exits if that is NULL. */
static void *need(void *created, const char *what)
{
	if (created == NULL)
		die(what);
	return created;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Waits until all ranks have entered the barrier. */
static void barrier(struct rank *rank)
{
	struct shared *shared = rank->shared;
	uint32_t before = shared->nbarriers;

	if (__atomic_add_fetch(&shared->narrived, 1, __ATOMIC_SEQ_CST) ==
	    rank->nranks) {
		shared->narrived = 0;
		__atomic_store_n(&shared->nbarriers, before + 1,
				 __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&shared->nbarriers, __ATOMIC_SEQ_CST) == before)
		sched_yield();
}

/* ---- opening ------------------------------------------------------------- */

/*
 * Returns the index of the port's first GID that is an IPv4 address, and writes that
 * address to `address`. Exits if there is none.
 */
static int find_gid(struct ibv_context *context, struct in_addr *address)
{
	/* The prefix of IPv4 addresses that are mapped to IPv6. */
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;

	for (int i = 0; i < GIDS_MAX; i++) {
		if (ibv_query_gid(context, PORT, i, &gid) != 0 ||
		    memcmp(gid.raw, prefix, sizeof(prefix)) != 0)
			continue;
		memcpy(address, gid.raw + sizeof(prefix), sizeof(*address));
		return i;
	}
	fprintf(stderr, "the device has no GID that is an IPv4 address\n");
	exit(1);
}

/* Creates the rank's UD queue pair, and makes it ready to send and to receive. */
static void open_queue(struct rank *rank)
{
	struct ibv_qp_init_attr init = {
		.send_cq = rank->send_cq,
		.recv_cq = rank->recv_cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = SENDS_MAX,
			 .max_recv_wr = rank->nslots,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qkey = QKEY };

	rank->qp = need(ibv_create_qp(rank->pd, &init), "ibv_create_qp");
	if (ibv_modify_qp(rank->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_QKEY) != 0)
		die("ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(rank->qp, &attr, IBV_QP_STATE) != 0)
		die("ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(rank->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
		die("ibv_modify_qp to RTS");
}

/*
 * Joins GROUP on the interface that has the address `own`, and prepares to send to it.
 */
static void join(struct rank *rank, int gid_index, struct in_addr own)
{
	struct ip_mreq member = { .imr_interface = own };
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff } };
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .sgid_index = (uint8_t)gid_index, .hop_limit = 1 },
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, GROUP, &member.imr_multiaddr);
	if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member,
		       sizeof(member)) != 0)
		die("IP_ADD_MEMBERSHIP");
	memcpy(group.raw + 12, &member.imr_multiaddr, 4);
	if (ibv_attach_mcast(rank->qp, &group, 0) != 0)
		die("ibv_attach_mcast");
	to.grh.dgid = group;
	rank->ah = need(ibv_create_ah(rank->pd, &to), "ibv_create_ah");
}

static void post_receive(struct rank *rank, uint32_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(rank->slots + (size_t)slot * SLOT_BYTES),
		.length = SLOT_BYTES,
		.lkey = rank->slots_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(rank->qp, &wr, &bad) != 0)
		die("ibv_post_recv");
}

/* Opens the rank's device, allocates its memory, and posts a receive for each slot. */
static void open_rank(struct rank *rank)
{
	size_t block_bytes = (size_t)rank->block_chunks * CHUNK_BYTES;
	struct ibv_device **list;
	struct in_addr own;
	int gid_index, ndevices;

	list = need(ibv_get_device_list(&ndevices), "ibv_get_device_list");
	if ((uint32_t)ndevices < rank->nranks) {
		fprintf(stderr,
			"%u ranks need a device each, but there are only %d\n",
			rank->nranks, ndevices);
		exit(1);
	}
	rank->context =
		need(ibv_open_device(list[rank->number]), "ibv_open_device");
	rank->pd = need(ibv_alloc_pd(rank->context), "ibv_alloc_pd");
	/*
	 * There are slots for all ranks, since a device also receives its own
	 * multicast.
	 */
	rank->nslots = rank->nranks * rank->block_chunks;
	rank->result = need(malloc(rank->nranks * block_bytes), "malloc");
	rank->slots = need(malloc((size_t)rank->nslots * SLOT_BYTES), "malloc");
	memset(rank->result, (int)rank->number, rank->nranks * block_bytes);
	rank->block_mr = need(
		ibv_reg_mr(rank->pd, rank->result + rank->number * block_bytes,
			   block_bytes, 0),
		"ibv_reg_mr");
	rank->slots_mr = need(ibv_reg_mr(rank->pd, rank->slots,
					 (size_t)rank->nslots * SLOT_BYTES,
					 IBV_ACCESS_LOCAL_WRITE),
			      "ibv_reg_mr");
	rank->send_cq =
		need(ibv_create_cq(rank->context, SENDS_MAX, NULL, NULL, 0),
		     "ibv_create_cq");
	rank->recv_cq = need(ibv_create_cq(rank->context, (int)rank->nslots,
					   NULL, NULL, 0),
			     "ibv_create_cq");
	gid_index = find_gid(rank->context, &own);
	open_queue(rank);
	join(rank, gid_index, own);
	for (uint32_t slot = 0; slot < rank->nslots; slot++)
		post_receive(rank, slot);
}

/* ---- an operation -------------------------------------------------------- */

/* Posts the send of chunk `index` of this rank's block. */
static void send_chunk(struct rank *rank, uint32_t index)
{
	uint32_t chunk = rank->number * rank->block_chunks + index;
	struct ibv_sge sge = {
		.addr = (uintptr_t)(rank->result + (size_t)chunk * CHUNK_BYTES),
		.length = CHUNK_BYTES,
		.lkey = rank->block_mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(chunk),
		.send_flags = index % BATCH == BATCH - 1 ? IBV_SEND_SIGNALED
							 : 0,
		.wr.ud = { .ah = rank->ah,
			   .remote_qpn = MULTICAST_QPN,
			   .remote_qkey = QKEY },
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(rank->qp, &wr, &bad) != 0)
		die("ibv_post_send");
	rank->nsending++;
}

/* Subtracts the batches of sends that have completed from the sends under way. */
static void reap_sends(struct rank *rank)
{
	struct ibv_wc wc[SENDS_MAX / BATCH];
	int count = ibv_poll_cq(rank->send_cq, SENDS_MAX / BATCH, wc);

	if (count < 0)
		die("ibv_poll_cq");
	rank->nsending -= (uint32_t)count * BATCH;
}

/* Copies to the result the chunks that have arrived from others; returns how many. */
static uint32_t receive(struct rank *rank)
{
	struct ibv_wc wc[BATCH];
	int count = ibv_poll_cq(rank->recv_cq, BATCH, wc);
	uint32_t received = 0;

	if (count < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < count; i++) {
		uint32_t slot = (uint32_t)wc[i].wr_id;
		uint32_t chunk = ntohl(wc[i].imm_data);

		if (chunk / rank->block_chunks != rank->number) {
			memcpy(rank->result + (size_t)chunk * CHUNK_BYTES,
			       rank->slots + (size_t)slot * SLOT_BYTES +
				       GRH_BYTES,
			       CHUNK_BYTES);
			received++;
		}
		post_receive(rank, slot);
	}
	if (count == 0)
		sched_yield();
	return received;
}

/* Runs one Allgather, and records when it began and ended on this rank. */
static void gather(struct rank *rank)
{
	uint32_t missing = (rank->nranks - 1) * rank->block_chunks;
	uint32_t sent = 0;
	double begin_s = now_s();

	while (missing > 0 || sent < rank->block_chunks) {
		while (sent < rank->block_chunks &&
		       rank->nsending + BATCH <= SENDS_MAX) {
			for (uint32_t i = 0; i < BATCH; i++)
				send_chunk(rank, sent++);
		}
		reap_sends(rank);
		missing -= receive(rank);
		if (now_s() - begin_s > LIMIT_S) {
			fprintf(stderr, "rank %u lacks %u chunks after %g s\n",
				rank->number, missing, LIMIT_S);
			exit(1);
		}
	}
	rank->shared->begin_s[rank->number] = begin_s;
	rank->shared->end_s[rank->number] = now_s();
}

/* Returns the latest of the ranks' times. */
static double latest(const struct rank *rank, const volatile double *times_s)
{
	double found_s = 0;

	for (uint32_t r = 0; r < rank->nranks; r++)
		if (times_s[r] > found_s)
			found_s = times_s[r];
	return found_s;
}

/* Runs a forked rank to its end, and exits; rank 0 prints the times. */
static void run_rank(struct rank *rank, uint32_t repeat)
{
	const struct shared *shared = rank->shared;

	open_rank(rank);
	for (uint32_t i = 0; i < repeat; i++) {
		barrier(rank);
		gather(rank);
		barrier(rank);
		if (rank->number == 0)
			printf("%.9f\n", latest(rank, shared->end_s) -
						 latest(rank, shared->begin_s));
		barrier(rank);
	}
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct rank rank = { 0 };
	uint32_t repeat;
	int status, failed = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: %s RANKS BYTES REPEAT\n", argv[0]);
		return 2;
	}
	rank.nranks = (uint32_t)atoi(argv[1]);
	rank.block_chunks = (uint32_t)atoi(argv[2]) / CHUNK_BYTES;
	repeat = (uint32_t)atoi(argv[3]);
	if (rank.nranks < 1 || rank.nranks > RANKS_MAX ||
	    rank.block_chunks == 0 || rank.block_chunks % BATCH != 0) {
		fprintf(stderr,
			"RANKS may be 1 to %d, BYTES a multiple of %d\n",
			RANKS_MAX, BATCH * CHUNK_BYTES);
		return 2;
	}
	rank.shared = mmap(NULL, sizeof(*rank.shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rank.shared == MAP_FAILED)
		die("mmap");
	for (rank.number = 0; rank.number < rank.nranks; rank.number++)
		if (fork() == 0)
			run_rank(&rank, repeat);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
