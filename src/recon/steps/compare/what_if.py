"""Past nights compared again under candidate rules, each after the simulated night before it.

Only what the nights themselves sealed is read; nothing is moved or signed. What a night reads is
decided before it compares, so changes of the rules that decide this (READ_BY) have no effect here
and are named instead.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from recon.config.rules import Rules
from recon.matching.breaks.movements import left_open
from recon.matching.breaks.result import Reconciliation
from recon.matching.codes import with_table
from recon.matching.frames.sources import KEY_COLUMNS, Previous, frame_of
from recon.model.errors import InputsMissingError, UsageError
from recon.model.money import format_minor_units
from recon.model.nights import Mode, NightRequest
from recon.model.terms import DIGITS_READ, SEVERE, Verdict
from recon.proof.engine import reconcile as compare
from recon.proof.proven import proven
from recon.steps.compare.rebuild import (
    NOT_STORED,
    compared_then,
    rebuilt,
    run_named,
    stored_inputs,
)
from recon.steps.compare.reconcile import with_missing_sources, with_stopped_sending
from recon.steps.compare.rules_change import (
    EVENT,
    TRIED,
    Change,
    ChangedRule,
    changed_rules,
    changed_sets,
    reported_of,
    tried,
    unverified_sets,
)
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import StoredResult
from recon.store.database import history
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows


@dataclass(frozen=True, slots=True)
class Difference:
    """Two nights side by side."""

    first: str
    second: str
    """Business date, run and verdict as text."""
    same_rules: bool
    unchanged: int
    rules: tuple[ChangedRule, ...]
    """Empty when they are the same."""
    moved_by_rules: str
    """Sentence on what changed rules alone moved in the second night; "" where none changed."""
    changes: tuple[Change, ...]


def difference(first: str, second: str, *, environment: Environment) -> Difference:
    """How the second night's result differs from the first one's.

    Raises:
        UsageError: one of the nights cannot be found or has no result, or they are of two accounts.
    """
    with environment.store.reading() as connection:
        earlier, other = (run_named(connection, name) for name in (first, second))
        before, after = (
            StoredResult(connection, run.run_id, environment).whole() for run in (earlier, other)
        )
    if earlier.account != other.account:
        msg = f"{first} and {second} are nights of two accounts"
        raise UsageError(msg)
    if before is None or after is None:
        msg = f"run {earlier.run_id if before is None else other.run_id} has no result"
        raise UsageError(msg)
    same_rules = before.rules_digest == after.rules_digest
    changes, unchanged = changed_sets(before, after)
    rules, moved = ((), "") if same_rules else _by_rules(earlier, other, environment=environment)
    return Difference(
        f"{earlier.business_date} ({earlier.run_id}): {before.verdict}",
        f"{other.business_date} ({other.run_id}): {after.verdict}",
        same_rules,
        unchanged,
        rules,
        moved,
        changes,
    )


def _by_rules(
    first: runs.Run, second: runs.Run, *, environment: Environment
) -> tuple[tuple[ChangedRule, ...], str]:
    """Which rules changed, and what that moved in the second night."""
    try:
        _, then, _ = stored_inputs(first, environment=environment)
        now = rebuilt(second, environment=environment)
    except InputsMissingError as error:
        return (), f"What the change of the rules moved is not known: {error}."
    as_before = compare(now.sources, rules=then, as_of=second.as_of, previous=now.previous)
    moved, _ = changed_sets(as_before, now.result)
    return changed_rules(then, now.rules), reported_of(moved)


NIGHTS_MAX = 400
"""Most days of one request; longer periods are requested in parts."""
READ_BY = ("window.", "calendar.timezone", "calendar.cut_off", "query_result.")
"""Rules that decide what a night reads and as of when; their change cannot be simulated."""

Progress = Callable[[str], None]
"""Takes one sentence after each night."""


@dataclass(frozen=True, slots=True)
class ComparedAgain:
    """One night under the candidate rules."""

    run_id: str
    business_date: date
    verdict_then: Verdict
    verdict: Verdict
    breaks_then: int
    breaks: int
    severe_then: int
    """Of severity high or above: those need an owner."""
    severe: int
    changes: tuple[Change, ...]
    """The sets that are classified differently."""
    digest: str
    is_same: bool
    """Whether the result equals the night's own, to the byte."""
    unverified_then: int = 0
    """UNVERIFIED sets: no answer or row of them can be used."""
    unverified: int = 0
    never_verified: int = 0
    """Those among them that are UNVERIFIED under both rules."""


