"""What people say at the desk: who they are is proven there, their word is signed there.

Command line and form call `say`. Where a desk has a process of its own (`RECON_DESK_SOCKET`) the
word goes to its socket, else it is heard in this process: the same functions either way.
"""

import base64
import binascii
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr, TypeAdapter, ValidationError

from recon.config.keys import given
from recon.desk.asking import ask_desk
from recon.desk.held_keys import SOCKET
from recon.model.errors import SourceMissingError, UsageError
from recon.model.resolutions import Import
from recon.privacy.own_files import for_owner
from recon.steps.files import rejected_rows, words_on_files
from recon.steps.ground.desk_files import refuse_open_files
from recon.steps.ground.desk_memory import refuse_lost, remember
from recon.steps.ground.desk_turn import the_desk
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, identify, speaker
from recon.steps.money import approve, restore, sending
from recon.steps.money.approve import Narrowing
from recon.steps.people import returned_answers, set_aside, verdicts
from recon.steps.people.returned_answers import Form
from recon.steps.people.sign_off import Night, sign
from recon.steps.people.signed_folder import NightToSign, SignedCopy
from recon.steps.people.taken_back import words_taken_back

Body = Mapping[str, Any]
Reply = dict[str, Any]
Acts = Mapping[str, Callable[[Body, Person, Environment], Reply]]
_IMPORT = TypeAdapter(Import)
_NIGHT = TypeAdapter(Night)
_TEXTS = TypeAdapter(tuple[str, ...])
TEXT_CHARACTERS_MAX = 4_000
FILE_NAME_CHARACTERS_MAX = 255


def say(
    act: str,
    body: Body,
    *,
    who: tuple[str, SecretStr | None],
    environment: Environment,
    form: Form | None = None,
    more: Acts | None = None,
) -> Reply:
    """One person's word, to the desk's socket where there is one.

    Args:
        act: one of `ACTS`.
        body: what is said.
        who: short name and one-time code.
        environment: of this process.
        form: how a returned workbook is read, where the desk is this process.
        more: acts of what stands above this room, where the desk is this process.

    Raises:
        ReconError: the desk refuses, in its words.
    """
    name, code = who
    request = {**body, "person": name, "code": code.get_secret_value() if code else ""}
    if given(environment.variables, SOCKET):
        return ask_desk(Path(environment.variables[SOCKET]), act, body=request)
    with the_desk(environment):
        return hear(act, request, origin="", environment=environment, form=form, more=more)


def hear(
    act: str,
    body: Body,
    *,
    origin: str,
    environment: Environment,
    form: Form | None = None,
    more: Acts | None = None,
) -> Reply:
    """What the desk does with a word: proves who speaks, then notes and signs it.

    Raises:
        ReconError: what a step refuses; or a word that is none.
    """
    acts = {**ACTS, **(more or {})}
    do = acts.get(act)
    if do is None and act != IMPORT:
        msg = f"the desk hears nothing of the kind {act[:40]!r} (known: {', '.join(sorted(acts))})"
        raise UsageError(msg)
    refuse_open_files(environment)
    refuse_lost(environment)
    code = text_said(body, "code")
    prove = speaker if act in OF_FILES else identify
    person = prove(
        text_said(body, "person"),
        code=SecretStr(code) if code else None,
        environment=environment,
        origin=origin,
    )
    if do is not None:
        reply = do(body, person, environment)
    else:
        reply = _import(body, person, environment, form=form)
    remember(environment)
    return {**reply, "before": person.before}


def _approve(body: Body, person: Person, environment: Environment) -> Reply:
    only = Narrowing(
        text_said(body, "merchant_id"),
        text_said(body, "account_id"),
        _texts(body, "instruction_ids"),
    )
    wanted, complete = approve.approve(
        text_said(body, "list"), person=person, environment=environment, only=only
    )
    return {"count": len(wanted.items), "complete": complete}


def _reject(body: Body, person: Person, environment: Environment) -> Reply:
    count, overruled = approve.reject(
        _texts(body, "instruction_ids"),
        person=person,
        reason=text_said(body, "reason"),
        environment=environment,
    )
    return {"count": count, "overruled": list(overruled)}


def _resolve(body: Body, person: Person, environment: Environment) -> Reply:
    verdict = text_said(body, "verdict")
    decision = verdicts.resolve(
        text_said(body, "instruction_id"),
        verdict=verdict,
        evidence=text_said(body, "evidence"),
        message=text_said(body, "message"),
        person=person,
        environment=environment,
    )
    sentence = verdicts.sentence_of(decision, verdict=verdict)
    return {"sentence": sentence, "decided": decision.decided}


def _take_back(body: Body, person: Person, environment: Environment) -> Reply:
    return {
        "what": words_taken_back(text_said(body, "subject"), person=person, environment=environment)
    }


def _release(body: Body, person: Person, environment: Environment) -> Reply:
    run_id, reason = text_said(body, "run_id"), text_said(body, "reason")
    lifted = verdicts.release(run_id, reason=reason, person=person, environment=environment)
    return {"complete": lifted}


def _agree_write_off(body: Body, person: Person, environment: Environment) -> Reply:
    answer_id = _number(body, "answer_id")
    outcome = verdicts.agree_write_off(answer_id, person=person, environment=environment)
    return {"break_id": outcome}


