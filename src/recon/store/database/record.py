"""Rows bound to the history: written together with their events, and compared with them later.

An event holds the cells that its change wrote; a row must equal the cells of all its events, later
ones replacing earlier ones. A change of a row that bypasses this code leaves the events as they
were, and these cannot be changed without breaking the chain.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import groupby, islice
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    Table,
    and_,
    cast,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from recon.instructions.approval import sums_text
from recon.instructions.instruction import FOLLOWS, OF_PAYOUTS, STORED_AS_DIGEST, text_digest
from recon.model.terms import InstructionKind
from recon.store.database.history import LINKS_AT_ONCE, Event, append, instant_text
from recon.store.schema import (
    break_answer,
    contradiction,
    history,
    instruction,
    result_summary,
    run,
    sending_switch,
)
from recon.store.schema.columns import IsoDate

ROW = "row"
"""Key in the event's data under which the bound cells are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """How the rows of one table are bound to the history."""

    table: Table
    entity: str
    """Entity of its events."""
    key: str
    """Column with the id of the entity."""
    within: str = ""
    """Column that distinguishes several rows of one entity."""
    under: str = ROW
    """Key in the event's data under which its cells are stored."""
    free: Mapping[str, str] = field(default_factory=dict)
    """Columns that no event binds -> why this cannot move money."""
    only_where: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Columns bound only where another column has a certain value."""
    as_digest: frozenset[str] = frozenset()
    """Text columns of which the history, which cannot be erased, holds only a digest."""
    state: str = ""
    """Column with the name of the newest event."""
    erased: frozenset[str] = frozenset()
    """Columns that are emptied in a final state."""
    ended: frozenset[str] = frozenset()
    """The final states."""
    columns: tuple[str, ...] = field(init=False)
    """Compared columns: all but the key and the free ones."""

    def __post_init__(self) -> None:
        """Set `columns`."""
        names = (column.name for column in self.table.columns)
        left = tuple(name for name in names if name != self.key and name not in self.free)
        object.__setattr__(self, "columns", left)


_ORIGIN = "where it came from and what the gateway said: for people, the state is bound"
_WEAK = "WEAK: of sums a day by rule, and of evidence about doubts; the terms sent are bound"
INSTRUCTION = Attested(
    table=instruction,
    entity="instruction",
    key="instruction_id",
    only_where={OF_PAYOUTS: ("kind", InstructionKind.PAYOUT)},
    as_digest=STORED_AS_DIGEST,
    state="state",
    erased=frozenset({"sealed"}),
    ended=frozenset[str](state for state, following in FOLLOWS.items() if not following),
    free={
        "natural_key": "WEAK: the same intention is still identified by order and amount",
        "hold": "every reason to wait is read from the audit log before an approval",
        **dict.fromkeys(("file_id", "line", "run_id", "planned_at"), _ORIGIN),
        **dict.fromkeys(("outcome", "code", "message", "outcome_at"), _ORIGIN),
        **dict.fromkeys(("approved_by", "approved_at", "sent_at", "attempts", "batch_id"), _WEAK),
        **dict.fromkeys(("refund_reference_id", "baseline_status"), _WEAK),
    },
)
SWITCH = Attested(table=sending_switch, entity="sending", key="turn")
CASE = Attested(table=contradiction, entity="case", key="instruction_id")
RUN = Attested(
    table=run,
    entity="run",
    key="run_id",
    free={
        **dict.fromkeys(("owner", "owner_process"), "who holds the night: for people"),
        "step": "where a night goes on: a step that is left out leaves totals that do not tie",
        "workbook": "where it lies, which may move: its hash is bound",
        "history_head": "it is compared with the audit log itself",
    },
)
SUMMARY = Attested(
    table=result_summary,
    entity="run",
    key="run_id",
    under="summary",
    as_digest=frozenset({"document"}),
)
ANSWER = Attested(
    table=break_answer,
    entity="break",
    key="break_id",
    within="version",
    free={"answer_id": "a number that says only which row came first"},
)
BEFORE_MONEY = (SWITCH, CASE, RUN)
"""Compared completely before money moves; of instructions only the state and sendable rows."""
ATTESTED_TABLES = (INSTRUCTION, *BEFORE_MONEY, SUMMARY, ANSWER)


Cells = Mapping[str, Any]
PROBLEMS_MAX = 20
"""Maximum number of problems reported per table; one is enough to stop."""
DISPLAYED_CHARACTERS = 40
"""Maximum length of a value in a message; longer ones are only said to differ."""
PAST = "it was changed past the journal"


def record(
    connection: Connection,
    attested: Attested,
    values: Cells,
    *,
    event: str,
    at: datetime,
    of: Cells | None = None,
    details: Cells | None = None,
) -> bool:
    """Write one row and the event that binds it, in the caller's transaction.

    Args:
        connection: Of the transaction; it has both or neither.
        attested: The table.
        values: The new cells.
        event: What happened.
        at: When.
        of: Columns that identify the row to change, among them the entity's id; None adds a
            row.
        details: What the event records besides the cells.

    Returns:
        Whether the row existed; otherwise nothing is written.
    """
    written = {**(of or {}), **values}
    if of is None:
        done = connection.execute(insert(attested.table).values(**values))
        if attested.within and attested.within not in values:
            (written[attested.within],) = done.inserted_primary_key or (None,)
    else:
        same = (attested.table.c[name] == value for name, value in of.items())
        if not connection.execute(update(attested.table).where(*same).values(**values)).rowcount:
            return False
    append(connection, [event_of(attested, written, event=event, details=details)], at=at)
    return True


def event_of(
    attested: Attested, values: Cells, *, event: str, details: Cells | None = None
) -> Event:
    """Return the event of a written row, for callers that append many at once."""
    data = {**(details or {}), attested.under: cells_of(attested, values)}
    return Event(attested.entity, str(values[attested.key]), event, data)


def cells_of(attested: Attested, values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the bound cells among some values, in the form stored in events; blanks are None."""
    return {
        name: _cell(values[name], is_digest=name in attested.as_digest)
        for name in attested.columns
        if name in values and name != attested.state and _is_attested(attested, name, values=values)
    }


