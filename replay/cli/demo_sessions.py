"""What the demo's store holds: a conversation with branches, and a few more."""

from __future__ import annotations

from typing import Any, Final

import msgspec

SOURCE: Final = "demo"
MAIN: Final = "lisbon"
"""The session that the demo draws, and by which its own store is told from any other."""
CHANGED: Final = "sourdough"
"""The session in which something was changed."""


class Turn(msgspec.Struct, frozen=True):
    """A message of the demo: its id, its parent's, its role, and its text or its parts."""

    id: str
    parent_id: str | None
    role: str
    said: str | list[dict[str, Any]]

    @property
    def message(self) -> dict[str, Any]:
        """The message as it is appended."""
        parts = [{"type": "text", "text": self.said}] if isinstance(self.said, str) else self.said
        return {"id": self.id, "role": self.role, "parts": parts}


class Conversation(msgspec.Struct, frozen=True):
    """A session of the demo: what was said, and what was changed then.

    `chosen` is the message whose branch was chosen last; `summary` stands for the messages between two.
    """

    id: str
    name: str
    turns: tuple[Turn, ...]
    chosen: str | None = None
    edited: tuple[Turn, ...] = ()
    deleted: tuple[str, ...] = ()
    summary: tuple[str, str, str] | None = None


CONVERSATIONS: Final = (
    Conversation(
        "deploy",
        "A deploy script that stops halfway",
        (
            Turn("s1", None, "system", "You help engineers. Answer briefly."),
            Turn("u1", "s1", "user", "deploy.sh stops after the build and prints nothing. What is wrong?"),
            Turn(
                "a1",
                "u1",
                "assistant",
                [
                    {
                        "type": "tool-read_file",
                        "toolCallId": "call-1",
                        "state": "output-available",
                        "input": {"path": "deploy.sh"},
                        "output": "set -e\nmake build\ngrep -q READY build.log\nrsync -a dist/ web:/srv/www/\n",
                    },
                    {
                        "type": "text",
                        "text": "`set -e` ends the script when `grep` finds nothing. Test for it:\n\n"
                        "```sh\ngrep -q READY build.log || { echo 'not ready' >&2; exit 1; }\n```",
                    },
                ],
            ),
            Turn("u2", "a1", "user", "That was it, thank you."),
        ),
    ),
    Conversation(
        CHANGED,
        "Why does my sourdough stay flat?",
        (
            Turn("u1", None, "user", "My sourdough spreads out and stays flat. The crumb is dense and a bit sticky."),
            Turn(
                "a1",
                "u1",
                "assistant",
                "That sounds like too little time. How warm is your kitchen, and how long did the dough rise?",
            ),
            Turn("u2", "a1", "user", "About 91 degrees, and four hours."),
            Turn("slip", "u2", "user", "See you at seven, Mum!"),
            Turn(
                "a2",
                "slip",
                "assistant",
                "At 19 degrees it needs seven to nine hours. Go by the dough: it should have grown by half and wobble.",
            ),
            Turn("u3", "a2", "user", "Can it rise in the fridge overnight instead?"),
            Turn("a3", "u3", "assistant", "Yes, once it has grown by a third. The cold only slows it down."),
        ),
        edited=(Turn("u2", "a1", "user", "About 19 degrees, and four hours."),),
        deleted=("slip",),
        summary=("A flat sourdough, risen for four hours at 19 degrees: it needs seven to nine.", "u1", "a2"),
    ),
    Conversation(
        "kyoto",
        "京都の紅葉",
        (
            Turn("u1", None, "user", "京都で紅葉が見ごろになるのはいつですか。"),
            Turn("a1", "u1", "assistant", "例年は十一月の中旬から下旬です。東福寺と永観堂は朝早くなら静かに歩けます。"),
            Turn("u2", "a1", "user", "夜のライトアップもありますか。"),
            Turn("a2", "u2", "assistant", "はい。永観堂は日没後も開いていて、池に映る紅葉がきれいです。"),
        ),
    ),
    Conversation(
        MAIN,
        "A weekend in Lisbon",
        (
            Turn("u1", None, "user", "We have two days in Lisbon at the end of May. Which quarter should we stay in?"),
            Turn(
                "a1",
                "u1",
                "assistant",
                "Alfama for narrow lanes and fado, Príncipe Real for gardens and cafés. Both are near the river.",
            ),
            Turn("u2", "a1", "user", "Alfama, then. What should we see on the first day?"),
            Turn(
                "a2",
                "u2",
                "assistant",
                "The castle before the crowds come, the cathedral, and in the afternoon tram 28 over the hills.",
            ),
            Turn("u3", "a2", "user", "Is tram 28 worth the queue?"),
            Turn(
                "a3",
                "u3",
                "assistant",
                "Before nine in the morning, yes. Later, walk: you will be faster than the tram, and see more.",
            ),
            Turn("u4", "a3", "user", "Give me both days as a list, please."),
            Turn(
                "a4",
                "u4",
                "assistant",
                "1. Saturday: castle, cathedral, lunch at the market.\n2. Sunday: tram 28 at eight, then Belém.",
            ),
            # The person asked for the answer once more, and went on from the second one.
            Turn(
                "a2-again",
                "u2",
                "assistant",
                "Take it slowly: the flea market, lunch by the river, and a viewpoint at sunset.",
            ),
            Turn("u5", "a2-again", "user", "Which viewpoint is the best at sunset?"),
            Turn(
                "a5",
                "u5",
                "assistant",
                "Senhora do Monte. It looks west over the castle and the bridge, and a kiosk sells cold drinks.",
            ),
            # And here the first question's answer was taken otherwise.
            Turn("u2-edited", "a1", "user", "Príncipe Real. Where do we eat on Saturday evening?"),
            Turn(
                "a6",
                "u2-edited",
                "assistant",
                "Try one of the small places near the garden. Come at seven: they keep no tables.",
            ),
        ),
        chosen="a5",
    ),
)
