"""Kind and layout of sample files, found by their contents and checked by the night's readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.kinds.layouts import refuse_wrong_layout
from recon.files.proposing.columns import layout_of
from recon.files.proposing.proposal import Proposal, layout_text, pattern_of
from recon.files.reader import (
    bank_file,
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
from recon.matching.frames.bank_sources import BankStatement
from recon.model.errors import SourceUnreadableError
from recon.model.terms import Reject, SourceFile

_REVIEW_FLAGS = frozenset({"1"})


class Checked(NamedTuple):
    """What a night would read of a sample."""

    source: SourceFile | None
    """None: it refuses the whole file."""
    rejects: tuple[Reject, ...]
    refusal: str = ""
    rows: pd.DataFrame | None = None
    """The accepted rows; None for instructions."""
    statements: tuple[BankStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposed layout as text, and how the samples are read by it."""

    text: str
    """TOML; "" for files in the standard format."""
    proposal: Proposal
    layout: FileLayout | None
    """None while questions are open."""
    checked: tuple[Checked, ...]
    """One per sample; empty while questions are open."""

    @property
    def usable(self) -> bool:
        """Whether no question is open and a night would accept every row of every sample."""
        taken = all(file.source is not None and not file.rejects for file in self.checked)
        return bool(self.checked) and taken


class _Kind(NamedTuple):
    schema: TableSchema
    table: str
    """Header of its table in merchants.toml, `{}` for the account."""
    named: bool = True
    """Whether the layout states which file names it covers."""


_LAYOUTS = '[[accounts."{}".layouts]]'
KINDS: Mapping[str, _Kind] = {
    "orders": _Kind(ORDER_FILE, _LAYOUTS),
    "gateway": _Kind(GATEWAY, '[[accounts."{}".gateway.layouts]]'),
    "ledger": _Kind(LEDGER, '[accounts."{}".ledger.layout]', named=False),
    "settlement": _Kind(SETTLEMENT_FILE, '[[accounts."{}".settlement.layouts]]'),
    "bank": _Kind(BANK, '[[bank."NAME".layouts]]'),
    "instructions": _Kind(INSTRUCTION_FILE, _LAYOUTS),
}
"""Kind of file -> what a night reads of it. Instructions are recognised by their name alone."""


class Kinds(NamedTuple):
    """The kinds that files may be of, judging by their contents."""

    fitting: tuple[str, ...]
    """Several where equally few questions and unread columns are left for each."""
    why: str
    """Reason why no kind fits, where none does."""


def kinds_of(paths: Sequence[Path], *, account: tuple[str, str]) -> Kinds:
    """The kind of files like these: the one with the fewest questions and unread columns."""
    left: dict[str, int] = {}
    why = "most of what a file of orders, gateway, ledger, settlement or bank says is not in it"
    for kind in KINDS.keys() - {"instructions"}:
        try:
            proposal = _proposal(paths, kind=kind, account=account, answers={})
        except SourceUnreadableError as error:
            why = str(error)
            continue
        if len(proposal.questions) * 2 <= len(KINDS[kind].schema.required):
            left[kind] = len(proposal.questions) + len(proposal.not_read)
    least = min(left.values(), default=-1)
    return Kinds(tuple(kind for kind in KINDS if left.get(kind) == least), why)


def _proposal(
    paths: Sequence[Path], *, kind: str, account: tuple[str, str], answers: Mapping[str, str]
) -> Proposal:
    known = zip(("merchant_id", "account_id"), account, strict=True)
    constants = {name: text for name, text in known if text}
    schema = KINDS[kind].schema
    return layout_proposal(paths, schema=schema, constants=constants, answers=answers)


def propose_layout(
    paths: Sequence[Path],
    *,
    kind: str,
    rules: Rules,
    account: tuple[str, str] = ("", ""),
    answers: Mapping[str, str],
) -> Proposed:
    """Propose a layout for files like these, and read them by it where no question is open.

    Args:
        paths: Samples of one layout.
        kind: One of KINDS.
        rules: How codes are read.
        account: Merchant and account, "" where they are not known.
        answers: What a person decided: key of the layout -> text.

    Raises:
        SourceMissingError: one of them does not exist.
        SourceUnreadableError: one of them is no table with a header.
        UsageError: an answer is not a possible value of its key.
    """
    # The only answer that is applied to cells before the whole layout is checked.
    layout_of({key: text for key, text in answers.items() if key == "times"})
    how = KINDS[kind]
    proposal = _proposal(paths, kind=kind, account=account, answers=answers)
    if proposal.questions:
        return Proposed("", proposal, None, ())
    files = pattern_of([path.name for path in paths]) if how.named else ""
    text = layout_text(proposal, table=how.table.format("/".join(account)), files=files)
    layout = layout_of(proposal.layout)
    refuse_wrong_layout(layout, schemas=(how.schema,), where="the proposal: ")
    found = tuple(checked(path, layout, rules, schema=how.schema) for path in paths)
    if how.schema is ORDER_FILE and "newest_file_counts" not in answers:
        proposal.questions.update(_ask_of_exports(found))
        if proposal.questions:
            return Proposed("", proposal, None, ())
    return Proposed("" if layout == STANDARD else text, proposal, layout, found)


def _ask_of_exports(files: Sequence[Checked]) -> dict[str, str]:
    """A question where files disagree on an order and none of their rows has an `updated_at`."""
    order, content = ["merchant_id", "account_id", "order_no"], ["currency", "amount", "status"]
    frames = [each.rows for each in files if each.rows is not None]
    if not frames[1:]:
        return {}
    rows = pd.concat(frames)
    rows = rows[rows["updated_at"].isna()][[*order, *content, "source", "line"]]
    stated = rows.drop_duplicates([*order, *content])
    again = stated[stated.duplicated(order, keep=False)].sort_values([*order, "source", "line"])
    for _, one in again.groupby(order, sort=False, observed=True):
        first, last = one.iloc[0], one.iloc[-1]
        if first["source"] != last["source"]:
            where = " and ".join(f"{row['source']} line {row['line']}" for row in (first, last))
            why = "say unlike things of one order, and no column says since when"
            ask = "true: what the newer file says counts; false: both stand, which is a break"
            return {"newest_file_counts": f"{where} {why}. {ask}"}
    return {}


def checked(path: Path, layout: FileLayout, rules: Rules, *, schema: TableSchema) -> Checked:
    """What a night would read of a file, or the reason why it would refuse it."""
    try:
        if schema is BANK:
            with bank_file(path, rules=rules, layout=layout) as bank:
                facts = bank.facts
                return Checked(facts.source_file, (), "", bank.source.entries, facts.statements)
        if schema is INSTRUCTION_FILE:
            how: dict[str, Any] = {"rules": rules, "review_flags": _REVIEW_FLAGS}
            file = instruction_file(path, seal=None, layout=layout, **how)
            return Checked(file.source_file, file.rejects)
        frame, read = plain_table(path, schema=schema, rules=rules, layout=layout)
        return Checked(read.source_file, read.rejects, "", frame)
    except SourceUnreadableError as error:
        return Checked(None, (), str(error))
