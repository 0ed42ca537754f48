"""The night's figures once more in SQL, over the files that its folder has on the disk."""

from collections.abc import Iterable, Mapping

from recon.archive.rows_file import read_rows
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Sealed, sealed_step
from recon.archive.storage import Storage
from recon.matching.breaks.result import Reconciliation
from recon.model.words import ControlTotal
from recon.proof.night_tables import totals_of
from recon.proof.second_engine import proven_in_sql
from recon.steps.compare.more_totals import with_totals
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import PROOF, STEPS, folder_of, links, storage_of
from recon.store.nights.runs import Run


def with_sql(
    result: Reconciliation,
    *,
    run: Run,
    sealed: Iterable[Sealed],
    environment: Environment,
) -> Reconciliation:
    """The result with T14 by the second engine: NOT PROVEN where a figure is another one by SQL.

    Args:
        result: with all totals that SQL can say.
        run: whose it is.
        sealed: the steps `compared` and `results`, as they lie on the disk.
        environment: where the archive is.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    steps = {**_bound(run, storage=storage, environment=environment)}
    steps |= {each.manifest.about.step: each for each in sealed}
    with storage.local(folder_of(run)) as folder:
        totals = proven_in_sql(
            folder,
            totals=result.control_totals,
            account=(run.merchant_id, run.account_id),
            moved=_moved(steps),
        )
    return with_totals(result, totals=totals)


def proven_again(run: Run, *, environment: Environment) -> tuple[ControlTotal, ...]:
    """T14 once more of a night that is sealed, against the totals that lie in its folder.

    Nothing is said of a night whose proof is not sealed.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    steps = _bound(run, storage=storage, environment=environment)
    if not steps.keys() >= {*STEPS}:
        return ()
    name = f"{steps[PROOF].folder}/totals.parquet"
    totals = totals_of(read_rows(storage.read(name), name=name))
    with storage.local(folder_of(run)) as folder:
        return proven_in_sql(
            folder,
            totals=totals,
            account=(run.merchant_id, run.account_id),
            moved=_moved(steps),
        )


def night_files(run: Run, *, environment: Environment) -> dict[str, str]:
    """Where the files of a night lie: path as SQL names it -> path from the night's folder."""
    storage = storage_of(run, environment=environment)
    return _moved(_bound(run, storage=storage, environment=environment))


def _bound(run: Run, *, storage: Storage, environment: Environment) -> dict[str, Sealed]:
    """The newest of each step that the history binds."""
    with environment.store.reading() as connection:
        bound = {link.step: link.folder for link in links(connection, run.run_id)}
    steps = {step: sealed_step(storage, folder=folder) for step, folder in bound.items()}
    return {step: sealed for step, sealed in steps.items() if sealed is not None}


def _moved(steps: Mapping[str, Sealed]) -> dict[str, str]:
    """Files that were compared in another version, and those of a step that was written anew."""
    compared: dict[str, str] = {}
    for sealed in steps.values():
        compared |= sealed.manifest.about.compared
    folders = {step: sealed.folder.rpartition("/")[2] for step, sealed in steps.items()}
    moved = {}
    for schema in SCHEMAS.values():
        step, _, name = compared.get(schema.path, schema.path).partition("/")
        moved[schema.path] = f"{folders.get(step, step)}/{name}"
    return {path: other for path, other in moved.items() if other != path}
