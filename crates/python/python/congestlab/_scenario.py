"""Scenarios: from a file, from TOML, from a dict or from objects, with the same errors."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import operator
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native

__all__ = ["Flows", "Link", "Refused", "Scenario", "ScenarioError", "ScenarioWarning", "Source"]

Source = "Scenario | str | os.PathLike[str] | Mapping[str, Any]"


class ScenarioError(ValueError):
    """What is wrong with a scenario.

    `str()` of it is for people. `diagnostics` is for programs: a dict for each error, with `code`, `message`, `help` (what
    is allowed), `file`, `line` and `column` (from 1), and `path` (such as `links.bottleneck.rate`) where the scenario was
    built from a dict or objects.
    """

    def __init__(self, message: str, diagnostics: list[dict[str, Any]]) -> None:
        super().__init__(message, diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return str(self.args[0])


class Refused(ValueError):
    """A question that has no answer: `str()` says what is wrong, `help` what is allowed."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message, help)
        self.help = help

    def __str__(self) -> str:
        message, help = self.args
        return f"{message}; {help}" if help else str(message)


class ScenarioWarning(UserWarning):
    """A setting that is allowed but may surprise, or a folder that another version wrote."""


def _warn(found: list[dict[str, Any]]) -> None:
    """Warns the caller of the caller."""
    for one in found:
        text = f"{one['message']}; {one['help']}" if one["help"] else one["message"]
        warnings.warn(text, ScenarioWarning, stacklevel=3)


class _Part(dict[str, Any]):
    """Keys of a table of the scenario language, by keyword. Keys that Python has words for end in `_`."""

    def __init__(self, **keys: Any) -> None:
        super().__init__({key.rstrip("_"): value for key, value in keys.items() if value is not None})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.items())})"


class Link(_Part):
    """A link: `Link(rate="10 Mbit/s", delay="20 ms", queue="1 BDP", law="xcp")`. Keys as in docs/scenario.md, `[links]`."""


class Flows(_Part):
    """A group of equal flows: `Flows(law="xcp", count=3, path=["bottleneck"])`. Keys as in docs/scenario.md, `[flows]`."""


