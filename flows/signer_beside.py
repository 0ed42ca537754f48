"""The signer that `make serve` starts beside Prefect, so that its worker holds no sign key."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from recon.config.keys import SIGN_KEY, SIGNER_VARIABLE
from recon.config.settings import load_file_settings
from recon.desk.held_keys import SANDBOX_KEYS
from recon.desk.key_files import public_text
from recon.privacy.own_files import OWNER, for_owner, make_folder
from recon.privacy.own_sockets import PATH_BYTES_MAX

COUNT_A_DAY = 100_000
"""Of each kind: the gateway is the sandbox of this machine."""
BY_RULE = ("capture", "cancel", "refund")
"""What the demo's order files may ask for without people, reviews counted among the refunds;
payouts and the end of a subscription never."""


def key_set_apart(folder: Path, *, env: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Write the signer's files, and take the key out of what everything else is started with.

    Args:
        folder: of the signer's files; the key's is for its owner alone.
        env: the file of variables that people use; it names the signer from then on.
        variables: as they were, with the key.

    Returns:
        The variables without the key, with the signer's socket.
    """
    make_folder(folder, mode=0o700)
    key, socket = variables[SIGN_KEY], _socket(folder)
    _write(folder / "key", f"{key}\n")
    if SANDBOX_KEYS.public is not None:
        _write(folder / "desk.pem", public_text(SANDBOX_KEYS.public))
    _write(folder / "signer.toml", _rules(folder, socket=socket, variables=variables))
    apart = {name: value for name, value in variables.items() if name != SIGN_KEY}
    apart[SIGNER_VARIABLE] = str(socket)
    _write(env, "".join(f"{name}={value}\n" for name, value in apart.items()))
    return apart


def _socket(folder: Path) -> Path:
    """In the folder, unless its path is longer than the name of a socket may be."""
    path = folder / "socket"
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        return path
    return Path(tempfile.mkdtemp(prefix="recon-signer-")) / "socket"


def _rules(folder: Path, *, socket: Path, variables: Mapping[str, str]) -> str:
    accounts = load_file_settings(variables).accounts
    head = {
        "socket": socket,
        "book": folder / "signed.sqlite",
        "log": folder / "signer.log",
        "sign_key_file": folder / "key",
        "desk_key_file": folder / "desk.pem",
        "config_dir": variables["RECON_CONFIG_DIR"],
    }
    lines = [f"{name} = {json.dumps(str(value))}" for name, value in head.items()]
    lines.append("must_be_proven = false # at the sandbox words count without a one-time code")
    for account in sorted(accounts):
        lines += [
            f'[accounts."{account}".by_rule.{kind}.any]\ncount = {COUNT_A_DAY}' for kind in BY_RULE
        ]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    """A file that only its owner reads, whatever the umask."""
    with open(path, "w", encoding="utf-8", opener=for_owner) as file:
        os.fchmod(file.fileno(), OWNER)
        file.write(text)
