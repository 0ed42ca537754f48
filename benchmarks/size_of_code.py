"""Lines of modules and functions: is the code still made of small pieces? Run by `make sizes`."""

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src/recon", "flows", "tasks", "reports", "tests")


def sizes(folder: Path) -> tuple[list[int], list[int]]:
    """Lines of each module that is not empty, and of each function, docstrings included."""
    modules: list[int] = []
    functions: list[int] = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if text.strip():
            modules.append(len(text.splitlines()))
        functions += [
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    return modules, functions


def figures(lines: list[int]) -> str:
    """Count, median, ninth decile and the largest, as one row."""
    if not lines:
        return f"{0:>6} {'-':>7} {'-':>5} {'-':>5}"
    p90 = statistics.quantiles(lines, n=10)[-1] if len(lines) > 1 else lines[0]
    return f"{len(lines):>6} {statistics.median(lines):>7.0f} {p90:>5.0f} {max(lines):>5}"


def main() -> None:
    """Print one line per folder for modules, and one for functions."""
    print(f"{'':<24} {'count':>6} {'median':>7} {'p90':>5} {'max':>5} {'lines':>7}")
    for name in FOLDERS:
        modules, functions = sizes(ROOT / name)
        print(f"{name + ' modules':<24} {figures(modules)} {sum(modules):>7}")
        print(f"{name + ' functions':<24} {figures(functions)}")


if __name__ == "__main__":
    main()
