"""One word for one thing: no two public classes bear one name.

What still does stands in a list that only shrinks: a name that is put right leaves it.
"""

import ast
from collections import defaultdict

from tests.architecture.test_tidy import modules, parse

CLASSES_YET_TO_BE_RENAMED = frozenset({"Limits", "Rows"})


def shared_class_names(sources):
    """Public class -> the modules that define it, where they are several."""
    holders = defaultdict(list)
    for path, tree in sources:
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                holders[node.name].append(path)
    return {name: paths for name, paths in holders.items() if len(paths) > 1}


def test_one_class_name_stands_in_one_module():
    shared = shared_class_names(modules())

    assert set(shared) == CLASSES_YET_TO_BE_RENAMED, shared


def test_a_second_class_of_one_name_is_found():
    text = "class Answer: ...\nclass _Reading: ...\n"
    sources = [("src/recon/a.py", parse(text)), ("reports/b.py", parse(text))]

    assert shared_class_names(sources) == {"Answer": ["src/recon/a.py", "reports/b.py"]}
