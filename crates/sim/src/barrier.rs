//! Where threads meet between windows: they agree on the next window and hand packets over.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use crate::calendar::Window;
use crate::mail::Mail;

/// Looks for the others this often before it sleeps: a barrier that only spins collapses as soon as
/// there are fewer free cores than threads (docs/design/engine.md 2.6).
const SPINS: u32 = 2000;

/// One of two boards, used in turn: a thread writes the next one while a slower one still reads.
#[derive(Debug)]
struct Board {
    first: Vec<AtomicU64>,
    packets: Vec<AtomicU64>,
    work: Vec<AtomicU64>,
    stop: AtomicBool,
    /// Mail by receiver, then by sender.
    mail: Vec<Vec<Mutex<Mail>>>,
}

/// The words of a thread at a meeting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    /// The first window in which it, or its mail, has something due.
    pub(crate) first: Window,
    /// Packets that it has served since the last meeting.
    pub(crate) packets: u64,
    /// Instructions that they took.
    pub(crate) work: u64,
}

/// The agreement of the threads at a meeting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    /// The window that all run next.
    pub(crate) first: Window,
    /// Packets that all have served since the last meeting, and the busiest of them.
    pub(crate) packets: u64,
    pub(crate) most: u64,
    /// Instructions of all since the last meeting, and of the one that had most.
    pub(crate) work: u64,
    pub(crate) longest: u64,
}

impl Meeting {
    /// For threads that say this; `None`: there is none.
    pub(crate) fn of(posts: impl Iterator<Item = Post> + Clone) -> Option<Self> {
        Some(Self {
            first: posts.clone().map(|post| post.first).min()?,
            packets: posts.clone().map(|post| post.packets).sum(),
            most: posts.clone().map(|post| post.packets).max()?,
            work: posts.clone().map(|post| post.work).sum(),
            longest: posts.map(|post| post.work).max()?,
        })
    }
}

/// The meeting place of the threads of one run.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    threads: usize,
    boards: [Board; 2],
    /// Meetings that each thread has begun.
    rounds: Vec<AtomicU64>,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    /// For those who sleep: guards nothing but the moment of falling asleep.
    bed: Mutex<()>,
    bell: Condvar,
    stop: &'a AtomicBool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(threads: usize, stop: &'a AtomicBool) -> Self {
        let numbers = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        let board = || Board {
            first: numbers(),
            packets: numbers(),
            work: numbers(),
            stop: AtomicBool::new(false),
            mail: (0..threads).map(|_| (0..threads).map(|_| Mutex::default()).collect()).collect(),
        };
        Self {
            threads,
            boards: [board(), board()],
            rounds: numbers(),
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            stop,
        }
    }

    /// Posts what a thread has to say and its mail; waits for the others. `None` if the run is to stop.
    pub(crate) fn meet(&self, id: usize, post: Post, outboxes: &mut [Mail]) -> Option<Meeting> {
        if self.threads == 1 {
            return Meeting::of(core::iter::once(post)).filter(|_| !self.stop.load(Ordering::Relaxed));
        }
        let round = self.rounds[id].fetch_add(1, Ordering::Relaxed);
        let board = &self.boards[round as usize % 2];
        board.first[id].store(post.first, Ordering::Relaxed);
        board.packets[id].store(post.packets, Ordering::Relaxed);
        board.work[id].store(post.work, Ordering::Relaxed);
        // Who has given its window up has seen this, and the others must not go on with what it has left out.
        if self.stop.load(Ordering::Relaxed) {
            board.stop.store(true, Ordering::Relaxed);
        }
        for (to, outbox) in outboxes.iter_mut().enumerate().filter(|(_, outbox)| !outbox.is_empty()) {
            let mut mail = board.mail[to][id].lock().expect("no thread panics with mail in hand");
            std::mem::swap(&mut *mail, outbox);
        }
        self.wait();
        if board.stop.load(Ordering::Relaxed) {
            return None;
        }
        let posts = read(&board.first).zip(read(&board.packets)).zip(read(&board.work));
        Meeting::of(posts.map(|((first, packets), work)| Post { first, packets, work }))
    }

    /// Takes the mail of the last meeting, in the order of its senders.
    pub(crate) fn receive(&self, id: usize, mut take: impl FnMut(&mut Mail)) {
        if self.threads == 1 {
            return;
        }
        let round = self.rounds[id].load(Ordering::Relaxed) - 1;
        for mail in &self.boards[round as usize % 2].mail[id] {
            take(&mut mail.lock().expect("no thread panics with mail in hand"));
        }
    }

    fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Release);
            let _awake = self.bed.lock().expect("no thread panics in bed");
            self.generation.store(generation + 1, Ordering::Release);
            self.bell.notify_all();
            return;
        }
        for _ in 0..SPINS {
            if self.generation.load(Ordering::Acquire) != generation {
                return;
            }
            std::hint::spin_loop();
        }
        let mut bed = self.bed.lock().expect("no thread panics in bed");
        while self.generation.load(Ordering::Acquire) == generation {
            bed = self.bell.wait(bed).expect("no thread panics in bed");
        }
    }
}

fn read(numbers: &[AtomicU64]) -> impl Iterator<Item = u64> + Clone {
    numbers.iter().map(|number| number.load(Ordering::Relaxed))
}
