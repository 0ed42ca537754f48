"""A stranger who reads a reason beside the rows: every number and every claim is looked up.

It knows the words of the sentences and the rows of a set; it shares nothing with what wrote them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

from iso4217 import Currency

from tests.recon.matching.conftest import CODES

Row = Mapping[str, Any]
Rows = Mapping[str, list[dict[str, Any]]]
MONEY = re.compile(r"(-?[\d,]+(?:\.\d+)?) ([A-Z]{3})\b")
TAKEN = {"paid", "partially refunded", "refunded", "chargeback"}
STATES = {code: label.replace("_", " ") for label, code in CODES.items()}


def false_claims(said: str, *, rows: Rows, covered: bool) -> list[str]:
    """What of a sentence the rows of its set do not bear out."""
    rows = {**rows, "orders": _once(rows.get("orders", []))}
    truth = _truth(rows)
    known = _sums(truth.values())
    wrong = [f"{text}: no row" for text in _amounts(said) if _minor(*text) not in known]
    for pattern, holds in CLAIMS.items():
        found = re.finditer(pattern, said)
        wrong += [match.group() for match in found if not holds(match, rows, covered)]
    return wrong


def _once(orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An identical repeat says nothing new."""
    return [row for n, row in enumerate(orders) if row not in orders[:n]]


def is_claimed(said: str) -> bool:
    """Whether anything of the sentence can be looked up beyond its numbers."""
    return any(re.search(pattern, said) for pattern in CLAIMS)


def _amounts(said: str) -> list[tuple[str, str]]:
    return [(number.replace(",", ""), currency) for number, currency in MONEY.findall(said)]


def _minor(number: str, currency: str) -> tuple[int, str]:
    decimals = Currency(currency).exponent or 0
    whole, _, fraction = number.partition(".")
    assert len(fraction) == decimals, (number, currency)
    return int(whole + fraction), currency


