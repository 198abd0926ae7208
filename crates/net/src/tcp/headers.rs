//! The numbers and addresses of a connection, for laws that look into the bytes of its IP and TCP headers, or write into
//! them.

use congestlab_core::law::{Expected, Numbers, Segment};

use super::Config;
use crate::packet::Packet;

/// Bytes of the IP and TCP headers without options.
const HEADERS: u64 = 40;
/// Data offset 5, ACK, window 65535: the fourth word of the TCP header of all segments.
const CONTROL: u32 = 5 << 28 | 0x10 << 16 | 0xffff;
/// The largest window (RFC 7323 §2.3).
const WINDOW_MAX: u64 = 1 << 30;

/// Numbers and addresses in the headers of a connection's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Address of the sender.
    pub source: u32,
    /// Address of the receiver.
    pub destination: u32,
    /// Ports of both, the sender's in the high half.
    pub ports: u32,
    /// Initial sequence number of the sender.
    pub isn: u32,
    /// Initial sequence number of the receiver.
    pub peer_isn: u32,
}

impl Config {
    /// Returns the payload, in bytes, of the first `count` segments behind so many bytes of headers; the last segment
    /// of what the application writes is short. A segment without a byte would be an acknowledgment.
    pub fn payload(&self, count: u64, headers: u64) -> u64 {
        use super::App;
        let payload_of = |size: u64| size.saturating_sub(headers).max(1);
        let segment = u64::from(self.segment.max(1));
        let full = payload_of(segment);
        let of_write = |size: u64, count: u64| {
            let (whole, rest) = (size / segment, size % segment);
            let last = if count > whole && rest > 0 { payload_of(rest) } else { 0 };
            full * count.min(whole) + last
        };
        match self.app {
            App::Endless | App::Own => full * count,
            App::Transfer(size) => of_write(size.0, count),
            App::Bursts { size, total, .. } => {
                let segments = size.0.div_ceil(segment).max(1);
                // The last write of all may have as many segments as the others, and less in them.
                let whole = total.map_or(u64::MAX, |total| total.0 / size.0.max(1));
                let writes = (count / segments).min(whole);
                let rest = count - writes * segments;
                let left = total.map_or(size.0, |total| total.0.saturating_sub(writes * size.0).min(size.0));
                writes * of_write(size.0, segments) + of_write(left, rest)
            }
        }
    }
}

impl Connection {
    /// The sequence number of a segment.
    fn sequence(&self, config: &Config, index: u64) -> u32 {
        self.isn.wrapping_add(1).wrapping_add(config.payload(index, HEADERS) as u32)
    }

    /// Puts the headers of a data packet, which is segment `index`, on it.
    // Never: in line it would cost the packets of all laws.
    #[inline(never)]
    pub(super) fn show(&self, config: &Config, index: u64, packet: &mut Packet) {
        let mut segment = Segment {
            source: self.source,
            destination: self.destination,
            ports: self.ports,
            sequence: self.sequence(config, index),
            acknowledgment: self.peer_isn.wrapping_add(1),
            control: CONTROL,
            identification: packet.identification(),
            length: packet.size,
            ..Segment::default()
        };
        segment.seal();
        packet.set_header(segment);
    }

    /// Returns the numbers of segment `index`, where segment `next` is expected.
    pub(super) fn numbers(&self, config: &Config, next: u64, index: u64) -> Numbers {
        let first = self.peer_isn.wrapping_add(1);
        let window = config.awnd.map_or(WINDOW_MAX, |awnd| u64::from(awnd) * u64::from(config.segment));
        let sequence = self.sequence(config, index);
        let expected = Expected {
            // Mostly it is the one expected.
            next: if index == next { sequence } else { self.sequence(config, next) },
            window: window.min(WINDOW_MAX) as u32,
            // Nothing is sent back, so there is one number to acknowledge.
            oldest: first,
            newest: first,
        };
        Numbers { expected, sequence, acknowledgment: first }
    }

