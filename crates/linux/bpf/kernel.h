/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs here read of the running kernel's own structures. Only names and types matter:
 * the loader puts in the offsets that this kernel's BTF states.
 */
#pragma once
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gnet_stats_queue { __u32 qlen, backlog, drops; };
struct qdisc_skb_head { __u32 qlen; };
struct Qdisc { struct qdisc_skb_head q; struct gnet_stats_queue qstats; };
struct net_device { struct Qdisc *qdisc; };
struct sk_buff { struct net_device *dev; };

#pragma clang attribute pop

/* The packet as the kernel has it; its fields can be read like our own. */
extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));
