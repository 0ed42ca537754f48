"""`recon init`: from a folder of files to a configuration and a first workbook; never live."""

import sys
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, get_args

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.output import echo, echo_error, show
from recon.cli.reconcile_commands import AsOf, reconcile
from recon.model.errors import SourceUnreadableError
from recon.privacy.displayed_text import redacted
from recon.privacy.own_files import OWNER, folder_for_now, make_folder, replace_result

if TYPE_CHECKING:
    from recon.steps.files.proposed_layouts import Checked, Kinds, Proposed

UNANSWERED_EXIT_CODE = 2
REFUSED_EXIT_CODE = 1
DISPLAYED_ROWS = 3
DISPLAYED_REJECTS_MAX = 10
DISPLAYED = {
    "orders": "order_no ordered_at currency amount status",
    "gateway": "order_no transaction_id transaction_date currency amount payment_status",
    "ledger": "entry_id order_no entry_type booked_at currency amount",
    "settlement": "batch_id settled_on entry_type order_no currency gross fee net",
    "bank": "booked_on currency amount",
}
"""Kind of file -> the columns of a row that say whether it was understood; no text of a bank."""
AMOUNTS = frozenset({"amount", "gross", "fee", "net"})
NONE = "none"
NOT_OURS = frozenset({".toml", ".env", ".md", ".log", ".pdf", ".sqlite"})
"""Endings of files that nobody takes for an export."""
_Tables = dict[str, Mapping[str, object]]
"""Header of a table without its brackets -> its keys."""


class _Group(NamedTuple):
    """Files of one layout, and what was understood of them."""

    paths: tuple[Path, ...]
    kind: str
    layout: str
    """Its table; "" of what is written as ours."""
    checked: "tuple[Checked, ...]"


class _Answers:
    """What a person decides: by options first, then at a terminal; what is left is told by name."""

    def __init__(self, given: Sequence[str], *, names: Collection[str]) -> None:
        self._given: dict[str, str] = {}
        for text in given:
            key, equals, decided = text.partition("=")
            if not key or not equals:
                msg = f"--answer {text} is not KEY=TEXT"
                raise typer.BadParameter(msg)
            self._given[key] = decided
        self._last: dict[str, str] = {}
        self._names = names
        self.open: dict[str, str] = {}
        """Key -> what is asked and nobody answered."""

    def of(self, names: Sequence[str]) -> dict[str, str]:
        """What was decided of these files; a key without a file only where there are no others."""
        mine = {key: text for key, text in self._given.items() if ":" not in key}
        given = mine if self._names == {*names} else {}
        for name in names:
            own = self._given.items()
            given |= {k.removeprefix(f"{name}:"): t for k, t in own if k.startswith(f"{name}:")}
        return given

    def ask(self, key: str, question: str, *, name: str = "") -> str | None:
        """One answer; None where nobody gives it."""
        full = f"{name}:{key}" if name else key
        given = self._given.get(full, self._given.get(key))
        if given is None and sys.stdin is not None and sys.stdin.isatty():
            echo(f"{full}: {question}")
            given = typer.prompt(key, default=self._last.get(key))
            self._last[key] = given
        if given is None:
            self.open[full] = question
        return given

    def refuse_open(self) -> None:
        """End with what nobody answered, each by its key."""
        if self.open:
            for key, question in self.open.items():
                echo_error(f"{key}: {question}")
            echo_error(f"{len(self.open)} asked: --answer KEY=TEXT, once for each.")
            raise typer.Exit(UNANSWERED_EXIT_CODE)


