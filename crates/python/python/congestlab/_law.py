"""Laws in Python, for prototypes: the reference engine calls them, packet by packet, and is slow for it.

A law is a class whose methods are called, or an object that every flow or port gets a copy of (`copy.deepcopy`). Times are
whole nanoseconds, amounts whole bytes, so that the same law in Rust can decide the same. What a method changes is read when it
returns. An exception ends the run and is raised by it.
"""

from __future__ import annotations

from ._native import Ack, Packet, Send

__all__ = ["Ack", "LinkLaw", "Packet", "Send", "SenderLaw"]


class SenderLaw:
    """The state of one flow: it keeps the window. TCP's machinery finds and repairs losses and measures round trips.

    Derive from it, or write a class of your own with `on_ack` and `window`. Attributes that are read:

    - `window`: bytes that may be in flight; less than a segment counts as one.
    - `pacing_Bps`: bytes a second to pace at; None, the default: as the window opens.
    - `initial_window`: segments; None: that of the law that the scenario names.
    - `header_name`, `header_bytes`: a link law sees headers of its own `header_name` alone; `header_bytes` counts as no payload.
    - `owns_ecn`: the ECN field is the law's (`packet.ecn`, `ack.ecn`), and nothing of RFC 3168 is done.

    Derived classes may add `on_send(now_ns, send, packet)`, called for each data packet: `packet.header = [...]` puts up to
    seven words of 32 bits on it. Its first word, and the code of the ECN field, come back in `ack.reply` and `ack.ecn`.
    """

    header_name = "python"
    header_bytes = 0
    initial_window: int | None = None
    owns_ecn = False

    window: int = 0
    pacing_Bps: int | None = None
    mss: int = 0

    def start(self, mss: int, initial_window: int) -> None:
        """Begins a connection. `mss` counts the whole IP packet; both in bytes."""
        self.mss = mss
        self.window = initial_window

    def on_ack(self, now_ns: int, ack: Ack) -> None:
        """Takes one acknowledgment, a duplicate too."""
        raise NotImplementedError(f"{type(self).__name__}.on_ack")

    def on_loss(self, now_ns: int, flight: int) -> None:
        """Reacts to a loss, or to marks, once per window of data. As RFC 5681: half of what is in flight."""
        self.window = max(flight // 2, 2 * self.mss)

    def on_timeout(self, now_ns: int, flight: int, is_first: bool) -> None:
        """Reacts to the end of the retransmission timer. As RFC 5681: one segment."""
        self.window = self.mss

    def on_restart(self, now_ns: int, initial_window: int) -> None:
        """Prepares to send again after a pause. As RFC 5681: no more than the initial window."""
        self.window = min(self.window, max(initial_window, self.mss))


class LinkLaw:
    """The state of one port. Derive from it, or write a class with one of its methods.

    - `interval_ns`: length of the control interval, read again after each; 10 ms if there is none. The first ends at a random
      time within it, for ports must not act in step.
    - `decision`: an int that `events` has for each control interval; 0 if there is none.

    Derived classes may add `on_arrival(now_ns, packet)`, called before a packet is queued, also if it is then dropped, and
    `only_lowers(came, left)`, which `check_law` asks of two states of a packet: true if the second grants no more.
    """

    header_name = "python"
    interval_ns = 10_000_000
    decision = 0
    capacity_Bps: int = 0

    def start(self, capacity_Bps: int) -> None:
        """Begins with this capacity, bytes a second."""
        self.capacity_Bps = capacity_Bps

    def on_capacity(self, capacity_Bps: int) -> None:
        """Takes another capacity."""
        self.capacity_Bps = capacity_Bps

    def on_departure(self, now_ns: int, packet: Packet, backlog: int) -> None:
        """Changes a packet's header or code just before transmission; `backlog` bytes stay queued."""

    def on_interval(self, now_ns: int, backlog: int) -> None:
        """Ends a control interval."""
