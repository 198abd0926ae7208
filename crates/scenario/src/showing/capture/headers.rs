//! A packet of the simulator as the headers of an IPv4 packet.
//!
//! The simulator's packets count segments; here they get bytes, addresses and checksums
//! (docs/traces.md tells readers of traces the same):
//!
//! - Flow `f` of the run goes from 10.0.0.1 + f, port 40000, to 10.128.0.1 + f, port 50000 + group.
//! - Segment `n` of a flow begins at the sequence number after the payloads of the `n` before it; the
//!   payload is what the headers leave of a packet's size, zeros, at least one byte.
//! - A packet is as long as its size, or as its headers if they need more. What an acknowledgment has
//!   to spare is padding.
//! - What the edges of an XCP-i cloud say to each other, and their probes, are UDP datagrams of zeros
//!   from port 49998 (control) or 49999 (probes) to the same. A sender and a receiver have their flow's
//!   addresses, routers those from 172.16.0.1 on.
//! - What the simulator does not carry is not made up: data echoes no timestamp, and a receiver's own
//!   timestamp repeats what it echoes.

use std::collections::BTreeMap;

use congestlab_core::law::{On, Segment, mpcp, xcp, xcp_i, xcp_r, xcp_r_v0};
use congestlab_core::units::Time;
use congestlab_core::wire::xcp::{LENGTH as XCP_LENGTH, Layout, PROTOCOL_EXPERIMENTAL, Repr, Version};
use congestlab_core::wire::xcp_extended::{self, Interoperable};
use congestlab_net::packet::{Kind, PS_PER_NS, Packet, SACK_BLOCKS, flag};
use congestlab_net::tcp::{Config, Connection};
use congestlab_net::xcp_i::{Address, Message, Verb};
use congestlab_sim::cloud::{receiver_address, router_address, router_flow, sender_address};
use congestlab_sim::headers::{connection, ports};
use congestlab_sim::model::{GroupKind, Model};
use etherparse::TcpOptionElement::{
    self, MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp,
    WindowScale,
};
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptions, UdpHeader};

const IP: usize = Ipv4Header::MIN_LEN;
const TCP: usize = TcpHeader::MIN_LEN;
/// Timestamps with the padding of RFC 7323 appendix A.
const TIMESTAMPS: usize = 12;
/// Port of the control packets and probes of XCP-i nodes.
const CONTROL_PORT: u16 = 49_998;
const PROBE_PORT: u16 = 49_999;
/// RFC 1700's recommendation, and what Linux sends.
const TTL: u8 = 64;
/// RFC 8622: the code point of traffic that yields to all other.
const LOWER_EFFORT: u8 = 1;
/// RFC 7323 §2.3.
const SCALE_MAX: u8 = 14;
/// The payload of all packets.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
const OPTIONS: &str = "what can come together fits into 40 bytes";
const FITS: &str = "a packet's size has 16 bits";

/// Everything about the flows of a run that headers need.
pub(super) struct Headers {
    /// In the order of their flows.
    groups: Vec<Group>,
    /// Routers with an agent.
    routers: u32,
}

struct Group {
    first_flow: u32,
    number: usize,
    /// Headers that the law of the group looks at, by flow; empty: it does not look at headers.
    connections: Vec<Connection>,
    /// Time to live of what leaves through a link.
    ttl: BTreeMap<u32, u8>,
    /// `None`: datagrams.
    tcp: Option<Tcp>,
}

/// The headers of a group's TCP packets.
struct Tcp {
    config: Config,
    /// Bytes of the congestion header of data: none, draft-03's, or with extensions.
    xcp_length: usize,
    /// Bytes of the law's TCP option on data.
    option_length: usize,
    /// ACKs return XCP-r's window.
    returns_window: bool,
    has_timestamps: bool,
    /// Window scale of the receiver.
    scale: u8,
}

/// The header between the IP header and the payload.
enum Transport {
    Tcp { xcp: Vec<u8>, header: TcpHeader },
    Udp,
}

