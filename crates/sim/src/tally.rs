//! Counts of the packets that the threads of a leg take off each other, and the way in which the network goes on by them.

use congestlab_net::packet::Picos;

use crate::barrier::Meeting;
use crate::share::Share;

/// When threads are worth while. Numbers are packets that a meeting takes off the busiest thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Meetings that are looked at together. A run begins with so many, on threads.
    pub(crate) stretch: u64,
    /// So many at best, and threads are tried.
    pub(crate) attempt: u64,
    /// So many, and threads stay.
    pub(crate) stay: u64,
    /// The network is taken apart for every turn. So each return to one thread makes the time until the
    /// next attempt so many times as long.
    pub(crate) patience: u64,
    /// Meetings until it is first asked whether the work is shared as was expected; then twice as many, and so on.
    pub(crate) look: u64,
    /// Packets that a meeting could take off one thread at least, or it is not counted in this.
    pub(crate) busy: u64,
    /// Percent of all by which one half of that time may have more than the other: what grows or ends is not learned, since
    /// packets that were sent have yet to come to others.
    pub(crate) steady: u64,
    /// Percent by which it has more where the work has but begun: the next look takes no longer. All may differ by as much from
    /// the half before them.
    pub(crate) begun: u64,
    /// Percent of what it was to have, from which on the busiest has too much.
    pub(crate) uneven: u64,
    /// Percent of what a second costs, at most, for which it is shared anew.
    pub(crate) better: u64,
    /// Hosts count so many times: of very busy ones tests make parts where nothing else would.
    pub(crate) hosts: u64,
}

/// A packet takes 20 ns or more; a meeting 1 µs among threads that are awake, 10 to 50 µs where one
/// has to be woken.
pub(crate) const RULE: Rule = Rule {
    stretch: 64,
    attempt: 1300,
    stay: 1000,
    patience: 2,
    look: 16,
    busy: 1000,
    steady: 1,
    begun: 10,
    uneven: 110,
    better: 95,
    hosts: 1,
};

/// The end of a leg of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// So does the run.
    Complete,
    /// Somebody stopped the run.
    Stopped,
    /// The network goes on another way, from this time on.
    Turn(Turn, Picos),
}

impl Ending {
    /// The end of a leg of two threads.
    pub(crate) fn and(self, other: Self) -> Self {
        if other == Self::Stopped { other } else { self }
    }
}

/// A way for a network to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// On one thread.
    Alone,
    /// On several, each with as much as the others, by what was counted.
    Shared,
}

/// Counts what the threads of a leg take off each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    rule: Rule,
    /// Threads among which the network can be shared; 1: no other way.
    threads: u64,
    is_shared: bool,
    /// Meetings that threads would have had since the last of one that is alone.
    each: u64,
    /// Meetings until it is decided how to go on.
    stretch: u64,
    meetings: u64,
    /// Packets that the busiest thread need not serve.
    spared: u64,
    /// Work that the busiest thread was to have, of all that there is.
    expected: (u64, u64),
    /// Meetings until it is asked whether it was so, those since, and what the busiest had of all in each half of them.
    look: u64,
    seen: u64,
    had: [(u64, u64); 2],
    /// Work of all in the second half of the look before, and its meetings.
    last: (u64, u64),
    /// True if counts are to be forgotten, since they are no longer so.
    forgets: bool,
}

impl Tally {
    pub(crate) fn new(
        rule: Rule,
        share: Option<&Share>,
        is_shared: bool,
        each: u64,
        stretch: u64,
        look: u64,
    ) -> Self {
        let threads = share.map_or(1, |share| share.plan.domains()) as u64;
        let expected = share.map_or((1, 1), |share| share.expected);
        let (meetings, spared, seen, had) = (0, 0, 0, [(0, 0); 2]);
        Self {
            rule,
            threads,
            is_shared,
            each,
            stretch,
            meetings,
            spared,
            expected,
            look,
            seen,
            had,
            last: (0, 0),
            forgets: false,
        }
    }

    /// For a leg that never turns.
    pub(crate) fn of_one() -> Self {
        Self::new(RULE, None, false, 1, RULE.stretch, RULE.look)
    }

    /// The way to go on if it is time for another: the same on all threads that were at the meeting.
    pub(crate) fn turns(&mut self, meeting: &Meeting) -> Option<Turn> {
        if self.threads == 1 {
            return None;
        }
        let busiest = if self.is_shared { meeting.most } else { meeting.packets / self.threads };
        self.meetings += self.each;
        self.spared += meeting.packets - busiest;
        // They only add up: where a stretch would have enough whatever comes, one alone does not wait for its end.
        let is_plenty = !self.is_shared && self.spared >= self.stretch.saturating_mul(self.rule.attempt);
        if self.meetings >= self.stretch || is_plenty {
            let spared = self.spared / self.meetings;
            // Patience is over once and for all.
            (self.meetings, self.spared, self.stretch) = (0, 0, self.rule.stretch);
            match self.is_shared {
                true if spared < self.rule.stay => return Some(Turn::Alone),
                false if spared >= self.rule.attempt => return Some(Turn::Shared),
                _ => {}
            }
        }
        (self.is_shared && self.is_uneven(meeting)).then_some(Turn::Shared)
    }

    /// True if what was counted before the last meeting is no longer so.
    pub(crate) fn forgets(&mut self) -> bool {
        std::mem::take(&mut self.forgets)
    }

    /// True if it is time to look, and the busiest thread had more than its part, in a time that says how it will be.
    fn is_uneven(&mut self, meeting: &Meeting) -> bool {
        if meeting.packets - meeting.packets / self.threads < self.rule.busy {
            return false;
        }
        let half = &mut self.had[usize::from(2 * self.seen >= self.look)];
        *half = (half.0 + meeting.longest, half.1 + meeting.work);
        self.seen += 1;
        if self.seen < self.look {
            return false;
        }
        let [before, since] = std::mem::take(&mut self.had);
        let [had, of, expected, all] =
            [before.0 + since.0, before.1 + since.1, self.expected.0, self.expected.1].map(u128::from);
        let change = u128::from(before.1.abs_diff(since.1)) * 100;
        let [steady, begun, uneven] = [self.rule.steady, self.rule.begun, self.rule.uneven].map(u128::from);
        // Halves are equal by chance, too, but hardly with that before them.
        let [now, last] = [of * u128::from(self.last.1), u128::from(self.last.0) * u128::from(self.seen)];
        let goes_on = now.abs_diff(last) * 100 <= begun * now.max(last);
        self.last = (since.1, self.seen - self.seen.div_ceil(2));
        self.seen = 0;
        self.look *= if change < begun * of { 2 } else { 1 };
        self.forgets = change > steady * of || !goes_on;
        !self.forgets && had * all * 100 > uneven * expected * of
    }
}
