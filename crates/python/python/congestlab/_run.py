"""Runs and what comes of them."""

from __future__ import annotations

import datetime
import html
import json
import os
import platform
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Table
from ._scenario import Refused, Scenario, ScenarioWarning, _warn, _whole, refusals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Explanation", "Run", "load", "plot", "run", "style"]


def run(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    /,
    *,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    law: Any = None,
    series: bool = True,
    events: bool = False,
    threads: int = 1,
) -> Run:
    """Runs a scenario: a `Scenario`, or what one is made from, changed by `seed`, `set` and `law` as there.

    `series` and `events` record what `Run.series` and `Run.events` have. What is not recorded is simulated again when it is
    asked for: without them a run takes less memory. `threads` changes no result.

    The GIL is free while it runs, any number of threads may run at once, and Ctrl-C ends it. Raises `ScenarioError`,
    `Refused`, `MemoryError` if the machine has less than the run may need, and whatever a law in Python raises. Settings
    that may surprise are warned of as `ScenarioWarning`, and listed in `Run.warnings`.
    """
    if not (isinstance(scenario, Scenario) and seed is None and set is None and law is None):
        scenario = Scenario(scenario, seed=seed, set=set, law=law)
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = Run(scenario._native.run(series, events, _whole("threads", threads), platform.node(), date))
    _warn(found.warnings)
    return found


def load(path: str | os.PathLike[str], /, *, any_version: bool = False) -> Run:
    """Opens the folder of a run that `congestlab run --out`, `congestlab live` or `Run.save` wrote.

    Warns of a folder that another version wrote, unless `any_version`. Raises `FileNotFoundError`, and `ValueError` for a
    folder that is incomplete, damaged or of another results schema.
    """
    found = Run(_native.load(Path(path)))
    if found._native.version != _native.release and not any_version:
        text = f"version {found._native.version} made the run in {os.fspath(path)}, and this is {_native.release}"
        warnings.warn(text, ScenarioWarning, stacklevel=2)
    return found