impl Headers {
    /// `routers`: whose output port each link is.
    pub(super) fn new(model: &Model, routers: &[&str]) -> Self {
        let mut first_flow = 0;
        let groups = model.groups.iter().enumerate().map(|(index, group)| {
            let mut ttl = BTreeMap::new();
            for path in group.paths().flat_map(|(path, back)| [path, back]) {
                ttl.extend(path.iter().copied().zip(times_to_live(path, routers)));
            }
            let first = first_flow;
            first_flow += group.count;
            Group {
                first_flow: first,
                number: index,
                connections: (0..group.count)
                    .filter_map(|flow| connection(group, index, flow, first + flow, model.seed))
                    .collect(),
                ttl,
                tcp: Tcp::new(&group.kind, group.interoperable.is_some()),
            }
        });
        Self { groups: groups.collect(), routers: model.devices.len() as u32 }
    }

    /// Puts the packet as it leaves through `link` into `frame`: its headers, and payload up to
    /// `snaplen` bytes in all. Returns its length on the wire.
    pub(super) fn write(&self, link: u32, packet: &Packet, snaplen: usize, frame: &mut Vec<u8>) -> usize {
        if matches!(packet.kind, Kind::Control | Kind::Probe) {
            return self.write_of_nodes(packet, snaplen, frame);
        }
        let group = &self.groups[self.groups.partition_point(|group| group.first_flow <= packet.flow) - 1];
        let connection = group.connections.get((packet.flow - group.first_flow) as usize);
        let transport = group.tcp.as_ref().map_or(Transport::Udp, |tcp| tcp.transport(packet, connection));
        let (protocol, headers) = match &transport {
            Transport::Tcp { xcp, header } if !xcp.is_empty() => {
                (IpNumber(PROTOCOL_EXPERIMENTAL), xcp.len() + header.header_len())
            }
            Transport::Tcp { header, .. } => (IpNumber::TCP, header.header_len()),
            Transport::Udp => (IpNumber::UDP, UdpHeader::LEN),
        };
        let headers = IP + headers;
        let length = usize::from(packet.size).max(headers);
        let payload = &ZEROS[..match packet.kind {
            // A segment without a byte would be an acknowledgment.
            Kind::Data => (length - headers).max(1),
            Kind::Datagram => length - headers,
            // Bytes that are left are padding behind the IP packet, as on Ethernet.
            Kind::Ack | Kind::Syn | Kind::SynAck | Kind::WindowProbe | Kind::Control | Kind::Probe => 0,
        }];
        let length = length.max(headers + payload.len());

        let ports = ports(group.number, packet.flow);
        let mut from = (sender_address(packet.flow).0.to_be_bytes(), ports.0);
        let mut to = (receiver_address(packet.flow).0.to_be_bytes(), ports.1);
        if is_from_receiver(packet) {
            std::mem::swap(&mut from, &mut to);
        }
        let told = group.tcp.as_ref().zip(connection).and_then(|(tcp, connection)| match packet.kind {
            Kind::Data => Segment::of(packet),
            Kind::Ack => {
                let rules = tcp.config.law.part::<mpcp::SenderConfig>()?;
                let headers = connection.acknowledgment(&tcp.config, u64::from(packet.seq.wrapping_sub(1)));
                let headers = Segment { identification: packet.identification(), ..headers };
                rules.acknowledge(headers, packet.reply().into())
            }
            _ => None,
        });
        let dscp = if packet.flags & flag::LOW_PRIORITY != 0 { LOWER_EFFORT } else { 0 };
        let ip = Ipv4Header {
            dscp: IpDscp::try_new(dscp).unwrap_or_default(),
            ecn: IpEcn::try_new(packet.flags & flag::ECN_MASK).unwrap_or_default(),
            total_len: (headers + payload.len()) as u16,
            identification: told.map_or(packet.identification(), |told| told.identification),
            dont_fragment: true,
            time_to_live: match packet.header::<xcp_i::Extension>() {
                Some(extension) => extension.ttl,
                None => group.ttl.get(&link).copied().unwrap_or(TTL),
            },
            protocol,
            source: from.0,
            destination: to.0,
            ..Ipv4Header::default()
        };
        frame.clear();
        write(frame, |out| ip.write(out));
        match transport {
            Transport::Tcp { xcp, mut header } => {
                frame.extend(xcp);
                (header.source_port, header.destination_port) = (from.1, to.1);
                header.checksum = header.calc_checksum_ipv4(&ip, payload).expect(FITS);
                // Places in a chain are told after the checksum is made.
                if let Some(told) = told {
                    header.sequence_number = told.sequence;
                    header.acknowledgment_number = told.acknowledgment;
                }
                write(frame, |out| header.write(out));
            }
            Transport::Udp => {
                let header = UdpHeader::with_ipv4_checksum(from.1, to.1, &ip, payload).expect(FITS);
                write(frame, |out| header.write(out));
            }
        }
        frame.resize(length.min(snaplen).max(frame.len()), 0);
        length
    }

