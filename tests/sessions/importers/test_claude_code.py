from __future__ import annotations

from pathlib import Path

import pytest

from sessions.importers.conversation import Usage
from tests.sessions.importers.claude import assistant, call, message_of, parts, read, record, result, tree, user

TEXT = {"type": "text", "text": "Let me look."}


def test_records_of_one_response_are_one_message(tmp_path: Path) -> None:
    """Records with one response id are one message with the id and time of the first, even with results between."""
    (found,) = read(
        tmp_path,
        user("u", None),
        assistant("a1", "u", TEXT, response="r", timestamp="2025-07-01T10:00:01.000Z"),
        assistant("a2", "a1", call("t1"), response="r", timestamp="2025-07-01T10:00:02.000Z"),
        user("x1", "a2", [result("t1")]),
        assistant("a3", "x1", call("t2"), response="r"),
        user("x2", "a3", [result("t2", "Also.")]),
        assistant("b", "x2"),
    )
    assert tree(found) == {"u": None, "a1": "u", "b": "a1"}
    assert [part.get("output", part["type"]) for part in parts(found, "a1")] == ["text", "Found.", "Also."]
    assert message_of(found, "a1")["createdAt"] == "2025-07-01T10:00:01.000Z"
    records = [[name.split(" ")[0] for name in message.records] for message in found.messages]
    assert records == [["u"], ["a1", "a2", "a3"], ["b"]]
    results = [[name.split(" ")[0] for name in message.results] for message in found.messages]
    assert results == [[], ["x1", "x2"], []]


def test_same_response_id_in_a_sidechain_is_another(tmp_path: Path) -> None:
    """A response id that comes again in another conversation makes a message of its own there."""
    main, side = read(
        tmp_path,
        assistant("a", None, response="r"),
        user("s1", None, isSidechain=True),
        assistant("s2", "s1", response="r", isSidechain=True),
    )
    assert (tree(main), tree(side)) == ({"a": None}, {"s1": None, "s2": "s1"})


def test_results_answer_calls_by_id(tmp_path: Path) -> None:
    """A result folds into the call with its id wherever that stands, and a second one is appended."""
    (found,) = read(
        tmp_path,
        user("x0", None, [result("t1", "Before.")]),
        assistant("a", "x0", call("t1"), call("t2")),
        user("x1", "a", [result("t1", "After."), result("t2", "Other.", is_error=True)]),
    )
    assert tree(found) == {"a": None}
    first, second = parts(found, "a")
    assert (first["state"], first["output"]) == ("output-available", ["Before.", "After."])
    assert (second["state"], second["errorText"]) == ("output-error", "Other.")


def test_call_with_a_used_id_is_dropped(tmp_path: Path) -> None:
    """A second call with an id that was used is no part, and the result goes to the first."""
    (found,) = read(
        tmp_path, assistant("a", None, call("t", given=1), call("t", given=2)), user("x", "a", [result("t")])
    )
    (part,) = parts(found, "a")
    assert (part["input"], part["output"]) == ({"given": 1}, "Found.")


def test_results_without_ids_go_by_order(tmp_path: Path) -> None:
    """A result without an id answers the earliest open call without one since the last user message."""
    (found,) = read(
        tmp_path,
        assistant("a", None, call(None, given=1), call("t")),
        user("u", "a"),
        assistant("b", "u", call(None, given=2)),
        user("x", "b", [result(None)]),
        user("y", "x", [result(None, "Too many.")]),
    )
    assert [part["state"] for part in parts(found, "a")] == ["input-available", "input-available"]
    assert [part["output"] for part in parts(found, "b")] == ["Found."]
    assert (message_of(found, "y")["role"], parts(found, "y")) == ("tool", [{"type": "text", "text": "Too many."}])


