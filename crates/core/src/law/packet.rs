//! A packet as the laws see it: its size, its ECN field, and the headers that laws define for themselves.
//!
//! A law owns its header: its fields, and their image in the words that a packet has for headers. Nobody else has to
//! know them, and a packet tells by a [`Tag`] whose they are. Several headers ride together where a law adds to another
//! one's: each has a place of its own, and whoever knows one of them reads it without knowing the others.

use super::Reply;
use crate::units::{Bytes, Time};

/// Words that the headers of one packet share.
pub type Words = [u32; 7];

/// Name of a header in the packets that carry it: where in the packet's tag it is told, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Bits of the packet's tag that are this header's place.
    pub mask: u32,
    /// Value of these bits where the header is there; never 0.
    pub name: u32,
    /// True for a header that is added to a packet or to such a header; false for an image of bytes that the packet has
    /// anyway.
    pub is_added: bool,
}

impl Tag {
    /// Names a congestion header.
    #[inline(always)] // or it would be in each BPF object, as a function that returns a structure
    pub const fn header(name: &str) -> Self {
        Self { mask: 0xffff, name: hash(name, 16), is_added: true }
    }

    /// Names an image of headers that a packet has without any law.
    #[inline(always)] // or it would be in each BPF object, as a function that returns a structure
    pub const fn image(name: &str) -> Self {
        Self { mask: 0xffff, name: hash(name, 16), is_added: false }
    }

    /// Names what senders and receivers add to another law's congestion header.
    #[inline(always)] // or it would be in each BPF object, as a function that returns a structure
    pub const fn beside(name: &str) -> Self {
        Self { mask: 0xff << 16, name: hash(name, 8) << 16, is_added: true }
    }

    /// The place of what [`Tag::on_path`] names.
    pub const ON_PATH: u32 = 0xff << 24;

    /// Names what the nodes of a path add to another law's congestion header. A packet with it shows its IP TTL, in the
    /// lowest byte of word 5.
    #[inline(always)] // or it would be in each BPF object, as a function that returns a structure
    pub const fn on_path(name: &str) -> Self {
        Self { mask: Self::ON_PATH, name: hash(name, 8) << 24, is_added: true }
    }
}

/// FNV-1a, folded to so many bits; not 0, which is no header. So names need no list of numbers.
#[inline(always)]
const fn hash(name: &str, bits: u32) -> u32 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0x811c_9dc5u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    let folded = (hash ^ hash >> bits ^ hash >> (32 - bits)) & ((1 << bits) - 1);
    if folded == 0 { 1 } else { folded }
}

/// A header of a law: what it tells in packets.
pub trait Header: Copy + PartialEq {
    /// Name of the header.
    const TAG: Tag;

    /// Reads the header from its words: what was written.
    fn read(words: &Words) -> Self;

    /// Writes the header into its words; those of headers that may ride beside it stay as they are.
    fn write(self, words: &mut Words);
}

/// A packet that is nothing but what laws see of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Carried {
    /// Size of the whole IP packet.
    pub size: Bytes,
    /// Words of its headers.
    pub words: Words,
    /// Names of its headers, each in the place that its [`Tag`] says.
    pub tag: u32,
    /// ECN field of the IP header.
    pub ecn: u32,
    /// A router's record of its flow, whose name nobody asks for.
    pub memory: [u32; 8],
}

impl Packet for Carried {
    #[inline(always)]
    fn size(&self) -> Bytes {
        self.size
    }

    #[inline(always)]
    fn ecn(&self) -> u8 {
        self.ecn as u8
    }

    #[inline(always)]
    fn set_ecn(&mut self, code: u8) {
        self.ecn = code as u32;
    }

    #[inline(always)]
    fn words(&self, tag: Tag) -> Option<&Words> {
        if self.tag & tag.mask == tag.name { Some(&self.words) } else { None }
    }

    #[inline(always)]
    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        if self.tag & tag.mask == tag.name { Some(&mut self.words) } else { None }
    }

    #[inline(always)]
    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        self.tag = self.tag & !tag.mask | tag.name;
        Some(&mut self.words)
    }

    #[inline(always)]
    fn memory(&mut self, _flow: [u32; 3], _now: Time, _is_new: bool) -> Option<&mut [u32]> {
        Some(&mut self.memory)
    }
}

/// A packet, as laws see it. Links may change a header that is there; a sender adds it.
pub trait Packet {
    /// Returns the size of the whole IP packet.
    fn size(&self) -> Bytes;

    /// Returns the ECN field of the IP header; 0 for packets that it does not concern, as pure ACKs.
    fn ecn(&self) -> u8;

    /// Sets the ECN field of the IP header.
    fn set_ecn(&mut self, code: u8);

    /// Returns the words of the header of that name, if the packet has one.
    fn words(&self, tag: Tag) -> Option<&Words>;

    /// Returns the words of the header of that name to change them, if the packet has one.
    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words>;

    /// Returns the words for a header of that name, which the packet has from now on; `None`: it can have none.
    fn add(&mut self, tag: Tag) -> Option<&mut Words>;

    /// Returns the router's record of the flow of that name, as many words as
    /// [`Remembers::words`](super::Remembers::words) says, zeros at first; with `is_new` the router may begin one.
    /// `None`: it remembers no such flow.
    fn memory(&mut self, flow: [u32; 3], now: Time, is_new: bool) -> Option<&mut [u32]>;

    /// Returns the header, if the packet has one.
    #[inline(always)]
    fn header<H: Header>(&self) -> Option<H>
    where
        Self: Sized,
    {
        self.words(H::TAG).map(H::read)
    }

    /// Replaces the header of a packet that has one.
    #[inline(always)]
    fn set_header<H: Header>(&mut self, header: H)
    where
        Self: Sized,
    {
        if let Some(words) = self.words_mut(H::TAG) {
            header.write(words);
        }
    }

    /// Puts a header on the packet.
    #[inline(always)]
    fn add_header<H: Header>(&mut self, header: H)
    where
        Self: Sized,
    {
        if let Some(words) = self.add(H::TAG) {
            header.write(words);
        }
    }
}

/// Bytes of a TCP option, as many as its second says, of the most that a packet has room for.
pub type OptionBytes = [u8; 40];

/// A packet that a law's TCP option rides on.
#[derive(Clone, Copy)]
pub enum On<'a> {
    /// Data or a SYN.
    Forward(&'a dyn Packet),
    /// An ACK or a SYN-ACK, which brings this back.
    Back(Reply),
}
