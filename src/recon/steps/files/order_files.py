"""Checking one order file as a night would read it, and writing its rejected rows for correction.

Both work without a database or a gateway; only outstanding rows are read from a database.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from recon.config.file_layouts import (
    INSTRUCTIONS_PREFIX,
    MENDED_PREFIX,
    STANDARD,
    FileLayout,
    layout_of,
)
from recon.config.settings import AccountSettings, FileSettings
from recon.files.kinds.instruction_file import INSTRUCTION_FILE, PAYOUT_COLUMNS, is_instruction_file
from recon.files.kinds.layouts import refuse_wrong_layouts
from recon.files.reader import (
    instruction_file,
    order_file,
    rows_to_mend,
    settlement_file,
)
from recon.files.typing.mending import mendable_text
from recon.files.typing.table_schema import ORDER_FILE
from recon.instructions.planning import OrderRow
from recon.instructions.sealing import Seal
from recon.model.errors import OutputError, UsageError
from recon.model.money import format_minor_units
from recon.model.terms import (
    BreakCode,
    EntryType,
    InstructionKind,
    OrderStatus,
    Quarantined,
    Reject,
    SourceFile,
)
from recon.privacy.own_files import for_owner
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person
from recon.store.database.bulk_rows import rows_of
from recon.store.database.history import Event, append
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run

WHY_CHARACTERS_MIN = 10
LINES_REPORTED = 3


def outstanding_rows(environment: Environment) -> list[tuple[Run, tuple[Quarantined, ...]]]:
    """Rejected rows that still block their orders, for each account that ever had a night."""
    with environment.store.reading() as connection:
        return [
            (run, order_rows.outstanding(connection, run))
            for run in runs.newest_of_accounts(connection)
        ]


def dismiss_row(reject_id: int, *, person: Person, why: str) -> Quarantined:
    """Decide that a rejected row blocks no order: the next night compares its order without it.

    Raises:
        UsageError: no such row is outstanding, or the reason is too short.
    """
    environment = person.environment
    if len(why.strip()) < WHY_CHARACTERS_MIN:
        msg = f"say why the row stands for no order, in {WHY_CHARACTERS_MIN} characters or more"
        raise UsageError(msg)
    rows = {row.reject_id: row for _, reject in outstanding_rows(environment) for row in reject}
    if reject_id not in rows:
        known = ", ".join(map(str, sorted(rows))) or "none"
        msg = f"no rejected row {reject_id} stands for an order now (standing: {known})"
        raise UsageError(msg)
    row, by = rows[reject_id], person.declared.name
    details = {"source": row.source, "line": row.line, "order_no": row.order_no}
    with environment.store.writing() as connection:
        at = environment.clock()
        order_rows.dismiss(connection, reject_id, by=by, why=why.strip(), at=at)
        event = Event(
            "rejected row", str(reject_id), "dismissed", {**details, "by": by, "why": why}
        )
        append(connection, [event], at=at)
    return row


def nameless_reported(rows: Iterable[Quarantined], *, breaks: pd.DataFrame) -> list[str]:
    """A sentence where rows without an order number may be the orders that seem to be missing."""
    nameless = [row for row in rows if not row.order_no]
    orphans = int(breaks["code"].eq(BreakCode.MISSING_IN_ORDERS.value).sum())
    if not nameless or not orphans:
        return []
    positions = [f"{row.source} line {row.line}" for row in nameless[:LINES_REPORTED]]
    positions += ["…"] if len(nameless) > LINES_REPORTED else []
    sentence = (
        f"{len(nameless):,} order rows could not be read and name no order "
        f"({', '.join(positions)}): up to {min(len(nameless), orphans):,} of the {orphans:,} "
        "payments without an order may be theirs. Look there before anything is refunded."
    )
    return [sentence]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file as a night would read it."""

    source: SourceFile
    layout: str
    """Pattern of the layout that was used; "" for the standard columns."""
    sums: Mapping[str, str]
    """Currency -> sum of the accepted rows, major units; of settled lines the net."""
    actions: Mapping[str, int]
    """Kind of instruction -> rows."""
    rejects: tuple[Reject, ...]
    ignored_columns: tuple[str, ...]
    refused_actions: tuple[tuple[int, str], ...] = ()
    """Line, and why the instruction of an accepted row is not carried out automatically."""


