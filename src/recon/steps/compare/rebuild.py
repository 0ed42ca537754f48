"""A past night compared again from its sealed inputs: the proof that its result can be rebuilt.

Only what the night itself had read counts; files, answers, instructions and rules that came later
do not. Nothing of the database is changed.
"""

from dataclasses import dataclass
from pathlib import Path

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.model.errors import ConfigurationError, InputsGoneError, UsageError
from recon.proof.engine import reconcile as compare
from recon.steps.compare.kept_sources import kept_sources
from recon.steps.compare.result_files import output_folder, publish, result_files, stage
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.nights import input_rows, runs
from recon.store.nights.input_rows import Inputs
from recon.store.nights.runs import Run

NOT_KEPT = (
    "run {} did not keep what it compared, for it never came to compare: it cannot be rebuilt; "
    "its workbook and result stay"
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A night compared again."""

    run: Run
    rules: Rules
    sources: Sources
    previous: Previous | None
    result: Reconciliation
    digest_then: str
    version_then: str
    """Of the product, when the night ran."""

    @property
    def same(self) -> bool:
        """Whether the result is the one of that night."""
        return self.result.digest == self.digest_then


def rebuild_night(name: str, *, out: Path | None, environment: Environment) -> Rebuilt:
    """Compare a past night (a run or its business date) again, and write its result files.

    Raises:
        UsageError: there is no such finished night.
        InputsGoneError: something that the night compared is not stored any more.
        ArchiveError: its folder cannot be reached, or is not as it was sealed.
        OutputError: the folder cannot be written.
    """
    with environment.store.reading() as connection:
        run = run_named(connection, name)
    again = rebuilt(run, environment=environment)
    if out is not None:
        with output_folder(out):
            texts = result_files(
                again.result,
                rejects=again.sources.rejects,
                files=again.sources.files,
                previous=again.previous,
            )
            publish(stage(out, files=texts))
    return again


def rebuilt(run: Run, *, environment: Environment) -> Rebuilt:
    """The night of a run compared again, from what it sealed.

    Raises:
        InputsGoneError: the night did not seal what it compared, or its rules are gone.
        ArchiveError: its folder cannot be reached, or is not as it was sealed.
    """
    inputs, rules, digest_then = kept_inputs(run, environment=environment)
    sources, previous = compared_then(run, environment=environment)
    result = compare(sources, rules=rules, as_of=run.as_of, previous=previous)
    return Rebuilt(run, rules, sources, previous, result, digest_then, inputs.product_version)


def compared_then(run: Run, *, environment: Environment) -> tuple[Sources, Previous | None]:
    """What a run compared and what it carried forward, as it sealed them.

    Raises:
        InputsGoneError: it sealed neither.
        ArchiveError: its folder cannot be reached, or is not as it was sealed.
    """
    with environment.store.reading() as connection:
        kept = kept_sources(connection, run, environment=environment)
    if kept is None:
        raise InputsGoneError(NOT_KEPT.format(run.run_id))
    return kept


def run_named(connection: Connection, name: str) -> Run:
    """A run by its id, or the finished one that a business date stands for, live before dry.

    Raises:
        UsageError: there is none, or several accounts have one.
    """
    finished = runs.finished(connection)
    named = [
        night
        for night in finished
        if night.run_id == name or (str(night.business_date) == name and not night.replaced)
    ]
    if not named:
        newest = max((night.business_date for night in finished), default=None)
        which = f"the newest is {newest}" if newest else "no night is finished yet"
        msg = f"there is no finished night {name}: name a run or its business date ({which})"
        raise UsageError(msg)
    if len(named) > 1:
        msg = f"several accounts have a night {name}: name the run (`recon nights` lists them)"
        raise UsageError(msg)
    return named[0]


def kept_inputs(run: Run, *, environment: Environment) -> tuple[Inputs, Rules, str]:
    """What a run read and by which rules, and the digest of its result then.

    Raises:
        InputsGoneError: the run did not keep it, or this version cannot read it.
        StoreError: the rules that judged were changed past the code.
    """
    with environment.store.reading() as connection:
        inputs = input_rows.load(connection, run.run_id)
        if inputs is None:
            raise InputsGoneError(NOT_KEPT.format(run.run_id))
        digest_then = runs.digests_of(connection, run.run_id)["result_digest"]
        try:
            rules = runs.load(connection, inputs.rules_digest)
        except ConfigurationError as error:
            msg = f"run {run.run_id} cannot be rebuilt by this version of recon: {error}"
            raise InputsGoneError(msg) from error
    if rules is None:
        msg = f"the rules of run {run.run_id} are not stored any more: it cannot be rebuilt"
        raise InputsGoneError(msg)
    return inputs, rules, digest_then
