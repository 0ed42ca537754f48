"""The effect of a change of the rules: which rules changed, and the items and money this moved.

The night is compared with the last one that an approver signed. Nobody can sign what nobody has
seen: a night under rules that no approver has signed yet is never RECONCILED.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.desk.held_keys import HeldKeys
from recon.matching.breaks.movements import with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ConfigurationError, StoreError
from recon.model.money import Money, format_minor_units
from recon.model.terms import DIGITS_READ, SetState
from recon.proof.engine import reconcile as compare
from recon.steps.runtime.environment import Environment
from recon.store import Connection
from recon.store.database import history
from recon.store.nights import input_rows, runs, sign_off_rows
from recon.store.nights.runs import Run

MOVED_BY_RULES = "moved_by_rules"
"""Key, in the event of a night's result, of the sentences of `moved_since_signed`."""
TRIED, EVENT = "rules", "tried"
"""Entity and event name in the history."""


def tried(
    connection: Connection, rules_digest: str, *, account: tuple[str, str]
) -> list[Mapping[str, Any]]:
    """Results of `recon nights --rules` under exactly these rules for an account, oldest first."""
    links = history.links_of(connection, [rules_digest], entity=TRIED, event=EVENT)
    return [link.data for link in links if link.data["account"] == "/".join(account)]


def quoted(answer: Mapping[str, Any]) -> str:
    """Sentence by which page one cites a result of `recon nights --rules`."""
    nights = "1 night" if answer["nights"] == 1 else f"{answer['nights']} nights"
    return (
        f"`recon nights --rules` tried these rules on {nights} from {answer['first']} to "
        f"{answer['last']}: digest {answer['digest'][:DIGITS_READ]}."
    )


