// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XCP on an end host: a congestion control (struct_ops) and the congestion header, as a TCP option
 * (sock_ops) or between IP and TCP (tc). Between them stand the sender and echo laws of crates/core,
 * on one state per socket.
 *
 * This file moves fields and keeps the peace: whom to speak to, when to leave a connection to the
 * kernel's own law, and when to take it back. What a window should be is the laws' business.
 *
 * With VCP defined the congestion header is the ECN field, and an option is the echo alone (host-vcp.bpf.c); with DPCP, too,
 * that of two packets, which the order of their numbers tells apart (host-dpcp.bpf.c); with TPCP of three, by the checksum
 * (host-tpcp.bpf.c); with MARKS the law is one whose receivers count its codes (host-dctcp.bpf.c). With XCPR the receiver
 * keeps the window: every packet has one option more (host-xcpr.bpf.c).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#ifdef MARKS
#include MARKS
#elif defined(TPCP)
#include "tpcp.h"
#elif defined(DPCP)
#include "dpcp.h"
#elif defined(VCP)
#include "vcp.h"
#elif defined(XCPR)
#include "xcpr.h"
#else
#include "law.h"
#define PLAIN /* XCP itself, which alone has the header between IP and TCP, too */
#endif

#include "sock.h"

/* From the kernel's headers; no BTF tells of macros, and these never change. */
#define SOL_TCP 6
#define AF_INET 2
#define AF_INET6 10
#define TCP_SAVE_SYN 27
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CA_OPEN 0
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define SOCK_NOSPACE 2
#define PACING_NONE 0
#define PACING_NEEDED 1
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
#define SYN 0x02
#define ACK 0x10

/* crates/core/src/wire/option.rs */
#define KIND 253
#define DATA_OPTION 20
#define ACK_OPTION 8
#ifdef VCP
#ifdef MARKS /* with a number and a name of its own */
#elif defined(TPCP)
#define EXID 0x5450 /* TP */
#elif defined(DPCP)
#define EXID 0x4450 /* DP */
#else
#define EXID 0x5643 /* VC */
#endif
#define ROOM ACK_OPTION
#elif defined(XCPR)
#define EXID 0x5852 /* XR */
#define ROUTERS_EXID 0x5843
#define ROOM (DATA_OPTION + ACK_OPTION)
#else
#define EXID 0x5843
#define ROOM DATA_OPTION
#endif
#ifdef TPCP
#define CHAIN 3 /* packets */
#elif defined(DPCP)
#define CHAIN 2
#endif
#define ROUTERS_MAX 15
#define SUM_MASK 0x0fffffff

struct option {
	__u8 kind, length;
	__be16 exid;
	union {
		__be32 ack_echo;
		struct { __be32 x, rtt, delta, echo; };
	};
};
_Static_assert(sizeof(struct option) == DATA_OPTION, "wire/option.rs");

#include "wire.h"

/* The draft's header counts no routers. But a demand is stated in steps of so many B/s, and so is any
 * sum of demands that come back as they left, whichever packets or ACKs were lost; what a router
 * grants instead is such a number once in as many times. */
#define STEP 256
#define REVERSE_MAX (0x80000000ll - STEP)

/* Round trips without an answer before a connection is left to the kernel's law. */
#define PATIENCE 3
/* So many losses in so many round trips, none of them asked for by feedback, mean that another
 * link is the bottleneck; then XCP waits, twice as long each time. */
#define LOSSES 3
#define LOSS_ROUNDS 32
#define HOLD_MAX 4096

struct config {
	char name[16]; /* of the congestion control */
	char fallback[16];
	struct SenderConfig sender;
	__u32 initial_window; /* packets */
	__u8 is_default;      /* ours for sockets that chose none, if the prefixes say so */
	__u8 encoding;	      /* 1: the header between IP and TCP, where the peer and the interfaces can; 3: XCP-i's */
	__u8 is_persistent;
	__u8 has_casts;	      /* the kernel's bpf_cast_to_kern_ctx and bpf_rdonly_cast */
};

/* In a section of its own: the loader fills it as bytes. */
const volatile struct config config SEC(".rodata.config");
#define SENDER ((struct SenderConfig *)&config.sender)

enum encoding { OPTION, SHIM, XCPI };
enum law { NOBODY, XCP, FALLBACK };
enum why { NEVER, NO_OPTION, NO_ROUTER, STRIPPED, LOSS };
/* An echo that may or may not have met a router, or one that tells. */
enum heard { NOTHING, ECHO, VERDICT };

/* What of a law is shown beside the rest. */
enum family { FAMILY_XCP, FAMILY_VCP, FAMILY_XCPR, FAMILY_MARKS };

/* One socket. host.rs reads what stands before the states of the laws. */
struct flow {
	__u64 window;	  /* bytes of IP packets */
	__s64 feedback;	  /* net, B/s, of the last whole round trip */
	__u32 packet;	  /* bytes of a full one */
	__u32 fallbacks;  /* so often */
	__u8 law, why;	  /* in force; the last reason to leave XCP */
	__u8 routers;	  /* that worked on our data, so the peer */
	__u8 is_spoken;	  /* both sides speak XCP */
	__u8 is_shim;	  /* by the header between IP and TCP */

