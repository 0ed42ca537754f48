"""Documents in step with the code: what the code can say or take, a document explains."""

import re
import subprocess
from enum import StrEnum
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel

from recon import cli
from recon.config.fee_contract import FeeContract, FeeTier
from recon.config.file_layouts import FileLayout, Trailer
from recon.config.file_sources import ExpectedFile, LedgerSource, RemoteSource, SettlementFolder
from recon.config.notice_settings import Notice
from recon.config.retention import Backups, NightSchedule, Retention
from recon.config.rules import Rules, SeverityRules, Tolerance
from recon.config.settings import AccountSettings, GatewaySettings
from recon.gateway_client import ReplyOutcome
from recon.model import errors, nights
from recon.model import terms as model
from tests.campaigns import CAMPAIGNS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES_MAX = 14
ARCHITECTURE_LINES_MAX = 150
STEPS_MAX = 12
"""Modules on the way of a row or a refund."""
READ_WHOLE = {
    "README.md": ("", 450),
    "docs/MORNING.md": ("\n## Decisions", 800),
    "docs/MONTH.md": ("\n## Which month", 1_200),
}
"""What one person reads whole, over a coffee: the page, where that ends, its words at most."""
ALL_WORDS_MAX = 18_000
"""Of all pages together; a new thing is said once, and something else goes."""
SETTINGS_MODELS: tuple[type[BaseModel], ...] = (
    FeeContract,
    FeeTier,
    GatewaySettings,
    AccountSettings,
    LedgerSource,
    FileLayout,
    Trailer,
    RemoteSource,
    ExpectedFile,
    SettlementFolder,
    Notice,
    NightSchedule,
    Retention,
    Backups,
    Rules,
    SeverityRules,
    Tolerance,
    *(
        annotation
        for field in Rules.model_fields.values()
        if isinstance(annotation := field.annotation, type) and issubclass(annotation, BaseModel)
    ),
)
GLOSSARY_ENUMS: tuple[type[StrEnum], ...] = (
    model.GatewayState,
    model.InstructionState,
    model.InstructionKind,
    model.EntryType,
    ReplyOutcome,
    model.Flag,
    model.UnverifiedReason,
    model.Verdict,
    model.End,
    model.Severity,
    nights.Mode,
)
GLOSSARY_TERMS = [
    *("order", "settlement", "instruction", "set", "pending", "break", "unverified", "effect"),
    *("exposure", "grace", "night", "run", "universe", "control total", "gate", "verdict"),
    *("in doubt", "held", "history", "manifest", "case"),
]


def from_root(path):
    """The path as people name it."""
    return str(path.relative_to(ROOT))


def text_of(name):
    """One document, whole."""
    return (ROOT / name).read_text(encoding="utf-8")


def words_in(text):
    """How many words a page has, counted as `wc -w` counts them."""
    return len(text.split())


