import pytest

from recon.config.approvers import Approver, Approvers, person_key
from recon.config.declared import declared
from recon.model.errors import ConfigurationError


def approvers_of(**people):
    """As approvers.toml declares them."""
    return declared(Approvers, {"approvers": people}, source="approvers.toml").approvers


@pytest.mark.parametrize(
    ("anna", "ben", "named"),
    [
        ({"name": "Anna Berg"}, {"name": " anna  BERG "}, "name"),
        ({"name": "Zo\u00eb"}, {"name": "Zoe\u0308"}, "name"),
        ({"name": "Anna Berg"}, {"name": "ANNA"}, "name"),
        (
            {"name": "Anna", "code_secret_env": "CODE"},
            {"name": "Ben", "code_secret_env": "CODE"},
            "code_secret_env",
        ),
        (
            {"name": "Anna", "code_secret_file": "/run/secrets/code"},
            {"name": "Ben", "code_secret_file": "/run/secrets/../secrets/code"},
            "code_secret_file",
        ),
    ],
)
def test_one_person_is_not_declared_as_two(anna, ben, named):
    with pytest.raises(ConfigurationError, match=rf"(?s)anna.*ben.*{named}"):
        approvers_of(anna=anna, ben=ben)


ZOE = {"zoe.k": Approver(name="Zo\u00eb Kr\u00e4mer"), "ben": Approver(name="Ben Stra\u00dfer")}


@pytest.mark.parametrize(
    "typed",
    [
        "zoe.k",
        " ZOE.K\n",
        "Zo\u00eb Kr\u00e4mer",
        "Zoe\u0308 Kra\u0308mer",
        "zo\u00cb\u00a0 kr\u00c4MER ",
        "Zo\u00eb\u200b Kr\u00e4mer",
        "\uff3ao\u00eb Kr\u00e4mer",
    ],
    ids=ascii,
)
def test_one_person_has_one_key_however_the_name_is_typed(typed):
    assert person_key(typed, declared=ZOE) == "zoe.k"


def test_people_who_are_not_declared_are_told_apart_by_their_names_alone():
    keys = {person_key(name, declared=ZOE) for name in ("Ben Strasser", "Bea", " BEA ", "zoe")}

    assert keys == {"ben", "bea", "zoe"}


@pytest.mark.parametrize("name", ["Jo: Hill", "Jo\nHill", ""])
def test_a_name_that_a_sentence_could_not_end_is_refused(name):
    with pytest.raises(ConfigurationError, match="name"):
        approvers_of(jo={"name": name})
