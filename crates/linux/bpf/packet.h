/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs at a router's output port share: where IP, its ECN field and TCP's options are in a packet.
 *
 * The larger parts are in global functions: the verifier looks at each by itself, not at all ways through them
 * together (553,000 instructions instead of a few).
 */
#pragma once
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

/* How many of each kind; src/router/program.rs has the same list. */
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

/* src/router.rs looks for this text in the object. */
const char _law[] SEC("law") = "congestlab law: " LAW_NAME;

#define OPTIONS_MAX 40
#define TAGS_MAX 2
#define EXTENSIONS_MAX 8
#define HEADERS_MAX 1023 /* bytes; the verifier wants a bound */

struct packet {
	__u32 segments;
	__u32 size;	 /* IP bytes, all segments */
	__u32 network;	 /* where IP begins */
	__u32 ecn;	 /* its ECN field; 0 of what is not IP */
	__u32 protocol, is_fragment;
	__u32 at, end;	 /* what IP carries */
	__u32 header;	 /* where the congestion header begins */
	__u32 checksum;	 /* where TCP's is */
};

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

/* Segments of a super-packet. Programs and other machines' interfaces hand in some without a number (virtio_net_hdr): the kernel
 * counts these when it cuts them, by the size of a segment. */
static __always_inline __u32 count_segments(struct __sk_buff *skb, __u32 protocol, __u32 at, __u32 end)
{
	__u32 headers = 8 /* of UDP */, unit = skb->gso_size;
	__u8 offset;

	if (skb->gso_segs || !unit)
		return skb->gso_segs > 1 ? skb->gso_segs : 1;
	if (protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, at + 12, &offset, sizeof(offset)))
			return 1;
		headers = offset >> 4 << 2;
	}
	at += headers;
	return end > at + unit ? (end - at + unit - 1) / unit : 1;
}

/* Finds IP and what it carries; 0 if it is none. The size is right whatever comes back. To be a part of a global
 * function, for it is long. */
static __always_inline int find(struct __sk_buff *skb, struct packet *p, __u32 link_header)
{
	int is_fragment = 0;
	__u8 protocol;
	__u32 at, end;
	__be16 type;

	at = network(skb, link_header, &type);
	p->network = at;
	p->segments = 1;
	p->size = skb->len - at;
	if (type == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = bytes_at(skb, at, sizeof(*ip));

		if (!ip || ip->version != 4 || ip->ihl < 5)
			return 0;
		/* Short frames are padded; a super-packet may be too long for the field, and is cut by its own length. */
		end = bpf_ntohs(ip->tot_len);
		if (end && end < p->size && !skb->gso_size)
			p->size = end;
		end = at + p->size;
		protocol = ip->protocol;
		p->ecn = ip->tos & 3;
		at += ip->ihl * 4;
		/* More fragments, or not the first one. */
		is_fragment = (ip->frag_off & bpf_htons(0x3fff)) != 0;
	} else if (type == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = bytes_at(skb, at, sizeof(*ip));

		if (!ip || ip->version != 6)
			return 0;
		end = bpf_ntohs(ip->payload_len);
		if (end && end + sizeof(*ip) < p->size && !skb->gso_size)
			p->size = end + sizeof(*ip);
		end = at + p->size;
		protocol = ip->nexthdr;
		p->ecn = ip->flow_lbl[0] >> 4 & 3;
		at += sizeof(*ip);
		for (int i = 0; i < EXTENSIONS_MAX; i++) {
			__u8 extension[2]; /* next header, and length beyond the first 8 bytes */

			is_fragment = protocol == IPPROTO_FRAGMENT;
			if (protocol != IPPROTO_HOPOPTS && protocol != IPPROTO_ROUTING &&
			    protocol != IPPROTO_DSTOPTS && !is_fragment)
				break;
			if (bpf_skb_load_bytes(skb, at, extension, sizeof(extension)))
				return 0;
			protocol = extension[0];
			if (is_fragment) /* what follows may be from anywhere in the packet */
				break;
			at += 8 + extension[1] * 8;
		}
	} else {
		return 0;
	}
	p->segments = count_segments(skb, protocol, at, end);
	p->protocol = protocol;
	p->is_fragment = is_fragment;
	p->at = at;
	p->end = end;
	/* The link will carry each segment with headers of its own; the kernel has counted them,
	 * with what comes before IP. */
	if (p->segments > 1 && skb->wire_len > skb->len)
		p->size = skb->wire_len - (skb->len - p->size) * p->segments;
	return 1;
}

