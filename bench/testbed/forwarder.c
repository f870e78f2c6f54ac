/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes links long and lossy: forwards frames between pairs of devices.
 *
 *	forwarder DELAY_US LOSS PERIOD SEED NEAR FAR [NEAR FAR ...]
 *
 * What arrives at the device NEAR leaves at FAR after DELAY_US, in the same order; what
 * arrives at FAR leaves at NEAR at once. Of the UDP and TCP frames from NEAR, a share of LOSS, in
 * parts of 2^32, is lost, PERIOD in a row on average (support/gilbert.h). Pair i begins with the
 * seed SEED + i, so the same frames have the same fate in every run.
 *
 * A line without words says that frames pass. When standard input ends, the program prints for each
 * pair, on a line, how many frames from NEAR it has passed and lost, how many UDP and TCP frames
 * there were, how many others did not fit into memory or the device, and how many were trains
 * of several segments, each of which has had one fate. Kernels without netem have no delay of
 * their own.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/gilbert.h"

#define PAIRS_MAX 32
#define BATCH 32
#define FRAME_BYTES_MAX (65536 + 256) /* with the kernel's header */
/* What waits on a link: 40 ms at 1 Gbit/s, and the frames' lengths. */
#define WAITING_BYTES_MAX (8u << 20)
/* How often, and after which pause, a batch is offered to a device that refuses it. */
#define OFFERS_MAX 100
#define OFFER_PAUSE_NS 50000
#define HEADER_BYTES sizeof(struct virtio_net_hdr)

/* A frame that waits; its bytes follow, up to a multiple of 8. */
struct frame {
	uint64_t due_ns;
	uint32_t nbytes; /* 0: the ring goes on at its beginning */
	uint32_t reserved;
};

struct pair {
	int near;
	int far;
	uint8_t *ring;
	size_t head; /* where the next frame is written */
	size_t tail; /* where the first frame that waits is */
	struct mmc_gilbert losses;
	struct mmc_prng prng;
	unsigned long passed, lost, drawn, overflowed, trains;
};

static struct pair pairs[PAIRS_MAX];
static unsigned npairs;
static uint64_t delay_ns;
static uint8_t (*buffers)[FRAME_BYTES_MAX]; /* [BATCH] */

static void fail(const char *what)
{
	fprintf(stderr, "forwarder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Opens a socket for all frames that arrive at a device, but not those that leave there. */
static int open_device(const char *name)
{
	static const int one = 1, bytes = 16 << 20;
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = __builtin_bswap16(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

	if (fd < 0 || address.sll_ifindex == 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
		       sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		fail(name);
	return fd;
}

/* ---- the frames that wait -------------------------------------------------- */

static struct frame *frame_at(const struct pair *pair, size_t place)
{
	return (struct frame *)(pair->ring + place);
}

/* Returns the frame that has waited longest, or NULL. */
static struct frame *first_frame(struct pair *pair)
{
	if (pair->tail == pair->head)
		return NULL;
	if (frame_at(pair, pair->tail)->nbytes == 0)
		pair->tail = 0;
	return pair->tail == pair->head ? NULL : frame_at(pair, pair->tail);
}

static size_t frame_room(uint32_t nbytes)
{
	return (sizeof(struct frame) + nbytes + 7) / 8 * 8;
}

/*
 * Returns room for a frame at the head, or NULL. Behind it, and before the tail, there is
 * always room for one more `struct frame`.
 */
static struct frame *take_room(struct pair *pair, uint32_t nbytes)
{
	size_t room = frame_room(nbytes) + sizeof(struct frame);

	if (pair->head >= pair->tail) {
		if (pair->head + room <= WAITING_BYTES_MAX)
			return frame_at(pair, pair->head);
		if (room > pair->tail)
			return NULL;
		frame_at(pair, pair->head)->nbytes = 0;
		pair->head = 0;
	}
	return pair->head + room <= pair->tail ? frame_at(pair, pair->head)
					       : NULL;
}

static void keep(struct pair *pair, const uint8_t *bytes, uint32_t nbytes,
		 uint64_t due_ns)
{
	struct frame *frame = take_room(pair, nbytes);

	if (frame == NULL) {
		pair->overflowed++;
		return;
	}
	frame->due_ns = due_ns;
	frame->nbytes = nbytes;
	memcpy(frame + 1, bytes, nbytes);
	pair->head += frame_room(nbytes);
}

/* ---- receiving and sending --------------------------------------------------- */

/* Receives up to BATCH frames into the buffers; returns how many. */
static unsigned receive(int fd, uint32_t *lengths)
{
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	int count;

	for (unsigned i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ buffers[i], FRAME_BYTES_MAX };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i],
						       .msg_iovlen = 1 };
	}
	count = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++)
		lengths[i] = messages[i].msg_len;
	return count < 0 ? 0 : (unsigned)count;
}

