//! Links in user space, between network namespaces with real packets. Needs root; skips without.
//!
//! Bounds on time are loose, and where the link says that the machine was too busy to trust, only what
//! does not depend on time is judged.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, process, thread};

use congestlab_core::law::mpcp::{self, Order};
use congestlab_core::law::{LinkConfig, xcp};
use congestlab_core::units::{self, BitRate, Rate};
use congestlab_core::wire::{option, xcp as shim};
use congestlab_linux::link::{Clock, Direction, Link, Refused, Report, UNLIMITED};
use congestlab_linux::sys::command;
use congestlab_linux::sys::netns::Namespace;
use congestlab_linux::sys::offload::Offloads;
use congestlab_linux::sys::packet::{Frame, Socket};
use congestlab_net::errors::ErrorRate;
use congestlab_net::packet::Picos;
use congestlab_net::port::{LawConfig, PortConfig};
use congestlab_net::queue::Limit;
use congestlab_net::random::Probability;
use congestlab_net::service::Service;
use congestlab_net::trace::Trace;
use rustix::net::sockopt;

const MS: Picos = 1_000_000_000;
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Two hosts and what is between them.
struct Rig {
    left: Namespace,
    wire: Namespace,
    right: Namespace,
}

impl Rig {
    /// `None`, and says so, where that can not be.
    fn new(test: &str) -> Option<Self> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP {test}: needs root");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let create =
            |part: &str| Namespace::create(&format!("cl-t{}-{number}-{part}", process::id())).unwrap();
        let rig = Self { left: create("left"), wire: create("wire"), right: create("right") };
        rig.wire
            .run(|| {
                for (host, end, inside, address) in
                    [(&rig.left, "w0", "left", LEFT), (&rig.right, "w1", "right", RIGHT)]
                {
                    let name = host.name();
                    command::run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1").unwrap();
                    command::run(&format!(
                        "ip link add name {end} type veth peer name {inside} netns {name}"
                    ))
                    .unwrap();
                    command::run(&format!("ip link set {end} up")).unwrap();
                    host.run(|| {
                        command::run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1").unwrap();
                        command::run(&format!("ip addr add {address}/24 dev {inside}")).unwrap();
                        command::run(&format!("ip link set {inside} up")).unwrap();
                        Offloads::off(inside).unwrap().keep();
                    })
                    .unwrap();
                }
            })
            .unwrap();
        Some(rig)
    }

    /// Does something while the link runs.
    fn run<T>(
        &self,
        forward: Option<Direction>,
        back: Option<Direction>,
        work: impl FnOnce() -> T,
    ) -> (T, Report) {
        self.run_with(|link| link, forward, back, work)
    }

    /// Does something while a link with other settings runs.
    fn run_with<T>(
        &self,
        set: impl FnOnce(Link) -> Link + Send,
        forward: Option<Direction>,
        back: Option<Direction>,
        work: impl FnOnce() -> T,
    ) -> (T, Report) {
        let mut link = self
            .wire
            .run(|| set(Link::new("w0", "w1", forward, back, Arc::new(Clock::start())).unwrap()))
            .unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| link.run(&stop).unwrap());
            let ending = Stop(&stop);
            let done = work();
            drop(ending);
            (done, running.join().unwrap())
        })
    }

    /// Sends so many bytes by TCP from left to right; returns what arrives.
    fn transfer(&self, bytes: usize) -> u64 {
        let server = self.right.run(|| TcpListener::bind((RIGHT, 5000)).unwrap()).unwrap();
        thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut stream, _) = server.accept().unwrap();
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
            });
            self.left
                .run(|| {
                    let mut stream = TcpStream::connect((RIGHT, 5000)).unwrap();
                    std::io::Write::write_all(&mut stream, &vec![7; bytes]).unwrap();
                })
                .unwrap();
            receiving.join().unwrap()
        })
    }

    fn udp(&self, host: &Namespace, address: Ipv4Addr) -> UdpSocket {
        let socket = host.run(|| UdpSocket::bind((address, 7000)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        // The usual buffer holds 90 datagrams, and drops the rest while the test does not run.
        sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20).unwrap();
        socket
    }

    /// A socket on each side, the left one connected to the right one.
    fn pair(&self) -> (UdpSocket, UdpSocket) {
        let (left, right) = (self.udp(&self.left, LEFT), self.udp(&self.right, RIGHT));
        left.connect((RIGHT, 7000)).unwrap();
        right.connect((LEFT, 7000)).unwrap();
        (left, right)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for namespace in [&self.left, &self.wire, &self.right] {
            let _ = command::run(&format!("ip netns delete {}", namespace.name()));
        }
    }
}

