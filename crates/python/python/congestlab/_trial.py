"""What every law must satisfy, asked of laws in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from . import _native
from ._scenario import refusals

__all__ = ["Answered", "Trial", "check_law"]


class Answered(NamedTuple):
    """A question and its answer: `ok`, `FAIL` or `skip`, with what was seen, what is broken, or why it was not asked."""

    question: str
    answer: str
    details: str


class Trial(Sequence[Answered]):
    """The answers of `check_law`, in order. As a text it is what `congestlab check law` prints."""

    def __init__(self, answers: Sequence[Answered]) -> None:
        self._answers = tuple(answers)

    @property
    def holds(self) -> bool:
        """Whether nothing fails."""
        return all(answered.answer != "FAIL" for answered in self)

    @overload
    def __getitem__(self, place: int) -> Answered: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Answered, ...]: ...
    def __getitem__(self, place: int | slice) -> Answered | tuple[Answered, ...]:
        return self._answers[place]

    def __len__(self) -> int:
        return len(self._answers)

    def __str__(self) -> str:
        return "\n".join(f"{answer:<5} {question}\n      {details}" for question, answer, details in self)

    def __repr__(self) -> str:
        failed = [answered.question for answered in self if answered.answer == "FAIL"]
        return f"<congestlab.Trial: {'holds' if self.holds else 'fails: ' + '; '.join(failed)}>"


def check_law(*laws: Any) -> Trial:
    """Asks of a law of senders, of one of links, or of both together what every law must satisfy, as `congestlab check law`.

    Each question is asked of objects that are made for it: with any input, with control intervals of any length, on a slow,
    a usual and a fast link, by both engines and two threads. An exception of the law is an answer. What a link law grants is
    asked for if it has `only_lowers(came, left)`, which says of a packet whether it left with no more than it came with.

    Takes seconds. Ctrl-C ends it. Raises `TypeError` for what is no law.
    """
    with refusals():
        return Trial([Answered(*told) for told in _native.check_law(list(laws))])
