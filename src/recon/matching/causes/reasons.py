"""Why a break is open, as one sentence that finance can read.

codes.toml has one sentence for each way in which a set comes to a code, and the words that several
of them share; the first whose condition holds is told. Every number in it is one of the set's own
rows, or the sum of such, of the side that the sentence names.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from string import Formatter
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from recon.matching.codes import CODES, TABLE, Condition, Template, condition_of
from recon.matching.frames.arrays import Arrays, among, texts
from recon.matching.frames.grouping import Ints, Rows, amounts_of, total
from recon.matching.frames.sources import Sources
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.instruction_side import STANDINGS
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.errors import Defect
from recon.model.money import Money
from recon.model.words import BreakCode, InstructionState

SHOWN_MAX = 4
"""So many records are named one by one; how many more there are is counted."""
NOTHING = "nothing"
Facts = SimpleNamespace
"""One break: FACTS and NETS in minor units of its currency, and `rows`, where a code asks."""
Clause = Callable[[Any], str]
"""Facts -> words."""


class SideRow(NamedTuple):
    """One row of a side: what it says and over how much."""

    words: str
    """A status, a type, a standing: what the side calls it by."""
    currency: str
    amount: int


class GatewayPayment(NamedTuple):
    """One payment of the gateway."""

    transaction_id: str
    state: str
    code: str
    """The gateway's own code."""
    currency: str
    amount: int
    """What it is over: captured, else authorised."""
    captured: int
    refunded: int
    authorised: int
    over_authorised: bool


class Move(NamedTuple):
    """One instruction of ours."""

    kind: str
    state: str
    currency: str
    amount: int


class Rival(NamedTuple):
    """Another record that fits as well."""

    account_id: str
    name: str


class SetRows(NamedTuple):
    """The rows of one set; sorted, so that the order of the input's rows changes no sentence."""

    orders: Sequence[SideRow] = ()
    payments: Sequence[GatewayPayment] = ()
    entries: Sequence[SideRow] = ()
    """Ledger entries by their type; amounts less what reverses them."""
    moves: Sequence[Move] = ()
    payouts: Sequence[SideRow] = ()
    other: Rival | None = None
    """The account that has the other side, and the set there."""
    sides: Sequence[str] = ()
    other_sides: Sequence[str] = ()
    rivals: Sequence[Rival] = ()
    rivals_by: str = ""
    """What the rivals share: `transaction` or `reference`, and its id."""


NO_ROWS = SetRows()


def rows_of_sets(
    codes: Iterable[BreakCode], *, numbers: Rows, joined: Joined, sources: Sources, host: Rows
) -> Mapping[int, SetRows]:
    """The rows of the sets whose primary code names some.

    Args:
        codes: the primary code of each break; rows of several currencies are always named.
        numbers: its set.
        joined: the sets.
        sources: what they were made of.
        host: for each set the one whose break explains it, else negative.
    """
    several = joined.sets["currencies"][numbers] > 1
    pairs = zip(codes, numbers.tolist(), several.tolist(), strict=True)
    named = {int(n): code for code, n, mixed in pairs if mixed or CODES[code].names_rows}
    if not named:
        return {}
    orders, gateway, entries, payouts = (
        items.take(np.isin(items["set"], [*named]))
        for items in (
            *(joined.orders.items, joined.gateway.items),
            *(joined.ledger.items, joined.payouts),
        )
    )
    orders = orders.assign(word=np.array(ORDER_STATES, dtype=object)[orders["state"]])
    of_side = ("set", "currency", "amount")
    sides: Mapping[str, dict[int, list[Any]]] = {
        "orders": _grouped(orders.rows("word", *of_side), into=SideRow),
        "payments": _grouped(_payments(gateway, sources=sources), into=GatewayPayment),
        "entries": _grouped(_entries(entries), into=SideRow),
        "payouts": _grouped(payouts.rows("standing", *of_side), into=SideRow),
        "moves": _grouped(_moves(joined, sources=sources, wanted=[*named]), into=Move),
    }
    moved = _moved(joined.sets, host=host, wanted={*named})
    ambiguous = {number for number, code in named.items() if code is BreakCode.AMBIGUOUS_MATCH}
    rivals: dict[int, dict[str, Any]] = {
        number: {"rivals": sorted(_rival(joined.sets, other) for other in others), "rivals_by": by}
        for number, others, by in _fitting(joined, sources=sources, wanted=ambiguous)
    }
    cells: dict[int, dict[str, Any]] = {
        number: {name: rows.get(number, ()) for name, rows in sides.items()}
        | moved.get(number, {})
        | rivals.get(number, {})
        for number in named
    }
    return {number: SetRows(**own) for number, own in cells.items()}


