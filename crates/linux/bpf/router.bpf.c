// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XCP at a router's output port: tc egress, before the packet is queued.
 *
 * Finds the congestion header, asks the link law, and writes back what it says. Everything else
 * passes as it is and counts as traffic. One loaded object serves one interface.
 */
#include "packet.h"
#ifndef LAW_H
#define LAW_H "law.h"
#endif
#include LAW_H

/* Where to look for headers; src/router/program.rs has the same list. */
enum encoding { OPTION, SHIM, BOTH = 4 };

/* Written by user space; the capacity, with which the law's constants begin, also later. */
struct config {
	struct LinkConfig law;
#ifdef XCPI
	__be32 own; /* our address towards this port's links */
	__u32 pad;
#endif
#ifdef BESIDE
	__u32 weight, follows; /* for user space alone: the first weight, and whether it stays */
#endif
#ifdef POLICE
	__u64 records; /* of the policer */
#endif
	__u64 phase, queue_phase;
	__u32 encoding;
	__u32 link_header; /* bytes before IP: 14, or 0 on interfaces without Ethernet */
	__u32 undo;	   /* for user space alone: what to undo */
	__u32 which_law;   /* for user space alone */
};

struct port {
	struct bpf_spin_lock lock;
	__u32 rest; /* B/s that did not divide by the segments of a super-packet */
	__u64 began;
	struct Report report;
	__u64 counts[COUNTS];
#ifdef PERCPU
	__u64 due;	/* when somebody has to look again whether the law has anything to do */
	__u64 interval; /* that runs, by its number */
	__u64 parts;	/* of the law */
#endif
#ifdef XCPI
	__u64 crossings[8]; /* by enum crossed; a mask bounds each access */
#endif
#ifdef BESIDE
	__u64 found, arrivals; /* bytes that those of the other class found waiting in its queue */
#endif
#ifdef POLICE
	struct Police police;
	__u64 key[2]; /* of the hash of flows */
	__u64 flow;   /* hash of that of the last packet */
	__u64 loss, trial; /* while a record is looked for */
	__u32 place;  /* of its record, in its bucket */
	__u32 drops;  /* of the queue, before that */
	struct Arrival arrival;
#endif
	struct Link link;
};

#include "port.h"

static __always_inline void start(struct port *port, struct config *config)
{
	law_link_init(&port->link, &config->law, config->phase, config->queue_phase);
#ifdef BESIDE
	law_link_set_capacity(&port->link, law_census_share(*(__u64 *)&config->law, config->weight));
#endif
#ifdef POLICE
	law_police_start(&port->police);
#endif
#ifdef PERCPU
	port->interval = law_link_interval_number(&port->link);
	port->due = 0;
#endif
}

#define KIND 253   /* crates/core/src/wire/option.rs */
#define EXID 0x5843
#define DATA 20
#define ACK 8
#define ROUTERS_MAX 15
#define SHIM_PROTOCOL 253 /* crates/core/src/wire/xcp.rs */
#define SHIM_LENGTH 20

#define INTEROPERABLE 3
#define INTEROPERABLE_LENGTH 28

/* What a packet asks for, as on the wire, but for the byte order. The format is that of a shim; an option has none, 0. */
struct asked { __u32 x, rtt, delta, format; };

static __always_inline int parse_shim(struct __sk_buff *skb, struct packet *p, struct asked *asked)
{
	__be32 *words = p->at + SHIM_LENGTH <= p->end ? bytes_at(skb, p->at, SHIM_LENGTH) : 0;
	__u8 *bytes = (__u8 *)words;

	if (!words)
		return TRUNCATED;
	if (bytes[2] >> 4 != 3)
		return VERSION;
	asked->format = bytes[2] & 0xf;
	/* XCP-i's has the draft's, and more behind it (docs/protocols/xcp-i.md). */
	if (bytes[1] != (asked->format == INTEROPERABLE ? INTEROPERABLE_LENGTH : SHIM_LENGTH))
		return WRONG_LENGTH;
	if (asked->format != 1 && asked->format != INTEROPERABLE)
		return OTHER; /* the minimal format, of ACKs */
	if (p->at + bytes[1] > p->end)
		return TRUNCATED;
	p->header = p->at;
	asked->x = bpf_ntohl(words[1]);
	asked->rtt = bpf_ntohl(words[2]);
	asked->delta = bpf_ntohl(words[4]);
	return WORKED_ON;
}

