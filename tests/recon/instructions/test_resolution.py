from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recon.instructions.instruction import Instruction
from recon.instructions.resolution import (
    DoubtEvidence,
    ObservedPayment,
    SearchedRefund,
    SettledLine,
    by_settlement,
    quarantine,
    resolve,
)
from recon.model.terms import GatewayState, InstructionKind, InstructionState
from recon.model.uptime import Uptime
from tests.recon.instructions.sample_instructions import INSTRUCTION

DOUBT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
DAY = 24 * 60
S, K = GatewayState, InstructionKind
CAPTURE = replace(
    INSTRUCTION,
    state=InstructionState.IN_DOUBT,
    attempts=1,
    baseline_status="2000",
    in_doubt_since=DOUBT,
)
CANCEL, REFUND = replace(CAPTURE, kind=K.CANCEL), replace(CAPTURE, kind=K.REFUND)
PART = replace(CAPTURE, amount=6_000)
NOWHERE = replace(CAPTURE, transaction_id="", order_no="")
Answer = tuple[float, GatewayState]
"""Minutes after the doubt, and what the gateway showed then."""


def _read(minutes, boot_id="boot", *, gateway=None):
    """Clocks so long after the doubt; the gateway's too, where it had one."""
    dated = None if gateway is None else DOUBT + timedelta(minutes=gateway)
    return Uptime(boot_id, round(minutes * 60_000), dated)


def _seen(*answers):
    return [
        ObservedPayment(state, DOUBT + timedelta(minutes=minutes), _read(minutes))
        for minutes, state in answers
    ]


def _resolved(item, evidence, *, now):
    return resolve(
        item,
        evidence=evidence,
        now=now,
        quarantined_for=timedelta(minutes=15),
        refund_visible_until=DOUBT + timedelta(days=7),
    )


def _by(item, *, minutes=90, **evidence):
    """How a doubt ends by evidence on a machine that ran on since it began."""
    known = DoubtEvidence(readings=[_read(0)], uptime=_read(minutes), **evidence)
    return _resolved(item, known, now=DOUBT + timedelta(minutes=minutes))


def _state(ended):
    return "" if ended is None else ended.state.value


A_REFUND_LATE = 8 * DAY
DECIDED: list[tuple[str, Instruction, Sequence[Answer], str]] = [
    # Two equal answers after the quarantine: captures and cancels end, refunds are for people.
    ("a capture, paid", CAPTURE, [(16, S.PAID), (30, S.PAID)], "resolved_applied"),
    *(
        (f"a {item.kind}, {state}", item, [(16, state), (30, state)], expected)
        for item, state, expected in [
            (CAPTURE, S.AUTHORISED, "resolved_not_applied"),
            (CAPTURE, S.CANCELLED, "needs_human"),
            (CAPTURE, S.UNMAPPED, "needs_human"),
            (CANCEL, S.CANCELLED, "resolved_applied"),
            (CANCEL, S.AUTHORISED, "resolved_not_applied"),
            (CANCEL, S.PAID, "needs_human"),
            (REFUND, S.REFUNDED, "needs_human"),
            (REFUND, S.PAID, ""),
            # A doubt never waits for ever because the gateway forgot the payment.
            (CAPTURE, S.NONE, "needs_human"),
        ]
    ),
    ("one answer, however late", CAPTURE, [(60, S.PAID)], ""),
    # A late effect may still arrive.
    ("two within the quarantine", CAPTURE, [(1, S.AUTHORISED), (14, S.AUTHORISED)], ""),
    ("one within the quarantine", CAPTURE, [(1, S.AUTHORISED), (16, S.AUTHORISED)], ""),
    # Two answers less than five minutes apart are one.
    ("answers too near", CAPTURE, [(20, S.PAID), (24, S.PAID)], ""),
    # When the newest answers differ, the next night asks again.
    ("two that differ", CAPTURE, [(16, S.AUTHORISED), (30, S.PAID)], ""),
    ("three", CAPTURE, [(1, S.PAID), (16, S.AUTHORISED), (30, S.PAID)], ""),
    # Still not visible after its time: a person's to decide, never resent.
    (
        *("a refund that never shows", REFUND),
        *([(A_REFUND_LATE, S.PAID), (A_REFUND_LATE + 10, S.PAID)], "needs_human"),
    ),
    # The state does not say how much was captured.
    ("a part, paid", PART, [(16, S.PAID), (30, S.PAID)], "needs_human"),
    (
        *("a part, authorised", PART),
        *([(16, S.AUTHORISED), (30, S.AUTHORISED)], "resolved_not_applied"),
    ),
    # What no query shows is a person's to look up at once, never sent again.
    ("a payout", replace(NOWHERE, kind=K.PAYOUT), [], "needs_human"),
    ("a subscription", replace(NOWHERE, kind=K.CANCEL_SUBSCRIPTION), [], "needs_human"),
]


