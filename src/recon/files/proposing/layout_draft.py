"""A layout while its keys are decided: what its samples say, and what was decided of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recon.files.proposing.ranked_columns import Ranked, TheirColumn, ranked_columns, their_columns
from recon.files.proposing.readings_of_cells import Decided, SeenCell
from recon.files.proposing.sample import Sample, joined_keys
from recon.files.typing.table_schema import Cell, TableColumn, TableSchema
from recon.model.words import SourceKind

_SIGNED = frozenset({SourceKind.SETTLEMENT, SourceKind.BANK, SourceKind.LEDGER})


@dataclass(frozen=True, slots=True)
class LayoutDraft:
    """One layout; each step adds to it by what was decided before."""

    samples: Sequence[Sample]
    schema: TableSchema
    answers: Mapping[str, str]
    """What a person decided: key of the layout -> text."""
    theirs: Mapping[str, TheirColumn]
    ranked: Ranked
    keys: dict[str, Any]
    questions: dict[str, str]
    constants: dict[str, str] = field(default_factory=dict)
    blank: list[str] = field(default_factory=list)
    """Our columns that no column of the samples is; they are blank in every row."""

    def take(self, decided: Decided) -> None:
        """Keep what was decided and what is to be asked."""
        self.keys.update(decided.keys)
        self.questions.update(decided.questions)

    def cells_of(self, ours: str) -> tuple[SeenCell, ...]:
        """The filled cells of the column that is ours."""
        their = self.theirs.get(self.ranked.columns.get(ours, ""))
        return () if their is None else their.cells

    def amount_columns(self) -> list[TableColumn]:
        """Our columns of amounts that a column of the samples is."""
        known = self.ranked.columns
        return [c for c in self.schema.columns if c.cell is Cell.AMOUNT and c.name in known]

    def constant(self, ours: str) -> str:
        """What every row has there, as far as it is known; or ""."""
        return self.constants.get(ours, self.answers.get(f"constants.{ours}", ""))


def draft_of(
    samples: Sequence[Sample], *, schema: TableSchema, answers: Mapping[str, str]
) -> LayoutDraft:
    """A draft with the keys that the bytes decide, and the columns that names and cells tell.

    Raises:
        SourceUnreadableError: the samples differ in their header.
        UsageError: an answer names a column that they do not have.
    """
    keys = joined_keys(samples)
    asked = {key: ask for sample in samples for key, ask in sample.questions.items()}
    theirs = their_columns(samples)
    signed = schema.kind in _SIGNED
    ranked = ranked_columns(theirs, schema=schema, answers=answers, signed=signed)
    return LayoutDraft(samples, schema, answers, theirs, ranked, keys, asked | ranked.questions)
