"""How the amounts of samples are written, and whether the gateway writes its fees with a minus."""

from collections.abc import Iterator, Sequence

from recon.config.file_layouts import FileLayout
from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.readings_of_cells import SeenCell, decided_amounts, units_of
from recon.files.proposing.vocabulary import CENTS
from recon.model.money import exponent, is_currency
from recon.model.words import SourceKind

_TURNED = {SourceKind.SETTLEMENT: ("gross", "fee", "net")}
_WRITTEN = frozenset({"decimal_sign", "thousands_sign", "minus", "currency_sign"})


def written_layout(draft: LayoutDraft) -> FileLayout:
    """How an amount of the samples is written, as far as it was decided."""
    return FileLayout.model_validate({k: v for k, v in draft.keys.items() if k in _WRITTEN})


def decide_amounts(draft: LayoutDraft) -> None:
    """The keys of decimal sign, thousands, minus, units; and `turned`."""
    ranked = draft.ranked
    names = [ranked.columns[column.name] for column in draft.amount_columns()]
    names += ranked.debit.values()
    theirs = [draft.theirs[name] for name in names if name in draft.theirs]
    cells = [*_cells(draft, [their.name for their in theirs])]
    in_cents = any(set(their.words.split(" ")) & CENTS for their in theirs)
    decided = decided_amounts(cells, in_cents=in_cents, answers=draft.answers)
    draft.take(decided)
    if not decided.questions:
        _turn_fees(draft)


def _cells(draft: LayoutDraft, names: Sequence[str]) -> Iterator[SeenCell]:
    """Filled cells of columns with the currency of their row; numbers with its decimals."""
    constant, currency = draft.constant("currency"), draft.ranked.columns.get("currency", "")
    for sample in draft.samples:
        at = {name: sample.header.index(name) for name in names}
        of_currency = sample.header.index(currency) if currency in sample.header else -1
        for row in sample.rows:
            code = row.cells[of_currency].upper() if of_currency >= 0 else constant
            code = code if is_currency(code) else ""
            for index in at.values():
                text = row.cells[index]
                if text and row.numbers and row.numbers[index] and "." in text:
                    whole, _, fraction = text.partition(".")
                    text = f"{whole}.{fraction.ljust(exponent(code or 'EUR'), '0')}"
                if text:
                    yield SeenCell(row.line, text, code)


def _turn_fees(draft: LayoutDraft) -> None:
    """Whether the gateway writes what it takes with a minus, where ours has none."""
    names = _TURNED.get(draft.schema.kind, ())
    columns = [draft.ranked.columns.get(name, "") for name in names]
    if not columns or draft.ranked.debit or any(name not in draft.theirs for name in columns):
        return
    layout = written_layout(draft)
    less = more = rows = 0
    for sample in draft.samples:
        places = [sample.header.index(name) for name in columns]
        for row in sample.rows:
            gross, fee, net = (units_of(row.cells[at], layout=layout) for at in places)
            if gross is not None and fee and net is not None:
                rows += 1
                less += gross - fee == net
                more += gross + fee == net
    if rows and more > less:
        draft.keys["turned"] = ["fee"]
