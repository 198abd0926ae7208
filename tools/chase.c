// SPDX-License-Identifier: MIT OR Apache-2.0
// What one read of memory costs that no cache foresees, for tools/bench-linux: `chase LINES` walks through so many cache
// lines of 64 bytes, each of which names the next, and prints nanoseconds a read.
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line {
	struct line *next;
	char pad[56];
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int count, char **words)
{
	long lines = count == 2 ? atol(words[1]) : 0;
	enum { READS = 2000000 };

	if (lines < 2) {
		fprintf(stderr, "chase LINES, two or more\n");
		return 2;
	}
	struct line *all = aligned_alloc(64, (size_t)lines * sizeof(*all)), *at = all;
	long *order = malloc((size_t)lines * sizeof(*order));
	if (!all || !order)
		return 1;
	for (long i = 0; i < lines; i++)
		order[i] = i;
	// One circle through all of them (Sattolo).
	uint64_t draw = 1;
	for (long i = lines - 1; i > 0; i--) {
		draw = draw * 6364136223846793005u + 1442695040888963407u;
		long other = (long)((draw >> 33) % (uint64_t)i), held = order[i];
		order[i] = order[other];
		order[other] = held;
	}
	for (long i = 0; i < lines; i++)
		all[order[i]].next = &all[order[(i + 1) % lines]];
	uint64_t began = 0;
	for (long i = 0; i < 2 * (long)READS; i++) {
		if (i == READS)
			began = now();
		at = at->next;
	}
	printf("%.0f\n", (double)(now() - began) / READS);
	return at == NULL;
}
