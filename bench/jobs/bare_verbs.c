/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare multicast Allgather over verbs: the ceiling to measure mpimcast against.
 * It forks its ranks, one for each RDMA device, and checks nothing: no header,
 * no source, no bitmap, no repair, no window. The immediate says which chunk a
 * datagram carries, all ranks send at the same time, and as many receives are
 * posted as an operation can need. A lost chunk ends the program.
 *
 *	bare_verbs RANKS BYTES REPEAT
 *
 * prints the seconds of each operation on a line of its own, from the last rank's
 * start to the last rank's end.
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
#define GRH_BYTES 40
#define SLOT_BYTES (GRH_BYTES + CHUNK_BYTES)
#define SENDS 64
#define BATCH 16
#define GROUP "239.192.77.1"
#define QKEY 0x1234
#define PATIENCE_S 20.0

/* The memory that the ranks share. */
struct board {
	volatile uint32_t arrived;
	volatile uint32_t round;
	volatile double begin_s[RANKS_MAX];
	volatile double end_s[RANKS_MAX];
};

struct rank {
	struct board *board;
	uint32_t number, nranks, block_chunks;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mine, *ring;
	uint8_t *all;	/* the result */
	uint8_t *slots; /* receives */
	uint32_t nslots;
	uint32_t nsending;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

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

static void barrier(struct rank *rank)
{
	struct board *board = rank->board;
	uint32_t round = board->round;

	if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_SEQ_CST) ==
	    rank->nranks) {
		board->arrived = 0;
		__atomic_store_n(&board->round, round + 1, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&board->round, __ATOMIC_SEQ_CST) == round)
		sched_yield();
}

/* ---- opening ------------------------------------------------------------- */

/* Returns the index of the GID that is an IPv4 address; writes the address. */
static int find_gid(struct ibv_context *context, struct in_addr *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;

	for (int i = 0; i < 16; i++) {
		if (ibv_query_gid(context, 1, i, &gid) != 0 ||
		    memcmp(gid.raw, mapped, sizeof(mapped)) != 0)
			continue;
		memcpy(address, gid.raw + 12, 4);
		return i;
	}
	fprintf(stderr, "the device has no GID that is an IPv4 address\n");
	exit(1);
}

static void open_queue(struct rank *rank)
{
	struct ibv_qp_init_attr init = {
		.send_cq = rank->send_cq,
		.recv_cq = rank->recv_cq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = SENDS,
			 .max_recv_wr = rank->nslots,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
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

static void join(struct rank *rank, int gid_index, struct in_addr own)
{
	struct ip_mreq member = { .imr_interface = own };
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff } };
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = 1,
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
		.lkey = rank->ring->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(rank->qp, &wr, &bad) != 0)
		die("ibv_post_recv");
}

static void open_rank(struct rank *rank)
{
	size_t block_bytes = (size_t)rank->block_chunks * CHUNK_BYTES;
	struct ibv_device **list;
	struct in_addr own;
	int gid_index, ndevices;

	list = need(ibv_get_device_list(&ndevices), "ibv_get_device_list");
	if ((uint32_t)ndevices < rank->nranks) {
		fprintf(stderr, "%u ranks need a device each, of %d\n",
			rank->nranks, ndevices);
		exit(1);
	}
	rank->context =
		need(ibv_open_device(list[rank->number]), "ibv_open_device");
	rank->pd = need(ibv_alloc_pd(rank->context), "ibv_alloc_pd");
	/* The device delivers a rank's own datagrams to it too. */
	rank->nslots = rank->nranks * rank->block_chunks;
	rank->all = need(malloc(rank->nranks * block_bytes), "malloc");
	rank->slots = need(malloc((size_t)rank->nslots * SLOT_BYTES), "malloc");
	memset(rank->all, (int)rank->number, rank->nranks * block_bytes);
	rank->mine = need(ibv_reg_mr(rank->pd,
				     rank->all + rank->number * block_bytes,
				     block_bytes, 0),
			  "ibv_reg_mr");
	rank->ring = need(ibv_reg_mr(rank->pd, rank->slots,
				     (size_t)rank->nslots * SLOT_BYTES,
				     IBV_ACCESS_LOCAL_WRITE),
			  "ibv_reg_mr");
	rank->send_cq = need(ibv_create_cq(rank->context, SENDS, NULL, NULL, 0),
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

static void send_chunk(struct rank *rank, uint32_t index)
{
	uint32_t chunk = rank->number * rank->block_chunks + index;
	struct ibv_sge sge = {
		.addr = (uintptr_t)(rank->all + (size_t)chunk * CHUNK_BYTES),
		.length = CHUNK_BYTES,
		.lkey = rank->mine->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htonl(chunk),
		.send_flags = index % BATCH == BATCH - 1 ? IBV_SEND_SIGNALED
							 : 0,
		.wr.ud = { .ah = rank->ah,
			   .remote_qpn = 0xffffff,
			   .remote_qkey = QKEY },
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(rank->qp, &wr, &bad) != 0)
		die("ibv_post_send");
	rank->nsending++;
}

static void reap_sends(struct rank *rank)
{
	struct ibv_wc wc[SENDS / BATCH];
	int count = ibv_poll_cq(rank->send_cq, SENDS / BATCH, wc);

	if (count < 0)
		die("ibv_poll_cq");
	rank->nsending -= (uint32_t)count * BATCH;
}

/* Receives what has arrived; returns how many chunks were other ranks'. */
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
			memcpy(rank->all + (size_t)chunk * CHUNK_BYTES,
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

static void operate(struct rank *rank)
{
	uint32_t missing = (rank->nranks - 1) * rank->block_chunks;
	uint32_t sent = 0;
	double begin_s = now_s();

	while (missing > 0 || sent < rank->block_chunks) {
		while (sent < rank->block_chunks &&
		       rank->nsending + BATCH <= SENDS) {
			for (uint32_t i = 0; i < BATCH; i++)
				send_chunk(rank, sent++);
		}
		reap_sends(rank);
		missing -= receive(rank);
		if (now_s() - begin_s > PATIENCE_S) {
			fprintf(stderr, "rank %u lacks %u chunks\n",
				rank->number, missing);
			exit(1);
		}
	}
	rank->board->begin_s[rank->number] = begin_s;
	rank->board->end_s[rank->number] = now_s();
}

static double latest(const struct rank *rank, const volatile double *times_s)
{
	double found_s = 0;

	for (uint32_t r = 0; r < rank->nranks; r++)
		if (times_s[r] > found_s)
			found_s = times_s[r];
	return found_s;
}

static void run_rank(struct rank *rank, uint32_t repeat)
{
	const struct board *board = rank->board;

	open_rank(rank);
	for (uint32_t i = 0; i < repeat; i++) {
		barrier(rank);
		operate(rank);
		barrier(rank);
		if (rank->number == 0)
			printf("%.9f\n", latest(rank, board->end_s) -
						 latest(rank, board->begin_s));
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
	rank.board = mmap(NULL, sizeof(*rank.board), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rank.board == MAP_FAILED)
		die("mmap");
	for (rank.number = 0; rank.number < rank.nranks; rank.number++)
		if (fork() == 0)
			run_rank(&rank, repeat);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
