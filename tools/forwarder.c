// SPDX-License-Identifier: MIT OR Apache-2.0
// What tools/bench-linux compares a link with: the least that moves frames in user space.
//
//   forwarder forward A B SECONDS    recvmmsg at interface A, sendmmsg at interface B, and nothing else;
//                                    prints the frames that went
//   forwarder blast A SECONDS SIZE   sends UDP packets of SIZE bytes (IP) out of A as fast as it can, on
//                                    the first processor
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum { BATCH = 64, ROOM = 2048, BUFFER = 24 << 20 };

static void require(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int file = socket(AF_PACKET, SOCK_RAW, 0), one = 1, buffer = BUFFER;

	require(file, "socket");
	require(setsockopt(file, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), "PACKET_IGNORE_OUTGOING");
	require(setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)), "SO_RCVBUFFORCE");
	require(setsockopt(file, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)), "SO_SNDBUFFORCE");
	address.sll_ifindex = if_nametoindex(name);
	require(address.sll_ifindex ? 0 : -1, name);
	require(bind(file, (struct sockaddr *)&address, sizeof(address)), "bind");
	return file;
}

static char frames[BATCH][ROOM];
static struct iovec parts[BATCH];
static struct mmsghdr messages[BATCH];

static void prepare(size_t length)
{
	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ frames[i], length };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
}

static void forward(const char *a, const char *b, double seconds)
{
	struct pollfd wait = { open_interface(a), POLLIN, 0 };
	int to = open_interface(b);
	unsigned long sent = 0;

	for (double end = now() + seconds; now() < end;) {
		int count, done = 0;

		prepare(ROOM);
		count = recvmmsg(wait.fd, messages, BATCH, MSG_DONTWAIT, NULL);
		if (count <= 0) {
			poll(&wait, 1, 10);
			continue;
		}
		for (int i = 0; i < count; i++)
			parts[i].iov_len = messages[i].msg_len;
		while (done < count) {
			int n = sendmmsg(to, messages + done, count - done, 0);

			require(n, "sendmmsg");
			done += n;
		}
		sent += count;
	}
	printf("%lu\n", sent);
}

static void blast(const char *a, double seconds, int size)
{
	int file = open_interface(a);
	unsigned long sent = 0;
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	for (int i = 0; i < BATCH; i++) {
		unsigned char *frame = (unsigned char *)frames[i];
		// To a station that nobody is, so that the far end spends no time on it.
		unsigned char header[] = { 2, 9, 9, 9, 9, 9, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, size >> 8, size & 255,
					   0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2 };

		memcpy(frame, header, sizeof(header));
	}
	prepare(ETH_HLEN + size);
	for (double end = now() + seconds; now() < end;) {
		int n = sendmmsg(file, messages, BATCH, 0);

		require(n, "sendmmsg");
		sent += n;
	}
	fprintf(stderr, "%lu\n", sent);
}

int main(int count, char **words)
{
	if (count == 5 && !strcmp(words[1], "forward"))
		forward(words[2], words[3], atof(words[4]));
	else if (count == 5 && !strcmp(words[1], "blast"))
		blast(words[2], atof(words[3]), atoi(words[4]));
	else
		return 2;
	return 0;
}
