// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XCP at a router's output port: tc egress, before the packet is queued.
 *
 * Finds the congestion header, asks the link law, and writes back what it says. Everything else
 * passes as it is and counts as traffic. One loaded object serves one interface.
 *
 * With VCP defined the header is the ECN field of IP (router-vcp.bpf.c).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "kernel.h"
#ifdef VCP
#include "vcp.h"
#else
#include "law.h"
#endif
#ifdef PXCP
#define CAPACITY xcp.capacity
#else
#define CAPACITY capacity
#endif

/* How many of each kind; src/router.rs has the same list. */
enum count {
	PACKETS,  /* all */
	BYTES,	  /* of IP */
	WORKED_ON,
	OTHER,	  /* without a header for routers */
	/* Refused: a header that is there and wrong. */
	ODD_OFFSET,
	WRONG_LENGTH,
	TRUNCATED,
	MALFORMED, /* the list of TCP options can not be read */
	VERSION,
	UNWRITABLE, /* the kernel did not let us */
	FRAGMENT,   /* of a packet that could have a header */
	COUNTS,
};

enum encoding { OPTION, SHIM, ECN };

/* Written by user space; the capacity also later. */
struct config {
	struct LinkConfig law;
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
	struct Link link;
};

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

/* src/router.rs looks for this text in the object. */
const char _law[] SEC("law") = "congestlab law: " LAW_NAME;

#define KIND 253   /* crates/core/src/wire/option.rs */
#define EXID 0x5843
#define DATA 20
#define ACK 8
#define OPTIONS_MAX 40
#define ROUTERS_MAX 15
#define SHIM_PROTOCOL 253 /* crates/core/src/wire/xcp.rs */
#define SHIM_LENGTH 20
#define TAGS_MAX 2
#define EXTENSIONS_MAX 8

/* What the parts below find. They are global functions: the verifier looks at each by itself, not at all
 * ways through them together (553,000 instructions instead of a few). */
struct packet {
	__u32 segments;
	__u32 size;	/* IP bytes, all segments */
	__u32 header;	/* where the congestion header begins */
	__u32 checksum; /* where TCP's is */
	__u32 x, rtt, delta; /* as on the wire, but for the byte order */
#ifdef VCP
	__u32 code; /* the ECN field, as it came and as it leaves */
#endif
};

#define HEADERS_MAX 1023 /* bytes; the verifier wants a bound */

/* Bytes of the packet, to read: cheaper than copying them by bpf_skb_load_bytes. Null if the packet ends
 * before; what lies in fragments is brought to the front, and earlier pointers are void then. */
static __always_inline void *bytes_at(struct __sk_buff *skb, __u32 at, __u32 size)
{
	void *bytes;

	if (at > HEADERS_MAX)
		return 0;
	/* Opaque, or the compiler checks a copy and the verifier does not believe it. */
	asm volatile("" : "+r"(at));
	at &= HEADERS_MAX;
	bytes = (void *)(long)skb->data + at;
	if (bytes + size <= (void *)(long)skb->data_end)
		return bytes;
	if (at + size > skb->len || bpf_skb_pull_data(skb, at + size))
		return 0;
	bytes = (void *)(long)skb->data + at;
	return bytes + size <= (void *)(long)skb->data_end ? bytes : 0;
}

/* Where IP begins; the type is whatever follows the VLAN tags that are part of the packet. */
static __always_inline __u32 network(struct __sk_buff *skb, __u32 link_header, __be16 *type)
{
	__be16 tag[2], *outer;
	__u32 at = link_header;

	if (!link_header) {
		*type = skb->protocol;
		return 0;
	}
	outer = bytes_at(skb, at - sizeof(*type), sizeof(*type));
	*type = outer ? *outer : 0;
	for (int i = 0; i < TAGS_MAX; i++) {
		if (*type != bpf_htons(ETH_P_8021Q) && *type != bpf_htons(ETH_P_8021AD))
			break;
		if (bpf_skb_load_bytes(skb, at, tag, sizeof(tag)))
			break;
		*type = tag[1];
		at += sizeof(tag);
	}
	return at;
}

