"""Each total is broken on purpose once: a total that cannot fail proves nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recon.matching.breaks.places import PLACE_NAMES
from recon.matching.frames.arrays import stacked
from recon.matching.frames.sources import AgreedWriteOffs, LoadCounts
from recon.model.words import ControlTotal, SourceFile, SourceKind, Verdict
from recon.proof.books_bridge import KNOWN_BEFORE, REPEATS
from recon.proof.proven import prove
from recon.proof.verdict import OpenCounts, Proof, control_totals, verdict_of

pytestmark = pytest.mark.xdist_group("control totals")
"""They share what takes longer to make than to look at."""

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


def settled(case: Any) -> Any:
    """A payment that is settled and paid out, one that the ledger lacks, and older ones."""
    for row in case.rows["gateway"]:
        row["transaction_date"] = EARLIER
    case.order(order_no="S").payment(order_no="S", transaction_id="TS").entry(order_no="S")
    case.line(order_no="S", transaction_id="TS", batch_id="B2")
    case.order().payment().entry().line(fee=300)
    keyless = {"order_no": "", "transaction_id": ""}
    case.line("reserve", gross=-500, **keyless).line("payout", gross=9300, fee=300, **keyless)
    case.entry("payout", order_no="", reference_no="B1", amount=8900)
    case.entry("fee", amount=250).entry("reserve", order_no="", amount=100)
    case.order(order_no="B").payment(order_no="B", transaction_id="TB", transaction_date=EARLIER)
    return case.ruled(journal={"accounts": ACCOUNTS}, fee_contract=CONTRACT)


CONTRACT = {
    "rounding": "down",
    "lines": [
        {"name": "all", "from": "2026-01-01", "type": "capture", "currency": "EUR"}
        | {"fixed_minor_units": 300, "tolerance_minor_units": 300}
    ],
}
"""What any capture of these lines costs is tolerated by it."""
EARLIER = "2026-09-01T00:00:00Z"
ACCOUNTS = {
    "clearing": "1360",
    "sales": "8400",
    "refunds": "8700",
    "chargebacks": "6930",
    "payouts": "1200",
    "fees": "4970",
    "reserves": "1361",
}


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


def without_places_of_matches(proof: Proof) -> Proof:
    """The items of matched sets have no place."""
    return replace(proof, places=proof.places.take(proof.places["state"] != "MATCHED"))


def other_amount(proof: Proof) -> Proof:
    """Payments are shown as another amount than the gateway's answers say."""
    gateway = proof.sources.gateway
    more = gateway.assign(amount=gateway["amount"] + 1)
    return replace(proof, sources=replace(proof.sources, gateway=more))


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
    """An item of each source stands in two places."""
    _, first = np.unique(proof.places["source"].astype(str), return_index=True)
    twice = [proof.places, proof.places.take(first)]
    return replace(proof, places=stacked(twice, names=PLACE_NAMES))


def lost_on_the_way(proof: Proof) -> Proof:
    """A row of the files never reached the comparison, and no step tells of it."""
    steps = {**proof.sources.arrived[SourceKind.ORDERS], REPEATS: 1}
    arrived = {SourceKind.ORDERS: steps}
    return replace(proof, sources=replace(proof.sources, arrived=arrived))


def lost_order(proof: Proof) -> Proof:
    """The sides lost a row between source and sets."""
    orders = replace(proof.joined.orders, items=proof.joined.orders.items.take(slice(1, None)))
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


