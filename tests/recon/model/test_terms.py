"""The words of the domain: precedence of codes, states that are judged once, verdicts."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recon.model import errors
from recon.model.durable import flush_folder
from recon.model.step_progress import StepProgress, WorkProgress, reported_to, with_progress
from recon.model.terms import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    WAITING_STATES,
    BreakCode,
    ControlTotal,
    InstructionState,
    Verdict,
)

PRECEDENCE = """
WRONG_ACCOUNT, DUPLICATE_ORDER_ROW, DUPLICATE_PAYMENT, DUPLICATE_LEDGER_POSTING, AMBIGUOUS_MATCH,
CURRENCY_MISMATCH, STATUS_UNMAPPED, OVER_REFUND, CHARGEBACK_AFTER_REFUND, CHARGEBACK_NOT_BOOKED,
CHARGEBACK_UNPROVEN, CHARGEBACK_REVERSED_NOT_BOOKED, STATUS_CONFLICT, CANCEL_UNCONFIRMED,
CANCEL_REJECTED, CANCEL_DUE, CAPTURE_UNCONFIRMED, CAPTURE_REJECTED, AUTHORISATION_EXPIRED,
CAPTURE_DUE, REFUND_UNCONFIRMED, REFUND_REJECTED, REFUND_FAILED_AFTER_ACCEPT, REFUND_DUE,
REFUND_UNEXPECTED, OVER_CAPTURE, PARTIAL_CAPTURE_UNEXPECTED, AMOUNT_OVER, AMOUNT_UNDER,
BOOKED_NOT_AT_GATEWAY, MISSING_AT_GATEWAY, MISSING_IN_ORDERS, REFUND_NOT_BOOKED,
LEDGER_REFUND_ONLY, LEDGER_AMOUNT_MISMATCH, FX_DIFFERENCE, MISSING_IN_LEDGER, LEDGER_ONLY,
PAYOUT_UNCONFIRMED, PAYOUT_FAILED, PAYOUT_NOT_BOOKED, PAYOUT_AMOUNT_MISMATCH, LEDGER_PAYOUT_ONLY,
SETTLEMENT_MISSING, SETTLEMENT_AMOUNT_MISMATCH, FEE_VARIANCE, UNEXPECTED_RECEIPT,
HELD_BACK, FEE_NOT_BOOKED, FEE_BOOKED_DIFFERS, RESERVE_NOT_BOOKED, RESERVE_BOOKED_DIFFERS,
PAYOUT_TWICE_AT_BANK, PAYOUT_RETURNED, BANK_AMOUNT_DIFFERS, BANK_FX_DIFFERENCE, PAYOUT_NOT_AT_BANK,
BANK_RECEIPT_UNKNOWN, BANK_NOT_BOOKED,
SPLIT_INCOMPLETE, REVIEW_STUCK, SUBSCRIPTION_NOT_ENDED, STALE_PENDING
"""
"""The contract's list (docs/REFERENCE.md), written out: the code must equal it."""


def test_the_precedence_of_break_codes_is_the_contracts():
    assert [code.value for code in BreakCode] == re.findall(r"[A-Z_]+", PRECEDENCE)


def test_every_instruction_state_is_judged_exactly_once():
    groups = [CONFIRMED_STATES, REJECTED_STATES, DOUBTFUL_STATES, WAITING_STATES]
    judged = [state for group in groups for state in group] + [InstructionState.WITHDRAWN]

    assert sorted(judged) == sorted(InstructionState)


def test_a_verdict_has_the_exit_code_of_the_contract():
    assert {verdict.value: verdict.exit_code for verdict in Verdict} == {
        "NOT PROVEN": 4,
        "INCOMPLETE": 4,
        "BREAKS OPEN": 3,
        "RECONCILED": 0,
    }


def test_a_control_total_passes_only_at_zero():
    totals = [_total(left, right=100) for left in (100, 99, 101)]

    assert [total.passed for total in totals] == [True, False, False]
    assert [total.difference for total in totals] == [0, -1, 1]


def _total(left, *, right):
    return ControlTotal("T5A", "leg A", "100042", "100042001", "EUR", "amount", left, right)


def test_the_folder_itself_is_flushed_and_let_go(tmp_path, monkeypatch):
    flushed: list[tuple[int, str]] = []

    def failing(descriptor):
        flushed.append((descriptor, str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        raise OSError(5, "the disk failed")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="the disk failed"):
        flush_folder(tmp_path)

    ((descriptor, name),) = flushed
    assert name == str(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.ReconError)
]


def test_the_drawn_tree_is_the_real_one():
    drawn = re.findall(
        r"^ {4}([ │├└─]*)(\w+(?:Error|Defect)?)\b", errors.__doc__ or "", re.MULTILINE
    )
    depth_of = {name: len(indent) // 4 for indent, name in drawn}

    assert depth_of == {cls.__name__: cls.__mro__.index(errors.ReconError) for cls in CLASSES}


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.ReconError, 1),
        (errors.SourceUnreadableError, 1),
        (errors.StoreLockedError, 1),
        (errors.OutputError, 1),
        (errors.UsageError, 2),
        (errors.ConfigurationError, 2),
        (errors.SourceMissingError, 2),
        (errors.GateClosedError, 4),
        (errors.NightHeldError, 75),
    ],
)
def test_an_error_ends_the_command_with_its_code(error, exit_code):
    assert error.exit_code == exit_code


def test_figures_settings_and_a_signer_bring_no_frames():
    """Nor do they load a workbook or a database; a fresh interpreter shows it."""
    heavy = {"openpyxl", "sqlalchemy", "pandas", "pyarrow", "numpy"}
    code = (
        "import sys, recon.model.figures, recon.config.settings, recon.signer.server; "
        f"print({heavy!r} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert shown.strip() == "set()"


ACCOUNT = ("M", "A")


def test_work_tells_its_listener_how_much_of_all_is_done():
    heard: list[str] = []
    with reported_to(lambda step_progress: heard.append(str(step_progress))):
        progress = WorkProgress("orders asked", of=2_500)
        progress.advance(2_000)
        progress.advance(2_000)

    assert heard == [
        "0 of 2,500 orders asked",
        "2,000 of 2,500 orders asked",
        "2,500 of 2,500 orders asked",
    ]


def test_nothing_is_told_of_nothing_nor_to_nobody():
    heard: list[StepProgress] = []
    with reported_to(heard.append):
        WorkProgress("files read", of=0).advance()
    WorkProgress("files read", of=3).advance()

    assert heard == []


def test_parts_count_once_somebody_is_done_with_them():
    heard: list[int] = []
    seen: list[int] = []
    with reported_to(lambda step_progress: heard.append(step_progress.done)):
        for batch in with_progress(["abc", "de"], "rows drawn", of=5):
            seen.append(len(batch))
            assert heard[-1] == sum(seen[:-1])

    assert heard == [0, 3, 5]
