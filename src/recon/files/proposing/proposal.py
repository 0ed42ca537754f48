"""A layout for files like some samples: its keys, what must be asked, what no column is."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.proposing.answers import set_answer
from recon.files.proposing.filled_columns import fill_required, place_account
from recon.files.proposing.layout_draft import LayoutDraft, draft_of
from recon.files.proposing.meant_words import decide_words
from recon.files.proposing.sample import sample_of
from recon.files.proposing.sides import decide_captures, decide_sign
from recon.files.proposing.total_line import decide_trailer
from recon.files.proposing.vocabulary import names_of_column
from recon.files.proposing.written_days import decide_times
from recon.files.proposing.written_money import decide_amounts, decide_turned
from recon.files.typing.table_schema import TableSchema
from recon.privacy.shown_text import scrubbed


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
    draft = draft_of(samples, schema=schema, answers=answers)
    place_account(draft, known=constants)
    fill_required(draft)
    decide_words(draft)
    decide_amounts(draft)
    decide_sign(draft)
    decide_turned(draft)
    decide_captures(draft)
    decide_times(draft)
    decide_trailer(draft)
    return _proposed(draft)


def _proposed(draft: LayoutDraft) -> Proposal:
    """The keys of a draft together, with what a person decided in its place."""
    ranked = draft.ranked
    columns = {ours: their for ours, their in ranked.columns.items() if ours != their}
    layout = draft.keys | {
        key: value
        for key, value in (
            ("columns", columns),
            ("debit", ranked.debit),
            ("clock", ranked.clock),
            ("constants", draft.constants),
        )
        if value
    }
    for key, text in draft.answers.items():
        if key.removeprefix("columns.") not in ranked.debit:  # a pair holds both of its columns
            set_answer(layout, key, text)
        draft.questions.pop(key, None)
    read = {*ranked.columns.values(), *ranked.debit.values(), *ranked.clock.values()}
    read |= {sign["column"] for sign in layout.get("sign", {}).values()}
    not_read = [scrubbed(name) for name in draft.samples[0].header if name not in read]
    return Proposal(layout, draft.questions, tuple(draft.blank), tuple(not_read))
