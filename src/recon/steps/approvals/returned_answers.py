"""Import the answers of a returned workbook: check them against the database and store them.

A row counts if its break is open in the newest run of that night, no later night shows it with
another code or other money, nobody answered it since the workbook was written, and its cells have
what the form allows. Any other row is refused, naming its cell. A write-off counts only after a
second person has agreed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from recon.desk.endorsement import Kind
from recon.matching.breaks.result import alike_by, subject_of
from recon.matching.classifying.severity import risk_of_break
from recon.matching.codes import CODES
from recon.model.errors import SourceUnreadableError
from recon.model.money import Money, format_minor_units
from recon.model.nights import Mode
from recon.model.resolutions import (
    FROM_CAUSE,
    THIS_BREAK,
    WHOLE_CAUSE,
    WRITE_OFF,
    Import,
    Returned,
    ReturnedRow,
    StoredAnswer,
    Taken,
    WorkbookRefusal,
)
from recon.model.terms import BreakCode
from recon.privacy.card_numbers import holds_card
from recon.privacy.displayed_text import redacted
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person
from recon.steps.runtime.night_folder import StoredResult
from recon.steps.runtime.predecessor import refuse_closed
from recon.store import Connection
from recon.store.database.bulk_rows import rows_of
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows
from recon.store.people.decision_rows import money_stated
from recon.store.people.resolution_rows import NewAnswer

KEYS_DISPLAYED_MAX = 3
LISTED = ("row", "order", "at risk", "what is wrong", "resolution", "owner", "comment")
FACTS = {
    "code": "Code",
    "order_amount": "Orders",
    "gateway_amount": "Gateway",
    "ledger_amount": "Ledger",
    "exposure": "Money at risk",
}
"""Columns of sheet Breaks that an answer is about; age and flags may change meanwhile."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a returned workbook is read; `reports` provides it."""

    read: Callable[[Path], Returned]
    keys_digest: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class _Night:
    """The run a workbook belongs to, with its open breaks and their answers."""

    run: Run
    breaks: Mapping[str, Mapping[str, Any]]
    saved: Mapping[str, StoredAnswer]
    changed: Mapping[str, str]
    """Break -> how a later night shows it differently, as text."""


def import_resolutions(path: Path, *, person: Person, form: Form) -> Import:
    """Store the answers of a returned workbook; the same file again is a no-op.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a workbook of ours, of another database, of a run that was
            replaced since, or with rows added or lost; nothing was stored.
        UsageError: the month of its night is closed.
    """
    environment = person.environment
    person.refuse_unproven()
    returned = form.read(path)
    with environment.store.writing() as connection:
        done, answers, _ = _checked(
            connection, returned, by=person.declared.name, form=form, environment=environment
        )
        if done.repeated:
            return done
        resolution_rows.save(connection, answers, brought=done, at=environment.clock())
        written_off = resolution_rows.written_off_by_file(connection, returned.sha256)
        for break_id, money in written_off.items():
            person.endorse(connection, Kind.WRITE_OFF, break_id, says=money_stated(money))
    return done


def listed(
    path: Path, *, form: Form, environment: Environment
) -> tuple[Import, list[tuple[str, ...]]]:
    """Return what an import would store, each answer with its break, for review; changes nothing.

    Answers whose cells were sorted without the others show up next to breaks that they do not fit.

    Returns:
        The result that an import would have, and a row of `LISTED` for each answer.

    Raises:
        As `import_resolutions`.
    """
    returned = form.read(path)
    with environment.store.reading() as connection:
        done, _, night = _checked(connection, returned, by="", form=form, environment=environment)
    rows: list[tuple[str, ...]] = []
    breaks = {} if night is None else night.breaks
    for taken in done.taken:
        broken, answer = breaks[taken.break_id], taken.answer
        wrong, currency = CODES[BreakCode(str(broken["code"]))].title, str(broken["currency"])
        risk = Money.of_minor_units(risk_of_break(broken), currency=currency)
        of_row = f"{taken.row}, of one cause" if taken.covers_cause else str(taken.row)
        shown_cells = (of_row, taken.order_no, str(risk) if currency else "", wrong)
        rows.append((*shown_cells, answer.resolution, answer.owner, answer.comment))
    return done, rows


