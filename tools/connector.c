// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens connections and counts them, for tools/bench-linux:
//
//   connector serve PORT                    answers each byte with a byte, on PORTS ports from PORT on
//   connector rate ADDRESS PORT MS AT_ONCE  opens connections for MS milliseconds, AT_ONCE at a time; each carries a
//                                           byte each way and is closed by this end; prints how many were answered,
//                                           how many were not, and how many a second it were
//   connector hold ADDRESS PORT COUNT       opens COUNT and keeps them: a byte each way, and again when its input has
//                                           a line; prints how many were answered
//
// Many ports, so that those of closed connections need not be used again within a minute.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 64 };

static struct sockaddr_in server = { .sin_family = AF_INET };
static int first_port, opened;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static int begin(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (s < 0)
		fail("socket");
	server.sin_port = htons(first_port + opened++ % PORTS);
	if (connect(s, (void *)&server, sizeof(server)) && errno != EINPROGRESS)
		fail("connect");
	return s;
}

static void watch(int ep, int fd, unsigned events)
{
	struct epoll_event e = { events, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e))
		fail("epoll_ctl");
}

static void serve(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct epoll_event events[64];
	int ep = epoll_create1(0), listeners[PORTS], one = 1;
	char c;

	for (int i = 0; i < PORTS; i++) {
		listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
		at.sin_port = htons(first_port + i);
		setsockopt(listeners[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(listeners[i], (void *)&at, sizeof(at)) || listen(listeners[i], 4096))
			fail("listen");
		watch(ep, listeners[i], EPOLLIN);
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(ep, events, 64, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd >= listeners[0] && fd <= listeners[PORTS - 1])
				watch(ep, accept(fd, NULL, NULL), EPOLLIN);
			else if (read(fd, &c, 1) != 1 || write(fd, &c, 1) != 1)
				close(fd);
		}
	}
}

static void rate(long duration_ms, int at_once)
{
	struct epoll_event events[64];
	int ep = epoll_create1(0), complete = 0, failed = 0;
	long began = now_ms(), ends = began + duration_ms;
	char c = 1;

	for (int i = 0; i < at_once; i++)
		watch(ep, begin(), EPOLLIN | EPOLLOUT | EPOLLET);
	while (now_ms() < ends) {
		int n = epoll_wait(ep, events, 64, 100);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;
			int is_answered = events[i].events & EPOLLIN && read(fd, &c, 1) == 1;

			if (!is_answered && !(events[i].events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))) {
				if (write(fd, &c, 1) != 1)
					failed++;
				struct epoll_event e = { EPOLLIN | EPOLLET, .data.fd = fd };
				epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
				continue;
			}
			complete += is_answered;
			if (!is_answered && !failed++) {
				int error = 0;
				socklen_t size = sizeof(error);

				getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
				fprintf(stderr, "connector: a connection was not answered: %s\n", strerror(error));
			}
			close(fd);
			watch(ep, begin(), EPOLLIN | EPOLLOUT | EPOLLET);
		}
	}
	printf("%d %d %.0f\n", complete, failed, complete * 1000.0 / (now_ms() - began));
}

static int ask(const int *sockets, int count)
{
	struct timeval patience = { 5 };
	int answered = 0;
	char c = 1;

	for (int i = 0; i < count; i++)
		if (write(sockets[i], &c, 1) != 1)
			perror("write");
	for (int i = 0; i < count; i++) {
		setsockopt(sockets[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		answered += read(sockets[i], &c, 1) == 1;
	}
	return answered;
}

static void hold(int count)
{
	int *sockets = calloc(count, sizeof(*sockets));
	char line[16];

	for (int i = 0; i < count; i++) {
		server.sin_port = htons(first_port + i % PORTS);
		sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (sockets[i] < 0 || connect(sockets[i], (void *)&server, sizeof(server)))
			fail("connect");
	}
	printf("%d\n", ask(sockets, count));
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin))
		printf("%d\n", ask(sockets, count));
}

int main(int argc, char **argv)
{
	struct rlimit many = { 200000, 1 << 20 };

	setrlimit(RLIMIT_NOFILE, &many);
	if (argc == 3 && !strcmp(argv[1], "serve")) {
		first_port = atoi(argv[2]);
		serve();
	}
	if (argc < 5 || inet_pton(AF_INET, argv[2], &server.sin_addr) != 1) {
		fprintf(stderr, "connector serve PORT | rate ADDRESS PORT MS AT_ONCE | hold ADDRESS PORT COUNT\n");
		return 2;
	}
	first_port = atoi(argv[3]);
	if (argc == 6 && !strcmp(argv[1], "rate"))
		rate(atol(argv[4]), atoi(argv[5]));
	else if (argc == 5 && !strcmp(argv[1], "hold"))
		hold(atoi(argv[4]));
	return 0;
}