#ifndef VCP
__attribute__((noinline)) int parse_shim(struct __sk_buff *skb, struct packet *p, __u32 at,
					  __u32 end)
{
	__be32 *words;
	__u8 *bytes;

	if (!p)
		return OTHER;
	words = at + SHIM_LENGTH <= end ? bytes_at(skb, at, SHIM_LENGTH) : 0;
	if (!words)
		return TRUNCATED;
	bytes = (__u8 *)words;
	if (bytes[2] >> 4 != 3)
		return VERSION;
	if (bytes[1] != SHIM_LENGTH)
		return WRONG_LENGTH;
	if ((bytes[2] & 0xf) != 1)
		return OTHER; /* the minimal format, of ACKs */
	p->header = at;
	p->x = bpf_ntohl(words[1]);
	p->rtt = bpf_ntohl(words[2]);
	p->delta = bpf_ntohl(words[4]);
	return WORKED_ON;
}

/* A walk through TCP's options. */
struct search {
	__u8 options[64]; /* longer than they can be, so that a mask bounds each access */
	__u32 length, next;
	enum count found; /* WORKED_ON: at next */
};

/* One option; 1 ends the walk. A callback, because the verifier would follow 40 rounds of a loop in
 * all combinations. */
static long look(__u32 i, struct search *s)
{
	__u32 next = s->next & 63, length = s->length;
	__u8 kind = s->options[next], size = s->options[(next + 1) & 63];

	if (next >= length || kind == 0) /* the end of the list */
		return 1;
	if (kind == 1) { /* padding */
		s->next = next + 1;
		return 0;
	}
	if (next + 1 >= length || size < 2) {
		s->found = MALFORMED;
	} else if (kind != KIND || size < 4 || s->options[(next + 2) & 63] != EXID >> 8 ||
		   s->options[(next + 3) & 63] != (EXID & 0xff)) {
		s->next = next + size;
		if (s->next <= length)
			return 0;
		s->found = MALFORMED;
	} else if (next + size > length) {
		s->found = TRUNCATED;
	} else if (size == DATA) {
		/* At an odd offset the words of the checksum would be other ones. */
		s->found = next & 1 ? ODD_OFFSET : WORKED_ON;
	} else if (size != ACK) {
		s->found = WRONG_LENGTH;
	}
	return 1;
}

__attribute__((noinline)) int parse_option(struct __sk_buff *skb, struct packet *p, __u32 at,
					    __u32 end)
{
	struct search search = { .found = OTHER };
	struct tcphdr *tcp;
	__be32 *words;
	__u32 length;

	if (!p)
		return OTHER;
	tcp = at + sizeof(*tcp) <= end ? bytes_at(skb, at, sizeof(*tcp)) : 0;
	if (!tcp)
		return OTHER; /* nothing says whose it is */
	length = tcp->doff * 4 - sizeof(*tcp);
	if (tcp->doff * 4 <= sizeof(*tcp) || length > OPTIONS_MAX)
		return OTHER;
	p->checksum = at + offsetof(struct tcphdr, check);
	at += sizeof(*tcp);
	if (at + length > end || bpf_skb_load_bytes(skb, at, search.options, length))
		return TRUNCATED;
	search.length = length;
	bpf_loop(OPTIONS_MAX, look, &search, 0);
	if (search.found != WORKED_ON)
		return search.found;
	p->header = at + search.next;
	words = bytes_at(skb, p->header + 4, 3 * sizeof(*words));
	if (!words)
		return TRUNCATED;
	p->x = bpf_ntohl(words[0]);
	p->rtt = bpf_ntohl(words[1]);
	p->delta = bpf_ntohl(words[2]);
	return WORKED_ON;
}

#endif

