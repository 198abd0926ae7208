/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two classes at one port: packets whose header the law takes, and all others. The packet's priority names its class of HTB,
 * so no filter is wanted. Flows of both are counted in cells, which user space reads and empties; it alone changes the classes'
 * rates, for no program can.
 *
 * To be included by router.bpf.c behind what it knows of headers.
 */
#pragma once
#include <bpf/bpf_core_read.h>

enum class { TCP, XCP, CLASSES }; /* crates/core/src/law/queue/xcp_tcp.rs has the same numbers */

/* src/router/beside.rs makes these. */
#define XCP_CLASS 0x0cc10010
#define TCP_CLASS 0x0cc10020
#define XCP_QUEUE 0x0cc20000
#define TCP_QUEUE 0x0cc30000

#define CELLS 1020 /* crates/core/src/law/queue/census.rs */

/* Written by user space alone. */
struct classes {
	__u32 weight; /* XCP's part, millionths */
	__u32 pid;    /* who changes it */
	__u32 flows[CLASSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct classes);
} classes SEC(".maps");

struct cells { __u32 bytes[CELLS]; };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, __u32);
	__type(value, struct cells);
} census SEC(".maps");

/* More of the kernel's own structures; what follows three underscores is no part of a name. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hlist_node { struct hlist_node *next; };
struct hlist_head { struct hlist_node *first; };
struct Qdisc___hashed { struct hlist_node hash; __u32 handle; struct gnet_stats_queue qstats; };
struct net_device___hashed { struct hlist_head qdisc_hash[16]; };
#pragma clang attribute pop

extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms")));

/* Where a device has the queue of a handle: hash_32 in <linux/hash.h>, four bits of it. */
#define BUCKET(handle) ((__u32)((handle) * 0x61c88647u) >> 28)
#define QDISCS_MAX 16

/* Bytes that wait in the queue of a class. Looked for again each time: somebody may take it away. */
static __always_inline __u64 waiting(struct net_device *device, __u32 bucket, __u32 handle)
{
	struct hlist_node *node = ((struct net_device___hashed *)device)->qdisc_hash[bucket].first;
	struct Qdisc___hashed *queue;

	for (int i = 0; i < QDISCS_MAX && node; i++) {
		queue = bpf_rdonly_cast((void *)node - bpf_core_field_offset(struct Qdisc___hashed, hash),
					bpf_core_type_id_kernel(struct Qdisc___hashed));
		if (queue->handle == handle)
			return queue->qstats.backlog;
		node = queue->hash.next;
	}
	return 0;
}

/* A number by which the flow is told from others. Behind a shim the kernel sees no ports. */
static __always_inline __u32 flow_of(struct __sk_buff *skb, __u32 inner)
{
	__u32 flow = bpf_get_hash_recalc(skb), ports;

	if (inner && !bpf_skb_load_bytes(skb, inner, &ports, sizeof(ports)))
		flow ^= ports;
	return flow;
}

/* Counts a packet in the census; the port is locked. */
static __always_inline void count_flow(struct cells *cells, __u64 cell, __u64 data)
{
	__u64 bytes;

	if (cell >= CELLS)
		return;
	bytes = cells->bytes[cell] + data;
	cells->bytes[cell] = bytes > 0xffffffff ? 0xffffffff : bytes;
}
