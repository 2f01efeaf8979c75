from __future__ import annotations

import contextlib
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from sessions import SessionManager
from tests.cli.running import COMMAND, Fill, environment, eventstore, process, said, terminal

HEAVY = (
    "aiosqlite asyncio eventstore msgspec platformdirs projections rich sessions sqlalchemy sqlite3 Stemmer"
).split()


@pytest.fixture
def long(make_store: Callable[[Fill], str]) -> str:
    """Return the URL of a store whose log is longer than a pipe holds."""

    async def fill(manager: SessionManager) -> None:
        await manager.get_session("long").append_messages(said(*map(str, range(2_000))))

    return make_store(fill)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["ls", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_no_driver(arguments: list[str]) -> None:
    """Help is printed without loading a database, a driver, the store or rich."""
    code = f"import sys; from replay.cli.app import run; run({arguments!r}); print(*sys.modules, file=sys.stderr)"
    # Where coverage measures processes, it loads a driver itself.
    unmeasured = environment(COVERAGE_PROCESS_CONFIG="", COVERAGE_PROCESS_START="")
    done = subprocess.run(
        [sys.executable, "-c", code], env=unmeasured, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {module.split(".")[0] for module in done.stderr.split()}
    assert sorted(loaded.intersection(HEAVY)) == []


def test_help_lists_the_commands() -> None:
    """Help lists every command there is, and nothing is listed that is not there."""
    out = eventstore("--help").out
    listed = [line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    commands = "demo import ls show graph log event tail search append fork export verify rebuild".split()
    commands += "status stats doctor schema migrate path".split()
    assert listed[: len(commands)] == commands
    assert all(eventstore(name, "--help").code == 0 for name in commands)


def test_help_says_each_whole() -> None:
    """On 80 columns help says what each command does in a whole sentence, on one line."""
    out = eventstore("--help").out
    listed = out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line for line in listed if not line.endswith(".") or line.endswith("..") or line.startswith("   ")] == []


def test_no_command_is_a_usage_error() -> None:
    """Without a command the help is shown, and the exit code is that of a usage error."""
    ran = process()
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err == eventstore("--help").out


def test_version() -> None:
    """--version prints the version of the installed distribution."""
    try:
        installed = version("session-eventstore")
    except PackageNotFoundError:
        installed = "(not installed)"
    assert eventstore("--version")[:3] == (0, f"eventstore {installed}\n", "")


@pytest.mark.parametrize(
    "command", [["log", "--all"], ["show", "long"], ["graph", "long", "--table", "--full"]], ids=" ".join
)
def test_closed_pipe_is_quiet(long: str, command: list[str]) -> None:
    """When the reader of a pipe goes away, the command ends without a word and without a failure."""
    with subprocess.Popen(
        [*COMMAND, *command, "--store", long], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.parametrize("command", [["path"], ["demo"], ["--help"], ["--version"]], ids=" ".join)
def test_pipe_closed_before_the_first_line(command: list[str], tmp_path: Path) -> None:
    """A pipe that nobody reads from the start is quiet too, though all output fits into the buffer."""
    with subprocess.Popen(
        [*COMMAND, *command], env=environment(TMPDIR=str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_interrupted(url: str) -> None:
    """Ctrl-C ends a command with the exit code 130 and without a traceback."""
    with subprocess.Popen(
        [*COMMAND, "import", "auto", "-", "--store", url],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        # More than a pipe holds: once all is written, the command has begun to read.
        child.stdin.write(b" " * (1 << 20))
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert (child.stdout.read(), child.stderr.read()) == (b"", b"interrupted\n")


def open_files(pid: int) -> set[str]:
    """Return the names of the files that a process has open."""
    found: set[str] = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        # It may be closed between the two looks.
        with contextlib.suppress(FileNotFoundError):
            found.add(file.readlink().name)
    return found


def wait_for_store(pid: int) -> None:
    """Wait until a process has opened a store, and has had the time to wait for its lock."""
    while Path("/proc").is_dir() and "store.db" not in open_files(pid):
        time.sleep(0.05)
    time.sleep(2)


def test_interrupted_while_locked(url: str, tmp_path: Path) -> None:
    """Ctrl-C ends an import soon, though another process keeps the store locked, and says how to go on."""
    source = Path(__file__).parents[1] / "fixtures" / "shared" / "chatgpt" / "tree-branches"
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with subprocess.Popen(
            [*COMMAND, "import", "auto", str(source), "--store", url],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            wait_for_store(child.pid)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=10)
    assert (child.returncode, out) == (130, b"")
    assert err == b"interrupted: what is stored stays, run it again to go on\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_quiet(url: str, closed: str) -> None:
    """A process that is started without one of the standard streams works without it."""
    line = ["sh", "-c", f"{shlex.join([*COMMAND, 'ls', '--store', url])} {closed}"]
    done = subprocess.run(line, env=environment(), capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_lists_are_tables_on_a_terminal(url: str) -> None:
    """On a terminal a list is a table in colour; in a pipe it is a record per line."""
    assert terminal("ls", "--store", url).out.startswith("\x1b[1mID")
    assert [record["id"] for record in eventstore("ls", "--store", url).records] == ["walk", "walk-2", "empty"]


@pytest.mark.parametrize(
    ("options", "variables", "colored"),
    [
        ([], {}, True),
        (["--no-color"], {}, False),
        ([], {"NO_COLOR": "1"}, False),
        (["--color"], {"NO_COLOR": "1"}, True),
    ],
    ids=["terminal", "--no-color", "NO_COLOR", "--color over NO_COLOR"],
)
def test_color_on_a_terminal(url: str, options: list[str], variables: dict[str, str], colored: bool) -> None:  # noqa: FBT001 - a parameter of the cases above
    """Colours are used on a terminal unless --no-color or NO_COLOR is there, and --color is above both."""
    out = terminal("ls", "--store", url, *options, **variables).out
    assert ("\x1b[33m" in out) is colored
    assert ("\x1b" in out) is colored


def test_color_in_a_pipe(url: str) -> None:
    """A table in a pipe has colours with --color alone, and JSON has none."""
    assert "\x1b[33m" in eventstore("ls", "--table", "--color", "--store", url).out
    assert "\x1b" not in eventstore("ls", "--table", "--store", url).out
    assert "\x1b" not in eventstore("--color", "ls", "--json", "--store", url).out


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1"])
def test_pipe_is_utf8_whatever_the_locale(url: str, locale: str) -> None:
    """What programs read is UTF-8, also where the locale is another."""
    done = subprocess.run(
        [*COMMAND, "search", "boots", "--store", url],
        env=environment(LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert "雨が降る".encode() in done.stdout