def folded(written: Iterable[Cells]) -> dict[str, Any]:
    """Return a row's expected cells after its events, oldest first, without blank or 0 cells.

    An instruction without money (the end of a subscription) has 0 in its row and none in its terms.
    """
    cells: dict[str, Any] = {}
    for each in written:
        cells |= each
    return {name: cell for name, cell in cells.items() if cell not in (None, "", 0)}


def changed(
    connection: Connection,
    attested: Attested,
    *,
    where: ColumnElement[bool] | None = None,
    of: str = "",
) -> Iterator[str]:
    """Yield a problem for each row that differs from its events, has none, or was deleted.

    Args:
        connection: Of the database.
        attested: The table.
        where: Checks only these rows, and not for deleted ones.
        of: Checks only this entity.
    """
    names = {
        attested.key,
        *attested.columns,
        *(column.name for column in attested.table.primary_key),
    }
    key = attested.table.c[attested.key]
    query = (
        select(
            *(_raw(attested.table.c[name]) for name in sorted(names)),
            history.c.sequence.label("link"),
            history.c.event.label("link_event"),
            history.c.data.label("link_data"),
        )
        .outerjoin_from(attested.table, history, _link(attested))
        .where(*([] if where is None else [where]), *([key == of] if of else []))
        .order_by(key, history.c.sequence)
        .execution_options(yield_per=LINKS_AT_ONCE)
    )
    with connection.execute(query) as rows:
        for entity_id, group in groupby(rows.mappings(), key=lambda row: str(row[attested.key])):
            for problem in _problems(attested, [*group]):
                yield named(attested, entity_id, problem=problem)
    if where is None:
        yield from removed(connection, attested, of=of)


def changed_in(connection: Connection, tables: Iterable[Attested]) -> Iterator[str]:
    """Yield the problems of `changed` for several tables, up to PROBLEMS_MAX for each."""
    for attested in tables:
        yield from islice(changed(connection, attested), PROBLEMS_MAX)


def tampered(connection: Connection, attested: Attested) -> Iterator[str]:
    """Yield the first row whose state is not its newest event, and every deleted row.

    All rows are checked, since any may have been changed: about one second per 400,000 rows.
    """
    newest = (
        select(history.c.entity_id, func.max(history.c.sequence).label("sequence"))
        .where(history.c.entity == attested.entity)
        .group_by(history.c.entity_id)
        .subquery()
    )
    key, state = attested.table.c[attested.key], attested.table.c[attested.state]
    query = (
        select(key, state, history.c.event)
        .select_from(attested.table)
        .outerjoin(newest, newest.c.entity_id == key)
        .outerjoin(history, history.c.sequence == newest.c.sequence)
        .where(or_(history.c.event.is_(None), history.c.event != state))
        .order_by(key)
        .limit(1)
    )
    for entity_id, now, then in connection.execute(query):
        problem = difference(attested, {attested.state: now}, then={attested.state: then})
        yield named(attested, entity_id, problem=problem if then else _UNKNOWN)
    yield from removed(connection, attested)


