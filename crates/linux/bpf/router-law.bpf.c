// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any link law at a router's output port: tc egress, before the packet is queued.
 *
 * Finds the law's header by what user space says of its bytes, hands the law words, and writes back those that it
 * changed, and the ECN field. Everything else passes as it is and counts as traffic. A super-packet is one packet of
 * its whole size. One loaded object serves one interface.
 *
 * With HEADER_H defined, that file finds, reads and writes the header elsewhere (router-scone.bpf.c).
 */
#include "packet.h"
#include LINK_H /* generated: what Rust's compiler made of link.rs.in and the law */

#define WORDS 32    /* bytes of a header's words, a power of two */
#define FIXED 0xff  /* a byte of the option that no word has */

#include "any.h"

/* A packet on its way, outside of the stack, of which laws want most. */
struct scratch {
	struct Passing passing;
	struct Passing trial;
	struct Link link;
};

/* A flow that a law remembers. */
struct flow { __u32 name[3]; };
struct record {
	__u64 seen; /* ns; 0: just begun */
	__u32 memory[8];
};

#include "port.h"

static __always_inline void start(struct port *port, struct config *config)
{
	port->capacity = config->capacity;
	port->settings = law_link_start(&port->link, &config->told, config->capacity, config->phase, config->second_phase);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* As many as the law remembers: the one seen last longest ago makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow);
	__type(value, struct record);
} flows SEC(".maps");

/* Words as bytes; rounded up, so that a mask bounds each access. */
union image {
	__u32 words[WORDS / 4];
	__u8 bytes[WORDS];
};

#ifdef HEADER_H
#include HEADER_H
#else
/* Finds what there is for the law in a packet, and reads it. */
__attribute__((noinline)) int read_packet(struct __sk_buff *skb, struct packet *p, struct Passing *passing)
{
	__u8 option[OPTIONS_MAX] = {};
	union image image = {};
	struct config *c;
	__u32 key = 0, size;
	int found;

	c = bpf_map_lookup_elem(&config, &key);
	if (!p || !passing || !c)
		return OTHER;
	if (!find(skb, p, c->link_header)) {
		p->ecn = 0;
		return OTHER;
	}
	if (!c->form.tag)
		return p->ecn ? WORKED_ON : OTHER;
	if (p->protocol != IPPROTO_TCP)
		return OTHER;
	if (p->is_fragment)
		return FRAGMENT;
	found = find_option(skb, p, c->form.name, c->form.sizes);
	if (found != WORKED_ON)
		return found;
	size = c->form.sizes >> 8;
	if (size < 4 || size > OPTIONS_MAX || bpf_skb_load_bytes(skb, p->header, option, size))
		return TRUNCATED;
	for (__u32 i = 4; i < OPTIONS_MAX && i < size; i++) {
		__u8 from = c->form.from[i];

		if (from != FIXED)
			image.bytes[from & (WORDS - 1)] = option[i];
		else if (option[i] != c->form.fixed[i])
			return VERSION;
	}
	__builtin_memcpy(passing->words, image.words, sizeof(passing->words));
	passing->tag = c->form.tag;
	return WORKED_ON;
}

/* Writes the words of a packet into its option, of which they may have changed. */
__attribute__((noinline)) int write_header(struct __sk_buff *skb, struct packet *p, struct Passing *passing)
{
	__u8 before[OPTIONS_MAX] = {}, after[OPTIONS_MAX] = {};
	union image image = {};
	struct config *c;
	__u32 key = 0, size;
	__s64 difference;

	c = bpf_map_lookup_elem(&config, &key);
	if (!p || !passing || !c)
		return -1;
	size = c->form.sizes >> 8;
	if (size < 4 || size > OPTIONS_MAX || bpf_skb_load_bytes(skb, p->header, before, size))
		return -1;
	__builtin_memcpy(image.words, passing->words, sizeof(passing->words));
	__builtin_memcpy(after, before, sizeof(after));
	for (__u32 i = 4; i < OPTIONS_MAX && i < size; i++) {
		__u8 from = c->form.from[i];

		if (from != FIXED)
			after[i] = image.bytes[from & (WORDS - 1)];
	}
	difference = bpf_csum_diff((__be32 *)before, sizeof(before), (__be32 *)after, sizeof(after), 0);
	if (difference < 0 || bpf_skb_store_bytes(skb, p->header, after, size, 0))
		return -1;
	/* Not BPF_F_PSEUDO_HDR: a checksum that an interface has yet to compute stays alone. */
	return bpf_l4_csum_replace(skb, p->checksum, 0, difference, 0);
}

