"""How the amounts of samples are written, and which signs of a settlement are not as ours."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from recon.config.file_layouts import FileLayout
from recon.files.proposing.answers import turned_of, words_answered
from recon.files.proposing.layout_draft import LayoutDraft
from recon.files.proposing.readings_of_cells import SeenCell, decided_amounts, units_of
from recon.files.proposing.vocabulary import CENTS
from recon.files.typing.table_schema import DIRECTIONS, SETTLED_TYPES
from recon.model.money import exponent, is_currency
from recon.model.words import EntryType, SourceKind

OF_ROW = ("gross", "fee", "net")
_CHOICES = (
    *((), ("gross", "net"), ("gross",), ("net",), ("fee",), ("gross", "fee"), ("fee", "net")),
    OF_ROW,
)
"""Columns of a row whose sign may differ from ours, the plainest first."""
_WAYS = {kind: way for kind, way in DIRECTIONS.items() if kind in SETTLED_TYPES} | {"payout": 1}
"""Entry type of a settled row -> the sign of its net; adjustments have either."""
_EITHER_WAY = frozenset({"reserve", "payout"})
_ROWS = "turned_rows."
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


def read_units(
    cells: Mapping[str, str], ours: str, *, draft: LayoutDraft, layout: FileLayout
) -> int | None:
    """Our amount of a row as the layout reads it so far; None: it cannot."""
    ranked = draft.ranked
    added, taken = (
        units_of(cells.get(name) or "0", layout=layout)
        for name in (ranked.columns.get(ours, ""), ranked.debit.get(ours, ""))
    )
    sign = draft.keys.get("sign", {}).get(ours)
    if added is None or taken is None or (sign and added < 0):
        return None
    is_minus = bool(sign) and cells[sign["column"]] == sign["minus"] != ""
    return -added if is_minus else added - taken


class SettledRow(NamedTuple):
    """A row of a settlement file whose amounts can be read."""

    line: int
    kind: str
    batch: tuple[str, str]
    """Its batch and currency."""
    units: tuple[int, int, int]
    """Gross, fee, net."""

    @property
    def is_right(self) -> bool:
        """Whether its net has the sign of its type, or its type says none."""
        return self.units[2] * _WAYS.get(self.kind, 0) >= 0

    def turned(self, columns: Collection[str]) -> tuple[int, int, int]:
        """The same with the opposite sign in some columns."""
        gross, fee, net = (
            -units if name in columns else units
            for name, units in zip(OF_ROW, self.units, strict=True)
        )
        return gross, fee, net

    def adds_up(self, columns: Collection[str]) -> bool:
        """Whether its net is gross less fee then."""
        gross, fee, net = self.turned(columns)
        return gross - fee == net


def decide_turned(draft: LayoutDraft) -> None:
    """The keys `turned` and `turned_rows` of a settlement: signs that are not as ours.

    Gross, fee and net prove which of them differ; the sums of batches that a pay-out ends, which
    rows are the wrong way round as a whole. What neither proves, and is not as ours, is asked.
    """
    names = [draft.ranked.columns.get(name, "") for name in OF_ROW]
    unread = {"decimal_sign", "units", "currency_sign"} & draft.questions.keys()
    if draft.schema.kind is not SourceKind.SETTLEMENT or unread:
        return
    if any(name not in draft.theirs for name in names):
        return
    rows = list(settled_rows(draft))
    with_fee = [row for row in rows if row.units[1]]
    # Refunds without a sign look as if fees had the other one; captures do not.
    with_fee = [row for row in with_fee if row.kind == EntryType.CAPTURE] or with_fee
    if sum(row.adds_up(("fee",)) for row in with_fee) > sum(row.adds_up(()) for row in with_fee):
        draft.keys["turned"] = ["fee"]
        rows = [row._replace(units=row.turned(("fee",))) for row in rows]
    by_kind: dict[str, list[SettledRow]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    turned = {kind: _turned_in(of, kind=kind) for kind, of in by_kind.items() if kind in _WAYS}
    answered = {
        key.removeprefix(_ROWS): turned_of(text)
        for key, text in draft.answers.items()
        if key.startswith(_ROWS)
    }
    turned |= answered
    doubted = {
        kind: line
        for kind, columns in turned.items()
        if kind not in answered and (line := _contrary(by_kind[kind], columns, kind=kind))
    }
    whole = {kind: _all_turned(by_kind[kind], turned[kind]) for kind in doubted}
    proven = _proven_by_batches(rows, turned, whole)
    for kind, line in doubted.items():
        if kind in proven:
            turned[kind] = whole[kind] if proven[kind] else turned[kind]
            continue
        as_ours = "plus" if _WAYS[kind] > 0 else "minus"
        draft.questions[f"{_ROWS}{kind}"] = (
            f"the net of the {kind} on line {line} is not {as_ours}, and no batch's sum says why: "
            f"{','.join(whole[kind])} where such rows have the opposite of our signs, else nothing"
        )
    if turned_rows := {kind: columns for kind, columns in turned.items() if columns}:
        draft.keys["turned_rows"] = turned_rows


def settled_rows(draft: LayoutDraft) -> Iterator[SettledRow]:
    """The rows of a settlement file, as far as its layout is decided."""
    layout, columns = written_layout(draft), draft.ranked.columns
    words = draft.keys.get("words", {}).get("entry_type", {}) | words_answered(draft.answers)
    for sample in draft.samples:
        for row in sample.rows:
            cells = dict(zip(sample.header, row.cells, strict=True))
            units = [read_units(cells, name, draft=draft, layout=layout) for name in OF_ROW]
            labels = {
                name: cells[columns[name]] if name in columns else draft.constant(name)
                for name in ("entry_type", "batch_id", "currency")
            }
            kind = words.get(labels["entry_type"], labels["entry_type"])
            gross, fee, net = units
            if gross is not None and fee is not None and net is not None:
                batch = (labels["batch_id"], labels["currency"])
                yield SettledRow(row.line, kind, batch, (gross, fee, net))


def _turned_in(rows: Sequence[SettledRow], *, kind: str) -> tuple[str, ...]:
    """The fewest columns by whose other sign the rows of a kind add up, the right way before."""
    return max(
        _CHOICES,
        key=lambda columns: (
            sum(row.adds_up(columns) for row in rows),
            not columns or not _contrary(rows, columns, kind=kind),
        ),
    )


def _contrary(rows: Sequence[SettledRow], columns: Collection[str], *, kind: str) -> int:
    """The first line whose net is not as ours, where that may be a mistake; 0: none.

    Refunds and fees are given back now and then; of reserves and pay-outs either way is common.
    """
    ways = [(row.line, row.turned(columns)[2] * _WAYS[kind]) for row in rows]
    lines = [line for line, way in ways if way < 0]
    rare = kind not in _EITHER_WAY
    return 0 if rare and len(lines) * 2 <= len(rows) else next(iter(lines), 0)


def _all_turned(rows: Sequence[SettledRow], columns: Collection[str]) -> tuple[str, ...]:
    """The same rows as a whole the other way round; a fee that is always 0 stays as it is."""
    names = OF_ROW if any(row.units[1] for row in rows) else ("gross", "net")
    return tuple(name for name in OF_ROW if (name in columns) != (name in names))


def _proven_by_batches(
    rows: Sequence[SettledRow],
    turned: Mapping[str, Collection[str]],
    whole: Mapping[str, Collection[str]],
) -> dict[str, bool]:
    """Kind in doubt -> whether its rows are the other way round, where sums of batches say it."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        of = sums.setdefault(row.batch, {})
        net = row.turned(turned.get(row.kind, ()))[2]
        of[row.kind] = of.get(row.kind, 0) + net
    batches = [of for of in sums.values() if of.get("payout") and len(of) > 1]
    best: list[dict[str, bool]] = []
    most = 1
    for flips in product((False, True), repeat=len(whole)):
        flipped = dict(zip(whole, flips, strict=True))
        tied = 0
        for of in batches:
            total = {kind: -net if flipped.get(kind) else net for kind, net in of.items()}
            tied += 2 * total["payout"] == sum(total.values())
        if tied > most:
            best, most = [], tied
        best += [flipped] * (tied == most)
    return {
        kind: best[0][kind]
        for kind in whole
        if best and len({flipped[kind] for flipped in best}) == 1
    }