    /// Returns the headers of an acknowledgment that expects segment `next`, its checksum open.
    pub fn acknowledgment(&self, config: &Config, next: u64) -> Segment {
        Segment {
            source: self.destination,
            destination: self.source,
            ports: self.ports.rotate_left(16),
            sequence: self.peer_isn.wrapping_add(1),
            acknowledgment: self.sequence(config, next),
            control: CONTROL,
            length: HEADERS as u16,
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use crate::tcp::{Advertise, App, Measure, Recovery};
    use congestlab_core::law::mpcp::{self, Echoed, LOW, Order};
    use congestlab_core::law::{Echo, Heard, Listening, SenderConfig};
    use congestlab_core::units::Time;
    use congestlab_core::units::{Bytes, Duration};

    fn config(n: u32, order: Order, app: App) -> Config {
        Config {
            segment: 1000,
            ack: 40,
            law: SenderConfig::Mpcp(mpcp::SenderConfig { order, ..mpcp::SenderConfig::of(n, false) }),
            initial_window: 1,
            window_most: Bytes(u64::MAX),
            awnd: None,
            advertise: Advertise::Always,
            stop: Time::NEVER,
            lie: None,
            measure: Measure::ALWAYS,
            recovery: Recovery::Sack,
            min_rto: Duration(1_000_000_000),
            delayed_ack: false,
            ecn: false,
            ns2: false,
            linux: None,
            app,
        }
    }

    /// Without headers the payload is all: two formulas for one stream.
    #[test]
    fn payload_without_headers_is_the_stream() {
        let bursts = |size, total: Option<u64>| App::Bursts {
            size: Bytes(size),
            pause: Duration(1),
            wait: crate::tcp::Wait::Write,
            buffer: Bytes(1_000_000),
            total: total.map(Bytes),
        };
        for app in [
            App::Endless,
            App::Own,
            App::Transfer(Bytes(12_345)),
            App::Transfer(Bytes(12_000)),
            bursts(2_500, None),
            bursts(3_000, Some(12_000)),
            bursts(2_500, Some(11_100)),
            bursts(700, Some(1_000)),
        ] {
            let config = config(2, Order::Swap, app);
            for count in 0..=config.segments().min(100) {
                assert_eq!(config.payload(count, 0), config.bytes_of(count).0, "{app:?} {count}");
            }
        }
    }

    /// Numbers that wrap, that pass the peer's, and that meet it: every place is told and understood, in and out of
    /// order, and every acknowledgment tells it back.
    #[test]
    fn places_survive_wrap_around_ties_and_numbers_that_pass_each_other() {
        let bursts = App::Bursts {
            size: Bytes(2_500),
            pause: Duration(1),
            wait: crate::tcp::Wait::Ack,
            buffer: Bytes(1_000_000),
            total: None,
        };
        let (mut ties, mut silent) = (0, 0);
        for (n, order) in [(2, Order::Swap), (2, Order::Ipid), (2, Order::Checksum), (8, Order::Checksum)] {
            for app in [App::Endless, bursts] {
                let config = config(n, order, app);
                let SenderConfig::Mpcp(law) = &config.law else { unreachable!() };
                let meets = config.payload(700, HEADERS) as u32;
                for isn in [0, 7, 0u32.wrapping_sub(300_000), u32::MAX - 3, 1 << 31] {
                    for peer_isn in [isn.wrapping_add(meets), isn.wrapping_sub(5), 8, u32::MAX - 1] {
                        let connection =
                            Connection { source: 1, destination: 2, ports: 3 << 16 | 4, isn, peer_isn };
                        for index in 0..2000u64 {
                            let place = (index % u64::from(n)) as u8;
                            let mut packet =
                                Packet { size: 1000, kind: Kind::Data, stamp_ns: index, ..Packet::default() };
                            connection.show(&config, index, &mut packet);
                            let mut sealed = Segment::of(&packet).expect("it shows its headers");
                            if !order.write(&mut sealed, place) {
                                order.write(&mut sealed, 0);
                            }
                            packet.set_header(sealed);
                            packet.flags |= LOW;
                            ties +=
                                u32::from(connection.sequence(&config, index) == peer_isn.wrapping_add(1));
                            // What is expected next lags behind by what is missing.
                            let numbers = connection.numbers(&config, index.saturating_sub(index % 7), index);
                            let receiver = Listening { numbers: Some(numbers), ..Listening::default() };
                            let mut echo = Echo::new(&config.law, Bytes(1000));
                            let heard = echo.on_data(&config.law, &packet, receiver);
                            assert_eq!(heard, Heard::Taken, "{connection:?} {index}");
                            let came = Echoed::from(echo.on_ack(&config.law, receiver));
                            assert_eq!(came.code(), Some(LOW));
                            if came.index() != Some(place) {
                                // 0 = 0, or a number below the place, which then says 0.
                                let low = peer_isn.wrapping_add(1) < n;
                                assert!(
                                    low && came.index().is_none_or(|index| index == 0),
                                    "{connection:?} {index}"
                                );
                                silent += 1;
                                continue;
                            }
                            let acknowledgment = connection.acknowledgment(&config, index + 1);
                            let Some(ack) = law.acknowledge(acknowledgment, came) else {
                                silent += 1;
                                continue;
                            };
                            assert_eq!(order.read(&ack, n), Some(place));
                        }
                    }
                }
            }
        }
        assert!(ties > 10 && silent < 40_000, "{ties} {silent}");
    }
}
