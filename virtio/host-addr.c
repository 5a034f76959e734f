// SPDX-License-Identifier: GPL-2.0-only
/*
 * IPv4 addresses of host interfaces.
 *
 * Theory of operation: the old ioctls know one address for each interface and overwrite it. So an
 * address is added, and taken away again, by one rtnetlink message with one acknowledgement, which
 * leaves alone what else the interface has.
 */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "virtio/host-addr.h"

#define DEFAULT_LEN 24

struct addr_attr {
	struct rtattr attr;
	struct in_addr addr;
};

struct addr_request {
	struct nlmsghdr head;
	struct ifaddrmsg msg;
	struct addr_attr local, address;
};

static bool host_address(struct in_addr addr)
{
	u32 a = ntohl(addr.s_addr);

	return a >> 24 != 0 && a >> 24 != 127 && a >> 28 < 14;
}

int host_addr_parse(const char *text, struct host_addr *out)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET_ADDRSTRLEN];
	bool ok = n < sizeof(addr);

	out->len = DEFAULT_LEN;
	if (ok) {
		memcpy(addr, text, n);
		addr[n] = 0;
		ok = inet_pton(AF_INET, addr, &out->addr) == 1 && host_address(out->addr);
	}
	if (ok && slash) {
		char *end;
		unsigned long len = strtoul(slash + 1, &end, 10);

		ok = slash[1] >= '0' && slash[1] <= '9' && !*end && len >= 1 && len <= 32;
		out->len = (unsigned)len;
	}
	if (ok)
		return 0;
	log_err("-n: host_ip=%s: not an IPv4 address of a host; use a.b.c.d or a.b.c.d/1..32",
		text);
	return -EINVAL;
}

static struct addr_attr attribute(unsigned short type, struct in_addr addr)
{
	return (struct addr_attr){
		.attr = { .rta_len = RTA_LENGTH(sizeof(addr)), .rta_type = type },
		.addr = addr,
	};
}

/* Sends the request and waits for its acknowledgement. */
static int talk(int fd, const struct addr_request *req)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char original[sizeof(*req)];
	} ack;
	ssize_t n = send(fd, req, sizeof(*req), 0);

	if (n < 0)
		return -errno;
	do {
		n = recv(fd, &ack, sizeof(ack), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(ack.head) + sizeof(ack.err) || ack.head.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ack.err.error;
}

int host_addr_change(unsigned index, const struct host_addr *ip, bool add)
{
	struct addr_request req = {
		.head = { .nlmsg_len = sizeof(req),
			  .nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					 (add ? NLM_F_CREATE | NLM_F_EXCL : 0) },
		.msg = { .ifa_family = AF_INET, .ifa_prefixlen = (u8)ip->len, .ifa_index = index },
		.local = attribute(IFA_LOCAL, ip->addr),
		.address = attribute(IFA_ADDRESS, ip->addr),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err;

	if (fd < 0)
		return -errno;
	err = talk(fd, &req);
	close(fd);
	return err;
}
