from dataclasses import replace
from datetime import UTC, datetime

from recon.model.nights import Mode, NightRequest
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import file_words, order_rows, runs
from recon.store.nights.file_words import KnownFile
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
WHOLE = "(whole file)"
FILE = SourceFile(SourceKind.ORDERS, "a.csv", "1" * 64, 10, 0, 0, 0, 0)
BAD = replace(FILE, name="bad.csv", sha256="2" * 64, rows_read=1, rows_rejected=1)


def _save(store: Store, run: Run, source: SourceFile) -> None:
    rejects = [Reject(source.kind, source.name, 0, WHOLE, "is no table", "")]
    with store.writing() as connection:
        order_rows.insert_file(
            connection,
            run,
            rejects=rejects[: source.rows_rejected],
            source=source,
            at=AT,
        )


def _newest(store: Store, run: Run, name: str) -> KnownFile:
    with store.reading() as connection:
        found = file_words.newest_files(connection, run, whole_file=WHOLE)
    return next(one for one in found if one.source.name == name)


def _is_known(store: Store, run: Run) -> bool:
    with store.reading() as connection:
        known = file_words.known_file(
            connection, run, name=FILE.name, sha256=FILE.sha256, counts=bool
        )
    return known is not None


def test_a_file_is_unknown_once_after_somebody_said_so(store: Store, run: Run) -> None:
    """The word is about one version: the next one is known again."""
    _save(store, run, FILE)
    before = _is_known(store, run)
    with store.writing() as connection:
        found = _newest(store, run, FILE.name)
        file_words.say_again(
            connection, found, account="m/a", by="Ann", reason="a new layout", at=AT
        )
    said = _is_known(store, run)
    _save(store, run, FILE)

    assert (before, said, _is_known(store, run)) == (True, False, True)


def test_what_a_dry_run_read_is_known_to_dry_runs_only(store: Store, run: Run) -> None:
    """It binds no file: a live night neither knows it nor counts it among its own."""
    request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.DRY_RUN)
    with store.writing() as connection:
        runs.start(connection, request, run_id="dry", as_of=run.as_of, now=AT)
        dry = runs.get(connection, "dry")
    _save(store, dry, FILE)
    with store.reading() as connection:
        mine, theirs = (order_rows.files_of_night(connection, one) for one in (run, dry))

    assert (_is_known(store, dry), _is_known(store, run)) == (True, False)
    assert (len(mine), len(theirs)) == (0, 1)


def test_a_version_without_rows_stands_for_one_that_was_let_go(store: Store, run: Run) -> None:
    """Its rejected row is gone from the night, its identity is kept, and a newer version counts."""
    _save(store, run, BAD)
    found = _newest(store, run, BAD.name)
    nothing = replace(BAD, sha256="3" * 64, rows_read=0, rows_rejected=0)
    told = {"by": "Ann", "reason": "no file of ours"}
    with store.writing() as connection:
        file_words.dismiss(connection, found, nothing=nothing, at=AT, **told)
    with store.reading() as connection:
        rejects = order_rows.rejects_of_night(connection, run)
        identity = file_words.dismissed(connection, run, name=BAD.name, counts=bool)
    _save(store, run, replace(BAD, sha256="4" * 64))
    with store.reading() as connection:
        after = file_words.dismissed(connection, run, name=BAD.name, counts=bool)

    assert found.refused == "is no table"
    assert (rejects, identity, after) == ([], BAD.sha256, "")
