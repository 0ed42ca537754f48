"""The style of the house, executed: each rule reads one module and gives sentences about it.

Every rule is a function `(path, tree) -> findings`, and every rule has a snippet below that it
must find fault with: a rule that cannot fail is not a rule.
"""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_FOLDERS = ("src/recon", "flows", "tasks", "reports")
TOP_LEVEL_PACKAGES = ("recon", "flows", "tasks", "reports")

FUNCTION_LINES_MAX = 80
MODULE_LINES_MAX = 900

MAY_ASK_THE_MACHINE = (
    "src/recon/cli/",
    "src/recon/steps/runtime/environment.py",
    "src/recon/sandbox/options.py",
    "src/recon/gateway_client/transport.py",  # the client's front door, for other programs
    "flows/",
    "tasks/",
)
"""Where clock, randomness and environment enter; below, they are arguments."""
MACHINE_CALLS = re.compile(
    r"(datetime|date)\.(now|today|utcnow)|time\.time|uuid\.uuid[14]|uuid[14]|secrets\.\w+"
    r"|random\.(random|choice|choices|shuffle|randint|uniform|sample)|Random|random\.Random"
    r"|os\.(urandom|getenv)|os\.environ\.\w+"
)
MONEY_PATHS = (
    "src/recon/model/money",
    "src/recon/matching/",
    "src/recon/proof/",
    "src/recon/instructions/",
    "src/recon/store/",
    "src/recon/files/",
    "reports/",
)
NOT_MONEY_SUFFIXES = ("_seconds", "_width", "_height", "_points", "_share", "_ratio")
"""Names that end so are measures, never amounts; a float is right for them."""

FLOAT_DTYPES = frozenset({"float", "float16", "float32", "float64"})

BANNED_FILE_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "base", "common"})
"""Modules are named for what is in them; such a name collects what nobody finds again."""

CLOCKS = frozenset({"clock", "_clock", "wall_clock"})
TURNS = frozenset({"writing", "code_turn", "turn"})
"""Where one waits until nobody else writes."""
MAKES_FILES = frozenset({"mkdir", "makedirs", "write_text", "write_bytes", "touch"})

Rule = Callable[[str, ast.Module], Iterator[str]]


@cache
def modules():
    """Every source module as (path from the root, tree); parsed once for all rules."""
    paths = [path for folder in SOURCE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        (str(path.relative_to(ROOT)), parse(path.read_text(encoding="utf-8"))) for path in paths
    ]


def parse(text):
    """The tree of a module, with its text beside it."""
    tree = ast.parse(text)
    tree.text = text  # type: ignore[attr-defined]  # rules about lines read it
    return tree


def functions(tree):
    """Every function and method, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def terminal_name(node):
    """The last identifier of `a`, `a.b` or `a.b()`; "" for anything else."""
    if isinstance(node, ast.Call):
        return terminal_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def long_functions(path, tree):
    """A function fits one screen; a migration is one list of tables, written once."""
    if "/migrations/" in path:
        return
    for node in functions(tree):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"{path}:{node.lineno} {node.name} has {lines} lines"


def long_modules(path, tree):
    """A module can be read in one sitting; a migration is one list of tables, written once."""
    if "/migrations/" in path:
        return
    lines = len(tree.text.splitlines())  # type: ignore[attr-defined]
    if lines > MODULE_LINES_MAX:
        yield f"{path} has {lines} lines"


def empty_file_names(path, tree):
    """A module is named for what is in it."""
    del tree
    if Path(path).stem in BANNED_FILE_NAMES:
        yield f"{path} has a name that says nothing"


def floats_on_money(path, tree):
    """Where amounts are, nothing is a float: no call, no dtype, no annotation.

    To ask whether a foreign value is one (`isinstance`) is how it is refused, and allowed. So is
    the cell of a workbook, whose own format has nothing else: it leaves as text.
    """
    if not path.startswith(MONEY_PATHS) or path.endswith("/formats/xlsx_book.py"):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or terminal_name(node.func) == "isinstance":
            continue
        if terminal_name(node.func) in {"float", "to_numeric"}:
            yield f"{path}:{node.lineno} makes a float"
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(_is_float_type(argument) for argument in given):
            yield f"{path}:{node.lineno} hands float on as a type"
    for name, annotation in annotations(tree):
        if "float" in ast.unparse(annotation) and not name.endswith(NOT_MONEY_SUFFIXES):
            yield f"{path}:{annotation.lineno} {name} is annotated as a float"


def _is_float_type(node):
    named = isinstance(node, ast.Name) and node.id == "float"
    text = isinstance(node, ast.Constant) and str(node.value).lower() in FLOAT_DTYPES
    inside = isinstance(node, ast.Dict) and any(_is_float_type(value) for value in node.values)
    return named or text or inside or terminal_name(node) in FLOAT_DTYPES - {"float"}


def annotations(tree):
    """Every annotated name: arguments, fields, variables and what functions return."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation:
            yield node.arg, node.annotation
        if isinstance(node, ast.AnnAssign):
            yield terminal_name(node.target), node.annotation
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            yield node.name, node.returns


