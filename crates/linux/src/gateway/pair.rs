//! One split connection: two sockets, and the bytes between them.
//!
//! Bytes go from socket to pipe to socket by splice(2), which moves pages and copies nothing. A pipe is lent to a
//! direction while bytes are stuck in it; where there is none left to lend, bytes are copied, and stay in the receive
//! buffer until the other side has taken them. Urgent data are ordinary data here (SO_OOBINLINE): splice(2)
//! stops at their mark, also with the 0 of an end, so bytes are copied until recv(2) has passed the mark. What the
//! slower side does not take stays in the pipe, then in the receive buffer of the faster side, whose window closes:
//! that is all the backpressure that is needed.
//!
//! Both sockets are closed with a reset (SO_LINGER of no time) unless TCP itself has brought them to their end, so
//! that the death of this process at any moment never looks like the end of a stream.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use serde::{Deserialize, Serialize};

use crate::sys::tcp;

/// Bytes that a pipe holds, as the kernel makes it (pipe(7)). Larger ones gained nothing.
const PIPE: usize = 1 << 16;
/// Pipes' contents that one connection moves before it is another's turn.
const ROUNDS: usize = 16;
/// Idle pipes that a thread keeps.
const SPARE: usize = 64;

/// An end of a pipe to read from, and one to write to.
#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

/// Means of a thread to move bytes: empty pipes for directions that have something to move, and memory for those that
/// get none.
#[derive(Debug)]
pub(super) struct Pipes {
    spare: Vec<Pipe>,
    /// How many may still be made.
    left: usize,
    buffer: Vec<u8>,
}

impl Pipes {
    /// Makes no more than so many.
    pub(super) fn new(most: usize) -> Self {
        Self { spare: Vec::new(), left: most, buffer: vec![0; PIPE] }
    }

    fn take(&mut self) -> Option<Pipe> {
        self.spare.pop().or_else(|| {
            self.left = self.left.checked_sub(1)?;
            let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
            Some(Pipe { out, into })
        })
    }

    fn give_back(&mut self, pipe: Pipe) {
        if self.spare.len() < SPARE {
            self.spare.push(pipe);
        } else {
            self.left += 1;
        }
    }
}

/// A direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// Lent as long as bytes are in it.
    pipe: Option<Pipe>,
    held: usize,
    moved: u64,
    /// Bytes were not taken that are in no pipe.
    is_refused: bool,
    /// Urgent data are not read yet, which splice(2) does not pass: bytes are copied.
    is_urgent: bool,
    has_ended: bool,
    /// The end was passed on.
    is_shut: bool,
}

impl Way {
    /// Moves what the pipe takes. Returns whether anything moved; an error is the number of the socket that is broken.
    fn splice(&mut self, from: &OwnedFd, pipe: &Pipe, to: &OwnedFd) -> Result<bool, usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let mut is_moving = false;
        if !self.has_ended && !self.is_urgent && self.held < PIPE {
            match splice(from, None, &pipe.into, None, PIPE - self.held, flags) {
                // The end, or urgent data with an end behind them. recv(2) tells them apart.
                Ok(0) => match recv(from, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                    Ok((_, 0)) => self.has_ended = true,
                    Ok(_) => {
                        self.is_urgent = true;
                        is_moving = true;
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(_) => return Err(0),
                },
                Ok(bytes) => {
                    self.held += bytes;
                    is_moving = true;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Err(0),
            }
        }
        if self.held > 0 {
            match splice(&pipe.out, None, to, None, self.held, flags) {
                Ok(bytes) => {
                    self.held -= bytes;
                    self.moved += bytes as u64;
                    is_moving |= bytes > 0;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Err(1),
            }
        }
        Ok(is_moving)
    }

    /// The same without a pipe: what the other socket takes is thrown away here only then. One call stops before urgent data,
    /// and the next one begins with them.
    fn copy(&mut self, from: &OwnedFd, buffer: &mut [u8], to: &OwnedFd) -> Result<bool, usize> {
        if self.has_ended {
            return Ok(false);
        }
        let seen = match recv(from, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                self.has_ended = true;
                return Ok(false);
            }
            Ok((_, seen)) => seen,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(_) => return Err(0),
        };
        self.is_refused = false;
        match send(to, &buffer[..seen], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => {
                let mut left = sent;
                while left > 0 {
                    // With TRUNC the kernel copies nothing (tcp(7)). A signal can end the call at urgent data.
                    match recv(from, &mut buffer[..left], RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                        Ok((_, gone)) if gone > 0 => left = left.saturating_sub(gone),
                        Err(Errno::AGAIN | Errno::INTR) => {}
                        _ => return Err(0),
                    }
                }
                self.moved += sent as u64;
                Ok(sent > 0)
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                self.is_refused = true;
                Ok(false)
            }
            Err(_) => Err(1),
        }
    }
}

/// The side that a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// From the ground.
    Terrestrial,
    /// From the satellite.
    Satellite,
}

/// Why a connection was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// By an error at the client's side.
    Client,
    /// By an error at the server's side.
    Server,
    /// The server can not be reached.
    Refused,
    /// The server did not answer.
    Silent,
    /// Another connection needed the place.
    Displaced,
}