def test_unanswered_result_is_a_message(tmp_path: Path) -> None:
    """Of a record of results those that answer no call are one message of the role tool."""
    (found,) = read(
        tmp_path,
        assistant("a", None, call("t")),
        user("x", "a", [result("t"), result("ghost", [{"type": "text", "text": "Boo."}], is_error=True)]),
        user("u", "x"),
    )
    assert tree(found) == {"a": None, "x": "a", "u": "x"}
    assert message_of(found, "x")["role"] == "tool"
    assert [part["text"] for part in parts(found, "x")] == ["Boo."]
    assert parts(found, "a")[0]["output"] == "Found."


def test_results_fold_out_of_a_user_message(tmp_path: Path) -> None:
    """A record with a result and a text is a user message, and its result folds all the same."""
    (found,) = read(
        tmp_path, assistant("a", None, call("t")), user("u", "a", [result("t"), {"type": "text", "text": "No!"}])
    )
    assert [part.get("output") for part in parts(found, "a")] == ["Found."]
    assert (message_of(found, "u")["role"], parts(found, "u")) == ("user", [{"type": "text", "text": "No!"}])


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("one", "one"),
        ([{"type": "text", "text": "one"}], "one"),
        ([], []),
        (None, ""),
        ([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}], None),
        ([{"type": "image", "source": {}}], None),
    ],
    ids=["text", "block of text", "no block", "none", "two blocks", "image"],
)
def test_output_is_a_text_or_the_blocks(tmp_path: Path, content: object, output: object) -> None:
    """A result that is one text becomes a string, and any other stays as its blocks."""
    (found,) = read(tmp_path, assistant("a", None, call("t")), user("x", "a", [result("t", content)]))
    assert parts(found, "a")[0]["output"] == (content if output is None else output)


def test_blocks_become_parts(tmp_path: Path) -> None:
    """Thinking becomes reasoning with its signature, pictures become files, and what is unknown is kept as data."""
    thinking = {"type": "thinking", "thinking": "", "signature": "S"}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    linked = {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}, "title": "b.pdf"}
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a b"}}
    unknown = {"type": "hologram", "depth": 3}
    (found,) = read(
        tmp_path,
        user("u", None, [picture, linked, plain, "bare", 7, unknown, {"type": "text", "text": "T", "citations": [1]}]),
        assistant("a", "u", thinking, {"type": "redacted_thinking", "data": "D"}),
        user("n", "a", None),
    )
    assert parts(found, "u") == [
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QUJD"},
        {
            "type": "file",
            "mediaType": "application/octet-stream",
            "url": "https://a.example/b.pdf",
            "filename": "b.pdf",
        },
        {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,a%20b"},
        {"type": "text", "text": "bare"},
        {"type": "data-claude-code-block", "data": 7},
        {"type": "data-claude-code-hologram", "data": unknown},
        {"type": "text", "text": "T", "providerMetadata": {"claude-code": {"citations": [1]}}},
    ]
    assert parts(found, "a") == [
        {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"signature": "S"}}},
        {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "D"}}},
    ]
    assert parts(found, "n") == [{"type": "text", "text": ""}]


def test_rest_of_a_record_is_kept(tmp_path: Path) -> None:
    """What no part says of the records stands in the message's metadata, each thing once."""
    (found,) = read(
        tmp_path,
        assistant("a", None, call("t"), response="r", cwd="/a", requestId="q"),
        assistant("b", "a", TEXT, response="r", cwd="/a", requestId="other"),
        user("x", "b", [result("t")], cwd="/a", toolUseResult={"stdout": "o"}),
        user("m", "x", "Caveat", isMeta=True),
    )
    kept = message_of(found, "a")["metadata"]["claude-code"]
    assert kept["record"]["message"] == {"id": "r", "model": "m", "usage": {"input_tokens": 10, "output_tokens": 5}}
    assert kept["merged"] == [{"uuid": "b", "requestId": "other"}]
    assert kept["results"][0]["toolUseResult"] == {"stdout": "o"}
    assert "cwd" not in kept["results"][0]
    assert message_of(found, "m")["metadata"]["hidden"] is True