/* Version and class are one word of IPv4's header, whose checksum covers it, and of IPv6's, whose ECN
 * field stands elsewhere in it. */
static __always_inline int set_ecn(struct __sk_buff *skb, const struct packet *p, __u32 code)
{
	__be16 old, new;
	__u8 bytes[2];

	if (bpf_skb_load_bytes(skb, p->network, bytes, sizeof(bytes)))
		return -1;
	__builtin_memcpy(&old, bytes, sizeof(old));
	if (bytes[0] >> 4 == 6)
		bytes[1] = (bytes[1] & ~0x30) | code << 4;
	else
		bytes[1] = (bytes[1] & ~3) | code;
	__builtin_memcpy(&new, bytes, sizeof(new));
	if (bytes[0] >> 4 == 4 &&
	    bpf_l3_csum_replace(skb, p->network + offsetof(struct iphdr, check), old, new, sizeof(new)))
		return -1;
	/* A checksum of the whole packet that the interface has told covers IPv6's header, too. */
	return bpf_skb_store_bytes(skb, p->network, bytes, sizeof(bytes),
				   bytes[0] >> 4 == 6 ? BPF_F_RECOMPUTE_CSUM : 0);
}

/* A walk through TCP's options. */
struct search {
	__u8 options[64]; /* longer than they can be, so that a mask bounds each access */
	__u32 length, next;
	__u32 kind, id, data, ack;
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
	} else if (kind != s->kind || size < 4 || s->options[(next + 2) & 63] != s->id >> 8 ||
		   s->options[(next + 3) & 63] != (s->id & 0xff)) {
		s->next = next + size;
		if (s->next <= length)
			return 0;
		s->found = MALFORMED;
	} else if (next + size > length) {
		s->found = TRUNCATED;
	} else if (size == s->data) {
		/* At an odd offset the words of the checksum would be other ones. */
		s->found = next & 1 ? ODD_OFFSET : WORKED_ON;
	} else if (size != s->ack) {
		s->found = WRONG_LENGTH;
	}
	return 1;
}

/* Names of an option, kind and identifier (RFC 6994), and its lengths on data and on ACKs, as one word each. */
#define OPTION_NAME(kind, id) ((kind) << 16 | (id))
#define OPTION_SIZES(data, ack) ((data) << 8 | (ack))

/* Finds TCP's option of that name: WORKED_ON, or why not. */
__attribute__((noinline)) int find_option(struct __sk_buff *skb, struct packet *p, __u32 name, __u32 sizes)
{
	struct search search = {
		.kind = name >> 16, .id = name & 0xffff, .data = sizes >> 8, .ack = sizes & 0xff, .found = OTHER
	};
	struct tcphdr *tcp;
	__u32 length, at, next, own;
	__be32 *first;

	if (!p)
		return OTHER;
	at = p->at;
	tcp = at + sizeof(*tcp) <= p->end ? bytes_at(skb, at, sizeof(*tcp)) : 0;
	if (!tcp)
		return OTHER; /* nothing says whose it is */
	length = tcp->doff * 4 - sizeof(*tcp);
	if (tcp->doff * 4 <= sizeof(*tcp) || length > OPTIONS_MAX)
		return OTHER;
	p->checksum = at + offsetof(struct tcphdr, check);
	at += sizeof(*tcp);
	if (at + length > p->end)
		return TRUNCATED;
	/* Where nearly all have it, the walk's first steps in one: first, or behind timestamps as Linux writes them. */
	first = length >= 16 ? bytes_at(skb, at, 16) : 0;
	if (first) {
		next = first[0] == bpf_htonl(0x0101080a) ? 12 : 0;
		own = (name >> 16) << 24 | (sizes >> 8) << 16 | (name & 0xffff);
		if ((next ? first[3] : first[0]) == bpf_htonl(own) && next + (sizes >> 8) <= length) {
			p->header = at + next;
			return WORKED_ON;
		}
	}
	if (bpf_skb_load_bytes(skb, at, search.options, length))
		return TRUNCATED;
	search.length = length;
	bpf_loop(OPTIONS_MAX, look, &search, 0);
	if (search.found == WORKED_ON)
		p->header = at + search.next;
	return search.found;
}
