from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from recon.config.file_sources import ExpectedFile, RemoteSource, moment_after

SFTP = {"url": "sftp://u@h/out", "known_hosts_file": "k", "password_env": "P"}
S3 = {"url": "s3://b/out", "access_key_env": "A", "secret_key_env": "S"}


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        (SFTP | {"url": "ftp://u@h/out"}, "is neither sftp"),
        (SFTP | {"url": "sftp://u:secret@h/out"}, "holds a password"),
        (SFTP | {"url": "sftp://u@h/out/../up"}, "leads upwards"),
        (SFTP | {"url": "sftp://h/out"}, "names no user"),
        (SFTP | {"known_hosts_file": None}, "known_hosts_file is needed"),
        (SFTP | {"key_file": "k"}, "name one of key_file, password_env and password_file"),
        (SFTP | {"url": "sftp://u@h:99999/out"}, "has a port that does not exist"),
        (S3 | {"endpoint": "s3.example.com"}, "is no address of a storage"),
        (S3 | {"endpoint": "http://s3.example.com"}, "must be https"),
        (S3 | {"endpoint": "http://localhost:9000"}, "must be https"),
        (S3 | {"endpoint": "https://s3.example.com:99999"}, "has a port that does not exist"),
        (S3 | {"access_key_env": ""}, "access_key_env and one of"),
        (S3 | {"secret_key_file": "s"}, "access_key_env and one of"),
    ],
)
def test_a_source_that_cannot_be_safe_is_refused(tables, told):
    with pytest.raises(ValidationError) as refused:
        RemoteSource.model_validate(tables)
    (problem,) = refused.value.errors(include_input=False)
    assert told in problem["msg"]
    assert "secret@" not in problem["msg"]


def test_an_expected_file_has_a_name_for_each_date():
    clock = {"sender": "shop", "expected_by": "02:00"}
    found = ExpectedFile.model_validate({"file": "o-{date}-{yyyymmdd}.csv"} | clock)
    assert found.name(date(2026, 1, 5)) == "o-2026-01-05-20260105.csv"
    for name in ("o-*.csv", "o-{day}.csv", "../o.csv"):
        with pytest.raises(ValidationError):
            ExpectedFile.model_validate({"file": name} | clock)


def test_a_clock_time_is_the_first_after_the_day_closes():
    zone = ZoneInfo("Asia/Hong_Kong")
    closes = datetime(2026, 1, 5, 10, tzinfo=UTC)  # 18:00 there
    assert moment_after(closes, clock_time="20:30", zone=zone) == datetime(
        2026, 1, 5, 12, 30, tzinfo=UTC
    )
    assert moment_after(closes, clock_time="02:00", zone=zone) == datetime(
        2026, 1, 5, 18, tzinfo=UTC
    )
