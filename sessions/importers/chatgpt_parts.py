"""The message of a ChatGPT node as parts; what no part can say is kept in the message's metadata, as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

Record = dict[str, Any]
Part = dict[str, Any]

ROLES: Final = {"system", "user", "assistant", "tool"}
REASONING: Final = {"thoughts", "reasoning_recap"}
HIDDEN: Final = {"user_editable_context", "model_editable_context"}
POINTERS: Final = {
    "image_asset_pointer": "image/*",
    "audio_asset_pointer": "audio/*",
    "video_container_asset_pointer": "video/*",
    "real_time_user_audio_video_asset_pointer": "video/*",
}
"""The parts that point at a file, and the media type of each, for files of which no more is said."""
POINTER_KEYS: Final = ("asset_pointer", "video_container_asset_pointer", "audio_asset_pointer")
TEXT_KEYS: Final = {
    "tether_browsing_display": ("result", "summary"),
    "citable_code_output": ("output_str",),
    "user_editable_context": ("user_profile", "user_instructions"),
}
"""Where the text stands in content that is not made of parts, if not under `text`."""
PLAIN_OUTPUT: Final = {"code", "execution_output", "system_error", "citable_code_output"}
"""Content that says no more than its text, so that as the output of a call the text alone will do."""


def node_record(node: Mapping[str, Any]) -> Record | None:
    """The message of a node, or None for a node without one; a message that is no object is taken as content."""
    message = node.get("message")
    return message if message is None or isinstance(message, dict) else {"content": message}


def record_role(record: Record) -> str:
    """The role as it is stored; what is unknown or missing is system."""
    author = record.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    return role if isinstance(role, str) and role in ROLES else "system"


def is_reasoning(record: Record) -> bool:
    """Whether the record is reasoning, or the sentence that sums it up."""
    return _content_type(record) in REASONING


def is_call(record: Record) -> bool:
    """Whether the record is a tool call: an assistant message that is addressed to a tool."""
    recipient = record.get("recipient")
    addressed = isinstance(recipient, str) and recipient not in {"", "all"}
    return addressed and record_role(record) == "assistant" and not is_reasoning(record)


def is_hidden(record: Record) -> bool:
    """Whether the source does not show the record to a person."""
    unseen = metadata_of(record).get("is_visually_hidden_from_conversation") is True
    return unseen or record.get("weight") == 0 or _content_type(record) in HIDDEN


def metadata_of(record: Record) -> dict[str, Any]:
    """The record's own metadata, empty where it has none."""
    metadata = record.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def render(
    node_id: str, record: Record, reasoning: Sequence[tuple[str, Record]], results: Sequence[tuple[str, Record]]
) -> tuple[list[Part], dict[str, Any]]:
    """The parts of a stored message, and what no part says of its record (`message`) and of those that folded in."""
    parts: list[Part] = [{"type": "reasoning", "text": _reasoning_text(thought)} for _, thought in reasoning]
    own, rest = ([], record.get("content")) if is_reasoning(record) else _content_parts(record)
    kept: dict[str, Any] = {"message": _left(node_id, record, rest)}
    if is_call(record):
        outputs = [_output(result) for _, result in results]
        text = "".join(part["text"] for part in own if _is_text(part))
        own = [part for part in own if not _is_text(part)]
        parts.append(_tool_part(node_id, record, text, results, [value for value, _ in outputs]))
        if results:
            folded = zip(results, outputs, strict=True)
            kept["results"] = [
                {"node": key, "message": _left(key, result, left)} for (key, result), (_, left) in folded
            ]
    thoughts = [(key, thought) for key, thought in reasoning if key != node_id]
    if thoughts:
        kept["reasoning"] = [
            {"node": key, "message": _left(key, thought, thought["content"])} for key, thought in thoughts
        ]
    parts += own
    parts += _attached(record)
    parts += _sources(node_id, record)
    return parts or [_text("")], kept


def _content_type(record: Record) -> str | None:
    content = record.get("content")
    kind = content.get("content_type") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else None


def _left(node_id: str, record: Record, content: object) -> dict[str, Any]:
    """The record without what its parts say: `content` is what is left of its content."""
    left = _without(record, "content")
    if left.get("id") == node_id:
        del left["id"]
    if "content" in record and content not in ({}, {"content_type": "text"}):
        left["content"] = content
    return left


def _content_parts(record: Record) -> tuple[list[Part], object]:
    """The parts that the content makes, and what is left of it."""
    content = record.get("content")
    if isinstance(content, str):
        return [_text(content)], {}
    if not isinstance(content, dict):
        return ([], None) if content is None else ([_data("content", content)], {})
    pieces = content.get("parts")
    if isinstance(pieces, list):
        return [_part(piece, record) for piece in pieces], _without(content, "parts")
    kind = content.get("content_type")
    keys = TEXT_KEYS.get(kind, ("text",)) if isinstance(kind, str) else ("text",)
    said = [key for key in keys if isinstance(content.get(key), str)]
    said = [key for key in said if content[key]] or said[:1]
    if said:
        return [_text(content[key]) for key in said], _without(content, *said)
    return ([_data(kind, content)], {}) if _without(content, "content_type") else ([], content)


