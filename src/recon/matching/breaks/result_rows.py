"""Builds the frames of matches, pending, breaks and unverified from classified sets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.breaks.movements import Disposition, next_id
from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
)
from recon.matching.classifying.grace import business_days
from recon.matching.classifying.outcomes import Outcomes, set_flags
from recon.matching.classifying.sentences import Clause, Sentences
from recon.matching.classifying.severity import (
    effects_in_question,
    money_at_risk,
    owed_to,
    severity_of,
    worse,
)
from recon.matching.classifying.table import classified_by, flag_text, rows_of
from recon.matching.codes import CODES, TABLE
from recon.matching.frames.arrays import (
    Arrays,
    Column,
    among,
    filled,
    in_order,
    order_of,
    stacked,
    text_array,
    texts,
)
from recon.matching.frames.digest import first_ids, id_of
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints
from recon.matching.frames.sources import INSTANT, Basis, Previous
from recon.matching.frames.versions import NEW, Versions
from recon.matching.sets.joined_sets import (
    BY_ENTRY,
    BY_PAYOUT,
    BY_TRANSACTION,
    Joined,
    event_instants,
)
from recon.matching.sets.residuals import (
    charged_by_lines,
    effect_on_ledger,
    effect_on_orders,
    ints,
)
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.ledger_side import booked, not_compared
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.terms import BreakCode, Flag, SetState

NO_AMOUNT = int(np.iinfo(np.int64).min)
"""Amount of an absent side, in columns that turn it into blank cells."""

SORTED_BY = ["merchant_id", "account_id", "order_no", "transaction_id"]


def classified_rows(
    joined: Joined, *, outcomes: Outcomes, instructed: bool, basis: Basis
) -> Arrays:
    """Return the rows of every set, with state and flags (see set_rows)."""
    rows = set_rows(joined, outcomes=outcomes)
    numbers = rows["set"]
    flags = set_flags(joined.sets, outcomes=outcomes, instructed=instructed, basis=basis)
    return rows.assign(state=outcomes.states()[numbers], flags=flags[numbers])


def set_rows(joined: Joined, *, outcomes: Outcomes) -> Arrays:
    """Return the rows of every set (grain: set and currency, the set's own currency first).

    Columns: set, own (the set's own currency), and MATCH_COLUMNS without match_id, flags, rule;
    NO_AMOUNT for amounts of sides that are absent.
    """
    sets = joined.sets
    rows = _of_sets(_with_explained(sets, outcomes=outcomes))
    nets = {side: sets[f"{side}_net"].copy() for side in _SIDES}
    away = np.flatnonzero(outcomes.primary >= 0)
    for side in _SIDES:
        np.add.at(nets[side], outcomes.primary[away], nets[side][away].copy())
    presence = _presence(sets, outcomes=outcomes)
    rows.columns |= _amounts(nets, presence=presence, covered=joined.covered)
    other = _other_currencies(joined, rows=rows)
    return stacked([rows, other], names=(*rows.columns,)) if len(other) else rows


_SIDES = ("order", "gateway", "ledger", "payout")


def _with_explained(sets: Arrays, *, outcomes: Outcomes) -> Arrays:
    """Show on a primary set the payment of the set in another account that it represents."""
    away = np.flatnonzero(outcomes.primary >= 0)
    if not away.size:
        return sets
    displayed = {}
    for name, nothing in (("gateway_state", 0), ("gateway_transaction", "")):
        values = sets[name].copy()
        primaries = outcomes.primary[away]
        blank = values[primaries] == nothing
        values[primaries[blank]] = values[away[blank]]
        displayed[name] = values
    return sets.assign(**displayed)


def _of_sets(sets: Arrays) -> Arrays:
    transaction = sets["gateway_transaction"]
    for other in ("order_transaction", "ledger_transaction_id", "settled_transaction"):
        transaction = np.where(transaction != "", transaction, sets[other])
    columns = {
        "set": np.arange(len(sets)),
        "own": np.ones(len(sets), dtype=np.bool_),
        "merchant_id": sets["merchant_id"],
        "account_id": sets["account_id"],
        "order_no": sets["order_no"],
        "transaction_id": np.where(_is_named_by_us(sets), sets["key"], transaction),
        "entry_id": sets["entry_ids"],
        "state_orders": _labels(ORDER_STATES, numbers=sets["order_state"]),
        "state_gateway": _labels(GATEWAY_STATES, numbers=sets["gateway_state"]),
        "currency": sets["currency"],
    }
    return Arrays(columns, size=len(sets))


def _is_named_by_us(sets: Arrays) -> Bools:
    """Mark sets named by our instruction's id: of a payout or a subscription."""
    alone = (sets["kind"] == BY_TRANSACTION) | (sets["kind"] == BY_ENTRY)
    others = (sets["gateway_transaction"] != "") | sets["ledger_present"] | sets["settled_any"]
    instructed = (sets["instruction_currency"] != "") & ~others
    return np.asarray((sets["kind"] == BY_PAYOUT) | (alone & instructed), dtype=np.bool_)


def _labels(labels: tuple[str, ...], *, numbers: Ints) -> Column:
    return np.asarray(labels, dtype=object)[numbers]


def _presence(sets: Arrays, *, outcomes: Outcomes) -> dict[str, Bools]:
    """Return which sides a set has; a primary set also has those of the set that it explains."""
    silent = [NUMBER["none"], NUMBER["unverified"]]
    presence = {
        "order": sets["order_state"] != 0,
        "gateway": ~np.isin(sets["gateway_state"], silent) | (sets["payout_net"] != 0),
        "ledger": sets["ledger_present"],
    }
    away = np.flatnonzero(outcomes.primary >= 0)
    for side, mask in presence.items():
        presence[side] = mask.copy()
        presence[side][outcomes.primary[away]] |= mask[away]
    return presence


def _amounts(
    nets: dict[str, Ints], *, presence: dict[str, Bools], covered: bool
) -> dict[str, Column]:
    displayed = {**nets, "gateway": nets["gateway"] + nets["payout"]}
    amounts = {
        f"{side}_amount": np.where(given, displayed[side], NO_AMOUNT)
        for side, given in presence.items()
    }
    of_ledger = displayed["gateway"] - nets["ledger"]
    return {
        **amounts,
        "effect_orders": nets["gateway"] - nets["order"],
        "effect_ledger": of_ledger if covered else np.full(len(of_ledger), NO_AMOUNT),
    }


def frame_of_rows(
    rows: Arrays, *, names: tuple[str, ...], amounts: tuple[str, ...]
) -> pd.DataFrame:
    """Return some columns as a frame.

    Args:
        rows: texts, numbers and amounts.
        names: the columns, in this order.
        amounts: the columns where NO_AMOUNT becomes blank.
    """
    columns: dict[str, object] = {}
    for name in names:
        column = rows[name]
        if name in amounts:
            blank = column == NO_AMOUNT
            amounts_given = np.where(blank, 0, column).astype(np.int64)
            columns[name] = pd.arrays.IntegerArray(amounts_given, blank)
        else:
            columns[name] = text_array(column) if column.dtype == object else column
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def _other_currencies(joined: Joined, *, rows: Arrays) -> Arrays:
    """Return rows for the second currencies of a set."""
    nets = joined.nets
    other = nets.take(nets["currency"] != joined.sets["currency"][nets["set"]])
    extra = rows.take(other["set"]).assign(own=False, currency=other["currency"])
    sums = {side: other[f"{side}_net"] for side in _SIDES}
    presence = {side: sums[side] != 0 for side in ("order", "gateway", "ledger")}
    presence["gateway"] = presence["gateway"] | (sums["payout"] != 0)
    return extra.assign(**_amounts(sums, presence=presence, covered=joined.covered))


def identities(sets: Arrays, *, first: Column) -> Column:
    """Return the id of each set: digest of merchant, account, key and sequence, never of a code.

    `first`: see `first_identities`.
    """
    ids = first.copy()
    if sets["kind"].any():
        times: dict[tuple[int, str], int] = {}
        # Only a set of another kind can have the key of an earlier set.
        rows = np.flatnonzero(among(sets["key"], {*sets["key"][sets["kind"] != 0]}))
        for row in rows[np.argsort(sets["kind"][rows], kind="stable")].tolist():
            place = sets["account"][row], sets["key"][row]
            number = times[place] = times.get(place, 0) + 1
            if number > 1:
                ids[row] = id_of(*(sets[name][row] for name in _KEY), str(number))
    return ids


def first_identities(sets: Arrays) -> Column:
    """Return the id of each set with sequence number 1."""
    return first_ids(*(sets[name] for name in _KEY))


_KEY = ("merchant_id", "account_id", "key")


def not_compared_rows(
    ledger: pd.DataFrame, *, versions: Versions, at_bank: Collection[tuple[str, ...]] = ()
) -> Arrays:
    """Return matches for entries that have nothing to be compared with (grain: entry).

    `at_bank`: merchant, account and entry id of those that are compared with bank statements.
    """
    alone = np.flatnonzero(not_compared(ledger) & (versions == NEW))
    size = len(alone)
    named = {
        name: texts(ledger[name])[alone]
        for name in ("merchant_id", "account_id", "order_no", "transaction_id", "entry_id")
    }
    key = ("merchant_id", "account_id", "entry_id")
    keys = [*zip(*(named[name].tolist() for name in key), strict=True)]
    flags = (Flag.WITH_BANK if key in at_bank else Flag.NOT_COMPARED for key in keys)
    labels = {"rule": "not_compared", "state": SetState.MATCHED.value}
    labels |= {"state_orders": "none", "state_gateway": "none"}
    labels |= {"expected_side": "", "reason": ""}
    amounts = dict.fromkeys(("order_amount", "gateway_amount"), NO_AMOUNT)
    amounts |= dict.fromkeys(("ledger_amount", "effect_orders", "effect_ledger"), 0)
    amounts["due_at"] = NO_INSTANT
    columns = {
        **named,
        "match_id": np.array([id_of(*key) for key in keys], dtype=object),
        "flags": np.array([flag.value for flag in flags], dtype=object),
        **{name: filled(label, size=size) for name, label in labels.items()},
        "currency": texts(booked(ledger).currency)[alone],
        **{name: np.full(size, amount) for name, amount in amounts.items()},
    }
    return Arrays(columns, size=size)


OPEN_SORTED_BY = [*SORTED_BY, "entry_id", "currency"]
BREAKS_SORTED_BY = [*SORTED_BY, "code", "break_id"]
EFFECTS_SORTED_BY = ["merchant_id", "account_id", "break_id", "leg", "currency"]


@dataclass(frozen=True, slots=True)
class Frames:
    """The five frames of a result."""

    breaks: pd.DataFrame
    effects: pd.DataFrame
    matches: pd.DataFrame
    pending: pd.DataFrame
    unverified: pd.DataFrame


_ROUTINE: Mapping[str, tuple[SetState, tuple[str, ...]]] = {
    "matches": (SetState.MATCHED, MATCH_COLUMNS),
    "pending": (SetState.PENDING, PENDING_COLUMNS),
    "unverified": (SetState.UNVERIFIED, UNVERIFIED_COLUMNS),
}
_NO_BREAKS = (
    "state",
    *dict.fromkeys(name for _, names in _ROUTINE.values() for name in names),
)


def rows_without_breaks(rows: Arrays, *, outcomes: Outcomes, alone: Arrays) -> Arrays:
    """Return rows of sets that are no break, and entries not compared (see not_compared_rows)."""
    chosen = rows.take(among(rows["state"], {state.value for state, _ in _ROUTINE.values()}))
    numbers, classified = chosen["set"], outcomes.classified
    labels = {name: classified.of_each(name) for name in ("rule", "expected_side", "reason")}
    displayed = chosen.assign(
        match_id=chosen["identity"],
        due_at=outcomes.due_at[numbers],
        **{name: column[numbers] for name, column in labels.items()},
    )
    return stacked([displayed, alone], names=_NO_BREAKS) if len(alone) else displayed


def frames_of(
    breaks: pd.DataFrame,
    *,
    effects: pd.DataFrame,
    sets: Arrays,
    legs: Sequence[Arrays],
    basis: Basis,
) -> Frames:
    """Build the frames of the sets and of the other comparisons; breaks with one id are merged.

    Args:
        breaks: of the sets.
        effects: of these.
        sets: see rows_without_breaks.
        legs: columns of FOUND of each other comparison.
        basis: severity, calendar, and since when a break is known.
    """
    rows = [sets]
    for found in legs:
        labels = {"state_orders": "none", "state_gateway": "none"}
        labels |= dict.fromkeys(("order_no", "transaction_id", "cause"), "")
        displayed = found.assign(
            match_id=found["id"],
            break_id=found["id"],
            amount=found["effect"],
            order_amount=np.full(len(found), NO_AMOUNT),
            **{name: filled(label, size=len(found)) for name, label in labels.items()},
        )
        rows.append(
            displayed.take(
                (displayed["state"] != SetState.MATCHED.value) | (displayed["rule"] != "")
            )
        )
        broken = displayed.take(displayed["state"] == SetState.BREAK.value)
        moved = broken.take((broken["effect"] != 0) & (broken["effect"] != NO_AMOUNT))
        breaks = _with_breaks(breaks, _graded(broken, basis=basis))
        effects = _added(effects, moved, names=EFFECT_COLUMNS, by=EFFECTS_SORTED_BY)
    every = stacked(rows, names=_NO_BREAKS) if legs else sets
    routine = {
        name: frame_in_order(
            every.take(every["state"] == state.value), names=names, by=OPEN_SORTED_BY
        )
        for name, (state, names) in _ROUTINE.items()
    }
    routine["pending"]["due_at"] = instants(routine["pending"]["due_at"].to_numpy())
    return Frames(breaks=breaks, effects=effects, **routine)


def effects_of(
    joined: Joined, *, outcomes: Outcomes, break_sets: Mapping[int, str]
) -> pd.DataFrame:
    """Return every effect of every break by account, leg and currency (`break_sets`: set -> id)."""
    nets = joined.nets
    primary = outcomes.primary[nets["set"]]
    owner = np.where(primary >= 0, primary, nets["set"])
    ids = np.array([break_sets.get(number, "") for number in owner.tolist()], dtype=object)
    legs = {"orders": nets["gateway_net"] - nets["order_net"]}
    if joined.covered:
        legs["ledger"] = nets["gateway_net"] + nets["payout_net"] - nets["ledger_net"]
    base = Arrays(
        {
            **{name: joined.sets[name][nets["set"]] for name in ("merchant_id", "account_id")},
            "currency": nets["currency"],
            "break_id": ids,
        },
        size=len(nets),
    )
    frames = [
        base.assign(leg=filled(leg, size=len(nets)), amount=amount).take(
            (amount != 0) & (ids != "")
        )
        for leg, amount in legs.items()
    ]
    rows = stacked(frames, names=EFFECT_COLUMNS)
    return frame_in_order(rows, names=EFFECT_COLUMNS, by=EFFECTS_SORTED_BY)


def frame_in_order(rows: Arrays, *, names: tuple[str, ...], by: list[str]) -> pd.DataFrame:
    """Return some columns as a frame, sorted by texts, whatever the order of the inputs."""
    ordered = rows.take(order_of(rows.columns, by=by))
    return frame_of_rows(ordered, names=names, amounts=AMOUNT_COLUMNS)


def instants(microseconds: Ints) -> "pd.Series[pd.Timestamp]":
    """Make a column of instants from microseconds since 1970."""
    index: Any = pd.DatetimeIndex(microseconds.view("datetime64[us]"), tz="UTC")
    return pd.Series(index, dtype=INSTANT)


EFFECTS = ("effect_orders", "effect_ledger")


def breaks_of(rows: Arrays, *, joined: Joined, outcomes: Outcomes, basis: Basis) -> pd.DataFrame:
    """Return one row per set that is a break, sorted as the contract says."""
    chosen = rows["own"] & (rows["state"] == SetState.BREAK.value)
    chosen &= outcomes.primary[rows["set"]] < 0
    broken = rows.take(chosen)
    numbers = broken["set"]
    classified = outcomes.classified
    findings = [classified.by_pattern[n].codes for n in classified.patterns[numbers]]
    exposure = _exposure(joined, outcomes=outcomes, numbers=numbers, findings=findings)
    effects = effect_on_orders(outcomes.sets, ours=outcomes.ours)[numbers].tolist()
    owed = [owed_to(c[0], effect_orders=int(e)) for c, e in zip(findings, effects, strict=True)]
    known = [
        np.where(effect == NO_AMOUNT, 0, effect) for effect in (broken[name] for name in EFFECTS)
    ]
    legs = zip(*(is_one.tolist() for is_one in known), broken["flags"].tolist(), strict=True)
    risks = [
        money_at_risk(whole, effects=effects_in_question(orders, [ledger], flags=flags))
        for whole, (orders, ledger, flags) in zip(exposure.tolist(), legs, strict=True)
    ]
    days = business_days(event_instants(joined.sets)[numbers], calendar=basis.calendar)
    broken = _aged(broken, days=days, findings=findings, risks=risks, basis=basis)
    frame = broken.assign(
        break_id=broken["identity"],
        code=np.array([codes[0].value for codes in findings], dtype=object),
        exposure=exposure,
        owed_to=np.array(owed, dtype=object),
        cause=filled("", size=len(broken)),
        reason=filled("", size=len(broken)),
        about=filled("", size=len(broken)),
        # Filled in when the bank statements are compared.
        bank_amount=np.full(len(broken), NO_AMOUNT),
        effect_bank=np.full(len(broken), NO_AMOUNT),
    )
    return frame_in_order(frame, names=("set", *BREAK_COLUMNS), by=BREAKS_SORTED_BY)


def _exposure(
    joined: Joined, *, outcomes: Outcomes, numbers: Ints, findings: Sequence[tuple[BreakCode, ...]]
) -> Ints:
    """Return each break's exposure: the largest effect or amount over all of its codes."""
    sets, primary = joined.sets, outcomes.primary
    effects = np.abs(sets["gateway_net"] - sets["order_net"])
    known = np.abs(effect_on_orders(outcomes.sets, ours=outcomes.ours))
    if joined.covered:
        booked_apart = sets["gateway_net"] + sets["payout_net"] - sets["ledger_net"]
        effects = np.maximum(effects, np.abs(booked_apart))
        of_ledger = effect_on_ledger(outcomes.sets, ours=outcomes.ours)
        known = np.maximum(known, np.abs(of_ledger))
    away = np.flatnonzero(primary >= 0)
    np.maximum.at(effects, primary[away], effects[away])
    columns = _exposures(outcomes, effects=np.maximum(effects, known))
    measures = {codes: {CODES[code].risk for code in codes} for codes in {*findings}}
    picked = [
        max(int(columns[name][number]) for name in measures[codes])
        for codes, number in zip(findings, numbers.tolist(), strict=True)
    ]
    return np.array(picked, dtype=np.int64)


def _exposures(outcomes: Outcomes, *, effects: Ints) -> dict[str, Ints]:
    """Return the amounts that a set may put at risk, by measure; minor units, unsigned.

    No figure is a difference across currencies: where sides have two, the whole amount is at risk.
    """
    sets, uncaptured, beyond_ours = outcomes.sets, outcomes.ours.uncaptured, outcomes.uncaptured
    amount = np.maximum.reduce([np.abs(sets[name]) for name in _AMOUNTS])
    ordered, reported = np.abs(sets["order_amount"]), np.abs(sets["gateway_amount_shown"])
    whole = np.where(ordered != 0, ordered, reported)
    captured = np.abs(sets["gateway_captured"] - uncaptured)
    amount = np.where(uncaptured > 0, np.minimum(amount, captured), amount)
    taken = np.minimum(amount, np.abs(sets["gateway_captured"] - beyond_ours))
    apart = np.abs(sets["settled_captured"] - sets["gateway_captured"])
    back = np.abs(sets["settled_refunded"] - sets["gateway_refunded"])
    apart = apart + np.where(sets["settled_refund_any"], back, 0)
    foreign = sets["settled_capture_any"] & (sets["settled_currency"] != sets["currency"])
    charged = np.where(ints(sets["ledger_chargeback"]) == 0, charged_by_lines(sets), 0)
    return {
        "effect": np.maximum(effects, charged),
        "amount": amount,
        "whole": whole,
        "captured": captured,
        "taken": np.where(beyond_ours > 0, taken, amount),
        "settled": np.abs(sets["settled_gross"]),
        "settlement gap": np.where(foreign, whole, apart),
        "fee": np.abs(sets["fee_gap"]),
        "exchange": np.abs(sets["exchange_gap"]),
    }


_AMOUNTS = ("order_amount", "gateway_amount_shown", "instruction_amount", "payout_amount")


def _aged(
    rows: Arrays,
    *,
    days: Ints,
    findings: Sequence[Sequence[BreakCode]],
    risks: Sequence[int],
    basis: Basis,
) -> Arrays:
    """Add age, severity and first_seen to breaks.

    Args:
        rows: with the identity and currency of each.
        days: the first day of each break, in days since 1970.
        findings: all codes of each.
        risks: the money at risk of each.
        basis: severity, calendar, and since when a break is known.
    """
    calendar, today = basis.calendar, basis.today
    known, which = np.unique(days, return_inverse=True)
    ages = [
        0
        if day == NO_INSTANT
        else calendar.business_days_between(np.datetime64(int(day), "D").item(), end=today)
        for day in known
    ]
    age = np.array(ages, dtype=np.int64)[which]
    facts = zip(findings, risks, rows["currency"].tolist(), age.tolist(), strict=True)
    severities = [
        severity_of(codes, at_risk=money, currency=currency, age_days=old, rules=basis.rules).value
        for codes, money, currency, old in facts
    ]
    first_days, now = first_seen(basis.previous), today.isoformat()
    return rows.assign(
        age_days=age,
        severity=np.array(severities, dtype=object),
        first_seen=np.array([first_days.get(own, now) for own in rows["identity"]], dtype=object),
    )


def first_seen(previous: Previous | None) -> dict[str, str]:
    """Return break -> the date on which an earlier run saw it first."""
    if previous is None:
        return {}
    pairs = zip(previous.breaks["break_id"], previous.breaks["first_seen"], strict=True)
    return {**previous.away, **{str(own): str(day)[:10] for own, day in pairs}}


_NUMBERS: Mapping[str, int] = {
    **dict.fromkeys(
        ("gateway_amount", "ledger_amount", "effect_orders", "effect_ledger"), NO_AMOUNT
    ),
    **dict.fromkeys(("bank_amount", "effect_bank", "effect"), NO_AMOUNT),
    "exposure": 0,
    "due_at": NO_INSTANT,
}
_TEXTS = (
    *("key", "id", "merchant_id", "account_id", "currency", "state", "code", "flags", "entry_id"),
    *("rule", "leg", "since", "expected_side", "owed_to", "reason", "about", "part"),
)
FOUND = (*_TEXTS, *_NUMBERS)
"""Columns of findings; minor units, NO_AMOUNT where a side is absent, days as ISO dates. `key`
identifies a break; `effect` is that of `leg`, the `effect_…` columns are shown in its rows;
`since`: the first day of a break; `due_at`: until when it may wait, in microseconds; `reason`: the
sentence of a break, or why something is unverified; `rule`: of a match, which is left out without
one; `part`: the account of its journal (proposed_journals.PARTS)."""
_BLANK = {**dict.fromkeys(_TEXTS, ""), **_NUMBERS, "owed_to": "none"}


def found_rows(columns: Mapping[str, Any], *, size: int) -> Arrays:
    """Return FOUND rows from columns, or single cells repeated; what is not given is blank."""
    found: dict[str, Column] = {}
    for name in FOUND:
        found[name] = np.empty(size, dtype=np.int64 if name in _NUMBERS else object)
        found[name][:] = columns.get(name, _BLANK[name])
    return Arrays(found, size=size)


class Comparison:
    """The rules and sentences of codes.toml for comparisons other than sets (`of`, see When.of).

    `facts`: name -> type of what its conditions may use; those of its sentences may also use FOUND
    and `more`.
    """

    def __init__(
        self,
        of: str,
        *,
        facts: Mapping[str, type],
        clauses: Mapping[str, Clause],
        more: Mapping[str, type] | None = None,
    ) -> None:
        columns = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_NUMBERS, int)}
        self._rows = rows_of(TABLE, of=of, facts=facts)
        self._sentences = Sentences(of, facts={**facts, **columns, **(more or {})}, clauses=clauses)

    def found(
        self,
        facts: Mapping[str, Column],
        *,
        columns: Mapping[str, Any],
        more: Mapping[str, Sequence[Any] | Column],
        flags: Mapping[Flag, Bools] | None = None,
    ) -> Arrays:
        """Return FOUND rows: the outcome of each row's facts, together with its shown columns.

        Args:
            facts: a column of each fact, and `unverified` (see classifying.table).
            columns: the other columns of FOUND, or one cell for all rows.
            more: further values that the sentences of breaks use (grain: row).
            flags: masks of the flags that no row of the table sets.
        """
        classified = classified_by(self._rows, facts=facts)
        own = {name: classified.of_each(name) for name in ("state", "reason", "expected_side")}
        own |= {"code": classified.codes(), "flags": classified.flags(flags or {})}
        found = found_rows({**columns, **own}, size=len(own["code"]))
        known = {**facts, **found.columns, **more}
        for at in np.flatnonzero(found["code"] != "").tolist():
            row = SimpleNamespace(**{name: cells[at] for name, cells in known.items()})
            found["reason"][at] = self._sentences.reason(row.code, row)
        return found