class Run:
    """What came of a run. Immutable; `run` and `load` make it.

    Tables have the Arrow PyCapsule interface: `polars.DataFrame(run.flows)`, `pandas.DataFrame.from_arrow(run.flows)`,
    `pyarrow.table(run.flows)`, and DuckDB by the name of a variable. They share the memory; texts are categoricals.
    """

    def __init__(self, native: _native.Run) -> None:
        self._native = native

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The object that `congestlab run --json` prints (docs/scenario.md, Results)."""
        found: dict[str, Any] = json.loads(self._native.json)
        return found

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._native.name

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return self._native.seed

    @property
    def fingerprint(self) -> str:
        """Hash of every event, sixteen hexadecimal digits. Equal runs have equal ones, by the command too."""
        return self._native.fingerprint

    @property
    def is_live(self) -> bool:
        """Whether its packets were real ones."""
        return self._native.is_live

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What `congestlab run` warns of: settings that are allowed but may surprise, as `Scenario.warnings`."""
        found: list[dict[str, Any]] = json.loads(self._native.warnings)
        return found

    def __reduce__(self) -> Any:
        """Pickles the files that `save` writes. A run without series or events is simulated again for them."""
        return _unpickled, self._native.files()

    @property
    def flows(self) -> Table:
        """A row for each flow: `group`, `law`, `index`, and its results (`goodput_bps`, `rtt_mean_ms`, ...)."""
        return self._native.flows

    @property
    def links(self) -> Table:
        """A row for each direction of a link: `link`, `law`, and its results (`utilization`, `drops`, ...)."""
        return self._native.links

    @property
    def series(self) -> Table:
        """The time series, a row for each value: `t_s` (end of the bin), `kind` (flow or link), `element`, `index` of the flow
        in its group (-1 for links), `metric`, `value`."""
        return self._native.series

    @property
    def events(self) -> Table:
        """Drops, errors, marks, timeouts, retransmits and control intervals: `t_s`, `element`, `index`, `event`, `detail`,
        `flow`, `flow_index`, `value` (docs/results.md)."""
        return self._native.events

    def explain(self, flow: str, at: float | str, *, link: str | None = None) -> Explanation:
        """Why the first packet of `flow` that leaves `link` at `at` or later got its feedback.

        `flow` is such as `ftp[3]`; `at` is in seconds, or a text such as `"20 s"`; `link` is the first of the flow's path that
        runs a law, if it is not given. Raises `Refused` if there is no such packet.
        """
        # Times are whole nanoseconds; the shortest text of a float may have an exponent.
        text = at if isinstance(at, str) else f"{float(at):.9f} s"
        with refusals():
            return Explanation(json.loads(self._native.explain(flow, text, link)))

    def compare(self, other: Run, *, tolerance: Mapping[str, float] | None = None) -> Comparison:
        """How far two runs of the same flows and links agree, number by number, as `congestlab compare` tells.

        `tolerance` replaces tolerances by name, such as `{"goodput": 0.1}`.
        """
        if not isinstance(other, Run):
            raise TypeError(f"a run is compared with a run, not {type(other).__name__}")
        with refusals():
            return Comparison(json.loads(self._native.compare(other._native, list((tolerance or {}).items()))))

    def diff(self, other: Run, *, tolerance: float = 0.0) -> dict[str, Any]:
        """The differences of two runs of the simulator, as `congestlab compare --exact --json` prints them (docs/explain.md).

        `configuration` has the settings that differ, `metrics` the numbers that differ by more than the share `tolerance`, 0 to 1;
        `first_event` and `first_packet` say where the runs part. Both runs are simulated again for their packets. Raises `Refused`
        for runs with laws in Python, which no folder has.
        """
        if not isinstance(other, Run):
            raise TypeError(f"a run is compared with a run, not {type(other).__name__}")
        with refusals():
            found: dict[str, Any] = json.loads(self._native.diff(other._native, float(tolerance)))
        return found

    def export(
        self, format: str, path: str | os.PathLike[str] | None = None, *, schema: str | None = None
    ) -> str:
        """The run as other programs read it; also written to `path`, if it is given (docs/results.md).

        `format` is `"qlog"`, a trace for each flow, packet by packet, in JSON, or `"openmetrics"`, the numbers of the results.
        `schema` is the version of qlog: `"0.3"` (default) or `"draft-14"`. Raises `Refused` for another format, and for runs with
        laws in Python.
        """
        with refusals():
            text = self._native.export(format, schema)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def pcap(self, folder: str | os.PathLike[str], /, *, snaplen: int = 0) -> list[Path]:
        """Writes the packets of every link to `folder/<link>.pcapng`, for Wireshark and tshark (docs/traces.md).

        The run is simulated again for them. All headers are kept, and `snaplen` bytes of each packet at least. Returns the
        paths. Raises `Refused` for live runs and for runs with laws in Python, and `OSError` if a file cannot be written; no
        file is left then.
        """
        bytes_kept = _whole("snaplen", snaplen)
        if bytes_kept > 65535:
            raise Refused(f"snaplen is {bytes_kept}", "allowed: 0 to 65535")
        with refusals():
            return [Path(path) for path in self._native.pcap(Path(folder), bytes_kept)]

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as HTML that needs nothing else (docs/report.md); also written to `path`, if it is given."""
        page = self._native.report()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def save(self, out: str | os.PathLike[str], /) -> Path:
        """Writes `out/<scenario>-<seed>-<hash>/` as `congestlab run --out` does (docs/results.md). Returns the folder."""
        with refusals():
            return Path(self._native.save(Path(out)))

    def plot(self, y: str | None = None, *, kind: str | None = None, ax: Axes | None = None) -> Any:
        """Draws what the run shows over time, in the project's style. Returns matplotlib's axes.

        `y` is one series, such as `queue_packets`, which gives one `Axes`; without it an array of `Axes`, one for each of
        arrival rate, queueing delay and utilisation. `kind` as in `congestlab export figure` (docs/figures.md). `ax` draws into axes
        that are there, for one quantity.
        """
        return plot(self, y=y, kind=kind, ax=ax)

    def _repr_html_(self) -> str:
        """The report in a frame of its own, whose script sees nothing of the notebook."""
        page = html.escape(self.report(), quote=True)
        style = "width:100%;height:42em;border:1px solid #ccc"
        return f'<iframe title="{html.escape(self.name)}" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        what = "live" if self.is_live else "seed"
        return f"<congestlab.Run {self.name}, {what} {self.seed}, {self.fingerprint}: {len(self.flows)} flows>"


def _unpickled(name: str, files: list[tuple[str, bytes]]) -> Run:
    return Run(_native.unpickled(name, files))


class Explanation(dict[str, Any]):
    """The object that `congestlab explain --json` prints; as a text it is short."""

    def __str__(self) -> str:
        packet = self["packet"]
        lines = [
            f"Packet {packet['segment']} of {self['flow']} ({self['law']}), sent at {packet['sent_s']:.6f} s:"
            f" the first to leave {self['at_link']} at {self['asked_s']} s or later."
        ]
        lines += [f"  {rule['text']}" for rule in packet.get("rules", [])]
        for hop in self["hops"]:
            left = hop.get("departed_s")
            end = f"left at {left:.6f} s" if left is not None else f"was lost: {hop['lost']}"
            lines.append(f"  {hop['link']}: found {hop['queue_packets']} waiting, {end}")
            lines += [f"    {rule['text']}" for rule in hop.get("rules", [])]
        if self["decided_by"]:
            lines.append(f"  {self['decided_by']} was the tightest link.")
        if self["received_s"] is not None:
            lines.append(f"  received at {self['received_s']:.6f} s")
        return "\n".join(lines)


class Comparison(dict[str, Any]):
    """The object that `congestlab compare --json` prints, without the runs."""

    @property
    def holds(self) -> bool:
        """Whether all numbers with a tolerance keep it."""
        return bool(self["holds"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All numbers: `metric`, `one`, `other`, `difference`, `allowed`, `holds`."""
        return list(self["rows"])

    def __repr__(self) -> str:
        judged = [row for row in self.rows if row["holds"] is not None]
        held = sum(row["holds"] for row in judged)
        return f"<congestlab.Comparison: {held} of {len(judged)} numbers agree>"