@pytest.mark.parametrize(
    ("item", "answers", "expected"), [case[1:] for case in DECIDED], ids=[one[0] for one in DECIDED]
)
def test_answers_decide_where_two_agree_after_the_quarantine(item, answers, expected):
    newest = max((at for at, _ in answers), default=0)

    assert _state(_by(item, observed=_seen(*answers), minutes=newest)) == expected


@pytest.mark.parametrize("item", [CAPTURE, REFUND])
def test_answers_that_never_agree_go_to_people_after_a_bound(item):
    """A gateway that says this and that every night keeps no doubt for ever."""
    changing = [
        (number * DAY + minutes, state)
        for number, state in enumerate((S.PAID, S.AUTHORISED) * 2, start=1)
        for minutes in (0, 1)
    ]
    agreed = (*changing, (5 * DAY, S.AUTHORISED))

    assert _state(_by(item, observed=_seen(*changing[:-2]), minutes=3 * DAY + 1)) == ""
    assert _state(_by(item, observed=_seen(*changing), minutes=4 * DAY + 1)) == "needs_human"
    assert _state(_by(CAPTURE, observed=_seen(*agreed), minutes=5 * DAY)) == "resolved_not_applied"


def test_quarantine_is_never_shorter_than_three_deadlines():
    assert quarantine(timedelta(seconds=60)) == timedelta(minutes=15)
    assert quarantine(timedelta(minutes=10)) == timedelta(minutes=30)


def _searches(*found, beside=""):
    """Searches so many hours after the doubt; `beside`: another refund of ours that they showed."""
    return [
        SearchedRefund(number, DOUBT + timedelta(hours=at), beside, _read(at * 60))
        for at, number in found
    ]


NOTIFIED = ("message abc",)
SILENT_TWICE = [(24, ""), (25, "")]


@pytest.mark.parametrize(
    ("minutes", "evidence", "expected"),
    [
        # Our own reference is proof at once, whatever the state still shows.
        (90, {"refunds": _searches((1, "T1-01"))}, "resolved_applied"),
        # Silence: a day after the doubt, five minutes apart, of searches that show what is there.
        (1560, {"refunds": _searches(*SILENT_TWICE, beside="T9-01")}, "resolved_not_applied"),
        (1560, {"refunds": _searches((23, ""), (25, ""), beside="T9-01")}, ""),
        (1560, {"refunds": _searches((24, ""), (24.05, ""), beside="T9-01")}, ""),
        (1560, {"refunds": _searches(*SILENT_TWICE)}, "needs_human"),
        (
            *(1560, {"refunds": [*_searches((24, "")), *_searches((25, ""), beside="T9-01")]}),
            "needs_human",
        ),
        # The signature of a message does not cover its refund: it never ends a doubt by itself.
        (90, {"messages": NOTIFIED}, "needs_human"),
        (14, {"messages": NOTIFIED}, ""),
        (
            *(1560, {"refunds": _searches(*SILENT_TWICE, beside="T9-01"), "messages": NOTIFIED}),
            "needs_human",
        ),
    ],
)
def test_a_refund_is_decided_by_our_own_reference(minutes, evidence, expected):
    assert _state(_by(REFUND, minutes=minutes, **evidence)) == expected


def _ended(*answers, readings, now=DOUBT):
    """How a capture ends by answers that were all dated alike, as a wrong clock would."""
    seen = [ObservedPayment(state, DOUBT, uptime) for uptime, state in answers]
    evidence = DoubtEvidence(observed=seen, readings=readings, uptime=answers[-1][0])
    ended = _resolved(CAPTURE, evidence, now=now)
    return "" if ended is None else f"{ended.state}: {ended.evidence}"


def test_no_date_on_the_wall_makes_an_answer_older_or_younger():
    """Only the uptime when it was asked says so, for each answer by itself."""
    young = [(_read(2), S.PAID), (_read(14), S.PAID)]
    old = [(_read(15), S.PAID), (_read(20), S.PAID)]
    too_near = [(_read(15), S.PAID), (_read(19.9), S.PAID)]

    told = [_ended(*seen, readings=[_read(0)]) for seen in (young, [young[0], old[0]], too_near)]
    assert told == ["", "", ""]
    assert _ended(*old, readings=[_read(0)]).startswith("resolved_applied")


