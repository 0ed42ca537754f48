import re
from dataclasses import replace
from datetime import UTC, date, datetime

import pandas as pd
import pytest

from recon.config.fee_contract import contract_of
from recon.config.rules import Rules
from recon.config.settings import load_rules
from recon.matching import codes
from recon.model.terms import Verdict
from recon.proof.engine import reconcile
from recon.steps.admin.verify import verify
from recon.steps.compare.reconcile import at_best
from recon.steps.compare.rules_change import OTHER_TABLE, changed_rules, changed_sets
from recon.steps.compare.what_if import difference, note_answer, what_if
from recon.steps.runtime.identity import identify
from recon.store.nights import runs
from tests.injected import RULES, planted
from tests.recon.steps.compare.written_night import newest
from tests.recon.steps.conftest import UNREAD
from tests.recon.steps.files.test_settlement_files import notes
from tests.recon.steps.in_parts import with_orders
from tests.recon.steps.people import declared
from tests.recon.steps.runtime.test_night_folder import edit
from tests.recon.steps.signing import sign_seen

pytestmark = pytest.mark.xdist_group("changed rules")
"""They share what takes longer to make than to look at."""

"""The workbooks of these nights are no workbooks."""

OF_RULES = re.compile(
    r"Rules changed|change of the rules|changed in the rules|recon nights --rules"
)
PEOPLE = declared(anna="Anna Berg") + declared(dan="Dan Orr", role="reviewer")
MOVED = (
    r"The change of the rules moved 1 item with [\d,.]+ EUR: 1 AMOUNT_UNDER -> MISSING_IN_LEDGER\."
)
"""One cent is rounding now, and what is left is that no ledger has the payment."""
TOLERANT = "\n[tolerance.EUR]\nabsolute_minor_units = 100\n"


def signed_by(merchant, **names):
    """The newest night with these names under it, by role."""
    for role, name in names.items():
        with merchant.environment() as environment:
            person = identify(name, code=None, environment=environment)
            sign_seen(newest(merchant).run_id, role=role, person=person, environment=environment)


def reported_on_page_one(merchant):
    """What the newest night says of its rules."""
    return tuple(note for note in notes(merchant) if OF_RULES.search(note))


