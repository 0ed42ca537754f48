import re
from pathlib import Path

from recon.config.settings import bundled_config_dir

PAGE = Path(__file__).parents[3] / "docs" / "GATEWAY.md"
NUMBER = re.compile(r"\bA-[0-9]{2}\b")


def test_every_assumption_of_the_configuration_is_explained() -> None:
    """Who meets a number in a file finds what it means and what if it is wrong."""
    used = {
        number
        for path in bundled_config_dir().glob("*.toml")
        for number in NUMBER.findall(path.read_text(encoding="utf-8"))
    }
    explained = re.findall(r"^\| (A-[0-9]{2}) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert explained == sorted(set(explained))
    assert used - set(explained) == set()
