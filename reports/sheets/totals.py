"""The rows of a run as its sheets show them, and their totals in integer minor units per currency.

Of the lists that grow with the business (matched, waiting, not verified) there are sums of all rows
by group, and the rows that a sheet shows.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.breaks import movements as moves
from recon.matching.classifying.severity import urgency
from recon.matching.frames.coding import keyed
from recon.matching.frames.grouping import Ints, amounts_of, total
from recon.model.errors import OutputError
from recon.model.figures import MATCHES, MatchedRows, NightFigures
from recon.model.money import Money
from recon.model.step_progress import with_progress
from recon.model.terms import InstructionKind, InstructionState
from reports.drawing.blocks import Column, Listing, Sheet, rows_of

AccountOrder = tuple[str, str]
"""Account ("" where it could not be read) and order number."""
WAITING, NOT_VERIFIED = "Waiting", "Not verified"
RISK = "risk"
"""Money at risk of a set, minor units: the effect of a waiting one if known, else its amount."""
MATCHED_BY = ("account_id", "currency", "state_orders", "state_gateway", "rule", "flags")
OPEN_BY = ("result", "reason", "expected_side", "account_id", "currency")
AMOUNT_NAMES = ("order_amount", "gateway_amount", "ledger_amount", "effect_orders", "effect_ledger")
_EFFECTS, _SIDES = AMOUNT_NAMES[3:], AMOUNT_NAMES[:3]
_BLANK: Mapping[str, Any] = {"reason": "", "expected_side": "", "due_at": None}
_KINDS: Mapping[str, str] = {
    InstructionKind.CAPTURE: "capture",
    InstructionKind.REFUND: "refund",
    InstructionKind.CANCEL: "cancellation",
}
_WAITS_FOR: Mapping[str, str] = {
    InstructionState.PLANNED: "for a person's approval",
    InstructionState.APPROVED: "to be sent",
}
_HALF = 10**9
"""Amounts are split into two halves, so that each half's sum of any batch fits in 64 bits."""
Formatter = Callable[[Mapping[str, Any]], str | None]
"""Returns further information on a row as text."""


@dataclass(frozen=True, slots=True)
class Summed:
    """A list that grows with the business: sums of all rows, and the rows shown."""

    groups: list[dict[str, Any]]
    """`rows`, and the sum of each amount (minor units) by group, in order."""
    shown: list[dict[str, Any]]

    def count(self, *results: str) -> int:
        """Number of sets with these results; without any result, of all sets."""
        chosen = (each for each in self.groups if not results or each["result"] in results)
        return sum(group["rows"] for group in chosen)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the run as plain values, in the order of the sheets."""

    breaks: list[dict[str, Any]]
    open: Summed
    """Pending and unverified sets, by `result`."""
    matched: Summed
    instructions: list[dict[str, Any]]
    batches: list[dict[str, Any]]
    movements: list[dict[str, Any]]
    """`counts_as` is their column of the roll-forward."""
    journals: list[dict[str, Any]]
    sides: list[dict[str, Any]]
    other_effects: list[dict[str, Any]]
    """break_id, account_id, leg, currency, amount: effects that no row of Breaks shows."""


GROUPS: Mapping[str, str] = {
    "confirmed": "confirmed",
    "resolved_applied": "confirmed",
    "rejected": "rejected",
    "resolved_not_applied": "rejected",
    "in_flight": "in doubt",
    "in_doubt": "in doubt",
    "needs_human": "in doubt",
    "planned": "waiting",
    "approved": "waiting",
    "withdrawn": "withdrawn",
}
"""Instruction state -> the group it counts in."""
GROUP_ORDER = ("in doubt", "rejected", "waiting", "confirmed", "withdrawn")


OPENED = (moves.NEW, AGAIN := "again")
"""How breaks open; `again`: it had closed, or had not been seen for some runs."""
STILL_OPEN = "still open"
CLOSED = (*moves.FOR_GOOD, OTHER := "other")
"""How breaks close; `other`: pending again, unverified, explained elsewhere or not seen."""
COUNTS_AS: Mapping[str, str] = {
    moves.NEW: moves.NEW,
    **dict.fromkeys((moves.REOPENED, moves.RETURNED), AGAIN),
    **dict.fromkeys(moves.STILL_OPEN, STILL_OPEN),
    **{label: label for label in moves.FOR_GOOD},
    **dict.fromkeys((moves.PENDING, moves.UNVERIFIED, moves.EXPLAINED, moves.NEVER_SEEN), OTHER),
}
"""Every movement of the engine -> its column of the roll-forward."""


def rows_on_sheets(figures: NightFigures) -> Rows:
    """All rows of the sheets; breaks and instructions are sorted by urgency."""
    breaks = rows_of(figures.breaks)
    instructions = [
        {**row, "group": GROUPS.get(row["state"], "in doubt")}
        for row in rows_of(figures.instructions)
    ]
    return Rows(
        breaks=sorted(breaks, key=urgency),
        open=_open(figures),
        matched=_matched(figures),
        instructions=sorted(
            instructions, key=lambda row: (GROUP_ORDER.index(row["group"]), row["instruction_id"])
        ),
        batches=rows_of(figures.batches),
        movements=[
            {**row, "counts_as": COUNTS_AS[row["movement"]]} for row in rows_of(figures.movements)
        ],
        journals=rows_of(figures.journals),
        sides=rows_of(figures.sides),
        other_effects=_other_effects(breaks, effects=rows_of(figures.effects)),
    )


def sum_of(rows: Iterable[Mapping[str, Any]], *, name: str, currency: str) -> int:
    """The sum of an amount column over the rows of one currency, minor units."""
    return sum(row[name] or 0 for row in rows if row["currency"] == currency)


def _other_effects(
    breaks: list[dict[str, Any]], *, effects: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Effects minus those in the rows: second currencies and second accounts."""
    left: Counter[tuple[str, str, str, str]] = Counter()
    for row in effects:
        left[row["break_id"], row["account_id"], row["leg"], row["currency"]] += row["amount"] or 0
    for row in breaks:
        for leg in ("orders", "ledger", "bank"):
            key = (row["break_id"], row["account_id"], leg, row["currency"])
            left[key] -= row.get(f"effect_{leg}") or 0
    names = ("break_id", "account_id", "leg", "currency")
    return [
        {**dict(zip(names, key, strict=True)), "amount": amount}
        for key, amount in sorted(left.items())
        if amount
    ]


