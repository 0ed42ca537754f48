"""Signing in tests, by people who look at the file that lies there."""

from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.steps.people.sign_off import Night, file_to_sign, sign


def sign_seen(run_id: str, *, role: str, person: Person, environment: Environment) -> Night:
    """One signature under the workbook as it is now."""
    _, seen = file_to_sign(run_id, environment=environment)
    return sign(run_id, role=role, seen=seen, person=person, environment=environment)