def _checked(
    connection: Connection, returned: Returned, *, by: str, form: Form, environment: Environment
) -> tuple[Import, list[NewAnswer], _Night | None]:
    """Check a returned workbook; the night is None if it was imported before."""
    brought = Import(returned.name, returned.sha256, returned.facts.get("run_id", ""), by)
    if resolution_rows.imported_before(connection, returned.sha256):
        return replace(brought, repeated=True), [], None
    night = _night_of(connection, returned, environment=environment)
    _refuse_other_rows(returned, night=night, form=form)
    today = local_day(environment.clock(), environment=environment)
    return *_check(returned, night=night, brought=brought, today=today), night


def local_day(now: datetime, *, environment: Environment) -> date:
    """Return today's date in the time zone of the business calendar."""
    return now.astimezone(environment.settings.rules.business_calendar.zone).date()


def _night_of(connection: Connection, returned: Returned, *, environment: Environment) -> _Night:
    """Return the run that wrote the workbook, if it is still the newest of its night."""
    run_id = returned.facts.get("run_id", "")
    known = {run.run_id: run for run in runs.finished(connection)}
    if run_id not in known:
        msg = (
            f"{returned.name} belongs to run {run_id or 'of no name'}, which this database does "
            "not know; nothing was taken: is it of another merchant or another database?"
        )
        raise SourceUnreadableError(msg)
    run = runs.get(connection, run_id)
    nights = runs.last_finished(connection, run)
    newest = nights.get(run.business_date)
    if newest is not None and newest.run_id != run_id:
        msg = (
            f"{returned.name} is of run {run_id}; the night of {run.business_date} was run again "
            f"since, and run {newest.run_id} replaces it: nothing was taken, answer in the "
            "workbook of that run"
        )
        raise SourceUnreadableError(msg)
    saved = f"nothing of {returned.name} was taken, answer in the workbook of a newer night"
    refuse_closed(connection, run, saved=saved)
    breaks = _breaks_of(connection, run, environment=environment)
    live = [night for night in nights.values() if night.mode is Mode.LIVE]
    last = max(live, key=lambda night: night.business_date, default=run)
    changed = (
        {}
        if last.business_date <= run.business_date
        else _changed(
            breaks,
            later=_breaks_of(connection, last, environment=environment),
            day=last.business_date,
        )
    )
    answers = resolution_rows.stored_answers(connection, run.account)
    return _Night(run, breaks, answers, changed)


def _breaks_of(
    connection: Connection, run: Run, *, environment: Environment
) -> dict[str, Mapping[str, Any]]:
    breaks = StoredResult(connection, run.run_id, environment).open_breaks()
    rows = [] if breaks is None else rows_of(breaks)
    return {str(row["break_id"]): row for row in rows}


def _changed(
    breaks: Mapping[str, Mapping[str, Any]], *, later: Mapping[str, Mapping[str, Any]], day: date
) -> dict[str, str]:
    """Map open breaks that a later night shows differently -> how; one that ended may stay."""
    versions = {}
    for break_id in breaks.keys() & later.keys():
        then, now = breaks[break_id], later[break_id]
        differences = [
            f"{title} is {_fact(now, name)}, was {_fact(then, name)}"
            for name, title in FACTS.items()
            if now[name] != then[name]
        ]
        if differences:
            versions[break_id] = (
                f"stale: the night of {day} shows this break otherwise ({'; '.join(differences)}); "
                "nothing was kept: answer it in the workbook of that night"
            )
    return versions


def _fact(row: Mapping[str, Any], name: str) -> str:
    if name == "code" or row[name] is None:
        return str(row[name] or "blank")
    return format_minor_units(int(row[name]), currency=str(row["currency"]))


def _refuse_other_rows(returned: Returned, *, night: _Night, form: Form) -> None:
    """Refuse rows that were added, lost or renamed; sorting and filtering are fine."""
    counts = Counter(returned.keys)
    lost = sorted(set(night.breaks) - set(counts))
    foreign = sorted(key for key, count in counts.items() if count > 1 or key not in night.breaks)
    if returned.facts.get("keys_sha256", "") != form.keys_digest(sorted(night.breaks)):
        _refuse(returned, "its list of breaks is not the one that the run wrote")
    if foreign:
        which = ", ".join(foreign[:KEYS_DISPLAYED_MAX])
        _refuse(returned, f"it has rows that the run did not write, or wrote once ({which})")
    if lost:
        _refuse(returned, f"rows are missing ({', '.join(lost[:KEYS_DISPLAYED_MAX])})")


