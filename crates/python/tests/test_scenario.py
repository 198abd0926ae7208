"""Scenarios: every way in has the same errors."""

import dataclasses
import datetime
import pickle

import congestlab as cl
import pytest

from conftest import TCP, XCP


def test_every_way_in_gives_the_same_run(tmp_path, run):
    (tmp_path / "s.toml").write_text(XCP)
    tables = {
        "run": {"duration": datetime.timedelta(seconds=10), "warmup": "2 s"},
        "links": {"bottleneck": cl.Link(rate="10 Mbit/s", delay="20 ms", queue="1 BDP", law="xcp")},
        "flows": {"ftp": cl.Flows(law="xcp", count=2, path=["bottleneck"], start={"every": "100 ms"})},
    }

    @dataclasses.dataclass
    class Group:
        law: str = "xcp"
        count: int = 2
        path: tuple[str, ...] = ("bottleneck",)
        start: dict = dataclasses.field(default_factory=lambda: {"every": "100 ms"})
        stop: None = None

    ways = [
        cl.Scenario(XCP),
        cl.Scenario(tmp_path / "s.toml"),
        cl.Scenario(str(tmp_path / "s.toml")),
        cl.Scenario(tables),
        cl.Scenario(**tables),
        cl.Scenario({**tables, "flows": {"ftp": Group()}}),
        pickle.loads(pickle.dumps(cl.Scenario(tables))),
    ]
    assert {cl.run(scenario).fingerprint for scenario in ways} == {run.fingerprint}
    assert len({scenario.normalised for scenario in ways}) == 1
    assert ways[1].name == "s" and ways[0].name == "scenario"


def test_what_is_wrong_has_its_place_and_what_is_allowed(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(XCP.replace("10 Mbit/s", "10 mbps").replace('law = "xcp"\ncount', 'law = "xpc"\ncount'))
    with pytest.raises(cl.ScenarioError) as error:
        cl.Scenario(file)
    rate, law = error.value.diagnostics
    assert (rate["code"], rate["file"], rate["line"], rate["column"]) == ("scenario::unit", str(file), 7, 8)
    assert "did you mean `xcp`" in law["help"]
    assert f"{file}:7:8: `links.bottleneck.rate`" in str(error.value)

    with pytest.raises(cl.ScenarioError, match=r"^links.b.rate: error: .* can mean two things") as error:
        cl.Scenario({**TCP, "links": {"b": cl.Link(rate="10 mbps", delay="10 ms")}})
    assert error.value.diagnostics[0]["path"] == "links.b.rate"
    assert error.value.diagnostics[0]["code"] == "scenario::unit"

    with pytest.raises(cl.ScenarioError, match="--set"):
        cl.Scenario(XCP, set={"links.bottleneck.rate": "fast"})
    with pytest.raises(cl.ScenarioError, match="can not read"):
        cl.Scenario(tmp_path / "nothing.toml")
    with pytest.raises(cl.Refused, match="seed is -1"):
        cl.Scenario(XCP, seed=-1)
    with pytest.raises(cl.Refused, match="threads is -1"):
        cl.run(XCP, threads=-1)
    with pytest.raises(TypeError, match="links.b.rate: complex has no TOML"):
        cl.Scenario({**TCP, "links": {"b": {"rate": 1j}}})
    with pytest.raises(TypeError, match="a path, a text in TOML or a mapping, not int"):
        cl.Scenario(7)


@pytest.mark.parametrize("text", ['x"y', "a\nb", "\x7f", "ü\u2028", "\\", "]\n[links.x]", "'''"])
def test_texts_stay_texts(text):
    tables = {"run": {"duration": "1 s"}, "links": {text: TCP["links"]["b"]}, "flows": {text: {"law": "sack", "path": [text]}}}
    try:
        scenario = cl.Scenario(tables)
    except cl.ScenarioError as error:
        # A name that the language refuses is refused as a name, and not read as something else.
        assert all(diagnostic["code"] != "scenario::toml" for diagnostic in error.diagnostics), error
    else:
        assert list(scenario.flows) == [text] and text in scenario.links


def test_set_replaces_and_star_is_every_one():
    scenario = cl.Scenario(XCP, seed=5, set={"flows.*.count": 4, "links.bottleneck.queue": "50 packets"})
    assert scenario.seed == 5 and scenario.flows == {"ftp": ("xcp", 4)}
    assert cl.Scenario(scenario, seed=6).seed == 6 and scenario.seed == 5


def test_a_law_by_name_takes_its_links_along():
    scenario = cl.Scenario(XCP, law="rcp")
    assert scenario.flows["ftp"][0] == "rcp" and scenario.links["bottleneck"] == "rcp"
    assert cl.Scenario(XCP, law="sack").links["bottleneck"] is None
    mixed = cl.Scenario(XCP, law={"bottleneck": "pxcp"})
    assert mixed.flows["ftp"][0] == "xcp" and mixed.links["bottleneck"] == "pxcp"
    with pytest.raises(cl.Refused, match="no link and no group.*flows.ftp"):
        cl.Scenario(XCP, law={"fpt": "rcp"})
    with pytest.raises(cl.ScenarioError, match="unknown law"):
        cl.Scenario(XCP, law="rpc")


def test_points_are_settings():
    scenario = cl.Scenario(XCP + '[sweep]\ngrid = { "links.bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"], "flows.ftp.count" = [1, 2] }\n')
    points = scenario.points()
    assert points[0] == {"links.bottleneck.rate": "10 Mbit/s", "flows.ftp.count": 1} and len(points) == 4
    assert len({cl.run(scenario, set=point).fingerprint for point in points}) == 4
    assert scenario.check() == []


def test_warnings_are_told():
    # Flows of XCP over a link that does not know it.
    scenario = cl.Scenario(XCP, set={"links.bottleneck.law": "none"})
    assert all(warning["severity"] == "warning" for warning in scenario.warnings)


def test_numbers_and_arrays_of_numpy_are_numbers_and_lists(run):
    numpy = pytest.importorskip("numpy")
    assert cl.Scenario(XCP, seed=numpy.int64(7)).seed == 7
    arrays = {"flows.ftp.path": numpy.array(["bottleneck"]), "flows.ftp.count": numpy.int32(2)}
    assert cl.run(XCP, set=arrays).fingerprint == run.fingerprint
    for seed in (True, 1.0, numpy.float64(1)):
        with pytest.raises(cl.Refused, match="seed is"):
            cl.Scenario(XCP, seed=seed)