def without_excess(proof: Proof) -> Proof:
    """Breaks of refunds beyond their payment are not told."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks[breaks["code"].ne("OVER_REFUND")])


def more_read(proof: Proof) -> Proof:
    """A row that was read is accounted for nowhere."""
    return file_with(proof, rows_read=2)


def more_rejected(proof: Proof) -> Proof:
    """A file counts a row both accepted and rejected."""
    return file_with(proof, rows_rejected=1)


def lost_in_store(proof: Proof) -> Proof:
    """The store took fewer rows than were accepted."""
    counts = {"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=0)}
    return replace(proof, sources=replace(proof.sources, merged_rows=counts))


def without_payout(proof: Proof) -> Proof:
    """A pay-out of a settlement file has no place."""
    return without_places(proof, source="payouts")


def without_line(proof: Proof) -> Proof:
    """A line of a settlement file has no place."""
    return without_places(proof, source="settlement")


def without_entries(proof: Proof) -> Proof:
    """The entries of the ledger have no place."""
    return without_places(proof, source="ledger")


def without_places(proof: Proof, *, source: str) -> Proof:
    """The items of a source have no places."""
    return replace(proof, places=proof.places.take(proof.places["source"] != source))


def lost_payment(proof: Proof) -> Proof:
    """A payment is lost between source and sets."""
    gateway = replace(proof.joined.gateway, items=proof.joined.gateway.items.take(slice(1, None)))
    return replace(proof, joined=replace(proof.joined, gateway=gateway))


def lost_entry(proof: Proof) -> Proof:
    """A ledger entry is lost between source and sets."""
    ledger = replace(proof.joined.ledger, items=proof.joined.ledger.items.take(slice(1, None)))
    return replace(proof, joined=replace(proof.joined, ledger=ledger))


def lost_keys(proof: Proof) -> Proof:
    """Sets that were made of keys are lost."""
    sets = proof.joined.sets
    return replace(proof, joined=replace(proof.joined, sets=sets.assign(kind=-1)))


def unseen_moves(proof: Proof) -> Proof:
    """A confirmed capture whose order no set judges is money that nobody looked for."""
    return replace(proof, states=proof.states * 0 + "")


def lost_of_last_night(proof: Proof) -> Proof:
    """A break that stays falls out of tonight's breaks."""
    stays = proof.moved[proof.moved["movement"].eq("stays")]["break_id"].iloc[0]
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks[breaks["break_id"].ne(stays)])


def doubled_break(proof: Proof) -> Proof:
    """A break stands twice."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=pd.concat([breaks, breaks.iloc[:1]]))


def revalued(proof: Proof) -> Proof:
    """Breaks change their money on the way to the report."""
    breaks = proof.frames.breaks
    return frames_with(proof, breaks=breaks.assign(exposure=breaks["exposure"] + 1))


def not_agreed(proof: Proof) -> Proof:
    """A write-off that nobody agreed to closed a break."""
    return replace(proof, sources=replace(proof.sources, agreed_write_offs=AgreedWriteOffs()))


def short_pay_out(proof: Proof) -> Proof:
    """The pay-out of a batch is one cent short of what is listed beside it."""
    return lines_with(proof, "net", of="payout")


def other_fee(proof: Proof) -> Proof:
    """The fee of a line is another one than its group has."""
    return lines_with(proof, "fee", of="capture")


def fees_shown_twice(proof: Proof) -> Proof:
    """The sheet lists the fees of the contract once more outside of it."""
    assert proof.fees.by_currency
    twice = {word: 2 * fee for word, fee in proof.fees.by_currency.items()}
    return replace(proof, fees=proof.fees._replace(by_currency=twice))


def other_reserve(proof: Proof) -> Proof:
    """More was released than is listed as kept."""
    return lines_with(proof, "gross", of="reserve")


def lines_with(proof: Proof, name: str, *, of: str) -> Proof:
    """One cent less in a column of the lines of one type."""
    lines = proof.sources.settlement
    assert lines is not None
    short = lines.assign(**{name: lines[name] - lines["entry_type"].eq(of).astype("int64")})
    return replace(proof, sources=replace(proof.sources, settlement=short))


def unlisted(proof: Proof) -> Proof:
    """Nothing of what the gateway holds is listed."""
    assert proof.cash is not None
    return replace(proof, cash=replace(proof.cash, listed=()))


def entries_moved(proof: Proof) -> Proof:
    """The books have a cent more of everything than was compared."""
    ledger = proof.sources.ledger
    assert ledger is not None
    more = ledger.assign(amount=ledger["amount"] + 1)
    return replace(proof, sources=replace(proof.sources, ledger=more))


def other_debit(proof: Proof) -> Proof:
    """One side of the journals is off."""
    return replace(proof, journals=proof.journals.assign(debit=proof.journals["debit"] * 2))


def other_journals(proof: Proof) -> Proof:
    """The journals balance, and book other money than their breaks."""
    both = {side: proof.journals[side] * 2 for side in ("debit", "credit")}
    return replace(proof, journals=proof.journals.assign(**both))


BROKEN: list[tuple[str, Break]] = [
    ("T0", more_read),
    ("T1", more_rejected),
    ("T2", lost_in_store),
    ("T2", lost_on_the_way),
    ("T2", lost_order),
    ("T2", lost_payment),
    ("T2", lost_entry),
    ("T3", more_keys),
    ("T3", lost_keys),
    ("T4", without_break),
    ("T4", without_match),
    ("T4", without_payout),
    ("T4", without_line),
    ("T4", without_entries),
    ("T4", without_places_of_matches),
    ("T4", other_amount),
    ("T4", doubled_pending),
    ("T5A", other_amount),
    ("T5A", other_effect),
    ("T5A", without_flags),
    ("T5B", other_effect),
    ("T5C", other_ledger_effect),
    ("T6", doubled_item),
    ("T7", lost_of_last_night),
    ("T7", doubled_break),
    ("T7", revalued),
    ("T8", unknown_state),
    ("T8", unseen_moves),
    ("T9", without_excess),
    ("T10", spent),
    ("T10", not_agreed),
    ("T11", short_pay_out),
    ("T11", unlisted),
    ("T12", other_debit),
    ("T12", other_journals),
    ("T18", short_pay_out),
    ("T18", other_reserve),
    ("T18", unlisted),
    ("T18", fees_shown_twice),
    ("T19", other_fee),
    ("T19", other_reserve),
    ("T19", short_pay_out),
    ("T19", entries_moved),
    ("T19", other_ledger_effect),
]
"""Number of a total, and what is done to the result of a night to see it fail."""

Failures = dict[str, set[tuple[str, str]]]


@pytest.fixture(scope="module")
def whole(make_case: Callable[[], Any]) -> Proof:
    """A second night with all that any total is stated over: files, store, journals, payouts."""
    case = many(make_case())
    earlier = case.order(order_no="W").payment(order_no="W", amount=9800, transaction_id="TW")
    first = earlier.entry(order_no="W", amount=9800).run()
    settled(case.entry("write_off", order_no="W", amount=200)).after(first)
    stored = {"orders": LoadCounts(accepted=3, new=1, repeat=1, superseding=1)}
    told = replace(
        case.sources(),
        merged_rows=stored,
        arrived={SourceKind.ORDERS: {KNOWN_BEFORE: len(case.sources().orders) - 1}},
        agreed_write_offs=AgreedWriteOffs(
            dict.fromkeys(first.breaks["break_id"], ("EUR", 200)), {}
        ),
    )
    return file_with(prove(told, rules=case.rules, as_of=case.as_of, previous=case.previous))


@pytest.fixture(scope="module")
def asked(whole: Proof) -> Proof:
    """The same night with the list of the keys that it asked for."""
    keys = whole.sources.gateway[["merchant_id", "account_id", "order_no"]]
    return replace(whole, sources=replace(whole.sources, universe=keys))


@pytest.fixture(scope="module")
def failures(whole: Proof) -> Failures:
    """Which equations of which totals fail for each thing done to the night."""
    return {
        spoil.__name__: {
            (total.id, total.name) for total in control_totals(spoil(whole)) if not total.passed
        }
        for _, spoil in BROKEN
    }


def test_all_totals_hold_as_computed(whole: Proof, asked: Proof) -> None:
    """Nothing is broken, so every total holds; all that the engine states are there."""
    assert failed(whole) == failed(asked) == set()
    assert {total.id for total in control_totals(whole)} == {number for number, _ in BROKEN}


@pytest.mark.parametrize(
    ("number", "spoil"), [pytest.param(n, f, id=f"{n}-{f.__name__}") for n, f in BROKEN]
)
def test_a_broken_result_fails_its_total(failures: Failures, number: str, spoil: Break) -> None:
    """The engine's intermediate result is spoilt, and the total says so."""
    assert number in {failing for failing, _ in failures[spoil.__name__]}