/* Finds the congestion header. The size is right whatever comes back. */
__attribute__((noinline)) int parse(struct __sk_buff *skb, struct packet *p, __u32 link_header,
				     __u32 encoding)
{
	int is_fragment = 0;
	__u8 protocol;
	__u32 at, end;
	__be16 type;

	if (!p)
		return OTHER;
	at = network(skb, link_header, &type);
	p->segments = skb->gso_segs > 1 ? skb->gso_segs : 1;
	p->size = skb->len - at;
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = bytes_at(skb, at, sizeof(*ip));

		if (!ip || ip->version != 4 || ip->ihl < 5)
			return OTHER;
		/* Short frames are padded; a super-packet may be too long for the field. */
		end = bpf_ntohs(ip->tot_len);
		if (end && end < p->size)
			p->size = end;
		end = at + p->size;
		protocol = ip->protocol;
#ifdef VCP
		p->header = at;
		p->code = ip->tos & 3;
#endif
		at += ip->ihl * 4;
		/* More fragments, or not the first one. */
		is_fragment = (ip->frag_off & bpf_htons(0x3fff)) != 0;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = bytes_at(skb, at, sizeof(*ip));

		if (!ip || ip->version != 6)
			return OTHER;
		end = bpf_ntohs(ip->payload_len);
		if (end && end + sizeof(*ip) < p->size)
			p->size = end + sizeof(*ip);
		end = at + p->size;
		protocol = ip->nexthdr;
#ifdef VCP
		p->header = at;
		p->code = ip->flow_lbl[0] >> 4 & 3;
#endif
		at += sizeof(*ip);
		for (int i = 0; i < EXTENSIONS_MAX; i++) {
			__u8 extension[2]; /* next header, and length beyond the first 8 bytes */

			is_fragment = protocol == IPPROTO_FRAGMENT;
			if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_ROUTING &&
			    protocol != IPPROTO_DSTOPTS && !is_fragment)
				break;
			if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
				return OTHER;
			protocol = extension[0];
			if (is_fragment) /* what follows may be from anywhere in the packet */
				break;
			at += 8 + extension[1] * 8;
		}
	} else {
		return OTHER;
	}
	/* The link will carry each segment with headers of its own; the kernel has counted them,
	 * with what comes before IP. */
	if (p->segments > 1 && skb->wire_len > skb->len)
		p->size = skb->wire_len - (skb->len - p->size) * p->segments;
#ifdef VCP
	/* The field is IP's: whatever carries a code is told, fragments as well. */
	(void)protocol;
	(void)is_fragment;
	asm volatile("" : : "r"(encoding)); /* or callers would leave it out */
	return p->code ? WORKED_ON : OTHER;
#else
	if (protocol != (encoding == SHIM ? SHIM_PROTOCOL : IPPROTO_TCP))
		return OTHER;
	if (is_fragment)
		return FRAGMENT;
	return encoding == SHIM ? parse_shim(skb, p, at, end) : parse_option(skb, p, at, end);
#endif
}

#ifdef VCP
/* Version and class are one word of IPv4's header, whose checksum covers it, and of IPv6's, whose ECN
 * field stands elsewhere in it. */
