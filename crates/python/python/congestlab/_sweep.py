"""Sweeps: on threads, by `concurrent.futures`, or on Dask; one folder, one table, whoever runs the points."""

from __future__ import annotations

import concurrent.futures
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import _native
from ._native import Table
from ._scenario import Refused, Scenario, _again, _read, _warn, _whole, grid_of, refusals

__all__ = ["sweep"]

#: Tasks of one worker, about: enough for the last to end at the same time, few enough that a task is work.
_TASKS = 24
#: Points of one task at most: what a lost worker costs.
_BATCH_MAX = 256
#: Seeds that a number stands for at most, as in the command.
_SEEDS_MAX = 100_000

_Done = tuple[str, list[tuple[int, bytes]]]


def sweep(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    grid: Mapping[str, Iterable[Any]] | None = None,
    seeds: int | Iterable[int] | None = None,
    *,
    executor: Any = None,
    out: str | os.PathLike[str] | None = None,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
    shard: tuple[int, int] | None = None,
    batch: int | None = None,
) -> Table | None:
    """Runs every point of a scenario and returns the one table of them (docs/results.md, A sweep).

    `grid` has lists of values by path, beside or instead of those of the file's `[sweep]`; `seeds` is a list, or so many from
    1 on. `out` is the folder in which points are kept: what is there is not run again, whether `congestlab sweep --out` or this
    put it there, and the command goes on from what this has left. Without it nothing is kept.

    `executor` runs the points: None is threads of this process (`threads` of them; all cores), else a
    `concurrent.futures.Executor` or a `dask.distributed.Client`, whose workers need this version of congestlab and, for traces
    alone, the same files. They send results back; a worker that is lost loses no point. `batch` is points a task.

    `shard=(i, n)` runs part i of n of the points on threads, as `--shard`, and returns None while other parts are missing.

    Raises `ScenarioError` before anything is run, and warns of what may surprise (`ScenarioWarning`). Ctrl-C ends it; what is complete in `out` stays.
    """
    base = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    spec = dict(Scenario(base, set=set)._spec)
    spec["grid"] = spec["grid"] + grid_of(grid)
    if seeds is not None:
        spec["seeds"] = [_whole("seeds", seed) for seed in seeds] if isinstance(seeds, Iterable) else _first(seeds)
    if spec["seeds"] == []:
        raise Refused("seeds: there are none", "allowed: a number from 1 on, or a list")
    native = _read(spec)
    with refusals(spec):
        _warn([*json.loads(native.warnings), *json.loads(native.check())])
    if spec["text"] is None:
        # Workers need not see the file.
        spec["text"] = native.written
    if shard is not None and (executor is not None or out is None):
        raise Refused("shard is for threads and a folder that all parts share", "give out, and no executor")
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.fspath(out) if out is not None else temporary
        with refusals(spec):
            if executor is None:
                return native.sweep(folder, _whole("threads", threads or os.cpu_count() or 1), shard)
            return native.sweep_elsewhere(folder, _submitter(executor, spec, batch))


def _first(seeds: int) -> list[int]:
    count = _whole("seeds", seeds)
    if count > _SEEDS_MAX:
        raise Refused(f"seeds is {count}", f"allowed: a number up to {_SEEDS_MAX}, as of the command, or a list")
    return list(range(1, count + 1))


def _points(spec: dict[str, Any], places: list[int]) -> _Done:
    """Runs points, wherever this is called."""
    done: _Done = _again(spec)._native.run_points(places)
    return done


def _submitter(executor: Any, spec: dict[str, Any], batch: int | None) -> Any:
    is_dask = type(executor).__module__.startswith("distributed") and hasattr(executor, "scatter")
    if not is_dask and not isinstance(executor, concurrent.futures.Executor):
        raise Refused(
            f"executor is {type(executor).__name__}",
            "allowed: None, a concurrent.futures.Executor, a dask.distributed.Client",
        )

    def work(missing: list[int]) -> Iterator[_Done]:
        workers = _workers(executor, is_dask)
        size = batch or max(1, min(_BATCH_MAX, -(-len(missing) // (workers * _TASKS))))
        batches = [missing[first : first + size] for first in range(0, len(missing), size)]
        return _on_dask(executor, spec, batches) if is_dask else _on_futures(executor, spec, batches)

    return work


def _workers(executor: Any, is_dask: bool) -> int:
    if is_dask:
        return max(1, sum(executor.nthreads().values()))
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def _on_futures(executor: concurrent.futures.Executor, spec: dict[str, Any], batches: list[list[int]]) -> Iterator[_Done]:
    futures = [executor.submit(_points, spec, places) for places in batches]
    failure: BaseException | None = None
    try:
        for future in concurrent.futures.as_completed(futures):
            if future.cancelled():
                continue
            failure = failure or future.exception()
            if failure is not None:
                # Nothing more is begun, and what was is kept.
                for other in futures:
                    other.cancel()
            if future.exception() is None:
                yield future.result()
    finally:
        for future in futures:
            future.cancel()
    if failure is not None:
        raise failure


def _on_dask(client: Any, spec: dict[str, Any], batches: list[list[int]]) -> Iterator[_Done]:
    from dask.distributed import as_completed

    shared = client.scatter(spec, broadcast=True, hash=False)
    # pure=False: or equal points of another sweep were taken for these. What is lost with a worker is run by another.
    futures = client.map(_points, [shared] * len(batches), batches, pure=False, retries=3)
    try:
        for future, done in as_completed(futures, with_results=True):
            yield done
            future.release()
    finally:
        client.cancel(futures)