    /// A control packet or probe of XCP-i nodes.
    fn write_of_nodes(&self, packet: &Packet, snaplen: usize, frame: &mut Vec<u8>) -> usize {
        // Control packets and probes name their source. Requests go up the path of data, all others down.
        let from = Address(packet.words[1]);
        let message = Message::from_packet(packet);
        let to = match router_flow(packet.flow) {
            router if router < self.routers => router_address(router),
            _ if message.is_some_and(|message| matches!(message.verb, Verb::Request { .. })) => {
                sender_address(packet.flow)
            }
            _ => receiver_address(packet.flow),
        };
        let length = usize::from(packet.size).max(IP + UdpHeader::LEN);
        let payload = &ZEROS[..length - IP - UdpHeader::LEN];
        let ip = Ipv4Header {
            total_len: length as u16,
            identification: packet.identification(),
            dont_fragment: true,
            time_to_live: TTL,
            protocol: IpNumber::UDP,
            source: from.0.to_be_bytes(),
            destination: to.0.to_be_bytes(),
            ..Ipv4Header::default()
        };
        let port = if packet.kind == Kind::Probe { PROBE_PORT } else { CONTROL_PORT };
        let udp = UdpHeader::with_ipv4_checksum(port, port, &ip, payload).expect(FITS);
        frame.clear();
        write(frame, |out| ip.write(out));
        write(frame, |out| udp.write(out));
        frame.resize(length.min(snaplen).max(frame.len()), 0);
        length
    }
}

fn write(frame: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
    write(frame).expect("memory takes every byte");
}

fn is_from_receiver(packet: &Packet) -> bool {
    matches!(packet.kind, Kind::Ack | Kind::SynAck)
}

/// The times to live of packets that leave through each link of a path. Every router takes one; links that
/// one router sends through follow each other without (docs/design/contract.md 3).
fn times_to_live(path: &[u32], routers: &[&str]) -> impl Iterator<Item = u8> {
    let mut left = TTL;
    let mut last = None;
    path.iter().map(move |&link| {
        let router = routers[link as usize];
        if last.replace(router) != Some(router) {
            left = (left - 1).max(1);
        }
        left
    })
}

impl Tcp {
    fn new(kind: &GroupKind, is_interoperable: bool) -> Option<Self> {
        let GroupKind::Tcp(config) = kind else { return None };
        let returns_window =
            config.law.part::<xcp_r::Config>().is_some() || config.law.part::<xcp_r_v0::Config>().is_some();
        let extensions = usize::from(is_interoperable) + usize::from(returns_window);
        let xcp_length = config.law.part::<xcp::SenderConfig>().map_or(0, |_| XCP_LENGTH + 8 * extensions);
        let option_length = if xcp_length > 0 { 0 } else { config.law.needs().header_bytes.into() };
        // A connection has them or not (RFC 7323 §3.2): only if they make no packet longer than it is.
        let room = usize::from(config.ack.min(config.segment.saturating_sub(1)));
        // Laws that look into headers see forty bytes of them.
        let has_timestamps =
            room >= IP + xcp_length + TCP + option_length + TIMESTAMPS && !config.law.needs().segments;
        let config = config.clone();
        let mut tcp =
            Self { config, xcp_length, option_length, returns_window, has_timestamps, scale: SCALE_MAX };
        if let Some(segments) = tcp.config.awnd {
            let window = tcp.window(segments);
            tcp.scale =
                (0..SCALE_MAX).find(|scale| window.div_ceil(1 << scale) <= 0xffff).unwrap_or(SCALE_MAX);
        }
        Some(tcp)
    }