def test_every_equation_was_seen_to_fail(whole: Proof, asked: Proof, failures: Failures) -> None:
    """A total of many equations is proven one by one: none of them holds whatever happens."""
    stated = {(total.id, total.name) for proof in (whole, asked) for total in control_totals(proof)}

    assert stated - set().union(*failures.values()) == set()


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


def test_a_failed_total_is_not_proven(case: Any) -> None:
    """One unanswered key of the universe, and the night is not proven."""
    result = many(case).asked("M", "R", "O", "X", "P", "I", "lost").run()

    assert result.verdict is Verdict.NOT_PROVEN


def test_what_a_bank_lacks_makes_a_night_incomplete_and_no_worse_one_better(whole: Proof) -> None:
    """A night that lacks nothing else, with one total that holds, and with one that does not."""
    holds = ControlTotal("T0", "rows", "", "", "", "count", 1, 1)
    verdicts = [
        verdict_of(
            [replace(holds, right=right)],
            judged=OpenCounts(0, 0, 0),
            sources=whole.sources,
            rules=whole.rules,
            lacks=lacks,
        )
        for right in (1, 0)
        for lacks in ((), ("the bank main: a gap",))
    ]

    worst = Verdict.NOT_PROVEN
    assert verdicts == [Verdict.RECONCILED, Verdict.INCOMPLETE, worst, worst]
