"""`recon db upgrade`: answers that an earlier version kept as rows become files of the nights."""

import pyarrow.compute as pc

from recon.archive.answer_schemas import FOLDER
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.model.words import KeyAnswer
from recon.steps.ground import kept_answers
from recon.steps.ground.answer_rows import Replies, reply_rows
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import links
from recon.store import Connection
from recon.store.database import carried_answers
from recon.store.database.carried_answers import CarriedPhase
from recon.store.nights import answer_parts, runs
from recon.store.nights.answer_parts import OWN_PHASES
from recon.store.nights.runs import Run


def carry_answers(run_id: str, *, environment: Environment) -> bool:
    """Write the answers of a run to its folder, unless they are there; whether they were written.

    Raises:
        ArchiveError: the archive cannot be written, or what was written says something else.
    """
    with environment.store.writing() as connection:
        run = _run_of(connection, run_id)
        if run is None:
            return False
        if any(link.step.startswith(f"{FOLDER}-") for link in links(connection, run_id)):
            return False
        # What an upgrade left that was stopped before it had bound anything.
        answer_parts.forget(connection, run_id)
        phases = carried_answers.phases_of(connection, run_id, account_id=run.account_id)
    for phase in phases:
        _write(run, phase, environment=environment)
    kept_answers.seal(run, environment=environment)
    with environment.store.reading() as connection:
        for phase in phases:
            _compare(connection, run, phase, environment=environment)
    return True


def _run_of(connection: Connection, run_id: str) -> Run | None:
    """The run as its table has it, or as a person's own request by hand; None of nobody's."""
    if runs.is_known(connection, run_id):
        return runs.get(connection, run_id)
    owner = carried_answers.owner_of(connection, run_id)
    if owner is None:
        return None
    return Run(
        run_id=run_id,
        merchant_id=owner.merchant_id,
        account_id=owner.account_id,
        business_date=owner.at.date(),
        mode=Mode.LIVE,
        started_at=owner.at,
        as_of=owner.at,
        **dict.fromkeys(("status", "step", "owner", "verdict", "workbook", "problem"), ""),
    )


def _write(run: Run, phase: CarriedPhase, *, environment: Environment) -> None:
    if phase.phase in OWN_PHASES:
        name = phase.phase
        kept_answers.note_asked(run, phase=name, keys=phase.asked, environment=environment)
    answers = {key: (KeyAnswer(word), reason) for key, (word, reason) in phase.answers.items()}
    at = phase.at or run.started_at
    replies = Replies(phase.phase, phase.account_id, answers, phase.payments, at)
    kept_answers.keep(run, reply_rows(run, replies), environment=environment)


def _compare(
    connection: Connection, run: Run, phase: CarriedPhase, *, environment: Environment
) -> None:
    """What was written is what the rows said.

    Raises:
        ArchiveBrokenError: it is not.
    """
    name = phase.phase
    table = kept_answers.table_of_run(connection, run, phases=[name], environment=environment)
    wrote = kept_answers.answers_of(connection, run, phase=name, environment=environment)
    wanted = {key: answer for key, (answer, _) in phase.answers.items()}
    if wrote != wanted or pc.sum(pc.is_valid(table["queried_at"])).as_py() != len(phase.payments):
        msg = f"the answers of run {run.run_id} are others in its folder than in the database"
        raise ArchiveBrokenError(msg)
