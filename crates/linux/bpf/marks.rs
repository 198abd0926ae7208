// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sender laws that have the ECN field for themselves, and whose receivers count its codes, as functions that C can call in
//! BPF: `laws.rs` has XCP's, and names and rules are the same. With `prague` the law is Prague's, with `abc` ABC's, else DCTCP's.
#![no_std]

#[macro_use]
mod exported;
#[path = "../../core/src/law/mod.rs"]
mod law;
#[path = "../../core/src/units/mod.rs"]
mod units;

#[cfg(abc)]
use law::abc::{Echo, Sender, SenderConfig as Config};
#[cfg(not(any(abc, prague)))]
use law::dctcp::{Config, Echo, Sender};
#[cfg(prague)]
use law::prague::{Config, Echo, Sender};
use law::{Ack, Carried, EchoLaw as _, Listening, Reply, Send, SenderLaw as _};
use units::{Bytes, Duration, Time};

/// The settings of all these laws, of which each takes its own, as large as XCP's.
#[repr(C)]
pub struct SenderConfig {
    /// Prague, ns.
    rtt_target: u64,
    /// Prague, round trips.
    transition: u32,
    rtt_independent: u8,
    /// DCTCP.
    linux: u8,
    pacing: u8,
    rest: [u8; 17],
}

impl SenderConfig {
    #[cfg(abc)]
    #[inline(always)]
    fn to_rust(&self) -> Config {
        Config {}
    }

    #[cfg(prague)]
    #[inline(always)]
    fn to_rust(&self) -> Config {
        Config {
            rtt_independent: self.rtt_independent != 0,
            rtt_target: Duration(self.rtt_target),
            transition: self.transition,
        }
    }

    #[cfg(not(any(abc, prague)))]
    #[inline(always)]
    fn to_rust(&self) -> Config {
        Config { linux: self.linux != 0 }
    }
}

/// The most packets that a super-packet has here: 64 kB of the smallest.
const PACKETS_MAX: u64 = 128;

/// The receiver's counts, zeros at the beginning. No setting changes how these laws count.
#[repr(C)]
pub struct Counts {
    words: [u32; 2],
}

const _: () = assert!(size_of::<Echo>() <= size_of::<Counts>() && align_of::<Echo>() <= align_of::<Counts>());

impl Counts {
    #[inline(always)]
    fn echo(&mut self) -> &mut Echo {
        // SAFETY: as large and as aligned as the echo at least, whose beginning is zeros.
        unsafe { &mut *(&raw mut self.words).cast::<Echo>() }
    }
}

/// ABC counts two codes and marks: 12, 12 and 8 bits of the word that an option has. The others count marks in all of it.
#[cfg(abc)]
const PLACES: [(u32, u32); 3] = [(20, 0xfff), (8, 0xfff), (0, 0xff)];
#[cfg(not(abc))]
const PLACES: [(u32, u32); 3] = [(0, u32::MAX), (0, 0), (0, 0)];

#[inline(always)]
fn to_wire(reply: Reply) -> u32 {
    let counts = if cfg!(abc) { [reply.word >> 16, reply.word, reply.byte as u32] } else { [reply.word, 0, 0] };
    let part = |i: usize| (counts[i] & PLACES[i].1) << PLACES[i].0;
    part(0) | part(1) | part(2)
}

/// Counts since the law began, of those that a peer has told since its connection began.
#[repr(C)]
pub struct CountsReader {
    told: u32,
    counts: [u32; 3],
}

impl CountsReader {
    /// Takes what came last. A count that is behind was overtaken, or nobody would send so much at once.
    #[inline(always)]
    fn read(&mut self, word: u32) -> Reply {
        let mut is_behind = false;
        let mut newly = [0; 3];
        for (i, (shift, mask)) in PLACES.into_iter().enumerate() {
            newly[i] = (word >> shift).wrapping_sub(self.told >> shift) & mask;
            is_behind |= newly[i] > mask / 2;
        }
        if !is_behind {
            self.told = word;
            for (count, newly) in self.counts.iter_mut().zip(newly) {
                *count = count.wrapping_add(newly);
            }
        }
        if cfg!(abc) {
            Reply { word: self.counts[0] << 16 | self.counts[1] & 0xffff, byte: self.counts[2] as u8 }
        } else {
            Reply { word: self.counts[0], byte: 0 }
        }
    }
}

exported! {
    fn law_sender_init(sender: &mut Sender, config: &SenderConfig, mss: u64, initial_window: u64) -> u64 {
        *sender = Sender::start(&config.to_rust(), Bytes(mss), Bytes(initial_window));
        0
    }
    fn law_sender_on_ack(sender: &mut Sender, config: &SenderConfig, now: u64, ack: &Ack) -> u64 {
        sender.on_ack(&config.to_rust(), Time(now), ack);
        0
    }
    fn law_sender_on_loss(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64) -> u64 {
        sender.on_loss(&config.to_rust(), Time(now), Bytes(flight));
        0
    }
    fn law_sender_on_timeout(sender: &mut Sender, config: &SenderConfig, now: u64, flight: u64, is_first: u64) -> u64 {
        sender.on_timeout(&config.to_rust(), Time(now), Bytes(flight), is_first != 0);
        0
    }
    // Returns the code with which a packet leaves.
    fn law_sender_on_send(sender: &mut Sender, config: &SenderConfig, now: u64) -> u64 {
        let mut packet = Carried::default();
        sender.on_send(&config.to_rust(), Time(now), &Send::default(), &mut packet);
        packet.ecn as u64
    }
    fn law_sender_window(sender: &Sender) -> u64 {
        sender.window().0
    }
    fn law_sender_pacing_rate(sender: &Sender, config: &SenderConfig, srtt: u64) -> u64 {
        match sender.pacing_rate(&config.to_rust(), Duration(srtt)) {
            Some(rate) => rate.0,
            None => 0,
        }
    }
    fn law_counts_on_data(counts: &mut Counts, code: u64, packets: u64) -> u64 {
        let packet = Carried { ecn: code as u32, ..Carried::default() };
        let mut left = if packets < PACKETS_MAX { packets } else { PACKETS_MAX };
        while left > 0 {
            counts.echo().on_data(&Config::default(), &packet, Listening::default());
            left -= 1;
        }
        0
    }
    // Returns what the option says of the counts.
    fn law_counts_on_ack(counts: &mut Counts) -> u64 {
        to_wire(counts.echo().on_ack(&Config::default(), Listening::default())) as u64
    }
    // The law begins anew: what was told before is not its affair.
    fn law_reader_init(reader: &mut CountsReader, word: u64) -> u64 {
        *reader = CountsReader { told: word as u32, counts: [0; 3] };
        0
    }
    // Returns the reply for the law: its word, and above that its byte.
    fn law_reader_on_ack(reader: &mut CountsReader, word: u64) -> u64 {
        let reply = reader.read(word as u32);
        reply.word as u64 | (reply.byte as u64) << 32
    }
}