/// An error at a socket of a connection.
const SIDES: [Broken; 2] = [Broken::Client, Broken::Server];

/// State of a connection after all that could be moved has been moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing more can be moved until a socket says so.
    Waits,
    /// There is more to move at once.
    HasMore,
    /// The connection is over, and all that was sent is acknowledged.
    Over,
}

/// A split connection. Of two things, the first is the client's and the second the server's.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) sockets: [OwnedFd; 2],
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) origin: Origin,
    /// By the clock of the gateway, ns.
    pub(super) begun: u64,
    pub(super) is_connected: bool,
    /// From client to server, and back.
    ways: [Way; 2],
    /// The direction that ended first.
    first: Option<usize>,
}

impl Pair {
    pub(super) fn new(
        sockets: [OwnedFd; 2],
        (client, server): (SocketAddr, SocketAddr),
        origin: Origin,
        begun: u64,
    ) -> Self {
        let ways = Default::default();
        Self { sockets, client, server, origin, begun, is_connected: false, ways, first: None }
    }

    /// Bytes that were passed on to the server and to the client.
    pub(super) fn moved(&self) -> [u64; 2] {
        [0, 1].map(|way| self.ways[way].moved)
    }

    /// Bytes that are in pipes.
    pub(super) fn held(&self) -> usize {
        self.ways.iter().map(|way| way.held).sum()
    }

    /// True if one of the directions has ended.
    pub(super) fn is_ending(&self) -> bool {
        self.first.is_some()
    }

    /// Notes whether urgent data of this direction are not read yet.
    pub(super) fn set_urgent(&mut self, way: usize, is_urgent: bool) {
        self.ways[way].is_urgent = is_urgent;
    }

    /// True if bytes of this direction wait for its end to take them.
    pub(super) fn is_stuck(&self, way: usize) -> bool {
        self.ways[way].held > 0 || self.ways[way].is_refused
    }

    /// Moves what can be moved in the directions that are due.
    pub(super) fn advance(&mut self, due: [bool; 2], pipes: &mut Pipes) -> Result<Progress, Broken> {
        if !self.is_connected {
            return Ok(Progress::Waits);
        }
        let mut has_more = false;
        for way in [0, 1].into_iter().filter(|&way| due[way]) {
            has_more |= self.pump(way, pipes)?;
        }
        for way in [0, 1] {
            self.pass_end_on(way)?;
        }
        if has_more {
            return Ok(Progress::HasMore);
        }
        let is_over = self.ways.iter().all(|way| way.is_shut)
            && self.sockets.iter().all(|socket| tcp::is_over(socket.as_fd()).unwrap_or(true));
        Ok(if is_over { Progress::Over } else { Progress::Waits })
    }

    /// Returns true if there is more to move at once.
    fn pump(&mut self, number: usize, pipes: &mut Pipes) -> Result<bool, Broken> {
        let (from, to) = (&self.sockets[number], &self.sockets[1 - number]);
        let way = &mut self.ways[number];
        if way.is_shut {
            return Ok(false);
        }
        let sides = [SIDES[number], SIDES[1 - number]];
        let pipe = way.pipe.take().or_else(|| pipes.take());
        let mut is_moving = true;
        for _ in 0..ROUNDS {
            is_moving = match &pipe {
                // The bytes in the pipe go first.
                Some(pipe) if way.held > 0 || !way.is_urgent => way.splice(from, pipe, to),
                _ => way.copy(from, &mut pipes.buffer, to),
            }
            .map_err(|half| sides[half])?;
            if !is_moving {
                break;
            }
        }
        if way.has_ended {
            self.first = self.first.or(Some(number));
        }
        match pipe {
            Some(pipe) if way.held > 0 => way.pipe = Some(pipe),
            Some(pipe) => pipes.give_back(pipe),
            None => {}
        }
        Ok(is_moving)
    }

    /// Gives back what was lent. A pipe with bytes in it goes with the connection, and another may be made.
    pub(super) fn give_back(&self, pipes: &mut Pipes) {
        pipes.left += self.ways.iter().filter(|way| way.pipe.is_some()).count();
    }

    /// Passes on the end of a stream of which everything has been passed on. The stream that ended second waits
    /// until the other has been acknowledged to its end: so that a sender which ended first and hears of the other's
    /// end knows that all it sent has arrived.
    fn pass_end_on(&mut self, number: usize) -> Result<(), Broken> {
        let (way, other) = (&self.ways[number], &self.ways[1 - number]);
        if !way.has_ended || way.held > 0 || way.is_shut {
            return Ok(());
        }
        let is_acknowledged = |socket: &OwnedFd| tcp::unacknowledged(socket.as_fd()).unwrap_or(0) == 0;
        let is_first = self.first == Some(number);
        let is_due = is_first || (other.is_shut && is_acknowledged(&self.sockets[number]));
        if !is_due {
            return Ok(());
        }
        shutdown(&self.sockets[1 - number], Shutdown::Write).map_err(|_| SIDES[1 - number])?;
        self.ways[number].is_shut = true;
        Ok(())
    }
}
