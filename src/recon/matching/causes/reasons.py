"""Explains why a break is open, in one sentence for finance staff.

codes.toml has one sentence for each way in which a set gets a code, and the parts that several of
them share; the first whose condition holds is used. Every number in a sentence is that of one of
the set's own rows, or their sum, on the side that the sentence names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.classifying.outcomes import Outcomes
from recon.matching.classifying.sentences import (
    NOTHING,
    Clause,
    Sentences,
    amount_of,
    as_text,
    first_text,
    listed,
    money,
    sentences_of,
)
from recon.matching.classifying.table import ready
from recon.matching.codes import TABLE
from recon.matching.frames.arrays import Arrays, among, texts
from recon.matching.frames.grouping import Ints, Rows, amounts_of, total
from recon.matching.frames.sources import Sources
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.instruction_side import STANDINGS
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.terms import BreakCode, GatewayState, InstructionState

RowFacts = SimpleNamespace
"""One break: FACTS and NETS in minor units of its currency, and its `rows`."""


class SetRows(NamedTuple):
    """The rows of one set, sorted, so that the order of input rows changes no sentence.

    Each row has the facts of ROW_FACTS that its side knows.
    """

    orders: Sequence[RowFacts] = ()
    payments: Sequence[RowFacts] = ()
    entries: Sequence[RowFacts] = ()
    """Ledger entries by type; amounts less reversals."""
    moves: Sequence[RowFacts] = ()
    payouts: Sequence[RowFacts] = ()
    rivals: Sequence[RowFacts] = ()
    """Other records that fit as well."""
    rivals_by: str = ""
    """What the rivals share: `transaction` or `reference`, and its id."""
    sides: str = ""
    other_account: str = ""
    """The account with the other side; `other_sides` is what it has."""
    other_sides: str = ""


_AMOUNTS = ("amount", "net", "captured", "refunded", "authorised")
ROW_FACTS: Mapping[str, type] = {
    **dict.fromkeys(("transaction_id", "state", "kind", "code", "account_id", "name"), str),
    **dict.fromkeys(_AMOUNTS, int),
    **dict.fromkeys(("beyond", "twice", "in_other_account"), bool),
}
"""Facts for conditions over a row. `amount`: its amount, of a payment captured, else authorised;
`net`: what is left of it; `beyond`: more was captured than authorised; `twice`: the first payment
reported with conflicting content; `in_other_account`: a rival of another account."""


def rows_of_sets(
    codes: Sequence[BreakCode], *, numbers: Rows, joined: Joined, sources: Sources, primary: Rows
) -> Mapping[int, SetRows]:
    """Collect the rows of the sets of breaks.

    Args:
        codes: the primary code of each break.
        numbers: its set.
        joined: the sets.
        sources: the rows that the sets were made of.
        primary: for each set the one whose break explains it, else negative.
    """
    named = dict(zip(numbers.tolist(), codes, strict=True))
    orders, gateway, entries, payouts = (
        items.take(np.isin(items["set"], [*named]))
        for items in (
            *(joined.orders.items, joined.gateway.items),
            *(joined.ledger.items, joined.payouts),
        )
    )
    orders = orders.assign(state=np.array(ORDER_STATES, dtype=object)[orders["state"]])
    paid = ("transaction_id", "state", "code", "currency", *_AMOUNTS, "beyond")
    sides: Mapping[str, dict[int, list[RowFacts]]] = {
        "orders": _grouped(orders, "state", "currency", "amount"),
        "payments": _grouped(_payments(gateway, sources=sources), *paid),
        "entries": _grouped(_entries(entries), "kind", "currency", "amount"),
        "payouts": _grouped(payouts.assign(state=payouts["status"]), "state", "currency", "amount"),
        "moves": _grouped(_moves(joined, sources=sources, numbers=[*named]), *_OF_MOVES),
    }
    for several_payments in sides["payments"].values():
        ids = [payment.transaction_id for payment in several_payments]
        twice = next((id_ for id_ in ids if ids.count(id_) > 1), None)
        for payment in several_payments:
            payment.twice = payment.transaction_id == twice
    moved = _moved(joined.sets, primary=primary, numbers={*named})
    ambiguous = {number for number, code in named.items() if code is BreakCode.AMBIGUOUS_MATCH}
    rivals: dict[int, dict[str, Any]] = {
        number: {"rivals": _rivals(joined.sets, others, of=number), "rivals_by": by}
        for number, others, by in _fitting(joined, sources=sources, numbers=ambiguous)
    }
    cells: dict[int, dict[str, Any]] = {
        number: {name: rows.get(number, ()) for name, rows in sides.items()}
        | moved.get(number, {})
        | rivals.get(number, {})
        for number in named
    }
    return {number: SetRows(**own) for number, own in cells.items()}


_OF_MOVES = ("kind", "state", "currency", "amount")


def _grouped(items: Arrays, *names: str) -> dict[int, list[RowFacts]]:
    """Return the rows of each set, sorted."""
    grouped: dict[int, list[RowFacts]] = {}
    for number, *cells in sorted(items.rows("set", *names)):
        row = RowFacts(**dict(zip(names, cells, strict=True)))
        grouped.setdefault(int(number), []).append(row)
    return grouped


def _payments(items: Arrays, *, sources: Sources) -> Arrays:
    captured, known = items["captured"], items["authorised_known"]
    held = np.where(known, items["authorised"], items["amount"])
    return items.assign(
        state=np.array(GATEWAY_STATES, dtype=object)[items["state"]],
        code=texts(sources.gateway["payment_status"])[items["row"]],
        amount=np.where(captured > 0, captured, held),
        net=captured - items["refunded"],
        beyond=known & items["captured_known"] & (captured > items["authorised"]) & (captured > 0),
    )


def _entries(items: Arrays) -> Arrays:
    frame = pd.DataFrame({n: items[n] for n in ("kind", "set", "currency", "forward")})
    sums = frame.groupby(["kind", "set", "currency"], as_index=False).sum()
    columns = {str(name): sums[name].to_numpy() for name in sums.columns}
    return Arrays({**columns, "amount": columns["forward"]}, size=len(sums))


def _moves(joined: Joined, *, sources: Sources, numbers: list[int]) -> Arrays:
    moves = sources.instructions
    if moves is None:
        return Arrays({name: np.zeros(0, np.int64) for name in ("set", *_OF_MOVES)}, size=0)
    number = joined.keys.of["instructions"]
    mine = np.isin(number, numbers)
    cells = {name: moves[name][mine].to_numpy() for name in _OF_MOVES}
    return Arrays({"set": number[mine], **cells}, size=int(mine.sum()))


def _moved(sets: Arrays, *, primary: Rows, numbers: set[int]) -> dict[int, dict[str, Any]]:
    """Return, for a break that represents two accounts, which of them has which side."""
    pairs = ((int(primary[linked]), linked) for linked in np.flatnonzero(primary >= 0).tolist())
    return {
        number: {
            "sides": _sides_of(sets, number),
            "other_account": sets["account_id"][linked],
            "other_sides": _sides_of(sets, linked),
        }
        for number, linked in pairs
        if number in numbers
    }


def _sides_of(sets: Arrays, number: int, /) -> str:
    state = GATEWAY_STATES[sets["gateway_state"][number]]
    present = {
        "the order": sets["order_state"][number] != 0,
        "the payment": state not in {"none", "unverified"},
        "the booking": sets["ledger_capture"][number] != 0,
    }
    return listed([side for side, here in present.items() if here]) or "its other side"


def _rivals(sets: Arrays, others: set[int], *, of: int) -> list[RowFacts]:
    named = sorted((sets["account_id"][other], sets["key"][other]) for other in others)
    own = sets["account_id"][of]
    return [RowFacts(account_id=at, name=name, in_other_account=at != own) for at, name in named]


def _fitting(
    joined: Joined, *, sources: Sources, numbers: set[int]
) -> Iterator[tuple[int, set[int], str]]:
    """Yield a set, the others that it fits, and the id that they share, "" for the order number."""
    sets = joined.sets
    away = {number for number in numbers if sets["account_ambiguous"][number]}
    by_order = np.flatnonzero(among(sets["order_no"], {sets["order_no"][row] for row in away}))
    alike: dict[tuple[str, str], set[int]] = {}
    cells = sets.take(by_order).rows("merchant_id", "order_no")
    for number, order in zip(by_order.tolist(), cells, strict=True):
        alike.setdefault(order, set()).add(number)
    for number in sorted(away):
        order = sets["merchant_id"][number], sets["order_no"][number]
        yield number, alike[order] - {number}, ""
    if not numbers - away:
        return
    ids = pd.concat(_ids_of_sets(joined, sources=sources), ignore_index=True)
    order_ids = ids.loc[ids["set"].isin(numbers - away) & ids["id"].ne(""), "id"]
    ids = ids[ids["set"].ge(0) & ids["id"].isin(order_ids)].drop_duplicates()
    by = [*ids.columns.drop("set")]
    sharing = ids.groupby(by)["set"].agg(frozenset)
    sharing = sharing[sharing.map(len).gt(1)]
    own = ids[ids["set"].isin(numbers - away)].merge(sharing.rename("sharing"), on=by)
    own = own.sort_values(by).drop_duplicates("set", keep="last")
    for number, label, name, several in own[["set", *by[-2:], "sharing"]].itertuples(index=False):
        yield number, several - {number}, f"{label} {name}"


def _ids_of_sets(joined: Joined, *, sources: Sources) -> Iterator[pd.DataFrame]:
    """Yield set, merchant_id, account_id, `transaction` or `reference`, and id of all rows."""
    for name, labels in _NAMED_IDS.items():
        frame: pd.DataFrame | None = getattr(sources, name)
        if frame is not None:
            for label in labels:
                of_account = frame[["merchant_id", "account_id"]]
                ids = frame[_ID_COLUMNS[label]]
                yield of_account.assign(set=joined.keys.of[name], label=label, id=ids)


_ID_COLUMNS = {"transaction": "transaction_id", "reference": "reference_no"}
_NAMED_IDS: Mapping[str, tuple[str, ...]] = {
    "orders": ("transaction",),
    "gateway": ("transaction", "reference"),
    "ledger": ("transaction", "reference"),
    "instructions": ("transaction",),
}

NETS = ("gateway_amount", "order_amount", "ledger_amount")
"""Nets of the sides, None where one is absent."""
_OF_BREAKS = ("currency", "account_id", "state_orders", "state_gateway")
_SUMS = (
    *("currencies", "order_captured", "order_refunded", "gateway_captured", "gateway_refunded"),
    *("payments_with_money", "ledger_capture", "ledger_refund", "ledger_chargeback"),
    *("ledger_adjustment", "ledger_write_off", "refund_failed_later_sum"),
    *("capture_confirmed", "capture_rejected", "capture_doubtful", "capture_waiting"),
    *("refund_confirmed", "refund_rejected", "refund_doubtful", "refund_waiting"),
    *("settled_captured", "settled_refunded", "settled_charged", "settled_gross"),
    *("fee_gap", "exchange_gap"),
)
_MARKS = (
    *("refund_unknown", "refund_excess", "over_authorised"),
    *("booked_twice_capture", "booked_twice_refund", "booked_twice_chargeback"),
    *("capture_doubtful_any", "capture_waiting_any", "refund_doubtful_any", "refund_waiting_any"),
    *("cancel_rejected_any", "cancel_doubtful_any", "cancel_waiting_any"),
    *("review_doubtful_any", "review_rejected_any", "cancel_subscription_doubtful_any"),
)
_REFUND_STATES = (GatewayState.PARTIALLY_REFUNDED, GatewayState.REFUNDED)
_OF_ROWS = ("rivals_by", "sides", "other_account", "other_sides")
FACTS: Mapping[str, type] = {
    **dict.fromkeys((*_OF_BREAKS, "settled_currency", "paid_under", *_OF_ROWS), str),
    **dict.fromkeys((*_MARKS, "covered", "refund_hidden", "told_twice", "has_payments"), bool),
    **dict.fromkeys(_SUMS, int),
    **dict.fromkeys(("gateway_net", "order_net", "ordered", "stated"), int),
    **dict.fromkeys(("uncaptured", "gateway_taken", "refund_both", "settled_rest"), int),
}
"""Names and types of the facts that a condition may use (see `facts_of`)."""


def facts_of(
    frame: pd.DataFrame,
    *,
    joined: Joined,
    rows: Mapping[int, SetRows],
    uncaptured: Ints,
    rules: Rules,
) -> Iterator[RowFacts]:
    """Yield the facts of every break, in the order of `frame` (columns set and those of breaks)."""
    sets, numbers = joined.sets.take(frame["set"].to_numpy()), frame["set"].tolist()
    left = uncaptured[frame["set"].to_numpy()]
    refunds = (rules.shows(state) for state in _REFUND_STATES)
    own = [rows[number] for number in numbers]
    ids = [[payment.transaction_id for payment in each.payments] for each in own]
    of_sets = {name: sets[name] for name in (*_SUMS, *_MARKS, "settled_currency")}
    back = sets["settled_refunded"] + sets["settled_charged"]
    computed = {
        "ordered": sets["order_amount"],
        "stated": _stated(joined)[frame["set"].to_numpy()],
        "gateway_net": amounts_of(frame["gateway_amount"]),
        "order_net": amounts_of(frame["order_amount"]),
        # The captured amount as far as it is known: the whole, or our part of it.
        "uncaptured": left,
        "gateway_taken": sets["gateway_captured"] - left,
        "refund_both": sets["refund_confirmed"] + sets["refund_doubtful"],
        "settled_rest": sets["settled_gross"] - sets["settled_captured"] + back,
    }
    columns = {
        **{name: frame[name].tolist() for name in _OF_BREAKS},
        **{name: [None if n is pd.NA else n for n in frame[name].tolist()] for name in NETS},
        **{name: column.tolist() for name, column in {**of_sets, **computed}.items()},
        "covered": [joined.covered] * len(frame),
        "refund_hidden": [not all(refunds)] * len(frame),
        "paid_under": _paid_under(joined, numbers=numbers),
        "rows": own,
        **{name: [getattr(each, name) for each in own] for name in _OF_ROWS},
        "told_twice": [len({*each}) < len(each) for each in ids],
        "has_payments": [bool(each) for each in ids],
    }
    for values in zip(*columns.values(), strict=True):
        yield RowFacts(**dict(zip(columns, values, strict=True)))


def _paid_under(joined: Joined, *, numbers: list[int]) -> list[str]:
    """Return the order under which the gateway has the payment that each set's rows name."""
    sets = joined.sets
    unpaid = [number for number in numbers if sets["gateway_state"][number] == NUMBER["none"]]
    sides = (joined.orders.items, joined.ledger.items)
    named = pd.concat(
        items.take(np.isin(items["set"], unpaid)).frame("set", "transaction_id") for items in sides
    )
    named = named[named["transaction_id"].ne("")]
    items = joined.gateway.items
    paid = items.take(among(items["transaction_id"], {*named["transaction_id"]}))
    both = [
        rows.assign(account=sets["account"][rows["set"]], key=sets["key"][rows["set"]])
        for rows in (named, paid.frame("set", "transaction_id"))
    ]
    found = both[0].merge(both[1], on=["account", "transaction_id"]).groupby("set_x")["key_y"].min()
    return [found.get(number, "") for number in numbers]