	__u8 their_routers; /* that worked on the peer's data */
	__u8 has_heard;	    /* what the packet being handled says: enum heard */
	__u8 was_answered;  /* by an echo, ever */
	__u8 is_mute;	    /* packets with the option do not get through */
	__u8 must_leave;    /* why, from a callback that can not */
	__u8 is_paced;	    /* by us */
	__u8 family;	    /* of VCP's routers says which load it acts on: 1 low, 2 high, 3 over */
	__u32 epochs;	    /* of XCP-r, begun so far */
	__u32 lies;	    /* ACKs that claimed more than was asked for */
	__u32 una, hold;
	__s64 pending; /* feedback for the law */
	__s64 net;     /* feedback of this round trip */
	__u64 began;   /* this round trip */
	__u64 unserved, silent, served; /* since when; 0: not so */
	__u64 hold_until;
	__u64 losses[LOSSES - 1]; /* when, the latest last */

	/* Of headers between IP and TCP, by whoever receives packets: the socket is not locked there. */
	__s64 delta_came, reverse_came;
	__u64 shims_came, shims_heard; /* the latter by the socket */
	__u64 is_interoperable; /* data have XCP-i's form */

#ifdef DPCP
	struct Chains echo; /* counted by whoever receives packets */
	struct ChainsReader reader;
	__u32 came;	/* that the peer has stated last */
	__u32 excused;	/* times that chains were given up, with which a loss was explained */
#elif defined(VCP)
	struct Counts echo;
	struct CountsReader reader;
	__u32 came;
#elif defined(XCPR)
	struct Echo echo;
	__u32 came; /* that the peer has stated last, of what was not overtaken */
	__u32 has_come;
#else
	struct CumulativeEcho echo;
	struct EchoReader reader;
#endif
	__u32 since; /* first number that was sent under the law */
	struct Sender sender;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

/* Peers; IPv4 as ::ffff:a.b.c.d. */
struct prefix { __u32 length; __u32 namespace[2]; __u32 address[4]; };
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct prefix);
	__type(value, __u8);
} prefixes SEC(".maps");

/* Cookies of namespaces whose servers answer whoever asks; 0: of all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} namespaces SEC(".maps");

struct counters {
	__u64 spoken;		/* connections that both sides speak XCP on */
	__u64 fallbacks[5];	/* by reason */
	__u64 returns;
	__u64 malformed;	/* options of a wrong length */
	__u64 unwritten;	/* headers that found no room */
	__u64 shims_sent, shims_received, shims_refused;
};
/* What is newer stands last: another version's host may be disabled by where struct_ops is. */
struct host {
	struct counters counters;
	__u32 struct_ops, pad;
	__u64 lies; /* ACKs that claimed more than was asked for */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host);
} hosts SEC(".maps");

/* Where headers between IP and TCP are put in and taken out. The values are for user space alone: what
 * was there before. */
struct interface { __u64 namespace; __u32 index, pad; };
struct before { __u32 gso_max_segs, has_made_clsact; };
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct interface);
	__type(value, struct before);
} interfaces SEC(".maps");

#define COUNT(field) do { \
	__u32 zero = 0; \
	struct host *host = bpf_map_lookup_elem(&hosts, &zero); \
	if (host) \
		__sync_fetch_and_add(&host->counters.field, 1); \
} while (0)

static __u64 srtt_of(struct tcp_sock *tp)
{
	return tp->srtt_us * 125ULL; /* eighths of us */
}

/* IP bytes of a full packet, and the payload in it: the option takes its part of the MSS. */
struct sizes { __u64 packet, payload; };

static __always_inline struct sizes sizes_of(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	__u64 headers = tp->tcp_header_len + icsk->icsk_af_ops->net_header_len + icsk->icsk_ext_hdr_len;
	__u64 mss = tp->mss_cache;

	return (struct sizes){ mss + headers, mss > 2 * ROOM ? mss - ROOM : ROOM };
}

/* TCP counts payload, the laws count IP packets. */
static __u64 in_packets(struct sizes sizes, __u64 payload)
{
	return payload * sizes.packet / sizes.payload;
}

static __u64 flight_of(struct tcp_sock *tp)
{
	__u32 left = tp->sacked_out + tp->lost_out;
	__u32 out = tp->packets_out + tp->retrans_out;

	return out > left ? out - left : 0;
}

#ifndef VCP
/* The application waits for room: it has more than the send buffer holds. */
static int is_blocked(struct tcp_sock *tp)
{
	struct socket *socket = ((struct sock *)tp)->sk_socket;

	return socket && (socket->flags & (1 << SOCK_NOSPACE));
}
#endif

/* Data wait, and not for the receiver. */
static int is_window_limited(struct tcp_sock *tp, __u32 first_unsent)
{
	__s32 room = tp->snd_una + tp->snd_wnd - first_unsent;

	return (__s32)(tp->write_seq - first_unsent) > 0 && room > 0;
}

/* ---- The congestion control ---- */

/* The kernel's timers are some 20 us late: more bursts a second can not be kept apart, only delayed. */
#define PACED_HZ 50000