def init(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="The folder of your files, without it this one; or some of them."),
    ] = None,
    merchant: Merchant = "",
    account: Account = "",
    kind: Annotated[
        str,
        typer.Option(
            "--as",
            help="What all files are that are named: orders, gateway, ledger, settlement, bank or "
            "instructions; without it their contents decide.",
        ),
    ] = "",
    answer: Annotated[
        list[str] | None,
        typer.Option(
            help="What is asked, as KEY=TEXT (zone=Europe/Lisbon) or of one file "
            "FILE:KEY=TEXT; may repeat."
        ),
    ] = None,
    layout_only: Annotated[
        bool,
        typer.Option(
            "--layout-only",
            help="Only print the layout (TOML) of these files, samples of one kind; up to 8 MiB "
            "each, more decide more.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write files anew that are there already.")
    ] = False,
    as_of: AsOf = "",
) -> None:
    """Write the configuration of one account over your own files, and a first workbook of them.

    Shows what it understood of each file, asks only what two readings fit, and never sends
    anything. A file that exists is kept. Ends with 2 where a question is left and nobody is at the
    terminal, else as `recon reconcile`.
    """
    from recon.config.settings import load_file_settings
    from recon.steps.files.proposed_layouts import KINDS

    if kind and kind not in KINDS:
        msg = f"--as {kind} is none of {', '.join(KINDS)}"
        raise typer.BadParameter(msg)
    folder, files = _files(paths or [Path()])
    answers = _Answers(answer or (), names={path.name for path in files})
    if layout_only:
        _print_layout(files, kind=kind, account=(merchant, account), answers=answers)
        return
    merchant = merchant or answers.ask("merchant", "its number at the gateway (--merchant)") or ""
    account = account or answers.ask("account", "its number at the gateway (--account)") or ""
    answers.refuse_open()
    groups = [
        group
        for some in _alike(files, account=(merchant, account))
        if (group := _understood(*some, kind=kind, account=(merchant, account), answers=answers))
    ]
    for group in [each for each in groups if each.kind == "ledger"][1:]:
        echo_error(f"{group.paths[0].name} is left out: a night reads one ledger")
        groups.remove(group)
    if not answers.open and not any(each.kind == "orders" for each in groups):
        answers.open["orders"] = f"no file of {folder} is one of orders: name one and its kind"
    written = _merchants_and_rules(
        groups, account=f"{merchant}/{account}", folder=folder, answers=answers
    )
    answers.refuse_open()
    dotenv = _dotenv(folder, merchant=merchant, account=account)
    with folder_for_now("recon-init-") as drafts:
        _lay_down(written, folder=drafts, force=True)
        settings = load_file_settings({"RECON_CONFIG_DIR": f"{drafts}/config"})
        for sentence in _lay_down(written | {".env": dotenv}, folder=folder, force=force):
            echo(sentence)
        (own,) = settings.accounts.values()
        for inbox in (*own.inboxes, own.reports, *(folder / bank for bank in settings.rules.bank)):
            make_folder(inbox)
        _first_workbook(groups, folder=folder, drafts=drafts, as_of=as_of)


def _first_workbook(groups: Sequence[_Group], *, folder: Path, drafts: Path, as_of: str) -> None:
    """Reconcile what was understood, by what was written of it, whatever was kept."""
    of: dict[str, list[Path]] = {}
    for group in groups:
        of.setdefault(group.kind, []).extend(group.paths)
    outs = (folder / f"first{f'-{n}' * (n > 1)}" for n in count(1))
    reconcile(
        orders=of["orders"],
        gateway=of.get("gateway") or [_not_queried(groups, folder=drafts)],
        out=next(path for path in outs if not path.exists()),
        as_of=as_of,
        ledger=of.get("ledger"),
        settlement=of.get("settlement"),
        bank=of.get("bank"),
        layout=[drafts / "config/merchants.toml"],
        rules=drafts / "config/rules.toml",
    )


def _files(paths: Sequence[Path]) -> tuple[Path, list[Path]]:
    """The folder, and its files or those of it that were named."""
    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0].resolve()
        return folder, [
            path
            for path in sorted(folder.iterdir())
            if path.is_file() and path.name[0] not in ".~" and path.suffix not in NOT_OURS
        ]
    return paths[0].resolve().parent, list(paths)


def _alike(
    files: Sequence[Path], *, account: tuple[str, str]
) -> Iterator[tuple[tuple[Path, ...], "Kinds | None"]]:
    """Files whose names differ in numbers alone are samples of one layout, if a kind fits all.

    Beside them what they are, where that was asked.
    """
    from recon.files.proposing.proposal import pattern_of
    from recon.steps.files.proposed_layouts import kinds_of

    groups: dict[str, list[Path]] = {}
    for path in files:
        groups.setdefault(pattern_of([path.name]), []).append(path)
    for group in groups.values():
        kinds = kinds_of(group, account=account) if len(group) > 1 else None
        if kinds is None or kinds.fitting:
            yield tuple(group), kinds
        else:
            yield from (((path,), None) for path in group)


def _print_layout(
    files: Sequence[Path], *, kind: str, account: tuple[str, str], answers: _Answers
) -> None:
    group = _reported_kind(files, kind=kind, account=account, answers=answers)
    proposed = _proposed(files, kind=group, account=account, answers=answers) if group else None
    answers.refuse_open()
    if proposed is None:
        raise typer.Exit(REFUSED_EXIT_CODE)
    echo(proposed.text.rstrip("\n") or "# written as ours: it needs no layout")
    for path, checked in zip(files, proposed.checked, strict=True):
        _notify(path, checked)
    if not proposed.usable:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _understood(
    paths: tuple[Path, ...],
    kinds: "Kinds | None",
    *,
    kind: str,
    account: tuple[str, str],
    answers: _Answers,
) -> _Group | None:
    """What files of one layout are, shown with their first rows; None: none, or not known yet."""
    kind = _reported_kind(paths, kinds, kind=kind, account=account, answers=answers)
    if not kind:
        return None
    proposed = _proposed(paths, kind=kind, account=account, answers=answers)
    if proposed is None:
        return None
    echo(f"{paths[0].name}: {kind}{f', and {len(paths) - 1} more like it' * (len(paths) > 1)}")
    rows = proposed.checked[0].rows
    if rows is not None and kind in DISPLAYED:
        shown = rows.head(DISPLAYED_ROWS).to_dict("records")
        show([_shown(row) for row in shown], columns=DISPLAYED[kind].split())
    for path, checked in zip(paths, proposed.checked, strict=True):
        _notify(path, checked)
    return _Group(paths, kind, proposed.text, proposed.checked)