Key = tuple[str, str, str, str]
"""Merchant, account, key of the set, currency."""
SIDES = (
    ("order", "state_orders", "order_amount"),
    ("gateway", "state_gateway", "gateway_amount"),
    ("ledger", "", "ledger_amount"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One set that is classified differently on the second night."""

    key: Key
    before: str
    """Its state, or the code of a break; "absent" when the night has no such set."""
    after: str
    why: str
    exposure: int
    """Of the second night's break, else of the first's, in minor units of the currency."""


def changed_sets(before: Reconciliation, after: Reconciliation) -> tuple[tuple[Change, ...], int]:
    """Sets that two results classify differently, and the number of those they classify alike."""
    same_rules = before.rules_digest == after.rules_digest
    left, right = _sets(before), _sets(after)
    changes = [
        Change(
            key,
            _reported(left.get(key)),
            _reported(right.get(key)),
            _why(left.get(key), right.get(key), currency=key[3], same_rules=same_rules),
            int(
                (right.get(key) or {}).get("exposure") or (left.get(key) or {}).get("exposure") or 0
            ),
        )
        for key in sorted({*left, *right})
        if _classified(left.get(key)) != _classified(right.get(key))
    ]
    return tuple(changes), len({*left, *right}) - len(changes)


def unverified_sets(result: Reconciliation) -> Counter[Key]:
    """Number of UNVERIFIED sets of a result under each key."""
    return Counter(map(_key, result.unverified.to_dict("records")))


def _sets(result: Reconciliation) -> dict[Key, dict[str, Any]]:
    """Every set of a result, by a key that is the same on two nights."""
    frames = {
        SetState.BREAK: with_reopened(result),
        SetState.MATCHED: result.matches,
        SetState.PENDING: result.pending,
        SetState.UNVERIFIED: result.unverified,
    }
    sets: dict[Key, dict[str, Any]] = {}
    for state, frame in frames.items():
        for row in frame.to_dict("records"):
            key = _key(row)
            cells = {str(column): value for column, value in row.items()}
            if key not in sets or state is not SetState.MATCHED:
                sets[key] = {**cells, "state": state}
    return sets


def _key(row: Mapping[Any, Any]) -> Key:
    name = row["order_no"] or row["transaction_id"] or row.get("about") or row.get("entry_id", "")
    return row["merchant_id"], row["account_id"], name, row["currency"]


def _classified(row: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What is compared of two classifications: state, code and both effects."""
    if row is None:
        return ()
    effects = (_number(row["effect_orders"]), _number(row["effect_ledger"]))
    return (row["state"], row.get("code", ""), *map(str, effects))


def _reported(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "absent"
    code = str(row.get("code") or row["state"].lower())
    older = row.get("reopens")
    return f"{code}, which opens break {older} again" if older else code


def _why(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    currency: str,
    same_rules: bool,
) -> str:
    if before is None:
        return "the first night has no such order"
    if after is None:
        return "the second night has no such order: it left the window"
    sides = [
        (
            side,
            *(_side(row, state=state, amount=amount, currency=currency) for row in (before, after)),
        )
        for side, state, amount in SIDES
    ]
    if moved := "; ".join(f"{side}: {was} -> {now}" for side, was, now in sides if was != now):
        return moved
    if not same_rules:
        return "the rules changed, no side did"
    if before["state"] == SetState.PENDING:
        return "its grace ran out, no side changed"
    return "our instructions or the evidence changed, no side did"


def _side(row: Mapping[str, Any], *, state: str, amount: str, currency: str) -> str:
    value = _number(row[amount])
    money = "" if value is None or not currency else format_minor_units(value, currency=currency)
    return " ".join(filter(None, (row[state] if state else "", money))) or "nothing"


def _number(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


RULES_DISPLAYED = 4
"""Number of rules named on page one; `recon breaks --against NIGHT` names all of them."""
KINDS_DISPLAYED = 3
NOTHING = "not set"
OTHER_TABLE = (
    "Its table of codes is the one of another version of this program: what that moved is not "
    "among these items."
)
NOT_KNOWN = "What changed in the rules since the last signed night is not known: {}."


@dataclass(frozen=True, slots=True)
class ChangedRule:
    """One key of the rules with its values before and after, as text."""

    key: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.before} -> {self.after}"


def changed_rules(before: Rules, after: Rules) -> tuple[ChangedRule, ...]:
    """Every key whose value differs, sorted by name."""
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
        elif (
            isinstance(value, list)
            and value
            and all(isinstance(each, Mapping) and "name" in each for each in value)
        ):
            # Of several that apply the first decides, so that another order is another rule.
            yield f"{key} in order", ", ".join(entry["name"] for entry in value)
            yield from _flat({entry["name"]: entry for entry in value}, within=f"{key}.")
        elif isinstance(value, list):
            yield key, ", ".join(map(str, value)) or NOTHING
        else:
            yield key, NOTHING if value is None else str(value)


def moved_since_signed(
    run: Run,
    *,
    result: Reconciliation,
    sources: Sources,
    previous: Previous | None,
    environment: Environment,
) -> tuple[str, ...]:
    """Sentences for page one if the rules are not those of the last signed night; else none."""
    rules = environment.settings.rules
    with environment.store.reading() as connection:
        known = _signed(connection, run, desk=environment.desk)
        if known is None or known[1] == rules.digest:
            return ()
        signed, digest = known
        try:
            then = runs.load(connection, digest)
            answers = tried(connection, rules.digest, account=run.account)
        except (ConfigurationError, StoreError) as error:
            return (NOT_KNOWN.format(error),)
    if then is None:
        return (NOT_KNOWN.format(f"those of run {signed.run_id} are not stored any more"),)
    if then.digest == rules.digest:  # stored without what a later version added
        return ()
    changes = changed_rules(then, rules)
    as_before = compare(sources, rules=then, as_of=run.as_of, previous=previous)
    moved, _ = changed_sets(as_before, result)
    named = listed([str(change) for change in changes], most=RULES_DISPLAYED)
    return (
        f"Rules changed since the last signed night ({signed.business_date}): {named}.",
        (
            f"{reported_of(moved)} Until an approver signs a night under these rules, none is "
            "RECONCILED."
        ),
        *((OTHER_TABLE,) if then.codes != rules.codes else ()),
        *((quoted(answers[-1]),) if answers else ()),
    )


def is_under_signed_rules(run: Run, *, environment: Environment) -> bool:
    """Whether the rules are those of the last signed night; True where none is known."""
    with environment.store.reading() as connection:
        known = _signed(connection, run, desk=environment.desk)
    return known is None or known[1] == environment.settings.rules.digest


def _signed(connection: Connection, run: Run, *, desk: HeldKeys) -> tuple[Run, str] | None:
    """The last signed night before a run, and the digest of its rules."""
    signed = sign_off_rows.last_signed(connection, run, desk=desk)
    inputs = None if signed is None else input_rows.load(connection, signed.run_id)
    return None if signed is None or inputs is None else (signed, inputs.rules_digest)


def reported_of(moved: tuple[Change, ...]) -> str:
    """Sentence with number and money of the items that changed rules classify differently."""
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
    counted = [f"{count} {kind}" for kind, count in kinds.most_common()]
    worth = f" with {', '.join(sums)}" if sums else ""
    items = "1 item" if len(moved) == 1 else f"{len(moved)} items"
    return f"The change of the rules moved {items}{worth}: {listed(counted, most=KINDS_DISPLAYED)}."


def listed(texts: list[str], *, most: int) -> str:
    """The first `most` texts, and the number of the others."""
    more = len(texts) - most
    others = f"; and {more} more (`recon breaks --against NIGHT`)" if more > 0 else ""
    return "; ".join(texts[:most]) + others