static void follow(struct tcp_sock *tp, struct flow *flow)
{
	struct sock *sk = (struct sock *)tp;
	struct sizes sizes = sizes_of(tp);
	__u64 window = law_sender_window(&flow->sender);
	__u64 packets = (window + sizes.packet - 1) / sizes.packet;
	__u64 rate = law_sender_pacing_rate(&flow->sender, SENDER, srtt_of(tp)), burst, least;

	flow->window = window;
#ifdef XCPR
	flow->epochs += (__u8)(law_sender_epoch(&flow->sender) - flow->epochs); /* the law counts to 256 */
#endif
	/* An ACK for one packet may be 40 ms late (RFC 1122 4.2.3.2). Pacing keeps the law's rate. Not
	 * with headers that a firewall may drop: two packets at a time then take too long to give up. */
	least = flow->is_shim ? 1 : 2;
	if (packets < least)
		packets = least;
	if (packets > tp->snd_cwnd_clamp)
		packets = tp->snd_cwnd_clamp;
	tp->snd_cwnd = packets;
	/* The kernel paces payload (tcp_update_skb_after_send). */
	rate = rate ? rate * sizes.payload / sizes.packet : ~0ULL;
	burst = sk->sk_gso_max_segs * sizes.payload;
	if (burst > sk->sk_gso_max_size)
		burst = sk->sk_gso_max_size;
	if (rate > burst * PACED_HZ)
		rate = ~0ULL;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

/* The law with the window that rules now; also when it has ruled before. */
static void begin(struct tcp_sock *tp, struct flow *flow, __u64 packets)
{
	struct sizes sizes = sizes_of(tp);

	flow->packet = sizes.packet;
#ifdef XCPR
	law_sender_resume(&flow->sender, SENDER, sizes.packet, packets * sizes.packet);
#elif defined(PLAIN)
	law_sender_resume(&flow->sender, sizes.packet, packets * sizes.packet);
#elif defined(MARKS)
	law_sender_init(&flow->sender, SENDER, sizes.packet, packets * sizes.packet);
#else
	law_sender_init(&flow->sender, sizes.packet, packets * sizes.packet);
#endif
#ifdef MARKS
	law_reader_init(&flow->reader, flow->came);
#endif
}

/* To the kernel's law. Its window goes on from ours. */
static void leave(struct tcp_sock *tp, struct flow *flow, __u8 why)
{
	flow->law = FALLBACK;
	flow->why = why;
	flow->fallbacks++;
	flow->must_leave = NEVER;
	flow->served = flow->unserved = flow->silent = 0;
	flow->losses[0] = flow->losses[1] = 0;
#ifdef VCP
	/* Nothing but time says that the path is another by now. */
	if (why == LOSS || why == STRIPPED) {
#else
	if (why == LOSS) {
#endif
		flow->hold = flow->hold ? flow->hold * 2 : LOSS_ROUNDS;
		if (flow->hold > HOLD_MAX)
			flow->hold = HOLD_MAX;
		flow->hold_until = bpf_ktime_get_ns() + flow->hold * srtt_of(tp);
#ifdef DPCP
		/* None of its chains ever got through: there may be somebody who drops them. */
		if (!flow->was_answered)
			flow->hold_until = ~0ULL;
#endif
	}
	COUNT(fallbacks[why <= LOSS ? why : 0]);
}

static void init(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow;

	if (sk->__sk_common.skc_state == BPF_TCP_SYN_SENT)
		return; /* too early to know; see on_established */
	flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	if (!flow || !flow->is_spoken) {
		/* A socket that chose us when its handshake was over, or out of our cgroup. */
		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)config.fallback, sizeof(config.fallback));
		return;
	}
	begin(tp, flow, tp->data_segs_out ? tp->snd_cwnd : config.initial_window);
	flow->law = XCP;
	flow->una = tp->snd_una;
	flow->pending = flow->net = flow->feedback = 0;
	__sync_lock_test_and_set(&flow->reverse_came, 0);
	flow->since = tp->snd_nxt;
#if defined(VCP) && !defined(MARKS)
	flow->reader.heard = flow->came;
#endif
#ifdef DPCP
	flow->excused = 0;
#endif
	flow->began = bpf_ktime_get_ns();
	flow->is_paced = config.sender.pacing && sk->sk_pacing_status == PACING_NONE;
	if (flow->is_paced)
		sk->sk_pacing_status = PACING_NEEDED;
	follow(tp, flow);
}

SEC("struct_ops")
void BPF_PROG(xcp_init, struct sock *sk)
{
	init(sk);
}

SEC("struct_ops")
void BPF_PROG(xcp_release, struct sock *sk)
{
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);

	if (!flow)
		return;
	if (flow->is_paced)
		sk->sk_pacing_status = PACING_NONE;
	flow->is_paced = 0;
	if (flow->law == XCP)
		flow->law = NOBODY; /* somebody chose another */
}

#if defined(VCP) && !defined(MARKS)
#define OVER 3

/* Whether a loss is that of chains that somebody drops, for which they were given up since. */
static int is_excused(struct flow *flow)
{
#ifdef DPCP
	__u32 downgrades = law_sender_downgrades(&flow->sender);

	if (downgrades != flow->excused && downgrades > 0xff) {
		flow->excused = downgrades;
		return 1;
	}
#endif
	return 0;
}
#endif

