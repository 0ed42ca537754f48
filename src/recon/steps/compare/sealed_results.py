"""What a night compared and what it came to, written to its folder before the result is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from recon.archive.step_folder import Sealed
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.proof.books_bridge import books_of
from recon.proof.compared_tables import compared_tables
from recon.proof.night_tables import input_tables, result_tables
from recon.steps.compare.sealed_inputs import absent_of, changed_inputs
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    COMPARED,
    RESULTS,
    Terms,
    answer_steps,
    before,
    links,
    newest,
    rows_of,
    write,
)
from recon.store.nights.runs import Run


@dataclass(frozen=True, slots=True)
class WrittenInputs:
    """The step `compared` as it lies on the disk, and what the next one says of the night."""

    compared: Sealed
    terms: Terms
    bound: Mapping[str, str]
    """The manifests that the history binds, by step."""


def write_compared(
    run: Run,
    *,
    sources: Sources,
    previous: Previous | None,
    predecessor: str,
    environment: Environment,
) -> WrittenInputs:
    """Write the step `compared`; whoever keeps the result binds it.

    It is written before anything is judged, so that nothing of both is held at once.
    `predecessor` is the run that is carried forward, "" for none.

    Raises:
        ArchiveError: the archive cannot be written; the night's money and answers are kept.
    """
    rules = environment.settings.rules
    parts, moved = changed_inputs(run, tables=input_tables(sources), environment=environment)
    small = compared_tables(
        sources,
        rules=rules,
        previous=previous,
        books=books_of(sources, rules=rules),
        account=(run.merchant_id, run.account_id),
        is_carried=bool(predecessor),
    )
    with environment.store.reading() as connection:
        bound = newest(links(connection, run.run_id))
    terms = Terms(predecessor, rules.digest, compared=moved, absent=absent_of(sources))
    compared = write(
        run,
        COMPARED,
        parts=[*parts, *rows_of(small.items())],
        terms=terms,
        after={**before(COMPARED, bound=bound), **{s: bound[s] for s in answer_steps(bound)}},
        environment=environment,
    )
    return WrittenInputs(compared, terms, bound)


def write_results(
    run: Run, result: Reconciliation, *, inputs: WrittenInputs, environment: Environment
) -> Sealed:
    """Write the step `results`; whoever keeps the result binds it.

    Raises:
        ArchiveError: the archive cannot be written; the night's money and answers are kept.
    """
    return write(
        run,
        RESULTS,
        parts=rows_of(result_tables(result)),
        terms=inputs.terms,
        after=before(RESULTS, bound={**inputs.bound, COMPARED: inputs.compared.sha256}),
        environment=environment,
    )