def _part(piece: object, record: Record) -> Part:
    if isinstance(piece, str):
        return _text(piece)
    if not isinstance(piece, dict):
        return _data("part", piece)
    kind = piece.get("content_type")
    if kind == "audio_transcription" and isinstance(piece.get("text"), str):
        return _text(piece["text"]) | {"providerMetadata": {"chatgpt": _without(piece, "text")}}
    if not isinstance(kind, str) or kind not in POINTERS:
        return _data(kind, piece)
    url = next(_pointers(piece), "")
    attachment = next((known for known in _attachments(record) if _points_at(url, known)), {})
    return _file(url, attachment, POINTERS[kind]) | {"providerMetadata": {"chatgpt": piece}}


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _is_text(part: Part) -> bool:
    return part.keys() == {"type", "text"}


def _data(kind: object, data: object) -> Part:
    return {"type": f"data-chatgpt-{kind if kind and isinstance(kind, str) else 'part'}", "data": data}


def _without(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in keys}


def _reasoning_text(record: Record) -> str:
    content = record["content"]
    if isinstance(content.get("content"), str):
        return str(content["content"])
    thoughts = (_texts(thought.get("summary"), thought.get("content")) for thought in _dicts(content.get("thoughts")))
    return "\n\n".join("\n".join(thought) for thought in thoughts if thought)


def _texts(*values: object) -> list[str]:
    return [value for value in values if value and isinstance(value, str)]


def _tool_part(
    node_id: str, record: Record, text: str, results: Sequence[tuple[str, Record]], outputs: list[object]
) -> Part:
    part = {"type": "dynamic-tool", "toolName": record["recipient"], "toolCallId": node_id}
    part |= {"state": "input-available", "input": _arguments(text)}
    if results and all(_content_type(result) == "system_error" for _, result in results):
        return part | {"state": "output-error", "errorText": "\n".join(map(str, outputs))}
    if results:
        return part | {"state": "output-available", "output": outputs[0] if len(outputs) == 1 else outputs}
    return part


def _arguments(text: str) -> object:
    """The input of a call: an object or array where the text is one, else the text (code, a search, a prompt)."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass
    return text


def _output(record: Record) -> tuple[object, object]:
    """What a tool gave back, text where it is one text and else as it stands, and what is left of the content."""
    content = record.get("content")
    if not isinstance(content, dict):
        return ("", None) if content is None else (content, {})
    pieces = content.get("parts")
    if isinstance(pieces, list):
        alone = len(pieces) == 1 and isinstance(pieces[0], str)
        return pieces[0] if alone else pieces, _without(content, "parts")
    kind = _content_type(record)
    key = TEXT_KEYS.get(kind or "", ("text",))[0]
    if kind in PLAIN_OUTPUT and isinstance(content.get(key), str):
        return content[key], _without(content, key)
    return content, {}


def _attached(record: Record) -> list[Part]:
    """A file for each attachment that no pointer in the content points at."""
    content = record.get("content")
    pieces = content.get("parts") if isinstance(content, dict) else None
    pointers = [url for piece in _dicts(pieces) if piece.get("content_type") in POINTERS for url in _pointers(piece)]
    others = [known for known in _attachments(record) if not any(_points_at(url, known) for url in pointers)]
    return [
        _file(f"file-service://{other.get('id') or other.get('name') or ''}", other, "application/octet-stream")
        for other in others
    ]


def _attachments(record: Record) -> Iterator[dict[str, Any]]:
    return _dicts(metadata_of(record).get("attachments"))


def _pointers(piece: Mapping[str, Any]) -> Iterator[str]:
    for key in POINTER_KEYS:
        pointer = piece.get(key)
        url = pointer.get("asset_pointer") if isinstance(pointer, dict) else pointer
        if url and isinstance(url, str):
            yield url


def _points_at(url: str, attachment: Mapping[str, Any]) -> bool:
    known = attachment.get("id")
    if not known or not isinstance(known, str):
        return False
    # A whole name within the address: `file-1` is not in `file-service://file-12`.
    return re.search(rf"(?<![\w-]){re.escape(known)}(?![\w-])", url) is not None


def _file(url: str, attachment: Mapping[str, Any], media_type: str) -> Part:
    said = _texts(attachment.get("mime_type"), attachment.get("mimeType"))
    part: Part = {"type": "file", "mediaType": said[0] if said else media_type, "url": url}
    for name in _texts(attachment.get("name")):
        part["filename"] = name
    return part


def _sources(node_id: str, record: Record) -> list[Part]:
    """A part for each address that the message cites, in the order in which they are named."""
    parts: dict[str, Part] = {}
    for source in _cited(record):
        for url in _texts(source.get("url")):
            name = f"{node_id}-source-{len(parts) + 1}"
            part = parts.setdefault(url, {"type": "source-url", "sourceId": name, "url": url})
            for title in _texts(source.get("title")):
                part.setdefault("title", title)
    return list(parts.values())


def _cited(record: Record) -> Iterator[Mapping[str, Any]]:
    content = record.get("content")
    if isinstance(content, dict):
        yield content
    metadata = metadata_of(record)
    for citation in _dicts(metadata.get("citations")):
        yield from _dicts([citation.get("metadata")])
    for reference in _dicts(metadata.get("content_references")):
        yield reference
        for key in ("items", "sources"):
            yield from _dicts(reference.get(key))


def _dicts(values: object) -> Iterator[dict[str, Any]]:
    return (value for value in (values if isinstance(values, list) else ()) if isinstance(value, dict))