def _stated(joined: Joined) -> Ints:
    """Return per set the total of its payments whose state is that of the set.

    A cancelled attempt next to a valid authorisation is not included.
    """
    items, sets = joined.gateway.items, joined.sets
    number = items["set"]
    is_current = items["state"] == sets["gateway_state"][number]
    is_current &= items["currency"] == sets["currency"][number]
    authorised = np.where(items["authorised_known"], items["authorised"], items["amount"])
    amount = np.where(np.isin(items["state"], _CAPTURED), items["captured"], authorised)
    return total(np.where(is_current, amount, 0), groups=number, size=joined.keys.size)


_CAPTURED = [NUMBER[label] for label in ("paid", "partially_refunded", "refunded", "chargeback")]


def label_of(state: str) -> str:
    """Return a state with spaces, for display."""
    return state.replace("_", " ")


def _sums(rows: Iterable[Any], *, of: str = "amount") -> str:
    """Return the sum of rows by currency, as text."""
    sums: dict[str, int] = {}
    for row in rows:
        sums[row.currency] = sums.get(row.currency, 0) + getattr(row, of)
    return listed([money(amount, currency=currency) for currency, amount in sorted(sums.items())])


def _by_currency(facts: RowFacts) -> str:
    """Return the amounts of each side in its own currencies."""
    rows = facts.rows
    clauses = {
        "the order": _sums(rows.orders),
        "a payout": _sums(rows.payouts),
        "the gateway": _CLAUSES["each_payment"](facts),
        "the ledger": _CLAUSES["each_kind"](facts),
        "our instructions": _sums(
            move
            for move in rows.moves
            if move.kind in {"capture", "refund"}
            and move.state in _MOVED
            and move.currency != facts.currency
        ),
    }
    return listed([f"{side} {labels}" for side, labels in clauses.items() if labels not in _NONE])