def unverified_connections(path, tree):
    """No way to switch the check of certificates off."""
    for node in ast.walk(tree):
        off = isinstance(node, ast.keyword) and node.arg == "verify"
        if off and isinstance(node.value, ast.Constant) and node.value.value is False:
            yield f"{path}:{node.value.lineno} switches verification off"
        if isinstance(node, ast.expr) and terminal_name(node) in {
            "CERT_NONE",
            "_create_unverified_context",
        }:
            yield f"{path}:{node.lineno} switches verification off"


def leaky_comparisons(path, tree):
    """Signatures are compared in constant time, never by `==`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        equality = any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops)
        operands = [node.left, *node.comparators]
        literal = any(_is_literal(operand) for operand in operands)
        names = [terminal_name(operand) for operand in operands]
        secret = any(re.search("signature|encryption_data|sign_key", name) for name in names)
        if equality and secret and not literal:
            yield f"{path}:{node.lineno} compares a signature by =="


def _is_literal(node):
    enum_member = isinstance(node, ast.Attribute) and node.attr.isupper()
    return isinstance(node, ast.Constant) or enum_member


def machine_calls(path, tree):
    """A night can be replayed: nobody below the outermost callers asks clock, chance or shell."""
    if path.startswith(MAY_ASK_THE_MACHINE):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        asked = MACHINE_CALLS.fullmatch(ast.unparse(node.func))
        seeded = ast.unparse(node.func).endswith("Random") and node.args
        if asked and not seeded:
            yield f"{path}:{node.lineno} calls {asked.group()}"


@cache
def taken_names():
    """Names that an import already means: ours, the standard library's, the installed ones'."""
    installed = importlib.metadata.packages_distributions()
    return frozenset({*TOP_LEVEL_PACKAGES, *sys.stdlib_module_names, *installed})


def instants_before_their_turn(path, tree):
    """An instant that is written in a turn is told within it, behind whatever it waited for.

    Told before, it is older than what others wrote meanwhile, and their order is compared by it.
    """
    for function in functions(tree):
        instants = {
            name.id: node.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _terminals(node.value) & CLOCKS
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        for node in ast.walk(function):
            if not isinstance(node, ast.With) or not TURNS.intersection(
                terminal_name(each.context_expr) for each in node.items
            ):
                continue
            read = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            early = [name for name in instants if name in read and instants[name] < node.lineno]
            for name in early:
                yield f"{path}:{instants[name]} {name} is told before its turn ({node.lineno})"


def _terminals(value):
    """Names of everything that an expression calls."""
    return {terminal_name(node) for node in ast.walk(value) if isinstance(node, ast.Call)}


def shadowing_files(path, tree):
    """A file of flows/ or tasks/ never bears the name of another module.

    Started by path, Prefect puts the file's folder first on sys.path: `flows/recon.py` would then
    be imported in place of the package.
    """
    del tree
    folder, _, stem = path.rpartition("/")
    name = stem.removesuffix(".py")
    if folder in {"flows", "tasks"} and name != "__init__" and name in taken_names():
        yield f"{path} would shadow the module {name}"


def open_files(path, tree):
    """Files and folders of ours are made in one way, which closes them under any umask."""
    if path == "src/recon/privacy/own_files.py":
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name, given = terminal_name(node.func), {word.arg for word in node.keywords}
        modes = [part.value for part in node.args if isinstance(part, ast.Constant)]
        writes = any(isinstance(mode, str) and re.fullmatch("[wxa]b?", mode) for mode in modes)
        opened = name == "open" and writes and "opener" not in given
        if name in MAKES_FILES or (opened and not _of_an_archive(node.func)):
            yield f"{path}:{node.lineno} makes a file or folder past privacy.own_files"


def untyped_connections(path, tree):
    """Who holds a connection of the database says so: `recon.store` exports the type."""
    for name, annotation in annotations(tree):
        if name == "connection" and ast.unparse(annotation) in {"Any", "object"}:
            yield f"{path}:{annotation.lineno} takes a connection of no type"


ROWS_OF_ANYTHING = re.compile(r"dict\[str, Any\]|Mapping\[Any, Any\]|Row\[Any\]|RowMapping")


def untyped_rows(path, tree):
    """What is read of the database leaves the store as a type, so that nobody asks it for more."""
    if not path.startswith("src/recon/store/") or "/migrations/" in path:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.returns is None:
            continue
        reads = "connection" in {argument.arg for argument in node.args.args}
        if reads and ROWS_OF_ANYTHING.search(ast.unparse(node.returns)):
            yield f"{path}:{node.lineno} {node.name} hands out rows of no type"


IDIOMS = frozenset(
    {
        *("telling", "speak", "speaks", "speaking", "spoken", "complain", "weigh"),
        *("judges", "judging", "fate", "fates", "story", "planted", "stretch", "stretches"),
        *("strayed", "loose", "grave", "graver", "courier", "turnstile", "lookout", "headway"),
        *("guest", "scrubbed", "calm", "parted", "nursery", "custody", "words_of", "untold"),
        *("say", "told", "judged", "judgement", "judgements", "beside", "standing", "placed"),
        *("said", "stands", "elsewhere", "aside", "kept", "books", "let_go"),
        *("wanted", "gone", "begun", "parcel", "patience"),
    }
)
"""Words of our own English that a reader new to the code does not know; terms of the field replace
them. A name has none of them, whole or as one of its words."""


TEMPORARY = frozenset({"TemporaryDirectory", "NamedTemporaryFile", "mkdtemp"})
"""Without a name, as `TemporaryFile` is, nothing is left."""
WITHOUT_ROWS = frozenset(
    {
        "src/recon/privacy/own_files.py",  # sweeps them
        "src/recon/files/reader.py",  # samples of our own
        "flows/serve.py",  # a socket
    }
)


def unswept_folders(path, tree):
    """What is laid down for a while stands where a killed process's is swept (`folder_for_now`).

    Rows of a night lay in the temporary folder for good.
    """
    if path in WITHOUT_ROWS:
        return
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name in TEMPORARY:
            yield f"{path}:{node.lineno} {name}: use own_files.folder_for_now"


WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of a name, in snake or in camel case."""


