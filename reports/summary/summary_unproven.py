"""Why a night is not proven, on page one: what does not tie, whose it may be, what to do."""

from collections.abc import Iterator, Mapping
from typing import Any

from recon.model.words import ControlTotal, Verdict
from reports.drawing import look as looks
from reports.drawing.draft import amount_text
from reports.drawing.listing import rows_of
from reports.drawing.look import Look
from reports.drawing.plain_text import text_width
from reports.sheets.books_block import BOOKS_CHECKS
from reports.sheets.proof_words import proof_words
from reports.sheets.roll_forward import ROLL_CHECKS
from reports.sheets.totals_blocks import BRIDGE_CHECKS
from reports.sheets.totals_sheet import LEG_CHECKS
from reports.summary.summary_page import LAST, LEFT, Page

PROOFS_SHOWN = 5
RECORDS_SHOWN = 3
TO_DO_CHARACTERS, WHAT_CHARACTERS = 88, 60
ROW_POINTS, LINE_POINTS = 15, 12
COLUMNS = ((2, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, LAST))
TITLES = (
    "What does not tie",
    "Ccy",
    ">First figure",
    ">Second figure",
    ">Difference",
    "What to do",
)
AMOUNTS = ("order_amount", "gateway_amount", "ledger_amount", "effect_orders", "effect_ledger")
NAMES = ("order_no", "transaction_id", "entry_id")
AGAIN, STORED, STOPPED, WRITTEN = "{again}", "{stored}", "{stopped}", "{written}"
OF_A_NIGHT: Mapping[str, str] = {
    AGAIN: "Start the night of this date again.",
    STORED: "`recon verify --compare` compares what is stored.",
    STOPPED: " (`recon stop-sending`)",
    WRITTEN: "This file is not what the database holds: `recon workbook` writes it again.",
}
"""Where TO_DO names a command -> that of a night."""
_FILES_AGAIN = "Run `recon reconcile` over the same files again; where it says the same, tell IT."
OF_PLAIN_FILES: Mapping[str, str] = {**dict.fromkeys(OF_A_NIGHT, _FILES_AGAIN), STOPPED: ""}
TO_DO: Mapping[str, str] = {
    "T0": "Compare the file on Sources with what its sender says, and the ways on Control totals.",
    "T1": f"See Sources, Difference: rows of a file were lost. {AGAIN}",
    "T2": f"Rows were lost on their way to the database. {AGAIN}",
    "T3": f"Not every order has one answer of the gateway. {AGAIN}",
    "T4": f"A record is lost or counted twice. {STORED}",
    "T5A": f"No row explains this money. {STORED}",
    "T5B": f"No row explains this money. {STORED}",
    "T5C": f"No row explains this money. {STORED}",
    "T6": f"A record stands twice. {STORED}",
    "T7": "A break got lost between two nights: compare Breaks with the night before.",
    "T8": "See Instructions: one has no result, or two.",
    "T9": f"Stop refunds of these orders{STOPPED}, and look them up in the portal.",
    "T10": "Hold the write-offs of the books against those that two people agreed to, on Breaks.",
    "T11": "Hold the settlement file against what was paid out; ask the gateway.",
    "T12": "Import no journal of this night; tell IT.",
    "T13": WRITTEN,
    "T14": "SQL over the same files finds another figure: tell IT, and keep the files as they are.",
    "T15": "An entry of a statement is lost: `recon bank check` reads the file by itself.",
    "T16": "An entry of a statement is lost: `recon bank check` reads the file by itself.",
    "T18": "A line or a pay-out of the settlement is lost: compare it with what is held back.",
    "T19": "A fee, reserve, pay-out or arrival is lost: compare source and ledger with Breaks.",
    "T17": "A pay-out or an entry of the bank is lost: compare Breaks with the statement.",
}
"""Reference of a control total -> what to do and where."""
BLOCKS: Mapping[str, str] = {
    LEG_CHECKS: "Differences per currency, and what explains them",
    BRIDGE_CHECKS: "From the rows accepted to the records compared",
    ROLL_CHECKS: "Breaks from the night before to tonight",
    BOOKS_CHECKS: "From the ledger file to the ledger compared, in money",
}
"""Checks of the sheets themselves -> the block of Control totals that does not add up."""
TELL_IT = "Tell IT, and sign nothing: the rows of this workbook do not add up there."


