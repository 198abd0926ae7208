"""Laws in Python: the same run as the same law in Rust, and mistakes that are told where they were made."""

import signal
import threading
import time

import congestlab as cl
import polars
import pytest

from conftest import TCP, XCP


class Reno(cl.SenderLaw):
    """crates/core/src/law/reno.rs, line by line."""

    def start(self, mss, initial_window):
        self.mss, self.window = mss, max(initial_window, mss)
        self.ssthresh, self.acked = 1 << 63, 0

    def on_ack(self, now_ns, ack):
        if not ack.is_window_limited:
            return
        if self.window < self.ssthresh:
            self.window += min(ack.acked, self.mss)
        elif not ack.in_recovery:
            self.acked += ack.acked
            if self.acked >= self.window:
                self.acked -= self.window
                self.window += self.mss

    def on_loss(self, now_ns, flight):
        self.ssthresh = self.window = max(flight // 2, 2 * self.mss)
        self.acked = 0

    def on_timeout(self, now_ns, flight, is_first):
        if is_first:
            self.ssthresh = max(flight // 2, 2 * self.mss)
        self.window, self.acked = self.mss, 0

    def on_restart(self, now_ns, initial_window):
        self.window, self.acked = min(self.window, max(initial_window, self.mss)), 0


#: Losses, timeouts and pauses: every method is called.
HARD = {
    "run": {"duration": "20 s"},
    "links": {"b": {"rate": "4 Mbit/s", "delay": "20 ms", "queue": "8 packets", "error": {"packet_error_rate": 0.02}}},
    "flows": {"f": {"law": "sack", "count": 3, "path": ["b"], "start": {"every": "1 s"}}},
}


@pytest.mark.parametrize("scenario", [TCP, HARD])
def test_a_law_in_python_is_the_same_run_as_in_rust(scenario):
    rust, python = cl.run(scenario), cl.run(scenario, law=Reno)
    assert python.fingerprint == rust.fingerprint
    assert polars.DataFrame(python.series).equals(polars.DataFrame(rust.series))
    # It did something: another law gives another run.
    assert cl.run(scenario, law=type("Half", (Reno,), {"on_ack": lambda *_: None})).fingerprint != rust.fingerprint


def test_timeouts_and_losses_reach_the_law():
    called = set()

    class Told(Reno):
        def on_loss(self, *arguments):
            called.add("loss")
            super().on_loss(*arguments)

        def on_timeout(self, *arguments):
            called.add("timeout")
            super().on_timeout(*arguments)

    cl.run(HARD, law=Told)
    assert called == {"loss", "timeout"}


def test_each_flow_has_an_object_of_its_own():
    class Counts(Reno):
        def __init__(self, most):
            self.most = most

        def on_ack(self, now_ns, ack):
            super().on_ack(now_ns, ack)
            self.window = min(self.window, self.most * self.mss)

    run = cl.run(HARD, law=Counts(most=2))
    assert max(polars.DataFrame(run.flows)["cwnd_max_packets"]) <= 4
    assert run.fingerprint == cl.run(HARD, law=Counts(most=2)).fingerprint


class Share(cl.LinkLaw):
    """Fair shares: the capacity by the number of flows seen in the last interval."""

    interval_ns = 50_000_000

    def start(self, capacity_Bps):
        super().start(capacity_Bps)
        self.flows, self.share = set(), 10_000

    def on_departure(self, now_ns, packet, backlog):
        header = packet.header
        if header is not None:
            self.flows.add(header[1])
            header[0] = min(header[0], self.share)
            packet.header = header

    def on_interval(self, now_ns, backlog):
        self.share = self.capacity_Bps // max(len(self.flows), 1)
        self.decision = self.share
        self.flows.clear()


class Paced(cl.SenderLaw):
    """Asks for all, and paces at what the least link of its path returns."""

    header_bytes = 8

    def on_ack(self, now_ns, ack):
        if ack.reply:
            self.pacing_Bps = ack.reply
            self.window = ack.reply * ack.srtt_ns // 1_000_000_000 + 2 * self.mss

    def on_send(self, now_ns, send, packet):
        packet.header = [(1 << 32) - 1, id(self) & 0xFFFF_FFFF]


def test_links_and_senders_talk_by_a_header():
    run = cl.run(XCP, law={"ftp": Paced, "bottleneck": Share}, events=True)
    assert run.summary["links"]["bottleneck"]["utilization"] > 0.9
    assert run.summary["jain"]["ftp"] > 0.999
    decisions = polars.DataFrame(run.events).filter(polars.col("event") == "control-interval")["value"]
    assert decisions[-1] == 10_000_000 // 8 // 2


def test_a_link_marks():
    class Tenth(cl.LinkLaw):
        count = 0

        def on_departure(self, now_ns, packet, backlog):
            if packet.ecn in (1, 2):
                self.count += 1
                if self.count % 10 == 0:
                    packet.ecn = 3

    marked = cl.run(TCP, law={"f": "dctcp", "b": Tenth})
    waits = [run.summary["links"]["b"]["queue_mean_packets"] for run in (marked, cl.run(TCP, law="dctcp"))]
    assert waits[0] < waits[1] / 2


class Broken(Reno):
    def on_ack(self, now_ns, ack):
        if now_ns > 10**9:
            raise RuntimeError("after a second")
        super().on_ack(now_ns, ack)


def test_an_exception_in_a_law_ends_the_run_and_is_raised():
    with pytest.raises(RuntimeError, match="after a second") as error:
        cl.run({**TCP, "run": {"duration": "9000 s"}}, law=Broken)
    assert error.traceback[-1].name == "on_ack"
    with pytest.raises(RuntimeError, match="after a second"):
        cl.run(TCP, law=type("Link", (), {"on_departure": lambda *_: (_ for _ in ()).throw(RuntimeError("after a second"))}))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (type("None_", (Reno,), {"on_ack": lambda self, *_: setattr(self, "window", None)}), "window is None"),
        (type("Minus", (Reno,), {"on_ack": lambda self, *_: setattr(self, "window", -1)}), "window is -1"),
        (type("Never", (cl.LinkLaw,), {"interval_ns": 0}), "interval_ns is 0"),
        (type("Adds", (cl.LinkLaw,), {"on_departure": lambda self, now, packet, backlog: setattr(packet, "header", [1])}), "adds none"),
        (type("Long", (Reno,), {"on_send": lambda self, now, send, packet: setattr(packet, "header", [1] * 8)}), "up to 7 words"),
        (type("Code", (Reno,), {"on_send": lambda self, now, send, packet: setattr(packet, "ecn", 99)}), "ecn is 99; allowed: 0"),
        (type("Coded", (cl.LinkLaw,), {"on_departure": lambda self, now, packet, backlog: setattr(packet, "ecn", -1)}), "ecn is -1"),
        (object, "is no law"),
        ({"g": Reno}, "no group of flows `g`.*allowed: f"),
    ],
)  # fmt: skip
def test_mistakes_are_told(law, message):
    if law is object:
        law = {"f": object}
    with pytest.raises((ValueError, TypeError, cl.Refused), match=message):
        cl.run(TCP, law=law)