#ifdef MARKS
/* Losses are these laws' own affair. */
static void blame(struct tcp_sock *tp, struct flow *flow, __u64 now) {}
#else
/* Feedback of the last round trip or so asked for more, or for nothing: it does not explain a loss. */
static void blame(struct tcp_sock *tp, struct flow *flow, __u64 now)
{
	__u64 first = flow->losses[0];

#ifdef VCP
	if (config.sender.loss || law_sender_zone(&flow->sender) == OVER || is_excused(flow))
		return;
#else
	if (config.sender.loss == 1 || flow->feedback + flow->net < 0)
		return;
#endif
	flow->losses[0] = flow->losses[1];
	flow->losses[1] = now;
	if (first && now - first <= LOSS_ROUNDS * srtt_of(tp))
		flow->must_leave = LOSS;
}
#endif

#ifdef MARKS
/* Global: the verifier looks at each once, not at all ways through a law and what surrounds it. */
#define APART __attribute__((noinline))
#else
#define APART static __always_inline
#endif

#if !defined(DPCP) && !defined(XCPR)
APART int take_ack(struct Sender *sender, struct Ack *ack, __u64 now)
{
	if (sender && ack)
		law_sender_on_ack(sender, SENDER, now, ack);
	return 0;
}
#endif

APART int take_loss(struct Sender *sender, __u64 now, __u64 flight)
{
	if (sender)
		law_sender_on_loss(sender, SENDER, now, flight);
	return 0;
}

APART int take_timeout(struct Sender *sender, __u64 now, __u64 flight, __u32 is_first)
{
	if (sender)
		law_sender_on_timeout(sender, SENDER, now, flight, is_first);
	return 0;
}

SEC("struct_ops")
void BPF_PROG(xcp_set_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	__u64 now = bpf_ktime_get_ns();
	__u8 before, repeats;

	if (!flow || flow->law != XCP)
		return;
	before = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	repeats = tp->inet_conn.icsk_retransmits;
	if (state == TCP_CA_LOSS) {
		if (!repeats)
			blame(tp, flow, now);
		if (repeats >= PATIENCE && !flow->was_answered)
			flow->is_mute = 1;
		take_timeout(&flow->sender, now, flight_of(tp) * flow->packet, !repeats);
	} else if ((state == TCP_CA_RECOVERY || state == TCP_CA_CWR) && before < TCP_CA_CWR) {
		blame(tp, flow, now);
		take_loss(&flow->sender, now, flight_of(tp) * flow->packet);
#if defined(VCP) && !defined(MARKS)
		if (state == TCP_CA_CWR) /* nothing was lost, so no ACK can say that nothing was */
			law_sender_settle(&flow->sender);
#endif
	} else {
		return;
	}
	follow(tp, flow);
}

#include "hear.h"

static void cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = bpf_sk_storage_get(&flows, sk, 0, 0);
	__u64 now = bpf_ktime_get_ns(), srtt = srtt_of(tp);
	struct sizes sizes = sizes_of(tp);
	struct Ack ack = {};
#ifdef PLAIN
	__s64 feedback;
#elif defined(MARKS)
	__u64 reply;
#endif
	__u8 why;

	if (!flow || flow->law != XCP)
		return;
	ack.acked = in_packets(sizes, tp->snd_una - flow->una);
	ack.flight = flight_of(tp) * sizes.packet + ack.acked; /* before the ACK, of which the kernel has taken note */
	ack.awnd = in_packets(sizes, tp->snd_wnd);
	ack.rtt = rs->rtt_us > 0 ? rs->rtt_us * 1000ULL : 0;
	ack.srtt = srtt;
	ack.is_duplicate = tp->snd_una == flow->una;
	ack.in_recovery = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_RECOVERY; /* after a timeout the window grows */
#if defined(VCP) && !defined(MARKS) /* the others do not ask, and the verifier would look at every path twice */
	ack.is_repairing = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >= TCP_CA_RECOVERY;
#endif
	ack.is_window_limited = is_window_limited(tp, tp->snd_nxt);
	flow->una = tp->snd_una;

#ifdef MARKS
	/* Below: a law that begins anew reads what is told since. */
#elif defined(VCP)
	ack.reply.word = law_reader_on_ack(&flow->reader, flow->came); /* of DPCP what its law takes beside the ACK */
	if (IS_CLEARED(ack.reply.word)) {
		ack.reply.word = 0;
		/* Packets from before the law was in force have no code. */
		if ((__s32)(tp->snd_una - flow->since) > 0)
			flow->must_leave = STRIPPED;
	}
	flow->has_heard = ack.reply.word ? VERDICT : NOTHING;
#elif defined(PLAIN)
	if (flow->is_shim)
		listen(flow);
	feedback = flow->pending;
	if (feedback > 0x7fffffff)
		feedback = 0x7fffffff;
	if (feedback < -0x7fffffff)
		feedback = -0x7fffffff;
	flow->pending -= feedback;
	ack.reply.word = feedback;
	tally(flow, now, srtt, feedback);
