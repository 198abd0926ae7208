/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A law put through operations that a test gives, in a packet's bytes, and answered there. No object ships with it. To be
 * included behind `struct op` and `struct state`, which begins with one, by who says what an operation does.
 */
#pragma once

#define OPS (sizeof(struct op) > 128 ? 8 : 26) /* a test packet holds less than a page */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct state);
} state SEC(".maps");

/* Other than 0: it can not be done. */
static __always_inline int operate(struct state *s);

struct context {
	struct __sk_buff *skb;
	struct state *state;
};

/* A callback, or the verifier follows all ways through all operations. */
static long step(__u32 i, struct context *c)
{
	__u32 at = 16 + i * sizeof(struct op);
	struct op *op = &c->state->op;

	return bpf_skb_load_bytes(c->skb, at, op, sizeof(*op)) || operate(c->state) ||
	       bpf_skb_store_bytes(c->skb, at, op, sizeof(*op), 0);
}

SEC("tc")
int cl_stream(struct __sk_buff *skb)
{
	struct context c = { .skb = skb };
	__u32 key = 0;

	c.state = bpf_map_lookup_elem(&state, &key);
	if (!c.state)
		return -1;
	return bpf_loop(OPS, step, &c, 0);
}

char _license[] SEC("license") = "GPL";