@dataclass(frozen=True, slots=True)
class NeverRaised:
    """A break that people answered and that the candidate rules would not have raised."""

    break_id: str
    code: str
    order_no: str
    currency: str
    exposure: int
    """Minor units, of the night that raised it."""
    business_date: date
    """The first of the requested nights that has it."""
    answered_by: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What candidate rules would have made of past nights."""

    tried: str
    """Digest of the candidate rules."""
    rules: tuple[ChangedRule, ...]
    """The keys that differ from the rules of the last of these nights."""
    not_played: tuple[ChangedRule, ...]
    """Those among them that decide what a night reads."""
    nights: tuple[ComparedAgain, ...]
    never_raised: tuple[NeverRaised, ...]
    digest: str
    """Over the candidate rules and every night's result; identifies this answer."""

    def sentence(self) -> str:
        """The outcome in one sentence."""
        same = sum(night.is_same for night in self.nights)
        first, last = self.nights[0].business_date, self.nights[-1].business_date
        return (
            f"{same} of {len(self.nights)} nights from {first} to {last} the same to the byte; "
            f"{len(self.never_raised)} answered breaks would never have been raised; digest "
            f"{self.digest[:DIGITS_READ]}"
        )


@dataclass(frozen=True, slots=True)
class Rejudged:
    """Items of one night that go from one classification to another, in one currency."""

    business_date: date
    before: str
    after: str
    currency: str
    count: int
    exposure: int
    """Minor units."""

    @property
    def money(self) -> str:
        """The exposure in decimals with its currency; blank where it has no currency."""
        if not self.currency:
            return ""
        return f"{format_minor_units(self.exposure, currency=self.currency)} {self.currency}"


def what_if(
    rules: Rules,
    *,
    account: tuple[str, str],
    first: date,
    last: date,
    environment: Environment,
    progress: Progress = lambda _sentence: None,
) -> WhatIf:
    """Compare the account's finished live nights of these business dates under other rules.

    Raises:
        UsageError: there are no days or too many, or no night of them is finished.
        InputsMissingError: a night did not seal what it compared.
        ArchiveError: a night's folder cannot be reached, or differs from what was sealed.
    """
    rules = with_table(rules)
    chosen = _runs(account, first=first, last=last, environment=environment)
    nights: list[ComparedAgain] = []
    raised: dict[str, NeverRaised] = {}
    again: set[str] = set()
    before: _Simulated | None = None
    for run in chosen:
        then, before = _classified(run, rules=rules, before=before, environment=environment)
        night = _side_by_side(run, then=then, now=before.result)
        nights.append(night)
        for row in then.breaks.to_dict("records"):
            cells = {name: row[name] for name in ("break_id", "code", "order_no", "currency")}
            exposure = int(row["exposure"])
            broken = NeverRaised(
                **cells, exposure=exposure, business_date=run.business_date, answered_by=""
            )
            raised.setdefault(row["break_id"], broken)
        again |= {*before.result.breaks["break_id"]}
        progress(_sentence(night))
    _, rules_then, _ = stored_inputs(chosen[-1], environment=environment)
    changed = changed_rules(rules_then, rules)
    with environment.store.reading() as connection:
        answers = resolution_rows.stored_answers(connection, account)
    never_raised = (
        replace(each, answered_by=answers[break_id].by)
        for break_id, each in raised.items()
        if break_id in answers and break_id not in again
    )
    parts = [rules.digest, *(f"{night.run_id} {night.digest}" for night in nights)]
    return WhatIf(
        rules.digest,
        changed,
        tuple(rule for rule in changed if rule.key.startswith(READ_BY)),
        tuple(nights),
        tuple(never_raised),
        hashlib.sha256("\n".join(parts).encode()).hexdigest(),
    )


def note_answer(answer: WhatIf, *, account: tuple[str, str], environment: Environment) -> None:
    """Record the digest of an answer in the history, once, under the rules that were tried.

    It is quoted when these become the rules of a night; nothing else of the answer is stored.
    """
    details: dict[str, object] = {
        "account": "/".join(account),
        "digest": answer.digest,
        "first": answer.nights[0].business_date.isoformat(),
        "last": answer.nights[-1].business_date.isoformat(),
        "nights": len(answer.nights),
    }
    with environment.store.writing() as connection:
        if details not in tried(connection, answer.tried, account=account):
            event = history.Event(TRIED, answer.tried, EVENT, details)
            history.append(connection, [event], at=environment.clock())