def put_unproven(page: Page, top: int) -> int:
    """The block, only where the night is not proven; the next free row."""
    if page.figures.verdict is not Verdict.NOT_PROVEN and not page.places.failed_checks:
        return top
    page.text(top, LEFT, "Why this night is not proven", looks.HEADING)
    for at, title in zip(COLUMNS, TITLES, strict=True):
        look = looks.HEADER_RIGHT if title.startswith(">") else looks.HEADER
        page.merged(top + 1, at, title.removeprefix(">"), look)
    row = top + 2
    failing = [
        control_total for control_total in page.figures.control_totals if not control_total.passed
    ]
    for proof in failing[:PROOFS_SHOWN]:
        row = _put_proof(page, row, proof)
    for name, words in BLOCKS.items():
        if page.places.checks.get(name):
            row = _put_line(page, row, words, TELL_IT)
    if len(failing) > PROOFS_SHOWN:
        text = f"and {len(failing) - PROOFS_SHOWN} more, first on the list of every check"
        page.draft.link(page.sheet, (row, LEFT), (text, "'Control totals'!A5"))
        row += 1
    look = Look(fill=looks.BAD[0], colour=looks.BAD[1], bold=True)
    page.merged(row, (LEFT, LAST), _ending(page), look)
    return row + 1


def _ending(page: Page) -> str:
    if page.figures.of_plain_files:
        return "Sign nothing of this: no figure of it is known to be whole."
    return (
        "Nobody can sign this night, and it holds refunds and payouts of later ones: start it "
        f"again, or two people release it (`recon release {page.figures.run_id}`). Captures go on."
    )


def _to_do(proof: ControlTotal, *, page: Page) -> str:
    to_do = TO_DO.get(proof.id, "See Control totals, and tell IT.")
    commands = OF_PLAIN_FILES if page.figures.of_plain_files else OF_A_NIGHT
    for name, command in commands.items():
        to_do = to_do.replace(name, command)
    return to_do


def _put_proof(page: Page, row: int, proof: ControlTotal) -> int:
    to_do = _to_do(proof, page=page)
    records = list(_records_of(page, proof))
    if records:
        to_do = f"{to_do} Records of exactly this money: {', '.join(records)}."
    elif proof.measure == "amount":
        to_do = f"{to_do} No single record is of exactly this money."
    what = proof_words(proof.name)
    below = _put_line(page, row, what, to_do)
    page.draft.link(page.sheet, (row, LEFT), (what, "'Control totals'!A5"), _red())
    page.text(row, COLUMNS[1][0], proof.currency, looks.BODY_TEXT)
    currency = proof.currency if proof.measure == "amount" else ""
    sides = (proof.left, proof.right, proof.difference)
    for at, amount in zip(COLUMNS[2:5], sides, strict=True):
        page.draft.amount(page.sheet, (row, at[0]), amount, currency)
    return below


def _put_line(page: Page, row: int, what: str, to_do: str) -> int:
    page.merged(row, COLUMNS[0], what, _red())
    page.merged(row, COLUMNS[-1], to_do, looks.BODY_TEXT.but(wrap=True))
    lines = max(
        -(-text_width(to_do) // TO_DO_CHARACTERS), -(-text_width(what) // WHAT_CHARACTERS), 1
    )
    page.sheet.row_dimensions[row].height = ROW_POINTS + LINE_POINTS * (lines - 1)
    return row + 1


def _red() -> Look:
    return looks.BODY.but(colour=looks.BAD[1], bold=True, align="left", indent=1, wrap=True)


def _records_of(page: Page, proof: ControlTotal) -> Iterator[str]:
    """Records whose money is exactly the difference: where a person looks first."""
    wanted = abs(proof.difference)
    if proof.measure != "amount" or not wanted:
        return
    named: list[str] = []
    for row in _rows(page):
        if row["currency"] != proof.currency or len(named) == RECORDS_SHOWN:
            continue
        if any(abs(row.get(name) or 0) == wanted for name in AMOUNTS):
            name = next((str(row[name]) for name in NAMES if row.get(name)), "")
            if name and name not in named:
                named.append(name)
                yield f"{name} ({amount_text(wanted, proof.currency)} {proof.currency})"


def _rows(page: Page) -> Iterator[Mapping[str, Any]]:
    """What is open, what is not verified, then what matched."""
    yield from page.rows.breaks
    for frame in (page.figures.unverified, page.figures.pending):
        yield from rows_of(frame)
    for batch in page.figures.matches.batches():
        yield from rows_of(batch)
