"""Step 3 of a night: what it read is sealed in its folder, then the instructed money moves."""

from functools import partial

from recon.model.nights import StepSummary
from recon.steps.compare.sealed_inputs import seal_inputs
from recon.steps.files.lost_facts import reading_lost_facts
from recon.steps.ground.environment import Environment
from recon.steps.money.settle import settle as settle_after


@reading_lost_facts
def settle(run_id: str, *, environment: Environment) -> StepSummary:
    """Carry out the account's approved instructions, once what the night read is sealed.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
        ConfigurationError: live money without verified replies was not allowed in gateway.toml.
    """
    keep = partial(seal_inputs, environment=environment)
    return settle_after(run_id, environment=environment, before_money=keep)