def _refuse(returned: Returned, what: str) -> None:
    msg = (
        f"{returned.name}: {what}; nothing was taken. Sorting and filtering are fine, adding, "
        "deleting or renaming rows is not: copy the answers into a fresh workbook"
    )
    raise SourceUnreadableError(msg)


def _check(
    returned: Returned, *, night: _Night, brought: Import, today: date
) -> tuple[Import, list[NewAnswer]]:
    refusals = list(returned.refusals)
    answers: dict[str, NewAnswer] = {}
    unchanged: set[str] = set()
    own = [row for row in returned.rows if not row.answer.is_blank]
    for row in own:
        saved = night.saved.get(row.break_id)
        reaches_further = row.scope == WHOLE_CAUSE and not (saved and saved.scope == WHOLE_CAUSE)
        if saved is not None and saved.answer == row.answer and not reaches_further:
            unchanged.add(row.break_id)
            continue
        problem = _problem(row, saved=saved, night=night, today=today)
        if problem:
            refusals.append(problem)
            continue
        answers[row.break_id] = _new(row, break_id=row.break_id, saved=saved, night=night)
    first_of: dict[str, ReturnedRow] = {}
    for row in [row for row in own if row.scope == WHOLE_CAUSE and row.break_id in answers]:
        first = first_of.setdefault(alike_by(night.breaks[row.break_id]), row)
        if first is not row:
            refusals += _answered_before(row, first=first)
            continue
        refusals += _uncovered(row, returned=returned, night=night, taken=answers)
        covered = list(_covered(row, returned=returned, night=night, taken=answers))
        answers.update({each.break_id: each for each in covered})
    blank = sum(row.answer.is_blank and row.break_id not in answers for row in returned.rows)
    taken = tuple(_taken(answer, night=night) for answer in answers.values())
    left = len(unchanged - answers.keys())
    done = replace(brought, taken=taken, unchanged=left, blank=blank, refusals=tuple(refusals))
    return done, list(answers.values())


def _problem(
    row: ReturnedRow, *, saved: StoredAnswer | None, night: _Night, today: date
) -> WorkbookRefusal | None:
    """Return why an answer cannot be stored; None if it can."""
    answer = row.answer
    if problem := _stale(row, saved=saved, night=night):
        return WorkbookRefusal(row.cells["Resolution"], answer.resolution, problem)
    if answer.resolved_on is not None and answer.resolved_on > today:
        problem = f"a day that is still to come: today is {today}; write when it was done"
        return WorkbookRefusal(row.cells["Resolved on"], f"{answer.resolved_on}", problem)
    if answer.resolution and not answer.owner:
        return WorkbookRefusal(row.cells["Owner"], "", "a resolution needs an owner")
    for title, text in (("Comment", answer.comment), ("Owner", answer.owner)):
        if holds_card(text):
            why = "looks like a card number, which does not belong here: say it without"
            return WorkbookRefusal(row.cells[title], redacted(text), why)
    needs_comment = answer.resolution == WRITE_OFF or answer.resolution.startswith("Other")
    if needs_comment and not answer.comment:
        problem = f"{answer.resolution!r} needs a comment that says why"
        return WorkbookRefusal(row.cells["Comment"], "", problem)
    return None


def _stale(row: ReturnedRow, *, saved: StoredAnswer | None, night: _Night) -> str:
    """Return why the answer is outdated: answered since, or the break changed; else ""."""
    if row.version != (saved.version if saved else 0):
        return (
            f"stale: {saved.by if saved else 'nobody'} answered this break since the workbook was "
            "written; look at the newest workbook first"
        )
    return night.changed.get(row.break_id, "")


def _covered(
    row: ReturnedRow, *, returned: Returned, night: _Night, taken: Mapping[str, NewAnswer]
) -> Iterator[NewAnswer]:
    """Yield answers for the other breaks of the row's cause that have no answer of their own."""
    for other in _of_cause(row, returned=returned, night=night):
        saved = night.saved.get(other.break_id)
        is_answered = other.break_id in taken or _has_its_own(other, saved=saved)
        if is_answered or _stale(other, saved=saved, night=night):
            continue
        new = _new(row, break_id=other.break_id, saved=saved, night=night)
        yield replace(new, scope=FROM_CAUSE)