def removed(connection: Connection, attested: Attested, *, of: str = "") -> Iterator[str]:
    """Yield a problem for each entity whose events bind rows, but that has no row."""
    query = (
        select(history.c.entity_id, history.c.data)
        .outerjoin(attested.table, _link(attested))
        .where(history.c.entity == attested.entity, attested.table.c[attested.key].is_(None))
        .where(*([history.c.entity_id == of] if of else []))
        .order_by(history.c.sequence)
    )
    rows = connection.execute(query)
    known = (row.entity_id for row in rows if attested.state or attested.under in data_of(row.data))
    for entity_id in dict.fromkeys(known):
        yield named(attested, entity_id, problem=_REMOVED)


def difference(attested: Attested, now: Cells, *, then: Cells) -> str:
    """Return how a row differs from its events, as text; "" if they agree."""
    if not then:
        return _UNKNOWN
    spared = attested.erased if now.get(attested.state) in attested.ended else frozenset()
    problems = [
        f"its {name.replace('_', ' ')} {_differs(attested, name, now=now, then=then)}"
        for name in attested.columns
        if now.get(name) != then.get(name) and name not in spared
    ]
    return f"{'; '.join(problems)}; {PAST}" if problems else ""


def named(attested: Attested, entity_id: str, *, problem: str) -> str:
    """Return the problem of a row as a message with table and key."""
    return f"{attested.table.name.replace('_', ' ')} {entity_id}: {problem}"


def data_of(text: str | None) -> Mapping[str, Any]:
    """Return the data of an event; empty if malformed, which chain verification reports itself."""
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


_UNKNOWN = "the history has no event of it: it was written past the journal"
_REMOVED = "the history knows it, its table does not: it was removed past the journal"


def _problems(attested: Attested, joined: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    """Yield the problems of one entity; `joined` has each of its rows once per event."""
    own = [column.name for column in attested.table.primary_key]
    rows = {tuple(row[name] for name in own): row for row in joined}
    events = {row["link"]: row for row in joined if row["link"] is not None}
    expected = _expected(attested, events.values())
    for row in rows.values():
        # Of two rows with the same key only the first is the expected one.
        then = expected.pop(row[attested.within] if attested.within else "", {})
        now = folded([cells_of(attested, row)])
        if attested.state:
            now[attested.state] = row[attested.state]
        if problem := difference(attested, now, then=then):
            yield problem
    yield from (_REMOVED for _ in expected)


def _expected(attested: Attested, events: Iterable[Mapping[Any, Any]]) -> dict[Any, dict[str, Any]]:
    """Return the expected cells of each row of an entity, by the column `within`."""
    written: dict[Any, list[Cells]] = {}
    for event in events:
        cells = data_of(event["link_data"]).get(attested.under)
        if attested.state:
            cells = {**(cells or {}), attested.state: event["link_event"]}
        if cells is not None:
            written.setdefault(cells.get(attested.within) if attested.within else "", []).append(
                cells
            )
    return {which: folded(each) for which, each in written.items()}


def _link(attested: Attested) -> ColumnElement[bool]:
    key = attested.table.c[attested.key]
    text = key if isinstance(key.type, String) else cast(key, String)
    return and_(history.c.entity == attested.entity, history.c.entity_id == text)


def _raw(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Select a date column as text: a value written bypassing the code may be no valid date."""
    if isinstance(column.type, IsoDate):
        return type_coerce(column, String).label(column.name)
    return column


def _is_attested(attested: Attested, name: str, *, values: Mapping[Any, Any]) -> bool:
    column, expected = attested.only_where.get(name, (name, values[name]))
    return bool(values.get(column) == expected)


def _cell(value: Any, *, is_digest: bool) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if is_digest:
        return text_digest(str(value))
    return value if isinstance(value, int) else str(value)


def _differs(attested: Attested, name: str, *, now: Cells, then: Cells) -> str:
    longest = max(len(str(cells.get(name))) for cells in (now, then))
    if name in attested.as_digest or longest > DISPLAYED_CHARACTERS:
        return "is another one"
    now_text, attested_as = _as_text(now, name) or "blank", _as_text(then, name) or "nothing"
    return f"is {now_text}, bound was {attested_as}"


def _as_text(cells: Cells, name: str) -> str:
    value = cells.get(name)
    if name.endswith("amount"):
        try:
            return sums_text({str(cells.get("currency", "")): int(value or 0)})
        except (KeyError, ValueError):
            return str(value)
    return "" if value is None else str(value)
