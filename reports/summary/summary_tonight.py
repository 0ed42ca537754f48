"""The foot of page one: tonight's moves, the scope of assurance and the sign-off."""

from collections.abc import Mapping, Sequence

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import major_units
from reports.drawing.page import column_range
from reports.drawing.plain_text import local_instant
from reports.sheets.instructions_sheet import kinds_of
from reports.sheets.sources_sheet import whole
from reports.summary.summary_page import LAST, LEFT, RIGHT, Page

ASSURANCE_SHOWN = 6
KINDS = {"capture": "Captures", "refund": "Refunds", "cancel": "Cancels"}
KINDS_SHOWN = tuple(KINDS)
NOT_SIGNED = "not signed"
SIGNED_NAMES = {"reviewer": "signReviewer", "approver": "signApprover"}
"""Role -> the name of its line; filled in by `signed_copy`."""
SIGNED_FILE = {
    "signFile": "Signed with `recon sign-off`, which binds the SHA-256 of this file;",
    "signDigest": "a copy beside it then says who signed. Nothing is signed here.",
}
"""Two lines under the names, which the signed copy replaces."""
OF_PLAIN_FILES = (
    "Of plain files: no history keeps this workbook, and no command signs it.",
    "Sign it on paper, or file it with its SHA-256.",
)
"""The same two where no night stands behind the file."""
MOVES = ("instructed", "confirmed", "rejected", "in doubt", "waiting", "withdrawn")


def put_foot(page: Page, top: int) -> int:
    """Tonight and scope of assurance on the left, sign-off on the right; the last row."""
    _put_sign_off(page, top)
    row = _put_tonight(page, top)
    row = _put_assurance(page, row + 1)
    return max(row, top + 3 + len(SIGNED_NAMES) + len(SIGNED_FILE))


def _put_sign_off(page: Page, top: int) -> None:
    """Who prepared, reviewed and approved; a signed copy of the file names the last two."""
    page.text(top, RIGHT, "Sign-off", looks.HEADING)
    for column, title in enumerate(("Role", "Name", "Date"), RIGHT):
        page.text(top + 1, column, title, looks.HEADER)
    page.text(top + 2, RIGHT, "Prepared", looks.BODY_TEXT)
    page.text(top + 2, RIGHT + 1, "recon (automatic)", looks.BODY_TEXT)
    prepared = local_instant(page.figures.generated_at, timezone=page.figures.timezone)
    page.draft.day(page.sheet, (top + 2, RIGHT + 2), prepared.date())
    for row, (role, name) in enumerate(SIGNED_NAMES.items(), top + 3):
        page.text(
            row, RIGHT, {"reviewer": "Reviewed", "approver": "Approved"}[role], looks.BODY_TEXT
        )
        page.text(row, RIGHT + 1, NOT_SIGNED, looks.BODY_TEXT)
        page.text(row, RIGHT + 2, "", looks.BODY_TEXT)
        _name_cell(page, name, row)
    sentences = OF_PLAIN_FILES if page.figures.of_plain_files else tuple(SIGNED_FILE.values())
    named = zip(SIGNED_FILE, sentences, strict=True)
    for row, (name, sentence) in enumerate(named, top + 3 + len(SIGNED_NAMES)):
        page.merged(row, (RIGHT, LAST), sentence, looks.NOTE)
        _name_cell(page, name, row)


def _name_cell(page: Page, name: str, row: int) -> None:
    """By this name a signed copy finds the line again."""
    page.draft.name(name, column_range(page.sheet, column=RIGHT, rows=(row, row)))


def _put_tonight(page: Page, top: int) -> int:
    """What moved tonight, by kind and result, and what was read."""
    page.draft.link(page.sheet, (top, LEFT), ("Tonight", "'Instructions'!A4"), looks.HEADING)
    page.text(top + 1, LEFT, "Instructed", looks.HEADER)
    for column, title in enumerate(MOVES, LEFT + 1):
        page.text(top + 1, column, title.capitalize(), looks.HEADER_RIGHT)
    kinds = [
        *KINDS_SHOWN,
        *(kind for kind in kinds_of(page.rows.instructions) if kind not in KINDS),
    ]
    for row, kind in enumerate(kinds, top + 2):
        _put_kind(page, row, kind)
    row = top + 2 + len(kinds)
    page.draft.link(page.sheet, (row, LEFT), ("Sources", "'Sources'!A4"))
    page.text(row, LEFT + 1, _sources_sentence(page.figures))
    return row + 1


def _put_kind(page: Page, row: int, kind: str) -> None:
    page.text(row, LEFT, KINDS.get(kind, kind.replace("_", " ").capitalize()), looks.BODY_TEXT)
    rows = [instruction for instruction in page.rows.instructions if instruction["kind"] == kind]
    criteria = f'insKind,"{kind}"'
    page.draft.formula(page.sheet, (row, LEFT + 1), (f"=COUNTIFS({criteria})", len(rows)))
    for column, result in enumerate(MOVES[1:], LEFT + 2):
        count = sum(row["group"] == result for row in rows)
        formula = f'=COUNTIFS({criteria},insResult,"{result}")'
        page.draft.formula(page.sheet, (row, column), (formula, count))


def _sources_sentence(figures: NightFigures) -> str:
    read = sum(file.rows_read for file in figures.files)
    rejected = sum(file.rows_rejected for file in figures.files)
    ledger = "" if figures.ledger_covered else " · no ledger: the ledger is not covered"
    return f"{len(figures.files)} sources · {read:,} rows read · {rejected:,} rejected{ledger}"


def _put_assurance(page: Page, top: int) -> int:
    """What was proven and what cannot be seen: one line per statement, then what had no source."""
    by_statement: dict[str, list[Mapping[str, str | int]]] = {}
    for line in page.figures.scope_of_assurance:
        by_statement.setdefault(str(line.get("statement", "")), []).append(line)
    sentences = [_assured(statement, lines=lines) for statement, lines in by_statement.items()]
    sentences += [f"Not covered: {sentence}" for sentence in page.figures.not_covered]
    if not sentences:
        return top
    to = ("Scope of assurance", "'Sources'!A4")
    page.draft.link(page.sheet, (top, LEFT), to, looks.HEADING)
    for row, sentence in enumerate(sentences[:ASSURANCE_SHOWN], top + 1):
        page.text(row, LEFT, sentence, looks.PLAIN.but(indent=1, align="left"))
    row = top + 1 + len(sentences[:ASSURANCE_SHOWN])
    if len(sentences) > ASSURANCE_SHOWN:
        text = f"and {len(sentences) - ASSURANCE_SHOWN} more on Sources and Control totals"
        page.text(row, LEFT, text, looks.NOTE)
        row += 1
    return row


def _assured(statement: str, *, lines: Sequence[Mapping[str, str | int]]) -> str:
    """A statement with its figures; beside currencies a count without one says that it has none."""
    alone = not any(line.get("currency") for line in lines)
    figures = [text for line in lines if (text := _figure_of(line, alone=alone))]
    sentence = f"{statement[:1].upper()}{statement[1:]}"
    return f"{sentence}: {' · '.join(figures)}" if figures else sentence


def _figure_of(line: Mapping[str, str | int], *, alone: bool) -> str:
    """Count and amount of a line; nothing where it counts nothing."""
    count, amount = whole(line.get("count")), whole(line.get("amount")) or 0
    currency = str(line.get("currency", "") or "")
    if not count:
        return ""
    if currency:
        return f"{count:,} ({major_units(amount, currency):,f} {currency})"
    return f"{count:,}" if alone else f"{count:,} whose currency nothing tells"