def _reported_kind(
    paths: Sequence[Path],
    kinds: "Kinds | None" = None,
    *,
    kind: str,
    account: tuple[str, str],
    answers: _Answers,
) -> str:
    """The kind that a person named or only one of which the contents fit; "" of none."""
    from recon.config.file_layouts import STANDARD
    from recon.config.rules import Rules
    from recon.files.typing.table_schema import BANK
    from recon.steps.files.proposed_layouts import KINDS, checked, kinds_of

    name = paths[0].name
    decided = kind or answers.of([path.name for path in paths]).get("kind", "")
    if not decided:
        fitting, why = kinds or kinds_of(paths, account=account)
        if not fitting:
            if checked(paths[0], STANDARD, Rules(), schema=BANK).source is None:
                echo_error(f"{name} is left out: {why}")
                return ""
            fitting = ("bank",)  # messages of a bank have no layout
        decided = fitting[0]
        if len(fitting) > 1:
            which = " or ".join(fitting)
            ask = f"is it a file of {which}? ({NONE}: it is left out)"
            decided = answers.ask("kind", ask, name=name) or NONE
    if decided not in {*KINDS, NONE}:
        msg = f"{name}:kind={decided} is none of {', '.join(KINDS)}, {NONE}"
        raise typer.BadParameter(msg)
    return "" if decided == NONE else decided


def _proposed(
    paths: Sequence[Path], *, kind: str, account: tuple[str, str], answers: _Answers
) -> "Proposed | None":
    """The layout once nothing is asked of it; None where somebody must answer before."""
    from recon.config.file_layouts import STANDARD
    from recon.config.settings import load_rules
    from recon.files.proposing.proposal import Proposal
    from recon.steps.files.proposed_layouts import KINDS, Proposed, checked, propose_layout

    rules = load_rules(config_dir=None)
    schema = KINDS[kind].schema
    decided = answers.of([path.name for path in paths])
    decided.pop("kind", None)
    while True:
        try:
            proposed = propose_layout(
                paths, kind=kind, rules=rules, account=account, answers=decided
            )
        except SourceUnreadableError as error:
            found = tuple(checked(path, STANDARD, rules, schema=schema) for path in paths)
            if kind == "bank" and all(each.source for each in found):  # messages have no layout
                return Proposed("", Proposal({}, {}, (), ()), STANDARD, found)
            echo_error(str(error))
            return None
        if not proposed.proposal.questions:
            return proposed
        for key, question in proposed.proposal.questions.items():
            if (text := answers.ask(key, question, name=paths[0].name)) is not None:
                decided[key] = text
        if not proposed.proposal.questions.keys() <= decided.keys():
            return None


def _shown(row: Mapping[Hashable, object]) -> dict[str, str]:
    """The cells of a row for people."""
    from recon.model.money import format_minor_units

    code = str(row.get("currency", ""))
    return {
        str(name): format_minor_units(int(str(value)), currency=code, grouped=True)
        if name in AMOUNTS
        else redacted(str(value))
        for name, value in row.items()
    }


def _notify(path: Path, checked: "Checked") -> None:
    if checked.source is None:
        echo_error(f"A night would refuse it whole: {checked.refusal}")
        return
    by = checked.source.skipped_by
    skipped = f", {checked.source.rows_skipped} skipped ({by})" if by else ""
    echo_error(
        f"{path.name}: {checked.source.rows_read} rows, {checked.source.rows_accepted} would be "
        f"accepted, {checked.source.rows_rejected} refused{skipped}."
    )
    for reject in checked.rejects[:DISPLAYED_REJECTS_MAX]:
        echo_error(f"line {reject.line}, {reject.column}: {reject.reason}")


