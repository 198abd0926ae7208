from collections.abc import Callable, Iterator
from typing import Any, Self, final

__version__: str
#: Names the program: folders of other versions are read with a warning.
release: str
#: Names the code: points of other code are run again.
code: str

class ScenarioError(Exception): ...
class Refused(Exception): ...

@final
class Scenario:
    def __new__(
        cls,
        name: str,
        text: str | None,
        base: str,
        overrides: list[tuple[str, str]],
        seed: int | None,
        grid: list[tuple[str, list[str]]],
        seeds: list[int] | None,
        laws: list[tuple[str, Any]],
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def written(self) -> str: ...
    @property
    def normalised(self) -> str: ...
    @property
    def links(self) -> list[tuple[str, str | None]]: ...
    @property
    def groups(self) -> list[tuple[str, str | None, int]]: ...
    @property
    def warnings(self) -> str: ...
    def check(self) -> str: ...
    def points(self) -> list[list[tuple[str, str]]]: ...
    def run(self, series: bool, events: bool, threads: int, host: str, date: str) -> Run: ...
    def sweep(self, folder: str, threads: int, shard: tuple[int, int] | None) -> Table | None: ...
    def sweep_elsewhere(
        self, folder: str, work: Callable[[list[int]], Iterator[tuple[str, list[tuple[int, bytes]]]]]
    ) -> Table | None: ...
    def run_points(self, places: list[int]) -> tuple[str, list[tuple[int, bytes]]]: ...

@final
class Run:
    @property
    def json(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def is_live(self) -> bool: ...
    @property
    def normalised(self) -> str: ...
    @property
    def flows(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def events(self) -> Table: ...
    @property
    def version(self) -> str: ...
    @property
    def warnings(self) -> str: ...
    def files(self) -> tuple[str, list[tuple[str, bytes]]]: ...
    def explain(self, flow: str, at: str, link: str | None) -> str: ...
    def compare(self, other: Run, tolerances: list[tuple[str, float]]) -> str: ...
    def report(self) -> str: ...
    def save(self, out: Any) -> str: ...
    @staticmethod
    def picture(runs: list[Run], y: str | None, kind: str | None) -> str: ...

@final
class Table:
    """A table that its readers share, by the Arrow PyCapsule interface."""

    def __len__(self) -> int:
        """How many rows it has."""
    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class Ack:
    """An acknowledgment, as TCP's machinery reports it to a sender law."""

    #: Bytes that it newly acknowledges, cumulatively.
    acked: int
    #: Bytes in flight before it.
    flight: int
    #: Round trip time that it samples, ns; 0: none.
    rtt_ns: int
    #: Smoothed round trip time, ns; 0: unknown.
    srtt_ns: int
    #: First word of the law's header on the data packet that came last; 0 before the first.
    reply: int
    #: Code of the ECN field of that packet.
    ecn: int
    #: It acknowledges nothing new.
    is_duplicate: bool
    #: The sender repairs a loss.
    in_recovery: bool
    #: The window, and nothing else, limited the sender.
    is_window_limited: bool
    #: Another ACK overtook it.
    is_late: bool

@final
class Send:
    """A packet about to be sent, as TCP's machinery reports it to a sender law."""

    #: Bytes of the whole IP packet.
    size: int
    #: Smoothed round trip time, ns; 0: unknown.
    srtt_ns: int
    #: Bytes that the application has ready and that were never sent, this packet included.
    backlog: int
    #: The window, and nothing else, stops the sender after this packet.
    is_window_limited: bool

@final
class Packet:
    """A packet as a law sees it, for as long as the call lasts."""

    @property
    def size(self) -> int:
        """Bytes of the whole IP packet."""
    #: Code of the ECN field (RFC 3168): 0 not capable, 1 and 2 capable, 3 marked.
    ecn: int
    @property
    def header(self) -> list[int] | None:
        """Seven words of 32 bits of the law's own header; None: the packet has none. Set it as a whole."""
    @header.setter
    def header(self, words: list[int]) -> None: ...

@final
class Episode:
    def __new__(cls, scenario: Scenario, agent: str, interval_ns: int) -> Self: ...
    def next(self, action: float | None) -> list[float] | None: ...
    def json(self) -> str: ...
    def close(self) -> None: ...

def load(path: Any) -> Run: ...
def unpickled(name: str, files: list[tuple[str, bytes]]) -> Run: ...
def table(columns: list[tuple[str, str, bytes, bytes, list[str] | None]]) -> Table: ...
def style(width_in: float) -> str: ...
def link_law_of(law: str) -> str | None: ...
def check_law(laws: list[Any]) -> list[tuple[str, str, str]]: ...
