/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between a host and a runner arrive whole or not at all, with descriptors. */
#include "offload/meeting.h"

#include <fcntl.h>
#include <mpimcast/mmc.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static int pair[2];

static void begin_pair(void)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair),
		 0);
}

static void end_pair(void)
{
	close(pair[0]);
	close(pair[1]);
}

/* Returns how many descriptors this process has, up to a number that it never reaches. */
static int count_fds(void)
{
	int nfds = 0;

	for (int fd = 0; fd < 256; fd++)
		nfds += fcntl(fd, F_GETFD) >= 0;
	return nfds;
}

static void descriptors_pass(void)
{
	int sent[] = { -1, -1 };
	int fds[MMC_MEETING_FDS_MAX];
	uint64_t number = 42;

	begin_pair();
	CHECK_EQ(pipe(sent), 0);
	CHECK(mmc_meeting_send(pair[0], &number, sizeof(number), sent, 2));
	close(sent[0]);
	number = 0;
	CHECK_EQ(mmc_meeting_receive(pair[1], &number, sizeof(number), fds), 2);
	CHECK_EQ(number, 42);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &number, 1), 1);
	close(fds[0]);
	close(fds[1]);
	close(sent[1]);
	CHECK(mmc_meeting_send(pair[0], &number, sizeof(number), NULL, 0));
	CHECK_EQ(mmc_meeting_receive(pair[1], &number, sizeof(number), fds), 0);
	end_pair();
}

/* A message of another length is refused, and its descriptors are closed. */
static void other_lengths_are_refused(void)
{
	static const size_t lengths[] = { 7, 9 };
	uint8_t bytes[16] = { 0 };
	int fds[MMC_MEETING_FDS_MAX];
	int nbefore;

	begin_pair();
	nbefore = count_fds();
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		CHECK(mmc_meeting_send(pair[0], bytes, lengths[i], pair, 2));
		CHECK_EQ(mmc_meeting_receive(pair[1], bytes, 8, fds), -1);
		CHECK_EQ(count_fds(), nbefore);
	}
	CHECK_EQ(mmc_meeting_receive(pair[1], bytes, 8, fds), -1);
	end_pair();
}

static void own_processes_are_known(void)
{
	begin_pair();
	CHECK(mmc_meeting_is_own(pair[0]));
	CHECK(!mmc_meeting_is_own(-1));
	/* Only root can become a user who has not made the socket. */
	if (geteuid() == 0) {
		CHECK_EQ(seteuid(65534), 0);
		CHECK(!mmc_meeting_is_own(pair[0]));
		CHECK_EQ(seteuid(0), 0);
	}
	end_pair();
}

/* A file that could be cut, or is too short, is not mapped: reading it could kill. */
static void only_sealed_files_are_mapped(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *mapped;
	void *made;
	int made_fd;

	CHECK_EQ(ftruncate(fd, 5000), 0);
	CHECK(mmc_meeting_map(fd, 5000) == NULL);
	CHECK(strstr(mmc_last_error(), "sealed") != NULL);
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	CHECK(mmc_meeting_map(fd, 8193) == NULL);
	CHECK(mmc_meeting_map(fd, 0) == NULL);
	mapped = mmc_meeting_map(fd, 8192);
	if (CHECK(mapped != NULL)) {
		mapped[8191] = 1;
		munmap(mapped, 8192);
	}
	close(fd);
	CHECK(mmc_meeting_map(-1, 1) == NULL);

	made_fd = mmc_meeting_create(5000, &made);
	mapped = mmc_meeting_map(made_fd, 5000);
	if (CHECK(made_fd >= 0 && mapped != NULL)) {
		mapped[4999] = 7;
		CHECK_EQ(((uint8_t *)made)[4999], 7);
		munmap(mapped, 5000);
		munmap(made, 5000);
	}
	close(made_fd);
}

static void addresses(void)
{
	char name[MMC_PROXY_NAME_SIZE + 1] = "";
	struct sockaddr_un one;
	struct sockaddr_un other;
	uint32_t nbytes;

	CHECK_EQ(mmc_meeting_address(name, &one), 0);
	memset(name, 'x', MMC_PROXY_NAME_SIZE);
	CHECK_EQ(mmc_meeting_address(name, &one), 0);
	name[MMC_PROXY_NAME_SIZE - 1] = 0;
	nbytes = mmc_meeting_address(name, &one);
	CHECK(nbytes > 0 && nbytes <= sizeof(one));
	CHECK_EQ(one.sun_path[0], 0);
	name[MMC_PROXY_NAME_SIZE - 2] = 'y';
	CHECK_EQ(mmc_meeting_address(name, &other), nbytes);
	CHECK(memcmp(&one, &other, nbytes) != 0);
}

CHECK_MAIN(CHECK_TEST(descriptors_pass), CHECK_TEST(other_lengths_are_refused),
	   CHECK_TEST(own_processes_are_known),
	   CHECK_TEST(only_sealed_files_are_mapped), CHECK_TEST(addresses))