/// Ends the link also if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn port(rate: u64, delay: Picos, limit: Limit) -> PortConfig {
    PortConfig::new(Service::Fixed(BitRate(rate)), delay, limit)
}

fn delay(delay: Picos) -> PortConfig {
    PortConfig::new(UNLIMITED, delay, Limit::None)
}

fn direction(port: PortConfig) -> Option<Direction> {
    Some(Direction::new(port, 1, "test"))
}

/// The next datagram. Processes that end interrupt the call.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Says why the times of a run are not judged.
fn is_punctual(test: &str, report: &Report) -> bool {
    if !report.trustworthy {
        eprintln!("SKIP times of {test}: {}", report.doubts.join("; "));
    }
    report.trustworthy
}

#[test]
fn packets_take_the_delay_both_ways() {
    let Some(rig) = Rig::new("packets_take_the_delay_both_ways") else { return };
    let (left, right) = rig.pair();
    let (times, report) = rig.run(direction(delay(30 * MS)), direction(delay(10 * MS)), || {
        let mut buffer = [0; 100];
        (0..20)
            .map(|_| {
                let begin = now();
                left.send(b"there").unwrap();
                receive(&right, &mut buffer).unwrap();
                right.send(b"and back").unwrap();
                receive(&left, &mut buffer).unwrap();
                now() - begin
            })
            .collect::<Vec<_>>()
    });
    // The first waits for ARP besides.
    let best = times.iter().skip(1).min().unwrap();
    assert!(*best >= Duration::from_millis(40), "{times:?}");
    assert_eq!((report.forward.delivered_packets, report.back.delivered_packets), (20, 20));
    assert!(report.forward.other_frames >= 1, "ARP passes too");
    if is_punctual("packets_take_the_delay_both_ways", &report) {
        assert!(*best < Duration::from_millis(45), "{times:?}");
    }
}

/// Sends so many datagrams of 1,000 bytes (IP) at once; what arrives until nothing does for a while,
/// as the first byte of each and its time.
fn burst(left: &UdpSocket, right: &UdpSocket, count: u8) -> Vec<(u8, Duration)> {
    // One before, so that no ARP is in the way.
    left.send(&[255]).unwrap();
    receive(right, &mut [0; 10]).unwrap();
    right.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut payload = [0; 972];
    for number in 0..count {
        payload[0] = number;
        left.send(&payload).unwrap();
    }
    let mut buffer = [0; 2000];
    std::iter::from_fn(|| receive(right, &mut buffer).ok().map(|_| (buffer[0], now()))).collect()
}

#[test]
fn packets_leave_at_the_rate_counted_in_ip_bytes() {
    let Some(rig) = Rig::new("packets_leave_at_the_rate_counted_in_ip_bytes") else { return };
    let (left, right) = rig.pair();
    // 1,000 B each ms.
    let (arrived, report) =
        rig.run(direction(port(8_000_000, 0, Limit::None)), None, || burst(&left, &right, 100));
    assert_eq!(arrived.len(), 100);
    let span = arrived[99].1 - arrived[0].1;
    assert!(span >= Duration::from_millis(85), "{span:?}");
    assert_eq!(report.forward.capacity_bps, Some(8_000_000));
    assert_eq!((report.forward.sent_packets, report.forward.drops), (101, 0));
    assert!(report.forward.queue_max_packets >= 90, "{report:?}");
    if is_punctual("packets_leave_at_the_rate_counted_in_ip_bytes", &report) {
        assert!(span < Duration::from_millis(103), "{span:?}");
    }
}