/*
 * Sends frames, and returns how many the device has not taken. While the kernel's queue to the
 * other end is full, it refuses them, so they are offered again and again.
 */
static unsigned send_all(int fd, struct iovec *parts, unsigned count)
{
	static const struct timespec pause = { .tv_nsec = OFFER_PAUSE_NS };
	struct mmsghdr messages[BATCH];
	unsigned sent = 0, refused = 0, offers = 0;

	for (unsigned i = 0; i < count; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i],
						       .msg_iovlen = 1 };
	while (sent < count) {
		int rv = sendmmsg(fd, messages + sent, count - sent, 0);

		if (rv > 0) {
			sent += (unsigned)rv;
		} else if (offers++ < OFFERS_MAX) {
			nanosleep(&pause, NULL);
		} else {
			sent++;
			refused++;
		}
	}
	return refused;
}

/* Returns whether a frame may be lost: those of ARP and IGMP may not. */
static bool is_payload(const uint8_t *bytes, uint32_t nbytes)
{
	const uint8_t *frame = bytes + HEADER_BYTES;

	return nbytes >= HEADER_BYTES + 34 && frame[12] == 0x08 &&
	       frame[13] == 0x00 && (frame[23] == 17 || frame[23] == 6);
}

static bool is_train(const uint8_t *bytes)
{
	return ((const struct virtio_net_hdr *)bytes)->gso_type !=
	       VIRTIO_NET_HDR_GSO_NONE;
}

/* Keeps what has arrived from the near end, but for what is lost. */
static void take_in(struct pair *pair)
{
	uint32_t lengths[BATCH];
	unsigned count;

	do {
		uint64_t due_ns = clock_ns() + delay_ns;

		count = receive(pair->near, lengths);
		for (unsigned i = 0; i < count; i++) {
			bool payload = is_payload(buffers[i], lengths[i]);

			pair->drawn += payload;
			pair->trains += is_train(buffers[i]);
			if (payload &&
			    mmc_gilbert_loses(&pair->losses, &pair->prng))
				pair->lost++;
			else
				keep(pair, buffers[i], lengths[i], due_ns);
		}
	} while (count == BATCH);
}

/* Passes on what has arrived from the far end. */
static void pass_back(struct pair *pair)
{
	struct iovec parts[BATCH];
	uint32_t lengths[BATCH];
	unsigned count;

	do {
		count = receive(pair->far, lengths);
		for (unsigned i = 0; i < count; i++)
			parts[i] = (struct iovec){ buffers[i], lengths[i] };
		pair->overflowed += send_all(pair->near, parts, count);
	} while (count == BATCH);
}

/* Passes on the frames that have waited for long enough. */
static void pass_due(struct pair *pair)
{
	uint64_t now_ns = clock_ns();
	struct iovec parts[BATCH];
	struct frame *frame;
	unsigned count;

	do {
		unsigned refused;

		count = 0;
		while (count < BATCH && (frame = first_frame(pair)) != NULL &&
		       frame->due_ns <= now_ns) {
			parts[count++] =
				(struct iovec){ frame + 1, frame->nbytes };
			pair->tail += frame_room(frame->nbytes);
		}
		refused = send_all(pair->far, parts, count);
		pair->overflowed += refused;
		pair->passed += count - refused;
	} while (count == BATCH);
}

