/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XCP-i at a router's output port (docs/protocols/xcp-i.md): finds clouds of routers without XCP by the TTL, and asks the
 * virtual router of the cloud before the law of the port. A part of router.bpf.c.
 *
 * All of it stands at the egress: the kernel has taken one off the TTL of what it forwards by then, and nothing has changed the
 * copy of the TTL in the header.
 */
#pragma once

#define FORMAT 3 /* the draft's header and 8 bytes behind it */
#define MORE 8

/* The bytes behind the draft's header. */
struct extension { __u8 ttl, flags; __be16 zero; __be32 last; };
_Static_assert(sizeof(struct extension) == MORE, "docs/protocols/xcp-i.md, Bits");

/* What packets crossed since the last router with XCP-i; src/router/clouds.rs has the same list. */
enum crossed { NOTHING, CLOUD, ANOMALY, WAITING, HELD };

/* One router before a cloud. The kernel alone writes it; all ports of a router share the table. */
struct peer {
	struct bpf_spin_lock lock;
	__u32 rest; /* as the port's */
	__u64 began, seen; /* ns */
	__u64 packets, bytes;
	__u64 ruled, held; /* packets that the virtual router saw, or that got no increase */
	__u32 hops, pad;   /* routers in the cloud, by the last packet */
	struct Report report;
	struct Link link;
};

/* As a hash's value may not be on the stack, which is too small, nor be copied from one with a lock. */
struct blank { __u64 words[sizeof(struct peer) / 8]; };
_Static_assert(sizeof(struct blank) == sizeof(struct peer), "whole words");

#define PEERS_MAX 1024
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PEERS_MAX);
	__type(key, __be32);
	__type(value, struct peer);
} peers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct blank);
} blank SEC(".maps");

/* What the agent of this router has found of a cloud; user space alone writes it. The entry of the address 0 says until when
 * there is an agent. */
struct told {
	__u64 capacity;	   /* B/s that the cloud has for what comes through it from that router */
	__u64 queue;	   /* bytes of ours that wait in it */
	__u64 valid_until; /* ns of CLOCK_MONOTONIC */
	__u64 held_until;  /* no increase after that and before this */
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PEERS_MAX + 2);
	__type(key, __be32);
	__type(value, struct told);
} told SEC(".maps");

static __always_inline int is_there(const struct told *t, __u64 now)
{
	return t && now < t->valid_until;
}

/* The entry of the router before the cloud, which it gets if it has none; 0: the table is full. */
static __always_inline struct peer *peer_of(__be32 *address)
{
	struct peer *peer = bpf_map_lookup_elem(&peers, address);
	struct blank *empty;
	__u32 key = 0;

	if (peer)
		return peer;
	empty = bpf_map_lookup_elem(&blank, &key);
	if (!empty)
		return 0;
	bpf_map_update_elem(&peers, address, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&peers, address);
}

/* A packet as it leaves: what it crossed, and what the cloud's virtual router grants it. Global, as parse is: the verifier
 * looks at it by itself. */
__attribute__((noinline)) int cross(struct __sk_buff *skb, struct packet *p, struct asked *asked, struct extension *more)
{
	__u64 now = bpf_ktime_get_ns(), since;
	int crossed, is_valid, is_held;
	struct told *t, *agent;
	struct Header header;
	struct config *c;
	struct peer *peer;
	__u32 key = 0, ttl;
	__be32 last, nobody = 0;
	__u8 *ip;

	if (!p || !asked || !more)
		return NOTHING;
	ip = bytes_at(skb, p->network, sizeof(struct iphdr));
	c = bpf_map_lookup_elem(&config, &key);
	if (!ip || !c)
		return NOTHING;
	ttl = ip[offsetof(struct iphdr, ttl)];
	/* What is sent from here has come with the TTL that it leaves with. */
	crossed = ttl + (skb->ingress_ifindex != 0);
	crossed = crossed < more->ttl ? CLOUD : crossed == more->ttl ? NOTHING : ANOMALY;
	last = more->last;
	key = more->ttl - ttl - (skb->ingress_ifindex != 0);
	more->ttl = ttl;
	more->last = c->own;
	if (crossed != CLOUD)
		return crossed;

	agent = bpf_map_lookup_elem(&told, &nobody);
	peer = last ? peer_of(&last) : 0;
	if (!peer) {
		/* Who waits for a place gets no increase, where somebody sees to it that places become free. */
		if (!is_there(agent, now))
			return WAITING;
		if ((__s32)asked->delta > 0)
			asked->delta = 0;
		return HELD;
	}
	t = bpf_map_lookup_elem(&told, &last);
	is_valid = is_there(t, now);
	is_held = !is_valid && t && now < t->held_until;
	bpf_spin_lock(&peer->lock);
	if (!peer->began) {
		peer->began = now;
		law_link_init(&peer->link, &c->law, c->phase, c->queue_phase);
	}
	peer->seen = now;
	peer->packets += p->segments;
	peer->bytes += p->size;
	peer->hops = key;
	if (is_valid) {
		since = now - peer->began;
		peer->ruled += p->segments;
		if (since >= law_link_next_deadline(&peer->link)) {
			law_link_set_capacity(&peer->link, t->capacity);
			law_link_on_other_departure(&peer->link, since, t->queue);
			law_link_on_deadline(&peer->link, since, t->queue);
			law_link_report(&peer->link, &peer->report);
		}
		sum(p, asked, &header);
		allot(&peer->link, &peer->rest, p, asked, &header, since, t->queue);
	}
	if (is_held)
		peer->held += p->segments;
	bpf_spin_unlock(&peer->lock);
	if (!is_held)
		return CLOUD;
	if ((__s32)asked->delta > 0)
		asked->delta = 0;
	return HELD;
}