def _merchants_and_rules(
    groups: Sequence[_Group], *, account: str, folder: Path, answers: _Answers
) -> dict[str, str]:
    """What merchants.toml and rules.toml say of these files."""
    own = f'accounts."{account}"'
    merchants: _Tables = {own: {"inbox": f"{folder}/inbox", "reports": f"{folder}/reports"}}
    rules: _Tables = {"payment_status": _states(groups, answers=answers)}
    layouts, banks = dict[str, None](), dict[str, str]()
    for group in groups:
        layout = group.layout
        if group.kind == "ledger":
            merchants[f"{own}.ledger"] = {"path": str(group.paths[-1].resolve())}
        if group.kind == "settlement":
            merchants[f"{own}.settlement"] = {"inbox": f"{folder}/settlement"}
        for statement in (each for of in group.checked for each in of.statements):
            iban = _iban(statement.iban, name=group.paths[0].name, answers=answers)
            name = banks.setdefault(iban, f"bank-{len(banks) + 1}")
            served = {"currency": statement.currency, "accounts": [account]}
            rules[f'bank."{name}"'] = {"iban": iban, **served}
            merchants[f'bank."{name}"'] = {"inbox": f"{folder}/{name}"}
            layout = layout.replace('[[bank."NAME"', f'[[bank."{name}"')
        layouts |= {layout: None} if layout else {}
    return {
        "config/merchants.toml": "\n".join([_toml(merchants), *layouts]),
        "config/rules.toml": _toml(rules),
    }


def _toml(tables: _Tables) -> str:
    from recon.files.proposing.proposal import table_lines

    return "".join(
        "\n".join([f"[{name}]", *table_lines(keys)]) + "\n" for name, keys in tables.items()
    )


def _states(groups: Sequence[_Group], *, answers: _Answers) -> dict[str, str]:
    """What each state of the gateway's list means that the rules do not know yet."""
    from recon.config.rules import MappedState
    from recon.config.settings import load_rules
    from recon.files.proposing.vocabulary import MEANINGS, plain_text
    from recon.model.terms import GatewayState

    rules, known = load_rules(config_dir=None), get_args(MappedState)
    states: dict[str, str] = {}
    for group in (each for each in groups if each.kind == "gateway"):
        rows = [each.rows["payment_status"] for each in group.checked if each.rows is not None]
        for code in dict.fromkeys(chain.from_iterable(rows)):
            if not code or rules.state_of(code) is not GatewayState.UNMAPPED:
                continue
            meant = MEANINGS["status"].get(plain_text(code), "")
            if meant not in known:
                ask = f"which of {', '.join(known)} is it?"
                meant = answers.ask(f"payment_status.{code}", ask, name=group.paths[0].name) or ""
            states[code] = meant
    return states


def _iban(account: str, *, name: str, answers: _Answers) -> str:
    """The IBAN of an account of a statement, which may write it in another way."""
    from pydantic import ValidationError

    from recon.config.rules import BankRules

    try:
        BankRules(iban=account, currency="EUR", accounts=("1/1",))
    except ValidationError:
        ask = f"its account is {redacted(account)}: which IBAN is that?"
        return answers.ask("iban", ask, name=name) or account
    return account


def _dotenv(folder: Path, *, merchant: str, account: str) -> str:
    variables = {
        "RECON_CONFIG_DIR": f"{folder}/config",
        "RECON_DATABASE_URL": f"sqlite:///{folder}/recon.sqlite",
        "RECON_MERCHANT": merchant,
        "RECON_ACCOUNT": account,
    }
    quoted = {
        name: text.replace("\\", r"\\").replace("'", r"\'") for name, text in variables.items()
    }
    lines = [f"{name}='{text}'" for name, text in quoted.items()]
    return "\n".join([*lines, "# Before a night: RECON_GATEWAY_BASE_URL, RECON_SIGN_KEY_FILE", ""])


def _lay_down(texts: Mapping[str, str], *, folder: Path, force: bool) -> list[str]:
    """Write what is not there yet, or all of it; what became of each."""
    done = []
    for name, text in texts.items():
        path = folder / name
        if path.exists() and not force:
            done.append(f"Kept: {path} (--force writes it anew)")
            continue
        make_folder(path.parent)
        replace_result(path, text, mode=OWNER)
        done.append(f"Written: {path}")
    return done


def _not_queried(groups: Sequence[_Group], *, folder: Path) -> Path:
    """Answers of a gateway that nobody asked: each order is UNVERIFIED, and none is missing."""
    import pandas as pd

    from recon.files.typing.table_schema import GATEWAY

    key = ["merchant_id", "account_id", "order_no"]
    orders = (each for group in groups if group.kind == "orders" for each in group.checked)
    frames = [each.rows[key] for each in orders if each.rows is not None]
    blank = dict.fromkeys(GATEWAY.required, "") | {"query_result": "0"}
    path = folder / "gateway-not-asked.csv"
    keys = pd.concat(frames).drop_duplicates()
    keys.assign(**{name: blank[name] for name in blank.keys() - key}).to_csv(path, index=False)
    echo("No list of the gateway's payments is among these files: every order is UNVERIFIED.")
    return path
