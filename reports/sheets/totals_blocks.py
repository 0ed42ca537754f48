"""Blocks of Control totals below the proofs: results, nights, the way of the rows, sources."""

from collections.abc import Mapping, Sequence
from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import SetState, SourceKind
from recon.proof.bridge import STEPS
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.page import column_range, put_header
from reports.sheets.open_rows import NOT_VERIFIED, WAITING
from reports.sheets.totals import Rows

NIGHTS_BEFORE = 13
"""With tonight: two weeks."""
NIGHT_COLUMN, BRIDGE_COLUMN = 4, 7
STATES = {
    SetState.MATCHED.value: "Matched",
    SetState.PENDING.value: WAITING,
    SetState.BREAK.value: "Breaks",
    SetState.UNVERIFIED.value: NOT_VERIFIED,
}
SIDE_WORDS = {
    "orders": "orders",
    "gateway": "gateway",
    "ledger": "ledger",
    "payouts": "payouts",
    "fees": "fees",
    "reserves": "reserves",
    "settlement": "settlement files",
}
BRIDGE_CHECKS = "chkRows"
BRIDGE_WORDS = {SourceKind.ORDERS: "Orders", SourceKind.LEDGER: "Ledger"}


def put_results(draft: Draft, sheet: Any, *, rows: Rows, top: int) -> tuple[dict[str, int], int]:
    """How many sets came to what."""
    draft.text(sheet, (top, 1), "Sets by result", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=("Result", ">Sets"))
    matched = "=SUM(matRows)" if rows.matched.is_cut else "=COUNTA(matKey)"
    counts = {
        "Matched": (matched, rows.matched.count),
        **{
            result: (f"={rows.open.formula(result)}", rows.open.count(result))
            for result in (WAITING, NOT_VERIFIED)
        },
        "Breaks": ("=COUNTA(brkKey)", len(rows.breaks)),
    }
    first = top + 2
    places = {}
    for row, (result, written) in enumerate(counts.items(), first):
        draft.text(sheet, (row, 1), result, looks.LABEL)
        draft.formula(sheet, (row, 2), written)
        places[result] = row
    last = first + len(counts)
    draft.text(sheet, (last, 1), "All", looks.LABEL.but(line="total"))
    everything = (f"=SUM(B{first}:B{last - 1})", sum(value for _, value in counts.values()))
    draft.formula(sheet, (last, 2), everything, looks.NUMBER.but(line="total", bold=True))
    places["All"] = last
    return places, last + 2


def put_nights(
    draft: Draft, sheet: Any, *, figures: NightFigures, top: int
) -> tuple[tuple[int, int], int]:
    """Open breaks of the last nights, tonight last: first and last row, and the next free one."""
    draft.text(sheet, (top, NIGHT_COLUMN), "Open breaks by night", looks.HEADING)
    for column, title in enumerate(("Business day", ">Open breaks"), NIGHT_COLUMN):
        look = looks.HEADER_RIGHT if title.startswith(">") else looks.HEADER
        draft.text(sheet, (top + 1, column), title.removeprefix(">"), look)
    row = top + 2
    for point in figures.trend[-NIGHTS_BEFORE:]:
        _put_night(draft, sheet, row, f"{point.business_date:%d %b}")
        draft.number(sheet, (row, NIGHT_COLUMN + 1), point.open_breaks)
        row += 1
    _put_night(draft, sheet, row, f"{figures.business_date:%d %b}")
    written = ("=COUNTA(brkKey)", len(figures.breaks))
    draft.formula(sheet, (row, NIGHT_COLUMN + 1), written)
    return (top + 2, row), row + 2


def _put_night(draft: Draft, sheet: Any, row: int, day: str) -> None:
    draft.text(sheet, (row, NIGHT_COLUMN), day, looks.BODY_TEXT)


def put_bridge(
    draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows, top: int
) -> tuple[int, int]:
    """From the rows of the files to the records compared; how many checks fail, the next row."""
    title = "From the rows accepted (Sources) to the records compared"
    draft.text(sheet, (top, BRIDGE_COLUMN), title, looks.HEADING)
    kinds = [kind for kind in BRIDGE_WORDS if kind in figures.bridge]
    taken = [step for step in STEPS if any(figures.bridge[kind].get(step) for kind in kinds)]
    lines = ("Rows accepted", *taken, "Come to", "Records compared", "Difference", "Check")
    _put_bridge_header(draft, sheet, [BRIDGE_WORDS[kind] for kind in kinds], row=top + 1)
    for row, line in enumerate(lines, top + 2):
        bold = line in {"Come to", "Records compared"}
        for column in range(BRIDGE_COLUMN, BRIDGE_COLUMN + 3):
            draft.cell(sheet, (row, column), looks.BODY)
        look = looks.BODY.but(align="left", indent=1, bold=bold)
        draft.text(sheet, (row, BRIDGE_COLUMN), line, look)
    last = top + 1 + len(lines)
    failed = 0
    for letter, kind in zip("JK", kinds, strict=False):
        steps = [figures.bridge[kind].get(step, 0) for step in taken]
        figures_of_kind = (_accepted(figures, kind), steps, _compared(rows, kind))
        failed += _put_bridge_of(draft, sheet, (letter, top + 2, kind), figures_of_kind)
    if kinds:
        reference = f"'{sheet.title}'!$J${last}:$K${last}"
        draft.name(BRIDGE_CHECKS, reference)
        colour_checks(sheet, f"J{last}:K{last}")
    return failed, last + 2


def _put_bridge_header(draft: Draft, sheet: Any, kinds: Sequence[str], *, row: int) -> None:
    for column, title in enumerate(("Step", "", "", *kinds), BRIDGE_COLUMN):
        look = looks.HEADER_RIGHT if title in kinds else looks.HEADER
        draft.text(sheet, (row, column), title, look)


