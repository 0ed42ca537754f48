from recon.model.resolutions import BreakAnswer, StoredAnswer, with_answers


def test_each_break_bears_what_people_said_of_it() -> None:
    """Resolution, owner and comment stand beside the break they were given to, and no other."""
    answer = BreakAnswer("Gateway asked", "Anna Berg", "ticket 7")
    answers = {"a1": StoredAnswer(answer, version=1, by="anna", waits=False)}

    answered, bare = with_answers([{"break_id": "a1"}, {"break_id": "b2"}], answers)

    said = {"resolution": "Gateway asked", "owner": "Anna Berg", "comment": "ticket 7"}
    assert answered == {"break_id": "a1", **said}
    assert bare == {"break_id": "b2", "resolution": "", "owner": "", "comment": ""}