def _has_its_own(row: ReturnedRow, *, saved: StoredAnswer | None) -> bool:
    """Return whether a break has an answer that was not given for its whole cause."""
    if row.answer.is_blank:
        return False
    return (
        saved is None or saved.answer != row.answer or saved.scope not in {WHOLE_CAUSE, FROM_CAUSE}
    )


def _answered_before(row: ReturnedRow, *, first: ReturnedRow) -> Iterator[WorkbookRefusal]:
    """Refuse a second, different answer for every break of a cause: no break has two."""
    if row.answer != first.answer:
        problem = (
            f"row {first.number} answers every break of this cause already; this answer was taken "
            "for its own break alone"
        )
        yield WorkbookRefusal(row.cells["Applies to"], row.scope, problem)


def _of_cause(row: ReturnedRow, *, returned: Returned, night: _Night) -> list[ReturnedRow]:
    """Return the other rows whose break has the same cause (the same code, if no cause is known).

    These are the rows that the sheet counts as alike.
    """
    causes = {break_id: alike_by(row) for break_id, row in night.breaks.items()}
    others = (answer for answer in returned.rows if answer.break_id != row.break_id)
    return [answer for answer in others if causes[answer.break_id] == causes[row.break_id]]


def _uncovered(
    row: ReturnedRow, *, returned: Returned, night: _Night, taken: Mapping[str, NewAnswer]
) -> Iterator[WorkbookRefusal]:
    """Yield a refusal for each break that an answer for its whole cause was not applied to."""
    others = _of_cause(row, returned=returned, night=night)
    if not others:
        problem = (
            "no other break has the same cause or code; the answer was taken for this break "
            "alone: answer each of the others in its own row"
        )
        yield WorkbookRefusal(row.cells["Applies to"], row.scope, problem)
    for other in others:
        saved = night.saved.get(other.break_id)
        problem = _stale(other, saved=saved, night=night)
        if _has_its_own(other, saved=saved):
            order = subject_of(night.breaks[other.break_id])
            problem = (
                f"{order} has an answer of its own, which counts: the one of row {row.number} to "
                "every break of its cause was not applied to it; answer it in its own row"
            )
        if problem and other.break_id not in taken:
            yield WorkbookRefusal(other.cells["Resolution"], row.answer.resolution, problem)


def _new(
    row: ReturnedRow, *, break_id: str, saved: StoredAnswer | None, night: _Night
) -> NewAnswer:
    return NewAnswer(
        account=night.run.account,
        break_id=break_id,
        version=(saved.version if saved else 0) + 1,
        answer=row.answer,
        waits=row.answer.resolution == WRITE_OFF,
        sheet_row=row.number,
        scope=WHOLE_CAUSE if row.scope == WHOLE_CAUSE else THIS_BREAK,
        currency=str(night.breaks[break_id]["currency"]),
        exposure=night.breaks[break_id]["exposure"],
    )


def _taken(new_answer: NewAnswer, *, night: _Night) -> Taken:
    broken = night.breaks[new_answer.break_id]
    place = (new_answer.version, new_answer.sheet_row, new_answer.waits)
    return Taken(
        new_answer.break_id,
        subject_of(broken),
        new_answer.answer,
        *place,
        new_answer.scope,
    )


def sentence_of(done: Import, *, listed_only: bool = False) -> str:
    """Describe the result of an import, actual or prospective, in one sentence."""
    if done.repeated:
        return f"{done.name} was imported before; nothing was done."
    waiting = sum(taken.waits for taken in done.taken)
    parts = [f"{len(done.taken)} answers {'to take' if listed_only else 'taken'}"]
    covered = sum(taken.covers_cause for taken in done.taken)
    if covered:
        parts.append(f"{covered} of them with the answer to another break of their cause")
    if waiting:
        wait = "write-offs that wait for a second person (`recon status` has their numbers)"
        parts.append(f"{waiting} of them {wait}")
    parts += [f"{done.unchanged} unchanged", f"{done.blank} without an answer"]
    if done.refusals:
        parts.append(f"{len(done.refusals)} cells refused")
    return f"{done.name}: {', '.join(parts)}."