def _allow_sending(body: Body, person: Person, environment: Environment) -> Reply:
    reason = text_said(body, "reason")
    allowed = sending.allow_sending(person=person, reason=reason, environment=environment)
    return {"complete": allowed}


def _accept_restore(body: Body, person: Person, environment: Environment) -> Reply:
    reason = text_said(body, "reason")
    waiting = restore.accept_restore(person=person, reason=reason, environment=environment)
    return {"waiting": waiting}


def _set_aside(body: Body, person: Person, environment: Environment) -> Reply:
    path, reason = Path(text_said(body, "file")), text_said(body, "reason")
    kept = set_aside.set_file_aside(path, person=person, reason=reason, environment=environment)
    return {"kept": "" if kept is None else str(kept)}


def _dismiss(body: Body, person: Person, environment: Environment) -> Reply:
    row, reason = _number(body, "row"), text_said(body, "reason")
    reject = rejected_rows.dismiss_row(row, person=person, why=reason, environment=environment)
    return {"source": str(reject.source), "line": reject.line}


def _read_again(body: Body, person: Person, environment: Environment) -> Reply:
    words_on_files.read_again(
        text_said(body, "file"),
        account=(text_said(body, "merchant_id"), text_said(body, "account_id")),
        person=person,
        reason=text_said(body, "reason"),
        environment=environment,
    )
    return {}


def _dismiss_file(body: Body, person: Person, environment: Environment) -> Reply:
    file = words_on_files.dismiss(
        text_said(body, "file"),
        account=(text_said(body, "merchant_id"), text_said(body, "account_id")),
        person=person,
        reason=text_said(body, "reason"),
        environment=environment,
    )
    return {"business_date": file.business_date.isoformat()}


def _import(body: Body, person: Person, environment: Environment, *, form: Form | None) -> Reply:
    if form is None:
        msg = "this desk reads no workbooks"
        raise UsageError(msg)
    name = Path(text_said(body, "name")).name[:FILE_NAME_CHARACTERS_MAX]
    try:
        content = base64.b64decode(str(body.get("content", "")), validate=True)
    except (binascii.Error, ValueError):
        msg = "the workbook did not arrive whole"
        raise UsageError(msg) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (name or "workbook.xlsx")
        with open(path, "wb", opener=for_owner) as file:
            file.write(content)
        done = returned_answers.import_resolutions(
            path, person=person, form=form, environment=environment
        )
    return {"done": _IMPORT.dump_python(done, mode="json")}


IMPORT, SIGN_OFF = "import", "sign-off"
ACTS: Acts = {
    "approve": _approve,
    "reject": _reject,
    "resolve": _resolve,
    "release": _release,
    "take-back": _take_back,
    "agree-write-off": _agree_write_off,
    "allow-sending": _allow_sending,
    "accept-restore": _accept_restore,
    "set-aside": _set_aside,
    "dismiss": _dismiss,
    "read-again": _read_again,
    "dismiss-file": _dismiss_file,
}
"""What may be said, beside `IMPORT` and what is handed in because it needs drawn workbooks."""
OF_FILES = frozenset({"read-again", "dismiss-file"})
"""Move no money: at the sandbox, where nobody is declared, anybody says them."""


def acts_of_signatures(copy: SignedCopy) -> Acts:
    """What is said of a night's workbook, with what draws its signed copy."""
    return {SIGN_OFF: partial(_sign, copy=copy)}


def _sign(body: Body, person: Person, environment: Environment, *, copy: SignedCopy) -> Reply:
    wanted = NightToSign(
        text_said(body, "run_id"), text_said(body, "role"), text_said(body, "workbook_sha256")
    )
    night = sign(wanted, person=person, copy=copy, environment=environment)
    return {"night": _NIGHT.dump_python(night, mode="json")}


def file_body(path: Path) -> Body:
    """A workbook as it goes to the desk, which may not read whoever's file it is.

    Raises:
        SourceMissingError: there is no such file.
    """
    if not path.is_file():
        msg = f"the workbook {path} does not exist"
        raise SourceMissingError(msg)
    return {"name": path.name, "content": base64.b64encode(path.read_bytes()).decode()}


def import_of(reply: Reply) -> Import:
    """What became of a workbook, as the desk replied."""
    return _IMPORT.validate_python(reply["done"])


def night_of(reply: Reply) -> Night:
    """A night as it stands after a signature, as the desk replied."""
    return _NIGHT.validate_python(reply["night"])


def text_said(body: Body, name: str) -> str:
    """A text of what was said; "" where it was left out.

    Raises:
        UsageError: it is none, or too long.
    """
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
        msg = f"{name} is a text of at most {TEXT_CHARACTERS_MAX} characters"
        raise UsageError(msg)
    return value


def _number(body: Body, name: str) -> int:
    text = text_said(body, name)
    if not (text.isascii() and text.isdigit()):
        msg = f"{name} is a number"
        raise UsageError(msg)
    return int(text)


def _texts(body: Body, name: str) -> tuple[str, ...]:
    try:
        return _TEXTS.validate_python(body.get(name, ()))
    except ValidationError:
        msg = f"{name} is a list of texts"
        raise UsageError(msg) from None
