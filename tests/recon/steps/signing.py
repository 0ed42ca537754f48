"""Signing in tests, by people who look at the file that lies there."""

from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from recon.desk.held_keys import make_keys
from recon.steps.approvals.sign_off import Night, NightToSign, file_to_sign, sign
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person
from reports.reading.signed_copy import signed_bytes


def sign_seen(
    run_id: str, *, role: str, person: Person, environment: Environment, seen: str = ""
) -> Night:
    """One signature under the workbook as it is now, unless another was looked at."""
    path, digest = file_to_sign(run_id, environment=environment)
    copy: Any = signed_bytes if path and is_zipfile(path) else lambda content, **_: content
    wanted = NightToSign(run_id, role, seen or digest)
    return sign(wanted, person=person, copy=copy)


def desk_with_keys(folder: Path) -> dict[str, str]:
    """Variables of a desk with a new pair of keys; without the last one those of a night."""
    folder.mkdir(exist_ok=True)
    make_keys(folder / "desk.key", public=folder / "desk.pub")
    return {
        "RECON_DESK_PUBLIC_KEY_FILE": str(folder / "desk.pub"),
        "RECON_DESK_KEY_FILE": str(folder / "desk.key"),
    }