def identified(
    found: Arrays, *, previous: Previous | None, used: Collection[str] = ()
) -> tuple[Arrays, dict[str, str]]:
    """Return the rows of FOUND with ids by their key, and id -> the closed break it reopens."""
    closed = previous.closed if previous is not None else frozenset()
    ids, reopens, used = [], {}, {*used}
    for *key, state in found.rows("merchant_id", "account_id", "key", "state"):
        # Where a bank numbers all its statements alike, two entries of a year may have the same
        # name.
        own, last = next_id(key, closed=closed, used=used)
        ids.append(own)
        used.add(own)
        if last and state == SetState.BREAK:
            reopens[own] = last
    return found.assign(id=np.array(ids, dtype=object)), reopens


def dispositions_of_found(rows: Arrays) -> dict[str, Disposition]:
    """Return the disposition of every id, for the roll-forward."""
    cells = rows.rows("id", "state", "flags")
    return {own: Disposition(state, flags, is_linked=False) for own, state, flags in cells}


def _graded(rows: Arrays, *, basis: Basis) -> Arrays:
    days = np.array(rows["since"], dtype="datetime64[D]").astype(np.int64)
    effects = np.where(rows["effect"] == NO_AMOUNT, 0, rows["effect"]).tolist()
    whole = zip(rows["exposure"].tolist(), effects, strict=True)
    return _aged(
        rows.assign(identity=rows["id"]),
        days=days,
        findings=[(BreakCode(code),) for code in rows["code"].tolist()],
        risks=[money_at_risk(exposure, effects=(effect,)) for exposure, effect in whole],
        basis=basis,
    )


