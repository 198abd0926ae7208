// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A queue law before a queue, put through the operations of a test: stream.h. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include LINK_H

/* tests/any_law.rs writes the same. */
struct op {
	__u64 what; /* 0 nothing, 1 start, 2 rate, 3 a packet, 4 what waits before it */
	__u64 now, a, b;
	__u64 waiting, size, ecn, segments;
	__u64 verdict;
	struct Report report;
	struct Told told;
};

struct state {
	struct op op;
	struct Link link;
};

#include "stream.h"

static __always_inline int operate(struct state *s)
{
	struct Link *link = &s->link;
	struct op *op = &s->op;

	if (op->what == 1)
		op->verdict = law_queue_start(link, &op->told, op->a, op->b);
	else if (op->what == 2)
		law_queue_set_rate(link, op->a);
	else if (op->what == 3)
		op->verdict = law_queue_judge(link, op->now, op->size, op->ecn, op->segments);
	else if (op->what == 4)
		op->verdict = law_queue_serve(link, op->now, op->a, op->waiting);
	law_link_report(link, &op->report);
	return 0;
}
