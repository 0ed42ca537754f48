"""Does the desk's signature stand behind everything that people are said to have decided?"""

from collections.abc import Iterator
from itertools import islice

from recon.desk.endorsement import Kind
from recon.model.words import InstructionState
from recon.steps.files.file_endorsements import unendorsed_files
from recon.steps.ground.desk_memory import lost_word
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.money.restore import unendorsed_restores
from recon.store import Connection
from recon.store.database.record import PROBLEMS_MAX
from recon.store.money.endorsement_rows import Endorsed, override
from recon.store.nights import sign_off_rows
from recon.store.people import agreement_rows, approval_rows, resolution_rows

SENT = tuple(
    state.value
    for state in InstructionState
    if state not in {InstructionState.PLANNED, InstructionState.WITHDRAWN}
)


def unendorsed(connection: Connection, *, environment: Environment) -> list[str]:
    """What people did not agree to although the tables say so, in words; the first of each kind."""
    words = endorsed(environment)
    kinds = (
        iter(filter(None, [lost_word(environment.desk, store=environment.store)])),
        words.broken(connection),
        words.row_problems(connection, states=SENT),
        iter(filter(None, [words.start_problem(connection)])),
        _overrides(connection, words),
        unendorsed_restores(connection, words),
        unendorsed_files(connection, words),
        _releases(connection, words),
        _decisions(connection, words),
        _write_offs(connection, words),
        _signatures(connection, words),
    )
    return [problem for kind in kinds for problem in islice(kind, PROBLEMS_MAX)]


def _overrides(connection: Connection, words: Endorsed) -> Iterator[str]:
    for what, subject in agreement_rows.complete(connection):
        meaning = override(what, subject=subject)
        if problem := words.problem(connection, Kind.OVERRIDE, subject=meaning):
            yield f"{meaning}: two people are said to have agreed, but {problem}"


def _releases(connection: Connection, words: Endorsed) -> Iterator[str]:
    for run_id in sorted(approval_rows.released(connection)):
        if problem := words.release_problem(connection, run_id):
            yield f"run {run_id} counts as released, but {problem}"


def _decisions(connection: Connection, words: Endorsed) -> Iterator[str]:
    for instruction_id, verdict in approval_rows.agreed_verdicts(connection):
        problem = words.problem(
            connection, Kind.DECISION, subject=instruction_id, says={"verdict": verdict}
        )
        if problem:
            yield f"instruction {instruction_id} counts as decided ({verdict}), but {problem}"


def _write_offs(connection: Connection, words: Endorsed) -> Iterator[str]:
    for break_id, money in resolution_rows.all_agreed_write_offs(connection):
        if problem := words.write_off_problem(connection, break_id, money=money):
            yield f"break {break_id} counts as written off, but {problem}"


def _signatures(connection: Connection, words: Endorsed) -> Iterator[str]:
    for run_id, signature in sign_off_rows.all_signatures(connection):
        says = {"role": signature.role, "workbook_sha256": signature.workbook_sha256}
        if not words.is_signed(connection, run_id, by=signature.by, says=says):
            yield (
                f"run {run_id} counts as signed by {signature.by} ({signature.role}), but the desk "
                "did not endorse it"
            )
