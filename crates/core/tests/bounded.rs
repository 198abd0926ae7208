//! The link laws of XCP's family under every combination of extreme inputs of one packet and one interval.
//!
//! A proof by a model checker would say it of all inputs. Kani wants a toolchain of its own, which this project does not ask of whoever
//! tests it; so here is the product of the boundary values of every field, with their neighbours: what arrives, how long the
//! interval is, what waits, what leaves. Sums that overflow are panics in tests. `xcp/properties.rs` has what random inputs do.

use congestlab_core::law::xcp::{self, Header, SHARE_PLACES, Share};
use congestlab_core::law::{Carried, LinkLaw, Packet as _, pxcp, xcp2};
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, SECOND, Time};

const MS: u64 = SECOND / 1000;
/// Bound of a pool, 2^46 B/s: sums and differences of two of them fit into 64 bits with a sign.
const POOL_MAX: u64 = 1 << (46 + SHARE_PLACES);
/// X and round trips of 50 ms, from which on X counts as that, and of 1 s, in the header's unit, 2^-28 s.
const X_MAX: u32 = 13_421_773;
const RTT_MAX: u32 = 1 << 28;

const XS: [u32; 8] = [0, 1, X_MAX - 1, X_MAX, X_MAX + 1, RTT_MAX, u32::MAX - 1, u32::MAX];
const RTTS: [u32; 6] = [0, 1, RTT_MAX - 1, RTT_MAX, RTT_MAX + 1, u32::MAX];
const DELTAS: [i32; 7] = [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX - 1, i32::MAX];
const SIZES: [u64; 7] = [0, 1, 40, 1500, u32::MAX as u64, u32::MAX as u64 + 1, u64::MAX];
const SPANS: [u64; 7] = [0, 1, 5 * MS, 50 * MS, SECOND, u64::MAX - 1, u64::MAX];
const BACKLOGS: [u64; 5] = [0, 1, 1500, 1 << 32, u64::MAX];
const CAPACITIES: [u64; 6] = [0, 1, 1_250_000, (1 << 46) - 1, 1 << 46, u64::MAX];

fn packet(header: Header, size: u64, hops: Option<xcp2::Hops>) -> Carried {
    let mut packet = Carried { size: Bytes(size), ..Carried::default() };
    packet.add_header(header);
    if let Some(hops) = hops {
        packet.add_header(hops);
    }
    packet
}

/// Pools and what is carried on from packet to packet are within their bounds.
fn hold_bounds<L: LinkLaw<View = Share>>(law: &L, packet: &Carried) -> Share {
    let share = law.view(packet).expect("the packet has the header");
    assert!(share.grants_left <= POOL_MAX && share.cuts_left <= POOL_MAX, "{share:?}");
    assert!(share.grant <= share.grants_left && share.cut <= share.cuts_left, "{share:?}");
    assert!(share.carry < 1 << SHARE_PLACES, "{share:?}");
    if let Some(pool) = law.pool(packet) {
        assert!(pool.left <= POOL_MAX, "{pool:?}");
    }
    share
}

/// A packet leaves. What it asks for is not raised, and a pool loses what it gives and no more.
fn hold_departure<L: LinkLaw<View = Share>>(law: &mut L, at: Time, came: &Carried, backlog: u64) {
    let before = hold_bounds(law, came);
    let pool = law.pool(came);
    let mut left = *came;
    law.on_departure(at, &mut left, Bytes(backlog));
    assert!(law.only_lowers(came, &left), "{came:?} left as {left:?}");
    let after = hold_bounds(law, came);
    let asked = came.header::<Header>().expect("it has one").delta;
    // Who asks for less than nothing gives back; who asks for less than it would get takes no more than that.
    if let Some(pool) = pool.filter(|_| asked >= 0) {
        assert!(pool.part <= pool.left, "{pool:?}");
        let taken = before.grants_left.checked_sub(after.grants_left).expect("a pool does not grow");
        assert!(taken <= pool.part, "{taken} taken by {came:?}: {before:?}");
    }
}

