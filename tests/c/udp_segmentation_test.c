/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains are no longer than the interface takes whole. */
#include "check.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/udp/endpoint.h"
#include "drivers/udp/segmentation.h"

#define LINK_GSO_DATAGRAMS 40
#define LINK_GSO_BYTES 41

static const struct mmc_udp_segmentation unlimited = {
	.payload_bytes = MMC_UDP_TRAIN_PAYLOAD_MAX,
	.datagrams = MMC_UDP_TRAIN_DATAGRAMS_MAX,
};

/* Sets an attribute of this network namespace's loopback. Returns whether that worked. */
static bool limit(uint16_t attribute, uint32_t value)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		uint32_t value;
	} request = {
		.header = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_NEWLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.link = { .ifi_index = (int)if_nametoindex("lo") },
		.attribute = {
			.rta_len = RTA_LENGTH(sizeof(value)),
			.rta_type = attribute,
		},
		.value = value,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		uint8_t rest[1024];
	} answer = { .error = { .error = -1 } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	CHECK(send(fd, &request, sizeof(request), 0) == sizeof(request));
	CHECK(recv(fd, &answer, sizeof(answer), 0) > 0);
	close(fd);
	return answer.error.error == 0;
}

static void trains_are_cut_to_the_interface(void)
{
	struct mmc_udp_segmentation found;

	if (unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
		fputs("no network namespace can be made\n", stderr);
		exit(77);
	}
	CHECK(limit(LINK_GSO_BYTES, 30000));
	found = mmc_udp_segmentation_of("lo");
	/* The payload, the headers of Ethernet, IP and UDP, and less than the limit. */
	CHECK_EQ(found.payload_bytes, 30000 - 14 - 20 - 8 - 1);
	CHECK_EQ(found.datagrams, MMC_UDP_TRAIN_DATAGRAMS_MAX);
	CHECK(limit(LINK_GSO_DATAGRAMS, 7));
	CHECK_EQ(mmc_udp_segmentation_of("lo").datagrams, 7);
}

/* Of what the kernel knows nothing, the longest trains are taken. */
static void no_interface(void)
{
	struct mmc_udp_segmentation found = mmc_udp_segmentation_of("nosuch0");

	CHECK_EQ(found.payload_bytes, unlimited.payload_bytes);
	CHECK_EQ(found.datagrams, unlimited.datagrams);
}

CHECK_MAIN(CHECK_TEST(no_interface),
	   CHECK_TEST(trains_are_cut_to_the_interface))
