// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The XCP link law once more, written in C from draft-falk-xcp-spec-03 section 4.2 (L n is line n of
 * its pseudo-code) and crates/core/src/law/xcp/link.rs, whose integers it must reproduce bit by bit.
 *
 * Two uses: the differential test holds both laws against each other, and who has no compiler for the
 * Rust law builds routers from this (LAW=twin). The laws of hosts have no twin.
 */
#include <linux/types.h>
#include "law.h"

typedef __u64 u64;
typedef __s64 s64;
typedef __u32 u32;

#define SECOND 1000000000ull
#define MILLION 1000000ull
#define U64_MAX (~0ull)
#define PLACES 16
#define POOL_MAX (1ull << (46 + PLACES))
#define RTT_PLACES 60
#define RTT_BOUND 2
#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("hidden")))

struct wide { u64 hi, lo; };

struct pool {
	u64 left, factor;
	__s32 shift;
	u32 pad;
};

/* The same fields as the Rust law's; nothing else sees them. */
struct state {
	struct LinkConfig config;
	u64 capacity;
	u32 max_rtt, max_x;
	u64 input, sum_x;
	struct wide sum_x_rtt;
	u64 sum_rtt, packets, packets_short;
	struct pool grants, cuts;
	u64 carry;
	u64 began, control_deadline, queue_deadline;
	u64 mean_rtt;
	u64 queue, queue_min;
	struct Report report;
};
_Static_assert(sizeof(struct state) <= sizeof(struct Link), "LINK_WORDS");

/* --- integers that saturate --- */

INLINE u64 min(u64 a, u64 b) { return a < b ? a : b; }
INLINE u64 max(u64 a, u64 b) { return a > b ? a : b; }
INLINE u64 plus(u64 a, u64 b) { return a + b < a ? U64_MAX : a + b; }
INLINE u64 less(u64 a, u64 b) { return a > b ? a - b : 0; }

/* Leading zeros, 64 for 0: all bits below the first one set, and counted. No branches, of which the
 * verifier would follow both sides each time. */
INLINE u32 zeros(u64 value)
{
	for (u32 step = 1; step < 64; step *= 2)
		value |= value >> step;
	return 64 - __builtin_popcountll(value);
}

INLINE struct wide product(u64 a, u64 b)
{
	u64 a1 = a >> 32, a0 = (u32)a, b1 = b >> 32, b0 = (u32)b;
	u64 low = a0 * b0, inner = a0 * b1 + (low >> 32), outer = a1 * b0 + (u32)inner;

	return (struct wide){ a1 * b1 + (inner >> 32) + (outer >> 32), outer << 32 | (u32)low };
}

INLINE struct wide wide_plus(struct wide w, u64 value)
{
	u64 lo = w.lo + value;

	if (lo >= value)
		return (struct wide){ w.hi, lo };
	if (w.hi == U64_MAX)
		return (struct wide){ U64_MAX, U64_MAX };
	return (struct wide){ w.hi + 1, lo };
}

/* value * 2^places, places below 128 */
INLINE struct wide shifted(u64 value, u32 places)
{
	if (!places)
		return (struct wide){ 0, value };
	if (places < 64)
		return (struct wide){ value >> (64 - places), value << places };
	if (zeros(value) >= places - 64)
		return (struct wide){ value << (places & 63), 0 };
	return (struct wide){ U64_MAX, U64_MAX };
}

/* (n * 2^32 + next) / d for n < d, the top bit of d set: Knuth, TAOCP 2, 4.3.1 D */
INLINE u64 digit(u64 n, u64 next, u64 d)
{
	u64 d1 = d >> 32, d0 = (u32)d, q = n / d1, r = n - q * d1;

	if (q > 0xffffffff || q * d0 > (r << 32 | next)) {
		q--;
		r += d1;
		if (r <= 0xffffffff && (q > 0xffffffff || q * d0 > (r << 32 | next)))
			q--;
	}
	return q;
}

/* (hi * 2^64 + lo) / divisor for hi < divisor */
static __attribute__((noinline)) u64 quotient(u64 hi, u64 lo, u64 divisor)
{
	u64 d, high, low, q;
	u32 shift;

	if (!hi)
		return lo / divisor;
	shift = zeros(divisor) & 63;
	d = divisor << shift;
	high = hi << shift | lo >> 1 >> (63 - shift);
	low = lo << shift;
	q = digit(high, low >> 32, d);
	return q << 32 | digit((high << 32 | low >> 32) - q * d, (u32)low, d);
}

/* w / divisor where that is 64 bits, else the largest; also for divisor 0 */
INLINE u64 over(struct wide w, u64 divisor)
{
	return w.hi >= divisor ? U64_MAX : quotient(w.hi, w.lo, divisor);
}

/* w / divisor with all its bits */
INLINE struct wide wide_over(struct wide w, u64 divisor)
{
	u64 hi;

	if (!divisor)
		return (struct wide){ U64_MAX, U64_MAX };
	hi = w.hi / divisor;
	return (struct wide){ hi, quotient(w.hi - hi * divisor, w.lo, divisor) };
}

