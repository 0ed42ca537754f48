"""Which storage the settings name."""

from collections.abc import Mapping
from pathlib import Path

from recon.archive.local_storage import LocalStorage
from recon.archive.remote_storage import Patience, s3_storage
from recon.archive.storage import Storage
from recon.config.night_archive import ArchiveSettings


def open_storage(
    settings: ArchiveSettings, *, variables: Mapping[str, str], patience: Patience
) -> Storage:
    """The archive of an account's nights.

    Args:
        settings: What archive.toml says, with a path.
        variables: The environment's, for keys.
        patience: How long a remote storage that fails is waited for.

    Raises:
        ConfigurationError: a key of a remote storage is missing.
    """
    if settings.is_remote:
        return s3_storage(settings, keys=variables, patience=patience)
    return LocalStorage(Path(settings.path))
