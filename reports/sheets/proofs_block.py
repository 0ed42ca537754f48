"""The proofs on Control totals: a line per question on paper, every single check on the screen."""

import re
from typing import Any

from openpyxl.utils import get_column_letter

from recon.model.figures import NightFigures
from recon.model.words import ControlTotal
from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED, NUMBER_MINOR_UNITS_MAX, Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.page import column_range, put_header
from reports.sheets.proof_words import QUESTIONS, measure_words, proof_words

QUESTION_TITLES = ("What was proven", "", "", "", "", "", ">Checks", ">Failing", "Check", "Ref.")
PROOF_TITLES = (
    "What must be equal",
    "",
    "",
    "",
    "Account",
    "Currency",
    ">First figure",
    ">Second figure",
    ">Difference",
    "Check",
    "Counted in",
    "Ref.",
)
_REFERENCE = re.compile(r"\bT[0-9]+[A-C]?\b")
CHECK_COLUMN, REFERENCE_COLUMN = 10, 12
"""Of a single check."""


def put_questions(
    draft: Draft, sheet: Any, *, figures: NightFigures, top: int
) -> tuple[list[ControlTotal], int]:
    """One line per question; the checks that fail, and the next free row."""
    draft.text(sheet, (top, 1), "Proofs: each figure is computed twice, separately", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=QUESTION_TITLES)
    no_wrap = looks.HEADER.but(wrap=False)
    draft.text(sheet, (top + 1, 1), QUESTION_TITLES[0], no_wrap)
    asked: dict[str, list[ControlTotal]] = {}
    for proof in sorted(figures.control_totals, key=_proof_order):
        asked.setdefault(proof.id, []).append(proof)
    row = top + 2
    for reference in [*QUESTIONS, *(question for question in asked if question not in QUESTIONS)]:
        _put_question(draft, sheet, row, (reference, asked.get(reference, [])))
        draft.text(sheet, (row, 11), _why_not(figures, reference=reference), looks.NOTE)
        row += 1
    _colour(sheet, column=9, rows=(top + 2, row - 1))
    for sentence in figures.not_covered:
        if not _REFERENCE.search(sentence):
            draft.text(sheet, (row, 1), f"Not covered: {sentence}", looks.NOTE)
            row += 1
    return [proof for proof in figures.control_totals if not proof.passed], row + 1


def _why_not(figures: NightFigures, *, reference: str) -> str:
    """Why a question was not asked, or only in part; "" for those that were."""
    if reference == "T7" and figures.opening_breaks is None:
        return "no night before this one"
    reasons = (
        sentence for sentence in figures.not_covered if reference in _REFERENCE.findall(sentence)
    )
    return "; ".join(sentence.partition(": ")[2] or sentence for sentence in reasons)


def _put_question(
    draft: Draft, sheet: Any, row: int, asked: tuple[str, list[ControlTotal]]
) -> None:
    reference, proofs = asked
    question = QUESTIONS.get(reference) or proof_words(proofs[0].name)
    _put_wide(draft, sheet, row, question, columns=6)
    failing = sum(not proof.passed for proof in proofs)
    draft.formula(sheet, (row, 7), (f"=COUNTIF(prfRef,$J{row})", len(proofs)))
    draft.formula(sheet, (row, 8), (f'=COUNTIFS(prfRef,$J{row},chkProofs,"{CHECK}")', failing))
    word = NOT_COVERED if not proofs else CHECK if failing else OK
    check = f'=IF(G{row}=0,"{NOT_COVERED}",IF(H{row}=0,"{OK}","{CHECK}"))'
    draft.formula(sheet, (row, 9), (check, word), looks.CHECK)
    draft.text(sheet, (row, 10), reference, looks.BODY_TEXT.but(colour=looks.GREY_TEXT))


def put_every_check(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    """Every check, what fails first; the last row of those that fail, or the one above them."""
    title = "Every single check, per account and currency (on the screen; on paper only failing)"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=PROOF_TITLES)
    draft.text(sheet, (top + 1, 1), PROOF_TITLES[0], looks.HEADER.but(wrap=False))
    proofs = sorted(figures.control_totals, key=_proof_order)
    for row, proof in enumerate(proofs, top + 2):
        _put_proof(draft, sheet, row, proof)
    rows = (top + 2, top + 1 + max(1, len(proofs)))
    for name, column in (("chkProofs", CHECK_COLUMN), ("prfRef", REFERENCE_COLUMN)):
        draft.name(name, column_range(sheet, column=column, rows=rows))
    _colour(sheet, column=CHECK_COLUMN, rows=rows)
    return top + 1 + sum(not proof.passed for proof in proofs)


def _put_wide(draft: Draft, sheet: Any, row: int, text: str, *, columns: int) -> None:
    """A sentence over several columns, which stay cells of their own: lists have no merged ones."""
    for column in range(1, columns + 1):
        draft.cell(sheet, (row, column), looks.BODY)
    draft.text(sheet, (row, 1), text, looks.BODY.but(align="left", indent=1))


def _put_proof(draft: Draft, sheet: Any, row: int, proof: ControlTotal) -> None:
    _put_wide(draft, sheet, row, proof_words(proof.name), columns=4)
    draft.text(sheet, (row, 5), proof.account_id, looks.BODY_TEXT)
    draft.text(sheet, (row, 6), proof.currency, looks.BODY_TEXT)
    currency = proof.currency if proof.measure == "amount" else ""
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    draft.amount_as(sheet, (row, 7), (proof.left, currency), grey)
    draft.amount_as(sheet, (row, 8), (proof.right, currency), grey)
    draft.text(sheet, (row, 11), measure_words(proof.measure), looks.BODY_TEXT)
    grey_text = looks.BODY_TEXT.but(colour=looks.GREY_TEXT)
    draft.text(sheet, (row, REFERENCE_COLUMN), proof.id, grey_text)
    word = OK if proof.passed else CHECK
    sides = (proof.left, proof.right, proof.difference)
    if max(map(abs, sides)) > NUMBER_MINOR_UNITS_MAX:
        draft.amount(sheet, (row, 9), proof.difference, currency)
        draft.text(sheet, (row, CHECK_COLUMN), word, looks.CHECK)
        return
    draft.money_formula(sheet, (row, 9), (f"G{row}-H{row}", proof.difference, currency))
    check = f'=IF(I{row}=0,"{OK}","{CHECK}")'
    draft.formula(sheet, (row, CHECK_COLUMN), (check, word), looks.CHECK)


def _proof_order(proof: ControlTotal) -> tuple[bool, int, str, str, str, str]:
    """What fails first, then T0 to T14."""
    digits = re.search(r"[0-9]+", proof.id)
    number = int(digits.group()) if digits else 0
    return (proof.passed, number, proof.id, proof.account_id, proof.name, proof.currency)


def _colour(sheet: Any, *, column: int, rows: tuple[int, int]) -> None:
    letter = get_column_letter(column)
    colour_checks(sheet, f"{letter}{rows[0]}:{letter}{rows[1]}")