def _truth(rows: Rows) -> dict[str, list[tuple[int, str]]]:
    """Signed amounts by side, of which any sum may be told."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows.get("orders", []):
        captured = _captured_of_order(row)
        found.setdefault("order", []).append((captured, row["currency"]))
        found["order"] += [(-_back_of_order(row), row["currency"])]
        found.setdefault("ordered", []).append((row["amount"], row["currency"]))
        found.setdefault("order back", []).append((_back_of_order(row), row["currency"]))
    for row in _payments(rows):
        found.setdefault("gateway", []).append((_captured(row), row["currency"]))
        found["gateway"] += [(-_back(row), row["currency"])]
        found.setdefault("stated", []).append((_over(row), row["currency"]))
        found.setdefault("gateway back", []).append((_back(row), row["currency"]))
    for row in rows.get("ledger", []):
        amount = -row["amount"] if row["entry_type"].endswith("_reversal") else row["amount"]
        side = f"ledger {row['entry_type'].removesuffix('_reversal')}"
        found.setdefault(side, []).append((amount, row["currency"]))
    for row in rows.get("instructions", []):
        found.setdefault(f"ours {row['kind']}", []).append((row["amount"], row["currency"]))
    for row in rows.get("settlement", []):
        known = row["entry_type"] in {"capture", "refund", "chargeback"}
        kind = row["entry_type"] if known else "other"
        found.setdefault(f"settled {kind}", []).append((abs(row["gross"]), row["currency"]))
    return found


def _sums(sides: Iterable[list[tuple[int, str]]]) -> set[tuple[int, str]]:
    """Every sum of rows of one side and currency."""
    sums = set()
    for side in sides:
        for size in range(1, len(side) + 1):
            for chosen in combinations(side, size):
                currencies = {currency for _, currency in chosen}
                if len(currencies) == 1:
                    sums.add((sum(amount for amount, _ in chosen), *currencies))
    return sums


def _payments(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in rows.get("gateway", []) if row["answer"] == "found"]


def _state(row: Row) -> str:
    return STATES[row["payment_status"]]


def _over(row: Row) -> int:
    """What a payment that took nothing yet is over."""
    return int(row.get("authorised_amount") or row["amount"])


def _captured(row: Row) -> int:
    captured = row.get("captured_amount")
    return (row["amount"] if captured is None else captured) if _state(row) in TAKEN else 0


def _back(row: Row) -> int:
    if _state(row) not in TAKEN:
        return 0
    back = row.get("refunded_amount")
    if back is None:
        return _captured(row) if _state(row) == "refunded" else 0
    return int(back)


def _captured_of_order(row: Row) -> int:
    if row["status"] not in {"paid", "partially_refunded", "refunded", "authorised"}:
        return 0
    return int(row["amount"])


def _back_of_order(row: Row) -> int:
    if row["status"] == "refunded" and row.get("refund_amount") is None:
        return int(row["amount"])
    return int(row.get("refund_amount") or 0) if "refunded" in row["status"] else 0


def _is_sum(match: re.Match[str], amounts: Iterable[int], *, group: int = 1) -> bool:
    text = MONEY.search(match.group(group))
    assert text is not None
    told, _ = _minor(text.group(1).replace(",", ""), text.group(2))
    return told == sum(amounts)


def _ours(kind: str, *states: str) -> Callable[[re.Match[str], Rows, bool], bool]:
    def holds(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
        del covered
        mine = [row for row in rows.get("instructions", []) if row["kind"] == kind]
        amounts = [row["amount"] for row in mine if row["state"] in states]
        return bool(amounts) and (not match.groups() or _is_sum(match, amounts))

    return holds


def _booked(kind: str) -> Callable[[re.Match[str], Rows, bool], bool]:
    def holds(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
        return covered and _is_sum(match, _entries(rows, kind=kind))

    return holds


def _entries(rows: Rows, *, kind: str) -> list[int]:
    mine = [row for row in rows.get("ledger", []) if row["entry_type"].startswith(kind)]
    return [-row["amount"] if "reversal" in row["entry_type"] else row["amount"] for row in mine]


def _of_state(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
    """The gateway says STATE with X: some payment has the state, and X is what those are over."""
    del covered
    payments = _payments(rows)
    if not any(_state(row) == match.group(1) for row in payments):
        return False
    if len({row["currency"] for row in payments}) > 1:
        told = _minor(*_amounts(match.group(2))[0])
        mine = [row for row in payments if _state(row) == match.group(1)]
        return any(told in {(f(row), row["currency"]) for f in (_captured, _over)} for row in mine)
    if match.group(1) in TAKEN:
        return _is_sum(match, [_captured(row) for row in payments], group=2)
    amounts = [_over(row) for row in payments if _state(row) == match.group(1)]
    return _is_sum(match, amounts, group=2)


def _order_is(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
    del covered
    orders = rows.get("orders", [])
    if not any(row["status"].replace("_", " ") == match.group(1) for row in orders):
        return False
    if "refunded" in match.group(1):
        return _is_sum(match, [_back_of_order(row) for row in orders], group=2)
    if match.group(1) == "paid":
        return _is_sum(match, [_captured_of_order(row) for row in orders], group=2)
    return _is_sum(match, [row["amount"] for row in orders], group=2)


def _more(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
    del rows, covered
    left, right = (_minor(*_amounts(text)[0]) for text in match.groups())
    return left > right


def _less(match: re.Match[str], rows: Rows, covered: bool) -> bool:  # noqa: FBT001 - a claim
    del rows, covered
    left, right = (_minor(*_amounts(text)[0]) for text in match.groups())
    return left < right


A = r"(-?[\d,.]+ [A-Z]{3})"
IN_DOUBT = ("in_flight", "in_doubt", "needs_human")
DONE = ("confirmed", "resolved_applied")
REFUSED = ("rejected", "resolved_not_applied")
WAITS = ("planned", "approved")
CLAIMS: Mapping[str, Callable[[re.Match[str], Rows, bool], bool]] = {
    rf"[Tt]he order is ([a-z ]+?) with {A}": _order_is,
    rf"[Tt]he gateway says ([a-z ]+?) with {A}": _of_state,
    r"the gateway does not know the payment": lambda _, rows, __: not _payments(rows),
    r"[Nn]o order (?:is there|explains)": lambda _, rows, __: not rows.get("orders"),
    rf"[Tt]he order expects {A} refunded": lambda match, rows, _: _is_sum(
        match, [_back_of_order(row) for row in rows.get("orders", [])]
    ),
    rf"the order expects {A}\.": lambda match, rows, _: (
        _is_sum(match, [_captured_of_order(row) for row in rows["orders"]])
        or _is_sum(match, [_back_of_order(row) for row in rows["orders"]])
    ),
    r"the order expects no refund": lambda _, rows, __: (
        not any(_back_of_order(row) for row in rows["orders"])
    ),
    rf"the order says {A} refunded": lambda match, rows, _: _is_sum(
        match, [_back_of_order(row) for row in rows["orders"]]
    ),
    rf"the order says {A}\.": lambda match, rows, _: _is_sum(
        match, [_captured_of_order(row) - _back_of_order(row) for row in _money_orders(rows)]
    ),
    rf"[Tt]he gateway (?:shows|refunded) {A}": lambda match, rows, _: _is_sum(
        match, [_back(row) for row in _payments(rows)]
    ),
    r"the gateway shows nothing refunded": lambda _, rows, __: (
        not any(_back(row) for row in _payments(rows))
    ),
    rf"Gateway captured (?:only )?{A}": lambda match, rows, _: _is_sum(
        match, [_captured(row) for row in _payments(rows)]
    ),
    rf"[Gg]ateway holds (?:only )?{A}": lambda match, rows, _: _is_sum(
        match,
        [
            _captured(row) - _back(row)
            for row in _held(rows)
            if row["currency"] == match.group(1)[-3:]
        ],
    ),
    rf"Gateway holds {A}, the order says {A}": _more,
    rf"holds only {A}, the order says {A}": _less,
    rf"captured only {A}, the order expects {A}": _less,
    rf"Gateway captured {A}, the order expects {A}": _more,
    rf"The gateway holds {A} in several payments .*the order says {A}": _more,
    rf"The gateway refunded {A}, the order expects {A}": _more,
    rf"payments sum to {A}, the order says {A}": _less,
    rf"The gateway shows {A} refunded, more than the captured {A}": _more,
    r"neither orders nor gateway know it": lambda _, rows, __: (
        not _payments(rows) and not rows.get("orders")
    ),
    rf"has {A} refunded of {A} captured": _more,
    rf"has {A} captured of {A} authorised": _more,
    r"no ledger was given": lambda _, __, covered: not covered,
    r"the ledger has": lambda _, __, covered: covered,
    r"the ledger has no refund": lambda _, rows, __: not sum(_entries(rows, kind="refund")),
    r"the ledger has no capture": lambda _, rows, __: not sum(_entries(rows, kind="capture")),
    r"the ledger has no chargeback": lambda _, rows, __: not sum(_entries(rows, kind="chargeback")),
    rf"ledger has captures of {A}": _booked("capture"),
    rf"(?:has|and|,) refunds of {A}(?=.*(?:gateway|neither))": _booked("refund"),
    rf"ledger (?:still )?has chargebacks of {A}": _booked("chargeback"),
    rf"Our capture of {A} is in doubt": _ours("capture", *IN_DOUBT),
    rf"Our capture of {A} was confirmed": _ours("capture", *DONE),
    rf"Our capture of {A} (?:was refused|did not)": _ours("capture", *REFUSED),
    rf"Our capture of {A} counts as refused": _ours("capture", *REFUSED),
    rf"Our refund of {A} counts as refused": _ours("refund", *REFUSED),
    r"Our cancellation counts as refused": _ours("cancel", *REFUSED),
    rf"Our capture of {A} still waits": _ours("capture", *WAITS),
    rf"Our refund of {A} is in doubt": _ours("refund", *IN_DOUBT),
    rf"Our refund of {A} was confirmed": _ours("refund", *DONE),
    rf"our refund of {A} was confirmed": _ours("refund", *DONE),
    rf"our capture of {A} was confirmed": _ours("capture", *DONE),
    rf"Our refund of {A} (?:was refused|did not)": _ours("refund", *REFUSED),
    rf"Our refund of {A} still waits": _ours("refund", *WAITS),
    rf"Our refunds come to {A}": _ours("refund", *IN_DOUBT, *DONE),
    r"Our cancellation is in doubt": _ours("cancel", *IN_DOUBT),
    r"Our cancellation was confirmed": _ours("cancel", *DONE),
    r"Our cancellation was refused by": _ours("cancel", "rejected"),
    r"Our cancellation did not": _ours("cancel", "resolved_not_applied"),
    r"Our cancellation still waits": _ours("cancel", *WAITS),
    r"Our decision of the review is in doubt": _ours("review", *IN_DOUBT),
    r"Our decision of the review was refused": _ours("review", *REFUSED),
    r"We decided the review": _ours("review", *DONE),
    r"Our end of the subscription is in doubt": _ours("cancel_subscription", *IN_DOUBT),
    r"did not end the subscription": _ours("cancel_subscription", *REFUSED),
    rf"chargeback of the payment of {A}": lambda match, rows, _: _is_sum(
        match, [_captured(row) for row in _payments(rows) if _state(row) == "chargeback"]
    ),
    r"answered status (\S+),": lambda match, rows, _: (
        match.group(1) in {row["payment_status"] for row in _payments(rows)} - _MAPPED
    ),
    r"same (\w+)(?: and \w+)? is booked more than once": lambda match, rows, _: (
        len(_entries(rows, kind=match.group(1))) > 1
    ),
    rf"{A} refunded of {A} captured": lambda match, rows, _: bool(match) and bool(rows),
    r"more than once with other content: (.*)\.": lambda match, rows, _: (
        len(_amounts(match.group(1))) == len(rows["orders"]) > 1
    ),
    r"different currencies: (.*)\.": lambda match, _, __: (
        len({currency for _, currency in _amounts(match.group(1))}) > 1
    ),
    r"ways that exclude each other \((.*)\)": lambda match, _, __: (
        len({*match.group(1).split(" and ")}) > 1
    ),
}
"""Words of a sentence, and whether the rows bear them out."""
_MAPPED = {*STATES} - {"9999"}


def _held(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in _payments(rows) if _state(row) != "chargeback"]


def _money_orders(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in rows["orders"] if row["status"] != "authorised"]