#[test]
fn a_full_queue_drops_what_arrives() {
    let Some(rig) = Rig::new("a_full_queue_drops_what_arrives") else { return };
    let (left, right) = rig.pair();
    for limit in [Limit::Packets(10), Limit::Bytes(10_999)] {
        let (arrived, report) =
            rig.run(direction(port(1_000_000, 0, limit)), None, || burst(&left, &right, 50));
        // 8 ms a packet: the burst takes less, unless the machine sleeps.
        assert_eq!(arrived.len() as u64 + report.forward.drops, 50);
        assert!((11..20).contains(&arrived.len()), "{} arrived", arrived.len());
        assert_eq!(report.forward.drops_by_reason["queue-full"], report.forward.drops);
        assert_eq!(report.forward.queue_max_packets, 10);
    }
}

#[test]
fn errors_hit_the_share_that_was_asked_for_and_the_same_packets_each_time() {
    let test = "errors_hit_the_share_that_was_asked_for_and_the_same_packets_each_time";
    let Some(rig) = Rig::new(test) else { return };
    let (left, right) = rig.pair();
    // Leaves no ARP to lose.
    rig.run(None, None, || burst(&left, &right, 1));
    let run = |seed| {
        let errors = Some(ErrorRate::Packet { rate: 0.3, size: 1000 });
        let port = PortConfig { errors, ..port(100_000_000, 0, Limit::None) };
        let (arrived, report) = rig.run(Some(Direction::new(port, seed, "test")), None, || {
            let (mut payload, mut buffer) = ([0; 972], [0; 2000]);
            for number in 0..400_u16 {
                payload[..2].copy_from_slice(&number.to_be_bytes());
                left.send(&payload).unwrap();
            }
            // On a machine that is busy the link may pause for longer than `burst` waits.
            right.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            let numbers = std::iter::from_fn(|| {
                receive(&right, &mut buffer).ok().map(|_| u16::from_be_bytes([buffer[0], buffer[1]]))
            });
            numbers.collect::<Vec<_>>()
        });
        assert_eq!(arrived.len() as u64 + report.forward.errors, 400);
        arrived
    };
    let (once, again, other) = (run(7), run(7), run(8));
    assert_eq!(once, again);
    assert_ne!(once, other);
    // Of 280, by less than five standard deviations.
    assert!((234..326).contains(&once.len()), "{} of 400 arrived", once.len());
}

#[test]
fn a_trace_says_when_packets_leave() {
    let Some(rig) = Rig::new("a_trace_says_when_packets_leave") else { return };
    let (left, right) = rig.pair();
    // 1,500 B each 20 ms: three packets of 1,000 B in 40 ms.
    let port = PortConfig {
        service: Service::Trace(Trace::new(vec![20]).unwrap()),
        ..port(1, 0, Limit::Packets(100))
    };
    let (arrived, report) = rig.run(direction(port), None, || burst(&left, &right, 30));
    assert_eq!(arrived.len(), 30);
    // The trace's opportunities in the measured time, which is longer than the packets take: one more or less of 1,500 B.
    let capacity = report.forward.capacity_bps.expect("a trace has a capacity");
    assert!(capacity.abs_diff(600_000) < 12_000 * 1000 / 350, "{capacity}");
    let span = arrived[29].1 - arrived[0].1;
    assert!(span > Duration::from_millis(350), "{span:?}");
    if is_punctual("a_trace_says_when_packets_leave", &report) {
        assert!(span < Duration::from_millis(430), "{span:?}");
    }
}

#[test]
fn tcp_fills_the_rate_and_loses_nothing_without_a_limit() {
    let Some(rig) = Rig::new("tcp_fills_the_rate_and_loses_nothing_without_a_limit") else { return };
    let both = || direction(port(20_000_000, 5 * MS, Limit::Packets(200)));
    let (received, report) = rig.run(both(), both(), || rig.transfer(5_000_000));
    assert_eq!(received, 5_000_000);
    assert_eq!((report.forward.oversized_frames, report.forward.refused_frames), (0, 0), "{report:?}");
    if is_punctual("tcp_fills_the_rate_and_loses_nothing_without_a_limit", &report) {
        // 5 MB of payload are 5.18 MB of packets: 2.07 s.
        assert!(report.forward.utilization.unwrap() > 0.8, "{report:?}");
    }
}