def test_usage_is_that_of_the_whole_response(tmp_path: Path) -> None:
    """The usage that every record of a response repeats counts once, as far as the last has it."""
    (found,) = read(
        tmp_path,
        assistant("a", None, TEXT, response="r", usage={"input_tokens": 7, "output_tokens": 1}),
        assistant("b", "a", call("t"), response="r", usage={"input_tokens": 7, "output_tokens": 30}),
        assistant("c", "b", call("u"), response="r", usage={}),
        assistant("d", "c", usage=None),
    )
    assert [message.read(None).usage for message in found.messages] == [Usage(7, 30, 0.0, "m"), None]


def test_forks_of_parallel_calls_are_straightened(tmp_path: Path) -> None:
    """Commands and answers that hang on one record are one after the other, in the order of the file."""
    command = "<command-name>/clear</command-name>"
    (found,) = read(
        tmp_path,
        user("u", None),
        user("c1", "u", command),
        user("c2", "u", command),
        assistant("a", "c1"),
        user("typed", "u"),
    )
    assert tree(found) == {"u": None, "c1": "u", "a": "c1", "c2": "a", "typed": "c2"}
    assert found.leaf_id == "typed"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("x", "u"), user("y", "u")),
        (assistant("x", "u"), user("y", "u", sessionId="another")),
        (assistant("x", "u"), assistant("y", "u", supersedesUuids=["x"])),
    ],
    ids=["two prompts", "two sessions", "an answer instead of another"],
)
def test_real_fork_stays(tmp_path: Path, one: dict[str, object], other: dict[str, object]) -> None:
    """Two prompts that a person typed, records of two sessions and an answer that replaces one are branches."""
    (found,) = read(tmp_path, user("u", None), one, other)
    assert tree(found) == {"u": None, "x": "u", "y": "u"}


@pytest.mark.parametrize(
    "more", [{"isMeta": True}, {"content": [result("ghost")]}, {"content": "[Request interrupted by user]"}]
)
def test_prompt_that_nobody_typed_is_no_fork(tmp_path: Path, more: dict[str, object]) -> None:
    """Beside a prompt, what stands in a user's record and was not typed does not make a branch."""
    (found,) = read(tmp_path, assistant("a", None), user("x", "a"), user("y", "a", **more))
    assert tree(found) == {"a": None, "x": "a", "y": "x"}


def test_compaction_is_an_overlay_of_all_before_it(tmp_path: Path) -> None:
    """A summary is no message: it stands for the path up to the last message before its boundary, which is bridged."""
    (found,) = read(
        tmp_path,
        user("u", None),
        assistant("a", "u"),
        record("system", "b", None, None, subtype="compact_boundary", logicalParentUuid="later"),
        user("s", "b", [{"type": "text", "text": "It was about this."}], isCompactSummary=True),
        user("later", "s"),
    )
    assert tree(found) == {"u": None, "a": "u", "later": "a"}
    (overlay,) = (overlay for message in found.messages for overlay in message.overlays)
    assert (overlay.id, overlay.read()) == ("s", "It was about this.")
    assert [message.id for message in found.messages if message.overlays] == ["a"]
    assert found.messages.overlays == 1


def test_bridge_never_closes_a_circle(tmp_path: Path) -> None:
    """A boundary before which records stand that were hung below it is bridged to the last one that was not."""
    (found,) = read(
        tmp_path,
        user("u", None),
        assistant("kept", "s"),
        record("system", "b", None, None, subtype="compact_boundary"),
        user("s", "b", "Summary.", isCompactSummary=True),
        user("v", "kept"),
    )
    assert tree(found) == {"u": None, "kept": "u", "v": "kept"}
    assert found.repaired_links == 0