def test_what_names_its_laws_refuses_one_without_a_name(tmp_path):
    run = cl.run(TCP, law=Reno)
    with pytest.raises(cl.Refused, match="one in Python has no name"):
        run.save(tmp_path)
    with pytest.raises(cl.Refused, match="one in Python has no name"):
        cl.sweep(cl.Scenario(TCP, law=Reno), {"flows.f.count": [1, 2]})
    # What shows and explains does not name them.
    assert run.explain("f[0]", 2)["flow"] == "f[0]" and len(run.report()) > 10_000


def test_ctrl_c_ends_a_law_that_never_returns():
    started = threading.Event()

    class Never(Reno):
        def on_ack(self, now_ns, ack):
            started.set()
            while True:
                pass

    def interrupt():
        started.wait()
        signal.raise_signal(signal.SIGINT)

    for asks in (lambda: cl.run(TCP, law=Never), lambda: cl.check_law(Never)):
        started.clear()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            asks()
        thread.join()


def test_ctrl_c_ends_a_law_that_sleeps_in_c():
    # A test may not wait for it, and no exception reaches a thread in C.
    asleep = threading.Event()

    class Sleeps(Reno):
        def on_ack(self, now_ns, ack):
            asleep.set()
            time.sleep(30)

    def interrupt():
        asleep.wait()
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match="on_ack of the law has not returned"):
        cl.run(TCP, law=Sleeps)
    assert time.monotonic() - began < 25, "it waited for the law"
    thread.join()