INLINE u64 narrow(struct wide w) { return w.hi ? U64_MAX : w.lo; }
INLINE u64 mul_div(u64 a, u64 b, u64 c) { return over(product(a, b), c); }
INLINE u64 mul_div_up(u64 a, u64 b, u64 c) { return over(wide_plus(product(a, b), less(c, 1)), c); }
INLINE u64 part(u32 millionths, u64 whole) { return mul_div(whole, millionths, MILLION); }

/* ns to 2^-28 s, to the nearest, never 0 but for 0 */
INLINE u32 to_header(u64 span)
{
	u64 units = span >> 44 ? U64_MAX : ((span << 19) + 976562) / 1953125;

	if (units > 0xffffffff)
		return 0xffffffff;
	return !units && span ? 1 : units;
}

INLINE u64 with_rtt_places(u64 span) { return mul_div(span, 1ull << RTT_PLACES, SECOND); }

/* --- pools --- */

INLINE struct pool pool_new(u64 pool, u64 weights)
{
	u32 pool_shift = zeros(pool), weight_shift = zeros(weights);

	if (!pool || !weights)
		return (struct pool){};
	return (struct pool){
		.left = pool,
		.factor = over(product(pool << (pool_shift & 63), 1ull << 63),
			       weights << (weight_shift & 63)),
		.shift = 31 + (__s32)pool_shift - (__s32)weight_shift,
	};
}

/* Of a packet with this weight, rounded down. */
INLINE u64 pool_share(const struct pool *p, u32 weight)
{
	u32 shift_up = weight ? zeros(weight) - 32 : 32;
	u64 w = (u64)weight << shift_up;
	u64 share = (p->factor >> 32) * w + ((p->factor & 0xffffffff) * w >> 32);
	__s32 shift = p->shift + (__s32)shift_up;

	if (shift >= 64)
		share = 0;
	else if (shift >= 0)
		share >>= shift & 63;
	else
		share = U64_MAX;
	return min(share, p->left);
}

/* A negative part goes back in. */
INLINE void pool_take(struct pool *p, s64 part)
{
	s64 left = (s64)p->left - part;

	p->left = left < 0 ? 0 : min(left, POOL_MAX);
	if (!p->left)
		p->factor = 0;
}

/* --- the law --- */

/* The largest X that counts in such an interval. */
INLINE u32 max_x(const struct LinkConfig *config, u64 interval)
{
	u32 most = to_header(min(interval, config->initial_interval));

	return !config->bound_headers ? 0xffffffff : most ? most : 1;
}

/* The longest round trip that counts before any packet states one. */
INLINE u64 max_interval(const struct LinkConfig *config)
{
	return config->max_interval ? config->max_interval : SECOND;
}

EXPORT u64 law_link_init(struct Link *link, struct LinkConfig *config, u64 phase,
			 u64 queue_phase)
{
	struct state *l = (struct state *)link;

	__builtin_memset(link, 0, sizeof(*link));
	l->config = *config;
	l->capacity = config->capacity;
	l->max_rtt = to_header(max_interval(config));
	l->max_x = max_x(config, config->initial_interval);
	l->control_deadline = phase;
	l->queue_deadline = queue_phase;
	l->mean_rtt = with_rtt_places(config->initial_interval);
	l->report.interval = config->initial_interval;
	return 0;
}

EXPORT u64 law_link_set_capacity(struct Link *link, u64 capacity)
{
	((struct state *)link)->config.capacity = capacity;
	return 0;
}

EXPORT u64 law_link_on_arrival(struct Link *link, u64 now, struct Header *header, u64 size)
{
	struct state *l = (struct state *)link;
	u64 x = min(header->x, l->max_x), rtt = min(header->rtt, l->max_rtt);

	l->input = plus(l->input, size); /* L 1 */
	if (x && header->rtt) {
		l->report.bounded += x != header->x;
		l->sum_x += x;						/* L 2 */
		l->sum_x_rtt = wide_plus(l->sum_x_rtt, x * rtt); /* L 3-6 */
		l->sum_rtt += rtt;
		l->packets_short += !l->config.max_interval && header->rtt <= to_header(SECOND);
		l->packets++;
	}
	return 0;
}

EXPORT u64 law_link_on_departure(struct Link *link, u64 now, struct Header *header, u64 size,
				 u64 backlog)
{
	struct state *l = (struct state *)link;
	s64 grant, cut, feedback, demand, least = -(1ll << (31 + PLACES));

	l->queue_min = min(l->queue_min, backlog);
	grant = pool_share(&l->grants, min(header->x, l->max_x)); /* L 20 */
	cut = pool_share(&l->cuts, min(size, 0xffffffff)); /* L 21 */
	feedback = grant - cut;					 /* L 22 */
	demand = (s64)header->delta * (1 << PLACES);
	if (demand > feedback) { /* this is the tighter hop, L 24 */
		s64 exact = feedback > least ? feedback : least;

		cut -= exact - feedback;
		exact += l->carry;
		header->delta = exact >> PLACES;
		l->carry = exact & ((1 << PLACES) - 1);
	} else if (l->config.capture) {
		s64 left = l->cuts.left;

		cut = grant - demand < left ? grant - demand : left; /* L 26 */
		grant = demand + cut;				     /* L 27 */
	}
	pool_take(&l->grants, grant); /* L 28 */
	pool_take(&l->cuts, cut);     /* L 29 */
	return 0;
}

