from __future__ import annotations

import asyncio
import datetime as dt
import json
import select
import signal
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, Any

import pytest
from redis import Redis

from eventstore import RedisPublisher
from replay.cli import signals
from replay.cli.signals import PREFIX, Signal, Signals
from sessions import CompactResult, Session, SessionManager, open_store
from tests.cli.running import Ran, eventstore, said, terminal
from tests.cli.test_tail import tailing
from tests.eventstore.redis_server import PASSWORD, RedisServer, free_port
from tests.eventstore.support import eventually

SOON = 30

Write = Callable[[Session], Awaitable[Any]]


@pytest.fixture(autouse=True)
def _no_server_of_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test listen to the Redis server of whoever runs it."""
    monkeypatch.delenv("EVENTSTORE_REDIS_URL", raising=False)


@pytest.fixture
def prefix() -> str:
    """Return a prefix that nobody else uses, with characters in it that mean something in a pattern."""
    return f"{uuid.uuid4()}[*?]\\:"


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Return a running server that a test may stop."""
    server = RedisServer()
    server.start()
    yield server
    server.stop()


def write(url: str, redis_url: str, prefix: str, session_id: str, does: Write) -> None:
    """Have a program write to a session that tells its status over Redis."""

    async def written() -> None:
        async with open_store(url, publisher=RedisPublisher(redis_url, channel_prefix=prefix)) as store:
            await does(Session.create(store).for_session(session_id))

    asyncio.run(written())


def say(text: str) -> Write:
    """Return what appends a message."""
    return lambda session: session.append_message({"role": "user", "parts": [{"type": "text", "text": text}]})


def await_listener(redis_url: str, channel: str) -> None:
    """Wait until somebody listens to a channel; what is said there meanwhile is no frame."""
    until = time.monotonic() + SOON
    with Redis.from_url(redis_url) as redis:
        while not redis.publish(channel, "is anybody there?"):
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.02)


def records(out: IO[str], count: int) -> list[dict[str, Any]]:
    """Return the next records, signals after events, since which of them comes first is nobody's promise."""
    read = [json.loads(out.readline()) for _ in range(count)]
    return sorted(read, key=lambda record: "signal" in record)


def frame(session_id: str, tokens: int, **other: Any) -> dict[str, Any]:
    """Return a frame as sessions tell it."""
    about = {"type": "cf_agent_session", "sessionId": session_id, "phase": "idle", "tokenEstimate": tokens}
    return {**about, "tokenThreshold": None, **other}


def test_signals_of_all(url: str, redis_url: str, prefix: str) -> None:
    """Beside the events of all sessions stand their signals, that of a session's first write too, as they came."""
    begun = dt.datetime.now(dt.UTC)
    chosen = ("--signals", "--redis", redis_url, "--channel-prefix", prefix)
    with tailing("--all", "--from", "12", *chosen, "--store", url) as (child, out, _):
        await_listener(redis_url, f"{prefix}session:")
        for number, session_id in enumerate(("walk-2", "new", "")):
            write(url, redis_url, prefix, session_id, say("Is it far?"))
            event, told = records(out, 2)
            assert (event["stream_id"], event["position"]) == (session_id, 12 + number)
            assert told["signal"] == frame(session_id, told["signal"]["tokenEstimate"])
            heard = dt.datetime.fromisoformat(told.pop("heard_at"))
            assert begun < heard < dt.datetime.now(dt.UTC)
            tokens = told.pop("signal")["tokenEstimate"]
            assert told == {"stream_id": session_id, "type": "cf_agent_session", "summary": f"idle, {tokens} tokens"}
        assert child.poll() is None


def test_signals_of_one_session(url: str, redis_url: str, prefix: str) -> None:
    """With a session its signals alone stand beside its events, and none of a session whose id begins like its."""
    chosen = ("--signals", "--redis", redis_url, "--channel-prefix", prefix)
    with tailing("walk", "--from", "12", *chosen, "--store", url) as (_, out, _):
        await_listener(redis_url, f"{prefix}session:walk")
        write(url, redis_url, prefix, "walk-2", say("Is it far?"))
        write(url, redis_url, prefix, "walk", say("How far?"))
        assert [record["stream_id"] for record in records(out, 2)] == ["walk", "walk"]
        assert not select.select([out], [], [], 0.5)[0]


