//! Bits of [`super::Sender`]'s flags.

/// A SYN has to go.
pub(super) const SYN: u32 = 1;
/// A window probe has to go.
pub(super) const PROBE: u32 = 1 << 1;
/// The first unacknowledged segment has to be repeated, whatever the window says.
pub(super) const REPEAT: u32 = 1 << 2;
/// The next new data packet carries CWR.
pub(super) const CWR: u32 = 1 << 3;
/// Window or pacing, not data or receiver, stopped the last transmission.
pub(super) const WINDOW_LIMITED: u32 = 1 << 4;
/// Pacing did.
pub(super) const PACED: u32 = 1 << 5;
/// The SYN had to be repeated, and no data has been acknowledged since.
pub(super) const SYN_EXPIRED: u32 = 1 << 6;
/// The timer has expired for the first unacknowledged segment.
pub(super) const EXPIRED: u32 = 1 << 7;
/// A partial ACK has restarted the timer in this recovery.
pub(super) const PARTIAL: u32 = 1 << 8;
/// The application's write waits for room in the send buffer, or for its acknowledgment.
pub(super) const WRITING: u32 = 1 << 9;
/// The packet sent last was the last that could go: spares the poll that finds out again.
pub(super) const BLOCKED: u32 = 1 << 10;
/// The law sends probes of low priority; `release` is when to ask it for the next.
pub(super) const PROBES: u32 = 1 << 11;
/// The flow is older than the measurement, which has not begun.
pub(super) const EARLY: u32 = 1 << 12;
/// The law says nothing when it sends, and need not be called.
pub(super) const SILENT: u32 = 1 << 13;
/// The ways are those of Linux: the scoreboard has RACK.
pub(super) const LINUX: u32 = 1 << 14;
/// A tail loss probe has to go.
pub(super) const TAIL: u32 = 1 << 15;
/// The application writes a burst at [`super::Rest::write_at`].
pub(super) const WRITES: u32 = 1 << 16;
/// Packets show the headers of [`super::Rest::connection`].
pub(super) const HEADERS: u32 = 1 << 17;
/// Packets leave apart ([`congestlab_core::law::Needs::leaves_apart`]).
pub(super) const APART: u32 = 1 << 18;