EXPORT u64 law_link_on_other_departure(struct Link *link, u64 now, u64 backlog)
{
	struct state *l = (struct state *)link;

	l->queue_min = min(l->queue_min, backlog);
	return 0;
}

EXPORT u64 law_link_next_deadline(struct Link *link)
{
	const struct state *l = (const struct state *)link;

	return min(l->control_deadline, l->queue_deadline);
}

/* d in ns, rounded up */
INLINE u64 mean_rtt(const struct state *l)
{
	return mul_div_up(l->mean_rtt, SECOND, 1ull << RTT_PLACES);
}

/* beta Q / d, B/s with PLACES */
INLINE u64 drain(const struct state *l)
{
	u64 millionths = narrow(product(l->queue, l->config.beta));
	u32 places = min(PLACES + RTT_PLACES, 64 + zeros(millionths));
	struct wide rate = wide_over(wide_over(shifted(millionths, places), l->mean_rtt), MILLION);

	return min(narrow(shifted(narrow(rate), PLACES + RTT_PLACES - places)), POOL_MAX);
}

static __attribute__((noinline)) u64 close_interval(struct state *l, u64 now)
{
	u64 elapsed = less(now, l->began), input = 0, rise = 0, fall = 0, shuffled, interval;

	l->capacity = l->config.capacity;
	if (!l->config.max_interval && l->packets) {
		u64 stated = mul_div(l->sum_rtt, (u64)RTT_BOUND << (RTT_PLACES - 28), l->packets);

		stated = l->packets_short ? 0 : stated >> (RTT_PLACES - 28);
		l->max_rtt = min(max(stated, to_header(SECOND)), 0xffffffff);
	}
	if (!l->sum_x) {
		l->mean_rtt = with_rtt_places(l->config.initial_interval);
	} else { /* L 7 */
		struct wide w = l->sum_x_rtt;

		if (w.hi >> 32)
			w = (struct wide){ U64_MAX, U64_MAX };
		else
			w = (struct wide){ w.hi << 32 | w.lo >> 32, w.lo << 32 };
		l->mean_rtt = over(w, l->sum_x);
		if (l->config.bound_headers)
			l->mean_rtt = min(l->mean_rtt, mul_div(l->sum_rtt, (u64)RTT_BOUND << (RTT_PLACES - 28),
							       l->packets));
	}
	if (elapsed) /* L 8 */
		input = min(mul_div(l->input, SECOND << PLACES, elapsed), POOL_MAX);
	if (input) { /* L 9 */
		u64 capacity = min(narrow(shifted(l->capacity, PLACES)), POOL_MAX);
		u64 up = part(l->config.alpha, less(capacity, input));
		u64 down = plus(part(l->config.alpha, less(input, capacity)), drain(l));

		rise = min(less(up, down), POOL_MAX);
		fall = min(less(down, up), POOL_MAX);
	}
	shuffled = less(part(l->config.gamma, input), rise + fall);		    /* L 10 */
	l->grants = pool_new(min(shuffled + rise, POOL_MAX), l->sum_x); /* L 11, 13 */
	l->cuts = pool_new(min(shuffled + fall, POOL_MAX), l->input);   /* L 12, 14 */
	l->carry = 0;

	interval = max(mean_rtt(l), l->config.min_interval); /* L 18 */
	l->report.intervals++;
	l->report.input = input >> PLACES;
	l->report.feedback = (s64)(rise >> PLACES) - (s64)(fall >> PLACES);
	l->report.interval = interval;
	l->report.persistent_queue = l->queue;
	l->input = l->sum_x = 0; /* L 15-17 */
	l->sum_x_rtt = (struct wide){};
	l->sum_rtt = l->packets = l->packets_short = 0;
	l->max_x = max_x(&l->config, interval);
	l->began = now;
	l->control_deadline = plus(now, interval); /* L 19 */
	return 0;
}

EXPORT u64 law_link_on_deadline(struct Link *link, u64 now, u64 backlog)
{
	struct state *l = (struct state *)link;

	if (l->control_deadline <= now)
		close_interval(l, now);
	if (l->queue_deadline <= now) {
		u64 rest = less(mean_rtt(l), mul_div_up(backlog, SECOND, l->capacity));

		l->queue = l->queue_min;
		l->queue_min = backlog;
		l->queue_deadline = plus(now, max((rest + 1) / 2, l->config.allowed_queue));
	}
	return 0;
}

EXPORT u64 law_link_report(struct Link *link, struct Report *report)
{
	*report = ((const struct state *)link)->report;
	return 0;
}
