"""A layout for files like some samples: its keys, what must be asked, what no column is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recon.config.file_layouts import FileLayout
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.proposing.answers import set_answer
from recon.files.proposing.captures import decided_captures, entry_types_of
from recon.files.proposing.ranked_columns import (
    OF_STATEMENT,
    fits,
    ranked_columns,
    their_columns,
)
from recon.files.proposing.readings_of_cells import (
    SeenCell,
    currency_mark,
    currency_of_mark,
    decided_amounts,
    decided_times,
    units_of,
)
from recon.files.proposing.sample import Sample, joined_keys, sample_of, trailer_of
from recon.files.proposing.vocabulary import (
    BANK_STATUS,
    CENTS,
    MEANINGS,
    MINUS_WORDS,
    PLUS_WORDS,
    names_of_column,
    plain_words,
)
from recon.files.typing.table_schema import Cell, Grammar, TableColumn, TableSchema
from recon.files.typing.written_times import standard_time
from recon.model.money import exponent, is_currency
from recon.model.words import SourceKind
from recon.privacy.shown_text import scrubbed

_OF_ACCOUNT = ("merchant_id", "account_id")
_SIGNED = frozenset({SourceKind.SETTLEMENT, SourceKind.BANK, SourceKind.LEDGER})
_TURNED = {SourceKind.SETTLEMENT: ("gross", "fee", "net")}
_SPARED = frozenset({"transaction_id", "reference_no", "opening", "closing"})
"""Columns that many programs do not have: blank where no column is them, and said so."""
_CANDIDATES_MAX = 6
"""Columns that a question names."""
_ZONES = {"utc": "UTC", "gmt": "UTC"}


class Proposal(NamedTuple):
    """What samples say of their layout."""

    layout: dict[str, Any]
    """Keys of a layout, as far as they are decided."""
    questions: dict[str, str]
    """Key -> what a person decides, with the row that shows why."""
    blank: tuple[str, ...]
    """Our columns that no column of the samples is; they are blank in every row."""
    not_read: tuple[str, ...]
    """Their columns of which nothing is read."""


def proposal_of(
    files: Sequence[FileBytes],
    *,
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """The layout of files like these.

    Args:
        files: Samples of one layout.
        schema: What a night reads of them.
        constants: Merchant and account, where they are known.
        answers: What a person decided: key of the layout -> text.

    Raises:
        SourceUnreadableError: one of them is no table with a header, or they differ in it.
        UsageError: an answer is none that its key can have.
    """
    known = frozenset().union(*map(names_of_column, schema.names))
    encoding = answers.get("encoding", "")
    samples = [sample_of(file, known=known, encoding=encoding) for file in files]
    if not any(sample.rows for sample in samples):
        why = "a column is known by what it holds, too"
        refuse(samples[0].name, f"has a header and no row; {why}: give a sample with rows")
    return _Proposing(samples, schema=schema, constants=constants, answers=answers).made()


class _Proposing:
    """One layout while its keys are decided, each step by what was decided before."""

    def __init__(
        self,
        samples: Sequence[Sample],
        *,
        schema: TableSchema,
        constants: Mapping[str, str],
        answers: Mapping[str, str],
    ) -> None:
        self._samples = samples
        self._schema = schema
        self._known_constants = constants
        self._answers = answers
        self._keys: dict[str, Any] = joined_keys(samples)
        self._questions = {k: ask for sample in samples for k, ask in sample.questions.items()}
        self._theirs = their_columns(samples)
        signed = schema.kind in _SIGNED
        self._ranked = ranked_columns(self._theirs, schema=schema, answers=answers, signed=signed)
        self._constants: dict[str, str] = {}
        self._blank: list[str] = []

    def made(self) -> Proposal:
        """The proposal."""
        self._questions |= self._ranked.questions
        self._place_account()
        self._fill_required()
        self._decide_words()
        self._decide_amounts()
        self._decide_sign()
        self._decide_captures()
        self._decide_times()
        self._keys |= trailer_of(self._samples[0])
        ranked = self._ranked
        columns = {ours: their for ours, their in ranked.columns.items() if ours != their}
        layout = self._keys | {
            key: value
            for key, value in (
                ("columns", columns),
                ("debit", ranked.debit),
                ("clock", ranked.clock),
                ("constants", self._constants),
            )
            if value
        }
        for key, text in self._answers.items():
            set_answer(layout, key, text)
            self._questions.pop(key, None)
        read = {*ranked.columns.values(), *ranked.debit.values(), *ranked.clock.values()}
        read.add(layout.get("sign", {}).get("column", ""))
        not_read = [scrubbed(name) for name in self._samples[0].header if name not in read]
        return Proposal(layout, self._questions, tuple(self._blank), tuple(not_read))

    def _place_account(self) -> None:
        """Merchant and account are what the caller says, unless a column says the same."""
        for name in _OF_ACCOUNT:
            if name not in self._schema.names:
                continue
            their = self._theirs.get(self._ranked.columns.get(name, ""))
            known = self._known_constants.get(name, "")
            sure = f"columns.{name}" in self._answers or their is None or their.name == name
            ids = {cell.text for cell in their.cells} if their is not None else set()
            if not sure and (not known or ids != {known}):
                del self._ranked.columns[name]
            self._questions.pop(f"columns.{name}", None)
            if name in self._ranked.columns:
                continue
            if known:
                self._constants[name] = known
            else:
                self._questions[f"constants.{name}"] = "whose files are they? No column says it"

    def _fill_required(self) -> None:
        for column in self._schema.columns:
            name, key = column.name, f"columns.{column.name}"
            if name in self._ranked.columns or key in self._questions or name in _OF_ACCOUNT:
                continue
            if not column.required or f"constants.{name}" in self._answers:
                continue
            if name in _SPARED and column.may_be_blank:
                self._constants[name] = ""
                self._blank.append(name)
            elif column.cell is Cell.CURRENCY:
                self._currency_of_names()
            elif isinstance(column.cell, frozenset):
                named = self._candidates(column)
                which = f" (columns.{name} where it is{named[1:]})" if named else ""
                ask = f"no column is known to say it{which}; what is it of every row?"
                self._questions[f"constants.{name}"] = ask
            else:
                day = self._ranked.columns.get("booked_on")
                each = f"; {day!r} makes a statement of each day" if day else ""
                ask = f"which column is it{self._candidates(column)}?"
                none = f" (constants.{name} where none is)"
                self._questions[key] = f"{ask}{each if name in OF_STATEMENT else ''}{none}"

    def _candidates(self, column: TableColumn) -> str:
        """Columns of which no required one is read yet, and whose cells could be this one."""
        ranked = self._ranked
        needed = {ranked.columns.get(name, "") for name in self._schema.required}
        taken = {*needed, *ranked.debit.values(), *ranked.clock.values()}
        free = [
            their
            for their in self._theirs.values()
            if their.name not in taken and their.cells and fits(their, column)
        ]
        if isinstance(column.cell, Grammar) and column.cell is not Grammar.DATE:
            alone = [their for their in free if their.all_differ]
            free = alone or free
        names = [repr(their.name) for their in free]
        return f": {' or '.join(names[:_CANDIDATES_MAX])}" if names else ""

    def _currency_of_names(self) -> None:
        """What names of amounts tell, `Betrag (EUR)`, or the signs beside them; or a question."""
        parts = {
            part
            for column in self._amount_columns()
            for part in re.findall(r"\b[A-Z]{3}\b", self._ranked.columns[column.name])
            if is_currency(part)
        }
        cells = [cell for column in self._amount_columns() for cell in self._cells_of(column.name)]
        if known := currency_of_mark(currency_mark(cell.text for cell in cells)):
            parts.add(known)
        if len(parts) == 1:
            self._constants["currency"] = parts.pop()
        else:
            self._questions["constants.currency"] = "no column says the currency; which one is it?"

    def _amount_columns(self) -> list[TableColumn]:
        ranked = self._ranked.columns
        return [c for c in self._schema.columns if c.cell is Cell.AMOUNT and c.name in ranked]

    def _decide_words(self) -> None:
        words: dict[str, dict[str, str]] = {}
        for column in self._schema.columns:
            if not isinstance(column.cell, frozenset):
                continue
            lines = {cell.text: cell.line for cell in reversed(self._cells_of(column.name))}
            if not set(lines) <= column.cell:
                words[column.name] = self._meant(lines, column=column)
        # What is no currency stays a row that a night refuses.
        cells = self._cells_of("currency")
        codes = {cell.text for cell in cells if is_currency(cell.text.upper())}
        if any(code.upper() != code for code in codes):
            words["currency"] = {code: code.upper() for code in sorted(codes)}
        if words:
            self._keys["words"] = words

    def _cells_of(self, ours: str) -> tuple[SeenCell, ...]:
        their = self._theirs.get(self._ranked.columns.get(ours, ""))
        return () if their is None else their.cells

    def _meant(self, lines: Mapping[str, int], *, column: TableColumn) -> dict[str, str]:
        """Their word -> ours; a word that could mean several things is asked."""
        of_bank = self._schema.kind is SourceKind.BANK
        known = BANK_STATUS if of_bank else MEANINGS.get(column.name, {})
        assert isinstance(column.cell, frozenset)  # noqa: S101 - the caller asked
        meant = {}
        for word, line in sorted(lines.items(), key=lambda pair: pair[1]):
            ours = known.get(plain_words(word), word)
            if ours in column.cell:
                meant[word] = ours
                continue
            shown = word if scrubbed(word) == word else ""
            key = f"words.{column.name}.{shown}" if shown else f"words.{column.name}"
            which = ", ".join(sorted(column.cell))
            self._questions[key] = f"line {line}: which of {which} is it?"
        return meant

    def _cells(self, names: Sequence[str], *, currency: str) -> Iterator[SeenCell]:
        """Filled cells of columns with the currency of their row; numbers with its decimals."""
        constant = self._constants.get("currency", self._answers.get("constants.currency", ""))
        for sample in self._samples:
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

    def _decide_amounts(self) -> None:
        names = [self._ranked.columns[column.name] for column in self._amount_columns()]
        names += self._ranked.debit.values()
        theirs = [self._theirs[name] for name in names if name in self._theirs]
        cells = list(
            self._cells(
                [their.name for their in theirs],
                currency=self._ranked.columns.get("currency", ""),
            )
        )
        in_cents = any(set(their.words.split(" ")) & CENTS for their in theirs)
        decided = decided_amounts(cells, in_cents=in_cents, answers=self._answers)
        self._keys |= decided.keys
        self._questions |= decided.questions
        if not decided.questions:
            self._turn_fees()

    def _decide_sign(self) -> None:
        """A column with the sign of amounts that have none themselves: S and H, Af and Bij."""
        taken = set(self._ranked.columns.values())
        for their in self._theirs.values():
            words = {plain_words(cell.text): cell.text for cell in their.cells}
            if their.name in taken or not (words and set(words) <= MINUS_WORDS | PLUS_WORDS):
                continue
            minus = [text for word, text in words.items() if word in MINUS_WORDS]
            plus = [text for word, text in words.items() if text not in minus]
            fits = self._schema.kind is SourceKind.BANK and len(minus) == 1 and len(plus) <= 1
            if fits:
                sign = {"column": their.name, "plus": "".join(plus), "minus": minus[0]}
                self._keys["sign"] = sign
            else:
                self._ask_of_sign(their.name)

    def _ask_of_sign(self, name: str) -> None:
        """Beside what is asked of the amount itself, where no column is known to be it."""
        amounts = [c for c in self._schema.columns if c.cell is Cell.AMOUNT]
        key = f"columns.{(self._amount_columns() or amounts)[0].name}"
        ask = f"column {name!r} says which way money goes; what is of it in amounts?"
        self._questions[key] = "; ".join([*filter(None, [self._questions.get(key)]), ask])

    def _decide_captures(self) -> None:
        """Of books with signs or two sides: which is that of captures, by their entry types."""
        ranked = self._ranked
        amount, debit = (of.get("amount", "") for of in (ranked.columns, ranked.debit))
        if self._schema.kind is not SourceKind.LEDGER or amount not in self._theirs:
            return
        meant = self._keys.get("words", {}).get("entry_type", {})
        decided = decided_captures(
            self._samples,
            columns=(amount, debit, ranked.columns.get("entry_type", "")),
            words=meant | entry_types_of(self._answers),
        )
        self._keys |= decided.keys
        self._questions |= decided.questions

    def _turn_fees(self) -> None:
        """Whether the gateway writes what it takes with a minus, where ours has none."""
        names = _TURNED.get(self._schema.kind, ())
        columns = [self._ranked.columns.get(name, "") for name in names]
        if not columns or self._ranked.debit or any(name not in self._theirs for name in columns):
            return
        written = {"decimal_sign", "thousands_sign", "minus", "currency_sign"}
        keys = {key: text for key, text in self._keys.items() if key in written}
        layout = FileLayout.model_validate(keys)
        less = more = rows = 0
        for sample in self._samples:
            places = [sample.header.index(name) for name in columns]
            for row in sample.rows:
                gross, fee, net = (units_of(row.cells[at], layout=layout) for at in places)
                if gross is not None and fee and net is not None:
                    rows += 1
                    less += gross - fee == net
                    more += gross + fee == net
        if rows and more > less:
            self._keys["turned"] = ["fee"]

    def _decide_times(self) -> None:
        schema, ranked = self._schema, self._ranked
        instants, dates = (
            [c for c in schema.columns if c.cell is cell and c.name in ranked.columns]
            for cell in (Cell.INSTANT, Grammar.DATE)
        )
        cells = [cell for c in (*instants, *dates) if c.required for cell in self._timed(c.name)]
        names = [self._theirs[ranked.columns[c.name]].words for c in instants if c.required]
        zones = {_ZONES[word] for name in names for word in name.split(" ") if word in _ZONES}
        decided = decided_times(
            cells,
            dates=bool(dates),
            zone_of_name=zones.pop() if len(zones) == 1 else "",
            zone_matters=any(c.required for c in instants),
            answers=self._answers,
        )
        self._keys |= decided.keys
        self._questions |= decided.questions
        for column in instants:
            if not column.required and not self._fit_times(column.name):
                del ranked.columns[column.name]

    def _timed(self, name: str) -> list[SeenCell]:
        """Cells of a column of times, with the time of day of its other column."""
        their, clock = self._ranked.columns[name], self._ranked.clock.get(name)
        if clock is None:
            return list(self._theirs[their].cells)
        joined = []
        for sample in self._samples:
            day, time = sample.header.index(their), sample.header.index(clock)
            for row in sample.rows:
                text = f"{row.cells[day]} {row.cells[time]}".strip()
                joined += [SeenCell(row.line, text)] if row.cells[day] else []
        return joined

    def _fit_times(self, name: str) -> bool:
        """Whether an optional column is written as the times that must be read."""
        times, typed = self._keys.get("times", ""), self._samples[0].typed
        cells = self._theirs[self._ranked.columns[name]].cells
        if not times:
            decided = decided_times(
                cells, dates=False, zone_of_name="UTC", zone_matters=False, answers={}
            )
            return not decided.keys
        return typed or all(standard_time(cell.text, times=times) for cell in cells)