def _grouped(rows: Iterable[tuple[Any, ...]], *, into: Any) -> dict[int, list[Any]]:
    """By set, which stands second in each row."""
    grouped: dict[int, list[Any]] = {}
    for first, number, *others in rows:
        grouped.setdefault(int(number), []).append(into(first, *others))
    return {number: sorted(own) for number, own in grouped.items()}


def _payments(items: Arrays, *, sources: Sources) -> Iterator[tuple[Any, ...]]:
    captured, known = items["captured"], items["authorised_known"]
    held = np.where(known, items["authorised"], items["amount"])
    rows = items.assign(
        word=np.array(GATEWAY_STATES, dtype=object)[items["state"]],
        code=texts(sources.gateway["payment_status"])[items["row"]],
        over=np.where(captured > 0, captured, held),
        beyond=known & items["captured_known"] & (captured > items["authorised"]) & (captured > 0),
    )
    sums = ("captured", "refunded", "authorised", "beyond")
    return rows.rows("transaction_id", "set", "word", "code", "currency", "over", *sums)


def _entries(items: Arrays) -> Iterator[tuple[Any, ...]]:
    frame = pd.DataFrame({n: items[n] for n in ("kind", "set", "currency", "forward")})
    sums = frame.groupby(["kind", "set", "currency"], as_index=False).sum()
    return zip(*(sums[name].tolist() for name in sums.columns), strict=True)


def _moves(joined: Joined, *, sources: Sources, wanted: list[int]) -> Iterator[tuple[Any, ...]]:
    if sources.instructions is None:
        return iter(())
    number = joined.keys.of["instructions"]
    mine = np.isin(number, wanted)
    kind, *cells = (sources.instructions[name][mine].tolist() for name in Move._fields)
    return zip(kind, number[mine].tolist(), *cells, strict=True)


