// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A queue law at a router's output port, before its queue: tc egress. It looks at how much waits and at the ECN field,
 * and lets a packet pass, marks it or drops it. What is not IP passes and is not judged. A super-packet is judged once,
 * for all of its packets. One loaded object serves one interface.
 */
#include "packet.h"
#include LINK_H /* generated: what Rust's compiler made of queue.rs.in and the law */
#include "any.h"
#include "port.h"

#define UPDATES 4 /* for one packet, as in core's egress.rs */
/* What law_queue_judge returns. */
#define MARK 1
#define DROP 2
#define CE 3

static __always_inline void start(struct port *port, struct config *config)
{
	port->capacity = config->capacity;
	port->settings = law_queue_start(&port->link, &config->told, config->capacity, config->phase);
}

/* Finds IP; by itself, for it is long. */
__attribute__((noinline)) int read_ip(struct __sk_buff *skb, struct packet *p, __u32 link_header)
{
	return p && find(skb, p, link_header);
}

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u64 now = bpf_ktime_get_ns(), backlog = kernel->dev->qdisc->qstats.backlog;
	struct packet packet = {};
	__u32 key = 0, kind, waiting = kernel->dev->qdisc->q.qlen;
	__u64 verdict = 0;
	struct config *c;
	struct port *p;
	int is_ip;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return TC_ACT_UNSPEC;
	is_ip = read_ip(skb, &packet, c->link_header);
	kind = is_ip && packet.ecn ? WORKED_ON : OTHER;
	now -= p->began;

	bpf_spin_lock(&p->lock);
	if (p->capacity != c->capacity) {
		p->capacity = c->capacity;
		law_queue_set_rate(&p->link, p->capacity);
	}
	for (int i = 0; i < UPDATES; i++)
		if (!law_queue_serve(&p->link, now, backlog, waiting))
			break;
	if (is_ip)
		verdict = law_queue_judge(&p->link, now, packet.size, packet.ecn, packet.segments);
	law_link_report(&p->link, &p->report);
	count(p->counts, &packet, kind);
	p->now = now;
	p->backlog = backlog;
	bpf_spin_unlock(&p->lock);

	if (verdict == DROP)
		return TC_ACT_SHOT;
	if (verdict == MARK && packet.ecn != CE && set_ecn(skb, &packet, CE))
		count_unwritable(p, &packet, kind);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
