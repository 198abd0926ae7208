/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of a policer at a router's output port: who a flow is, and where its record lies. What is made of the records
 * is the law's (crates/core/src/law/police.rs). To be included behind `struct config` and `struct port`.
 *
 * Flows are told by addresses, protocol and ports, whose keyed hash says the bucket: who does not know the key can not fill
 * that of another one. The table is as large as it ever gets from the beginning.
 */
#pragma once

#define WAYS (sizeof(((struct Bucket *)0)->flows) / sizeof(__u64))
#define IN_USE ~0ull

/* A flow, for people. IPv4's addresses are the last bytes of theirs. */
struct name {
	__be32 from[4], to[4];
	__be16 ports[2]; /* of protocols that have them */
	__u8 protocol, version;
	__u16 pad;
};

struct bucket {
	struct Bucket of;
	struct name names[WAYS];
};

/* The number of buckets is told before it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} policed SEC(".maps");

/* The name of the flow of a packet on its way, outside of the stack, of which the law wants most. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name);
} scratch SEC(".maps");

/* Finds out whose a packet is. What is no IP is one flow together, and so are fragments between two hosts. */
__attribute__((noinline)) int name_of(struct __sk_buff *skb, struct packet *p, struct name *name)
{
	__u32 at;

	if (!p || !name || !p->at)
		return 0;
	at = p->at;
	if (p->network + sizeof(struct iphdr) <= at) {
		struct iphdr *ip = bytes_at(skb, p->network, sizeof(*ip));

		if (!ip)
			return 0;
		name->version = ip->version;
		name->from[3] = ip->saddr;
		name->to[3] = ip->daddr;
	}
	if (name->version != 4) {
		struct ipv6hdr *ip = bytes_at(skb, p->network, sizeof(*ip));

		if (!ip)
			return 0;
		__builtin_memcpy(name->from, &ip->saddr, sizeof(name->from));
		__builtin_memcpy(name->to, &ip->daddr, sizeof(name->to));
	}
	name->protocol = p->protocol;
	if (p->is_fragment)
		return 0;
	if (p->protocol == SHIM_PROTOCOL) { /* TCP is behind it, as far as its second byte says */
		__u8 *shim = bytes_at(skb, at, 2);

		at += shim ? shim[1] : 0;
	} else if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP && p->protocol != IPPROTO_UDPLITE &&
		   p->protocol != IPPROTO_DCCP && p->protocol != IPPROTO_SCTP) {
		return 0;
	}
	if (at + sizeof(name->ports) <= p->end) {
		__be16 *ports = bytes_at(skb, at, sizeof(name->ports));

		if (ports)
			__builtin_memcpy(name->ports, ports, sizeof(name->ports));
	}
	return 0;
}

#define TURNED(x, by) ((x) << (by) | (x) >> (64 - (by)))

struct sip { __u64 a, b, c, d; };

/* A round of SipHash (Aumasson and Bernstein, INDOCRYPT 2012). */
static __always_inline void turn(struct sip *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = TURNED(s->b, 13) ^ s->a;
	s->d = TURNED(s->d, 16) ^ s->c;
	s->a = TURNED(s->a, 32);
	s->c += s->b;
	s->a += s->d;
	s->b = TURNED(s->b, 17) ^ s->c;
	s->d = TURNED(s->d, 21) ^ s->a;
	s->c = TURNED(s->c, 32);
}

static __always_inline void take(struct sip *s, __u64 word)
{
	s->d ^= word;
	turn(s);
	s->a ^= word;
}

/* SipHash-1-3 of a name. All are as long as each other, so no length is hashed; 0 is nobody's. */
static __always_inline __u64 hash(const struct name *name, const __u64 key[2])
{
	const __u64 *words = (const __u64 *)name;
	struct sip s = {
		key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573,
	};
	__u64 hash;

	take(&s, words[4]);
	take(&s, words[1]);
	take(&s, words[3]);
	if (name->version != 4) { /* zeros */
		take(&s, words[0]);
		take(&s, words[2]);
	}
	s.c ^= 0xff;
	turn(&s);
	turn(&s);
	turn(&s);
	hash = s.a ^ s.b ^ s.c ^ s.d;
	return hash ? hash : 1;
}

static __always_inline __u32 bucket_of(const struct config *c, __u64 hash)
{
	return (hash >> 32) * (c->records / WAYS) >> 32;
}

/* A word of memory, of which the verifier knows nothing: it need not go on from each value that was written there. */
#define ANY(word) (*(volatile typeof(word) *)&(word))

/* The record at the place that was found last; a mask bounds it. */
static __always_inline struct Record *record_in(struct port *port, struct bucket *bucket)
{
	return &bucket->of.records[ANY(port->place) % WAYS];
}

/* Asks for the memory of a flow's record where it mostly is: one wait for all of it, not one for the names and another for the
 * record. */
static __always_inline void fetch(const struct bucket *bucket, __u64 flow)
{
	const struct Record *record = &bucket->of.records[flow % WAYS];

	(void)ANY(bucket->of.flows[flow % WAYS]);
	(void)ANY(record->began);
	(void)ANY(record->is_held);
}

/* Gives a flow the record of which the least is lost, if any is not in use: Bucket::begin of the law, whose loop the verifier would
 * follow in all combinations. Of several it is the first from the place on that the hash says. */
static __always_inline void begin(struct port *port, struct bucket *bucket, const struct name *name, __u64 flow)
{
	const struct Arrival *arrival = &port->arrival;

	port->loss = IN_USE;
	for (__u32 i = 0; i < WAYS; i++) {
		__u32 at = (i + flow) % WAYS;

		port->trial = law_police_loss(&bucket->of.records[at], bucket->of.flows[at], arrival->now);
		if (ANY(port->trial) < ANY(port->loss)) {
			port->loss = ANY(port->trial);
			port->place = at;
		}
	}
	if (ANY(port->loss) == IN_USE)
		return;
	law_police_give(&bucket->of, ANY(port->place) % WAYS, flow, arrival->now, arrival->size);
	bucket->names[ANY(port->place) % WAYS] = *name;
}

/* The flow of the last packet wants more than it has, if the queue has dropped one since: the program sees no drop, and runs
 * before each packet is queued. The port is locked. */
static __always_inline void note_drop(struct port *port, struct bucket *last, __u32 drops)
{
	if (drops == port->drops)
		return;
	port->drops = drops;
	port->place = law_police_find(&last->of, port->flow);
	if (ANY(port->place) < WAYS)
		law_police_note_drop(record_in(port, last));
}

/* Judges a packet, whose flow has a place in this bucket or gets one; 0: it is to be dropped. The port is locked. */
static __always_inline int judge(struct port *port, struct bucket *bucket, const struct name *name, __u64 flow,
				 struct Header *header)
{
	__u64 is_known;

	port->flow = flow;
	port->place = flow % WAYS; /* mostly */
	if (bucket->of.flows[flow % WAYS] != flow)
		port->place = law_police_find(&bucket->of, flow);
	is_known = ANY(port->place) < WAYS;
	if (!is_known)
		begin(port, bucket, name, flow);
	return law_police_judge(&port->police, record_in(port, bucket), is_known, &port->arrival, header);
}

/* Notes what the law has granted; the port is locked. */
static __always_inline void note_grant(struct port *port, struct bucket *bucket, __s32 delta)
{
	if (ANY(port->place) < WAYS)
		law_police_note_grant(record_in(port, bucket), delta);
}