def missing_words(words, text):
    """Words that stand nowhere in a document as code or between word boundaries."""
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def broken_links(document):
    """Relative links that lead to no file, or to no heading of it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        name, _, heading = target.partition("#")
        file = document.parent / name if name else document
        if "://" in target:
            continue
        if not file.exists() or (heading and heading not in headings_of(file)):
            yield f"{document.name}: {target}"


def headings_of(document):
    """The headings of a page as links name them."""
    lines = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def missing_modules(text):
    """Python files that a document names and that are not there."""
    named = re.findall(r"`([\w/]+/\w+\.py)(?:::\w+)?`", text)
    houses = (ROOT, ROOT / "src", ROOT / "src/recon")
    return [name for name in named if not any((house / name).exists() for house in houses)]


def command_names(app):
    """Every command people can type, as `recon db upgrade`."""
    return sorted(_walk(typer.main.get_command(app), ["recon"]))


def _walk(command, words):
    commands = getattr(command, "commands", None)
    if commands is None:
        yield " ".join(words)
        return
    for name, below in commands.items():
        yield from _walk(below, [*words, name])


def make_targets():
    """Targets of the Makefile that `make help` shows."""
    return re.findall(r"^([a-z-]+):.*##", text_of("Makefile"), re.MULTILINE)


def handbook():
    """The pages for whoever runs recon, one after the other."""
    return "\n".join(text_of(f"docs/{page}.md") for page in ("OPERATIONS", "REFERENCE"))


def test_every_break_code_is_explained():
    codes = [code.value for code in model.BreakCode]
    assert missing_words(codes, text_of("docs/REFERENCE.md")) == []


OTHERS_RELY_ON = (
    *("demo", "sandbox", "nightly", "reconcile", "status", "nights", "verify", "doctor"),
    *("approve", "reject", "resolve", "withdraw"),
    *("workbook", "import-resolutions", "sign-off", "order-file check", "db upgrade"),
    *(f"gateway {operation}" for operation in ("query", "capture", "refund", "cancel", "review")),
    *("gateway cancel-subscription", "gateway payout", "gateway authorise", "gateway checkout"),
    "gateway doctor",
)
"""Commands that stay as they are called, whatever else becomes of the command line."""


def test_commands_that_others_rely_on_keep_their_names():
    assert {f"recon {name}" for name in OTHERS_RELY_ON} <= {*command_names(cli.app)}
    for name in ("workbook", "sign-off"):
        with pytest.raises(SystemExit) as ended:
            cli.app([name, "--run", "r1", "--help"])
        assert ended.value.code == 0


def test_every_command_is_documented():
    (listed,) = re.findall(
        r"^## Commands\n(.*)", text_of("docs/REFERENCE.md"), re.MULTILINE | re.DOTALL
    )
    names = [name.removeprefix("recon ") for name in command_names(cli.app)]

    assert missing_words([f"`{name}`" for name in names], listed) == []


@pytest.mark.parametrize("settings", SETTINGS_MODELS, ids=lambda found: found.__name__)
def test_every_configuration_key_is_documented(settings):
    keys = re.findall(r"`[^`\n]+`", handbook())

    assert missing_words(settings.model_fields, "\n".join(keys)) == []


def test_every_environment_variable_is_documented():
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]
    names = {
        name
        for path in sources
        for name in re.findall(r"\bRECON_[A-Z]+(?:_[A-Z]+)*\b", path.read_text(encoding="utf-8"))
    }

    assert missing_words(sorted(names), text_of("docs/REFERENCE.md")) == []


@pytest.mark.parametrize("words", GLOSSARY_ENUMS, ids=lambda found: found.__name__)
def test_every_word_of_the_domain_is_in_the_glossary(words):
    text = text_of("docs/GLOSSARY.md") + text_of("docs/REFERENCE.md")

    assert missing_words([word.value for word in words], text) == []


def test_every_term_has_its_line_in_the_glossary():
    entries = {
        found.lower()
        for found in re.findall(r"^- \*\*([^*]+)\*\*", text_of("docs/GLOSSARY.md"), re.MULTILINE)
    }

    assert [term for term in GLOSSARY_TERMS if term not in entries] == []


def test_every_package_stands_in_the_architecture():
    packages = [path.parent.name for path in (ROOT / "src/recon").glob("*/__init__.py")]

    assert missing_words(packages, text_of("docs/ARCHITECTURE.md")) == []


def test_every_make_target_that_a_document_names_is_there():
    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"`make ([a-z-]+)`", path.read_text("utf-8"))
    }

    assert named <= set(make_targets())
    assert set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE)) == {*make_targets()}


def test_the_proof_runs_what_the_readme_promises():
    """`.ci/run` does what a reader does: the checks, the README's test command, truths, nights."""
    script = ROOT / ".ci/run"
    lines = script.read_text(encoding="utf-8").splitlines()
    (promised,) = re.findall(r"^(make test)\b", text_of("README.md"), re.MULTILINE)

    assert script.stat().st_mode & 0o111 == 0o111
    assert "set -eu" in lines
    assert lines[-5:] == [
        *("export RECON_REQUIRE_ALL=1", "make check", promised),
        *("make test-truths", "make test-nights"),
    ]


def test_what_a_target_leaves_out_another_plays():
    recipes = {name: recipe_of(name) for name in ("check", "test", "test-nights")}
    left_out = re.findall(r"--ignore=(\S+)", recipes["test"])
    played = [re.findall(r" (tests/\S+)", recipes[name]) for name in ("check", "test-nights")]

    assert left_out == [folder for folders in played for folder in folders]
    assert "--ignore" not in recipes["check"] + recipes["test-nights"]


def test_what_is_played_in_small_is_played_in_its_size():
    recipe = recipe_of("test-truths")
    files = [ROOT / name for name in re.findall(r" (tests/\S+)", recipe)]
    sizes = re.findall(r"\b([A-Z_]+)=\$", recipe)

    assert sizes
    for name in sizes:
        assert [file.name for file in files if f'"{name}"' in file.read_text()], name
    for file in files:
        assert [name for name in sizes if f'"{name}"' in file.read_text()], file.name


def test_every_campaign_says_what_it_is_and_plays_what_is_there():
    for name, campaign in CAMPAIGNS.items():
        given = [ROOT / word for word in campaign["pytest"].split() if word.startswith("tests/")]
        files = [each for each in given if each.is_file()]
        files += [path for each in given for path in each.rglob("*.py")]
        around = {path for each in given for path in each.parent.glob("conftest.py")}
        read = "".join(path.read_text(encoding="utf-8") for path in {*files, *around})
        assert [variable for variable in campaign["variables"] if f'"{variable}"' not in read] == []
        assert campaign["says"], name