_NONE = ("", NOTHING)
_MOVED = STANDINGS["confirmed"] | STANDINGS["doubtful"]


def _not_done(kind: str) -> Clause:
    """Make the clause whether the gateway refused, or a person found that it took no effect."""

    def clause(facts: RowFacts) -> str:
        states = {move.state for move in facts.rows.moves if move.kind == kind}
        is_rejected = InstructionState.REJECTED in states
        if InstructionState.RESOLVED_NOT_APPLIED in states:
            return "was refused or did not take effect" if is_rejected else "did not take effect"
        return "was refused by the gateway"

    return clause


def _waits_for(kind: str) -> Clause:
    """Make the clause whether an instruction waits for approval or for sending."""

    def clause(facts: RowFacts) -> str:
        planned = (kind, InstructionState.PLANNED)
        if any((move.kind, move.state) == planned for move in facts.rows.moves):
            return "for a person's approval"
        return "to be sent"

    return clause


def _ours(kind: str, column: str, states: frozenset[InstructionState]) -> Clause:
    """Make the clause of our instructions of a kind and status, in the currency instructed."""

    def clause(facts: RowFacts) -> str:
        mine = [move for move in facts.rows.moves if move.kind == kind and move.state in states]
        if any(move.currency != facts.currency for move in mine):
            return _sums(mine)
        return money(getattr(facts, column), currency=facts.currency)

    return clause