def test_after_another_boot_the_wait_begins_again_or_the_gateways_date_tells():
    """The new boot's first reading starts it; a Date ties what another machine asked."""
    second = [(_read(minutes, "second"), S.AUTHORISED) for minutes in (100, 114, 115, 120)]
    dated = [(_read(1, f"boot {day}", gateway=day * DAY), S.AUTHORISED) for day in range(1, 4)]

    def read(answers):
        return [_read(0), *(uptime for uptime, _ in answers)]

    assert _ended(*second[:3], readings=read(second[:3])) == ""
    assert _ended(*second, readings=read(second)).startswith("resolved_not_applied")
    assert _ended(*dated[:2], readings=read(dated[:2])) == ""
    assert _ended(*dated, readings=read(dated)).startswith("resolved_not_applied")


def test_where_no_clock_ties_the_answers_people_are_asked_in_the_end():
    """Machines without a boot id, or new ones and no Date: no evidence, but nobody waits for ever.

    The clock on the wall may stand before the doubt as well as long after it.
    """
    for boots in (["unknown"] * 3, ["one", "two", "three"]):
        untied = [(_read(20 + 10 * at, boot), S.PAID) for at, boot in enumerate(boots)]
        readings = [_read(0, "unknown"), *(uptime for uptime, _ in untied)]
        days = (2, 4, -3)
        told = [_ended(*untied, readings=readings, now=DOUBT + timedelta(days=at)) for at in days]

        assert told[0] == ""
        assert told[1].startswith("needs_human: no clock says how old the doubt was")
        assert told[2] == told[1]


@pytest.mark.parametrize("item", [CAPTURE, REFUND])
@pytest.mark.parametrize(
    ("days", "answers", "says"),
    [
        (2.99, [], ""),
        (3, [], "the gateway has not shown this payment since 2026-11-21 02:00"),
        (3, [(60, S.PAID)], ""),
        (4, [(60, S.PAID)], "the gateway has not shown this payment since"),
    ],
)
def test_a_payment_that_no_answer_shows_goes_to_people_after_three_days(item, days, answers, says):
    ended = _by(item, observed=_seen(*answers), minutes=days * DAY)

    assert bool(ended) is bool(says)
    assert ended is None or ended.evidence.startswith(says)


SIGNED_PAID = _seen((1, S.PAID))


@pytest.mark.parametrize(
    ("item", "minutes", "signed", "answers", "expected"),
    [
        # Both show the effect: no second answer and no quarantine is needed.
        (CAPTURE, 3, SIGNED_PAID, [(2, S.PAID)], "resolved_applied"),
        (CANCEL, 3, _seen((1, S.CANCELLED)), [(2, S.CANCELLED)], "resolved_applied"),
        (CAPTURE, 90, SIGNED_PAID, [], ""),
        (CAPTURE, 90, [], [(2, S.PAID)], ""),
        # A message from before the effect can be sent again; only answers say no.
        (CAPTURE, 90, _seen((1, S.AUTHORISED)), [(20, S.AUTHORISED)], ""),
        # What two answers deny is for people: neither is believed alone.
        (CAPTURE, 90, SIGNED_PAID, [(20, S.AUTHORISED), (30, S.AUTHORISED)], "needs_human"),
        (CAPTURE, 90, SIGNED_PAID, [(2, S.PAID), (20, S.AUTHORISED)], ""),
        # A state does not say how much moved, nor whose refund it was.
        (replace(CAPTURE, amount=1), 3, SIGNED_PAID, [(2, S.PAID)], ""),
        (REFUND, 3, _seen((1, S.REFUNDED)), [(2, S.REFUNDED)], ""),
    ],
)
def test_a_signed_state_ends_a_doubt_with_one_answer_that_shows_the_effect_too(
    item, minutes, signed, answers, expected
):
    assert _state(_by(item, minutes=minutes, signed=signed, observed=_seen(*answers))) == expected


ITEM = replace(
    INSTRUCTION,
    state=InstructionState.IN_DOUBT,
    in_doubt_since=DOUBT,
    gateway_request_id="G-1",
    payment_amount=INSTRUCTION.amount,
)
A_PART = replace(ITEM, payment_amount=ITEM.amount + 1)
OURS = {"own_reference": ITEM.instruction_id}