def kinds_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kinds that occur, captures and refunds first."""
    first = ("capture", "refund", "cancel")
    kinds = {str(row["kind"]) for row in rows}
    return [*(kind for kind in first if kind in kinds), *sorted(kinds - set(first))]


def unread_rows(figures: NightFigures) -> Mapping[AccountOrder, str]:
    """A sentence for each order with an unreadable row; the last such row is used."""
    unread: list[tuple[Any, str]] = [(each, "") for each in figures.rejects]
    unread += [
        (each, f" Row {each.reject_id} of `recon order-file check`.")
        for each in figures.quarantined
    ]
    return {
        (each.account_id, each.order_no): f"Line {each.line} of {each.source} ({each.column}) "
        f"could not be read, and nobody delivered this order again: have it delivered.{row}"
        for each, row in unread
        if each.order_no
    }


def _matched(figures: NightFigures) -> Summed:
    """Sum all matches in one pass, then take the rows that the sheet shows."""
    matched = figures.matches
    sums: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for batch in with_progress(matched.batches(), "matches added up", of=matched.count):
        for group, amounts in sums_by(batch, by=MATCHED_BY, of=AMOUNT_NAMES).items():
            sums[group].update(amounts)
    is_cut = matched.count > figures.matched_rows_max
    shown: list[dict[str, Any]] = []
    most = figures.matched_rows_shown if is_cut else matched.count
    for batch in _orders_first(matched):
        shown += rows_of(batch.iloc[: most - len(shown)])
        if len(shown) >= most:
            break
    return Summed(_grouped(sums, by=MATCHED_BY), shown)


def _grouped(
    sums: Mapping[tuple[str, ...], Mapping[str, int]], *, by: Sequence[str]
) -> list[dict[str, Any]]:
    return [{**dict(zip(by, group, strict=True)), **sums[group]} for group in sorted(sums)]


def _orders_first(matches: MatchedRows) -> Iterator[pd.DataFrame]:
    """All rows: those of orders and payments first, then bank and ledger rows without one.

    The file starts with the latter, which would show a reader neither a number nor an amount.
    """
    left = 0
    for batch in matches.batches():
        named = _names_a_payment(batch)
        left += len(batch) - int(named.sum())
        yield batch if named.all() else batch[named]
    if left:
        for batch in matches.batches():
            yield batch[~_names_a_payment(batch)]


def _names_a_payment(batch: pd.DataFrame) -> "pd.Series[bool]":
    return (batch["order_no"] != "") | (batch["transaction_id"] != "")


def _open(figures: NightFigures) -> Summed:
    """Unverified sets, then pending ones; a shortened list has the most at risk in each currency.

    Amounts in different currencies are never compared.
    """
    frames = {NOT_VERIFIED: figures.unverified, WAITING: figures.pending}
    unread, ours = unread_rows(figures), _waiting(figures.instructions)
    label_of: Mapping[str, Formatter] = {
        NOT_VERIFIED: lambda row: (
            unread.get((row["account_id"], row["order_no"])) or unread.get(("", row["order_no"]))
        ),
        WAITING: lambda row: (
            ours.get(row["order_no"]) if row["expected_side"] == "gateway" else None
        ),
    }
    is_cut = sum(map(len, frames.values())) > figures.open_rows_max
    groups: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for result, frame in frames.items():
        if not len(frame):
            continue
        risk = _risk(frame, is_classified=result == WAITING)
        every = frame.assign(risk=risk, result=result)
        absent = [name for name in OPEN_BY if name not in every.columns]
        every[absent] = ""
        groups += _grouped(sums_by(every, by=OPEN_BY, of=(*AMOUNT_NAMES, RISK)), by=OPEN_BY)
        if is_cut:
            every["nth"] = every.groupby("currency")[RISK].rank(method="first", ascending=False)
            every = every.sort_values(["nth", "currency"])[: figures.open_rows_shown]
        shown += sorted(
            ({**_BLANK, **row, "reported": label_of[result](row)} for row in rows_of(every)),
            key=lambda row: (row["account_id"], row["order_no"] or "", row["transaction_id"] or ""),
        )
    if is_cut:
        shown.sort(key=lambda row: (row["nth"], row["currency"]))
        del shown[figures.open_rows_shown :]
        shown.sort(key=lambda row: (row["currency"], -row[RISK]))
    return Summed(groups, shown)


def _waiting(instructions: pd.DataFrame) -> dict[str, str]:
    """Order -> our instructions waiting to be sent, and whether they need an approval first."""
    rows = instructions[instructions["state"].isin(_WAITS_FOR) & instructions["kind"].isin(_KINDS)]
    sentences: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        what = _KINDS[row["kind"]]
        if row["kind"] != InstructionKind.CANCEL:
            what += f" of {Money.of_minor_units(row['amount'], currency=row['currency'])}"
        sentence = f"Our {what} waits {_WAITS_FOR[row['state']]}."
        sentences.setdefault(row["order_no"], []).append(sentence)
    return {order: " ".join(each) for order, each in sentences.items()}


def _risk(frame: pd.DataFrame, *, is_classified: bool) -> Ints:
    """RISK of each row."""
    effect, whole = (
        np.maximum.reduce([np.abs(amounts_of(frame[name])) for name in names])
        for names in (_EFFECTS, _SIDES)
    )
    risk: Ints = np.where(is_classified & (effect > 0), effect, whole)
    return risk


def sums_by(
    batch: pd.DataFrame, *, by: Sequence[str], of: Sequence[str]
) -> dict[tuple[str, ...], dict[str, int]]:
    """Group -> row count and exact sums of a batch."""
    numbers, groups = keyed(batch, by=by)
    counts = np.bincount(numbers, minlength=len(groups)).tolist()
    sums: dict[str, list[int]] = {}
    for name in of:
        halves = (
            total(half, groups=numbers, size=len(groups)).tolist()
            for half in np.divmod(amounts_of(batch[name]), _HALF)
        )
        sums[name] = [high * _HALF + low for high, low in zip(*halves, strict=True)]
    return {
        group: {"rows": count, **{name: sums[name][number] for name in of}}
        for number, (group, count) in enumerate(zip(groups, counts, strict=True))
    }


TITLE = "_run"
COMPANION = "matched_file_"
_COMPANION = re.compile(r"([0-9]{1,12}) ([0-9a-f]{64}) ((?!\.)[^/\\\x00]+)")
SCHEMA_VERSION = 4
COLUMNS = (Column("Fact", 20, "name"), Column("Value", 70, "value"))


def run_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """The hidden sheet with the facts of the run, among them the verdict."""
    facts = {**facts_of(figures, rows=rows), **companion_facts(figures)}
    listed = [{"name": name, "value": value} for name, value in facts.items()]
    return Sheet(TITLE, [Listing(COLUMNS, listed)], frozen=(1, 0), is_hidden=True)


def facts_of(figures: NightFigures, *, rows: Rows) -> dict[str, str]:
    """The facts that identify the run, as text."""
    return {
        "schema_version": str(SCHEMA_VERSION),
        "run_id": figures.run_id,
        "merchant_id": figures.merchant_id,
        "account_id": figures.account_id,
        "business_date": figures.business_date.isoformat(),
        "verdict": figures.verdict.value,
        "breaks": str(len(rows.breaks)),
        "keys_sha256": keys_digest(str(row["break_id"]) for row in rows.breaks),
        "rules_digest": figures.rules_digest,
        "history_head": figures.history_head,
    }


def companion_facts(figures: NightFigures) -> dict[str, str]:
    """The file of matches next to a workbook of plain files: matched_file_1 -> its facts."""
    file = figures.files_named().get(MATCHES)
    if file is None or "/" in file.name:
        return {}
    return {f"{COMPANION}1": f"{file.rows} {file.sha256} {file.name}"}


def companions_of(facts: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """Rows, SHA-256 and name of every file that accompanies a workbook.

    Raises:
        OutputError: an entry does not name a file of the same folder.
    """
    values = [value for name, value in facts.items() if name.startswith(COMPANION)]
    named = [_COMPANION.fullmatch(value) for value in values]
    if None in named:
        msg = "the workbook's hidden sheet does not name files beside it: it is not one of ours"
        raise OutputError(msg)
    return [(int(each[1]), each[2], each[3]) for each in named if each is not None]


def keys_digest(keys: Any) -> str:
    """SHA-256 of the sorted break keys, to detect added or lost rows."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