def test_server_in_the_environment(url: str, own_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may be named in the environment, and channels are those of a store opened with redis_url."""
    monkeypatch.setenv("EVENTSTORE_REDIS_URL", own_server.url)

    async def written() -> None:
        async with open_store(url, redis_url=own_server.url) as store:
            await SessionManager(store).append("walk", said("How far?")[0] | {"id": "far"})

    with tailing("--all", "--type", "nothing", "--signals", "--store", url) as (_, out, _):
        await_listener(own_server.url, f"{PREFIX}session:")
        asyncio.run(written())
        (told,) = records(out, 1)
        assert told["stream_id"] == "walk"


def test_compaction_is_told(url: str, redis_url: str, prefix: str) -> None:
    """The phases of a compaction are shown as they come, in order, with sizes, and so is what went wrong in one."""
    answers: list[CompactResult | Exception] = [
        CompactResult("m1", "m2", "They walk."),
        RuntimeError("the model\ncannot be reached"),
    ]

    def compacts(*_: object) -> CompactResult:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def append(session: Session) -> None:
        session.on_compaction(compacts).compact_after(20).on_compaction_error(lambda _: None)
        for text in ("A longer question than all that was asked until now.", "And one more of that kind after it."):
            await say(text)(session)

    chosen = ("--type", "nothing", "--signals", "--redis", redis_url, "--channel-prefix", prefix)
    with tailing("walk", *chosen, "--store", url) as (_, out, _):
        await_listener(redis_url, f"{prefix}session:walk")
        write(url, redis_url, prefix, "walk", append)
        told = [json.loads(out.readline()) for _ in range(7)]
    assert [one["summary"] for one in told] == [
        "idle, 47 of 20 tokens",
        "compacting, 47 of 20 tokens",
        "idle, 38 of 20 tokens, compacted from 47",
        "idle, 53 of 20 tokens",
        "compacting, 53 of 20 tokens",
        "the model cannot be reached",
        "idle, 53 of 20 tokens",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--signals"], "signals of other processes come over Redis alone: name the server with --redis, or in "),
        (["--signals", "--redis", ""], "signals of other processes come over Redis alone"),
        (["--redis", "redis://localhost"], "--redis and --channel-prefix go with --signals"),
        (["--channel-prefix", "a:"], "--redis and --channel-prefix go with --signals"),
        (["--signals", "--redis", "redis://localhost", "--exit"], "--exit shows what is there now, and signals are"),
        (["--signals", "--redis", f"http://:{PASSWORD}@localhost"], "redis_url: must be like redis://host:6379"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be(url: str, arguments: list[str], says: str) -> None:
    """Signals without a server, a server without signals, and an end to what has none are errors of usage."""
    ran = eventstore("tail", "--all", *arguments, "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert PASSWORD not in ran.err


def test_hint_names_the_server(url: str) -> None:
    """Who asks for signals without a server is told how to name one."""
    ran = eventstore("tail", "--all", "--signals", "--store", url)
    assert "or in EVENTSTORE_REDIS_URL\nhint: `eventstore tail --all --signals --redis URL --store " in ran.err


def test_redis_that_goes_and_comes(url: str, own_server: RedisServer) -> None:
    """While Redis is away events are shown all the same; when it is back, so are signals, without a new command."""
    with tailing("--all", "--from", "12", "--signals", "--redis", own_server.url, "--store", url) as (child, out, err):
        await_listener(own_server.url, f"{PREFIX}session:")
        own_server.stop()
        assert "no connection to Redis, trying again" in err.readline()
        write(url, own_server.url, PREFIX, "walk", say("How far?"))
        assert json.loads(out.readline())["position"] == 12
        own_server.start()
        await_listener(own_server.url, f"{PREFIX}session:")
        write(url, own_server.url, PREFIX, "walk", say("How far?"))
        assert records(out, 2)[1]["stream_id"] == "walk"
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert PASSWORD not in err.read()


def test_no_redis(url: str) -> None:
    """Where no Redis is that is said, once and without the password, and the events are shown."""
    redis_url = f"redis://:{PASSWORD}@127.0.0.1:{free_port()}"
    with tailing("walk", "--from", "-1", "--signals", "--redis", redis_url, "--store", url) as (child, out, err):
        assert json.loads(out.readline())["version"] == 7
        assert err.readline() == "no connection to Redis, trying again: ConnectionError\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        (told,) = err.read().splitlines()
    assert told.startswith(
        "interrupted: resume from position 12 with `eventstore tail walk --from 12 --signals --redis "
    )
    assert told.partition("--redis ")[2].startswith("URL --store sqlite:")


def test_what_is_no_frame(url: str, redis_url: str, prefix: str) -> None:
    """What is no frame is passed over, whoever says it, and a frame of an unknown kind is shown."""
    chosen = ("--signals", "--redis", redis_url, "--channel-prefix", prefix)
    with tailing("--all", *chosen, "--store", url) as (_, out, _), Redis.from_url(redis_url) as redis:
        await_listener(redis_url, f"{prefix}session:x")
        odd = [b"\xff", "[]", "{}", '{"type": 1}', '{"type": "new", "tokenEstimate": "many", "phase": "\x07"}']
        for data in [*odd, b'{"type": "new", "tokenEstimate": "many", "phase": "a\\u0007"}']:
            redis.publish(f"{prefix}session:x", data)
        (told,) = records(out, 1)
        assert (told["type"], told["stream_id"], told["summary"]) == ("new", "x", "a\u2407, ? tokens")


def test_terminal_with_signals(url: str, redis_url: str, prefix: str) -> None:
    """On a terminal a signal is a row of the same table, without a position."""
    ran: list[Ran] = []
    chosen = ("--signals", "--redis", redis_url, "--channel-prefix", prefix, "--count", "2", "--no-color")
    watching = threading.Thread(target=lambda: ran.append(terminal("tail", "--all", *chosen, "--store", url)))
    watching.start()
    await_listener(redis_url, f"{prefix}session:")
    with Redis.from_url(redis_url) as redis:
        redis.publish(f"{prefix}session:walk", json.dumps(frame("walk", 1_234)))
    write(url, redis_url, prefix, "walk", say("How far?"))
    write(url, redis_url, prefix, "walk", say("And back?"))
    watching.join(SOON)
    head, signal_row, *rows = ran[0].lines
    assert head.split() == ["POS", "VER", "TIME", "SESSION", "TYPE", "SUMMARY"]
    assert signal_row.split()[1:] == ["walk", "cf_agent_session", "idle,", "1,234", "tokens"]
    places = {line.index("walk") for line in (signal_row, *rows)}
    assert places == {head.index("SESSION")}


async def test_redis_that_says_nothing(
    own_server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that answers nothing any more is noticed though nobody sends, and heard again once it wakes."""
    monkeypatch.setattr(signals, "SILENCE_SECONDS", 0.2)
    heard: list[Signal] = []

    async with Signals(own_server.url, prefix).shown("walk", heard.append):
        await asyncio.sleep(1)
        assert caplog.text == ""
        own_server.freeze()
        await eventually(lambda: "no connection to Redis" in caplog.text, within=SOON)
        own_server.thaw()
        with Redis.from_url(own_server.url) as redis:
            await eventually(lambda: redis.publish(f"{prefix}session:walk", '{"type": "new"}') and heard, within=SOON)
    assert heard[0].session_id == "walk"


async def test_failure_to_show(redis_url: str, prefix: str) -> None:
    """When a signal cannot be shown the whole fails with that, and Redis is not taken to be gone."""

    def fail(_: object) -> None:
        raise OSError("no space left")

    async def watch() -> None:
        async with asyncio.timeout(SOON), Signals(redis_url, prefix).shown(None, fail):
            with Redis.from_url(redis_url) as redis:
                while True:
                    redis.publish(f"{prefix}session:walk", '{"type": "new"}')
                    await asyncio.sleep(0.02)

    with pytest.raises(OSError, match="no space left"):
        await watch()


def test_reader_that_goes_away(url: str, redis_url: str, prefix: str) -> None:
    """When the reader of the pipe goes away it ends at once and quietly, signals or not."""
    chosen = ("--signals", "--redis", redis_url, "--channel-prefix", prefix)
    with tailing("--all", "--from", "start", *chosen, "--store", url) as (child, out, err):
        assert out.readline()
        await_listener(redis_url, f"{prefix}session:")
        out.close()
        assert child.wait(timeout=60) == 0
        assert err.read() == ""
