from pathlib import Path

from recon.archive.opening import open_storage
from recon.archive.remote_storage import RemoteStorage
from recon.config.night_archive import ArchiveSettings


def test_nights_lie_where_the_settings_say_and_else_beside_what_is_there(tmp_path: Path) -> None:
    """Nobody has to name an archive; who does gets that one."""
    variables = {"ID": "a", "SECRET": "b"}
    keys = {"access_key_env": "ID", "secret_key_env": "SECRET"}
    remote = ArchiveSettings(path="s3://books/nights", **keys)
    named = ArchiveSettings(path="/var/lib/nights")
    beside, there, elsewhere = (
        open_storage(settings, beside=tmp_path, variables=variables)
        for settings in (ArchiveSettings(), named, remote)
    )

    assert beside.shown == str(tmp_path / "archive")
    assert there.shown == "/var/lib/nights"
    assert isinstance(elsewhere, RemoteStorage)
    assert elsewhere.shown == "s3://books/nights"
