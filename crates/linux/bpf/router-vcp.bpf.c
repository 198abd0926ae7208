// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * VCP at a router's output port: tc egress, before the packet is queued. Its header is the ECN field of IP: whatever
 * carries a code is told the load, fragments as well. One loaded object serves one interface.
 *
 * With DPCP defined a packet of TCP tells one of two digits; which one, the order of its sequence and acknowledgment
 * number says (router-dpcp.bpf.c).
 */
#include "packet.h"
#ifdef DPCP
#include "dpcp.h"
#else
#include "vcp.h"
#endif

/* Written by user space; the capacity, with which the law's constants begin, also later. */
struct config {
	struct LinkConfig law;
	__u64 phase, queue_phase;
	__u32 encoding;	   /* for user space alone */
	__u32 link_header; /* bytes before IP: 14, or 0 on interfaces without Ethernet */
	__u32 undo;	   /* for user space alone: what to undo */
	__u32 which_law;   /* for user space alone */
};

struct port {
	struct bpf_spin_lock lock;
	__u32 rest; /* nothing, where XCP has something */
	__u64 began;
	struct Report report;
	__u64 counts[COUNTS];
	struct Link link;
};

#include "port.h"

static __always_inline void start(struct port *port, struct config *config)
{
	law_link_init(&port->link, &config->law, config->phase, config->queue_phase);
}

#ifdef DPCP
#include "chain.h"
#else
/* The code of a packet; 0: none. */
__attribute__((noinline)) int read_code(struct __sk_buff *skb, struct packet *p, __u32 link_header)
{
	return p && find(skb, p, link_header) ? p->ecn : 0;
}
#endif

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u64 now = bpf_ktime_get_ns(), backlog = kernel->dev->qdisc->qstats.backlog;
	struct packet packet = {};
#ifdef DPCP
	struct place place = {};
	struct record *record;
#endif
	struct config *c;
	struct port *p;
	__u32 key = 0;
	__u32 kind, code;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return TC_ACT_UNSPEC;
#ifdef DPCP
	packet.ecn = read_place(skb, &packet, &place, c->link_header) & 3;
#else
	packet.ecn = read_code(skb, &packet, c->link_header) & 3;
#endif
	code = packet.ecn;
	kind = code ? WORKED_ON : OTHER;
	now -= p->began;
#ifdef DPCP
	record = code && place.is_chain ? record_of(&place, now) : 0;
#endif

	bpf_spin_lock(&p->lock);
	/* No timers: the next packet serves what is due. None came since, so what is queued now is
	 * the least that was. */
	if (now >= law_link_next_deadline(&p->link)) {
		law_link_set_capacity(&p->link, c->law.capacity);
		law_link_on_deadline(&p->link, now, backlog);
		law_link_report(&p->link, &p->report);
	}
	law_link_on_arrival(&p->link, now, packet.size);
#ifdef DPCP
	if (record) {
		record->seen = now;
		code = law_link_mark(&p->link, place.index, code, &record->word) & 3;
	} else if (kind == WORKED_ON && (!place.is_chain || place.index < 2)) {
		/* No first packet of the flow came: it may be VCP's, whose codes are zones. */
		code = law_link_raise(&p->link, code) & 3;
	}
#else
	if (kind == WORKED_ON)
		code = law_link_raise(&p->link, code) & 3;
#endif
	count(p->counts, &packet, kind);
	bpf_spin_unlock(&p->lock);

	if (code != packet.ecn && set_ecn(skb, &packet, code))
		count_unwritable(p, &packet, kind);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