def _moved(sets: Arrays, *, host: Rows, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """For a break that stands for two accounts, which of them has which side."""
    pairs = ((int(host[guest]), guest) for guest in np.flatnonzero(host >= 0).tolist())
    return {
        number: {
            "other": _rival(sets, guest),
            "sides": _sides_of(sets, number),
            "other_sides": _sides_of(sets, guest),
        }
        for number, guest in pairs
        if number in wanted
    }


def _sides_of(sets: Arrays, number: int, /) -> list[str]:
    state = GATEWAY_STATES[sets["gateway_state"][number]]
    present = {
        "order": sets["order_state"][number] != 0,
        "payment": state not in {"none", "unverified"},
        "booking": sets["ledger_capture"][number] != 0,
    }
    return [side for side, here in present.items() if here]


def _rival(sets: Arrays, number: int, /) -> Rival:
    return Rival(sets["account_id"][number], sets["key"][number])


def _fitting(
    joined: Joined, *, sources: Sources, wanted: set[int]
) -> Iterator[tuple[int, set[int], str]]:
    """The other sets that a set fits, and the id that they share, "" for their order number."""
    sets = joined.sets
    away = {number for number in wanted if sets["account_ambiguous"][number]}
    by_order = np.flatnonzero(among(sets["order_no"], {sets["order_no"][row] for row in away}))
    alike: dict[tuple[str, str], set[int]] = {}
    cells = sets.take(by_order).rows("merchant_id", "order_no")
    for number, order in zip(by_order.tolist(), cells, strict=True):
        alike.setdefault(order, set()).add(number)
    for number in sorted(away):
        order = sets["merchant_id"][number], sets["order_no"][number]
        yield number, alike[order] - {number}, ""
    holders: dict[tuple[str, ...], set[int]] = {}
    names: dict[int, list[tuple[str, ...]]] = {}
    for number, *key in _ids_of_sets(joined, sources=sources, wanted=wanted - away):
        holders.setdefault((*key,), set()).add(number)
        names.setdefault(number, []).append((*key,))
    for number in sorted(wanted - away):
        for name in sorted(names.get(number, []), reverse=True):
            if others := holders[name] - {number}:
                yield number, others, " ".join(name[-2:])
                break


def _ids_of_sets(
    joined: Joined, *, sources: Sources, wanted: set[int]
) -> Iterator[tuple[int, str, str, str, str]]:
    """Set, merchant, account, `transaction` or `reference` and id of the rows that name one."""
    for name, words in _NAMED_IDS.items():
        frame: pd.DataFrame | None = getattr(sources, name)
        if frame is None or not wanted:
            continue
        number = joined.keys.of[name]
        for word in words:
            ids = frame[_ID_COLUMNS[word]]
            asked = ids[np.isin(number, [*wanted])]
            mine = (number >= 0) & ids.ne("").to_numpy() & ids.isin(asked).to_numpy()
            cells = (frame.loc[mine, each].tolist() for each in ("merchant_id", "account_id"))
            for own, merchant, account, text in zip(
                number[mine].tolist(), *cells, ids[mine].tolist(), strict=True
            ):
                yield own, merchant, account, word, text


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
    *("payments_with_money", "uncaptured", "ledger_capture", "ledger_refund", "ledger_chargeback"),
    *("ledger_adjustment", "ledger_write_off", "refund_failed_later_sum"),
    *("capture_confirmed", "capture_rejected", "capture_doubtful", "capture_waiting"),
    *("refund_confirmed", "refund_rejected", "refund_doubtful", "refund_waiting"),
    *("settled_captured", "settled_refunded", "settled_charged", "settled_gross"),
    *("fee_gap", "exchange_gap"),
)
_MARKS = (
    *("refund_hidden", "refund_unknown", "refund_excess", "over_authorised"),
    *("booked_twice_capture", "booked_twice_refund", "booked_twice_chargeback"),
    *("capture_doubtful_any", "capture_waiting_any", "refund_doubtful_any", "refund_waiting_any"),
    *("cancel_rejected_any", "cancel_doubtful_any", "cancel_waiting_any"),
    *("review_doubtful_any", "review_rejected_any", "cancel_subscription_doubtful_any"),
)
FACTS: Mapping[str, type] = {
    **dict.fromkeys((*_OF_BREAKS, "settled_currency", "paid_under", "rivals_by"), str),
    **dict.fromkeys((*_MARKS, "covered", "told_twice", "has_payments"), bool),
    **dict.fromkeys(_SUMS, int),
    **dict.fromkeys(("gateway_net", "order_net", "ordered", "stated"), int),
    **dict.fromkeys(("gateway_taken", "refund_both", "settled_rest"), int),
}
"""What a condition may name, and of which type it is (see `facts_of`)."""


def money(amount: int | None, *, currency: str) -> str:
    """An amount as people read it; `nothing` for none and for one without a currency."""
    if amount is None or not currency:
        return NOTHING
    return str(Money.of_minor_units(amount, currency=currency))


