"""Each total is broken on purpose once: a total that cannot fail proves nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from recon.matching.control_totals import Proof, control_totals
from recon.matching.engine import prove
from recon.model import SourceFile, SourceKind, Verdict

Break = Callable[[Proof], Proof]


def many(case: Any) -> Any:
    """Matches, a break of each leg, a pending set, moves of ours, rounding and an excess."""
    case.order(order_no="M").payment(order_no="M", transaction_id="TM").entry(order_no="M")
    case.order(order_no="R").payment(order_no="R", transaction_id="TR", amount=10003)
    case.entry(order_no="R", amount=10003)
    case.order(order_no="O").payment(order_no="O", transaction_id="TO", amount=12000)
    case.entry(order_no="O").entry("fee", order_no="O", amount=30)
    case.order("refunded", order_no="X")
    case.payment("refunded", order_no="X", transaction_id="TX", refunded_amount=11000)
    case.order("pending", order_no="P", ordered_at="2026-11-20T20:00:00Z")
    case.order("authorised", order_no="I").payment(order_no="I", transaction_id="TI")
    case.move("capture", "confirmed", order_no="I")
    budget = {"absolute_minor_units": 5, "night_budget_minor_units": 5}
    return case.ruled(tolerance={"EUR": budget})


def proof_of(case: Any) -> Proof:
    """What the totals are computed from."""
    return prove(case.sources(), rules=case.rules, as_of=case.as_of, previous=case.previous)


def failed(proof: Proof) -> set[str]:
    """The numbers of the totals that do not hold."""
    return {total.id for total in control_totals(proof) if not total.passed}


def frames_with(proof: Proof, **frames: pd.DataFrame) -> Proof:
    """The proof with other frames of the result."""
    return replace(proof, frames=replace(proof.frames, **frames))


def without_break(proof: Proof) -> Proof:
    """A break falls out of the result."""
    return frames_with(proof, breaks=proof.frames.breaks.iloc[1:])


def without_match(proof: Proof) -> Proof:
    """A match that was classified falls out of the result."""
    return frames_with(proof, matches=proof.frames.matches.iloc[:-1])


def without_aside(proof: Proof) -> Proof:
    """The sets that were set aside are counted nowhere."""
    return replace(proof, exact_tallies=proof.exact_tallies.iloc[:0])


def aside_lost(proof: Proof) -> Proof:
    """A set that was set aside has no place."""
    return replace(proof, places=proof.places[proof.places["row"].ge(0)])


def aside_and_classified(proof: Proof) -> Proof:
    """An order was set aside and classified as well."""
    rows = {**proof.exact.rows, "orders": proof.exact.left["orders"][:1]}
    return replace(proof, exact=replace(proof.exact, rows=rows))


def aside_in_error(proof: Proof, **cells: int) -> Proof:
    """A payment was set aside although it says something else than its order."""
    gateway = proof.sources.gateway.copy()
    for name, value in cells.items():
        gateway.loc[proof.exact.rows["gateway"], name] = value
    return replace(proof, sources=replace(proof.sources, gateway=gateway))


def aside_of_other_amount(proof: Proof) -> Proof:
    """A payment of another amount was set aside."""
    return aside_in_error(proof, amount=10001)


def aside_beyond_its_bound(proof: Proof) -> Proof:
    """A payment was set aside that took more than was authorised."""
    return aside_in_error(proof, authorised_amount=9999)


def doubled_pending(proof: Proof) -> Proof:
    """A pending set stands twice."""
    return frames_with(proof, pending=pd.concat([proof.frames.pending] * 2).assign(order_amount=1))


def other_effect(proof: Proof) -> Proof:
    """An effect is off by one cent."""
    effects = proof.frames.effects
    return frames_with(proof, effects=effects.assign(amount=effects["amount"] + 1))


def other_ledger_effect(proof: Proof) -> Proof:
    """An effect of one leg only is off by one cent."""
    effects = proof.frames.effects
    ledger = effects["leg"].eq("ledger").astype("int64")
    return frames_with(proof, effects=effects.assign(amount=effects["amount"] + ledger))


def without_flags(proof: Proof) -> Proof:
    """A match hides why it carries an effect."""
    return frames_with(proof, matches=proof.frames.matches.assign(flags=""))


def spent(proof: Proof) -> Proof:
    """More rounding than the budget."""
    matches = proof.frames.matches
    return frames_with(proof, matches=matches.assign(flags="rounding", effect_orders=6))


def doubled_item(proof: Proof) -> Proof:
    """An item stands in two places."""
    return replace(proof, places=pd.concat([proof.places, proof.places.iloc[:1]]))


def lost_order(proof: Proof) -> Proof:
    """The sides lost a row between source and sets."""
    orders = replace(proof.joined.orders, items=proof.joined.orders.items.iloc[1:])
    return replace(proof, joined=replace(proof.joined, orders=orders))


def more_keys(proof: Proof) -> Proof:
    """A key was asked that has no answer."""
    key = {"merchant_id": ["M"], "account_id": ["1"], "order_no": ["nobody answered"]}
    return replace(proof, sources=replace(proof.sources, universe=pd.DataFrame(key)))


def unknown_state(proof: Proof) -> Proof:
    """An instruction has a state that nobody counts."""
    rows = proof.sources.instructions
    assert rows is not None
    told = replace(proof.sources, instructions=rows.assign(state="lost"))
    return replace(proof, sources=told)


def file_with(proof: Proof, **counts: int) -> Proof:
    """A file of one row whose counts differ."""
    given: dict[str, Any] = {"rows_read": 1, "rows_accepted": 1, "rows_rejected": 0, **counts}
    file = SourceFile(SourceKind.ORDERS, "o.csv", "", 1, rows_skipped=0, **given)
    return replace(proof, sources=replace(proof.sources, files=(file,)))


BROKEN: list[tuple[str, Break]] = [
    ("T0", lambda proof: file_with(proof, rows_read=2)),
    ("T1", lambda proof: file_with(proof, rows_rejected=1)),
    ("T2", lost_order),
    ("T3", more_keys),
    ("T4", without_break),
    ("T4", without_match),
    ("T2", without_aside),
    ("T3", without_aside),
    ("T4", without_aside),
    ("T4", aside_lost),
    ("T6", aside_lost),
    ("T6", aside_and_classified),
    ("T4", aside_of_other_amount),
    ("T5A", aside_of_other_amount),
    ("T9", aside_beyond_its_bound),
    ("T4", doubled_pending),
    ("T5A", other_effect),
    ("T5B", other_effect),
    ("T5C", other_ledger_effect),
    ("T5A", without_flags),
    ("T6", doubled_item),
    ("T8", unknown_state),
    ("T9", without_break),
    ("T10", spent),
]


def test_all_totals_hold_as_computed(case: Any) -> None:
    """Nothing is broken, so every total holds; those that have a source are there."""
    proof = proof_of(many(case))

    assert failed(file_with(proof)) == set()
    numbers = {total.id for total in control_totals(file_with(proof))}
    expected = {"T0", "T1", "T2", "T3", "T4", "T5A", "T5B", "T5C", "T6", "T8", "T9", "T10"}
    assert numbers == expected


@pytest.mark.parametrize(
    ("number", "spoil"), [pytest.param(n, f, id=f"{n}-{f.__name__}") for n, f in BROKEN]
)
def test_a_broken_result_fails_its_total(case: Any, number: str, spoil: Break) -> None:
    """The engine's intermediate result is spoilt, and the total says so."""
    spoilt = spoil(proof_of(many(case)))

    if spoil is without_break and number == "T9":
        breaks = spoilt.frames.breaks
        spoilt = frames_with(spoilt, breaks=breaks[breaks["code"].ne("OVER_REFUND")])

    assert number in failed(spoilt)


