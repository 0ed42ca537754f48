"""What lies in one step of a night: every file with its rows, bytes and hash; written last.

The SHA-256 of a manifest becomes a link of the history, so whoever has the history can tell every
byte of the step.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from recon.model.errors import ArchiveBrokenError

FORMAT = "recon night/1"
MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class About:
    """Whose step it is."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: str
    mode: str
    step: str
    predecessor: str
    """The run whose open breaks the night carries forward; "" without one."""
    rules_digest: str
    product_version: str
    history_before: str
    """`number:hash` of the newest link when the manifest was written."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Earlier step of the same night -> SHA-256 of its manifest."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """File of the inputs -> the one that was compared in its place, or that says the same."""
    absent: tuple[str, ...] = ()
    """Sources that the night did not have; their files hold no row."""
    last_file: int = 0
    """Of the inputs: the number of the last file that was read for them; 0 for other steps."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a step."""

    name: str
    """Below the step's folder."""
    rows: int
    """0 for what has none."""
    bytes: int
    sha256: str
    schema: str
    """`orders/1`; "" for what is no table."""
    content: str
    """SHA-256 over what the rows say, whoever wrote them; for what is no table as `sha256`."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One step, whole."""

    about: About
    files: tuple[FileEntry, ...]

    def same_content(self, other: "Manifest") -> bool:
        """Whether both say the same, by whatever bytes and after whatever link."""
        return _content_of(self) == _content_of(other)


def _content_of(manifest: Manifest) -> tuple[object, ...]:
    about = {**asdict(manifest.about), "history_before": "", "last_file": 0}
    contents = sorted((each.name, each.rows, each.content) for each in manifest.files)
    return (json.dumps(about, sort_keys=True), contents)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is written."""
    about = asdict(manifest.about)
    if not manifest.about.last_file:
        del about["last_file"]
    document = {"format": FORMAT, **about, "files": [*map(asdict, manifest.files)]}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def manifest_hash(content: bytes) -> str:
    """What the history keeps of it."""
    return hashlib.sha256(content).hexdigest()


def manifest_of(content: bytes, *, name: str) -> Manifest:
    """A manifest as it was read; `name` is the file's, for the sentence.

    Raises:
        ArchiveBrokenError: it is none, or of a format that this program does not know.
    """
    try:
        document = json.loads(content) if len(content) <= MANIFEST_BYTES_MAX else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        msg = f"{name} of the archive is no manifest"
        raise ArchiveBrokenError(msg)
    written = document.pop("format", "nobody's")
    if written != FORMAT:
        msg = (
            f"{name} of the archive has the format {str(written)[:40]!r}, and this version of "
            f"recon knows {FORMAT!r}: read it with the version that wrote it, or a newer one"
        )
        raise ArchiveBrokenError(msg)
    try:
        files = tuple(FileEntry(**each) for each in document.pop("files"))
        return Manifest(About(**{**document, "absent": tuple(document["absent"])}), files)
    except (KeyError, TypeError) as error:
        msg = f"{name} of the archive is no manifest: {error}"
        raise ArchiveBrokenError(msg) from error
