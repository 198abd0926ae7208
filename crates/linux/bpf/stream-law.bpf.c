// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any link law, put through the operations of a test: stream.h. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include LINK_H

/* tests/law.rs writes the same. */
struct op {
	__u64 what; /* 0 nothing, 1 start, 2 capacity, 3 a deadline, 4 a packet */
	__u64 now, a, b;
	struct Passing passing;
	__u64 deadline;
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
		op->passing.size = law_link_start(link, &op->told, op->now, op->a, op->b);
	else if (op->what == 2)
		law_link_set_capacity(link, op->a);
	else if (op->what == 3)
		law_link_on_deadline(link, op->now, op->b);
	else if (op->what == 4) {
		law_link_on_arrival(link, op->now, &op->passing);
		law_link_on_departure(link, op->now, &op->passing, op->b);
	}
	op->deadline = law_link_next_deadline(link);
	law_link_report(link, &op->report);
	return 0;
}
