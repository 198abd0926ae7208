/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port whose packets pass on several processors at once: each has a part of the law (crates/core/src/law/xcp/link/parts.rs) and
 * counts by itself. The lock guards the whole, which a processor visits when it has nothing left to hand out, and when it does
 * what is due for all. To be included by router.bpf.c behind what it knows of headers.
 *
 * The kernel's timers end with the last process that holds their map, and none stays here: so whoever's packet comes first when
 * something is due does it.
 */
#pragma once
#include <bpf/bpf_core_read.h>

#define LOOK 250000 /* ns between two looks at what waits */
#define QUEUES_MAX 4096 /* a power of two, so that a mask bounds each access */
#define PROCESSORS_MAX 8192

struct part {
	__u64 counts[COUNTS]; /* src/router/program.rs adds them up */
	__u32 rest, pad;      /* as the port's */
	struct Part law;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct part);
} parts SEC(".maps");

/* More of the kernel's own structures. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct netdev_queue { struct Qdisc *qdisc; };
struct net_device___queues { struct netdev_queue *_tx; __u32 real_num_tx_queues; };
#pragma clang attribute pop

extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms")));

struct waiting {
	struct netdev_queue *queues;
	struct Qdisc *last;
	__u64 bytes;
};

static long add_queue(__u32 i, struct waiting *w)
{
	struct netdev_queue *queue;
	struct Qdisc *qdisc;

	i &= QUEUES_MAX - 1;
	queue = bpf_rdonly_cast((void *)w->queues + i * bpf_core_type_size(struct netdev_queue),
				bpf_core_type_id_kernel(struct netdev_queue));
	qdisc = queue->qdisc;
	/* One that somebody has put in the place of all is there as often as there are queues. */
	if (qdisc != w->last)
		w->bytes += qdisc->qstats.backlog;
	w->last = qdisc;
	return 0;
}

/* Bytes that wait in all queues of a device. */
static __always_inline __u64 waiting_at(struct net_device *device)
{
	struct net_device___queues *d = (void *)device;
	struct waiting w = { .queues = d->_tx };

	bpf_loop(d->real_num_tx_queues & (QUEUES_MAX - 1), add_queue, &w, 0);
	return w.bytes;
}

struct gathering {
	struct port *port;
	__u64 parts;
};

static long gather(__u32 processor, struct gathering *g)
{
	__u32 key = 0;
	struct part *part = bpf_map_lookup_percpu_elem(&parts, &key, processor);

	if (!part)
		return 1;
	g->parts = processor + 1;
	bpf_spin_lock(&g->port->lock);
	law_link_take_in(&g->port->link, &part->law);
	bpf_spin_unlock(&g->port->lock);
	return 0;
}

/* Tells the law what waits, and lets it decide. Global, as the next one: the verifier looks at each by itself. */
__attribute__((noinline)) int decide(__u64 now, __u64 backlog)
{
	struct config *c;
	struct port *p;
	__u32 key = 0;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return 0;
	bpf_spin_lock(&p->lock);
	law_link_on_other_departure(&p->link, now, backlog);
	if (now >= law_link_next_deadline(&p->link)) {
		law_link_set_capacity(&p->link, *(__u64 *)&c->law);
		law_link_on_deadline(&p->link, now, backlog);
		law_link_report(&p->link, &p->report);
		p->interval = law_link_interval_number(&p->link);
	}
	bpf_spin_unlock(&p->lock);
	return 0;
}

/* Does what is due for all processors: one of them, unless it takes longer than until it is due again, and then what two do
 * is as right. */
__attribute__((noinline)) int serve(struct __sk_buff *skb, __u64 now)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	struct gathering g = {};
	struct port *p;
	__u32 key = 0;
	__u64 due;

	p = bpf_map_lookup_elem(&port, &key);
	if (!p)
		return 0;
	due = p->due;
	if (__sync_val_compare_and_swap(&p->due, due, now + LOOK) != due)
		return 0;
	if (now >= law_link_next_deadline(&p->link)) {
		g.port = p;
		bpf_loop(PROCESSORS_MAX, gather, &g, 0);
		p->parts = g.parts;
	}
	return decide(now, waiting_at(kernel->dev));
}

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct asked asked = {}, before;
	struct Header header = {};
	struct config *c;
	struct part *part;
	struct port *p;
	__u32 key = 0;
	__s64 scaled;
	__u64 now;
	__u32 kind;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	part = bpf_map_lookup_elem(&parts, &key);
	if (!c || !p || !part)
		return TC_ACT_UNSPEC;
	kind = parse(skb, &packet, &asked, c->link_header, c->encoding);
	before = asked;
	now = bpf_ktime_get_ns() - p->began;
	if (now >= p->due)
		serve(skb, now);
	count(part->counts, &packet, kind);
	if (kind != WORKED_ON) {
		law_part_other(&part->law, packet.size);
		return TC_ACT_UNSPEC;
	}
	sum(&packet, &asked, &header);
	scaled = header.delta;
	if (law_part_pass(&part->law, p->interval, &header, packet.size)) {
		bpf_spin_lock(&p->lock);
		law_link_lend(&p->link, &part->law, &header, packet.size, p->parts);
		bpf_spin_unlock(&p->lock);
		law_part_pass(&part->law, 0, &header, packet.size);
	}
	divide(&part->rest, &packet, &asked, &header, scaled);
	/* The draft's header counts no routers, and 0 says there that the time is unknown. */
	if (!asked.format && (asked.rtt & ROUTERS_MAX) != ROUTERS_MAX)
		asked.rtt++;
	if (write(skb, &packet, &asked, &before))
		recount(part->counts, &packet, kind);
	return TC_ACT_UNSPEC;
}
