"""Signing in tests, by people who look at the file that lies there."""

from typing import Any
from zipfile import is_zipfile

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