    fn transport(&self, packet: &Packet, connection: Option<&Connection>) -> Transport {
        let (isn, peer_isn) = connection.map_or((0, 0), |known| (known.isn, known.peer_isn));
        let first = peer_isn.wrapping_add(1);
        let mut header = TcpHeader { ack: true, window_size: u16::MAX, ..TcpHeader::default() };
        // One number for the SYN, as in the simulator, where segments follow.
        let sequence =
            |seq: u32| isn.wrapping_add(1).wrapping_add(self.payload(u64::from(seq.wrapping_sub(1))) as u32);
        // RFC 7323 §5.4: a clock of milliseconds.
        let stamp = (packet.sent_at(Time(packet.at / PS_PER_NS)).0 / 1_000_000) as u32;
        let echoed = if is_from_receiver(packet) { stamp } else { 0 };
        let mut xcp = Vec::new();
        let mut options = Vec::new();
        match packet.kind {
            Kind::Syn | Kind::SynAck => {
                let is_syn = packet.kind == Kind::Syn;
                header.syn = true;
                header.ack = !is_syn;
                header.sequence_number = if is_syn { isn } else { peer_isn };
                header.acknowledgment_number = if is_syn { 0 } else { isn.wrapping_add(1) };
                // RFC 3168 §6.1.1.
                header.ece = self.config.ecn;
                header.cwr = self.config.ecn && is_syn;
                if !is_syn {
                    header.window_size = self.window(packet.window()).min(0xffff) as u16;
                }
                options.push(MaximumSegmentSize(self.mss()));
                options.extend([Noop, WindowScale(if is_syn { 0 } else { self.scale })]);
                if self.config.recovery.has_sack() {
                    options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
                }
            }
            Kind::Ack => {
                header.sequence_number = first;
                header.acknowledgment_number = sequence(packet.seq);
                header.ece = packet.flags & flag::ECE != 0;
                // Two bits that are there for the echo of a code: nobody says which MP and VP take.
                if connection.is_some() {
                    let code = mpcp::Echoed::from(packet.reply()).code().unwrap_or(0);
                    (header.ece, header.cwr) = (code & 1 != 0, code & 2 != 0);
                }
                header.window_size =
                    self.window(packet.window()).div_ceil(1 << self.scale).min(0xffff) as u16;
                let version = Version::V3;
                let header = Repr::Minimal {
                    version,
                    protocol: IpNumber::TCP.0,
                    reverse: xcp::feedback(packet.reply()),
                };
                if self.returns_window {
                    let xcp_r::Reply { cwnd, epoch } = packet.reply().into();
                    let window = Some(xcp_r::Header { cwnd, epoch, ..xcp_r::Header::default() });
                    xcp = extended(xcp::Header::default(), None, window);
                } else if self.xcp_length > 0 {
                    xcp = header.emit().into();
                }
            }
            // As Linux probes: the byte before the next one, without it.
            Kind::WindowProbe => {
                header.sequence_number = sequence(packet.seq).wrapping_sub(1);
                header.acknowledgment_number = first;
            }
            Kind::Data | Kind::Datagram | Kind::Control | Kind::Probe => {
                header.sequence_number = sequence(packet.seq);
                header.acknowledgment_number = first;
                header.cwr = packet.flags & flag::CWR != 0;
                let (layout, protocol) = (Layout::V3, IpNumber::TCP.0);
                let interoperable = packet.header::<xcp_i::Extension>().map(|added| Interoperable {
                    xcp_ttl: added.xcp_ttl,
                    last_xcp_router: added.last.0.to_be_bytes(),
                });
                let window = packet.header::<xcp_r::Header>();
                xcp = match (packet.header(), interoperable, window) {
                    (None, ..) => Vec::new(),
                    (Some(header), None, None) => Repr::Standard { layout, protocol, header }.emit().into(),
                    (Some(header), interoperable, window) => extended(header, interoperable, window),
                };
            }
        }
        if self.has_timestamps {
            options.extend([Noop, Noop, Timestamp(stamp, echoed)]);
        }
        let on = if is_from_receiver(packet) { On::Back(packet.reply()) } else { On::Forward(packet) };
        let own = self.config.law.option(on);
        let own = own.as_ref().map_or(&[][..], |bytes| &bytes[..bytes[1].into()]);
        if packet.kind == Kind::Ack {
            let stamps = if self.has_timestamps { TIMESTAMPS } else { 0 };
            options.extend(sack(packet, TcpOptions::MAX_LEN - own.len() - stamps, sequence));
        }
        let options = TcpOptions::try_from_elements(&options).expect(OPTIONS);
        let mut options = [own, options.as_slice()].concat();
        if packet.kind != Kind::Data {
            // An acknowledgment may have more room than it needs, and carries no payload: the end of
            // the options, then zeros.
            let taken = IP + xcp.len() + TCP;
            let room = usize::from(packet.size).saturating_sub(taken).min(TcpOptions::MAX_LEN) / 4 * 4;
            options.resize(options.len().max(room), 0);
        }
        header.options = TcpOptions::try_from_slice(&options).expect(OPTIONS);
        Transport::Tcp { xcp, header }
    }