_JOINED = (*("flags", "bank_amount", "effect_bank", "exposure", "severity", "owed_to", "reason"),)
"""Columns that a break merges from another finding about the same id."""


def _with_breaks(breaks: pd.DataFrame, rows: Arrays) -> pd.DataFrame:
    """Add breaks; one that exists already gets the other code as a flag.

    It is as severe as the more severe of the two, and owed to whom either of them says.
    """
    known = {one: at for at, one in enumerate(breaks["break_id"].tolist())}
    both = np.array([one in known for one in rows["id"].tolist()], dtype=np.bool_)
    if both.any():
        # Whole columns: writing a single cell into a frame copies its column.
        cells = {name: breaks[name].tolist() for name in _JOINED}
        joined = rows.take(both)
        for at, code, row in zip(
            (known[one] for one in joined["id"].tolist()),
            joined["code"].tolist(),
            (dict(zip(_JOINED, row, strict=True)) for row in joined.rows(*_JOINED)),
            strict=True,
        ):
            flags = {*cells["flags"][at].split(";"), *row["flags"].split(";"), code}
            cells["flags"][at] = flag_text(flags - {""})
            for name in ("bank_amount", "effect_bank"):
                if row["effect_bank"] != NO_AMOUNT:
                    cells[name][at] = row[name]
            cells["exposure"][at] = max(cells["exposure"][at], row["exposure"])
            cells["severity"][at] = worse(cells["severity"][at], row["severity"])
            if cells["owed_to"][at] == "none":
                cells["owed_to"][at] = row["owed_to"]
            cells["reason"][at] = f"{cells['reason'][at]} {row['reason']}"
        breaks = breaks.assign(
            **{
                name: pd.Series(values, index=breaks.index, dtype=breaks[name].dtype)
                for name, values in cells.items()
            }
        )
    return _added(breaks, rows.take(~both), names=BREAK_COLUMNS, by=BREAKS_SORTED_BY)


def _added(
    frame: pd.DataFrame, rows: Arrays, *, names: tuple[str, ...], by: list[str]
) -> pd.DataFrame:
    """Return a frame of the result with more rows, sorted."""
    if not len(rows):
        return frame
    amounts = tuple(name for name in AMOUNT_COLUMNS if name in names)
    more = frame_of_rows(rows, names=names, amounts=amounts)
    for name in names:
        if more[name].dtype != frame[name].dtype:
            more[name] = more[name].astype(frame[name].dtype)
    if not len(frame):
        return in_order(more, by=by)
    return in_order(pd.concat([frame, more], ignore_index=True), by=by)
