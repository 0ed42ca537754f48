"""One query on its way: groups still to ask, answers so far, and how silence becomes an answer.

A group that is refused for its size is halved; keys that a reply is silent about are asked again in
smaller groups, at last alone. No network here.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, NamedTuple, Protocol

from recon.gateway_client.interface.reply_outcomes import ReplyFinding
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.query.pace import AccountPace
from recon.gateway_client.query.query_reading import FailedKey, GroupAnswer, QueryReading, Record
from recon.gateway_client.query.query_refusal import stop_for

FAILURES_IN_A_ROW_MAX = 6
"""After so many groups without an answer to use the rest is not asked any more."""

ALONE_FROM = 4
"""So few silent keys are asked one by one, more of them in halves."""

Group = tuple[str, ...]


class Reader(Protocol[Record]):
    """Reads the HTTP 200 reply to a group of keys; total over any bytes."""

    def __call__(
        self, keys: Sequence[str], *, raw: RawReply, reading: QueryReading
    ) -> GroupAnswer[Record]:
        """The answer to the group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuestion(Generic[Record]):
    """What every group is asked."""

    path: str
    body: Literal["form", "json"]
    content_type: str
    rows_max: int
    keys_field: str
    """The field of the request that takes the joined keys."""
    reading: QueryReading
    silence: Literal["failed", "not_found"]
    """What it means when a key that was asked alone has no row."""
    read: Reader[Record]


@dataclass(frozen=True)  # with slots a generic alias of it could not be called (Python 3.11)
class Answers(Generic[Record]):
    """Every key that was asked stands in exactly one of found, not_found and failed."""

    found: tuple[Record, ...]
    """All records of every key, in the order of the keys."""
    not_found: tuple[str, ...]
    """Keys that the gateway knows nothing of."""
    failed: tuple[FailedKey, ...]
    findings: tuple[ReplyFinding, ...]
    calls: int
    """HTTP calls made, repeated ones included."""
    gateway_at: datetime | None = None
    """The earliest Date of the replies that answered; None where one of them had none."""


class Missed(NamedTuple):
    """Calls about a group that nobody answered."""

    since: float
    """When the first of them had failed, by the clock of the pace."""
    last: float
    reason: str
    """Of the last one."""