/* ---- the program -------------------------------------------------------------- */

/* Waits until frames arrive or are due. Returns whether standard input has ended. */
static bool wait_for_frames(struct pollfd *fds)
{
	uint64_t due_ns = UINT64_MAX;
	struct timespec rest;
	char byte;

	for (unsigned i = 0; i < npairs; i++) {
		const struct frame *frame = first_frame(&pairs[i]);

		if (frame != NULL && frame->due_ns < due_ns)
			due_ns = frame->due_ns;
	}
	if (due_ns != UINT64_MAX) {
		uint64_t now_ns = clock_ns();
		uint64_t rest_ns = due_ns > now_ns ? due_ns - now_ns : 0;

		rest.tv_sec = (time_t)(rest_ns / 1000000000);
		rest.tv_nsec = (long)(rest_ns % 1000000000);
	}
	if (ppoll(fds, 2 * npairs + 1, due_ns == UINT64_MAX ? NULL : &rest,
		  NULL) < 0 &&
	    errno != EINTR)
		fail("ppoll");
	return fds[2 * npairs].revents != 0 &&
	       read(STDIN_FILENO, &byte, 1) <= 0;
}

static void forward(void)
{
	struct pollfd fds[2 * PAIRS_MAX + 1];

	for (unsigned i = 0; i < npairs; i++) {
		fds[2 * i] = (struct pollfd){ pairs[i].near, POLLIN, 0 };
		fds[2 * i + 1] = (struct pollfd){ pairs[i].far, POLLIN, 0 };
	}
	fds[2 * npairs] = (struct pollfd){ STDIN_FILENO, POLLIN, 0 };
	while (!wait_for_frames(fds)) {
		for (unsigned i = 0; i < npairs; i++) {
			if (fds[2 * i].revents != 0)
				take_in(&pairs[i]);
			if (fds[2 * i + 1].revents != 0)
				pass_back(&pairs[i]);
			pass_due(&pairs[i]);
		}
	}
}

static void add_pair(const char *near, const char *far,
		     struct mmc_gilbert losses, uint64_t seed)
{
	struct pair *pair = &pairs[npairs++];

	pair->near = open_device(near);
	pair->far = open_device(far);
	pair->losses = losses;
	pair->prng.state = seed;
	pair->ring = mmap(NULL, WAITING_BYTES_MAX, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pair->ring == MAP_FAILED)
		fail("mmap");
}

/* Frames that are late because others have the processor would be a longer delay. */
static void be_punctual(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	prctl(PR_SET_TIMERSLACK, 1UL);
	if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
		perror("forwarder: sched_setscheduler");
}

int main(int argc, char **argv)
{
	struct mmc_gilbert losses;
	uint64_t seed;

	if (argc < 7 || argc % 2 == 0 || argc > 5 + 2 * PAIRS_MAX) {
		fprintf(stderr, "forwarder: see its source for arguments\n");
		return 2;
	}
	delay_ns = strtoull(argv[1], NULL, 10) * 1000;
	losses = mmc_gilbert_make(strtoull(argv[2], NULL, 10),
				  strtoull(argv[3], NULL, 10));
	seed = strtoull(argv[4], NULL, 10);
	buffers = malloc(BATCH * sizeof(*buffers));
	for (int i = 5; i < argc; i += 2)
		add_pair(argv[i], argv[i + 1], losses, seed + npairs);
	be_punctual();
	printf("\n");
	fflush(stdout);
	forward();
	for (unsigned i = 0; i < npairs; i++)
		printf("%lu %lu %lu %lu %lu\n", pairs[i].passed, pairs[i].lost,
		       pairs[i].drawn, pairs[i].overflowed, pairs[i].trains);
	return 0;
}