def _put_bridge_of(
    draft: Draft,
    sheet: Any,
    block: tuple[str, int, SourceKind],
    figures_of_kind: tuple[int, list[int], int],
) -> int:
    """The column of one source; 1 when it does not add up."""
    (letter, first, kind), (accepted, steps, compared) = block, figures_of_kind
    column = "ABCDEFGHIJKLMN".index(letter) + 1
    come_to = accepted + sum(steps)
    row = first + 1 + len(steps)
    total = looks.NUMBER.but(bold=True)
    written = {
        first: (f'=SUMIFS(srcAccepted,srcKind,"{kind.value}")', accepted),
        row: (f"=SUM({letter}{first}:{letter}{row - 1})", come_to),
        row + 1: (f'=SUMIFS(sidRecords,sidSource,"{SIDE_WORDS[kind.value]}")', compared),
        row + 2: (f"={letter}{row}-{letter}{row + 1}", come_to - compared),
    }
    for number, line in written.items():
        draft.formula(sheet, (number, column), line, total if number >= row else looks.NUMBER)
    for number, step in enumerate(steps, first + 1):
        draft.number(sheet, (number, column), step, looks.NUMBER.but(fill=looks.ENGINE_FILL))
    word = OK if come_to == compared else CHECK
    check = f'=IF({letter}{row + 2}=0,"{OK}","{CHECK}")'
    draft.formula(sheet, (row + 3, column), (check, word), looks.CHECK)
    return int(word == CHECK)


def _accepted(figures: NightFigures, kind: SourceKind) -> int:
    return sum(file.rows_accepted for file in figures.files if file.kind == kind)


def _compared(rows: Rows, kind: SourceKind) -> int:
    return sum(row["count"] for row in rows.sides if row["source"] == kind.value)


def bridge_sentence(figures: NightFigures, *, kind: SourceKind) -> str:
    """The same steps in one line: "1,748 rows accepted − 4 repeats … = 1,702 compared"."""  # noqa: RUF002 - a minus
    steps = figures.bridge.get(kind, {})
    sentences = [f"{_accepted(figures, kind):,} rows accepted"]
    sentences += [
        f"{'+' if steps[step] > 0 else '−'} {abs(steps[step]):,} {step}"  # noqa: RUF001 - a minus
        for step in STEPS
        if steps.get(step)
    ]
    come_to = _accepted(figures, kind) + sum(steps.values())
    return f"{BRIDGE_WORDS[kind]}: {' '.join(sentences)} = {come_to:,} compared"


def put_sides(
    draft: Draft,
    sheet: Any,
    *,
    rows: Sequence[Mapping[str, Any]],
    text_currencies: frozenset[str],
    top: int,
) -> int:
    """What each source says per account and currency, by result; the next free row."""
    draft.text(sheet, (top, 1), "What each source says (net of refunds)", looks.HEADING)
    results = [f">{word}" for word in STATES.values()]
    titles = ("Source", "Account", "Currency", ">Records", *results, ">All")
    put_header(draft, sheet, row=top + 1, titles=titles)
    groups: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        key = (str(row["source"]), str(row["account_id"] or ""), str(row["currency"] or ""))
        groups.setdefault(key, {})[str(row["state"])] = row
    for number, (key, by_state) in enumerate(sorted(groups.items()), top + 2):
        _put_side(draft, sheet, number, (key, by_state, key[2] not in text_currencies))
    extent = (top + 2, top + 1 + max(1, len(groups)))
    names = {"sidSource": 1, "sidCcy": 3, "sidRecords": 4, "sidAmount": 5 + len(STATES)}
    for name, column in names.items():
        draft.name(name, column_range(sheet, column=column, rows=extent))
    return extent[1] + 2


def _put_side(
    draft: Draft,
    sheet: Any,
    row: int,
    side: tuple[tuple[str, str, str], Mapping[str, Mapping[str, Any]], bool],
) -> None:
    (source, account_id, currency), by_state, live = side
    for column, text in enumerate((SIDE_WORDS.get(source, source), account_id, currency), 1):
        draft.text(sheet, (row, column), text, looks.BODY_TEXT)
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    draft.number(sheet, (row, 4), sum(sums["count"] for sums in by_state.values()), grey)
    for column, state in enumerate(STATES, 5):
        amount = by_state[state]["amount"] if state in by_state else None
        draft.amount_as(sheet, (row, column), (amount, currency), grey)
    everything = sum(sums["amount"] for sums in by_state.values())
    if live:
        draft.money_formula(sheet, (row, 9), (f"SUM(E{row}:H{row})", everything, currency))
    else:
        draft.amount(sheet, (row, 9), everything, currency)


def put_elsewhere(draft: Draft, sheet: Any, *, rows: Sequence[Mapping[str, Any]], top: int) -> int:
    """Effects that no row of Breaks can show."""
    title = "Elsewhere: effects of a break in a second currency or account"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    titles = ("Account", "Break key", "Compared", "Currency", ">Amount")
    put_header(draft, sheet, row=top + 1, titles=titles)
    for number, row in enumerate(rows, top + 2):
        for column, name in enumerate(("account_id", "break_id", "leg", "currency"), 1):
            draft.text(sheet, (number, column), str(row[name]), looks.BODY_TEXT)
        grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
        draft.amount_as(sheet, (number, 5), (row["amount"], row["currency"]), grey)
    if not rows:
        draft.text(sheet, (top + 2, 1), "None.", looks.NOTE)
    extent = (top + 2, top + 1 + max(1, len(rows)))
    for name, column in (("elsLeg", 3), ("elsCcy", 4), ("elsAmount", 5)):
        draft.name(name, column_range(sheet, column=column, rows=extent))
    return extent[1] + 2
