/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs at a router's output port share of the port itself: its maps, how it begins, and what it counts.
 * To be included behind `struct config` and `struct port`, which are each program's own.
 */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct port);
} port SEC(".maps");

/* Counts a packet; nobody else does meanwhile. */
static __always_inline void count(__u64 counts[COUNTS], const struct packet *packet, __u32 kind)
{
	counts[PACKETS] += packet->segments;
	counts[BYTES] += packet->size;
	counts[kind < COUNTS ? kind : OTHER] += packet->segments;
}

/* What was counted could not be written: it was none of that kind. */
static __always_inline void recount(__u64 counts[COUNTS], const struct packet *packet, __u32 kind)
{
	counts[kind < COUNTS ? kind : OTHER] -= packet->segments;
	counts[UNWRITABLE] += packet->segments;
}

/* The same of a port that is not locked. */
static __always_inline void count_unwritable(struct port *port, const struct packet *packet, __u32 kind)
{
	bpf_spin_lock(&port->lock);
	recount(port->counts, packet, kind);
	bpf_spin_unlock(&port->lock);
}

/* How each program's law begins; the port is locked. */
static __always_inline void start(struct port *port, struct config *config);

/* Run once before the other is attached: the law's clock begins here. */
SEC("tc")
int cl_router_init(struct __sk_buff *skb)
{
	struct config *c;
	struct port *p;
	__u32 key = 0;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return -1;
	p->began = bpf_ktime_get_ns();
#ifdef POLICE
	for (int i = 0; i < 2; i++)
		p->key[i] = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
#endif
	bpf_spin_lock(&p->lock);
	start(p, c);
	law_link_report(&p->link, &p->report);
	bpf_spin_unlock(&p->lock);
	return 0;
}