def recipe_of(target):
    """What `make` would run for a target."""
    command = ["make", "--dry-run", target]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_every_exit_code_is_documented():
    raised = {error.exit_code for error in vars(errors).values() if hasattr(error, "exit_code")}
    given = raised | {end.exit_code for end in model.End}
    (table,) = re.findall(
        r"^## Exit codes\n(.*?)^## ", text_of("docs/OPERATIONS.md"), re.MULTILINE | re.DOTALL
    )
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]

    assert documented == sorted(given)


@pytest.mark.parametrize("document", DOCUMENTS, ids=from_root)
def test_links_lead_somewhere(document):
    assert list(broken_links(document)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=from_root)
def test_a_module_that_a_document_names_is_there(document):
    assert missing_modules(document.read_text(encoding="utf-8")) == []


NAMED_FILE = re.compile(r"[a-z_]+(?:/[a-z_]+)*/[a-z_]+\.(?:py|sql|toml)\b")
MADE = frozenset({"ci/release.py", "proof/verify.sql", "signer/signer.toml"})
"""In a folder with a dot before its name; in folders that are made."""


def test_a_file_that_the_source_names_is_there():
    tops = [ROOT / top for top in ("src", "flows", "tasks", "reports", "config")]
    sources = [
        path for top in tops for end in ("py", "sql", "toml") for path in top.rglob(f"*.{end}")
    ]
    there = {path.as_posix() for top in (*tops, ROOT / "tests") for path in top.rglob("*.*")}
    ends = {"/".join(path.split("/")[-size:]) for path in there for size in (2, 3, 4, 5)}
    named = {name for path in sources for name in NAMED_FILE.findall(path.read_text("utf-8"))}
    assert len(named) > 10
    assert named - ends - MADE == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=from_root)
def test_documents_name_no_machine(document):
    found = re.findall(
        r"(?:/root/|/home/\w+|/tmp/\w+|localhost:\d+)",
        document.read_text("utf-8"),
    )

    assert found == []


def test_the_architecture_is_short():
    assert len(text_of("docs/ARCHITECTURE.md").splitlines()) <= ARCHITECTURE_LINES_MAX


@pytest.mark.parametrize("way", ["A row's way", "A refund's way"])
def test_a_way_through_the_code_is_short(way):
    section = text_of("docs/ARCHITECTURE.md").split(f"## {way}\n")[1].split("\n## ")[0]
    modules = re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)

    assert 6 <= len(modules) <= STEPS_MAX


@pytest.mark.parametrize("name", READ_WHOLE)
def test_what_is_read_whole_is_short(name):
    end, words_max = READ_WHOLE[name]
    text = text_of(name)

    assert end in text
    assert words_in(text.split(end)[0] if end else text) <= words_max


def test_all_pages_together_are_short():
    assert sum(words_in(path.read_text("utf-8")) for path in DOCUMENTS) <= ALL_WORDS_MAX
    assert len(DOCUMENTS) <= PAGES_MAX


def test_every_page_that_the_code_names_is_there():
    roots = ("src", "flows", "tasks", "reports", "config", "tests", ".ci")
    files = [path for root in roots for path in (ROOT / root).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    faults = []
    for path in files:
        if path.suffix not in {"", ".py", ".toml", ".sql", ".txt", ".md", ".yaml"}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for name, heading in re.findall(r"(?<![\w/.])docs/([A-Z][\w-]+\.md)(?:#([\w-]+))?", text):
            page = ROOT / "docs" / name
            if not page.exists() or (heading and heading not in headings_of(page)):
                faults.append(f"{from_root(path)}: docs/{name}")

    assert faults == []


def test_the_changelog_has_one_sentence_a_line():
    entries = re.findall(r"^- .*$", text_of("CHANGELOG.md"), re.MULTILINE)

    assert entries
    assert [entry for entry in entries if not re.fullmatch(r"- [A-Z`].*\.", entry)] == []


def test_a_missing_word_and_a_broken_link_are_found(tmp_path):
    links = "[dead](nowhere.md) [alive](a.md#a-part) [gone](a.md#part) [here](#a-part)"
    (tmp_path / "a.md").write_text(f"## A part!\n{links}")

    assert words_in("- one | two\n|---|\n`three`") == 6
    assert missing_words(["CAPTURE_DUE", "recon db upgrade"], "CAPTURE_DUE_X `recon db`") == [
        "CAPTURE_DUE",
        "recon db upgrade",
    ]
    assert missing_words(["fee"], "`fee`, in full") == []
    assert list(broken_links(tmp_path / "a.md")) == ["a.md: nowhere.md", "a.md: a.md#part"]
    assert missing_modules("`gateway/money.py`, `recon/errors.py`, `model/errors.py`") == [
        "gateway/money.py",
        "recon/errors.py",
    ]
