// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A queue law put through operations that a test gives, in a packet's bytes, and answered there. No object ships
 * with it.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include LINK_H

#define OPS 8

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} state SEC(".maps");

SEC("tc")
int cl_stream(struct __sk_buff *skb)
{
	__u32 key = 0;
	struct state *s = bpf_map_lookup_elem(&state, &key);
	struct op *op;

	if (!s)
		return TC_ACT_SHOT;
	op = &s->op;
	for (__u32 i = 0; i < OPS; i++) {
		__u32 at = 16 + i * sizeof(*op);

		if (bpf_skb_load_bytes(skb, at, op, sizeof(*op)))
			return TC_ACT_SHOT;
		if (op->what == 1)
			op->verdict = law_queue_start(&s->link, &op->told, op->a, op->b);
		else if (op->what == 2)
			law_queue_set_rate(&s->link, op->a);
		else if (op->what == 3)
			op->verdict = law_queue_judge(&s->link, op->now, op->size, op->ecn, op->segments);
		else if (op->what == 4)
			op->verdict = law_queue_serve(&s->link, op->now, op->a, op->waiting);
		law_link_report(&s->link, &op->report);
		if (bpf_skb_store_bytes(skb, at, op, sizeof(*op), 0))
			return TC_ACT_SHOT;
	}
	return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
