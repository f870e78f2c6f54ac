/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/segmentation.h"

#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/udp/endpoint.h"
#include "support/bits.h"

/* Attributes of a link (linux/if_link.h), which older headers do not name. */
#define LINK_GSO_DATAGRAMS 40
#define LINK_GSO_BYTES 41
#define LINK_GSO_IPV4_BYTES 63

/* What a frame has around its payload, which counts for the interface's limit. */
#define FRAME_HEADERS_BYTES (ETH_HLEN + MMC_UDP_IP_HEADERS_BYTES)

/* A link's attributes are 1 to 3 KiB, or more if it has many virtual functions. */
#define ANSWER_BYTES (32 << 10)

union answer {
	struct nlmsghdr header;
	uint8_t bytes[ANSWER_BYTES];
};

/* Asks the kernel about the link `index`. Returns the answer's bytes, or -1. */
static ssize_t ask(unsigned index, union answer *answer)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} question = {
		.header = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.link = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t nbytes = -1;

	if (fd < 0)
		return -1;
	/* The kernel answers before send() returns. */
	if (send(fd, &question, sizeof(question), 0) ==
	    (ssize_t)sizeof(question))
		nbytes = recv(fd, answer, sizeof(*answer), MSG_DONTWAIT);
	close(fd);
	return nbytes;
}

/* Shortens trains to what one attribute of the link allows. */
static void heed(const struct rtattr *attribute,
		 struct mmc_udp_segmentation *longest)
{
	uint32_t value;

	if (RTA_PAYLOAD(attribute) != sizeof(value))
		return;
	memcpy(&value, RTA_DATA(attribute), sizeof(value));
	switch (attribute->rta_type) {
	case LINK_GSO_DATAGRAMS:
		longest->datagrams = mmc_min_u32(longest->datagrams, value);
		break;
	case LINK_GSO_BYTES:
	case LINK_GSO_IPV4_BYTES:
		/* A frame of just this length is cut, too. */
		value -= mmc_min_u32(value, FRAME_HEADERS_BYTES + 1);
		longest->payload_bytes =
			mmc_min_u32(longest->payload_bytes, value);
		break;
	default:
		break;
	}
}

struct mmc_udp_segmentation mmc_udp_segmentation_of(const char *name)
{
	struct mmc_udp_segmentation longest = {
		.payload_bytes = MMC_UDP_TRAIN_PAYLOAD_MAX,
		.datagrams = MMC_UDP_TRAIN_DATAGRAMS_MAX,
	};
	unsigned index = if_nametoindex(name);
	static _Thread_local union answer answer;
	ssize_t nbytes = index > 0 ? ask(index, &answer) : -1;
	const struct rtattr *attribute;
	size_t left_bytes;

	if (nbytes < 0 || !NLMSG_OK(&answer.header, (size_t)nbytes) ||
	    answer.header.nlmsg_type != RTM_NEWLINK)
		return longest;
	attribute = IFLA_RTA((struct ifinfomsg *)NLMSG_DATA(&answer.header));
	left_bytes = IFLA_PAYLOAD(&answer.header);
	while (RTA_OK(attribute, left_bytes)) {
		heed(attribute, &longest);
		attribute = RTA_NEXT(attribute, left_bytes);
	}
	return longest;
}