def moved(nights: Sequence[ComparedAgain]) -> Iterator[Rejudged]:
    """The changes of each night by classification before and after, the most frequent first."""
    for night in nights:
        counts: Counter[tuple[str, str, str]] = Counter()
        sums: Counter[tuple[str, str, str]] = Counter()
        for change in night.changes:
            kind = (change.before, change.after, change.key[3])
            counts[kind] += 1
            sums[kind] += change.exposure
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield Rejudged(night.business_date, *kind, count, sums[kind])


@dataclass(frozen=True, slots=True)
class _Simulated:
    """A night under the candidate rules, as the next one carries it forward."""

    run: Run
    result: Reconciliation
    previous: Previous | None

    def carried(self, real: Previous | None) -> Previous:
        """What it left open; chargebacks are the real ones, as the gateway reports them."""
        chargebacks = real.chargebacks if real is not None else frame_of((), columns=KEY_COLUMNS)
        return left_open(
            self.result.breaks,
            moved=self.result.movements,
            matched=self.result.matches["match_id"],
            as_of=self.result.as_of,
            previous=self.previous,
            chargebacks=chargebacks,
        )


def _runs(
    account: tuple[str, str], *, first: date, last: date, environment: Environment
) -> list[Run]:
    days = (last - first).days + 1
    if not 0 < days <= NIGHTS_MAX:
        msg = f"from {first} to {last} are {max(days, 0)} days; ask about 1 to {NIGHTS_MAX}"
        raise UsageError(msg)
    merchant_id, account_id = account
    with environment.store.reading() as connection:
        newest = [
            runs.of_night(connection, NightRequest(merchant_id, account_id, day, Mode.LIVE))
            for day in (first + timedelta(days=number) for number in range(days))
        ]
    finished = [run for run in newest if run is not None and run.status == "finished"]
    if not finished:
        msg = f"{merchant_id}/{account_id} has no finished live night from {first} to {last}"
        raise UsageError(msg)
    return finished


def _classified(
    run: Run, *, rules: Rules, before: _Simulated | None, environment: Environment
) -> tuple[Reconciliation, _Simulated]:
    """The night's own result, and the one under the candidate rules."""
    inputs, _, _ = stored_inputs(run, environment=environment)
    sources, previous = compared_then(run, environment=environment)
    with environment.store.reading() as connection:
        then = StoredResult(connection, run.run_id, environment).whole()
        stop = runs.stop_of(connection, run.run_id)
    if then is None:
        raise InputsMissingError(NOT_STORED.format(run.run_id))
    if before is not None and before.run.run_id == inputs.previous_run_id:
        previous = before.carried(previous)
    result = proven(
        compare(sources, rules=rules, as_of=run.as_of, previous=previous),
        sources=sources,
        rules=rules,
        previous=previous,
        account=run.account,
    )
    classified = with_stopped_sending(with_missing_sources(result, sources=sources), stop=stop)
    return then, _Simulated(run, classified, previous)


def _side_by_side(run: Run, *, then: Reconciliation, now: Reconciliation) -> ComparedAgain:
    changes, _ = changed_sets(then, now)
    severe_then, severe = (int(each.breaks["severity"].isin(SEVERE).sum()) for each in (then, now))
    return ComparedAgain(
        run.run_id,
        run.business_date,
        then.verdict,
        now.verdict,
        len(then.breaks),
        len(now.breaks),
        severe_then,
        severe,
        changes,
        now.digest,
        is_same=now.digest == then.digest,
        unverified_then=len(then.unverified),
        unverified=len(now.unverified),
        never_verified=(unverified_sets(then) & unverified_sets(now)).total(),
    )


def _sentence(night: ComparedAgain) -> str:
    same = "the same" if night.is_same else f"{len(night.changes)} classified differently"
    if night.never_verified:
        same += f", {night.never_verified:,} not verified under any rules"
    return (
        f"{night.business_date}: {night.verdict_then.value} with {night.breaks_then} breaks, "
        f"now {night.verdict.value} with {night.breaks}; {same}"
    )
