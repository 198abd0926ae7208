"""A link or a sender as the agent of a Gymnasium environment. Wants `pip install gymnasium`.

>>> import congestlab.env
>>> env = congestlab.env.CongestionEnv(scenario, agent="flows.ftp", interval="20 ms")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy

from . import _native
from ._scenario import Refused, Scenario, _warn, refusals

__all__ = ["CongestionEnv"]

_FLOWS = ("window_packets", "srtt_ms", "rtt_min_ms", "acked_mbps", "losses", "interval_ms")
_LINKS = ("capacity_mbps", "arrived_mbps", "departed_mbps", "backlog_ms", "marked_share", "interval_ms")


class CongestionEnv(gymnasium.Env[numpy.ndarray, numpy.ndarray]):
    """One run is one episode, one control interval is one step.

    `scenario` is a `Scenario` or what one is made from. `agent` is a group of one flow, `flows.NAME`, or a link, `links.NAME`;
    the law that the file gives it is replaced. `interval` is the length of a step: of a link exactly, of a flow until the
    first acknowledgment or timeout behind it.

    Actions are `Box(shape=(1,))`. Of a flow, `a` in [-1, 1] multiplies the window by 2^a; a timeout makes it one segment. Of a
    link, the share in [0, 1] of packets with ECN that it marks, evenly spaced: flows want `ecn = true` or a law of marks.

    Observations are what the last interval saw, `float32`, by the names in `observed`:

    - flow: `window_packets`, `srtt_ms`, `rtt_min_ms`, `acked_mbps` (Mbit/s), `losses`, `interval_ms`;
    - link: `capacity_mbps`, `arrived_mbps`, `departed_mbps`, `backlog_ms` (what waits, at the capacity), `marked_share`,
      `interval_ms`.

    `reward` makes a number of a dict of these; by default rate (Mbit/s) less a tenth for each ms of queueing and each loss.

    `reset(seed=n)` sets the scenario's seed too: equal seeds and actions give equal episodes. An episode is truncated at the
    end of the run; `info["summary"]` is then the object of results.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
        agent: str,
        *,
        interval: str | int = "10 ms",
        reward: Callable[[dict[str, float]], float] | None = None,
        render_mode: None = None,
    ) -> None:
        self.render_mode = render_mode
        self._scenario = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
        _warn(self._scenario.warnings)
        self._agent = agent
        self._interval_ns = interval if isinstance(interval, int) else _nanoseconds(interval)
        self._is_link = agent.startswith("links.")
        self.observed = _LINKS if self._is_link else _FLOWS
        self._reward = reward or (_link_reward if self._is_link else _flow_reward)
        self._episode: _native.Episode | None = None
        self._is_over = True
        # A mistake in the agent's name is told here.
        self._begin(self._scenario).close()
        least = 0.0 if self._is_link else -1.0
        self.action_space = gymnasium.spaces.Box(least, 1.0, (1,), numpy.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, numpy.inf, (len(self.observed),), numpy.float32)

    def _begin(self, scenario: Scenario) -> _native.Episode:
        with refusals():
            return _native.Episode(scenario._native, self._agent, self._interval_ns)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begins a run, to the end of its first interval. Without `seed` the run's is drawn."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(1 << 31)) if seed is None else seed
        self._episode = self._begin(Scenario(self._scenario, seed=drawn))
        seen = self._episode.next(None)
        self._is_over = seen is None
        if seen is None:
            raise Refused(f"`{self._agent}` has nothing to decide before the run ends", "a longer run, a shorter interval")
        return numpy.array(seen, numpy.float32), {"seed": drawn}

    def step(self, action: numpy.ndarray) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Answers for the interval that begins, and goes on to its end."""
        if self._episode is None or self._is_over:
            raise gymnasium.error.ResetNeeded("the run is over: call reset()")
        seen = self._episode.next(float(numpy.asarray(action).reshape(-1)[0]))
        if seen is None:
            self._is_over = True
            nothing = numpy.zeros(len(self.observed), numpy.float32)
            return nothing, 0.0, False, True, {"summary": json.loads(self._episode.json())}
        reward = float(self._reward(dict(zip(self.observed, seen, strict=True))))
        return numpy.array(seen, numpy.float32), reward, False, False, {}

    def close(self) -> None:
        """Ends the run."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None
        self._is_over = True


def _flow_reward(seen: dict[str, float]) -> float:
    return seen["acked_mbps"] - 0.1 * (seen["srtt_ms"] - seen["rtt_min_ms"]) - 0.1 * seen["losses"]


def _link_reward(seen: dict[str, float]) -> float:
    return seen["departed_mbps"] - 0.1 * seen["backlog_ms"]


def _nanoseconds(interval: str) -> int:
    units = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
    number, _, unit = interval.strip().partition(" ")
    try:
        length = round(float(number) * units[unit.strip()])
    except (KeyError, ValueError):
        length = 0
    if length < 1:
        raise Refused(f"interval is {interval!r}", "allowed: a time with ns, us, ms or s, such as \"10 ms\"")
    return length