/// A queue of 1 TB lost 1.1 million frames with "drops 0": it can be no longer than the memory, and what it drops is counted.
#[test]
fn a_queue_longer_than_the_memory_drops_what_the_memory_does_not_hold() {
    let Some(rig) = Rig::new("a_queue_longer_than_the_memory_drops_what_the_memory_does_not_hold") else {
        return;
    };
    let (left, right) = rig.pair();
    let queue = direction(port(400_000, 0, Limit::Bytes(1_000_000_000_000)));
    // One for each 20 ms, and the memory holds a few dozen.
    let few = |link: Link| link.with_memory(1);
    let (arrived, report) = rig.run_with(few, queue, None, || burst(&left, &right, 200));
    let forward = &report.forward;
    assert!(arrived.len() < 200, "all of them fit");
    assert_eq!(forward.drops_by_reason.get("memory"), Some(&forward.drops), "{forward:?}");
    assert_eq!((forward.arrived_packets, forward.kernel_drops), (201, 0), "{forward:?}");
    assert_eq!(forward.arrived_packets, forward.drops + forward.delivered_packets + forward.in_flight_end);
    assert!(report.doubts.iter().any(|doubt| doubt.contains("took all memory")), "{:?}", report.doubts);
}

/// The interface behind does not take them, as no router would: drops, and no reason to doubt the link.
#[test]
fn packets_longer_than_the_interface_behind_takes_are_drops() {
    let Some(rig) = Rig::new("packets_longer_than_the_interface_behind_takes_are_drops") else { return };
    rig.wire.run(|| command::run("ip link set dev w0 mtu 1600").unwrap()).unwrap();
    rig.left.run(|| command::run("ip link set dev left mtu 1600").unwrap()).unwrap();
    let (left, right) = rig.pair();
    let (_, report) = rig.run(direction(port(80_000_000, 0, Limit::None)), None, || {
        for size in [1472, 1473, 1500] {
            for _ in 0..10 {
                left.send(&vec![7; size]).unwrap();
            }
        }
        burst(&left, &right, 3)
    });
    let forward = &report.forward;
    assert_eq!(forward.drops_by_reason.get("too-long"), Some(&20), "{forward:?}");
    assert_eq!((forward.drops, forward.refused_frames, forward.oversized_frames), (20, 0, 0), "{forward:?}");
    assert!(report.doubts.iter().all(|doubt| doubt.contains(" late")), "{:?}", report.doubts);
}

#[test]
fn ack_loss_hits_pure_acks_only() {
    let Some(rig) = Rig::new("ack_loss_hits_pure_acks_only") else { return };
    let back = PortConfig { ack_loss: Probability::from_f64(0.3), ..port(100_000_000, MS, Limit::None) };
    let forward = direction(port(50_000_000, MS, Limit::None));
    let (received, report) = rig.run(forward, direction(back), || rig.transfer(3_000_000));
    assert_eq!(received, 3_000_000);
    let share = report.back.errors as f64 / report.back.arrived_packets as f64;
    assert!((0.15..0.45).contains(&share), "{share} of {report:?}");
    assert_eq!(report.forward.errors, 0);
}

fn xcp_law() -> LawConfig {
    LawConfig { config: LinkConfig::Xcp(xcp::LinkConfig::default()), follows_service: true }
}

/// A frame of TCP data with these options, built and checked by a library of somebody else.
fn tcp_frame(version: u8, options: &[u8]) -> Vec<u8> {
    use etherparse::PacketBuilder;
    let builder = PacketBuilder::ethernet2([2; 6], [255; 6]);
    let builder = match version {
        4 => builder.ipv4(LEFT.octets(), RIGHT.octets(), 64),
        _ => builder.ipv6([1; 16], [2; 16], 64),
    };
    let builder = builder.tcp(5001, 5002, 1, 1000).ack(2).options_raw(options).unwrap();
    let mut frame = Vec::new();
    builder.write(&mut frame, &[42; 101]).unwrap();
    frame
}

