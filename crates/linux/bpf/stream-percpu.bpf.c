// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP's link law in parts, put through the operations of a test: stream.h. No object ships with it. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "percpu.h"

#define PARTS 4 /* a power of two, so that a mask bounds each access */

enum kind { START, CAPACITY, PASS, OTHER, SERVE };

/* tests/laws.rs writes the same. */
struct op {
	__u64 kind, now, a, b;
	union {
		struct LinkConfig config;
		struct Report report;
	};
	struct Header header;
	__u64 returned; /* 1: the whole has lent */
	__u64 after;	/* deadline of the whole afterwards */
};
_Static_assert(sizeof(struct op) == 128, "tests/laws.rs writes the same 128 bytes");

struct state {
	struct op op;
	struct Link link;
	struct Part parts[PARTS];
};

#include "stream.h"

static __always_inline int operate(struct state *s)
{
	struct op *o = &s->op;
	__u64 at = o->a & (PARTS - 1);
	struct Link *link = &s->link;
	struct Part *part;

	/* Opaque, or the compiler checks a copy and the verifier does not believe it. */
	asm volatile("" : "+r"(at));
	part = &s->parts[at & (PARTS - 1)];
	if (o->kind == START) {
		law_link_init(link, &o->config, o->a, o->b);
		/* As words, or the compiler calls a function that is not there. */
		for (__u32 i = 0; i < sizeof(s->parts) / 8; i++)
			((volatile __u64 *)s->parts)[i] = 0;
	} else if (o->kind == CAPACITY) {
		law_link_set_capacity(link, o->a);
	} else if (o->kind == PASS) {
		o->returned = law_part_pass(part, law_link_interval_number(link), &o->header, o->b);
		if (o->returned) {
			law_link_lend(link, part, &o->header, o->b, PARTS);
			law_part_pass(part, 0, &o->header, o->b);
		}
	} else if (o->kind == OTHER) {
		law_part_other(part, o->b);
	} else {
		for (int i = 0; i < PARTS; i++)
			law_link_take_in(link, &s->parts[i]);
		law_link_on_other_departure(link, o->now, o->a);
		law_link_on_deadline(link, o->now, o->a);
		law_link_report(link, &o->report);
	}
	o->after = law_link_next_deadline(link);
	return 0;
}
