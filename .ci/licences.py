"""Name, version and licence of each part of a CycloneDX list as CSV; one without is an error."""

import csv
import json
import sys
from pathlib import Path
from typing import Any


def licence_of(part: dict[str, Any]) -> str:
    """Its licences as the list says them: an SPDX expression, ids, or names, joined by ` | `."""
    given = [entry.get("license", {}) | entry for entry in part.get("licenses", [])]
    return " | ".join(
        entry.get("expression") or entry.get("id") or entry.get("name") for entry in given
    )


def main(listed: str, out: str) -> None:
    """Ends with the names of the parts that have no licence, where there are any."""
    parts = json.loads(Path(listed).read_text("utf-8"))["components"]
    rows = sorted((part["name"], part["version"], licence_of(part)) for part in parts)
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("name", "version", "licence"), *rows])
    nameless = [f"{name} {version}" for name, version, licence in rows if not licence]
    if nameless:
        sys.exit(f"without a licence: {', '.join(nameless)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
