"""The folder that an auditor gets: written once from its beginning to its manifest, never added to.

The manifest comes last, so a folder without one was not finished by whoever wrote it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from recon.archive.manifest import MANIFEST
from recon.model.durable import flush_folder
from recon.model.errors import FolderError, OutputError
from recon.privacy.own_files import for_group, make_folder

SUMS = "files.sha256"
"""Every file but the manifest and itself, as `sha256sum -c` reads it."""


@dataclass(frozen=True, slots=True)
class Written:
    """One file of the folder."""

    name: str
    bytes: int
    sha256: str


class EvidenceFolder:
    """An empty folder that is filled."""

    def __init__(self, root: Path) -> None:
        """Take an empty folder, or make it.

        Raises:
            FolderError: something lies in it, or it cannot be made.
        """
        self._root = root
        self.files: list[Written] = []
        try:
            make_folder(root)
            names = sorted(path.name for path in root.iterdir())
        except OSError as error:
            msg = f"{root} cannot be used ({error.strerror}); nothing was written: name another"
            raise FolderError(msg) from error
        if names:
            why = "is not empty"
            if MANIFEST not in names:
                why = f"is not empty and has no {MANIFEST}: what was copied there was not finished"
            msg = f"{root} {why}; nothing was written: name an empty folder"
            raise FolderError(msg)

    def write(self, name: str, content: bytes) -> Written:
        """Write one file under its whole name.

        Raises:
            OutputError: the folder cannot be written.
        """
        path = self._root / name
        try:
            make_folder(path.parent)
            with open(path, "xb", opener=for_group) as file:
                file.write(content)
        except OSError as error:
            msg = (
                f"{path} cannot be written ({error.strerror}); the folder has no {MANIFEST} and is "
                "not finished: remove it, then copy again"
            )
            raise OutputError(msg) from error
        file_written = Written(name, len(content), hashlib.sha256(content).hexdigest())
        self.files.append(file_written)
        return file_written

    def has(self, name: str) -> bool:
        """Whether a file was written."""
        return any(each.name == name for each in self.files)

    def finish(self, about: Mapping[str, object]) -> str:
        """Write the list of hashes, then the manifest; gives the manifest's SHA-256.

        Raises:
            OutputError: the folder cannot be written.
        """
        ordered = sorted(self.files, key=lambda each: each.name)
        sums = "".join(f"{each.sha256}  {each.name}\n" for each in ordered)
        self.write(SUMS, sums.encode())
        files = [asdict(each) for each in sorted(self.files, key=lambda each: each.name)]
        document = json.dumps({**about, "files": files}, indent=2, sort_keys=True) + "\n"
        manifest = self.write(MANIFEST, document.encode())
        flush_folder(self._root)
        return manifest.sha256
