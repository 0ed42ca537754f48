from typing import Any

import pytest

from recon.config.keys import storage_keys
from recon.config.night_archive import archive_of
from recon.model.errors import ConfigurationError

S3 = {"path": "s3://books/archive", "access_key_env": "ID", "secret_key_env": "SECRET"}


def test_without_a_file_nights_lie_beside_the_database() -> None:
    """Nobody has to declare anything."""
    assert archive_of({}).path == ""
    assert not archive_of({"archive": {"path": "/var/lib/recon/archive"}}).is_remote
    assert archive_of({"archive": S3}).is_remote


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"archiv": {}}, "archiv"),
        ({"archive": {"path": "archive"}}, "path: neither a whole path"),
        ({"archive": {"path": "/a", "region": "eu-west-2"}}, "are for a path s3://"),
        ({"archive": S3 | {"path": "s3://books/../other"}}, "path: no address"),
        ({"archive": S3 | {"secret_key_env": ""}}, "secret_key_env and secret_key_file are needed"),
        ({"archive": S3 | {"endpoint": "http://10.0.0.7:9000"}}, "must be https"),
    ],
)
def test_a_declaration_that_cannot_hold_is_refused_by_name(
    tables: dict[str, Any], named: str
) -> None:
    """The file and the key are named before a night begins."""
    with pytest.raises(ConfigurationError, match=rf"archive\.toml: .*{named}"):
        archive_of(tables)


def test_keys_come_from_the_environment_and_one_that_is_not_set_is_named() -> None:
    """No key stands in the file."""
    settings = archive_of({"archive": S3}).model_copy()

    assert storage_keys(settings, {"ID": " a ", "SECRET": "s"}) == ("a", "s")
    with pytest.raises(ConfigurationError, match="SECRET"):
        storage_keys(settings, {"ID": "a"})