def _payout_booked(facts: RowFacts) -> str:
    booked = [entry for entry in facts.rows.entries if entry.kind == "payout" and entry.amount]
    if not booked:
        return "the ledger has no payout of it"
    if sum(entry.amount for entry in booked) < 0:
        taken_back = _sums(
            RowFacts(currency=one.currency, amount=abs(one.amount)) for one in booked
        )
        return f"the ledger has {taken_back} of payouts taken back"
    return f"the ledger has a payout of {_sums(booked)}"


CLAUSES: Mapping[str, Clause] = {
    "by_currency": _by_currency,
    **{f"{kind}_not_done": _not_done(kind) for kind in ("capture", "cancel", "refund")},
    **{f"{kind}_waits_for": _waits_for(kind) for kind in ("capture", "cancel", "refund")},
    "payout_booked": _payout_booked,
    **{
        f"{kind}_{status}": _ours(kind, f"{kind}_{status}", states)
        for kind in ("capture", "refund")
        for status, states in STANDINGS.items()
    },
    "refund_both": _ours("refund", "refund_both", _MOVED),
    "refund_failed_later_sum": _ours(
        "refund",
        "refund_failed_later_sum",
        frozenset({InstructionState.RESOLVED_NOT_APPLIED}),
    ),
}
"""Clauses built from single rows, in addition to the plain amounts and labels of the facts."""