/// True if every checksum in the frame is right.
fn has_right_checksums(frame: &[u8]) -> bool {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("not TCP") };
    match packet.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            header.calc_header_checksum() == header.header_checksum
                && tcp.calc_checksum_ipv4(header.source, header.destination).unwrap() == tcp.checksum()
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            tcp.calc_checksum_ipv6(header.source, header.destination).unwrap() == tcp.checksum()
        }
        NetSlice::Arp(_) => false,
    }
}

/// What comes out at the right of frames put in at the left, in order.
fn pass(rig: &Rig, law: Option<LawConfig>, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, Report) {
    let open = |host: &Namespace, name: &str| {
        host.run(|| {
            let text = command::query(&format!("ip -o link show {name}")).unwrap();
            Socket::open(text.split(':').next().unwrap().parse().unwrap()).unwrap()
        })
        .unwrap()
    };
    let (from, to) = (open(&rig.left, "left"), open(&rig.right, "right"));
    let port = PortConfig { law, ..port(10_000_000, MS, Limit::Packets(100)) };
    rig.run(direction(port), None, || {
        let mut arrived = Vec::new();
        for bytes in frames {
            let mut frame = Frame::new(bytes.len());
            frame.fill(bytes);
            from.send(std::iter::once(&frame)).unwrap();
            let mut room = [Frame::new(2000)];
            let end = now() + Duration::from_secs(2);
            while to.receive(&mut room).unwrap() == 0 && now() < end {
                thread::sleep(Duration::from_micros(200));
            }
            arrived.push(room[0].bytes().to_vec());
        }
        arrived
    })
}

#[test]
fn the_law_edits_the_option_and_mends_the_checksum() {
    let Some(rig) = Rig::new("the_law_edits_the_option_and_mends_the_checksum") else { return };
    let ask = |routers| option::Option::Data {
        header: xcp::Header { x: 1 << 20, rtt: 1 << 24, delta: 100_000_000, reverse: 0 },
        routers,
        echo: option::Echo { routers: 3, sum: 77 },
    };
    for version in [4, 6] {
        let nops = |count: usize, routers| [&vec![1; count][..], &ask(routers).emit().0].concat();
        let frames = [
            tcp_frame(version, &nops(0, 0)),
            tcp_frame(version, &nops(2, 15)),
            tcp_frame(version, &nops(1, 0)), // at an odd offset
            tcp_frame(version, &[253, 12, 0x58, 0x43, 0, 0, 0, 0, 0, 0, 0, 0]),
            tcp_frame(version, &[253, 8, 0x58, 0x43, 0, 0, 0, 9]),
            tcp_frame(version, &[253, 20, 0x58, 0x43, 0, 0, 0, 0]),
            tcp_frame(version, &[8, 10, 0, 0]),
        ];
        let (arrived, report) = pass(&rig, Some(xcp_law()), &frames);
        for (begin, routers, bytes) in [(54, 1, &arrived[0]), (56, 15, &arrived[1])] {
            let begin = begin + if version == 6 { 20 } else { 0 };
            let Some(option::Option::Data { header, routers: count, echo }) =
                option::Option::parse(&bytes[begin..])
            else {
                panic!("no option in {bytes:x?}")
            };
            assert!(header.delta < 100_000_000, "IPv{version}: {header:?}");
            assert_eq!((header.x, header.rtt, count), (1 << 20, 1 << 24, routers));
            assert_eq!(echo, option::Echo { routers: 3, sum: 77 });
            assert!(has_right_checksums(bytes), "IPv{version}");
        }
        assert_eq!(arrived[2..], frames[2..], "what is refused passes as it is");
        let law = report.forward.xcp.unwrap();
        let Refused { odd_offset, wrong_length, truncated, malformed, .. } = law.refused;
        assert_eq!((odd_offset, wrong_length, truncated, malformed), (1, 1, 1, 1), "IPv{version}");
        assert_eq!((law.xcp_packets, law.refused_packets), (2, 4), "IPv{version}");
        let (arrived, report) = pass(&rig, None, &frames);
        assert_eq!(arrived, frames, "a link without law is a legacy router");
        assert!(report.forward.xcp.is_none());
    }
}