def facts_of(
    frame: pd.DataFrame, *, joined: Joined, rows: Mapping[int, SetRows]
) -> Iterator[Facts]:
    """The facts of every break, in the order of `frame` (columns set and those of breaks)."""
    sets, numbers = joined.sets.take(frame["set"].to_numpy()), frame["set"].tolist()
    own = [rows.get(number, NO_ROWS) for number in numbers]
    ids = [[payment.transaction_id for payment in each.payments] for each in own]
    of_sets = {name: sets[name] for name in (*_SUMS, *_MARKS, "settled_currency")}
    back = sets["settled_refunded"] + sets["settled_charged"]
    computed = {
        "ordered": sets["order_amount"],
        "stated": _stated(joined)[frame["set"].to_numpy()],
        "gateway_net": amounts_of(frame["gateway_amount"]),
        "order_net": amounts_of(frame["order_amount"]),
        # What was captured, as far as it is known: the whole, or our part of it.
        "gateway_taken": sets["gateway_captured"] - sets["uncaptured"],
        "refund_both": sets["refund_confirmed"] + sets["refund_doubtful"],
        "settled_rest": sets["settled_gross"] - sets["settled_captured"] + back,
    }
    columns = {
        **{name: frame[name].tolist() for name in _OF_BREAKS},
        **{name: [None if n is pd.NA else n for n in frame[name].tolist()] for name in NETS},
        **{name: column.tolist() for name, column in {**of_sets, **computed}.items()},
        "covered": [joined.covered] * len(frame),
        "paid_under": _paid_under(joined, numbers=numbers),
        "rows": own,
        "rivals_by": [each.rivals_by for each in own],
        "told_twice": [len({*each}) < len(each) for each in ids],
        "has_payments": [bool(each) for each in ids],
    }
    for values in zip(*columns.values(), strict=True):
        yield Facts(**dict(zip(columns, values, strict=True)))


def _paid_under(joined: Joined, *, numbers: list[int]) -> list[str]:
    """The order under which the gateway has the payment that the rows of each set name."""
    sets = joined.sets
    unpaid = {number for number in numbers if sets["gateway_state"][number] == NUMBER["none"]}
    if not unpaid:
        return [""] * len(numbers)
    named: dict[tuple[int, str], set[int]] = {}
    for side in (joined.orders.items, joined.ledger.items):
        rows = side.take(np.isin(side["set"], [*unpaid]) & (side["transaction_id"] != ""))
        for number, payment in rows.rows("set", "transaction_id"):
            named.setdefault((int(sets["account"][number]), payment), set()).add(int(number))
    paid = joined.gateway.items
    paid = paid.take(among(paid["transaction_id"], {payment for _, payment in named}))
    orders: dict[int, set[str]] = {}
    for holder, payment in paid.rows("set", "transaction_id"):
        for number in named.get((int(sets["account"][holder]), payment), ()):
            orders.setdefault(number, set()).add(sets["key"][holder])
    return [min(orders.get(number, {""})) for number in numbers]


def _stated(joined: Joined) -> Ints:
    """What the payments of the state that speaks for each set are over (grain: set).

    A cancelled attempt beside the authorisation that stands is no part of it.
    """
    items, sets = joined.gateway.items, joined.sets
    number = items["set"]
    speaks = items["state"] == sets["gateway_state"][number]
    speaks &= items["currency"] == sets["currency"][number]
    authorised = np.where(items["authorised_known"], items["authorised"], items["amount"])
    amount = np.where(np.isin(items["state"], _TAKEN), items["captured"], authorised)
    return total(np.where(speaks, amount, 0), groups=number, size=joined.keys.size)


_TAKEN = [NUMBER[word] for word in ("paid", "partially_refunded", "refunded", "chargeback")]


def words_of(state: str) -> str:
    """A state as people read it."""
    return state.replace("_", " ")


def listed(items: Sequence[str]) -> str:
    """`a, b and c`; of many the first, and how many more."""
    if len(items) > SHOWN_MAX:
        items = [*items[: SHOWN_MAX - 1], f"{len(items) - SHOWN_MAX + 1} more"]
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def _sums(rows: Iterable[Any], *, of: str = "amount") -> str:
    """What rows come to, by currency."""
    sums: dict[str, int] = {}
    for row in rows:
        sums[row.currency] = sums.get(row.currency, 0) + getattr(row, of)
    return listed([money(amount, currency=currency) for currency, amount in sorted(sums.items())])


def _said(row: Any, *, of: str = "amount") -> str:
    return money(getattr(row, of), currency=row.currency)


