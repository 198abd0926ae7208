// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A policer and its table, put through operations that a test gives, in a packet's bytes, and answered there. No object ships
 * with it.
 */
#include "packet.h"
#include "police.h"

#define SHIM_PROTOCOL 253
#define OPS 26 /* a test packet holds less than a page */

enum kind { START, JUDGE, DROP };

/* tests/laws.rs writes the same. */
struct op {
	__u64 kind, now, capacity, size, flow;
	__u32 bucket, packets;
	__s32 granted;
	__u32 pad;
	struct Header header;
	__u64 passes, is_unknown;
	__u64 counts[3], share;
	__u64 seen; /* of the record; the lowest bit: it is held */
};
_Static_assert(sizeof(struct op) == 128, "tests/laws.rs writes the same 128 bytes");

struct config { __u64 records; };

struct port {
	struct op op;
	struct Police police;
	__u64 flow, loss, trial;
	__u32 place, drops;
	struct Arrival arrival;
};

#include "policer.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct port);
} port SEC(".maps");

static void run(struct port *p, struct bucket *bucket)
{
	struct op *o = &p->op;
	struct name name = {};

	if (o->kind == START) {
		law_police_start(&p->police);
		return;
	}
	p->flow = o->flow;
	if (o->kind == DROP) {
		note_drop(p, bucket, p->drops + 1);
	} else {
		p->arrival.now = o->now;
		p->arrival.capacity = o->capacity;
		p->arrival.size = o->size;
		p->arrival.packets = o->packets;
		o->passes = judge(p, bucket, &name, o->flow, &o->header);
		if (ANY(o->passes))
			note_grant(p, bucket, o->granted);
	}
	o->is_unknown = ANY(p->place) >= WAYS;
	if (ANY(p->place) < WAYS)
		o->seen = record_in(p, bucket)->seen << 1 | record_in(p, bucket)->is_held;
	__builtin_memcpy(o->counts, &p->police, sizeof(o->counts) + sizeof(o->share));
}

struct context {
	struct __sk_buff *skb;
	struct port *port;
};

static long step(__u32 i, struct context *c)
{
	__u32 at = 16 + i * sizeof(struct op);
	struct port *p = c->port;
	struct bucket *bucket;

	if (bpf_skb_load_bytes(c->skb, at, &p->op, sizeof(p->op)))
		return 1;
	bucket = bpf_map_lookup_elem(&policed, &p->op.bucket);
	if (!bucket)
		return 1;
	run(p, bucket);
	return bpf_skb_store_bytes(c->skb, at, &p->op, sizeof(p->op), 0) != 0;
}

SEC("tc")
int cl_stream(struct __sk_buff *skb)
{
	struct context c = { .skb = skb };
	__u32 key = 0;

	c.port = bpf_map_lookup_elem(&port, &key);
	if (!c.port)
		return -1;
	return bpf_loop(OPS, step, &c, 0);
}

char _license[] SEC("license") = "GPL";