def line(kind, **changed):
    """A line of exactly the instruction's amount."""
    found = SettledLine(
        entry_type=kind,
        transaction_id=ITEM.transaction_id,
        reference_no="R-1",
        own_reference="",
        currency=ITEM.currency,
        gross=ITEM.amount if kind == "capture" else -ITEM.amount,
        settled_on="2026-11-21",
        source="S1.csv",
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def end(kind, *lines, part=False):
    item = replace(A_PART if part else ITEM, kind=kind)
    if kind is InstructionKind.PAYOUT:
        item = replace(item, transaction_id="")
    found = by_settlement(item, lines=lines, known={"R-OURS"})
    return "" if found is None else found.state.value


APPLIED, FOR_PEOPLE = "resolved_applied", "needs_human"
MAY_BE_ANOTHERS: dict[str, tuple[dict[str, object], ...]] = {
    "nothing": (),
    "other amount": ({"gross": 1},),
    "other currency": ({"currency": "USD"},),
    "no transaction": ({"transaction_id": ""},),
    "before the doubt": ({"settled_on": "2026-11-19"},),
    "two of them": ({}, {"reference_no": "R-2"}),
    "another movement": ({"entry_type": "chargeback"},),
    "another refund of ours": ({"reference_no": "R-OURS"},),
    "somebody else's reference": ({"own_reference": "another"},),
}
PAID_OUT = line("payout", transaction_id="")
BY_REFERENCE = replace(PAID_OUT, own_reference="G-1")
SETTLED: dict[str, tuple[InstructionKind, list[SettledLine], bool, str]] = {
    **{
        f"{kind}: {name}": (kind, [line(kind.value, **one) for one in lines], False, "")
        for kind in (K.CAPTURE, K.REFUND)
        for name, lines in MAY_BE_ANOTHERS.items()
    },
    **{
        f"{kind}: the one movement of the whole": (kind, [line(kind.value)], False, APPLIED)
        for kind in (K.CAPTURE, K.REFUND)
    },
    # The gateway may date by another time zone.
    "capture: the day before": (
        *(K.CAPTURE, [line("capture", settled_on="2026-11-20")]),
        *(False, APPLIED),
    ),
    **{f"{kind}: a part": (kind, [line(kind.value)], True, "") for kind in (K.CAPTURE, K.REFUND)},
    **{
        f"{kind}: a part by our reference": (kind, [line(kind.value, **OURS)], True, APPLIED)
        for kind in (K.CAPTURE, K.REFUND)
    },
    # They move no settled money: a capture beside a cancel in doubt is for the query and people.
    **{
        f"{kind}": (kind, [line("capture"), line("refund")], False, "")
        for kind in (K.CANCEL, K.REVIEW, K.CANCEL_SUBSCRIPTION)
    },
    **{
        f"refund: our reference with {name}": (
            K.REFUND,
            [line("refund", **{**changed, **OURS}) for changed in lines],
            *(False, FOR_PEOPLE),
        )
        for name, lines in (
            ("another amount", [{"gross": -1}]),
            ("another currency", [{"currency": "USD"}]),
            ("another payment", [{"transaction_id": "other"}]),
            ("a second line", [{}, {}]),
        )
    },
    "payout: alone": (K.PAYOUT, [PAID_OUT], False, ""),
    "payout: by our reference": (K.PAYOUT, [BY_REFERENCE], False, APPLIED),
    "payout: numbered by the gateway": (
        *(K.PAYOUT, [replace(BY_REFERENCE, transaction_id="given by the gateway")]),
        *(False, APPLIED),
    ),
}
"""Kind, lines, whether a part was asked for; how the doubt ends, "" where it does not."""


@pytest.mark.parametrize("name", SETTLED)
def test_settled_lines_end_a_doubt_where_they_are_of_no_other_movement(name):
    kind, lines, part, ended = SETTLED[name]

    assert end(kind, *lines, part=part) == ended


def test_a_line_without_a_reference_is_not_of_whatever_has_none():
    """Some instructions have no request id at the gateway: a blank in a line names nobody."""
    unnamed = replace(A_PART, gateway_request_id="")
    assert by_settlement(unnamed, lines=[line("capture")], known=()) is None


def test_a_payout_of_a_number_is_not_settled_by_another():
    numbered = replace(BY_REFERENCE, transaction_id="given by the gateway")
    known = replace(ITEM, kind=K.PAYOUT, transaction_id="another")
    assert _state(by_settlement(known, lines=[numbered], known=())) == FOR_PEOPLE
    assert by_settlement(replace(ITEM, kind=K.PAYOUT), lines=[line("payout")], known=()) is None