/* A law that remembers flows begins one with any packet. */
#define BEGINS(kind) 1
#endif

/* Finds out which flow the law will ask for: it says so when it works on a copy. No map can be searched while the
 * port is locked. */
__attribute__((noinline)) int try_out(__u64 now, __u64 backlog)
{
	struct scratch *s;
	struct port *p;
	__u32 key = 0;

	p = bpf_map_lookup_elem(&port, &key);
	s = bpf_map_lookup_elem(&scratch, &key);
	if (!p || !s)
		return 0;
	__builtin_memcpy(&s->link, &p->link, sizeof(s->link));
	__builtin_memcpy(&s->trial, &s->passing, sizeof(s->trial));
	law_link_on_arrival(&s->link, now, &s->trial);
	law_link_on_departure(&s->link, now, &s->trial, backlog);
	return s->trial.remembers & 1;
}

/* The record of the flow that the law asked for; null if there is none or it was silent for too long, and none is to
 * begin. */
static __always_inline struct record *record_of(const struct Passing *trial, __u64 now, __u64 idle)
{
	struct record none = {}, *record;
	struct flow flow;

	__builtin_memcpy(&flow, trial->flow, sizeof(flow));
	record = bpf_map_lookup_elem(&flows, &flow);
	if (!record && trial->remembers & 2) {
		bpf_map_update_elem(&flows, &flow, &none, BPF_NOEXIST);
		record = bpf_map_lookup_elem(&flows, &flow);
	}
	if (record && !(trial->remembers & 2) && now - record->seen > idle)
		return 0;
	return record;
}

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u64 now = bpf_ktime_get_ns(), backlog = kernel->dev->qdisc->qstats.backlog, deadline;
	struct record *record = 0;
	struct packet packet = {};
	struct Passing *passing;
	union image before = {};
	struct scratch *s;
	struct config *c;
	struct port *p;
	__u32 key = 0;
	__u32 kind;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	s = bpf_map_lookup_elem(&scratch, &key);
	if (!c || !p || !s)
		return TC_ACT_UNSPEC;
	passing = &s->passing;
	__builtin_memset(passing, 0, sizeof(*passing));
	kind = read_packet(skb, &packet, passing);
	passing->size = packet.size;
	passing->ecn = packet.ecn;
	__builtin_memcpy(before.words, passing->words, sizeof(passing->words));
	now -= p->began;
	if (c->form.idle && try_out(now, backlog)) {
		if (!BEGINS(kind))
			s->trial.remembers &= ~2;
		record = record_of(&s->trial, now, c->form.idle * 1000000ull);
		/* Without a record it is a packet of others. */
		if (!record && !BEGINS(kind))
			passing->tag = 0;
	}

	bpf_spin_lock(&p->lock);
	/* No timers: the next packet serves what is due. */
	if (p->capacity != c->capacity) {
		p->capacity = c->capacity;
		law_link_set_capacity(&p->link, p->capacity);
	}
	deadline = law_link_next_deadline(&p->link);
	if (now >= deadline) {
		law_link_on_deadline(&p->link, now, backlog);
		law_link_report(&p->link, &p->report);
	}
	if (record) {
		if (now - record->seen > c->form.idle * 1000000ull)
			__builtin_memset(record->memory, 0, sizeof(record->memory));
		record->seen = now;
		__builtin_memcpy(passing->flow, s->trial.flow, sizeof(passing->flow));
		__builtin_memcpy(passing->memory, record->memory, sizeof(passing->memory));
		passing->remembers = 4;
	}
	law_link_on_arrival(&p->link, now, passing);
	law_link_on_departure(&p->link, now, passing, backlog);
	if (record)
		__builtin_memcpy(record->memory, passing->memory, sizeof(record->memory));
	/* Without control intervals, as of each packet. */
	if (deadline == ~0ull)
		law_link_report(&p->link, &p->report);
	count(p->counts, &packet, kind);
	p->now = now;
	p->backlog = backlog;
	bpf_spin_unlock(&p->lock);

	if ((passing->ecn != packet.ecn && set_ecn(skb, &packet, passing->ecn & 3)) ||
	    (passing->tag && __builtin_memcmp(before.words, passing->words, sizeof(passing->words)) &&
	     write_header(skb, &packet, passing)))
		count_unwritable(p, &packet, kind);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
