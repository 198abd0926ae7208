"""What the tests share: two small scenarios, and the command of the same code."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import congestlab as cl
import pytest

TOP = Path(__file__).parents[3]

#: Two flows of XCP on 10 Mbit/s.
XCP = """
[run]
duration = "10 s"
warmup = "2 s"

[links.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
law = "xcp"

[flows.ftp]
law = "xcp"
count = 2
path = ["bottleneck"]
start = { every = "100 ms" }
"""

#: One flow of TCP, and losses.
TCP = {
    "run": {"duration": "8 s"},
    "links": {"b": {"rate": "10 Mbit/s", "delay": "10 ms", "queue": "20 packets"}},
    "flows": {"f": {"law": "sack", "path": ["b"]}},
}


@pytest.fixture(scope="session")
def run():
    return cl.run(XCP)


@pytest.fixture(scope="session")
def command():
    """Calls the command. One of other code is a mistake: its results would be of another version."""
    found = os.environ.get("CONGESTLAB") or shutil.which("congestlab")
    if not found:
        pytest.skip("no command: set CONGESTLAB, or install the wheel")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    commit = cl._native.release.split("(")[1].rstrip(")")
    assert f"(commit {commit}, code {cl._native.code.split()[1]}," in version, f"{found} is {version}"

    def call(*arguments):
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    return call