def _each_payment(facts: Facts) -> str:
    return _states_of(facts.rows.payments)


def _states_of(payments: Iterable[GatewayPayment]) -> str:
    return listed([f"{words_of(each.state)} with {_said(each)}" for each in payments])


def _each_kind(facts: Facts) -> str:
    """What is booked by kind and currency."""
    entries = [entry for entry in facts.rows.entries if entry.amount]
    return listed([f"{entry.words.replace('_', '-')}s of {_said(entry)}" for entry in entries])


def _here(facts: Facts) -> str:
    return f"account {facts.account_id} has {_sides(facts.rows.sides)}"


def _there(facts: Facts) -> str:
    other = facts.rows.other
    if other is None:
        return "another account has the other side"
    return f"account {other.account_id} has {_sides(facts.rows.other_sides)}"


def _sides(sides: Iterable[str]) -> str:
    return listed([f"the {side}" for side in sides]) or "its other side"


def _order_rows(facts: Facts) -> str:
    return listed([f"{words_of(row.words)} with {_said(row)}" for row in facts.rows.orders])


def _net_of(payment: GatewayPayment) -> SideRow:
    net = payment.captured - payment.refunded
    return SideRow("", payment.currency, net)


def _each_net(facts: Facts) -> str:
    """What is left of each payment that took money."""
    nets = []
    for each in (payment for payment in facts.rows.payments if payment.captured):
        after = f" after {_said(each, of='refunded')} refunded" if each.refunded else ""
        nets.append(f"{each.transaction_id or 'one'} {_said(_net_of(each))}{after}")
    return listed(nets)


def _held(facts: Facts) -> str:
    """What is left of all payments, by currency."""
    return _sums(_net_of(each) for each in facts.rows.payments if each.state != "chargeback")


def _answers(facts: Facts) -> str:
    twice = _twice_told(facts)
    return _states_of(each for each in facts.rows.payments if each.transaction_id == twice)


def _twice_told(facts: Facts) -> str:
    ids = [payment.transaction_id for payment in facts.rows.payments]
    return next((id_ for id_ in ids if ids.count(id_) > 1), "")


def _by_currency(facts: Facts) -> str:
    """What each side is over, in its own currencies."""
    rows = facts.rows
    clauses = {
        "the order": _sums(rows.orders),
        "a payout": _sums(rows.payouts),
        "the gateway": _each_payment(facts),
        "the ledger": _each_kind(facts),
        "our instructions": _sums(
            move
            for move in rows.moves
            if move.kind in {"capture", "refund"}
            and move.state in _MOVED
            and move.currency != facts.currency
        ),
    }
    return listed([f"{side} {words}" for side, words in clauses.items() if words])


_MOVED = STANDINGS["confirmed"] | STANDINGS["doubtful"]


def _codes(facts: Facts) -> str:
    codes = {payment.code for payment in facts.rows.payments if payment.state == "unmapped"}
    return listed(sorted(codes)) or "a code"


def _unmapped_money(facts: Facts) -> str:
    return _sums(each for each in facts.rows.payments if each.state == "unmapped") or NOTHING


def _beyond(more: str, less: str, *, otherwise: str) -> Clause:
    """The payment of which more was refunded than captured, or captured than authorised."""

    def clause(facts: Facts) -> str:
        for each in facts.rows.payments:
            if each.over_authorised if more == "captured" else each.refunded > each.captured:
                amounts = f"{_said(each, of=more)} {more} of {_said(each, of=less)} {less}"
                return f"payment {each.transaction_id} has {amounts}"
        return otherwise

    return clause


def _rivals(facts: Facts) -> str:
    """The other records; those of other accounts with their account."""
    names = [
        rival.name
        if rival.account_id == facts.account_id
        else f"{rival.name} of account {rival.account_id}"
        for rival in facts.rows.rivals
    ]
    return listed(names) or "other records"


