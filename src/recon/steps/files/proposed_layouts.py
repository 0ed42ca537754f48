"""A layout proposed for samples of a file, and what the night's own readers make of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.kinds.layouts import refuse_wrong_layout
from recon.files.proposing.proposal import Proposal, layout_text, pattern_of
from recon.files.proposing.ranked_columns import layout_of
from recon.files.reader import (
    bank_facts,
    instruction_file,
    layout_proposal,
    plain_table,
)
from recon.files.typing.table_schema import (
    BANK,
    GATEWAY,
    LEDGER,
    ORDER_FILE,
    SETTLEMENT_FILE,
    TableSchema,
)
from recon.model.errors import SourceUnreadableError
from recon.model.words import Reject, SourceFile

_REVIEW_FLAGS = frozenset({"1"})


class Checked(NamedTuple):
    """What a night would read of a sample."""

    source: SourceFile | None
    """None: it refuses the whole file."""
    rejects: tuple[Reject, ...]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A layout as text, and whether it holds."""

    text: str
    """TOML."""
    proposal: Proposal
    layout: FileLayout | None
    """None while something is asked."""
    checked: tuple[Checked, ...]
    """One a sample; none while something is asked."""

    @property
    def usable(self) -> bool:
        """Nothing is asked, and a night would take every row of every sample."""
        taken = all(file.source is not None and not file.rejects for file in self.checked)
        return bool(self.checked) and taken


class _Kind(NamedTuple):
    schema: TableSchema
    table: str
    """Header of its table in merchants.toml, `{}` for the account."""
    named: bool = True
    """The layout says which names are of it."""


_LAYOUTS = '[[accounts."{}".layouts]]'
KINDS: Mapping[str, _Kind] = {
    "orders": _Kind(ORDER_FILE, _LAYOUTS),
    "instructions": _Kind(INSTRUCTION_FILE, _LAYOUTS),
    "settlement": _Kind(SETTLEMENT_FILE, '[[accounts."{}".settlement.layouts]]'),
    "gateway": _Kind(GATEWAY, '[[accounts."{}".gateway.layouts]]'),
    "ledger": _Kind(LEDGER, '[accounts."{}".ledger.layout]', named=False),
    "bank": _Kind(BANK, '[[bank."NAME".layouts]]'),
}
"""Kind of file -> what a night reads of it."""


def propose_layout(
    paths: Sequence[Path],
    *,
    kind: str,
    rules: Rules,
    account: tuple[str, str] = ("", ""),
    answers: Mapping[str, str],
) -> Proposed:
    """A layout for files like these, read once by it where nothing is asked.

    Args:
        paths: Samples of one layout.
        kind: One of KINDS.
        rules: How codes are read.
        account: Merchant and account, "" where they are not known.
        answers: What a person decided: key of the layout -> text.

    Raises:
        SourceMissingError: one of them does not exist.
        SourceUnreadableError: one of them is no table with a header.
        UsageError: an answer is none that the key can have.
    """
    # The one answer that is tried on cells before the whole layout is looked at.
    layout_of({key: text for key, text in answers.items() if key == "times"})
    how = KINDS[kind]
    known = zip(("merchant_id", "account_id"), account, strict=True)
    proposal = layout_proposal(
        paths,
        schema=how.schema,
        constants={name: text for name, text in known if text},
        answers=answers,
    )
    files = pattern_of([path.name for path in paths]) if how.named else ""
    table = how.table.format("/".join(text or "?" for text in account))
    text = layout_text(proposal, table=table, files=files)
    if proposal.questions:
        return Proposed(text, proposal, None, ())
    layout = layout_of(proposal.layout)
    refuse_wrong_layout(layout, schemas=(how.schema,), where="the proposal: ")
    found = tuple(checked(path, layout, rules, schema=how.schema) for path in paths)
    return Proposed(text, proposal, layout, found)


def checked(path: Path, layout: FileLayout, rules: Rules, *, schema: TableSchema) -> Checked:
    """What a night would read of a file; nothing, with the reason, where it would refuse it."""
    try:
        if schema is BANK:
            return Checked(bank_facts(path, rules=rules, layout=layout).source_file, ())
        if schema is INSTRUCTION_FILE:
            how: dict[str, Any] = {"rules": rules, "review_flags": _REVIEW_FLAGS}
            file = instruction_file(path, seal=None, layout=layout, **how).file
            return Checked(file.source_file, file.rejects)
        facts = plain_table(path, schema=schema, rules=rules, layout=layout).facts
        return Checked(facts.source_file, facts.rejects)
    except SourceUnreadableError as error:
        return Checked(None, (), str(error))
