/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/error.h"

/* The abstract name of a runner, behind the 0 that makes it abstract. */
#define PREFIX "mpimcast-runner-"

/* Memory for the descriptors that go with a message. */
union ancillary {
	char bytes[CMSG_SPACE(MMC_MEETING_FDS_MAX * sizeof(int))];
	struct cmsghdr aligned;
};

uint32_t mmc_meeting_address(const char *name, struct sockaddr_un *address)
{
	size_t nbytes = strnlen(name, MMC_PROXY_NAME_SIZE);

	if (nbytes == 0 || nbytes == MMC_PROXY_NAME_SIZE) {
		mmc_error_set("the name of a proxy has 1 to %d bytes",
			      MMC_PROXY_NAME_SIZE - 1);
		return 0;
	}
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "%s%s",
		 PREFIX, name);
	return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			  strlen(PREFIX) + nbytes);
}

bool mmc_meeting_send(int socket, const void *bytes, size_t nbytes,
		      const int *fds, unsigned nfds)
{
	union ancillary ancillary = { .bytes = { 0 } };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes,
			      .iov_len = nbytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (nfds > 0) {
		struct cmsghdr *head;

		message.msg_control = ancillary.bytes;
		message.msg_controllen = CMSG_SPACE(nfds * sizeof(*fds));
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(nfds * sizeof(*fds));
		memcpy(CMSG_DATA(head), fds, nfds * sizeof(*fds));
	}
	do {
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)nbytes;
}

/* Takes the descriptors out of a message. Returns their number. */
static int take_fds(struct msghdr *message, int *fds)
{
	int nfds = 0;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL;
	     head = CMSG_NXTHDR(message, head))
		if (head->cmsg_level == SOL_SOCKET &&
		    head->cmsg_type == SCM_RIGHTS) {
			size_t nbytes = head->cmsg_len - CMSG_LEN(0);

			memcpy(fds, CMSG_DATA(head), nbytes);
			nfds = (int)(nbytes / sizeof(*fds));
		}
	return nfds;
}

int mmc_meeting_receive(int socket, void *bytes, size_t nbytes, int *fds)
{
	union ancillary ancillary = { .bytes = { 0 } };
	struct iovec part = { .iov_base = bytes, .iov_len = nbytes };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = ancillary.bytes,
		.msg_controllen = sizeof(ancillary.bytes),
	};
	ssize_t received;
	int nfds;

	do {
		received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (received < 0 && errno == EINTR);
	if (received < 0)
		return -1;
	nfds = take_fds(&message, fds);
	if (received == (ssize_t)nbytes &&
	    !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return nfds;
	while (nfds > 0)
		close(fds[--nfds]);
	return -1;
}

bool mmc_meeting_is_own(int socket)
{
	struct ucred other;
	socklen_t nbytes = sizeof(other);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &nbytes) ==
		       0 &&
	       other.uid == geteuid();
}

static void *map(int fd, uint64_t nbytes)
{
	void *bytes =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

bool mmc_meeting_is_sealed(int fd, uint64_t nbytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat stat;

	if (nbytes > 0 && seals >= 0 && (seals & F_SEAL_SHRINK) &&
	    fstat(fd, &stat) == 0 && stat.st_size > 0 &&
	    ((uint64_t)stat.st_size - 1) / page_bytes >=
		    (nbytes - 1) / page_bytes)
		return true;
	mmc_error_set("memory passed by another process is shorter than %llu "
		      "bytes, or not sealed",
		      (unsigned long long)nbytes);
	return false;
}

void *mmc_meeting_map(int fd, uint64_t nbytes)
{
	void *bytes;

	if (!mmc_meeting_is_sealed(fd, nbytes))
		return NULL;
	bytes = map(fd, nbytes);
	if (bytes == NULL)
		mmc_error_set("mmap: %s", strerror(errno));
	return bytes;
}

int mmc_meeting_create(uint64_t nbytes, void **bytes)
{
	int fd = memfd_create("mpimcast", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	*bytes = NULL;
	if (ftruncate(fd, (off_t)nbytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		*bytes = map(fd, nbytes);
	if (*bytes != NULL)
		return fd;
	close(fd);
	return -1;
}