/// Returns the number of departures.
fn hold<L: LinkLaw<View = Share> + Clone>(config: &L::Config, hops: Option<xcp2::Hops>) -> u64
where
    L::Config: Clone,
{
    let mut departures = 0;
    for capacity in CAPACITIES {
        let mut config = config.clone();
        L::configure_capacity(&mut config, Rate(capacity));
        let fresh = L::start(&config, Duration(0), Duration(0));
        for (x, rtt) in XS.into_iter().flat_map(|x| RTTS.map(|rtt| (x, rtt))) {
            for size in SIZES {
                let mut arrived = fresh.clone();
                let header = Header { x, rtt, delta: i32::MAX, reverse: 0 };
                arrived.on_arrival(Time(0), &packet(header, size, hops));
                for (span, backlog) in
                    SPANS.into_iter().flat_map(|span| BACKLOGS.map(|backlog| (span, backlog)))
                {
                    let at = Time(span);
                    let mut law = arrived.clone();
                    law.on_deadline(at, Bytes(backlog));
                    assert!(law.next_deadline() >= at);
                    // The same packet with all that it can ask for, then others of its size, then others of its X.
                    let same = DELTAS.map(|delta| (x, size, delta));
                    let of_size =
                        XS.into_iter().flat_map(|x| [i32::MIN, i32::MAX].map(|delta| (x, size, delta)));
                    let of_x = SIZES.into_iter().flat_map(|size| [0, i32::MAX].map(|delta| (x, size, delta)));
                    for (x, size, delta) in same.into_iter().chain(of_size).chain(of_x) {
                        let mut law = law.clone();
                        let came = packet(Header { x, rtt, delta, reverse: 0 }, size, hops);
                        hold_departure(&mut law, at, &came, backlog);
                        hold_departure(&mut law, at, &came, backlog);
                        departures += 2;
                    }
                    // What is left of this interval does not harm the next.
                    let came = packet(header, size, hops);
                    for next in [span, u64::MAX] {
                        let mut law = law.clone();
                        law.on_arrival(at, &came);
                        hold_departure(&mut law, at, &came, backlog);
                        law.on_deadline(Time(next), Bytes(backlog));
                        hold_bounds(&law, &came);
                    }
                }
            }
        }
    }
    departures
}

/// XCP's settings: as they are, each switch the other way, and gains as large as can be.
fn settings() -> [xcp::LinkConfig; 6] {
    let plain = xcp::LinkConfig::DEFAULT;
    let most = Ratio(u32::MAX);
    [
        plain,
        xcp::LinkConfig { capture: false, ..plain },
        xcp::LinkConfig { bound_headers: false, ..plain },
        xcp::LinkConfig { spread: true, ..plain },
        xcp::LinkConfig { thesis: true, bound_headers: false, ..plain },
        xcp::LinkConfig { alpha: most, beta: most, gamma: most, ..plain },
    ]
}

#[test]
fn xcp_stays_within_its_bounds() {
    let departures: u64 = settings().iter().map(|config| hold::<xcp::Link>(config, None)).sum();
    assert!(departures > 10_000_000, "{departures}");
}

#[test]
fn pxcp_stays_within_its_bounds() {
    for xcp in settings() {
        hold::<pxcp::Link>(&pxcp::LinkConfig { xcp, ..pxcp::LinkConfig::DEFAULT }, None);
    }
}

/// A word of hops: none, of a flow that this hop controls, of one that another does, and full.
#[test]
fn xcp2_stays_within_its_bounds() {
    let hops = |passed, controls, stated| Some(xcp2::Hops { passed, controls, stated });
    for word in [None, hops(0, 0, 1), hops(0, 0, 2), hops(255, 255, 255)] {
        hold::<xcp2::Link>(&xcp2::LinkConfig::DEFAULT, word);
    }
    for xcp in settings() {
        let xcp = xcp::LinkConfig { spread: true, ..xcp };
        hold::<xcp2::Link>(
            &xcp2::LinkConfig { xcp, headroom: Ratio(u32::MAX), ..xcp2::LinkConfig::DEFAULT },
            hops(0, 0, 2),
        );
    }
}