def _not_done(kind: str) -> Clause:
    """Whether the gateway refused, or a person found that it took no effect."""

    def clause(facts: Facts) -> str:
        states = {move.state for move in facts.rows.moves if move.kind == kind}
        refused = InstructionState.REJECTED in states
        if InstructionState.RESOLVED_NOT_APPLIED in states:
            return "was refused or did not take effect" if refused else "did not take effect"
        return "was refused by the gateway"

    return clause


def _waits_for(kind: str) -> Clause:
    """Whether somebody is to approve it first."""

    def clause(facts: Facts) -> str:
        planned = (kind, InstructionState.PLANNED)
        if any((move.kind, move.state) == planned for move in facts.rows.moves):
            return "for a person's approval"
        return "to be sent"

    return clause


def _ours(kind: str, column: str, states: frozenset[InstructionState]) -> Clause:
    """What we instructed of one kind and standing, in the currency that we instructed it in."""

    def clause(facts: Facts) -> str:
        mine = [move for move in facts.rows.moves if move.kind == kind and move.state in states]
        if any(move.currency != facts.currency for move in mine):
            return _sums(mine)
        return money(getattr(facts, column), currency=facts.currency)

    return clause


def _payout(standing: str) -> Clause:
    return lambda facts: _sums(p for p in facts.rows.payouts if p.words == standing) or NOTHING


def _payout_booked(facts: Facts) -> str:
    booked = [entry for entry in facts.rows.entries if entry.words == "payout" and entry.amount]
    if not booked:
        return "the ledger has no payout of it"
    if sum(entry.amount for entry in booked) < 0:
        taken_back = [entry._replace(amount=abs(entry.amount)) for entry in booked]
        return f"the ledger has {_sums(taken_back)} of payouts taken back"
    return f"the ledger has a payout of {_sums(booked)}"


def _gap(name: str) -> Clause:
    return lambda facts: money(abs(getattr(facts, name)), currency=facts.currency)


CLAUSES: Mapping[str, Clause] = {
    "each_payment": _each_payment,
    "each_kind": lambda facts: _each_kind(facts) or NOTHING,
    "here": _here,
    "there": _there,
    "order_rows": _order_rows,
    "payments": _each_net,
    "held": _held,
    "twice_told": _twice_told,
    "answers": _answers,
    "by_currency": _by_currency,
    "codes": _codes,
    "unmapped_money": _unmapped_money,
    "excess_payment": _beyond(
        "refunded", "captured", otherwise="a payment is refunded beyond what it captured"
    ),
    "over_authorised": _beyond(
        "captured", "authorised", otherwise="a payment is captured beyond its authorisation"
    ),
    "rivals": _rivals,
    **{f"{kind}_not_done": _not_done(kind) for kind in ("capture", "cancel", "refund")},
    **{f"{kind}_waits_for": _waits_for(kind) for kind in ("capture", "cancel", "refund")},
    **{f"payout_{standing}": _payout(standing) for standing in STANDINGS},
    "payout_booked": _payout_booked,
    "fee_gap": _gap("fee_gap"),
    "exchange_gap": _gap("exchange_gap"),
    **{
        f"{kind}_{standing}": _ours(kind, f"{kind}_{standing}", states)
        for kind in ("capture", "refund")
        for standing, states in STANDINGS.items()
    },
    "refund_both": _ours("refund", "refund_both", _MOVED),
    "refund_failed_later_sum": _ours(
        "refund",
        "refund_failed_later_sum",
        frozenset({InstructionState.RESOLVED_NOT_APPLIED}),
    ),
}
"""What single rows say, beside the plain amounts and words of the facts."""


class Sentence(NamedTuple):
    """A sentence of codes.toml, ready to be put into words."""

    text: str
    holds: Condition
    named: tuple[str, ...]
    """What it says of a break: only that is put into words."""


Name = TypeVar("Name", bound=str)


def sentences_of(
    says: Mapping[Name, tuple[Template, ...]],
    *,
    facts: Mapping[str, type],
    sayable: Collection[str],
) -> Mapping[Name, tuple[Sentence, ...]]:
    """The sentences of every code, whose conditions and names are known.

    Args:
        says: the sentences as they are written.
        facts: what their conditions may name.
        sayable: what stands in braces.

    Raises:
        Defect: a sentence names a fact or a clause that is not there, with its code.
    """
    return {
        code: tuple(_ready(one, code, facts=facts, sayable=sayable) for one in written)
        for code, written in says.items()
    }