#[test]
fn the_law_edits_the_header_of_its_own_protocol_but_no_fragment() {
    let test = "the_law_edits_the_header_of_its_own_protocol_but_no_fragment";
    let Some(rig) = Rig::new(test) else { return };
    let header = shim::Repr::Standard {
        layout: shim::Layout::V3,
        protocol: 6,
        header: xcp::Header { x: 1 << 20, rtt: 1 << 24, delta: 100_000_000, reverse: 5 },
    };
    let frame = |payload: &[u8]| {
        let builder = etherparse::PacketBuilder::ethernet2([2; 6], [255; 6]);
        let builder = builder.ipv4(LEFT.octets(), RIGHT.octets(), 64);
        let mut frame = Vec::new();
        builder.write(&mut frame, etherparse::IpNumber(253), payload).unwrap();
        frame
    };
    let whole = frame(&[&header.emit()[..], &[9; 400]].concat());
    let mut fragment = whole.clone();
    fragment[20..22].copy_from_slice(&0x2000_u16.to_be_bytes());
    let mut later = whole.clone();
    later[36] = 0x41; // version 4
    let mut foreign = fragment.clone();
    foreign[23] = 17; // UDP can have no header
    let mut behind = tcp_frame(6, &[]);
    behind[20] = 44; // a fragment header, with what was the source port for TCP's number
    behind[54] = 6;
    let mut other = behind.clone();
    other[54] = 17;
    let frames = [whole, fragment, later, frame(&header.emit()[..10]), foreign, behind, other];
    let (arrived, report) = pass(&rig, Some(xcp_law()), &frames);
    let edited = shim::Packet::new_checked(&arrived[0][34..]).unwrap();
    assert!(edited.delta() < 100_000_000);
    assert_eq!((edited.x(), edited.rtt(), edited.reverse()), (1 << 20, 1 << 24, 5));
    assert_eq!(arrived[0][..50], frames[0][..50]);
    assert_eq!(arrived[1..], frames[1..]);
    let law = report.forward.xcp.unwrap();
    let Refused { fragments, version, truncated, .. } = law.refused;
    assert_eq!((law.xcp_packets, (fragments, version, truncated)), (1, (2, 1, 1)));
}

#[test]
fn vlan_tags_stay_in_the_frame() {
    let Some(rig) = Rig::new("vlan_tags_stay_in_the_frame") else { return };
    let plain = tcp_frame(4, &[]);
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let (arrived, report) = pass(&rig, None, std::slice::from_ref(&tagged));
    assert_eq!(arrived, [tagged]);
    assert_eq!(report.forward.delivered_packets, 1);
}

#[test]
fn offloads_are_put_back() {
    let Some(rig) = Rig::new("offloads_are_put_back") else { return };
    let state = || {
        let text = command::query("ip -d link show w0").unwrap();
        text.split_whitespace().skip_while(|&word| word != "gso_max_segs").nth(1).map(str::to_owned)
    };
    rig.wire
        .run(|| {
            let before = state();
            let link = Link::new("w0", "w1", None, None, Arc::new(Clock::start())).unwrap();
            assert_eq!(state().as_deref(), Some("1"));
            drop(link);
            assert_eq!(state(), before);
            let error = Link::new("w0", "nowhere", None, None, Arc::new(Clock::start())).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
            assert!(error.to_string().contains("nowhere") && error.help().contains("w1"), "{error}");
            assert_eq!(state(), before);
        })
        .unwrap();
}