#else
	ack.is_late = !flow->has_come;
#endif

	if (flow->packet != sizes.packet) /* another route */
		begin(tp, flow, tp->snd_cwnd);
#ifdef MARKS
	reply = law_reader_on_ack(&flow->reader, flow->came);
	ack.reply.word = reply;
	ack.reply.byte = reply >> 32;
#endif
#ifdef DPCP
	hear_chains(flow, &ack, now);
#elif defined(XCPR)
	tally(flow, now, srtt, a_second(law_sender_on_ack(&flow->sender, SENDER, now, &ack, flow->came), srtt));
#else
	take_ack(&flow->sender, &ack, now);
#endif
#if defined(PLAIN) || defined(XCPR)
	note_lies(flow);
#endif
#ifdef PLAIN
	if (config.sender.safety_net && rs->losses > 0)
		law_sender_note_losses(&flow->sender, SENDER, rs->losses * sizes.packet);
#elif defined(VCP) && !defined(MARKS)
	flow->was_answered |= ack.reply.word != 0;
	flow->routers = law_sender_zone(&flow->sender);
#endif
	follow(tp, flow);

	why = judge(tp, flow, now, ack.acked);
	if (!why)
		return;
	if (why != LOSS && !flow->was_answered && tp->snd_cwnd < 10)
		tp->snd_cwnd = 10; /* RFC 6928: a new connection without XCP */
	else
		tp->snd_ssthresh = tp->snd_cwnd > 2 ? tp->snd_cwnd : 2;
	leave(tp, flow, why);
	bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)config.fallback, sizeof(config.fallback));
}

SEC("struct_ops")
void BPF_PROG(xcp_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	cong_control(sk, rs);
}

/* As kernels before 6.10 call it. */
SEC("struct_ops")
void BPF_PROG(xcp_old_control, struct sock *sk, const struct rate_sample *rs)
{
	cong_control(sk, rs);
}

/* Used by the kernel's law after us, and by proportional rate reduction then. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_ssthresh, struct sock *sk)
{
	__u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

/* Feedback makes good what a false alarm took. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

/* Single packets at low rates: each states its own demand. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_min_tso_segs, struct sock *sk)
{
	return 1;
}

/* The law asks for more while a window of data waits; the kernel's 2 is one window sent and, at
 * times, less than one waiting. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_sndbuf_expand, struct sock *sk)
{
	return 4;
}

#define CALLBACKS \
	.flags = TCP_CONG_NON_RESTRICTED, .init = (void *)xcp_init, .release = (void *)xcp_release, \
	.set_state = (void *)xcp_set_state, .ssthresh = (void *)xcp_ssthresh, \
	.undo_cwnd = (void *)xcp_undo_cwnd, .min_tso_segs = (void *)xcp_min_tso_segs, \
	.sndbuf_expand = (void *)xcp_sndbuf_expand

SEC(".struct_ops.link")
struct tcp_congestion_ops congestlab_xcp = { CALLBACKS, .cong_control = (void *)xcp_cong_control };

SEC(".struct_ops.link")
struct tcp_congestion_ops congestlab_old = { CALLBACKS, .cong_control = (void *)xcp_old_control };

/* ---- The option ---- */

#define FLAGS (BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)
/* With the header between IP and TCP no packet's options call us. */
#define SHIM_FLAGS (FLAGS | BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_RTO_CB_FLAG)

/* Says to programs of other hosts in the same cgroup that this callback was answered. */
#define TAKEN 0x58435843

/* How names of ours begin: host.rs. */
#ifdef MARKS
#elif defined(TPCP)
#define NAME "tpcp"
#elif defined(DPCP)
#define NAME "dpcp"
#elif defined(VCP)
#define NAME "vcp"
#elif defined(XCPR)
#define NAME "xcpr"
#else
#define NAME "xcp"
#endif

/* Volatile, or the compiler takes the zeros of before loading for the configuration. */
static int is_equal(const __u64 *name, const volatile char *configured)
{
	const volatile __u64 *words = (const volatile __u64 *)configured;

	return name[0] == words[0] && name[1] == words[1];
}

struct choice { __u8 is_ours, is_anothers, is_made; };

/* Which congestion control the socket has. */
static __always_inline struct choice choice_of(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	__u64 words[2] = {};
	char *name = (char *)words;
	struct choice choice = {};

	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(words)))
		return choice;
	choice.is_ours = is_equal(words, config.name);
	choice.is_anothers = !choice.is_ours && !__builtin_memcmp(name, NAME, sizeof(NAME) - 1);
	choice.is_made = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt);
	return choice;
}

/* Whether the prefixes have the peer: those of the whole machine, or of the socket's namespace. */
static int is_peer(struct bpf_sock_ops *ctx)
{
	struct prefix key = { .length = 64 + 128 };
	__u64 namespace = bpf_get_netns_cookie(ctx);
	__u32 v4;

	/* Volatile: a load from one of two places in the context is not allowed. */
	v4 = *(volatile __u32 *)&ctx->remote_ip4;
	for (int i = 0; i < 4; i++)
		key.address[i] = *(volatile __u32 *)&ctx->remote_ip6[i];
	if (ctx->family == AF_INET) {
		key.address[0] = key.address[1] = 0;
		key.address[2] = bpf_htonl(0xffff);
		key.address[3] = v4;
	}
	if (bpf_map_lookup_elem(&prefixes, &key))
		return 1;
	key.namespace[0] = namespace;
	key.namespace[1] = namespace >> 32;
	return bpf_map_lookup_elem(&prefixes, &key) != 0;
}

