"""On which side books have their captures, by the entry types of a sample."""

from collections.abc import Iterator, Mapping, Sequence

from recon.files.proposing.readings_of_cells import Answers, Decided
from recon.files.proposing.sample import Sample
from recon.files.typing.table_schema import DIRECTIONS

_BEFORE = "words.entry_type."


def entry_types_of(answers: Answers) -> dict[str, str]:
    """Their word -> our entry type, where a person decided."""
    given = answers.items()
    return {key.removeprefix(_BEFORE): ours for key, ours in given if key.startswith(_BEFORE)}


def decided_captures(
    samples: Sequence[Sample], *, columns: tuple[str, str, str], words: Mapping[str, str]
) -> Decided:
    """The key `captures` of books with signs or two sides; a refund with a minus has it in plus.

    Args:
        samples: Files of books.
        columns: Theirs of the amount, of what is subtracted from it ("" for none), and of the
            entry type ("" where none is known).
        words: Their entry types -> ours, where they differ.
    """
    lines: dict[str, int] = {}
    minus = False
    for line, sign, way in _signs(samples, columns=columns, words=words):
        minus = minus or sign < 0
        lines.setdefault("plus" if way == sign else "minus", line)
    if not (columns[1] or minus):
        return Decided({}, {})
    if len(lines) == 1:
        return Decided({"captures": next(iter(lines))}, {})
    rows = " and ".join(f"line {line} says {side}" for side, line in lines.items())
    why = f": {rows}" if rows else "? No entry type says it"
    return Decided({}, {"captures": f"are captures plus or minus{why}"})


def _signs(
    samples: Sequence[Sample], *, columns: tuple[str, str, str], words: Mapping[str, str]
) -> Iterator[tuple[int, int, int]]:
    """Line, sign, and direction of each row whose entry type has one."""
    amount, debit, entry_type = columns
    for sample in samples:
        if entry_type not in sample.header:
            continue
        places = {name: sample.header.index(name) for name in columns if name}
        for row in sample.rows:
            word = row.cells[places[entry_type]]
            way = DIRECTIONS.get(words.get(word, word), 0)
            sign = _sign(row.cells[places[amount]])
            if debit and not sign:
                sign = -_sign(row.cells[places[debit]])
            if way and sign:
                yield row.line, sign, way


def _sign(text: str) -> int:
    if not any(digit in text for digit in "123456789"):
        return 0
    return -1 if "-" in text or "(" in text else 1
