"""The files that say to the desk who is who: nobody else may change them."""

from pathlib import Path

from recon.config.keys import given
from recon.model.errors import ConfigurationError
from recon.privacy.own_files import others_may_change
from recon.steps.ground.environment import Environment

CONFIG_DIR = "RECON_CONFIG_DIR"


def refuse_open_files(environment: Environment) -> None:
    """Hear nobody while others could declare approvers, or move the gateway to the sandbox.

    Towards the sandbox nothing is looked at: a demo runs under any umask.

    Raises:
        ConfigurationError: naming the file and what closes it.
    """
    if not environment.desk.must_be_proven or not given(environment.variables, CONFIG_DIR):
        return
    for path in sorted(Path(environment.variables[CONFIG_DIR]).glob("*.toml")):
        if others_may_change(path):
            msg = (
                f"{path} says who is heard at the desk, and others can change it: let root or the "
                f"desk's login own it and its folder (chmod go-w {path} {path.parent}); nothing "
                "was changed"
            )
            raise ConfigurationError(msg)
