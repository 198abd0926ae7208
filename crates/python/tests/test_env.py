"""The environment: Gymnasium's checker, equal episodes for equal seeds, and how fast it is."""

import time

import congestlab as cl
import pytest

from conftest import TCP

gymnasium = pytest.importorskip("gymnasium")
numpy = pytest.importorskip("numpy")

from congestlab.env import CongestionEnv  # noqa: E402

MARKS = {**TCP, "flows": {"f": {"law": "dctcp", "count": 2, "path": ["b"]}}}


def environments(duration="8 s"):
    run = {"run": {"duration": duration}}
    return {
        "flow": CongestionEnv({**TCP, **run}, "flows.f", interval="10 ms"),
        "link": CongestionEnv({**MARKS, **run}, "links.b", interval="10 ms"),
    }


@pytest.mark.parametrize("agent", ["flow", "link"])
@pytest.mark.filterwarnings("ignore:.*Box observation space maximum value is infinity")
def test_gymnasiums_checker_passes(agent):
    from gymnasium.utils.env_checker import check_env

    env = environments()[agent]
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("agent", ["flow", "link"])
def test_equal_seeds_and_actions_are_equal_episodes(agent):
    def episode(seed):
        env = environments("3 s")[agent]
        rng = numpy.random.default_rng(5)
        seen, _ = env.reset(seed=seed)
        told = [seen.tolist()]
        while True:
            seen, reward, terminated, truncated, info = env.step(rng.uniform(0, 0.2, 1).astype(numpy.float32))
            told.append((seen.tolist(), reward))
            assert not terminated
            if truncated:
                with pytest.raises(gymnasium.error.ResetNeeded):
                    env.step(numpy.zeros(1, numpy.float32))
                env.close()
                return told, info["summary"]["fingerprint"]

    one, again = episode(3), episode(3)
    assert one == again and len(one[0]) > 100


def test_what_an_agent_does_changes_what_it_sees():
    env = environments()["flow"]
    windows = {}
    for action in (-1.0, 0.0, 0.1):
        env.reset(seed=1)
        for _ in range(20):
            seen, reward, *_ = env.step(numpy.array([action], numpy.float32))
        windows[action] = dict(zip(env.observed, seen, strict=True))["window_packets"]
    env.close()
    assert windows[-1.0] == 1 < windows[0.0] < windows[0.1]

    env = environments()["link"]
    rates = []
    for share in (0.0, 1.0):
        env.reset(seed=1)
        total = 0.0
        for _ in range(300):
            seen, *_ = env.step(numpy.array([share], numpy.float32))
            total += dict(zip(env.observed, seen, strict=True))["backlog_ms"]
        rates.append(total)
    env.close()
    assert rates[1] < rates[0] / 2, "marks empty the queue"


def test_an_agent_that_changes_nothing_is_the_runs_own_interval_by_interval():
    env = environments("3 s")["link"]
    env.reset(seed=1)
    while not (end := env.step(numpy.zeros(1, numpy.float32)))[3]:
        pass
    env.close()
    plain = cl.run({**MARKS, "run": {"duration": "3 s"}}, seed=1)
    flows = [flow["delivered_bytes"] for flow in end[4]["summary"]["flows"]["f"]]
    assert flows == [flow["delivered_bytes"] for flow in plain.summary["flows"]["f"]]


def test_mistakes_are_told():
    with pytest.raises(cl.Refused, match="no `flows.g` to decide for.*allowed: links.b, links.b.reverse, flows.f"):
        CongestionEnv(TCP, "flows.g")
    with pytest.raises(cl.Refused, match="2 flows, and an agent decides for one"):
        CongestionEnv(MARKS, "flows.f")
    with pytest.raises(cl.Refused, match="interval is '10'"):
        CongestionEnv(TCP, "flows.f", interval="10")
    with pytest.raises(cl.Refused, match="nothing to decide"):
        CongestionEnv(TCP, "flows.f", interval="1000 s").reset(seed=1)


def test_episodes_that_are_left_end():
    import threading

    env = environments()["flow"]
    for seed in range(50):
        env.reset(seed=seed)
    del env
    deadline = time.monotonic() + 20
    threads = lambda: len([name for name in __import__("os").listdir("/proc/self/task")])  # noqa: E731
    while threads() > threading.active_count() + 40 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threads() <= threading.active_count() + 40


def test_ten_thousand_steps_a_second(capsys):
    # One flow on 10 Mbit/s, a step of 10 ms. The best of five, for others use the machine, too.
    env = environments("400 s")["flow"]
    action, best = numpy.zeros(1, numpy.float32), 0.0
    for seed in range(1, 6):
        env.reset(seed=seed)
        start = time.perf_counter()
        for _ in range(4_000):
            env.step(action)
        best = max(best, 4_000 / (time.perf_counter() - start))
    env.close()
    with capsys.disabled():
        print(f"\n{best:.0f} steps/s")
    assert best >= 10_000