def _fact(name: str) -> Clause:
    """Make the clause of a fact: a state's label, a name as it is, an amount in its currency."""
    if FACTS.get(name) is str:
        is_state = name.startswith("state_")
        return lambda facts: label_of(getattr(facts, name)) if is_state else getattr(facts, name)
    of = "settled_currency" if name.startswith("settled_") else "currency"
    return amount_of(name, currency=of)


def _reported(name: str) -> Clause:
    """Make the clause of a shared part: the first that holds, for a list all that hold."""
    several = name in TABLE.listed

    def clause(facts: RowFacts) -> str:
        if not several:
            return first_text(_SHARED[name], facts=facts, clauses=_CLAUSES)
        holding = (one for one in _SHARED[name] if one.holds(facts))
        *parts, otherwise = (as_text(one, facts=facts, clauses=_CLAUSES) for one in holding)
        return listed(parts or [otherwise])

    return clause


def _each(name: str) -> Clause:
    """Make the clause of single rows: a text for each, or their sum."""
    rule = TABLE.each[name]
    holds, templates = _EACH[name]

    def clause(facts: RowFacts) -> str:
        rows = [row for row in getattr(facts.rows, rule.of) if holds(row)]
        if rule.sum:
            return _sums(rows, of=rule.sum) or rule.otherwise
        firsts = (next((one for one in templates if one.holds(row)), None) for row in rows)
        texts = [
            as_text(one, facts=row, clauses=_CELLS)
            for row, one in zip(rows, firsts, strict=True)
            if one is not None
        ]
        return listed([*dict.fromkeys(texts)] if rule.distinct else texts) or rule.otherwise

    return clause