def _ready(
    written: Template, code: str, *, facts: Mapping[str, type], sayable: Collection[str]
) -> Sentence:
    named = tuple(name for _, name, _, _ in Formatter().parse(written.text) if name)
    if unknown := [name for name in named if name.lower() not in sayable]:
        msg = f"codes.toml, {code}: there is no clause or amount {unknown[0]!r}"
        raise Defect(msg)
    try:
        condition = condition_of(written.when or "True", facts=facts)
    except ValueError as error:
        msg = f"codes.toml, {code}: {error}"
        raise Defect(msg) from error
    return Sentence(written.text, condition, named)


def in_words(sentence: Sentence, *, facts: Any, words: Mapping[str, Callable[[Any], str]]) -> str:
    """A sentence in words; a name with a capital begins it.

    Args:
        sentence: of a code.
        facts: of the break.
        words: what each name says of the facts; only what is named is put into words.
    """
    shown = {}
    for name in sentence.named:
        text = words[name.lower()](facts)
        shown[name] = text if name.islower() else text[:1].upper() + text[1:]
    return sentence.text.format(**shown)


def _fact(name: str) -> Clause:
    """A fact as it is said: a state as words, a name as it is, an amount in its currency."""
    if FACTS.get(name) is str:
        is_state = name.startswith("state_")
        return lambda facts: words_of(getattr(facts, name)) if is_state else getattr(facts, name)
    of = "settled_currency" if name.startswith("settled_") else "currency"
    return lambda facts: money(getattr(facts, name), currency=getattr(facts, of))


def _told(name: str) -> Clause:
    """Words that several sentences share: the first that hold, of a list all that do."""
    several = name in TABLE.listed

    def clause(facts: Facts) -> str:
        words = (
            in_words(one, facts=facts, words=_WORDS) for one in _SHARED[name] if one.holds(facts)
        )
        if not several:
            return next(words)
        *parts, otherwise = words
        return listed(parts or [otherwise])

    return clause


_SHARED_AS_WRITTEN = {**TABLE.words, **TABLE.listed}
_WORDS: Mapping[str, Clause] = {
    **{name: _fact(name) for name, kind in FACTS.items() if kind is not bool},
    **{name: _fact(name) for name in NETS},
    **{name: _told(name) for name in _SHARED_AS_WRITTEN},
    **CLAUSES,
}
"""What a sentence may name."""
_SHARED = sentences_of(_SHARED_AS_WRITTEN, facts=FACTS, sayable=_WORDS)
SENTENCES = sentences_of(
    {code: row.say for code, row in CODES.items()}, facts=FACTS, sayable=_WORDS
)


def with_reasons(
    breaks: pd.DataFrame, *, joined: Joined, sources: Sources, outcomes: Outcomes
) -> pd.DataFrame:
    """The breaks with their reason.

    Args:
        breaks: result.BREAK_COLUMNS, each with its set.
        joined: the sets that were judged.
        sources: what they were made of.
        outcomes: which break stands for two accounts.
    """
    codes = [BreakCode(code) for code in breaks["code"]]
    rows = rows_of_sets(
        codes, numbers=breaks["set"].to_numpy(), joined=joined, sources=sources, host=outcomes.host
    )
    facts = facts_of(breaks, joined=joined, rows=rows)
    sentences = [
        in_words(sentence_of(code, facts=known), facts=known, words=_WORDS)
        for code, known in zip(codes, facts, strict=True)
    ]
    return breaks.assign(reason=pd.Series(sentences, index=breaks.index, dtype="str"))


def sentence_of(code: BreakCode, *, facts: Facts) -> Sentence:
    """The first sentence of the code that holds."""
    return next(candidate for candidate in SENTENCES[code] if candidate.holds(facts))