def test_roll_forward_holds_over_two_nights(case: Any, new_case: Callable[[], Any]) -> None:
    """T7 by count and by exposure, with a break that ended, one that changed and a new one."""
    earlier = many(new_case().order(order_no="late")).run()
    second = many(case).order(order_no="new").order(order_no="late")
    second.payment(order_no="late", transaction_id="TL").entry(order_no="late")
    second.order(order_no="O", amount=8000, updated_at="2026-11-02T00:00:00Z")
    second.rows["orders"][2]["updated_at"] = "2026-11-01T00:00:00Z"

    proof = proof_of(second.after(earlier))

    sevens = [total for total in control_totals(proof) if total.id == "T7"]
    assert {total.measure for total in sevens} == {"count", "amount"}
    assert failed(proof) == set()
    told = dict(zip(proof.moved["order_no"], proof.moved["movement"], strict=True))
    assert {name: told[name] for name in ("new", "late", "O", "X")} == {
        "new": "new",
        "late": "matched late",
        "O": "revalued",
        "X": "stays",
    }


@pytest.mark.parametrize("spoilt", ["lost", "doubled", "revalued"])
def test_a_broken_roll_forward_fails(case: Any, new_case: Callable[[], Any], spoilt: str) -> None:
    """A break of last night that falls out, stands twice or changes its money on the way."""
    proof = proof_of(many(case).after(many(new_case()).run()))
    breaks = proof.frames.breaks
    other = {
        "lost": breaks.iloc[1:],
        "doubled": pd.concat([breaks, breaks.iloc[:1]]),
        "revalued": breaks.assign(exposure=breaks["exposure"] + 1),
    }

    assert "T7" in failed(frames_with(proof, breaks=other[spoilt]))