def test_summary_of_nothing_is_kept_with_the_session(tmp_path: Path) -> None:
    """A summary before which there is nothing is counted, and its text stands in the session's metadata."""
    (found,) = read(tmp_path, user("s", None, "Once.", isCompactSummary=True), user("u", "s"))
    assert (tree(found), found.messages.overlays) == ({"u": None}, 1)
    assert found.metadata["claude-code"]["summaries"] == [{"uuid": "s", "summary": "Once."}]


def test_sidechains_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Records of an agent are one conversation, of none one per root; the parent of each is the main one."""
    found = read(
        tmp_path,
        user("u", None),
        user("p1", None, isSidechain=True),
        user("g1", "u", isSidechain=True, agentId="agent"),
        user("p2", "u", isSidechain=True),
        assistant("p1a", "p1", isSidechain=True),
        assistant("g2", None, isSidechain=True, agentId="agent"),
        assistant("a", "u"),
        record("system", "empty", None, None, isSidechain=True),
    )
    assert [(one.source_id, one.parent_source_id, tree(one)) for one in found] == [
        ("s", None, {"u": None, "a": "u"}),
        ("p1", "s", {"p1": None, "p1a": "p1"}),
        ("agent", "s", {"g1": None, "g2": None}),
        ("p2", "s", {"p2": None}),
    ]
    assert [one.repaired_links for one in found] == [0, 0, 0, 0]


def test_titles(tmp_path: Path) -> None:
    """The title is the last one a person gave, else the last made one, else the last summary of the file's own leaf."""
    summary = {"type": "summary", "summary": "Summary", "leafUuid": "u"}
    foreign = {"type": "summary", "summary": "Foreign", "leafUuid": "elsewhere"}
    made = {"type": "ai-title", "sessionId": "s", "aiTitle": "Made"}
    given = [{"type": "custom-title", "sessionId": "s", "customTitle": name} for name in ("First", "Given")]
    records = [user("u", None), summary, foreign]
    titles = [read(tmp_path, *records, *more)[0].title for more in ([], [made], [*given, made])]
    assert titles == ["Summary", "Made", "Given"]
    assert read(tmp_path, records[0], foreign)[0].title is None


def test_session_is_told(tmp_path: Path) -> None:
    """A conversation knows its first words, its model, when it began and where."""
    (found,) = read(
        tmp_path,
        user("c", None, "<command-message>init</command-message>", cwd="/a", version="2"),
        user("u", "c", "What I want"),
        assistant("a", "u"),
    )
    assert (found.opening, found.model) == ("What I want", "m")
    assert found.created_at is not None
    assert found.created_at.isoformat() == "2025-07-01T10:00:00+00:00"
    assert found.metadata == {"claude-code": {"cwd": "/a", "version": "2", "sessionId": "s"}}


def test_well_formed_record_takes_the_place_of_a_malformed_one(tmp_path: Path) -> None:
    """Of records with one uuid the first counts, unless its message has no content and a later one's has."""
    torn = record("user", "u", None, {"role": "user", "contents": "typo"})
    (found,) = read(tmp_path, torn, user("a", None), user("u", None, "Whole."), user("u", None, "Late."))
    assert tree(found) == {"a": None, "u": None}
    assert parts(found, "u")[0]["text"] == "Whole."


def test_unusual_records_are_read(tmp_path: Path) -> None:
    """Records in which other things stand than usual are read as far as they go."""
    odd = [
        {"uuid": 7, "sessionId": "s", "type": "user"},
        record("user", "w", None, ["no object"]),
        user("x", 7),  # type: ignore[arg-type]
        user("y", "x", {"no": "list"}),
        assistant("z", "y", call(5), call(None, name=3), "bare", None),  # type: ignore[arg-type]
        user("half", "z", "\ud83d"),
    ]
    (found,) = read(tmp_path, *odd)
    assert found.repaired_links == 1
    assert [message.id for message in found.messages] == ["x", "y", "z", "half"]
    assert parts(found, "half") == [{"type": "text", "text": "\ufffd"}]
