/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of SCONE (draft-ietf-scone-protocol): where the rate code is in a datagram, how it is lowered, and which flow
 * the datagram is of.
 *
 * Only the outermost IP header is looked at, and only the first packet of a datagram. Nothing is added, and no code is
 * raised. To be included behind `struct config` and `struct port`.
 */
#pragma once
#include <linux/udp.h>
#include <bpf/bpf_core_read.h>

/* src/router/any.rs looks for this text in the object. */
const char _place[] SEC("law") = "congestlab header: quic";

#define VERSION_BITS 0x6f7dc0fd /* of the draft; the highest bit of a version is the lowest one of the code */
#define START 5			/* bytes of a long header before the connection's names */
#define CODES 128
#define NO_SIGNAL 0xff /* of a packet that asks for no advice: crates/core/src/law/scone/mod.rs */
#define SEGMENTS_MAX 128 /* UDP_MAX_SEGMENTS */

/* Bits of gso_type, the same in every kernel since 4.18. */
#define GSO_UDP_L4 (1 << 17)
#define GSO_FRAGLIST (1 << 18)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct skb_shared_info { unsigned int gso_type; };
/* Of a kernel of 64 bits, where `end` counts from `head`. */
struct sk_buff___shared { unsigned char *head; unsigned int end; };
#pragma clang attribute pop

extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms")));

/* A flow begins with a packet that asks for advice. */
#define BEGINS(kind) ((kind) == WORKED_ON)

/* The code with which the datagram at this place begins; from CODES on: the count of a datagram without one. */
__attribute__((noinline)) int code_at(struct __sk_buff *skb, __u32 at, __u32 end)
{
	__u8 start[START + 3] = {}, length;
	__u32 version;

	if (at + START > end || bpf_skb_load_bytes(skb, at, start, START))
		return CODES + OTHER;
	version = start[1] << 24 | start[2] << 16 | start[3] << 8 | start[4];
	if (!(start[0] & 0x80) || (version & 0x7fffffff) != VERSION_BITS)
		return CODES + OTHER;
	at += START;
	/* Both names of the connection, and a packet behind: endpoints refuse what stands alone. */
	for (int i = 0; i < 2; i++) {
		if (at >= end || bpf_skb_load_bytes(skb, at, &length, sizeof(length)))
			return CODES + TRUNCATED;
		at += sizeof(length) + length;
	}
	return at < end ? (start[0] & 0x3f) << 1 | version >> 31 : CODES + TRUNCATED;
}

/* Writes a lower code; the checksum at that place is put right, at 0 none is. */
__attribute__((noinline)) int lower_at(struct __sk_buff *skb, __u32 at, __u32 checksum, __u32 code)
{
	__be16 old, new;
	__u8 bytes[2];

	if (bpf_skb_load_bytes(skb, at, bytes, sizeof(bytes)))
		return -1;
	__builtin_memcpy(&old, bytes, sizeof(old));
	bytes[0] = (bytes[0] & 0xc0) | (code >> 1 & 0x3f);
	bytes[1] = (bytes[1] & 0x7f) | (code & 1) << 7;
	__builtin_memcpy(&new, bytes, sizeof(new));
	if (bpf_skb_store_bytes(skb, at, bytes, sizeof(bytes), 0))
		return -1;
	if (!checksum)
		return 0;
	/* The flag: 0, which is no checksum, stays, and a sum of 0 is written as 0xffff. Without BPF_F_PSEUDO_HDR a
	 * checksum that an interface has yet to compute stays alone. */
	return bpf_l4_csum_replace(skb, checksum, old, new, BPF_F_MARK_MANGLED_0 | sizeof(new));
}

/* Bytes from one datagram to the next in a super-packet, of which segmentation makes datagrams that may each begin with
 * a packet of SCONE; 0: there is one to look at. Behind a tunnel's header such steps would lead anywhere. */
