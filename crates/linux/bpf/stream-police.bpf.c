// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A policer and its table, put through operations that a test gives, in a packet's bytes, and answered there. No object ships
 * with it.
 */
#include "packet.h"
#include "police.h"

#define SHIM_PROTOCOL 253

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
	struct Police police;
	__u64 flow, loss, trial;
	__u32 place, drops;
	struct Arrival arrival;
};

#include "policer.h"

struct state {
	struct op op;
	struct port port;
};

#include "stream.h"

static void run(struct op *o, struct port *p, struct bucket *bucket)
{
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

static __always_inline int operate(struct state *s)
{
	struct bucket *bucket = bpf_map_lookup_elem(&policed, &s->op.bucket);

	if (!bucket)
		return 1;
	run(&s->op, &s->port, bucket);
	return 0;
}
