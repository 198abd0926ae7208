"""Sweeps: one table, whoever runs the points, and the command and this go on from each other."""

import concurrent.futures
import os
import shutil
import signal
import threading
import time

import congestlab as cl
import polars
import pytest

from conftest import TCP, XCP

GRID = {"links.b.rate": ["5 Mbit/s", "10 Mbit/s"], "flows.f.count": [1, 2, 3]}


def frame(table):
    return polars.DataFrame(table)


@pytest.fixture(scope="module")
def expected():
    return frame(cl.sweep(TCP, GRID, 2, threads=1))


def records(folder):
    return sum(path.stat().st_size for path in (folder / "points").glob("*.log"))


def test_the_table_has_every_point(expected):
    of_runs = expected.filter(polars.col("kind") == "run")
    assert len(of_runs) == 12 and of_runs["seed"].to_list() == [1, 2] * 6
    assert of_runs["flows.f.count"].to_list() == [1, 1, 2, 2, 3, 3] * 2
    first = cl.run(TCP, seed=2, set={"links.b.rate": "10 Mbit/s", "flows.f.count": 3})
    assert of_runs["fingerprint"][-1] == first.fingerprint


@pytest.mark.parametrize("pool", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_executors_give_the_same_table(expected, pool):
    with pool(2) as executor:
        assert frame(cl.sweep(TCP, GRID, [1, 2], executor=executor, batch=2)).equals(expected)


def test_the_command_and_this_go_on_from_each_other(command, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(XCP)
    arguments = ["--grid", "flows.ftp.count=1,2,3", "--seeds", 2, "--quiet"]
    # The command's folder: nothing is left to run here, on threads and elsewhere.
    command("sweep", file, *arguments, "--out", tmp_path / "a")
    before = records(tmp_path / "a")
    kept = {name: (tmp_path / "a" / name).read_bytes() for name in ("results.parquet", "results.csv", "sweep.json")}
    grid = {"flows.ftp.count": [1, 2, 3]}
    table = frame(cl.sweep(file, grid, 2, out=tmp_path / "a"))

    class Nobody(concurrent.futures.Executor):
        def submit(self, *_, **__):
            raise AssertionError("nothing is left to run")

    assert frame(cl.sweep(file, grid, 2, out=tmp_path / "a", executor=Nobody())).equals(table)
    assert records(tmp_path / "a") == before
    # This one's: nothing is left to the command, and the files are the same bytes.
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert frame(cl.sweep(file, grid, 2, out=tmp_path / "b", executor=executor)).equals(table)
    for name, content in kept.items():
        assert (tmp_path / "b" / name).read_bytes() == content, name
    before = records(tmp_path / "b")
    command("sweep", file, *arguments, "--out", tmp_path / "b")
    assert records(tmp_path / "b") == before
    assert table["seed"].max() == 2 and len(table.filter(polars.col("kind") == "run")) == 6


def test_seeds_that_change_nothing_are_warned_of():
    with pytest.warns(UserWarning, match="seeds changed nothing: no run drew a random number"):
        cl.sweep(TCP, {"flows.f.count": [1, 2]}, 2)
    with pytest.raises(cl.Refused, match="both give run.seed a value"):
        cl.Scenario(TCP, seed=3, set={"run.seed": 4})


def test_parts_make_the_whole(expected, tmp_path):
    assert cl.sweep(TCP, GRID, 2, out=tmp_path, shard=(1, 2)) is None
    assert frame(cl.sweep(TCP, GRID, 2, out=tmp_path, shard=(2, 2))).equals(expected)
    with pytest.raises(ValueError, match=r"no part 3 of 2"):
        cl.sweep(TCP, GRID, 2, out=tmp_path, shard=(3, 2))


def test_what_was_done_when_an_executor_failed_is_kept(expected, tmp_path):
    class Breaks(concurrent.futures.Executor):
        _max_workers = 1
        left = 2

        def submit(self, work, *arguments):
            future = concurrent.futures.Future()
            self.left -= 1
            if self.left < 0:
                future.set_exception(OSError("the cluster is gone"))
            else:
                future.set_result(work(*arguments))
            return future

    with pytest.raises(OSError, match="the cluster is gone"):
        cl.sweep(TCP, GRID, 2, out=tmp_path, executor=Breaks(), batch=3)
    assert records(tmp_path) > 0
    assert frame(cl.sweep(TCP, GRID, 2, out=tmp_path)).equals(expected)


def test_mistakes_are_told_before_anything_runs(tmp_path):
    with pytest.raises(cl.ScenarioError, match="can mean two things"):
        cl.sweep(TCP, {"links.b.rate": ["10 Mbit/s", "10 mbps"]}, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(cl.Refused, match="a list of values"):
        cl.sweep(TCP, {"links.b.rate": "10 Mbit/s"})
    with pytest.raises(cl.Refused, match="seeds is 1000000000000; allowed: a number up to 100000"):
        cl.sweep(TCP, GRID, 10**12)
    with pytest.raises(cl.Refused, match="seeds is 1.5"):
        cl.sweep(TCP, GRID, [1.5])
    with pytest.raises(cl.Refused, match="executor is int"):
        cl.sweep(TCP, GRID, executor=4)


def test_dask_gives_the_same_table_and_a_killed_worker_costs_no_point(expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert frame(cl.sweep(TCP, GRID, 2, executor=client, batch=1)).equals(expected)
        # Points that take a while, and one of two workers killed while it is at one.
        long = {**TCP, "run": {"duration": "400 s"}}
        pids = client.run(os.getpid)
        killed = threading.Event()

        def kill():
            deadline = time.monotonic() + 60
            while not list((tmp_path / "points").glob("*.log")) and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            killed.set()

        thread = threading.Thread(target=kill)
        thread.start()
        table = frame(cl.sweep(long, GRID, 4, executor=client, batch=1, out=tmp_path))
        thread.join()
        assert killed.is_set()
        assert set(client.run(os.getpid).values()) != set(pids.values()), "one was killed"
    of_runs = table.filter(polars.col("kind") == "run")
    assert len(of_runs) == 24
    shutil.rmtree(tmp_path / "points")
    assert frame(cl.sweep(long, GRID, 4)).equals(table)