static __always_inline int write(struct __sk_buff *skb, __u32 encoding, const struct packet *p,
				 const struct packet *before)
{
	__be16 old, new;
	__u8 bytes[2];

	if (p->code == before->code)
		return 0;
	if (bpf_skb_load_bytes(skb, p->header, bytes, sizeof(bytes)))
		return -1;
	__builtin_memcpy(&old, bytes, sizeof(old));
	if (bytes[0] >> 4 == 6)
		bytes[1] = (bytes[1] & ~0x30) | p->code << 4;
	else
		bytes[1] = (bytes[1] & ~3) | p->code;
	__builtin_memcpy(&new, bytes, sizeof(new));
	if (bytes[0] >> 4 == 4 &&
	    bpf_l3_csum_replace(skb, p->header + offsetof(struct iphdr, check), old, new, sizeof(new)))
		return -1;
	/* A checksum of the whole packet that the interface has told covers IPv6's header, too. */
	return bpf_skb_store_bytes(skb, p->header, bytes, sizeof(bytes),
				   bytes[0] >> 4 == 6 ? BPF_F_RECOMPUTE_CSUM : 0);
}
#else
static __always_inline __s64 clamp(__s64 value, __s64 least, __s64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* The share of a packet: of all its segments together, then divided among them. */
static __always_inline void allot(struct port *port, struct packet *p, __u64 now, __u64 backlog)
{
	__s64 segments = p->segments, demand = (__s32)p->delta, scaled, total, each;
	__u64 x = (__u64)p->x * p->segments;
	struct Header header;

	scaled = clamp(demand * segments, -0x80000000ll, 0x7fffffffll);
	header.x = x > 0xffffffff ? 0xffffffff : x;
	header.rtt = p->rtt & ~ROUTERS_MAX;
	header.delta = scaled;
	header.reverse = 0;
	law_link_on_arrival(&port->link, now, &header, p->size);
	law_link_on_departure(&port->link, now, &header, p->size, backlog);
	if (header.delta == scaled)
		return; /* it keeps what it asked for */
	/* Rounded down, which the machine does for numbers above zero only. */
	total = header.delta + (__s64)port->rest;
	each = (__s64)((__u64)(total + (segments << 32)) / (__u64)segments) - (1ll << 32);
	if (each > demand)
		each = demand;
	port->rest = total - each * segments;
	p->delta = each;
}

static __always_inline int write(struct __sk_buff *skb, __u32 encoding, const struct packet *p,
				 const struct packet *before)
{
	__be32 new[] = { bpf_htonl(p->rtt), bpf_htonl(p->delta) };
	__u64 difference;

	if (encoding == SHIM) /* TCP's checksum does not cover it */
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
#endif

SEC("tc")
int cl_router(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	__u64 now = bpf_ktime_get_ns(), backlog = kernel->dev->qdisc->qstats.backlog;
	struct packet packet = {}, before;
	struct config *c;
	struct port *p;
	__u32 key = 0;
	__u32 kind;

	c = bpf_map_lookup_elem(&config, &key);
	p = bpf_map_lookup_elem(&port, &key);
	if (!c || !p)
		return TC_ACT_UNSPEC;
	kind = parse(skb, &packet, c->link_header, c->encoding);
#ifdef VCP
	asm volatile("" : "+r"(kind)); /* or the check below is left out, and the verifier wants it */
#endif
	before = packet;
	now -= p->began;

	bpf_spin_lock(&p->lock);
	/* No timers: the next packet serves what is due. None came since, so what is queued now is
	 * the least that was. */
	if (now >= law_link_next_deadline(&p->link)) {
		law_link_set_capacity(&p->link, c->law.CAPACITY);
#ifndef VCP
		law_link_on_other_departure(&p->link, now, backlog);
#endif
		law_link_on_deadline(&p->link, now, backlog);
		law_link_report(&p->link, &p->report);
	}
#ifdef VCP
	law_link_on_arrival(&p->link, now, packet.size);
	if (kind == WORKED_ON)
		packet.code = law_link_raise(&p->link, packet.code);
#else
	if (kind == WORKED_ON) {
		allot(p, &packet, now, backlog);
	} else {
		struct Header none = {};

		law_link_on_arrival(&p->link, now, &none, packet.size);
		law_link_on_other_departure(&p->link, now, backlog);
	}
#endif
	p->counts[PACKETS] += packet.segments;
	p->counts[BYTES] += packet.size;
	p->counts[kind < COUNTS ? kind : OTHER] += packet.segments;
	bpf_spin_unlock(&p->lock);

	if (kind != WORKED_ON)
		return TC_ACT_UNSPEC;
#ifndef VCP
	/* The draft's header counts no routers, and 0 says there that the time is unknown. */
	if (c->encoding == OPTION && (packet.rtt & ROUTERS_MAX) != ROUTERS_MAX)
		packet.rtt++;
#endif
	if (write(skb, c->encoding, &packet, &before)) {
		bpf_spin_lock(&p->lock);
		p->counts[WORKED_ON] -= packet.segments;
		p->counts[UNWRITABLE] += packet.segments;
		bpf_spin_unlock(&p->lock);
	}
	return TC_ACT_UNSPEC;
}

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
	bpf_spin_lock(&p->lock);
	law_link_init(&p->link, &c->law, c->phase, c->queue_phase);
	law_link_report(&p->link, &p->report);
	bpf_spin_unlock(&p->lock);
	return 0;
}

char _license[] SEC("license") = "GPL";