/* Finds the congestion header. The size is right whatever comes back. */
__attribute__((noinline)) int parse(struct __sk_buff *skb, struct packet *p, struct asked *asked,
				     __u32 link_header, __u32 encoding)
{
	__be32 *words;
	int found, is_shim;

	if (!p || !asked || !find(skb, p, link_header))
		return OTHER;
	is_shim = encoding != OPTION && p->protocol == SHIM_PROTOCOL;
	if (!is_shim && (encoding == SHIM || p->protocol != IPPROTO_TCP))
		return OTHER;
	if (p->is_fragment)
		return FRAGMENT;
	if (is_shim)
		return parse_shim(skb, p, asked);
	found = find_option(skb, p, OPTION_NAME(KIND, EXID), OPTION_SIZES(DATA, ACK));
	if (found != WORKED_ON)
		return found;
	words = bytes_at(skb, p->header + 4, 3 * sizeof(*words));
	if (!words)
		return TRUNCATED;
	asked->x = bpf_ntohl(words[0]);
	asked->rtt = bpf_ntohl(words[1]);
	asked->delta = bpf_ntohl(words[2]);
	return WORKED_ON;
}

static __always_inline __s64 clamp(__s64 value, __s64 least, __s64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* What all segments of a packet ask for together. */
static __always_inline void sum(const struct packet *p, const struct asked *asked, struct Header *header)
{
	__u64 x = (__u64)asked->x * p->segments;

	header->x = x > 0xffffffff ? 0xffffffff : x;
	header->rtt = asked->rtt & ~ROUTERS_MAX;
	header->delta = clamp((__s64)(__s32)asked->delta * p->segments, -0x80000000ll, 0x7fffffffll);
	header->reverse = 0;
}

/* Divides what a packet's segments got together, of which they had asked for so much, among them. */
static __always_inline void divide(__u32 *rest, const struct packet *p, struct asked *asked,
				   const struct Header *header, __s64 scaled)
{
	__s64 segments = p->segments, demand = (__s32)asked->delta, total, each;

	if (header->delta == scaled)
		return; /* it keeps what it asked for */
	/* Rounded down, which the machine does for numbers above zero only. */
	total = header->delta + (__s64)*rest;
	each = (__s64)((__u64)(total + (segments << 32)) / (__u64)segments) - (1ll << 32);
	if (each > demand)
		each = demand;
	*rest = total - each * segments;
	asked->delta = each;
}

/* The share of a packet. */
static __always_inline void allot(struct Link *link, __u32 *rest, const struct packet *p, struct asked *asked,
				  struct Header *header, __u64 now, __u64 backlog)
{
	__s64 scaled = header->delta;

	law_link_on_arrival(link, now, header, p->size);
	law_link_on_departure(link, now, header, p->size, backlog);
	divide(rest, p, asked, header, scaled);
}

static __always_inline int write(struct __sk_buff *skb, const struct packet *p, const struct asked *asked,
				 const struct asked *before)
{
	__be32 new[] = { bpf_htonl(asked->rtt), bpf_htonl(asked->delta) };
	__u64 difference;

	if (asked->format) /* TCP's checksum does not cover it */
		return bpf_skb_store_bytes(skb, p->header + 16, &new[1], sizeof(new[1]),
					   BPF_F_RECOMPUTE_CSUM);
	if (bpf_skb_store_bytes(skb, p->header + 8, new, sizeof(new), 0))
		return -1;
	/* Not BPF_F_PSEUDO_HDR: a checksum that an interface has yet to compute stays alone. */
	difference = (__u64)new[0] + (__u32)~bpf_htonl(before->rtt) + new[1] + (__u32)~bpf_htonl(before->delta);
	difference = (difference & 0xffffffff) + (difference >> 32);
	difference = (difference & 0xffffffff) + (difference >> 32);
	return bpf_l4_csum_replace(skb, p->checksum, 0, difference, 0);
}

#ifdef XCPI
#include "xcpi.h"
#endif
#ifdef BESIDE
#include "classes.h"
#endif
#ifdef POLICE
#include "policer.h"
#endif
#ifdef PERCPU
#include "processors.h"
#else

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u64 now = bpf_ktime_get_ns(), backlog = kernel->dev->qdisc->qstats.backlog;
	struct packet packet = {};
	struct asked asked = {}, before;
	struct Header header = {};
	struct config *c;
	struct port *p;
	__u32 key = 0;
	__u32 kind;
#ifdef XCPI
	int is_interoperable, crossed = 0;
	struct extension more = {};
#endif
#ifdef BESIDE
	__u64 found, cell, data;
	struct classes *share;
	struct cells *cells;
	__u32 class;
#endif
#ifdef POLICE
	__u32 drops = kernel->dev->qdisc->qstats.drops, index, last_index;
	struct bucket *bucket, *last;
	struct name *name;
	__u64 flow;
#endif

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return TC_ACT_UNSPEC;
	kind = parse(skb, &packet, &asked, c->link_header, c->encoding);
	before = asked;
#ifdef XCPI
	is_interoperable = kind == WORKED_ON && asked.format == INTEROPERABLE &&
			   !bpf_skb_load_bytes(skb, packet.header + SHIM_LENGTH, &more, sizeof(more));
	if (is_interoperable) {
		crossed = cross(skb, &packet, &asked, &more);
		/* Opaque, or the compiler knows the range and the verifier does not. */
		asm volatile("" : "+r"(crossed));
		crossed &= 7;
		now = bpf_ktime_get_ns();
	}
#endif
#ifdef BESIDE
	class = kind == WORKED_ON ? XCP : TCP;
	share = bpf_map_lookup_elem(&classes, &key);
	cells = bpf_map_lookup_elem(&census, &class);
	if (!share || !cells)
		return TC_ACT_UNSPEC;
	skb->priority = class == XCP ? XCP_CLASS : TCP_CLASS;
	cell = law_census_cell(flow_of(skb, class == XCP && asked.format ? packet.header + SHIM_LENGTH : 0));
	data = law_census_data(packet.size / packet.segments) * packet.segments;
	found = waiting(kernel->dev, BUCKET(TCP_QUEUE), TCP_QUEUE);
	backlog = waiting(kernel->dev, BUCKET(XCP_QUEUE), XCP_QUEUE);
#endif
#ifdef POLICE
	name = bpf_map_lookup_elem(&scratch, &key);
	if (!name)
		return TC_ACT_UNSPEC;
	__builtin_memset(name, 0, sizeof(*name));
	name_of(skb, &packet, name);
	flow = hash(name, p->key);
	index = bucket_of(c, flow);
	last_index = bucket_of(c, p->flow);
	bucket = bpf_map_lookup_elem(&policed, &index);
	last = bpf_map_lookup_elem(&policed, &last_index);
	if (!bucket || !last)
		return TC_ACT_UNSPEC;
	fetch(bucket, flow);
#endif
	now -= p->began;

	bpf_spin_lock(&p->lock);
	/* No timers: the next packet serves what is due. None came since, so what is queued now is
	 * the least that was. */
	if (now >= law_link_next_deadline(&p->link)) {
#ifdef BESIDE
		law_link_set_capacity(&p->link, law_census_share(*(__u64 *)&c->law, share->weight));
#else
		law_link_set_capacity(&p->link, *(__u64 *)&c->law);
#endif
		law_link_on_other_departure(&p->link, now, backlog);
		law_link_on_deadline(&p->link, now, backlog);
		law_link_report(&p->link, &p->report);
	}
	if (kind == WORKED_ON)
		sum(&packet, &asked, &header);
#ifdef POLICE
	note_drop(p, last, drops);
	p->arrival.now = now;
	p->arrival.capacity = *(__u64 *)&c->law;
	p->arrival.size = packet.size;
	p->arrival.packets = packet.segments;
	if (!judge(p, bucket, name, flow, &header)) {
		p->counts[PACKETS] += packet.segments;
		p->counts[BYTES] += packet.size;
		bpf_spin_unlock(&p->lock);
		return TC_ACT_SHOT;
	}
#endif
	if (kind == WORKED_ON) {
		allot(&p->link, &p->rest, &packet, &asked, &header, now, backlog);
#ifdef POLICE
		note_grant(p, bucket, header.delta);
#endif
	} else {
#ifdef BESIDE
		/* None of the law's affair. */
		p->found += found;
		p->arrivals++;
#else
		law_link_on_arrival(&p->link, now, &header, packet.size);
		law_link_on_other_departure(&p->link, now, backlog);
#endif
	}
	count(p->counts, &packet, kind);
#ifdef BESIDE
	count_flow(cells, cell, data);
#endif
#ifdef XCPI
	if (is_interoperable)
		p->crossings[crossed] += packet.segments;
#endif
	bpf_spin_unlock(&p->lock);

	if (kind != WORKED_ON)
		return TC_ACT_UNSPEC;
	/* The draft's header counts no routers, and 0 says there that the time is unknown. */
	if (!asked.format && (asked.rtt & ROUTERS_MAX) != ROUTERS_MAX)
		asked.rtt++;
#ifdef XCPI
	if (is_interoperable && bpf_skb_store_bytes(skb, packet.header + SHIM_LENGTH, &more, sizeof(more),
						    BPF_F_RECOMPUTE_CSUM)) {
		count_unwritable(p, &packet, kind);
		return TC_ACT_UNSPEC;
	}
#endif
	if (write(skb, &packet, &asked, &before))
		count_unwritable(p, &packet, kind);
	return TC_ACT_UNSPEC;
}
#endif

char _license[] SEC("license") = "GPL";