_CELLS: Mapping[str, Clause] = {
    **{name: attrgetter(name) for name in ("code", "account_id", "name")},
    "transaction_id": lambda row: row.transaction_id or "one",
    "state": lambda row: label_of(row.state),
    "kind": lambda row: row.kind.replace("_", "-"),
    **{name: amount_of(name) for name in _AMOUNTS},
}
"""Clauses for sentences over a row."""
_EACH = {
    name: (
        ready(rule.when or "True", facts=ROW_FACTS, of=name),
        sentences_of(rule.templates, of=name, facts=ROW_FACTS, clauses=_CELLS),
    )
    for name, rule in TABLE.each.items()
}
_SHARED_TEMPLATES = {**TABLE.labels, **TABLE.listed}
_CLAUSES: Mapping[str, Clause] = {
    **{name: _fact(name) for name, kind in FACTS.items() if kind is not bool},
    **{name: _fact(name) for name in NETS},
    **{name: amount_of(name, unsigned=True) for name in ("fee_gap", "exchange_gap")},
    **{name: _reported(name) for name in _SHARED_TEMPLATES},
    **{name: _each(name) for name in TABLE.each},
    **CLAUSES,
}
"""Clauses for the braces of a sentence."""
_SHARED = {
    name: sentences_of(templates, of=name, facts=FACTS, clauses=_CLAUSES)
    for name, templates in _SHARED_TEMPLATES.items()
}
SENTENCES = Sentences("sets", facts=FACTS, clauses=_CLAUSES)


def with_reasons(
    breaks: pd.DataFrame, *, joined: Joined, sources: Sources, outcomes: Outcomes, rules: Rules
) -> pd.DataFrame:
    """Return the breaks with their reason.

    Args:
        breaks: result.BREAK_COLUMNS, each with its set.
        joined: the classified sets.
        sources: the rows that they were made of.
        outcomes: which break represents two accounts, and what a capture of ours left.
        rules: which states the query can show.
    """
    codes = [BreakCode(code) for code in breaks["code"]]
    rows = rows_of_sets(
        codes,
        numbers=breaks["set"].to_numpy(),
        joined=joined,
        sources=sources,
        primary=outcomes.primary,
    )
    left = outcomes.uncaptured
    facts = facts_of(breaks, joined=joined, rows=rows, uncaptured=left, rules=rules)
    sentences = [SENTENCES.reason(code, known) for code, known in zip(codes, facts, strict=True)]
    return breaks.assign(reason=pd.Series(sentences, index=breaks.index, dtype="str"))