def test_check_law_names_the_method_that_never_returns():
    class Never(Reno):
        def on_timeout(self, *_):
            while True:
                pass

    told = answers(cl.check_law(Never))
    failed = [details for answer, details in told.values() if answer == "FAIL"]
    assert failed == ["on_timeout of the law has not returned for 10 s"], told
    assert ("skip", "what never ends above comes first") in told.values()


def test_a_window_without_bound_is_bounded_by_the_path():
    class Greedy(Reno):
        def on_ack(self, now_ns, ack):
            self.window = 2**64

    run = cl.run(TCP, law=Greedy)
    flows = run.summary["flows"]["f"]
    assert max(flow["cwnd_max_packets"] for flow in flows) < 10_000, "more than the path holds"
    assert max(flow["sent_packets"] for flow in flows) < 1_000_000
    assert cl.check_law(Greedy) is not None


def answers(trial):
    return {question: (answer, details) for question, answer, details in trial}


def test_check_law_asks_what_the_command_asks(command):
    trial = cl.check_law(Reno)
    assert trial.holds, trial
    told = answers(trial)
    asked = {row["question"]: (row["answer"], row["details"]) for row in command("check", "law", "sack", "--json", "--quiet")["answers"]}
    assert list(told) == [question for question in asked if not question.startswith("BPF")]
    # The same law in Rust: the same runs.
    runs = [question for question in told if "bit/s" in question]
    assert len(runs) == 3 and all(told[question] == asked[question] for question in runs)
    assert str(trial).startswith("ok    series: ") and "holds" in repr(trial)


def test_check_law_takes_a_link_and_its_senders():
    class Says(Share):
        def only_lowers(self, came, left):
            return came.header is None or left.header[0] <= came.header[0]

    class Raises(Says):
        def on_departure(self, now_ns, packet, backlog):
            packet.header = packet.header and [word | 1 << 31 for word in packet.header]

    lowers = "an overloaded link lowers what its own sender asks for"
    failed = lambda trial: [answered.question[:26] for answered in trial if answered.answer == "FAIL"]  # noqa: E731
    trial = cl.check_law(Paced, Share)
    assert answers(trial)[lowers][0] == "skip", trial
    # It counts flows in 50 ms, in which a link of 64 kbit/s carries no packet.
    assert failed(trial) == ["quantisation, 64 kbit/s: w"] and not trial.holds, trial
    trial = cl.check_law(Paced, Says)
    assert answers(trial)[lowers][0] == "ok", trial
    trial = cl.check_law(Raises)
    assert failed(trial) == ["any input: the link law ne"] and "raised" in str(trial), trial


def test_check_law_tells_what_a_law_raises():
    class Divides(Reno):
        def on_ack(self, now_ns, ack):
            self.window += self.mss * ack.acked // ack.srtt_ns

    trial = cl.check_law(Divides)
    assert not trial.holds and "ZeroDivisionError" in str(trial) and ", in line " in str(trial), trial
    with pytest.raises(TypeError, match="is no law"):
        cl.check_law(object)
    with pytest.raises(cl.Refused, match="two laws of senders"):
        cl.check_law(Reno, Paced)
    with pytest.raises(cl.Refused, match="no law"):
        cl.check_law()


def test_the_factor_of_the_documents(capsys):
    """Measured, and told; no machine is so quiet that a bound held."""
    scenario = {**TCP, "run": {"duration": "60 s"}}
    took = []
    for law in (None, Reno):
        start = time.perf_counter()
        cl.run(scenario, law=law, series=False)
        took.append(time.perf_counter() - start)
    with capsys.disabled():
        print(f"\nreno in Python takes {took[1] / took[0]:.0f} times as long as in Rust")
    assert took[1] > took[0]
