"""A last line of totals: its word, and which of its cells are the count and the sum of the rows."""

from collections.abc import Iterator

from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.readings_of_cells import units_of
from recon.files.proposing.sample import SAMPLE_ROWS_MAX, Sample
from recon.files.proposing.written_money import read_units, written_layout
from recon.model.words import SourceKind


def decide_trailer(draft: LayoutDraft) -> None:
    """The key `trailer`; what is held of it at night is what it says of the first sample."""
    sample = draft.samples[0]
    if not sample.trailer:
        return
    trailer: dict[str, object] = {"word": sample.trailer[0]}
    count = str(len(sample.rows))
    at_rows = [at for at, cell in _behind_word(sample) if cell == count]
    if len(at_rows) == 1:
        trailer["rows"] = at_rows[0]
    if at_sum := _place_of_sum(draft, sample):
        trailer["amount"] = at_sum
    draft.keys["trailer"] = trailer


def _behind_word(sample: Sample) -> Iterator[tuple[int, str]]:
    """Place, from 1, and text of each cell behind the word."""
    yield from enumerate(sample.trailer[1:], start=2)


def _place_of_sum(draft: LayoutDraft, sample: Sample) -> int:
    """The one cell that is the sum of the amounts, below them before elsewhere; 0: none is."""
    total = _sum_of(draft, sample)
    if not total:
        return 0
    layout = written_layout(draft)
    places = [at for at, cell in _behind_word(sample) if units_of(cell, layout=layout) == total]
    below = sample.header.index(draft.ranked.columns["amount"]) + 1
    if below in places:
        return below
    return places[0] if len(places) == 1 else 0


def _sum_of(draft: LayoutDraft, sample: Sample) -> int:
    """What all rows come to as they are written; 0 where one cannot be read, or nobody adds them.

    Sums are held of files of text, in one currency.
    """
    column = draft.ranked.columns.get("amount", "")
    is_whole = len(sample.rows) < SAMPLE_ROWS_MAX and not sample.typed
    if draft.schema.kind is SourceKind.BANK:
        return 0  # its opening and closing prove it
    if column not in sample.header or not is_whole or len(_currencies(draft, sample)) > 1:
        return 0
    layout = written_layout(draft)
    total = 0
    for row in sample.rows:
        cells = dict(zip(sample.header, row.cells, strict=True))
        units = read_units(cells, "amount", draft=draft, layout=layout)
        if units is None:
            return 0
        total += units
    return total


def _currencies(draft: LayoutDraft, sample: Sample) -> set[str]:
    name = draft.ranked.columns.get("currency", "")
    if name not in sample.header:
        return {draft.constant("currency")}
    at = sample.header.index(name)
    return {row.cells[at].upper() for row in sample.rows}
