/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of a host read of the running kernel's sockets and packets: only names and types matter, the loader puts
 * in the offsets that this kernel's BTF states.
 */
#pragma once
#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common { unsigned int inum; };
struct net { struct ns_common ns; };
struct sock_common {
	volatile unsigned char skc_state;
	struct { struct net *net; } skc_net;
};
struct socket { unsigned long flags; };
struct net_device { int ifindex; };
struct dst_entry { struct net_device *dev; };
struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	__u32 sk_pacing_status;
	__u16 sk_gso_max_segs;
	__u32 sk_gso_max_size;
	struct socket *sk_socket;
};
struct inet_connection_sock_af_ops { __u16 net_header_len; };
struct inet_connection_sock {
	const struct inet_connection_sock_af_ops *icsk_af_ops;
	__u8 icsk_ca_state : 5, icsk_ca_initialized : 1, icsk_ca_setsockopt : 1;
	__u8 icsk_retransmits;
	__u16 icsk_ext_hdr_len;
	struct { __u16 rcv_mss; } icsk_ack;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u32 mss_cache, srtt_us, snd_wnd, rcv_wnd, snd_una, snd_nxt, write_seq, rcv_nxt;
	__u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh;
	__u32 packets_out, sacked_out, lost_out, retrans_out, data_segs_out;
};
struct rate_sample { long rtt_us; int losses; };
struct sk_buff {
	unsigned char *head;
	unsigned int end;
	__u16 network_header, mac_header;
	int skb_iif;
	__u8 ip_summed : 2;
};
struct skb_shared_info { unsigned short gso_segs; };
struct bpf_sock_ops_kern { struct sock *sk; struct sk_buff *syn_skb, *skb; };

#pragma clang attribute pop

/* The name stands first: the loader writes it. Types of functions are the kernel's to check. */
struct tcp_congestion_ops {
	char name[16];
	__u32 flags;
	void (*init)(void), (*release)(void), (*set_state)(void), (*cong_control)(void);
	void (*ssthresh)(void), (*undo_cwnd)(void), (*min_tso_segs)(void), (*sndbuf_expand)(void);
};

/* Weak: Linux has them since 6.2, and config says whether the running one does. */
extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms"), weak));
extern void *bpf_rdonly_cast(const void *, __u32) __attribute__((section(".ksyms"), weak));