/* Whether the socket's namespace is one of ours. */
static int is_here(struct bpf_sock_ops *ctx)
{
	__u64 all = 0, namespace = bpf_get_netns_cookie(ctx);

	return bpf_map_lookup_elem(&namespaces, &all) || bpf_map_lookup_elem(&namespaces, &namespace);
}

/* Whether to speak to the peer. Applications may choose after the handshake, as iperf3 does, so this
 * does not ask who moves the window. */
static int is_meant(struct bpf_sock_ops *ctx, struct choice choice)
{
	return choice.is_ours || (!choice.is_made && !choice.is_anothers && is_peer(ctx));
}

static void choose(struct bpf_sock_ops *ctx, const volatile char *name)
{
	bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, (void *)name, 16);
}

/* Finds our option in the packet at hand, or in the SYN: its length, 0 if there is none. */
static int find(struct bpf_sock_ops *ctx, struct option *option, __u64 flags)
{
	long length;

	option->kind = KIND;
	option->length = 4; /* of what to look for */
	option->exid = bpf_htons(EXID);
	length = bpf_load_hdr_opt(ctx, option, sizeof(*option), flags);
	if (length == ROOM || length == ACK_OPTION)
		return length;
	if (length > 0 || length == -28 /* ENOSPC: longer than any of ours */)
		COUNT(malformed);
	return 0;
}

/* Back to XCP when routers have answered for a round trip; to VCP when the time is over. */
static void reconsider(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct flow *flow)
{
	__u64 now = bpf_ktime_get_ns(), name[2] = {};

#ifdef VCP
	if (now < flow->hold_until ||
	    BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) != TCP_CA_OPEN)
		return;
#else
	flow->pending = 0;
	if (!flow->routers) {
		flow->served = 0;
		return;
	}
	if (!flow->served)
		flow->served = now;
	if (now - flow->served < srtt_of(tp) || now < flow->hold_until ||
	    BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) != TCP_CA_OPEN)
		return;
#endif
	/* Unless the application has chosen for itself meanwhile. */
	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, (char *)name, sizeof(name)) ||
	    !is_equal(name, config.fallback)) {
		flow->law = NOBODY;
		return;
	}
	choose(ctx, config.name);
	COUNT(returns);
}

static int on_connect(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	if (!is_meant(ctx, choice_of(ctx, tp)) ||
	    !bpf_sk_storage_get(&flows, tp, 0, BPF_SK_STORAGE_GET_F_CREATE))
		return 0;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | FLAGS);
	return 1;
}

/* Whether headers between IP and TCP are put in and taken out at an interface. */
static int is_covered(struct bpf_sock_ops *ctx, int index)
{
	struct interface key = { .index = index };
	struct bpf_sock_ops_kern *kernel;

	if (!(config.encoding & SHIM) || !config.has_casts)
		return 0;
	kernel = bpf_cast_to_kern_ctx(ctx);
	key.namespace = kernel->sk->__sk_common.skc_net.net->ns.inum;
	return bpf_map_lookup_elem(&interfaces, &key) != 0;
}

/* Where the packets of a socket leave. */
static int interface_of(struct tcp_sock *tp)
{
	struct dst_entry *route = ((struct sock *)tp)->sk_dst_cache;

	return route ? route->dev->ifindex : 0;
}

#ifdef PLAIN
/* The SYN's Hello. Of a connection that came to us it was saved for this: see answer. */
static int has_offered_shim(struct bpf_sock_ops *ctx)
{
	struct option option = {};

	return config.encoding & SHIM && find(ctx, &option, BPF_LOAD_HDR_OPT_TCP_SYN) == ACK_OPTION ?
		       bpf_ntohl(option.ack_echo) & HELLO : 0;
}
#endif

/* The handshake is over. An active side has spoken if it has a state; what came last says whether
 * the other side did: the SYN-ACK, or the first packet after ours. Such a packet without an option is
 * of a peer that got none, or of one that uses the header between IP and TCP from now on. */
static int on_established(struct bpf_sock_ops *ctx, struct tcp_sock *tp, int is_active)
{
	struct option option = {};
	struct choice choice = choice_of(ctx, tp);
	int is_ours = choice.is_ours || (config.is_default && is_meant(ctx, choice));
	int length = find(ctx, &option, 0), is_shim;
	struct flow *flow;

	if (choice.is_anothers)
		return 0;
#ifdef VCP
	/* Codes must be written and read at both ends; the peer saw our word for that in the SYN. */
	is_shim = 0;
	if (is_active && !(bpf_ntohl(option.ack_echo) & HELLO_SHIM && is_covered(ctx, interface_of(tp))))
		length = 0;
#elif defined(XCPR)
	is_shim = 0;
#else
	if (is_active)
		is_shim = length == ACK_OPTION && is_covered(ctx, interface_of(tp)) ?
				  bpf_ntohl(option.ack_echo) & HELLO : 0;
	else
		is_shim = length ? 0 : has_offered_shim(ctx);
#endif
	flow = bpf_sk_storage_get(&flows, tp, 0,
				  length || is_shim || is_ours ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!flow)
		return 0;
	if (!length && !is_shim) {
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~FLAGS);
		if (choice.is_ours || (is_active && is_ours)) {
			leave(tp, flow, NO_OPTION);
			choose(ctx, config.fallback);
		}
		return 1;
	}
	flow->is_spoken = 1;
	flow->is_shim = is_shim & HELLO_SHIM;
	flow->is_interoperable = is_shim & HELLO_XCPI && config.encoding & XCPI;
