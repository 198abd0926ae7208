//! Packets that go from one thread to another, by window.
//!
//! They travel in chunks like those of a [`Store`](crate::store::Store), which takes a full one as it is and gives an empty one
//! for it: nobody copies its packets. The empty ones go back with the mail, so that either side has as many as before.

use congestlab_net::packet::Packet;

use crate::calendar::Window;
use crate::prefetch::prefetch;
use crate::store::{CHUNK, Chunk, Store};

/// So many windows are open at once; more than that begin new sheets where those before have room.
const OPEN: usize = 64;
/// So many sheets ahead of the one that is begun are asked for.
const AHEAD: usize = 4;

/// Packets of one window.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) window: Window,
    fill: u32,
    pub(crate) chunk: Box<Chunk>,
}

impl Sheet {
    pub(crate) fn packets(&self) -> &[Packet] {
        &self.chunk[..self.fill as usize]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.fill as usize == CHUNK
    }
}

/// Packets of one thread for another, in the order in which they were sent to each window.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// First those with packets, then empty ones.
    sheets: Vec<Sheet>,
    used: usize,
    /// By window, modulo so many: the last sheet that was begun.
    open: Vec<u32>,
}

impl Mail {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Number of packets.
    pub(crate) fn packets(&self) -> u64 {
        self.sheets[..self.used].iter().map(|sheet| u64::from(sheet.fill)).sum()
    }

    /// The next place of the sheet of a window, which is taken with it; `None`: there is no sheet with one.
    #[inline(always)]
    pub(crate) fn place(&mut self, window: Window) -> Option<&mut Packet> {
        let open = *self.open.get(window as usize % OPEN)?;
        let sheet = self.sheets[..self.used].get_mut(open as usize)?;
        if sheet.window != window || sheet.is_full() {
            return None;
        }
        sheet.fill += 1;
        Some(&mut sheet.chunk[(sheet.fill - 1) as usize % CHUNK])
    }

    /// The first place of a new sheet for a window, with a chunk of the store.
    #[inline(never)]
    pub(crate) fn begin(&mut self, window: Window, store: &mut Store) -> &mut Packet {
        if self.used == self.sheets.len() {
            self.sheets.push(Sheet { window, fill: 0, chunk: Box::new([Packet::default(); CHUNK]) });
        }
        // The other thread had their heads last.
        self.sheets.get(self.used + AHEAD).into_iter().for_each(prefetch);
        self.open.resize(OPEN, 0);
        self.open[window as usize % OPEN] = self.used as u32;
        let sheet = &mut self.sheets[self.used];
        self.used += 1;
        (sheet.window, sheet.fill) = (window, 1);
        store.warm(&mut sheet.chunk);
        &mut sheet.chunk[0]
    }

    /// Adds all packets to `packets`.
    pub(crate) fn unload(&mut self, packets: &mut Vec<Packet>) {
        self.take().for_each(|sheet| packets.extend_from_slice(sheet.packets()));
    }

    /// Hands all sheets over. They stay, for other packets.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = &mut Sheet> {
        let used = std::mem::take(&mut self.used);
        self.sheets[..used].iter_mut()
    }
}
