"""How the times of samples are written, also where their time of day stands in another column."""

from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.readings_of_cells import SeenCell, decided_times
from recon.files.typing.table_schema import Cell, Grammar
from recon.files.typing.written_times import standard_time

_ZONES = {"utc": "UTC", "gmt": "UTC"}


def decide_times(draft: LayoutDraft) -> None:
    """The keys `times` and `zone`; a column that need not be there is left where it differs."""
    schema, ranked = draft.schema, draft.ranked
    instants, dates = (
        [c for c in schema.columns if c.cell is cell and c.name in ranked.columns]
        for cell in (Cell.INSTANT, Grammar.DATE)
    )
    cells = [cell for c in (*instants, *dates) if c.required for cell in _timed(draft, c.name)]
    names = [draft.theirs[ranked.columns[c.name]].words for c in instants if c.required]
    zones = {_ZONES[word] for name in names for word in name.split(" ") if word in _ZONES}
    decided = decided_times(
        cells,
        dates=bool(dates),
        zone_of_name=zones.pop() if len(zones) == 1 else "",
        zone_matters=any(c.required for c in instants),
        answers=draft.answers,
    )
    draft.take(decided)
    for column in instants:
        if not column.required and not _fit_times(draft, column.name):
            del ranked.columns[column.name]


def _timed(draft: LayoutDraft, name: str) -> list[SeenCell]:
    """Cells of a column of times, with the time of day of its other column."""
    their, clock = draft.ranked.columns[name], draft.ranked.clock.get(name)
    if clock is None:
        return list(draft.theirs[their].cells)
    joined = []
    for sample in draft.samples:
        day, time = sample.header.index(their), sample.header.index(clock)
        for row in sample.rows:
            text = f"{row.cells[day]} {row.cells[time]}".strip()
            joined += [SeenCell(row.line, text)] if row.cells[day] else []
    return joined


def _fit_times(draft: LayoutDraft, name: str) -> bool:
    """Whether an optional column is written as the times that must be read."""
    times, typed = draft.keys.get("times", ""), draft.samples[0].typed
    cells = draft.theirs[draft.ranked.columns[name]].cells
    if not times:
        decided = decided_times(
            cells, dates=False, zone_of_name="UTC", zone_matters=False, answers={}
        )
        return not decided.keys
    return typed or all(standard_time(cell.text, times=times) for cell in cells)
