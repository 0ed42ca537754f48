"""Rows of a sample that are no records: subtotals, headings, balances, item lines under an order.

They are taken out before columns are ranked, for one of them leaves a cell blank that every record
fills. A term is believed where that holds of each of its rows; item lines where two of them show
it. What else could be one is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recon.files.proposing.sample import Row, Sample
from recon.files.proposing.vocabulary import NAMES, names_of_column, plain_words
from recon.files.typing.table_schema import TableSchema
from recon.model.words import SourceKind
from recon.privacy.shown_text import scrubbed

_TERMS = NAMES["no_records"] | NAMES["totals"]
_BETWEEN_WORDS = " + "
"""Between the words of an answer."""
NONE = "none"
"""The answer that rows are records after all."""
_PROVEN_BY_LINES = 2
_RECORDS_MIN = 2
_CELLS_MIN = 3
"""Columns of a file in which a row of one cell is a heading."""
_TOLD_BY_BLANKS = ("amount", "status", "ordered_at", "currency", "order_no")
"""Our columns of which one that is blank tells an item line, the likeliest first."""


class _Term(NamedTuple):
    """A rule that a cell suggests."""

    column: str
    word: str


def without_other_rows(
    sample: Sample, *, schema: TableSchema, answers: Mapping[str, str]
) -> Sample:
    """The records of a sample, with the keys `skip` and `lines` and what is asked of them."""
    given = _answered(answers)
    terms = [_term_of(row.cells, given=given) for row in sample.rows]
    heads = [
        term is None
        and len(sample.header) >= _CELLS_MIN
        and sum(map(bool, row.cells.values())) == 1
        for row, term in zip(sample.rows, terms, strict=True)
    ]
    plain = [
        at
        for at, (term, head) in enumerate(zip(terms, heads, strict=True))
        if not term and not head
    ]
    keys: dict[str, Any] = {}
    questions: dict[str, str] = {}
    lines = _lines_of([sample.rows[at] for at in plain], schema=schema, answers=answers)
    below = {plain[at] for at in lines.rows}
    keys |= lines.keys
    questions |= lines.questions
    records = [sample.rows[at] for at in plain if at not in below]
    full = [name for name in sample.header if all(row.cells[name] for row in records)]
    rules: dict[_Term, bool] = {_Term(column, w): True for column, ws in given.items() for w in ws}
    first: dict[_Term, int] = {}
    for row, term in zip(sample.rows, terms, strict=True):
        if term is not None:
            proven = len(records) >= _RECORDS_MIN and not all(row.cells[name] for name in full)
            rules[term] = rules.get(term, True) and (proven or term.column in given)
            first.setdefault(term, row.line)
    for line, cells in sample.short:  # no record has too few cells
        named = dict(zip(sample.header, cells, strict=False))
        if (term := _term_of(named, given=given)) is not None:
            rules.setdefault(term, True)
            first.setdefault(term, line)
        elif sum(map(bool, cells)) == 1 and len(sample.header) >= _CELLS_MIN:
            _ask_of_heading(questions, named, line=line, given=given)
    for row, head in zip(sample.rows, heads, strict=True):
        if head:
            _ask_of_heading(questions, row.cells, line=row.line, given=given)
    words: dict[str, list[str]] = {}
    for term, proven in rules.items():
        if proven:
            words.setdefault(term.column, []).append(term.word)
        elif scrubbed(term.word) == term.word:
            ask = f"line {first[term]} has {term.word!r} and reads like a record: is it none?"
            questions[f"skip.{term.column}"] = f"{ask} ({term.word}, or {NONE})"
    if words:
        keys["skip"] = [{"column": name, "words": each} for name, each in words.items()]
    out = {at for at, term in enumerate(terms) if term is not None and rules[term]}
    out |= below | {at for at, head in enumerate(heads) if head}
    kept = [at for at in range(len(sample.rows)) if at not in out]
    return sample._replace(
        rows=tuple(sample.rows[at] for at in kept),
        keys=sample.keys | keys,
        questions={**sample.questions, **questions},
        first_rows=sum(at < sample.first_rows for at in kept),
    )


def _answered(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Column -> the words that tell its rows, as a person decided; none where there are none."""
    given = {}
    for key, text in answers.items():
        if key.startswith("skip."):
            words = [] if text == NONE else text.split(_BETWEEN_WORDS)
            given[key.removeprefix("skip.")] = [word.strip() for word in words if word.strip()]
    return given


def _term_of(cells: Mapping[str, str], *, given: Mapping[str, list[str]]) -> _Term | None:
    """The first cell that says that its row is no record, as a rule."""
    for column, words in given.items():
        cell = cells.get(column, "")
        for word in words:
            if cell == word or (word[-1:] == "*" and cell.startswith(word[:-1]) and cell):
                return _Term(column, word)
    for column, cell in cells.items():
        if column not in given and (word := _word_of(cell)):
            return _Term(column, word)
    return None


