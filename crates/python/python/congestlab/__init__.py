"""Simulates explicit congestion control (XCP and others) beside TCP.

>>> import congestlab as cl
>>> run = cl.run("first.toml", seed=2, set={"links.bottleneck.rate": "20 Mbit/s"})
>>> run.summary["links"]["bottleneck"]["utilization"]
>>> polars.DataFrame(run.flows)

A run is a value: an equal scenario, seed and version give the same bits, here and by the command `congestlab`, which is
installed beside this package. Times in names end in their unit (`t_s`, `rtt_mean_ms`, `srtt_ns`), as do rates (`goodput_bps`,
bit/s; `capacity_Bps`, bytes a second).
"""

from ._law import Ack, LinkLaw, Packet, Send, SenderLaw
from ._native import Table, __version__
from ._run import Comparison, Explanation, Run, load, plot, run, style
from ._scenario import Flows, Link, Refused, Scenario, ScenarioError, ScenarioWarning
from ._sweep import sweep
from ._trial import Trial, check_law

__all__ = [
    "Ack",
    "Comparison",
    "Explanation",
    "Flows",
    "Link",
    "LinkLaw",
    "Packet",
    "Refused",
    "Run",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Send",
    "SenderLaw",
    "Table",
    "Trial",
    "__version__",
    "check_law",
    "load",
    "plot",
    "run",
    "style",
    "sweep",
]
