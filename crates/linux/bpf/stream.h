/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A law put through operations that a test gives, in a packet's bytes, and answered there. No object ships with it. To be
 * included behind `struct op`, by who says what an operation does.
 */
#pragma once

#define OPS 8

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

static __always_inline void operate(struct op *op, struct Link *link);

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
		operate(op, &s->link);
		law_link_report(&s->link, &op->report);
		if (bpf_skb_store_bytes(skb, at, op, sizeof(*op), 0))
			return TC_ACT_SHOT;
	}
	return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
