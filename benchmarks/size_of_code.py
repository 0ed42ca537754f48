"""How much there is, by package and in all: can one person still hold it? Run by `make sizes`."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer

from recon.cli.commands import app

ROOT = Path(__file__).parents[1]
OTHER_FOLDERS = ("flows", "tasks", "reports")
OTHER_ENDINGS = {".sql", ".toml", ".mako", ".txt"}
"""Statements, declarations and templates, which are shipped beside the Python."""
NO_TOKENS = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
PLACES_OF_ONE_CALL = 2
"""The name of a function that is called once stands where it is written and where it is called."""
HEADS = ("Python", "SQL, TOML…", "tokens", "modules", "functions", "called once")


@dataclass(slots=True)
class Sizes:
    """What one package has."""

    lines: int = 0
    other_lines: int = 0
    tokens: int = 0
    modules: int = 0
    functions: list[str] = field(default_factory=list)

    def figures(self, names: Counter[str]) -> tuple[int, ...]:
        """In the order of HEADS."""
        private = [each for each in self.functions if each.startswith("_")]
        once = [each for each in private if names[each] == PLACES_OF_ONE_CALL]
        counts = (self.tokens, self.modules, len(self.functions), len(once))
        return (self.lines, self.other_lines, *counts)


def sizes_of(paths: Iterable[Path], names: Counter[str]) -> Sizes:
    """The sizes of some files; every name in them is counted."""
    sizes = Sizes()
    for path in paths:
        if path.suffix in OTHER_ENDINGS:
            sizes.other_lines += len(path.read_text(encoding="utf-8").splitlines())
        if path.suffix != ".py":
            continue
        text = path.read_text(encoding="utf-8")
        found = [*tokenize.generate_tokens(io.StringIO(text).readline)]
        names.update(token.string for token in found if token.type == tokenize.NAME)
        sizes.lines += len(text.splitlines())
        sizes.modules += bool(text.strip())
        sizes.tokens += sum(token.type not in NO_TOKENS for token in found)
        sizes.functions += [
            node.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not (node.name.startswith("__") and node.name.endswith("__"))
        ]
    return sizes


def packages() -> Iterator[tuple[str, list[Path]]]:
    """Each package of the product with its files; what stands beside them is one more."""
    source = ROOT / "src/recon"
    for folder in sorted(path for path in source.iterdir() if (path / "__init__.py").exists()):
        yield folder.name, [*folder.rglob("*.*")]
    yield "recon, beside them", [path for path in source.iterdir() if path.is_file()]
    for name in OTHER_FOLDERS:
        yield name, [*(ROOT / name).rglob("*.*")]
    yield "config", [*(ROOT / "config").rglob("*.*")]


def row(name: str, cells: Iterable[object]) -> str:
    """One line."""
    return f"{name:<20}" + "".join(f"{cell:>12}" for cell in cells)


def commands() -> int:
    """Commands of the command line, those of groups each for itself."""
    waiting, count = [typer.main.get_command(app)], 0
    while waiting:
        inside = getattr(waiting.pop(), "commands", None)
        count += inside is None
        waiting += (inside or {}).values()
    return count


def main() -> None:
    """Print a row for each package, the sum, and what stands beside the product."""
    names: Counter[str] = Counter()
    sizes = {name: sizes_of(paths, names) for name, paths in packages()}
    figures = {name: own.figures(names) for name, own in sizes.items()}
    print(row("", HEADS))
    for name, cells in figures.items():
        print(row(name, cells))
    print(row("in all", map(sum, zip(*figures.values(), strict=True))))
    targets = re.findall(r"^[a-z-]+:.*##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    print(f"{commands()} commands, {len(targets)} targets of make")
    for name in ("tests", "benchmarks"):
        own = sizes_of((ROOT / name).rglob("*.*"), Counter())
        cells = f"{own.lines} lines of Python in {own.modules} modules"
        print(f"{name}: {cells}, {own.other_lines} lines of SQL, TOML and text")


if __name__ == "__main__":
    main()
