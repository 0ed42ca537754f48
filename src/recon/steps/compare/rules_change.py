"""What a change of the rules did: which rules, and the items and money that they alone moved.

The night is held against the last one that an approver signed. Nobody can sign what nobody saw: a
night under rules that no approver signed yet is never RECONCILED.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ConfigurationError, StoreError
from recon.model.money import Money
from recon.proof.engine import reconcile as compare
from recon.steps.compare.changed_sets import Change, compared
from recon.steps.compare.tried_rules import quoted, tried
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.nights import input_rows, rules_rows, sign_off_rows
from recon.store.nights.runs import Run
from recon.store.nights.sign_off_rows import NightRun

RULES_SHOWN = 4
"""Rules named on page one; `recon breaks --against NIGHT` names them all."""
KINDS_SHOWN = 3
NOTHING = "not set"
NOT_KNOWN = "What changed in the rules since the last signed night is not known: {}."


@dataclass(frozen=True, slots=True)
class ChangedRule:
    """One key of the rules with what it was and is, as text."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.before} -> {self.after}"


def changed_rules(before: Rules, after: Rules) -> tuple[ChangedRule, ...]:
    """Every key whose value differs, by name."""
    old, new = (dict(_flat(rules.document)) for rules in (before, after))
    return tuple(
        ChangedRule(key, old.get(key, NOTHING), new.get(key, NOTHING))
        for key in sorted({*old, *new})
        if old.get(key, NOTHING) != new.get(key, NOTHING)
    )


def _flat(tables: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tables.items():
        key = f"{within}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, within=f"{key}.")
        elif isinstance(value, list) and all(map(_is_named, value)) and value:
            yield from _flat({entry["name"]: entry for entry in value}, within=f"{key}.")
        elif isinstance(value, list):
            yield key, ", ".join(map(str, value)) or NOTHING
        else:
            yield key, NOTHING if value is None else str(value)


def _is_named(value: object) -> bool:
    return isinstance(value, Mapping) and "name" in value


def moved_since_signed(
    run: Run,
    *,
    result: Reconciliation,
    sources: Sources,
    previous: Previous | None,
    environment: Environment,
) -> tuple[str, ...]:
    """Sentences for page one when the rules are not those of the last signed night; else none."""
    rules = environment.settings.rules
    with environment.store.reading() as connection:
        known = _signed(connection, run)
        if known is None or known[1] == rules.digest:
            return ()
        signed, digest = known
        try:
            then = rules_rows.load(connection, digest)
            answers = tried(connection, rules, account=(run.merchant_id, run.account_id))
        except (ConfigurationError, StoreError) as error:
            return (NOT_KNOWN.format(error),)
    if then is None:
        return (NOT_KNOWN.format(f"those of run {signed.run_id} are not stored any more"),)
    changes = changed_rules(then, rules)
    if not changes:
        return ()
    as_before = compare(sources, rules=then, as_of=run.as_of, previous=previous)
    moved, _ = compared(as_before, result)
    named = listed([str(change) for change in changes], most=RULES_SHOWN)
    return (
        f"Rules changed since the last signed night ({signed.business_date}): {named}.",
        f"{told_of(moved)} Until an approver signs a night under these rules, none is RECONCILED.",
        *((quoted(answers[-1]),) if answers else ()),
    )


def is_under_signed_rules(run: Run, *, environment: Environment) -> bool:
    """Whether the rules are those of the last night that an approver signed, or none did."""
    with environment.store.reading() as connection:
        known = _signed(connection, run)
    return known is None or known[1] == environment.settings.rules.digest


def _signed(connection: Connection, run: Run) -> tuple[NightRun, str] | None:
    """The last signed night before a run, and the digest of its rules."""
    signed = sign_off_rows.last_signed(connection, run)
    inputs = None if signed is None else input_rows.load(connection, signed.run_id)
    return None if signed is None or inputs is None else (signed, inputs.rules_digest)


def told_of(moved: tuple[Change, ...]) -> str:
    """How many items a change of the rules judges otherwise, and the money of those."""
    if not moved:
        return "The change of the rules moved no item."
    money: Counter[str] = Counter()
    for change in moved:
        money[change.key[3]] += change.exposure
    sums = [
        str(Money.of_minor_units(amount, currency=currency))
        for currency, amount in sorted(money.items())
        if currency and amount
    ]
    kinds = Counter(f"{change.before} -> {change.after}" for change in moved)
    shown = [f"{count} {kind}" for kind, count in kinds.most_common()]
    worth = f" with {', '.join(sums)}" if sums else ""
    items = "1 item" if len(moved) == 1 else f"{len(moved)} items"
    return f"The change of the rules moved {items}{worth}: {listed(shown, most=KINDS_SHOWN)}."


def listed(texts: list[str], *, most: int) -> str:
    """The first texts, and how many more there are."""
    more = len(texts) - most
    others = f"; and {more} more (`recon breaks --against NIGHT`)" if more > 0 else ""
    return "; ".join(texts[:most]) + others