def test_an_unseen_confirmed_move_fails(case: Any) -> None:
    """T8: a confirmed capture whose order no set judges is money that nobody looked for."""
    proof = proof_of(many(case))

    assert "T8" in failed(replace(proof, states=proof.states * 0 + ""))


@pytest.mark.parametrize(("agreed", "holds"), [(True, True), (False, False)])
def test_a_write_off_needs_its_agreement(
    case: Any, new_case: Callable[[], Any], *, agreed: bool, holds: bool
) -> None:
    """T10: a break that the ledger wrote off tonight, with and without two people's word."""
    short = {"amount": 9800}
    earlier = new_case().order().payment(**short).entry(**short).run()
    ids = frozenset(earlier.breaks["break_id"]) if agreed else frozenset()
    case.order().payment(**short).entry(**short).entry("write_off", amount=200).after(earlier)
    told = replace(case.sources(), agreed_write_offs=ids)

    proof = prove(told, rules=case.rules, as_of=case.as_of, previous=case.previous)

    assert ("T10" not in failed(proof)) is holds
    assert proof.moved["movement"].tolist() == ["written off"]


def settled(case: Any) -> Any:
    """A payment that is settled and paid out, and one that the ledger lacks."""
    case.order().payment().entry().line().line("payout", order_no="", transaction_id="")
    case.entry("payout", order_no="", reference_no="B1")
    case.order(order_no="B").payment(order_no="B", transaction_id="TB", transaction_date=EARLIER)
    return case.ruled(journal={"accounts": ACCOUNTS})


EARLIER = "2026-09-01T00:00:00Z"
ACCOUNTS = {
    "clearing": "1360",
    "sales": "8400",
    "refunds": "8700",
    "chargebacks": "6930",
    "payouts": "1200",
}


def test_settlement_that_does_not_add_up_fails(case: Any) -> None:
    """T11: the pay-out of a batch is one cent short of its lines."""
    proof = proof_of(settled(case))
    lines = proof.sources.settlement
    assert lines is not None
    short = lines.assign(net=lines["net"] - lines["entry_type"].eq("payout").astype("int64"))

    assert failed(proof) == set()
    assert "T11" in failed(replace(proof, sources=replace(proof.sources, settlement=short)))


@pytest.mark.parametrize("side", ["debit", "credit"])
def test_an_unbalanced_journal_fails(case: Any, side: str) -> None:
    """T12: one side of a journal is off, or both book other money than the break."""
    proof = proof_of(settled(case))
    other = proof.journals.assign(**{side: proof.journals[side] * 2})
    both = proof.journals.assign(
        debit=proof.journals["debit"] * 2, credit=proof.journals["credit"] * 2
    )

    assert len(proof.journals) == 2
    assert "T12" in failed(replace(proof, journals=other))
    assert "T12" in failed(replace(proof, journals=both))


def test_a_failed_total_is_not_proven(case: Any) -> None:
    """One unanswered key of the universe, and the night is not proven."""
    result = many(case).asked("M", "R", "O", "X", "P", "I", "lost").run()

    assert result.verdict is Verdict.NOT_PROVEN