def style(width_in: float = 6.3) -> str:
    """The style sheet of the project's pictures, for `matplotlib.style.use`, so many inches wide."""
    return _native.style(width_in)


#: Units of a picture to points of matplotlib.
_POINTS = 0.75


def plot(*runs: Run, y: str | None = None, kind: str | None = None, ax: Axes | None = None) -> Any:
    """Draws what runs show over time in one picture. As `Run.plot`, which is this for one run."""
    import tempfile

    import numpy
    from matplotlib import pyplot, rc_context, rc_params_from_file

    if not runs:
        raise Refused("there is no run to draw", "give one or more")
    with refusals():
        picture = json.loads(_native.Run.picture([run._native for run in runs], y, kind))
    panels = picture["panels"]
    if ax is not None and len(panels) != 1:
        raise Refused(f"there are {len(panels)} quantities for one axes", "give y, such as y=\"queue_packets\"")
    with tempfile.NamedTemporaryFile("w", suffix=".mplstyle") as file:
        file.write(style())
        file.flush()
        look = rc_params_from_file(file.name, use_default_template=False)
    with rc_context(look):
        if ax is None:
            width, height = look["figure.figsize"]
            size = (width, height * (1 + 0.55 * (len(panels) - 1)))
            _, axes = pyplot.subplots(len(panels), sharex=True, squeeze=False, figsize=size, layout="constrained")
            all_axes = axes[:, 0]
        else:
            all_axes = numpy.array([ax])
        for one, panel in zip(all_axes, panels, strict=True):
            _draw(one, panel)
        all_axes[-1].set_xlabel(picture["x"])
    return all_axes[0] if len(panels) == 1 else all_axes


def _draw(ax: Axes, panel: Mapping[str, Any]) -> None:
    named: set[str] = set()
    for curve in panel["curves"]:
        points = curve["points"]
        label = curve["name"] if curve["name"] not in named else None
        named.add(curve["name"])
        dash = tuple(length * _POINTS for length in curve["dash"])
        thin = curve["mark"] in ("thin", "bound")
        ax.plot(
            [x for x, _ in points], [y for _, y in points],
            color=curve["colour"], linestyle=(0, dash) if dash else "-", linewidth=0.6 if thin else None,
            marker=curve["marker"] if curve["mark"] == "measured" else "", label=label,
        )  # fmt: skip
        if curve["spread"]:
            x, low, high = zip(*curve["spread"], strict=True)
            ax.fill_between(x, low, high, color=curve["colour"], alpha=0.15, linewidth=0)
    ax.set_ylabel(panel["label"])
    if panel["is_logarithmic"]:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    if len(named) > 1:
        ax.legend(loc="best")