    /// Bytes before the payload of a data packet.
    fn overhead(&self) -> u64 {
        let timestamps = if self.has_timestamps { TIMESTAMPS } else { 0 };
        (IP + self.xcp_length + TCP + self.option_length + timestamps) as u64
    }

    /// Payload of a packet of `size` bytes.
    fn payload_of(&self, size: u64) -> u64 {
        size.saturating_sub(self.overhead()).max(1)
    }

    /// Payload of the first `count` segments.
    fn payload(&self, count: u64) -> u64 {
        self.config.payload(count, self.overhead())
    }

    /// RFC 6691: without options.
    fn mss(&self) -> u16 {
        let headers = IP + TCP + self.xcp_length;
        self.config.segment.saturating_sub(headers as u16).max(1)
    }

    /// A window of so many segments in bytes; what is unlimited is as much as TCP can say.
    fn window(&self, segments: u32) -> u64 {
        let most = 0xffff << SCALE_MAX;
        (u64::from(segments) * self.payload_of(self.config.segment.into())).min(most)
    }
}

/// The bytes of a header with extensions.
fn extended(
    header: xcp::Header,
    interoperable: Option<Interoperable>,
    window: Option<xcp_r::Header>,
) -> Vec<u8> {
    let repr = xcp_extended::Repr { protocol: IpNumber::TCP.0, header, interoperable, window };
    let (bytes, length) = repr.emit();
    bytes[..length].into()
}

/// The ranges that an acknowledgment reports, as many as there is room for.
fn sack(packet: &Packet, room: usize, sequence: impl Fn(u32) -> u32) -> Vec<TcpOptionElement> {
    let blocks = (0..SACK_BLOCKS.min(room.saturating_sub(4) / 8))
        .map(|block| packet.sack(block))
        .take_while(|(start, end)| start != end);
    let mut blocks = blocks.map(|(start, end)| (sequence(start), sequence(end)));
    match blocks.next() {
        Some(first) => {
            vec![Noop, Noop, SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None])]
        }
        None => Vec::new(),
    }
}