def _word_of(cell: str) -> str:
    """The term at the beginning of a cell, with `*` where more stands behind it."""
    parts = cell.split(" ")
    for end in range(len(parts), 0, -1):
        begin = " ".join(parts[:end])
        if plain_words(begin) in _TERMS:
            return begin if end == len(parts) else f"{begin} *"
    return ""


def _ask_of_heading(
    questions: dict[str, str],
    cells: Mapping[str, str],
    *,
    line: int,
    given: Mapping[str, list[str]],
) -> None:
    column, cell = next((column, cell) for column, cell in cells.items() if cell)
    if column not in given:
        begin = cell.split(" ")[0]
        example = f"{begin} *" if begin != cell else cell
        ask = f"line {line} has only {scrubbed(cell)!r}: which words tell such rows?"
        questions.setdefault(f"skip.{column}", f"{ask} ({scrubbed(example)}, or {NONE})")


class _Lines(NamedTuple):
    """Item lines among some rows."""

    rows: frozenset[int] = frozenset()
    keys: Mapping[str, Any] = {}
    questions: Mapping[str, str] = {}


def _lines_of(rows: Sequence[Row], *, schema: TableSchema, answers: Mapping[str, str]) -> _Lines:
    """The key `lines`: of order files, where each line stands under the order that it names."""
    column = answers.get("lines.column", "")
    if schema.kind is not SourceKind.ORDERS or not rows or column == NONE:
        return _Lines()
    ours = {
        name: answers.get(f"columns.{name}", "") or _named(rows[0], names_of_column(name))
        for name in _TOLD_BY_BLANKS
    }
    if not (order := ours["order_no"]):
        return _Lines()
    if column:
        found = _below(rows, column, first=answers.get("lines.first", ""), order=order)
        return _Lines(found or frozenset())  # the answers are the key
    ways = list(_ways(rows, ours=ours, order=order))
    if not ways:
        return _Lines()
    key, found, proven = max(ways, key=lambda way: len(way[1]))
    # What would leave some of these lines as records is no second reading of the sample.
    if proven and len(found) >= _PROVEN_BY_LINES and all(each <= found for _, each, _ in ways):
        return _Lines(found, {"lines": key})
    which = ", ".join(f"{way['column']!r}" for way, _, _ in ways)
    line = rows[min(found)].line
    ask = f"line {line} may be an item of the order above it, told by {which}: by which column?"
    first = "; with lines.first=1" if "first" in key else ""
    return _Lines(found, {}, {"lines.column": f"{ask} ({key['column']}{first}, or {NONE})"})


def _named(row: Row, names: frozenset[str]) -> str:
    """The only column of one of these names."""
    named = [name for name in row.cells if plain_words(name) in names]
    return named[0] if len(named) == 1 else ""


def _ways(
    rows: Sequence[Row], *, ours: Mapping[str, str], order: str
) -> Iterator[tuple[dict[str, str], frozenset[int], bool]]:
    """Keys by which lines can be told, the rows that they tell, and whether these prove it."""
    others = [name for name in ours.values() if name]
    if numbered := _named(rows[0], NAMES["lines"]):
        found = _below(rows, numbered, first="1", order=order)
        if found:
            firsts = [row for at, row in enumerate(rows) if at not in found]
            bare = any(
                all(row.cells[name] for row in firsts)
                and not any(rows[at].cells[name] for at in found)
                for name in others
            )
            amount = ours["amount"]
            again = amount and all(
                rows[at].cells[name] == rows[_first(rows, at, found)].cells[name]
                for at in found
                for name in others
            )
            yield {"column": numbered, "first": "1"}, found, bool(bare or again)
    for name in others:
        found = _below(rows, name, first="", order=order)
        also = [each for each in others if each != name]
        if found and any(not any(rows[at].cells[each] for at in found) for each in also):
            yield {"column": name}, found, True
        elif found and name != order and all(rows[at].cells[order] for at in found):
            yield {"column": name}, found, False


def _first(rows: Sequence[Row], at: int, found: frozenset[int]) -> int:
    while at in found:
        at -= 1
    return at if rows else 0


def _below(rows: Sequence[Row], column: str, *, first: str, order: str) -> frozenset[int] | None:
    """Rows that the key would tell, where each stands under a record of its order; else None."""
    found = set()
    number = ""
    for at, row in enumerate(rows):
        cell = row.cells.get(column, "")
        if not (cell not in {"", first} if first else not cell):
            number = row.cells[order]
        elif not number or row.cells[order] not in {"", number}:
            return None
        else:
            found.add(at)
    return frozenset(found)