@dataclass(slots=True)
class Work(Generic[Record]):
    """One query on its way."""

    question: GroupQuestion[Record]
    groups: deque[Group]
    rows_max: int
    failed: dict[str, str]
    records: dict[str, list[Record]] = field(default_factory=dict)
    not_found: set[str] = field(default_factory=set)
    findings: list[ReplyFinding] = field(default_factory=list)
    calls: int = 0
    open_groups: int = 0
    failures_in_a_row: int = 0
    misses_in_a_row: int = 0
    """Calls since the last one that the gateway answered."""
    missed: dict[Group, Missed] = field(default_factory=dict)
    last_failure: str = ""
    dates: list[datetime | None] = field(default_factory=list)
    """The Date of each reply that answered some key."""

    @property
    def is_open(self) -> bool:
        """Whether anything is still to be asked, or being asked."""
        return bool(self.groups or self.open_groups)

    def next_group(self) -> Group:
        """The next group within the bound now in force; () when there is none at the moment."""
        while self.groups:
            group = self.groups.popleft()
            if len(group) <= self.rows_max:
                return group
            self.groups.extendleft(reversed(_halves(group)))
        return ()

    def is_hopeless(self, pace: AccountPace) -> bool:
        """Whether nothing more is worth asking: all is refused, or nobody answers."""
        if self.failures_in_a_row >= FAILURES_IN_A_ROW_MAX or pace.closed_because:
            return True
        return self.misses_in_a_row >= FAILURES_IN_A_ROW_MAX and pace.has_been_silent_too_long

    def miss(self, keys: Group, *, reason: str, pace: AccountPace) -> bool:
        """A call without an answer: True when its group will be asked again, else it has failed."""
        pace.missed()
        self.misses_in_a_row += 1
        self.last_failure = reason
        now = pace.seconds()
        since = self.missed[keys].since if keys in self.missed else now
        self.missed[keys] = Missed(since, now, reason)
        if now + pace.held_seconds < self.patient_until(keys, pace=pace):
            self.groups.append(keys)
            return True
        self.abandon(keys, pace=pace)
        return False

    def abandon(self, keys: Group, *, pace: AccountPace, why: str = "") -> None:
        """A group that is not asked again, or was not asked at all."""
        missed = self.missed.get(keys)
        if missed is None:
            why = why or pace.closed_because or self.last_failure
            self.fail(keys, reason=f"not asked any more: {why}")
            return
        seconds = missed.last - missed.since
        again = f"; asked again for {seconds:.0f} s" if seconds >= 1 else ""
        self.fail(keys, reason=f"{missed.reason}{again}")

    def patient_until(self, keys: Group, *, pace: AccountPace) -> float:
        """Until when this group may wait for a call, by the clock of the pace."""
        missed = self.missed.get(keys)
        return (missed.since if missed else pace.seconds()) + pace.patience_seconds

    def take(self, answer: GroupAnswer[Record], *, keys: Sequence[str]) -> None:
        """Book an answer; what it leaves open becomes smaller groups at the front.

        Raises:
            QueryRefusedError: no query can succeed before a person changes something.
        """
        self.misses_in_a_row = 0
        self.findings.extend(answer.findings)
        if answer.refusal in {"address", "signature", "merchant"}:
            stop_for(answer)
        if answer.refusal is not None:
            self._take_refusal(answer, keys=keys)
            return
        self.failures_in_a_row = 0
        for record in answer.records:
            self.records.setdefault(record.key, []).append(record)
        self.not_found.update(answer.not_found)
        self.failed.update(answer.failed)
        self._take_silence(answer.missing, keys=keys)

    def give_up(self, keys: Sequence[str], *, reason: str) -> None:
        """A group without any answer."""
        self.failures_in_a_row += 1
        self.last_failure = reason
        self.fail(keys, reason=reason)

    def fail(self, keys: Iterable[str], *, reason: str) -> None:
        """Keys without an answer."""
        for key in keys:
            self.failed[key] = reason

    def answers(self, keys: Sequence[str]) -> Answers[Record]:
        """What came of these keys, in an order that does not depend on which worker was first."""
        return Answers(
            found=tuple(record for key in keys for record in self.records.get(key, ())),
            not_found=tuple(key for key in keys if key in self.not_found),
            failed=tuple(FailedKey(key, self.failed[key]) for key in keys if key in self.failed),
            findings=tuple(sorted(self.findings, key=lambda answer: (answer.kind, str(answer)))),
            calls=self.calls,
            gateway_at=None if None in self.dates else min(filter(None, self.dates), default=None),
        )

    def _take_refusal(self, answer: GroupAnswer[Record], *, keys: Sequence[str]) -> None:
        if answer.refusal == "system" or len(keys) == 1:
            self.give_up(keys, reason=answer.reason)
            return
        halves = _halves(keys)
        if answer.refusal == "too_many":
            self.rows_max = min(self.rows_max, len(halves[0]))
        self.groups.extendleft(reversed(halves))

    def _take_silence(self, missing: Sequence[str], *, keys: Sequence[str]) -> None:
        if not missing:
            return
        if len(keys) == 1:
            if self.question.silence == "not_found":
                self.not_found.update(missing)
            else:
                self.fail(missing, reason="the gateway's reply has no row for it")
        elif len(missing) <= ALONE_FROM:
            self.groups.extendleft((key,) for key in reversed(missing))
        else:
            self.groups.extendleft(reversed(_halves(missing)))


def _halves(keys: Sequence[str]) -> list[Group]:
    middle = (len(keys) + 1) // 2
    return [tuple(keys[:middle]), tuple(keys[middle:])]
