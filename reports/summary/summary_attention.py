"""What needs a person, on page one: doubt first, then the breaks as a whole, then what waits.

Things that say the same are one line, with how many they are and what money they are about: a
stopped night does not repeat its reason for each order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from recon.matching.judging.severity import risk_of_break
from recon.model.figures import Attention
from reports.drawing import look as looks
from reports.drawing.draft import NUMBER_MINOR_UNITS_MAX, grouped_amount
from reports.drawing.look import Look
from reports.drawing.plain_text import local_instant, text_width
from reports.sheets.open_rows import NOT_VERIFIED, RISK
from reports.sheets.totals import sum_of
from reports.sheets.words import words_of
from reports.summary.summary_page import LAST, LEFT, Page

ATTENTION_SHOWN = 8
NOT_SENT = " not sent"
CALM_SHOWN = 2
"""Of what only waits, however much is urgent."""
ROW_POINTS, LINE_POINTS = 15, 12
TO_DO_CHARACTERS = 90
"""What a line of the last column holds."""
ABOUT_CHARACTERS = 68
WHAT_CHARACTERS = 38
COLUMNS = ((2, 3), (4, 5), (6, 6), (7, 7), (8, 8), (9, LAST))
ABOUT = (4, 7)
NOTHING = "No break is open, no instruction is in doubt, and none waits for a person."
TITLES = ("What", "Order no", "Ccy", "Money at risk", "Known since", "What to do")


@dataclass(frozen=True, slots=True)
class _Line:
    """Things that say the same."""

    first: Attention
    kinds: tuple[tuple[str, int], ...]
    """What, and how many of it; several kinds have one reason that is not their own."""
    money: tuple[tuple[str, int], ...]
    """Currency, minor units."""

    @property
    def count(self) -> int:
        """How many things."""
        return sum(count for _, count in self.kinds)


def put_attention(page: Page, top: int) -> int:
    """The block; the next free row."""
    page.text(top, LEFT, "Needs a person", looks.HEADING)
    lines = _lines(page.figures.attention)
    of_night = [line for line in lines if len(line.kinds) > 1]
    urgent = [line for line in lines if line.first.is_urgent]
    calm = [line for line in lines if not line.first.is_urgent and line not in of_night]
    unjudged = _unjudged(page)
    if not (lines or page.rows.breaks or any(unjudged) or _is_doubtful(page)):
        look = Look(fill=looks.GOOD[0], colour=looks.GOOD[1])
        page.merged(top + 1, (LEFT, LAST), NOTHING, look)
        return top + 2
    _put_titles(page, top + 1)
    room = ATTENTION_SHOWN - len(of_night) - bool(page.rows.breaks) - min(CALM_SHOWN, len(calm))
    row = _put_unnamed_doubt(page, top + 2, urgent)
    row = _put_lines(page, row, [*of_night, *urgent[:room]])
    if page.rows.breaks:
        row = _put_breaks(page, row)
    if any(unjudged):
        row = _put_unjudged(page, row, unjudged)
    shown = calm[: max(CALM_SHOWN, CALM_SHOWN + room - len(urgent))]
    row = _put_lines(page, row, shown)
    left = sum(line.count for line in [*urgent[room:], *calm[len(shown) :]])
    if not left and page.figures.instructions.empty:
        return row
    text = f"and {left:,} more: see Instructions and Breaks" if left else "All instructions"
    page.draft.link(page.sheet, (row, LEFT), (text, "'Instructions'!A4"))
    return row + 1


def _lines(waiting: Sequence[Attention]) -> list[_Line]:
    """In the order of the first of each; what lapses stays one line each, it has its own hour."""
    groups: dict[tuple[object, ...], list[Attention]] = {}
    for instruction in waiting:
        own = instruction.order_no if instruction.lapses or instruction.code else ""
        of_night = "" if instruction.what.endswith(NOT_SENT) else instruction.what
        key = (of_night, instruction.next_step, instruction.is_urgent, instruction.code, own)
        groups.setdefault(key, []).append(instruction)
    return [_line(entries) for entries in groups.values()]


def _line(entries: Sequence[Attention]) -> _Line:
    money: Counter[str] = Counter()
    for entry in entries:
        if entry.currency:
            money[entry.currency] += entry.amount
    oldest = replace(entries[0], since=min(entry.since for entry in entries))
    kinds = Counter(entry.what for entry in entries)
    return _Line(oldest, tuple(kinds.most_common()), tuple(sorted(money.items())))


def _what(line: _Line) -> str:
    """Several of one kind by their number; such as "395 capture, 21 cancel not sent"."""
    entry = line.first
    if len(line.kinds) > 1:
        kinds = (f"{count:,} {what.removesuffix(NOT_SENT)}" for what, count in line.kinds)
        return ", ".join(kinds) + NOT_SENT
    what = f"{entry.what}: {words_of(entry.code).title.lower()}" if entry.code else entry.what
    return what if line.count == 1 else f"{line.count:,} × {what}"  # noqa: RUF001 - times


def _is_doubtful(page: Page) -> bool:
    return any(instruction["group"] == "in doubt" for instruction in page.rows.instructions)


def _put_unnamed_doubt(page: Page, row: int, urgent: Sequence[_Line]) -> int:
    """A missing list of people does not turn a doubt into good news."""
    if urgent or not _is_doubtful(page):
        return row
    look = Look(fill=looks.BAD[0], colour=looks.BAD[1], bold=True)
    page.merged(row, (LEFT, LAST), "Instructions are in doubt: see the sheet Instructions.", look)
    return row + 1


def _put_titles(page: Page, row: int) -> None:
    for at, title in zip(COLUMNS, TITLES, strict=True):
        look = looks.HEADER_RIGHT if title == "Money at risk" else looks.HEADER
        page.merged(row, at, title, look)


def _put_lines(page: Page, row: int, lines: Sequence[_Line]) -> int:
    for line in lines:
        _put_line(page, row, line)
        row += 1
    return row


def _put_line(page: Page, row: int, line: _Line) -> None:
    entry, body = line.first, looks.BODY_TEXT
    red = looks.BODY.but(colour=looks.BAD[1], bold=True, align="left", indent=1)
    page.merged(row, COLUMNS[0], _what(line), red.but(wrap=True))
    about = ""
    if line.count == 1:
        page.merged(row, COLUMNS[1], _named(entry), body)
        page.merged(row, COLUMNS[2], entry.currency, body)
        if entry.currency:
            page.draft.amount(page.sheet, (row, COLUMNS[3][0]), entry.amount, entry.currency)
    else:
        about = " · ".join(f"{_amount(amount, currency)}" for currency, amount in line.money)
        page.merged(row, ABOUT, about, body.but(wrap=True))
    since = local_instant(entry.since, timezone=page.figures.timezone)
    since_words = f"{entry.since:%d %b %Y}" if entry.code else f"{since:%d %b %H:%M}"
    page.text(row, COLUMNS[4][0], since_words, body)
    to_do = f"{_whose(entry)}{words_of(entry.code).to_do}" if entry.code else entry.next_step
    page.merged(row, COLUMNS[5], to_do, body.but(wrap=True))
    _fit(page, row, about=about, to_do=to_do)


def _named(entry: Attention) -> str:
    return entry.order_no or entry.transaction_id or entry.subject


def _whose(entry: Attention) -> str:
    """Who looks after a break, and until when: "Jo Hill, due 23 Nov: "."""
    due = f", due {entry.due:%d %b}" if entry.due else ""
    return f"{entry.owner or 'No owner yet'}{due}: "


def _put_breaks(page: Page, row: int) -> int:
    """All open breaks in one line: how many, how much per currency, since when."""
    body, breaks = looks.BODY_TEXT, page.rows.breaks
    amber = looks.BODY.but(colour=looks.WARN[1], bold=True, align="left", indent=1)
    page.merged(row, COLUMNS[0], "", amber)
    words = "open break" if len(breaks) == 1 else "open breaks"
    grave = sum(row["severity"] in {"HIGH", "CRITICAL"} for row in breaks)
    high = 'TEXT(COUNTIF(brkSeverity,"HIGH")+COUNTIF(brkSeverity,"CRITICAL"),"#,##0")'
    answered = sum(row["break_id"] in page.figures.answers for row in breaks)
    answers = f", {answered:,} of {len(breaks):,} answered"
    formula = f'=TEXT(COUNTA(brkKey),"#,##0")&" {words}, "&{high}&" high{answers}"'
    line = (formula, f"{len(breaks):,} {words}, {grave:,} high{answers}")
    page.draft.formula(page.sheet, (row, COLUMNS[0][0]), line, amber.but(wrap=True))
    about = _put_money_at_risk(page, row)
    first = min((str(row["first_seen"]) for row in breaks if row["first_seen"]), default="")
    since = f"{date.fromisoformat(first):%d %b %Y}" if first else ""
    page.text(row, COLUMNS[4][0], since, body)
    to_do = "Answer them on Breaks, most urgent first: who looks after each, and what was done."
    page.merged(row, COLUMNS[5], "", body)
    page.draft.link(page.sheet, (row, COLUMNS[5][0]), (to_do, "'Breaks'!A6"))
    _fit(page, row, about=about, to_do=to_do)
    if text_width(line[1]) > WHAT_CHARACTERS:
        height = page.sheet.row_dimensions[row].height
        page.sheet.row_dimensions[row].height = max(height, ROW_POINTS + LINE_POINTS)
    return row + 1


def _unjudged(page: Page) -> tuple[int, int]:
    """Sets that nobody could judge, and rows that could not be read."""
    return page.rows.open.count(NOT_VERIFIED), len(page.figures.rejects)


def _put_unjudged(page: Page, row: int, unjudged: tuple[int, int]) -> int:
    """They keep a night from being reconciled even where no break is open."""
    sets, rejected = unjudged
    amber = looks.BODY.but(colour=looks.WARN[1], bold=True, align="left", indent=1)
    page.merged(row, COLUMNS[0], "", amber)
    rest = f" not verified, {rejected:,} rejected"
    formula = f'=TEXT({page.rows.open.formula(NOT_VERIFIED)},"#,##0")&"{rest}"'
    page.draft.formula(page.sheet, (row, COLUMNS[0][0]), (formula, f"{sets:,}{rest}"), amber)
    about = _unjudged_money(page)
    page.merged(row, ABOUT, about, looks.BODY_TEXT.but(wrap=True))
    page.merged(row, COLUMNS[4], "", looks.BODY_TEXT)
    page.merged(row, COLUMNS[5], "", looks.BODY_TEXT)
    to_do = "Why stands on Pending and Sources: correct the row or entry, the next night judges it."
    page.draft.link(page.sheet, (row, COLUMNS[5][0]), (to_do, "'Pending'!A4"))
    _fit(page, row, about=about, to_do=to_do)
    return row + 1


def _unjudged_money(page: Page) -> str:
    """The money of the sets that nobody could judge, per currency."""
    money: Counter[str] = Counter()
    for group in page.rows.open.groups:
        if group["result"] == NOT_VERIFIED and group["currency"]:
            money[str(group["currency"])] += group[RISK]
    return " · ".join(
        _amount(amount, currency) for currency, amount in sorted(money.items()) if amount
    )


def _put_money_at_risk(page: Page, row: int) -> str:
    """Money at risk per currency, added up by the sheet where the amounts are numbers."""
    look = looks.BODY_TEXT.but(wrap=True)
    breaks = page.rows.breaks
    currencies = sorted({row["currency"] for row in breaks} - {"", None})
    risky = [{**row, "exposure": risk_of_break(row)} for row in breaks]
    sums = {currency: sum_of(risky, name="exposure", currency=currency) for currency in currencies}
    amounts = " · ".join(_amount(amount, currency) for currency, amount in sums.items())
    page.merged(row, ABOUT, "", look)
    large = any(amount > NUMBER_MINOR_UNITS_MAX for amount in sums.values())
    if large or page.totals.text_currencies.intersection(currencies) or not currencies:
        page.text(row, ABOUT[0], amounts, look)
        return amounts
    parts = [
        f'TEXT(SUMIFS(brkAtRisk,brkCcy,"{currency}"),"{_format(currency)}")&" {currency}"'
        for currency in currencies
    ]
    formula = "=" + '&" · "&'.join(parts)
    page.draft.formula(page.sheet, (row, ABOUT[0]), (formula, amounts), look)
    return amounts


def _format(currency: str) -> str:
    places = looks.decimals_of(currency)
    return "#,##0" + (f".{'0' * places}" if places else "")


def _amount(minor_units: int, currency: str) -> str:
    """Such as "1,234.50 EUR"."""
    return f"{grouped_amount(minor_units, currency)} {currency}"


def _fit(page: Page, row: int, *, about: str, to_do: str) -> None:
    """As high as the longer of its two sentences."""
    lines = max(
        -(-text_width(to_do) // TO_DO_CHARACTERS), -(-text_width(about) // ABOUT_CHARACTERS), 1
    )
    page.sheet.row_dimensions[row].height = ROW_POINTS + LINE_POINTS * (lines - 1)
