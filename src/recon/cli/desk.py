"""`recon desk`: the process that people decide at, and its keys."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from recon.cli.speaking import say

desk = typer.Typer(help="The desk for people.", no_args_is_help=True)


@desk.callback()
def _desk() -> None:
    """The desk for people: it proves who speaks and signs what they agree to."""


@desk.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="Where the two key files go; the desk's own.")],
) -> None:
    """Make the desk's key: the private half for the desk alone, the public one for every night."""
    from recon.desk.endorsement import key_id
    from recon.desk.held_keys import PRIVATE, PUBLIC
    from recon.desk.key_files import make_keys

    private, public = folder / "desk.key", folder / "desk.pub"
    made = make_keys(private, public=public)
    say(f"Made the desk's key {key_id(made)}.")
    say(f"For the desk alone: {PRIVATE}={private} (mode 0600; keep a copy where only you can)")
    say(f"For nights and everybody who checks: {PUBLIC}={public}")


@desk.command("serve")
def serve(
    socket: Annotated[
        Path | None, typer.Argument(help="Where it listens; else RECON_DESK_SOCKET.")
    ] = None,
) -> None:
    """Hear people until it is ended: commands and forms bring their words to its socket."""
    from recon.cli.workbooks import form, signing_acts
    from recon.desk.held_keys import PRIVATE, SOCKET
    from recon.desk.server import serve_until_ended
    from recon.model.errors import ConfigurationError
    from recon.steps.ground.desk_files import refuse_open_files
    from recon.steps.ground.desk_memory import remember
    from recon.steps.ground.desk_turn import the_desk
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.people.at_desk import hear

    path = socket or Path(os.environ.get(SOCKET, ""))
    if not path.name:
        msg = f"say where the desk listens: recon desk serve SOCKET, or set {SOCKET}"
        raise ConfigurationError(msg)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        if environment.desk.private is None:
            msg = f"this process has no key of the desk: set {PRIVATE} (`recon desk init`)"
            raise ConfigurationError(msg)
        refuse_open_files(environment)
        with the_desk(environment) as go_on:
            remember(environment)
            listen = partial(hear, environment=environment, form=form(), more=signing_acts())

            def heard(act: str, body: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
                go_on()
                return listen(act, body, origin=origin)

            serve_until_ended(
                path,
                hear=heard,
                ready=lambda at: say(
                    f"The desk hears people at {at}; its key is {environment.desk.name}."
                ),
            )


@desk.command("restored")
def restored() -> None:
    """Go on after a backup was put back: by the words that the database has now."""
    from recon.desk.held_keys import PRIVATE
    from recon.model.errors import ConfigurationError
    from recon.steps.ground.desk_memory import go_on_restored
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        if environment.desk.memory is None:
            msg = f"this process has no key of the desk: set {PRIVATE} (`recon desk init`)"
            raise ConfigurationError(msg)
        lost = go_on_restored(environment)
    say(
        f"The desk goes on by what the database has; words up to {lost} were given, and are lost."
        if lost
        else "The database has every word that this desk remembers; nothing was changed."
    )
