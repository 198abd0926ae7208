//! Where threads meet between windows: they agree on the next ones and hand packets over.
//!
//! What goes from one thread to another mostly takes longer than from one meeting to the next. So a thread need not have heard of
//! the last meetings to go on: it tells them what it has, and waits for one before. Threads that have now more, now less to do
//! than others wait little for each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use crate::calendar::Window;
use crate::mail::Mail;

/// Looks for the others this often before it sleeps: a barrier that only spins collapses as soon as
/// there are fewer free cores than threads (docs/design/engine.md 2.6).
const SPINS: u32 = 2000;

/// A meeting in the making. There are several, used in turn: a thread writes the next one while slower ones still read.
#[derive(Debug)]
struct Board {
    first: Vec<AtomicU64>,
    packets: Vec<AtomicU64>,
    work: Vec<AtomicU64>,
    stop: AtomicBool,
    /// Mail by receiver, then by sender.
    mail: Vec<Vec<Mutex<Mail>>>,
    arrived: AtomicUsize,
    /// The number of meetings when all had come to this one.
    complete: AtomicU64,
}

impl Board {
    fn new(threads: usize) -> Self {
        let numbers = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        Self {
            first: numbers(),
            packets: numbers(),
            work: numbers(),
            stop: AtomicBool::new(false),
            mail: (0..threads).map(|_| (0..threads).map(|_| Mutex::default()).collect()).collect(),
            arrived: AtomicUsize::new(0),
            complete: AtomicU64::new(0),
        }
    }
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
    /// The first window in which any has something due.
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
    fn of(posts: impl Iterator<Item = Post> + Clone) -> Option<Self> {
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
    /// Meetings that a thread need not have heard of to go on: the last ones that it has told.
    pub(crate) lead: u64,
    boards: Vec<Board>,
    /// The number of those who sleep.
    bed: Mutex<usize>,
    bell: Condvar,
    stop: &'a AtomicBool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(threads: usize, lead: u64, stop: &'a AtomicBool) -> Self {
        // Who tells meeting n has heard of n - lead - 1; whoever told that one had heard of n - 2 lead - 2, whose board is free.
        let boards = (0..2 * lead + 2).map(|_| Board::new(threads)).collect();
        Self { threads, lead, boards, bed: Mutex::default(), bell: Condvar::new(), stop }
    }

    /// The place of a thread that has not been at a meeting.
    pub(crate) fn seat(&self, id: usize) -> Seat<'_> {
        Seat { exchange: self, id, told: 0, heard: 0, work: 0, firsts: VecDeque::new() }
    }

    fn board(&self, meeting: u64) -> &Board {
        &self.boards[(meeting % self.boards.len() as u64) as usize]
    }

    /// Mail that nobody has heard of, in the order in which it was sent.
    pub(crate) fn unheard(&mut self) -> impl Iterator<Item = &mut Mail> {
        self.boards.sort_by_key(|board| board.complete.load(Ordering::Relaxed));
        let mail = self.boards.iter_mut().flat_map(|board| board.mail.iter_mut().flatten());
        mail.map(|mail| mail.get_mut().expect("no thread panics with mail in hand"))
    }

    /// A thread has told a meeting all that it has to say.
    fn arrive(&self, meeting: u64) {
        let board = self.board(meeting);
        if board.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            board.arrived.store(0, Ordering::Relaxed);
            let asleep = self.bed.lock().expect("no thread panics in bed");
            board.complete.store(meeting + 1, Ordering::Release);
            // A bell asks the system, whether anybody hears it or not.
            if *asleep > 0 {
                self.bell.notify_all();
            }
        }
    }

    /// Waits until all have come to a meeting.
    fn wait(&self, meeting: u64) {
        let board = self.board(meeting);
        let is_complete = || board.complete.load(Ordering::Acquire) > meeting;
        for _ in 0..SPINS {
            if is_complete() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut asleep = self.bed.lock().expect("no thread panics in bed");
        *asleep += 1;
        while !is_complete() {
            asleep = self.bell.wait(asleep).expect("no thread panics in bed");
        }
        *asleep -= 1;
    }
}

/// A thread at its meetings.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    exchange: &'a Exchange<'a>,
    id: usize,
    /// Meetings that it has told, and those that it has heard of.
    told: u64,
    heard: u64,
    /// The work that it has told of last.
    pub(crate) work: u64,
    /// The first windows of the meetings heard of last: mail of all but the last was in nobody's hands at those after it.
    firsts: VecDeque<Window>,
}

impl Seat<'_> {
    /// Posts what the thread has to say and its mail; `is_over`: it has given up.
    pub(crate) fn tell(&mut self, post: Post, outboxes: &mut [Mail], is_over: bool) {
        let board = self.exchange.board(self.told);
        board.first[self.id].store(post.first, Ordering::Relaxed);
        board.packets[self.id].store(post.packets, Ordering::Relaxed);
        board.work[self.id].store(post.work, Ordering::Relaxed);
        // The others must not go on with what it has left out.
        if is_over || self.exchange.stop.load(Ordering::Relaxed) {
            board.stop.store(true, Ordering::Relaxed);
        }
        for (to, outbox) in outboxes.iter_mut().enumerate().filter(|(_, outbox)| !outbox.is_empty()) {
            let mut mail = board.mail[to][self.id].lock().expect("no thread panics with mail in hand");
            std::mem::swap(&mut *mail, outbox);
        }
        self.exchange.arrive(self.told);
        self.told += 1;
        self.work = post.work;
    }

    /// True if the thread has to hear of a meeting before it goes on.
    pub(crate) fn is_due(&self) -> bool {
        self.heard == 0 || self.heard + self.exchange.lead < self.told
    }

    /// Waits for the others at the meeting that is due, and takes their mail in the order of its senders. `None` if the run is
    /// to stop.
    pub(crate) fn hear(&mut self, mut take: impl FnMut(&mut Mail)) -> Option<Meeting> {
        self.exchange.wait(self.heard);
        let board = self.exchange.board(self.heard);
        if board.stop.load(Ordering::Relaxed) {
            return None;
        }
        for mail in &board.mail[self.id] {
            take(&mut mail.lock().expect("no thread panics with mail in hand"));
        }
        self.heard += 1;
        let posts = read(&board.first).zip(read(&board.packets)).zip(read(&board.work));
        let meeting = Meeting::of(posts.map(|((first, packets), work)| Post { first, packets, work }))?;
        self.firsts.truncate(self.exchange.lead as usize);
        self.firsts.push_front(meeting.first);
        Some(meeting)
    }

    /// The first window in which anything can be due, as far as the thread has heard.
    pub(crate) fn first(&self) -> Window {
        self.firsts.iter().min().copied().unwrap_or(0)
    }
}

fn read(numbers: &[AtomicU64]) -> impl Iterator<Item = u64> + Clone {
    numbers.iter().map(|number| number.load(Ordering::Relaxed))
}