class Scenario:
    """A scenario that was read and found right, with every default filled in.

    `source` is one of

    - a path of a TOML file (`str` without a newline, or `os.PathLike`),
    - a text in TOML (`str` with a newline),
    - a mapping of the same tables: `{"run": {...}, "links": {...}, "flows": {...}}`,
    - nothing, with the tables as keywords: `Scenario(run={...}, links={"b": Link(...)}, flows={"f": Flows(...)})`.

    `seed` replaces the file's; `set` replaces values by path, as `--set` does: `{"links.b.rate": "20 Mbit/s"}`, with `*` for
    every link or group. `law` puts other laws in the place of the file's: the name of one, for all flows and for all links
    that have a law; or by name of link or group, `{"ftp": "cubic", "bottleneck": MyLink}`, names or laws in Python
    (`SenderLaw`, `LinkLaw`). `base` is the folder that paths of traces are relative to.

    Raises `ScenarioError` with all that is wrong, each with its place and what is allowed. Immutable.
    """

    def __init__(
        self,
        source: Scenario | str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,
        law: Any = None,
        base: str | os.PathLike[str] | None = None,
        **tables: Any,
    ) -> None:
        if isinstance(source, Scenario):
            if tables or base is not None:
                raise TypeError("a scenario is changed by seed, set and law")
            spec = dict(source._spec)
        else:
            spec = _spec(source, tables, base)
        if seed is not None and "run.seed" in (set or {}):
            raise Refused("seed and set: both give run.seed a value", "leave one of them out")
        spec["overrides"] = spec["overrides"] + [(path, _toml(value, path)) for path, value in (set or {}).items()]
        spec["seed"] = spec["seed"] if seed is None else _whole("seed", seed)
        self._spec: dict[str, Any] = spec
        if law is not None:
            self._put(law)
        self._native = _read(self._spec)

    def _put(self, law: Any) -> None:
        """Takes other laws over into what the scenario is read from."""
        before = _read(self._spec)
        groups = [name for name, own, _ in before.groups if own not in _SOURCES]
        links = [name for name, own in before.links if own is not None]
        laws: dict[str, Any]
        if isinstance(law, Mapping):
            laws = dict(law)
        elif isinstance(law, str):
            of_links = _native.link_law_of(law) or "none"
            laws = {f"flows.{name}": law for name in groups} | {f"links.{name}": of_links for name in links}
        elif hasattr(law, "on_ack"):
            laws = {f"flows.{name}": law for name in groups}
        else:
            laws = {f"links.{name}": law for name in links or [name for name, _ in before.links]}
        known = {f"flows.{name}" for name, _, _ in before.groups} | {f"links.{name}" for name, _ in before.links}
        for name, own in laws.items():
            if not isinstance(own, str):
                self._spec["laws"] = self._spec["laws"] + [(name, own)]
                continue
            paths = [path for path in (name, f"flows.{name}", f"links.{name}") if path in known]
            if len(paths) != 1:
                what = "both a link and a group" if paths else "no link and no group"
                raise Refused(f"law: `{name}` is {what}", f"allowed: {', '.join(sorted(known))}")
            # The way back of a link is a table in it.
            self._spec["overrides"] = self._spec["overrides"] + [(f"{paths[0]}.law", _toml(own, "law"))]

    @property
    def name(self) -> str:
        """Name of the file without its extension; `scenario` for others."""
        return self._native.name

    @property
    def seed(self) -> int:
        """Seed of every random stream."""
        return self._native.seed

    @property
    def text(self) -> str:
        """The TOML that was read, before `set`, `seed` and `law`."""
        return self._native.written

    @property
    def normalised(self) -> str:
        """The scenario as TOML with every default written out; reading that gives the same scenario."""
        return self._native.normalised

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Settings that are allowed but may surprise, as `ScenarioError.diagnostics` has errors."""
        found: list[dict[str, Any]] = json.loads(self._native.warnings)
        return found

    @property
    def links(self) -> dict[str, str | None]:
        """The law of each link, both ways; None: it has none."""
        return dict(self._native.links)

    @property
    def flows(self) -> dict[str, tuple[str | None, int]]:
        """The law of each group of flows, and how many flows it is."""
        return {name: (law, count) for name, law, count in self._native.groups}

    def check(self) -> list[dict[str, Any]]:
        """Checks `[sweep]` with every value in it, and `[[claims]]`, which a single run ignores. Returns warnings."""
        with refusals(self._spec):
            found: list[dict[str, Any]] = json.loads(self._native.check())
        return found

    def points(self) -> list[dict[str, Any]]:
        """The points of `[sweep]`, each as `set` of a run takes it."""
        import tomllib

        points = self._native.points()
        return [{path: tomllib.loads(f"x = {value}")["x"] for path, value in point} for point in points]

    def __repr__(self) -> str:
        flows = ", ".join(f"{count} {law or 'none'}" for law, count in self.flows.values())
        return f"<congestlab.Scenario {self.name}: {flows} over {', '.join(self.links)}; seed {self.seed}>"

    def __reduce__(self) -> Any:
        return _again, (self._spec,)


#: Laws of senders that listen to nobody.
_SOURCES = ("cbr", "onoff", None)


def _again(spec: dict[str, Any]) -> Scenario:
    scenario = Scenario.__new__(Scenario)
    scenario._spec = spec
    scenario._native = _read(spec)
    return scenario


def _spec(source: Any, tables: Mapping[str, Any], base: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": "scenario", "text": None, "base": "", "overrides": [], "seed": None,
        "grid": [], "seeds": None, "laws": [], "paths": None,
    }  # fmt: skip
    if source is not None and tables:
        raise TypeError("give a source or tables, not both")
    if isinstance(source, str) and "\n" in source:
        spec["text"] = source
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        spec |= {"name": str(path), "base": str(path.parent)}
    elif source is None or isinstance(source, Mapping):
        text, paths = _file(tables if source is None else source)
        spec |= {"text": text, "paths": paths}
    else:
        raise TypeError(f"a scenario is a path, a text in TOML or a mapping, not {type(source).__name__}")
    if base is not None:
        spec["base"] = os.fspath(base)
    return spec


def _read(spec: Mapping[str, Any]) -> _native.Scenario:
    arguments = {key: value for key, value in spec.items() if key != "paths"}
    with refusals(spec):
        return _native.Scenario(**arguments)


@contextlib.contextmanager
def refusals(spec: Mapping[str, Any] | None = None) -> Iterator[None]:
    """What the module refuses, as the exceptions of the package; `spec` is what a scenario was read from."""
    try:
        yield
    except _native.ScenarioError as error:
        if spec is None:
            raise
        raise _error(error, spec) from None
    except _native.Refused as error:
        raise Refused(*error.args) from None


def _error(error: _native.ScenarioError, spec: Mapping[str, Any]) -> ScenarioError:
    message, diagnostics = error.args
    found = json.loads(diagnostics)
    if spec["paths"] is None:
        return ScenarioError(message, found)
    # Lines of a text that nobody has written say nothing: paths do.
    lines = []
    for diagnostic in found:
        place = f"{diagnostic['file']}:{diagnostic['line']}:{diagnostic['column']}"
        if diagnostic["file"] == spec["name"]:
            place = diagnostic["path"] = spec["paths"].get(diagnostic["line"], "") or "scenario"
        label = f": {diagnostic['message']}"
        help = f"; {diagnostic['help']}" if diagnostic["help"] else ""
        lines.append(f"{place}: {diagnostic['severity']}{label}{help}")
    return ScenarioError("\n".join(lines), found)


def _whole(name: str, value: Any) -> int:
    try:
        # Numbers of numpy, too; `True` counts nothing.
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise Refused(f"{name} is {value!r}", "allowed: an int from 0 to 2^63 - 1")
    return number


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _key(key: Any) -> str:
    text = str(key)
    return text if _BARE.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    """Objects as what TOML has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name.rstrip("_"), getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: item for name, item in fields if item is not None}
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)} us"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # Numbers and arrays of numpy.
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, Mapping) else value