#ifdef MARKS
	flow->family = FAMILY_MARKS;
#elif defined(VCP)
	flow->family = FAMILY_VCP;
#elif defined(XCPR)
	flow->family = FAMILY_XCPR;
	law_echo_init(&flow->echo, sizes_of(tp).packet);
#endif
	COUNT(spoken);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | (is_shim ? SHIM_FLAGS : FLAGS));
	if (!is_active && length)
		hear(ctx, tp, flow, &option, length);
	if (choice.is_ours && BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized))
		choose(ctx, config.fallback); /* was chosen in between: begin again */
	if (is_ours)
		choose(ctx, config.name);
	return 1;
}

/* Room for the option. Without a packet, the kernel asks what its MSS must spare: the most. The header
 * between IP and TCP takes the room that packets then do not use. */
static int reserve(struct bpf_sock_ops *ctx, struct flow *flow, int is_data)
{
	if (flow->is_mute)
		return 0;
#ifdef PLAIN
	if (flow->is_shim) {
		if (ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
			bpf_reserve_hdr_opt(ctx, flow->is_interoperable ? LENGTH_MAX : sizeof(struct shim), 0);
		return 1;
	}
#endif
#ifndef VCP
	if (is_data && flow->law != NOBODY && !bpf_reserve_hdr_opt(ctx, ROOM, 0))
		return 1;
#endif
	/* With SACK blocks or another's options in the way, the echo alone may fit. */
	if (bpf_reserve_hdr_opt(ctx, ACK_OPTION, 0))
		COUNT(unwritten);
	return 1;
}

static int on_length(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct option option = {};
	struct flow *flow;

	if ((ctx->skb_tcp_flags & (SYN | ACK)) == (SYN | ACK)) {
		if (find(ctx, &option, BPF_LOAD_HDR_OPT_TCP_SYN) == ACK_OPTION && is_here(ctx))
			return !bpf_reserve_hdr_opt(ctx, ACK_OPTION, 0);
		return 0;
	}
	flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	if (!flow)
		return 0;
	/* Some firewalls drop a SYN with what they do not know: the third goes without. */
	if (ctx->skb_tcp_flags & SYN)
		return ctx->total_retrans < 2 && !bpf_reserve_hdr_opt(ctx, ACK_OPTION, 0);
	if (!flow->is_spoken)
		return 0;
	return reserve(ctx, flow, ctx->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ctx->skb_len);
}

#ifndef VCP
/* Fills the header of a packet with so much payload, behind the first or not. Returns what is told the receiver. */
static __u32 state(struct tcp_sock *tp, struct flow *flow, __u64 payload, int is_first,
		  struct Header *header)
{
	struct sizes sizes = sizes_of(tp);
	__u32 backlog = tp->write_seq - tp->snd_nxt;
	struct Send send = {
		/* All segments of what the device cuts later; the header is each one's. */
		.size = payload + (payload + sizes.payload - 1) / sizes.payload * (sizes.packet - sizes.payload),
		/* docs/design/contract.md 4: the first packet does not tell what the SYN measured. */
		.srtt = is_first ? 0 : srtt_of(tp),
		.awnd = in_packets(sizes, tp->snd_wnd),
		.backlog = is_blocked(tp) ? ~0ULL : in_packets(sizes, backlog),
		.is_window_limited = is_window_limited(tp, tp->snd_nxt + payload),
	};
	__u32 packets = tp->snd_cwnd ? tp->snd_cwnd : 1, told;

	if (flow->law == FALLBACK) { /* state the window that rules */
#ifdef XCPR
		law_sender_restate(&flow->sender, sizes.packet, packets * sizes.packet);
#else
		begin(tp, flow, packets);
#endif
	}
	told = law_sender_on_send(&flow->sender, SENDER, bpf_ktime_get_ns(), &send, header);
	if (flow->law == FALLBACK)
		header->delta = 0;
	return told;
}
#endif

/* Where the SYN came from that is being answered. */
static int arrival_of(struct bpf_sock_ops *ctx)
{
	struct sk_buff *syn;

	if (!config.has_casts)
		return 0;
	syn = ((struct bpf_sock_ops_kern *)bpf_cast_to_kern_ctx(ctx))->syn_skb;
	return syn ? syn->skb_iif : 0;
}

static int on_write(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct option option = { .kind = KIND, .length = ACK_OPTION, .exid = bpf_htons(EXID) };
#ifndef VCP
	struct tcphdr *tcp = ctx->skb_data;
	__u32 length = 0, echo;
#endif
	struct flow *flow;

	if (ctx->skb_tcp_flags & SYN) {
		/* Only the room, which on_length made, says that a Hello is wanted. */
		int index = tp ? interface_of(tp) : arrival_of(ctx);

		option.ack_echo = bpf_htonl(is_covered(ctx, index) ? HELLO : 0);
		return !bpf_store_hdr_opt(ctx, &option, ACK_OPTION, 0);
	}
	flow = tp ? bpf_sk_storage_get(&flows, tp, 0, 0) : 0;
	if (!flow || !flow->is_spoken)
		return 0;
#ifdef MARKS
	option.ack_echo = bpf_htonl(law_counts_on_ack(&flow->echo));
#elif defined(VCP)
	option.ack_echo = bpf_htonl(flow->echo.word);
#else
	if (flow->is_shim)
		return 1;
	if ((void *)(tcp + 1) <= ctx->skb_data_end)
		length = ctx->skb_len - tcp->doff * 4;
#ifdef XCPR
	echo = law_echo_on_ack(&flow->echo);
#else
	echo = law_cumulative_on_ack(&flow->echo);
#endif
	echo |= (__u32)flow->their_routers << 28;
	if (length && flow->law != NOBODY) {
		struct Header header = {};
		__u32 told __attribute__((unused)) = state(tp, flow, length, !tp->data_segs_out, &header);

		option.length = DATA_OPTION;
		option.x = bpf_htonl(header.x);
		option.rtt = bpf_htonl(header.rtt & ~ROUTERS_MAX);
		option.delta = bpf_htonl(header.delta);
#ifdef XCPR
		option.exid = bpf_htons(ROUTERS_EXID);
		option.echo = bpf_htonl(told);
		if (bpf_store_hdr_opt(ctx, &option, DATA_OPTION, 0))
			COUNT(unwritten);
		option.exid = bpf_htons(EXID);
		option.length = ACK_OPTION;
#else
		option.echo = bpf_htonl(echo);
		if (!bpf_store_hdr_opt(ctx, &option, DATA_OPTION, 0))
			return 1;
		option.length = ACK_OPTION;
		COUNT(unwritten);
#endif
	}
	option.ack_echo = bpf_htonl(echo);
#endif
	bpf_store_hdr_opt(ctx, &option, ACK_OPTION, 0);
	return 1;
}

static int on_parse(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct flow *flow = bpf_sk_storage_get(&flows, tp, 0, 0);
	struct option option = {};
	int length;

	if (!flow || !flow->is_spoken)
		return 0;
	length = find(ctx, &option, 0);
	if (!length)
		return 1;
	flow->is_shim = 0; /* the other way does not get through, so the peer */
	hear(ctx, tp, flow, &option, length);
	if (flow->law == FALLBACK)
		reconsider(ctx, tp, flow);
	return 1;
}

#ifdef PLAIN
/* About once in a round trip: what PARSE is to the option. */
static int on_round(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct flow *flow = bpf_sk_storage_get(&flows, tp, 0, 0);

	if (!flow || !flow->is_shim)
		return 0;
	if (flow->law != FALLBACK)
		return 1;
	listen(flow);
	if (flow->has_heard)
		reconsider(ctx, tp, flow);
	else
		flow->served = 0;
	flow->has_heard = NOTHING;
	return 1;
}

/* Firewalls and address translators know TCP, not us: then the option has to do, which tells the peer.
 * A connection that has heard the peer waits longer, for the path may be down. */
static int on_timeout(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	struct flow *flow = bpf_sk_storage_get(&flows, tp, 0, 0);

	if (!flow || !flow->is_shim)
		return 0;
	if (ctx->args[0] + 1 >= (flow->shims_came ? 2 * PATIENCE : PATIENCE))
		flow->is_shim = 0;
	return 1;
}
#endif

static int answer(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	int one = 1;

	/* A SYN-ACK has no socket yet. */
	if (ctx->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB)
		return on_length(ctx, tp);
	if (ctx->op == BPF_SOCK_OPS_WRITE_HDR_OPT_CB)
		return on_write(ctx, tp);
	if (!tp)
		return 0;
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (config.encoding & SHIM)
			bpf_setsockopt(ctx, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one));
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		return 0;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		return on_connect(ctx, tp);
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		return on_established(ctx, tp, 1);
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		return on_established(ctx, tp, 0);
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		return on_parse(ctx, tp);
#ifdef PLAIN
	case BPF_SOCK_OPS_RTT_CB:
		return on_round(ctx, tp);
	case BPF_SOCK_OPS_RTO_CB:
		return on_timeout(ctx, tp);
#endif
	}
	return 0;
}

SEC("sockops")
int congestlab_host(struct bpf_sock_ops *ctx)
{
	if (ctx->args[0] != TAKEN && answer(ctx))
		ctx->reply = TAKEN;
	return 1;
}

#ifdef VCP
#include "code.h"
#elif defined(PLAIN)
#include "shim.h"
#endif

#include "listeners.h"

char _license[] SEC("license") = "GPL";