def words_of_names(path, tree):
    """Line, name and its words (and each neighbouring two) of every name that a module uses."""
    yield 1, Path(path).stem, _words(Path(path).stem)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name, _words(name)
            case ast.ClassDef(name=name) | ast.alias(name=name):
                yield node.lineno, name, _words(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name, _words(name)
            case ast.keyword(arg=str() as name):
                yield node.lineno, name, _words(name)


@cache
def _words(name):
    single = [word.lower() for word in WORD.findall(name)]
    return [*single, *map("_".join, pairwise(single))]


def idioms(path, tree):
    """No name has an idiom of ours in place of a term; a migration stays as it was."""
    if "/migrations/" in path:
        return
    for line, name, words in words_of_names(path, tree):
        if IDIOMS.intersection(words):
            yield f"{path}:{line} {name} is an idiom: use the field's term"


def _of_an_archive(function):
    """A part of a zip archive is no file of the disk."""
    return isinstance(function, ast.Attribute) and "archive" in ast.unparse(function)


RULES: tuple[Rule, ...] = (
    open_files,
    long_functions,
    long_modules,
    empty_file_names,
    floats_on_money,
    unverified_connections,
    leaky_comparisons,
    machine_calls,
    instants_before_their_turn,
    shadowing_files,
    untyped_connections,
    untyped_rows,
    unswept_folders,
    idioms,
)

BAD_SNIPPETS: tuple[tuple[Rule, str, str], ...] = (
    (open_files, "src/recon/a.py", "folder.mkdir(parents=True)\n"),
    (open_files, "src/recon/a.py", "path.write_text('a')\n"),
    (open_files, "src/recon/a.py", "with path.open('x') as file: ...\n"),
    (open_files, "src/recon/a.py", "with open(path, 'w', encoding='utf-8') as file: ...\n"),
    (long_functions, "src/recon/a.py", "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX),
    (long_functions, "src/recon/a.py", "async def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX),
    (long_modules, "src/recon/a.py", "x = 1\n" * (MODULE_LINES_MAX + 1)),
    (empty_file_names, "src/recon/utils.py", ""),
    (floats_on_money, "src/recon/model/money.py", "x = float('1.10')\n"),
    (floats_on_money, "src/recon/matching/a.py", "def f(amount: float) -> None: ...\n"),
    (floats_on_money, "src/recon/matching/a.py", "frame['amount'].astype('float64')\n"),
    (floats_on_money, "src/recon/matching/a.py", "frame['amount'].astype(float)\n"),
    (floats_on_money, "src/recon/matching/a.py", "pd.Series(values, dtype='Float64')\n"),
    (floats_on_money, "src/recon/matching/a.py", "frame.astype({'amount': np.float64})\n"),
    (floats_on_money, "src/recon/files/a.py", "pd.to_numeric(frame['amount'])\n"),
    (floats_on_money, "reports/a.py", "total: float | None = None\n"),
    (floats_on_money, "reports/a.py", "def total() -> dict[str, float]: ...\n"),
    (unverified_connections, "src/recon/a.py", "httpx.Client(verify=False)\n"),
    (unverified_connections, "src/recon/a.py", "context.verify_mode = ssl.CERT_NONE\n"),
    (leaky_comparisons, "src/recon/a.py", "ok = reply.signature == expected\n"),
    (leaky_comparisons, "src/recon/a.py", "ok = expected != row['x'].encryption_data\n"),
    (machine_calls, "src/recon/a.py", "at = datetime.now(UTC)\n"),
    (machine_calls, "src/recon/a.py", "run_id = uuid.uuid4().hex\n"),
    (machine_calls, "src/recon/a.py", "source = random.Random()\n"),
    (machine_calls, "src/recon/a.py", "url = os.environ.get('RECON_DATABASE_URL')\n"),
    (
        instants_before_their_turn,
        "src/recon/steps/a.py",
        "def f():\n    at = e.clock()\n    with e.store.writing() as c:\n        save(c, at=at)\n",
    ),
    (
        instants_before_their_turn,
        "src/recon/signer/a.py",
        "def f():\n    at, x = self._clock(), 1\n    with self._book.turn():\n        keep(at)\n",
    ),
    (shadowing_files, "flows/recon.py", ""),
    (shadowing_files, "flows/calendar.py", ""),
    (shadowing_files, "tasks/prefect.py", ""),
    (untyped_connections, "src/recon/steps/a.py", "def f(connection: Any) -> None: ...\n"),
    (untyped_rows, "src/recon/store/a.py", "def f(connection: C) -> list[dict[str, Any]]: ...\n"),
    (unswept_folders, "src/recon/a.py", "with TemporaryDirectory() as folder: ...\n"),
    (unswept_folders, "reports/a.py", "with tempfile.NamedTemporaryFile() as file: ...\n"),
    (idioms, "src/recon/fates.py", ""),
    (idioms, "src/recon/a.py", "def f(last_spoken: str) -> None: ...\n"),
    (idioms, "src/recon/a.py", "class GraveBreak: ...\n"),
    (idioms, "src/recon/a.py", "text = row.words_of_state\n"),
)
GOOD_SNIPPETS: tuple[tuple[Rule, str, str], ...] = (
    (open_files, "src/recon/a.py", "with open(path, 'w', opener=for_group) as file: ...\n"),
    (open_files, "src/recon/a.py", "with path.open('rb') as file: ...\n"),
    (long_functions, "src/recon/a.py", "def f():\n" + "    x = 1\n" * (FUNCTION_LINES_MAX - 1)),
    (long_modules, "src/recon/a.py", "x = 1\n" * MODULE_LINES_MAX),
    (empty_file_names, "src/recon/workers.py", ""),
    (floats_on_money, "reports/a.py", "def column(text_width: float) -> None: ...\n"),
    (floats_on_money, "src/recon/files/a.py", "refused = isinstance(cell, float)\n"),
    (floats_on_money, "src/recon/config/settings.py", "deadline_seconds: float = 60\n"),
    (leaky_comparisons, "src/recon/a.py", "ok = reply.signature == 'valid'\n"),
    (leaky_comparisons, "src/recon/a.py", "ok = reply.signature == Signature.VALID\n"),
    (machine_calls, "src/recon/a.py", "source = random.Random(seed)\n"),
    (machine_calls, "src/recon/cli/a.py", "at = datetime.now(UTC)\n"),
    (
        instants_before_their_turn,
        "src/recon/steps/a.py",
        "def f():\n    with store.writing():\n        at = e.clock()\n        save(at=at)\n",
    ),
    (shadowing_files, "flows/nightly.py", ""),
    (untyped_connections, "src/recon/steps/a.py", "def f(connection: Connection) -> None: ...\n"),
    (untyped_rows, "src/recon/store/a.py", "def f(connection: C) -> list[Case]: ...\n"),
    (idioms, "src/recon/a.py", "history = shown_words = of_state\n"),
)


def name_of(value):
    """A short name of a rule or the beginning of a snippet, for the list of tests."""
    return value[:40].strip() if isinstance(value, str) else value.__name__


def findings(rule, sources):
    """Everything one rule has to say about these modules."""
    return [sentence for path, tree in sources for sentence in rule(path, tree)]


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_the_source_keeps_the_rule(rule):
    found = findings(rule, modules())

    assert found == [], "\n".join(found)


@pytest.mark.parametrize(("rule", "path", "text"), BAD_SNIPPETS, ids=name_of)
def test_the_rule_finds_its_bad_snippet(rule, path, text):
    assert findings(rule, [(path, parse(text))])


@pytest.mark.parametrize(("rule", "path", "text"), GOOD_SNIPPETS, ids=name_of)
def test_the_rule_leaves_its_good_snippet_alone(rule, path, text):
    assert findings(rule, [(path, parse(text))]) == []


def test_every_rule_has_a_bad_snippet():
    assert set(RULES) == {rule for rule, _, _ in BAD_SNIPPETS}
