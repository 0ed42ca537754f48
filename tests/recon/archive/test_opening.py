from recon.archive.storage import RemoteStorage, open_storage
from recon.config.night_archive import ArchiveSettings
from tests.recon.archive.test_remote_storage import impatient


def test_nights_lie_where_the_settings_say() -> None:
    """A path is a folder of this machine, an address of S3 is that storage."""
    variables = {"ID": "a", "SECRET": "b"}
    keys = {"access_key_env": "ID", "secret_key_env": "SECRET"}
    remote = ArchiveSettings(path="s3://books/nights", **keys)
    named = ArchiveSettings(path="/var/lib/nights")
    there, elsewhere = (
        open_storage(settings, variables=variables, patience=impatient())
        for settings in (named, remote)
    )

    assert there.shown == "/var/lib/nights"
    assert isinstance(elsewhere, RemoteStorage)
    assert elsewhere.shown == "s3://books/nights"
