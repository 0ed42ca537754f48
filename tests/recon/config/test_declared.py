"""What each file of `config/` may say: what holds, and what is refused by its file and key."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pydantic import ValidationError

from recon.config.approvers import Approvers
from recon.config.cluster import IN_PROCESS, ClusterSettings
from recon.config.declared import declared
from recon.config.file_sources import SettlementFolder
from recon.config.keys import storage_keys
from recon.config.limits import Limits
from recon.config.night_archive import ArchiveFile
from recon.config.notice_settings import NOTICES_MAX, STOPPED, Notices
from recon.config.retention import NightSchedule, RetentionFile
from recon.config.settings import WorkbookLists, load_tables
from recon.model.errors import ConfigurationError
from recon.model.terms import Verdict

S3 = {"path": "s3://books/archive", "access_key_env": "ID", "secret_key_env": "SECRET"}
TLS = {"ca_file": "/ca", "certificate_file": "/cert", "key_file": "/key"}
DASK = {"address": "tls://dask.internal:8786"}
NOTICE = {"address_env": "A"}
ACCOUNT = "100042/100042001"
Read = Callable[[dict[str, Any]], object]
cluster_of = partial(declared, ClusterSettings, source="cluster.toml")
retention_of = partial(declared, RetentionFile, source="retention.toml")


def archive_of(tables):
    """As archive.toml declares it."""
    return declared(ArchiveFile, tables, source="archive.toml").archive


def told(tables):
    """As notices.toml declares it for one account."""
    read = declared(Notices, tables, source="notices.toml")
    read.refuse_strangers({ACCOUNT})
    return read.notices


def limited(tables):
    """As limits.toml declares it for two accounts."""
    read = declared(Limits, tables, source="limits.toml")
    read.refuse_strangers({"1/2", "1/3"})
    return read


def backups(**changes):
    """Where copies of the database lie."""
    return {"retention": {"backups": {"folder": "/b", "files": "recon-*", "days": 90} | changes}}


FILES: Mapping[str, tuple[Read, list[tuple[dict[str, Any], str]]]] = {
    "archive": (
        archive_of,
        [
            ({"archiv": {}}, "archiv"),
            ({"archive": {"path": "archive"}}, "path: neither a whole path"),
            ({"archive": {"path": "/a", "region": "eu-west-2"}}, "are for a path s3://"),
            ({"archive": S3 | {"path": "s3://books/../other"}}, "path: no address"),
            ({"archive": S3 | {"secret_key_env": ""}}, "secret_key_file are needed"),
            ({"archive": S3 | {"endpoint": "http://10.0.0.7:9000"}}, "must be https"),
        ],
    ),
    # Evidence is kept a quarter, backups have names and some stay, the history has no age.
    "retention": (
        retention_of,
        [
            ({"retention": {"archive_days": 30}}, "archive_days"),
            ({"retention": {"nights_days": 89}}, "nights_days"),
            ({"retention": {"metrics_days": 0}}, "metrics_days"),
            ({"retention": {"history_days": 400}}, "history_days"),
            ({"retention": {"schedule_deletes": True}}, "schedule_deletes needs a schedule"),
            ({"retention": {"schedule": {"cron": "0 6 * * 6", "zone": "Mars/Base"}}}, "time zone"),
            (backups(files="*"), "files"),
            (backups(keep=1), "keep"),
        ],
    ),
    # No clear text, no missing certificate, no misspelt key, no part without end.
    "cluster": (
        cluster_of,
        [
            ({"worker": 4}, "worker: unknown"),
            ({"address": "tcp://dask.internal:8786", **TLS}, "address"),
            ({"address": "dask.internal", **TLS}, "address"),
            (DASK, "ca_file, certificate_file and key_file"),
            ({**DASK, **TLS, "key_file": None}, "needs ca_file"),
            ({"address": "local"}, "address"),
            (TLS, "are for an address"),
            ({"result_seconds": 0}, "result_seconds"),
            ({"compared_at_once": 0}, "compared_at_once"),
        ],
    ),
    "notices": (
        told,
        [
            ({"notices": {"finance": {}}}, "address_env and address_file"),
            ({"notices": {"finance": NOTICE | {"address_file": "/b"}}}, "name one of"),
            ({"notices": {"finance": NOTICE | {"verdict": ["RECONCILED"]}}}, "verdict"),
            ({"notices": {"finance": NOTICE | {"verdicts": ["GOOD"]}}}, "verdicts"),
            ({"notices": {"Finance!": NOTICE}}, "Finance!"),
            ({"notices": {"finance": NOTICE | {"accounts": ["100043/*"]}}}, "fits no account"),
            ({"notice": {}}, "notice"),
            ({"notices": {f"n{i}": NOTICE for i in range(NOTICES_MAX + 1)}}, "notices"),
        ],
    ),
    "approvers": (
        partial(declared, Approvers, source="approvers.toml"),
        [
            ({"approvers": {"anna": {"name": "Anna Berg", "limits": {"EUR": 5}}}}, "limits"),
            ({"people": {}}, "people"),
        ],
    ),
    # A misspelt currency or account must not let money through unbounded.
    "limits": (
        limited,
        [
            ({"limits": {"EUR": {"item": -1}}}, "EUR"),
            ({"limits": {"EURO": {"item": 10}}}, "'EURO' is not an ISO 4217"),
            ({"limits": {"eur": {"item": 10}}}, "'eur' is not an ISO 4217"),
            ({"accounts": {"1/2": {"EURO": {"item": 10}}}}, "'EURO' is not an ISO 4217"),
            ({"accounts": {"1/9": {"EUR": {"item": 10}}}}, "1/9.*no such account"),
        ],
    ),
}
"""File -> what reads it, and what it refuses with which words."""


@pytest.mark.parametrize(
    ("file", "read", "tables", "words"),
    [
        (file, read, tables, words)
        for file, (read, refused) in FILES.items()
        for tables, words in refused
    ],
)
def test_what_could_not_hold_is_refused_by_file_and_key(file, read, tables, words):
    with pytest.raises(ConfigurationError, match=rf"{file}\.toml.*{words}"):
        read(tables)


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("30 2 * *", "UTC", "cron"),
        ("30 2 * * * *", "UTC", "cron"),
        ("30 2 * * *\nx", "UTC", "cron"),
        ("@daily", "UTC", "cron"),
        ("30 2 * * *", "Europe/Londn", "not a time zone"),
        ("30 2 * * *", "../../etc/passwd", "not a time zone"),
    ],
)
def test_a_schedule_that_would_never_start_is_refused(cron, zone, words):
    with pytest.raises(ValidationError, match=words):
        NightSchedule(cron=cron, zone=zone)


def test_who_declares_nothing_keeps_everything_on_one_machine():
    keeps = retention_of({}).retention.model_dump()

    assert keeps.pop("schedule_deletes") is False
    assert set(keeps.values()) == {None}
    assert cluster_of(load_tables("cluster", config_dir=None)) == ClusterSettings()
    assert not IN_PROCESS.helps
    assert archive_of({}).path == ""


def test_an_archive_is_a_folder_or_a_storage_whose_keys_the_environment_has():
    settings = archive_of({"archive": S3})

    assert settings.is_remote
    assert not archive_of({"archive": {"path": "/var/lib/recon/archive"}}).is_remote
    assert storage_keys(settings, {"ID": " a ", "SECRET": "s"}) == ("a", "s")
    with pytest.raises(ConfigurationError, match="SECRET"):
        storage_keys(settings, {"ID": "a"})


def notice(**values):
    return told({"notices": {"finance": NOTICE | values}})["finance"]


@pytest.mark.parametrize("end", [*(verdict.value for verdict in Verdict), STOPPED])
def test_a_bare_notice_hears_of_every_end_of_every_account(end):
    assert notice().concerns(ACCOUNT, ends={end})


def test_a_notice_is_bound_to_its_accounts_and_verdicts():
    bound = notice(accounts=["100042/*"], verdicts=["NOT PROVEN"])

    assert bound.concerns(ACCOUNT, ends={"NOT PROVEN"})
    assert not bound.concerns(ACCOUNT, ends={"RECONCILED"})
    assert not bound.concerns("200042/100042001", ends={"NOT PROVEN"})


def test_an_accounts_own_limits_lie_over_the_general_ones():
    general, own = {"EUR": {"item": 100, "night": 1000}}, {"1/2": {"EUR": {"item": 250}}}
    limits = limited({"limits": general, "accounts": own})
    of = limits.of("1/2", currency="EUR")

    assert (of.item, of.night) == (Decimal(250), Decimal(1000))
    assert limits.of("1/3", currency="EUR").item == Decimal(100)
    assert limits.of("1/2", currency="JPY").item is None


def test_a_trailer_of_settlements_may_count_rows_but_not_add_amounts():
    """A settlement line has three amounts: a sum that silently took one would prove nothing."""
    rows, amounts = ({"trailer": {"word": "END", what: 2}} for what in ("rows", "amount"))
    assert SettlementFolder.model_validate({"inbox": "in", "layouts": [rows]}).layouts
    with pytest.raises(ValidationError, match="count its rows"):
        SettlementFolder.model_validate({"inbox": "in", "layouts": [amounts]})


@pytest.mark.parametrize(("name", "most"), [("matched_rows", 50_000), ("open_rows", 200_000)])
def test_a_list_is_cut_where_a_sheet_can_show_it(name, most):
    for at_most, shown in ((1, 1), (50, 50), (5_000, 20), (most, most)):
        lists = WorkbookLists.model_validate({f"{name}_max": at_most, f"{name}_shown": shown})
        assert getattr(lists, f"{name}_max") == at_most
        assert getattr(lists, f"{name}_shown") == shown
    for key in (f"{name}_max", f"{name}_shown"):
        for rows in (0, -1, most + 1, 1.5, "many"):
            with pytest.raises(ValidationError, match=key):
                WorkbookLists.model_validate({f"{name}_max": most, key: rows})
    for too_few in ({f"{name}_max": 50, f"{name}_shown": 51}, {f"{name}_max": 50}):
        with pytest.raises(ValidationError, match=f"{name}_shown: more rows than {name}_max"):
            WorkbookLists.model_validate(too_few)
    with pytest.raises(ValidationError, match="matched_row_max"):
        WorkbookLists.model_validate({"matched_row_max": 5})