def tie(merchant):
    """A night that a reviewer signed, with an order one cent off and nothing else wrong."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    one = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    cent_off = f"{float(one.amount) + 0.01:.2f}"
    merchant.drop("orders.csv", merchant.order(one, amount=cent_off))
    merchant.night()
    signed_by(merchant, reviewer="dan")


@pytest.fixture
def tied(begun):
    """A merchant after that night."""
    return begun(tie)


def next_night(merchant, day="2026-11-21"):
    """The night after, under whatever the rules say by then."""
    merchant.wait(hours=24)
    verdict: Verdict = merchant.night(date=day)
    return verdict


def test_page_one_says_what_changed_since_the_signed_night_and_what_it_moved(tied):
    """Rule, items and money stand there until an approver signs a night under the new rules."""
    signed_by(tied, approver="anna")
    path = tied.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + TOLERANT)
    next_night(tied)
    first = reported_on_page_one(tied)
    signed_by(tied, reviewer="dan", approver="anna")
    next_night(tied, "2026-11-22")

    assert first[0] == (
        "Rules changed since the last signed night (2026-11-20): "
        "tolerance.EUR.absolute_minor_units not set -> 100."
    )
    assert re.match(MOVED, first[1])
    assert reported_on_page_one(tied) == ()


def test_another_table_of_codes_is_another_rule(tied, monkeypatch):
    """A program that decides otherwise waits for an approver; one that words otherwise does not."""
    before = codes.TABLE
    signed_by(tied, approver="anna")
    monkeypatch.setattr(codes, "TABLE", replace(codes.TABLE, words="0" * 16))
    next_night(tied)
    worded_otherwise = reported_on_page_one(tied)
    monkeypatch.setattr(codes, "TABLE", replace(before, decides="0" * 16))
    next_night(tied, "2026-11-22")

    assert worded_otherwise == ()
    assert f": codes {before.decides} -> {'0' * 16}." in reported_on_page_one(tied)[0]
    assert OTHER_TABLE in notes(tied)


def test_a_night_of_any_size_is_held_against_the_signed_one(tied, monkeypatch):
    """One that is too large to be compared as a whole is, where its rules are not signed."""
    with_orders(monkeypatch, 1)
    test_page_one_says_what_changed_since_the_signed_night_and_what_it_moved(tied)


def test_what_was_tried_before_is_quoted_when_the_rules_change(tied):
    """The digest of a trial stands beside the change; that of other rules does not."""
    signed_by(tied, approver="anna")
    path, day = tied.folder / "config" / "rules.toml", date(2026, 11, 20)
    account = ("100042", "100042001")
    digests = []
    for text in (TOLERANT, TOLERANT.replace("100", "90")):
        candidate = tied.folder / "candidate.toml"
        candidate.write_text(text)
        rules = load_rules(config_dir=path.parent, rules_file=candidate)
        with tied.environment() as environment:
            days = {"first": day, "last": day}
            answer = what_if(rules, account=account, **days, environment=environment)
            note_answer(answer, account=account, environment=environment)
        digests.append(answer.digest[:16])
    path.write_text(path.read_text() + TOLERANT)
    next_night(tied)

    assert reported_on_page_one(tied)[2:] == (
        (
            "`recon nights --rules` tried these rules on 1 night from 2026-11-20 to 2026-11-20: "
            f"digest {digests[0]}."
        ),
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE rules_version SET document = replace(document, 'UTC', 'CET')", "else than then"),
        ("DELETE FROM rules_version", "are not stored any more"),
    ],
)
def test_rules_of_the_signed_night_that_were_changed_or_taken_away_hide_no_change(
    change, why, tied
):
    """Page one says that the change is not known, and the night is not RECONCILED for it."""
    signed_by(tied, approver="anna")
    edit(tied, change)
    path = tied.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + TOLERANT)
    next_night(tied)

    (told,) = reported_on_page_one(tied)
    assert told.startswith("What changed in the rules since the last signed night is not known")
    assert why in told


def test_without_an_approver_there_is_nothing_to_hold_a_change_against(tied):
    """A reviewer alone has not signed the night."""
    path = tied.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + TOLERANT)
    next_night(tied)

    assert reported_on_page_one(tied) == ()


def test_two_nights_under_two_rules_say_what_the_rules_alone_moved(tied):
    """`recon breaks --against` names the rules and holds one night against those of another."""
    path = tied.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + TOLERANT)
    next_night(tied)

    with tied.environment() as environment:
        found = difference("2026-11-20", "2026-11-21", environment=environment)

    assert [str(one) for one in found.rules] == [
        "tolerance.EUR.absolute_minor_units not set -> 100"
    ]
    assert re.fullmatch(MOVED, found.moved_by_rules)


def test_a_digest_that_was_changed_does_not_verify(tied):
    """The history binds the rules and the result of each night."""
    with tied.environment() as environment, environment.store.writing() as connection:
        runs.note_result(connection, newest(tied).run_id, values={"rules_digest": "0" * 64})
    with tied.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems

    assert [one for one in problems if "rules digest is another one" in one]


def test_what_a_later_version_added_is_no_change():
    """Rules are compared by what they say, not by how a version writes them down."""
    before = Rules.of({"grace": {"hard_limit": "10bd"}}, source="before")
    after = Rules.of({"grace": {"refund_visible": "6bd"}}, source="after")

    assert changed_rules(before, before) == ()
    assert [str(one) for one in changed_rules(before, after)] == ["grace.refund_visible 5bd -> 6bd"]


def test_another_order_of_fees_is_a_change():
    """The first line that applies decides: a night under another order waits for an approver."""
    lines = [
        {"name": name, "from": date(2026, 1, 1), "type": "capture", "currency": "EUR"}
        | {"basis_points": points, **region}
        for name, points, region in (("visa", 100, {"region": "EU"}), ("all", 200, {}))
    ]
    before, after = (
        Rules().model_copy(
            update={
                "fee_contract": contract_of({"rounding": "down", "lines": own}, source="f.toml")
            }
        )
        for own in (lines, lines[::-1])
    )

    assert before.digest != after.digest
    assert [str(one) for one in changed_rules(before, after)] == [
        "fee_contract.lines in order visa, all -> all, visa"
    ]


@pytest.mark.parametrize("verdict", [Verdict.RECONCILED, Verdict.INCOMPLETE])
def test_a_verdict_is_made_worse_and_never_better(verdict):
    """That a night under new rules is never RECONCILED a scenario says."""
    found = at_best(judged_as(verdict), Verdict.BREAKS_OPEN).verdict

    assert found is (Verdict.BREAKS_OPEN if verdict is Verdict.RECONCILED else verdict)


def judged_as(verdict):
    """A result with this verdict."""
    return replace(classified(), verdict=verdict)


CENT_MORE, LATER = {"cents": 1}, datetime(2026, 11, 10, 13, tzinfo=UTC)
RULE_MOVED = {**CENT_MORE, "rules": {"tolerance": {"EUR": {"absolute_minor_units": 5}}}}


@pytest.mark.parametrize(
    ("first", "second", "state", "why"),
    [
        pytest.param({}, {}, "", set(), id="nothing"),
        pytest.param(
            {},
            CENT_MORE,
            "",
            {
                "gateway",
                "our instructions or the evidence changed, no side did",
                "the first night has no such order",
            },
            id="side",
        ),
        pytest.param(CENT_MORE, RULE_MOVED, "", {"the rules changed, no side did"}, id="rules"),
        pytest.param(
            {"as_of": datetime(2026, 10, 1, 13, tzinfo=UTC)},
            {"as_of": LATER},
            "pending",
            {"its grace ran out, no side changed"},
            id="time",
        ),
    ],
)
def test_what_moved_a_set_is_named(first, second, state, why):
    """The side that moved, the rules, or time alone: what was within its grace is late."""
    changes, alike = changed_sets(classified(**first), classified(**second))

    told = {one.why.partition(": ")[0] for one in changes if state in {"", one.before}}
    assert told == why
    assert len(changes) + alike >= 60


def classified(*, cents=0, rules=None, as_of=datetime(2026, 11, 21, tzinfo=UTC)):
    """Some orders with breaks among them, the gateway so many cents above what was planted."""
    sources = planted(size=60, broken=45, seed=5, settled=False).sources
    answered = sources.gateway.assign(amount=sources.gateway["amount"] + cents)
    named = Rules.of({**RULES, **(rules or {})}, source="x")
    return reconcile(replace(sources, gateway=answered), rules=named, as_of=as_of)


def test_breaks_of_no_order_are_told_apart_by_what_they_are_of():
    """One of two batches is no longer wrong: the other one stays, and one change is named."""
    result = classified()
    one = result.breaks.iloc[[0]].assign(order_no="", transaction_id="", break_id="b1", about="S1")
    two = one.assign(break_id="b2", about="S2")
    both = replace(result, breaks=pd.concat([result.breaks, one, two]))
    left = replace(result, breaks=pd.concat([result.breaks, two]))

    (change,), _ = changed_sets(both, left)

    assert (change.key[2], change.after) == ("S1", "absent")
