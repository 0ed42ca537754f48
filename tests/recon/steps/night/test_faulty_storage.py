"""An object store with faults: money moves only over what it kept, and its waits have an end."""

from contextlib import nullcontext
from dataclasses import replace
from random import Random

import pytest

from recon.archive.storage import WAITED_SECONDS_MAX, RetryDeadline, s3_storage
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveError
from recon.model.step_progress import reported_to
from recon.steps.night import whole_night
from tests.recon.archive.test_storage import KEYS
from tests.recon.files.s3_server import serving_s3, write_certificate
from tests.recon.steps.conftest import UP_TO_COMPARE, capture, plain_workbooks


@pytest.fixture(scope="module")
def storage():
    with serving_s3("faulty-nights") as server:
        yield server


@pytest.fixture
def stored(merchant, storage):
    """A merchant whose nights lie there, with one capture to send."""
    (merchant.folder / "config" / "archive.toml").write_text(
        f'[archive]\npath = "s3://faulty-nights/{merchant.folder.name}"\n'
        f'endpoint = "{storage.address}"\nregion = "us-east-1"\n'
        'access_key_env = "S3_ID"\nsecret_key_env = "S3_SECRET"\n'
    )
    merchant.variables |= KEYS
    storage.process.fault = lambda _: ""
    capture(merchant)
    return merchant


def night(merchant, *, seconds=WAITED_SECONDS_MAX, steps=UP_TO_COMPARE):
    """Steps of a night with so much patience, without its pauses; what was heard of its waits."""
    heard: list[str] = []
    elapsed = iter(range(1_000_000))
    patience = RetryDeadline(
        pause=lambda _: None, elapsed=lambda: next(elapsed) * 0.001, seconds=seconds
    )
    with merchant.environment() as opened, reported_to(lambda way: heard.append(str(way))):
        environment = replace(opened, archive_deadline=patience)
        with whole_night.hold(merchant.request, environment=environment) as run_id:
            whole_night.walk(
                steps,
                run_id,
                environment=environment,
                workbooks=plain_workbooks(),
                progress=merchant.told.append,
            )
    return [each for each in heard if "waited for the archive" in each]


def captures(merchant):
    return len(merchant.effects())


@pytest.mark.parametrize(
    "object_name", ["/inputs/orders.parquet", "/inputs/manifest.json", "/facts/orders/"]
)
def test_what_a_storage_did_not_keep_is_missed_before_money(stored, storage, object_name):
    storage.process.fault = lambda asked: (
        "dropped" if asked.method == "PUT" and object_name in asked.path else ""
    )
    with pytest.raises(ArchiveError, match=r"nothing was sent: .* it kept .*, and has no such obj"):
        night(stored)
    assert captures(stored) == 0

    storage.process.fault = lambda _: ""
    night(stored)
    assert captures(stored) == 1


def test_a_busy_storage_is_waited_for_aloud_and_not_for_ever(stored, storage):
    """Two of five answers are SlowDown: the night goes on and says that it waits. Where all are, it
    ends, within its patience."""
    chance = Random(1)
    storage.process.fault = lambda _: "busy" if chance.random() < 0.4 else ""
    heard = night(stored)
    assert captures(stored) == 1
    assert heard[0].endswith(
        "of 300 seconds waited for the archive s3://faulty-nights/" + stored.folder.name
    )

    storage.process.fault = lambda _: "busy"
    with pytest.raises(ArchiveError, match="it was waited for 3 s in all"):
        night(stored, seconds=3)
    assert captures(stored) == 1


@pytest.mark.parametrize("checksums", [True, False])
def test_over_https_checksums_that_a_storage_does_not_understand_can_be_left_out(
    tmp_path, monkeypatch, *, checksums
):
    """One that knows trailers takes both; an older one only objects without them."""
    certificate = write_certificate(tmp_path / "storage.pem")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    bucket = f"tls-{checksums}".lower()
    with serving_s3(bucket, certificate=certificate) as server:
        settings = ArchiveSettings(
            path=f"s3://{bucket}/archive",
            endpoint=server.address,
            region="us-east-1",
            access_key_env="S3_ID",
            secret_key_env="S3_SECRET",
            checksums=checksums,
        )
        patience = RetryDeadline(pause=lambda _: None, elapsed=lambda: 0.0, seconds=1)
        storage = s3_storage(settings, keys=KEYS, deadline=patience)
        with storage.writing("a.parquet") as file:
            file.write(b"PAR1")
        assert storage.read("a.parquet") == b"PAR1"

        server.process.fault = lambda asked: "no trailers" if asked.has_trailer else ""
        refused = pytest.raises(OSError, match="NotImplemented") if checksums else nullcontext()
        with refused, storage.writing("b.parquet") as file:
            file.write(b"PAR1")
        assert storage.names("") == ["a.parquet"] + ["b.parquet"] * (not checksums)