def check_file(path: Path, *, account: AccountSettings, settings: FileSettings) -> CheckedFile:
    """Read a file exactly as a night would, and store nothing.

    Raises:
        ConfigurationError: a layout names a column that does not exist.
        SourceMissingError: there is no such file.
        SourceUnreadableError: a night would refuse it whole.
    """
    layout = _layout(path, account)
    pattern = "" if layout is STANDARD else layout.files
    sums, actions = Counter[str](), Counter[str]()
    if is_instruction_file(path):
        instructions = instruction_file(
            path,
            rules=settings.rules,
            seal=Seal(settings.seal_key) if settings.seal_key else None,
            review_flags=settings.gateway.review_flags,
            interface=settings.interface,
            layout=layout,
        )
        return CheckedFile(
            source=instructions.source_file,
            layout=pattern,
            sums=_sums((row["currency"], row["amount"]) for row in instructions.actions),
            actions=Counter(row["action"] for row in instructions.actions),
            rejects=instructions.rejects,
            ignored_columns=instructions.ignored_columns,
        )
    refused: list[tuple[int, str]] = []
    with order_file(path, rules=settings.rules, layout=layout, keep=False) as read:
        for orders, requested in read.parts():
            for currency, amounts in orders.groupby("currency")["amount"]:
                # Python's integers, since a sum may pass what 64 bits hold.
                sums[str(currency)] += sum(amounts.tolist())
            actions.update(requested["action"])
            refused += refused_actions(requested)
    return CheckedFile(
        source=read.facts.source_file,
        layout=pattern,
        sums=_sums(sums.items()),
        actions=actions,
        rejects=read.facts.rejects,
        ignored_columns=read.facts.ignored_columns,
        refused_actions=tuple(refused),
    )


def refused_actions(actions: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Lines of actions that contradict their own rows, each with a sentence stating both facts.

    What earlier files have instructed is not counted here; planning counts it.
    """
    for row in rows_of(actions):
        own = OrderRow(
            OrderStatus(row["status"]),
            row["currency"],
            row["amount"],
            row["expected_captured_amount"],
            row["refund_amount"],
        )
        kind = InstructionKind(row["action"])
        amount = row["action_amount"]
        if against := own.against(kind, amount=own.requested(kind) if amount is None else amount):
            yield row["line"], f"the instruction for order {row['order_no']} {against}"


def check_settlement_file(
    path: Path, *, account: AccountSettings, settings: FileSettings
) -> CheckedFile:
    """Like `check_file`, for a settlement file; its sums are those of the lines' net amounts.

    Raises:
        ConfigurationError: a layout names a column that does not exist.
        SourceMissingError: there is no such file.
        SourceUnreadableError: a night would refuse it whole.
    """
    layouts = account.settlement.layouts if account.settlement else ()
    refuse_wrong_layouts(layouts, of="settlement")
    layout = layout_of(path.name, layouts=layouts)
    frame, read = settlement_file(path, rules=settings.rules, layout=layout)
    lines = frame[frame["entry_type"].ne(EntryType.PAYOUT.value)]
    return CheckedFile(
        source=read.source_file,
        layout="" if layout is STANDARD else layout.files,
        sums=_sums(zip(lines["currency"], lines["net"], strict=True)),
        actions={},
        rejects=read.rejects,
        ignored_columns=read.ignored_columns,
    )


def write_mendable(
    path: Path, *, out: Path | None, account: AccountSettings, settings: FileSettings
) -> tuple[Path, int] | None:
    """Write the rejected rows of a file for correction; returns path and count, or None.

    Raises:
        OutputError: the file exists already or cannot be written.
        SourceUnreadableError: the file cannot be read row by row, or has no rejected row and a
            night would refuse it whole for something else.
    """
    layout = _layout(path, account).model_copy(
        update={"whole_file": False, "control_file": "", "done_file": ""}
    )
    if is_instruction_file(path):
        schema, also = INSTRUCTION_FILE, PAYOUT_COLUMNS
        flags = {"review_flags": settings.gateway.review_flags, "interface": settings.interface}
        rows = rows_to_mend(path, instructs=True, rules=settings.rules, layout=layout, **flags)
    else:
        schema, also = ORDER_FILE, ()
        rows = rows_to_mend(path, rules=settings.rules, layout=layout)
    if not rows:
        check_file(path, account=account, settings=settings)
        return None
    target = out or Path(mended_name(path.name))
    _write(target, mendable_text(rows, schema=schema, also=also))
    return target, len(rows)


def mended_name(name: str) -> str:
    """What the mended rows of a file are called; the prefix makes a night read them as ours.

    >>> mended_name("shop.xlsx"), mended_name("instructions-20.csv")
    ('mended-shop.csv', 'instructions-mended-20.csv')
    """
    stem = name.rpartition(".")[0].removeprefix(INSTRUCTIONS_PREFIX).removeprefix(MENDED_PREFIX)
    prefix = INSTRUCTIONS_PREFIX if name.lower().startswith(INSTRUCTIONS_PREFIX) else ""
    return f"{prefix}{MENDED_PREFIX}{stem}.csv"


def _layout(path: Path, account: AccountSettings) -> FileLayout:
    refuse_wrong_layouts(account.layouts)
    return layout_of(path.name, layouts=account.layouts)


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, str]:
    sums: Counter[str] = Counter()
    for currency, amount in pairs:
        if currency:
            sums[currency] += int(amount)
    return {
        code: format_minor_units(sums[code], currency=code, grouped=True) for code in sorted(sums)
    }


def _write(target: Path, text: str) -> None:
    try:
        with open(target, "x", encoding="utf-8", newline="", opener=for_owner) as file:
            file.write(text)
    except FileExistsError:
        msg = f"{target} exists already; name another with --out"
        raise OutputError(msg) from None
    except OSError as error:
        msg = f"{target} cannot be written: {error.strerror}"
        raise OutputError(msg) from error