def _toml(value: Any, path: str) -> str:
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(item, f'{path}.{key}')}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(_toml(item, f"{path}[{index}]") for index, item in enumerate(value)) + "]"
    raise TypeError(f"{path}: {type(value).__name__} has no TOML; allowed: str, int, float, bool, list, dict, timedelta")


def _file(tables: Mapping[str, Any]) -> tuple[str, dict[int, str]]:
    """The scenario as TOML, a line for each value, and what path is on which line."""
    lines: list[str] = []
    paths: dict[int, str] = {}

    def add(line: str, path: str) -> None:
        lines.append(line)
        paths[len(lines)] = path

    def table(path: list[str], items: Mapping[str, Any]) -> None:
        shown = ".".join(path)
        if path:
            add(f"[{'.'.join(map(_key, path))}]", shown)
        later: list[tuple[str, Mapping[str, Any]]] = []
        for key, value in items.items():
            value = _plain(value)
            # Elements are tables of their own, and so are the parts of the file.
            if isinstance(value, Mapping) and (not path or path in (["links"], ["flows"])):
                later.append((key, value))
            elif isinstance(value, Sequence) and not isinstance(value, str) and not path:
                for index, item in enumerate(value):
                    add(f"[[{_key(key)}]]", f"{key}[{index}]")
                    for name, inner in _plain(item).items():
                        inner_path = f"{key}[{index}].{name}"
                        add(f"{_key(name)} = {_toml(inner, inner_path)}", inner_path)
            else:
                inner_path = ".".join([*path, str(key)])
                add(f"{_key(key)} = {_toml(value, inner_path)}", inner_path)
        for key, value in later:
            table([*path, str(key)], value)

    # What has no table begins the file.
    plain = {key: value for key, value in tables.items() if not isinstance(_plain(value), (Mapping, list, tuple))}
    table([], plain | {key: value for key, value in tables.items() if key not in plain})
    return "\n".join(lines) + "\n", paths


def grid_of(grid: Mapping[str, Iterable[Any]] | None) -> list[tuple[str, list[str]]]:
    """Axes of a sweep as TOML."""
    axes = []
    for path, values in (grid or {}).items():
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise Refused(f"grid: `{path}` has {values!r}", "allowed: a list of values")
        axes.append((path, [_toml(value, path) for value in values]))
    return axes