/// TCP data of the flow from this port, as packet `index` of a chain that `order` tells, with this code in its ECN field.
fn coded(version: u8, flow: u16, order: Order, index: u8, code: u8) -> Vec<u8> {
    use etherparse::PacketBuilder;
    let builder = PacketBuilder::ethernet2([2; 6], [255; 6]);
    let builder = match version {
        4 => builder.ipv4(LEFT.octets(), RIGHT.octets(), 64),
        _ => builder.ipv6([1; 16], [2; 16], 64),
    };
    let stamps = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    let builder = builder.tcp(flow, 5002, 5000, 1000).ack(9000).options_raw(&stamps).unwrap();
    let mut frame = Vec::new();
    builder.write(&mut frame, &[42; 101]).unwrap();
    let tcp = 14 + if version == 4 { 20 } else { 40 };
    match order {
        Order::Checksum => frame[tcp + 11] -= index,
        Order::Swap if index == 0 => frame[tcp + 4..tcp + 12].rotate_left(4),
        Order::Swap => {}
        Order::Ipid => frame[19] = index,
    }
    if version == 6 {
        frame[15] |= code << 4;
        return frame;
    }
    frame[15] |= code;
    frame[24..26].fill(0);
    let sum: u32 = frame[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame
}

/// Under a load of the highest level all digits of a chain become 11, under one of the lowest none changes, whatever they were.
/// Nothing else of a packet changes, and a packet of which nobody knows the chain passes as it is.
#[test]
fn a_load_is_told_in_chains_of_packets_and_nothing_else_of_them_changes() {
    let Some(rig) = Rig::new("a_load_is_told_in_chains_of_packets_and_nothing_else_of_them_changes") else {
        return;
    };
    let kinds = [
        (1, Order::Swap),
        (2, Order::Swap),
        (2, Order::Ipid),
        (2, Order::Checksum),
        (3, Order::Checksum),
        (8, Order::Checksum),
    ];
    // No capacity is overloaded whatever comes, and so much never is.
    for (n, order, capacity) in kinds.into_iter().flat_map(|(n, order)| [(n, order, 0), (n, order, 1 << 40)])
    {
        let config = mpcp::LinkConfig {
            capacity: Rate(capacity),
            order,
            interval: units::Duration(100_000),
            ..mpcp::LinkConfig::of(n, false)
        };
        let law = LawConfig { config: LinkConfig::Mpcp(config), follows_service: false };
        let raised = |code| if capacity == 0 { 3 } else { code };
        // What is sent and what is to arrive. Before the first arrives, a load has been measured.
        let mut packets = vec![(coded(4, 99, order, 0, 0), coded(4, 99, order, 0, 0))];
        let (mut coded_packets, mut unplaced) = (0, 0);
        let mut send = |version, flow, index, code, left| {
            coded_packets += u64::from(code > 0);
            packets
                .push((coded(version, flow, order, index, code), coded(version, flow, order, index, left)));
        };
        // IPv6 has no identification.
        for version in if order == Order::Ipid { &[4][..] } else { &[4, 6] } {
            for shift in 0..3 {
                for index in 0..n as u8 {
                    let code = 1 + (shift + index) % 3;
                    send(*version, 100, index, code, raised(code));
                    // Another flow's, between them.
                    send(*version, 101, 0, 3, 3);
                }
            }
            send(*version, 100, 0, 0, 0);
            if n > 1 {
                // No first packet came, so it may be VCP's, whose codes are zones.
                send(*version, 102, 1, 1, raised(1));
            }
            if n > 2 {
                send(*version, 103, 0, 1, raised(1));
                send(*version, 103, 2, 1, 1);
            }
            if n > 1 && order == Order::Checksum {
                // Short by more than any place: damage.
                send(*version, 100, n as u8, 1, 1);
                unplaced += 1;
            }
        }
        let (sent, expected): (Vec<_>, Vec<_>) = packets.into_iter().unzip();
        let (arrived, report) = pass(&rig, Some(law), &sent);
        for (number, (came, expected)) in arrived.iter().zip(&expected).enumerate().skip(1) {
            assert_eq!(came, expected, "packet {number} of chains of {n} by {order:?}, capacity {capacity}");
        }
        let load = report.forward.load.unwrap();
        assert_eq!((load.coded_packets, load.unplaced_packets), (coded_packets, unplaced), "{load:?}");
        let last = 3u16.pow(n) - 1;
        let level = if capacity == 0 { (3, last) } else { (1, 0) };
        assert_eq!((load.load_code, load.load_level), level, "{load:?}");
        assert!(report.forward.xcp.is_none(), "{report:?}");
    }
}