static __always_inline __u32 step(struct __sk_buff *skb)
{
	struct sk_buff___shared *kernel = bpf_cast_to_kern_ctx(skb);
	struct skb_shared_info *shared;

	if (!skb->gso_size)
		return 0;
	shared = bpf_rdonly_cast(kernel->head + kernel->end, bpf_core_type_id_kernel(struct skb_shared_info));
	/* Joined frames in a list keep headers of their own. */
	return (shared->gso_type & (GSO_UDP_L4 | GSO_FRAGLIST)) == GSO_UDP_L4 ? skb->gso_size : 0;
}

/* A name of the flow: addresses and ports, mixed. */
static __always_inline __u32 mixed(__u32 sum, __u32 word)
{
	sum = (sum ^ word) * 0x9e3779b1;
	return sum ^ sum >> 15;
}

__attribute__((noinline)) int name_of(struct __sk_buff *skb, struct packet *p)
{
	__u32 words[8] = {}, ports, sum = IPPROTO_UDP;
	struct iphdr *ip;

	if (!p)
		return 0;
	ip = bytes_at(skb, p->network, sizeof(*ip));
	if (!ip)
		return 0;
	if (ip->version == 4) {
		words[0] = ip->saddr;
		words[1] = ip->daddr;
	} else if (bpf_skb_load_bytes(skb, p->network + offsetof(struct ipv6hdr, saddr), words, sizeof(words))) {
		return 0;
	}
	if (bpf_skb_load_bytes(skb, p->at, &ports, sizeof(ports)))
		return 0;
	for (int i = 0; i < 8; i++)
		sum = mixed(sum, words[i]);
	return mixed(sum, ports);
}

/* Finds the code of a packet, and its flow. Of a super-packet the highest one: the law is asked once. */
__attribute__((noinline)) int read_packet(struct __sk_buff *skb, struct packet *p, struct Passing *passing)
{
	__u32 key = 0, at, next, highest = 0;
	int found, why;
	struct config *c;
	struct udphdr udp;

	c = bpf_map_lookup_elem(&config, &key);
	if (!p || !passing || !c)
		return OTHER;
	if (!find(skb, p, c->link_header)) {
		p->ecn = 0;
		return OTHER;
	}
	if (p->protocol != IPPROTO_UDP)
		return OTHER;
	if (p->is_fragment)
		return FRAGMENT;
	if (p->at + sizeof(udp) > p->end || bpf_skb_load_bytes(skb, p->at, &udp, sizeof(udp)))
		return OTHER;
	if (bpf_ntohs(udp.len) < sizeof(udp) || p->at + bpf_ntohs(udp.len) > p->end)
		return OTHER;
	p->end = p->at + bpf_ntohs(udp.len);
	p->checksum = p->at + offsetof(struct udphdr, check);
	p->header = at = p->at + sizeof(udp);
	next = step(skb);
	why = code_at(skb, at, next && at + next < p->end ? at + next : p->end);
	found = why < CODES;
	highest = found ? why : 0;
	for (int i = 1; i < SEGMENTS_MAX && next; i++) {
		__u32 code;

		at += next;
		if (at >= p->end)
			break;
		code = code_at(skb, at, at + next < p->end ? at + next : p->end);
		if (code >= CODES)
			continue;
		found = 1;
		if (code > highest)
			highest = code;
	}
	passing->words[1] = name_of(skb, p);
	passing->words[2] = found ? highest : NO_SIGNAL;
	passing->tag = c->form.tag;
	return found ? WORKED_ON : why - CODES;
}

/* Lowers what is higher than the law's answer. */
__attribute__((noinline)) int write_header(struct __sk_buff *skb, struct packet *p, struct Passing *passing)
{
	__u32 at, next, target, checksum;

	if (!p || !passing)
		return -1;
	at = p->header;
	target = passing->words[2];
	next = step(skb);
	/* What will be cut has the pseudo-header's sum alone, also where it is not marked so: udp_send_skb in net/ipv4/udp.c
	 * for interfaces that compute none. */
	checksum = next ? 0 : p->checksum;
	for (int i = 0; i < SEGMENTS_MAX; i++) {
		__u32 code;

		code = code_at(skb, at, next && at + next < p->end ? at + next : p->end);
		if (code < CODES && target < code && lower_at(skb, at, checksum, target))
			return -1;
		at += next;
		if (!next || at >= p->end)
			break;
	}
	return 0;
}
