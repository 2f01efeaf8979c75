from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Iterator

import pytest
from hatchling.build import build_wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import PACKAGES, ROOT, place, project_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
METADATA = f"session_eventstore-{PROJECT['version']}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Return the project's wheel, built with the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as opened:
        yield opened


def locked() -> dict[str, str]:
    """Return the locked version of each distribution, by its normal name."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = (line.removesuffix(" \\").partition(" ;")[0].split("==") for line in lines if line[:1].isalnum())
    return {canonicalize_name(name): version for name, version in pins}


def test_wheel_ships_four_packages(wheel: zipfile.ZipFile) -> None:
    """The wheel holds the four packages, its metadata, and nothing else at its top."""
    assert {name.split("/")[0] for name in wheel.namelist()} == {*PACKAGES, METADATA}


def test_wheel_is_whole(wheel: zipfile.ZipFile) -> None:
    """Each package in the wheel has every file of its folder, the mark that it is typed among them."""
    shipped = {name for name in wheel.namelist() if not name.startswith(METADATA)}
    files = {place(path) for path in project_files() if place(path).split("/")[0] in PACKAGES}
    assert shipped == files
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped


def test_console_script(wheel: zipfile.ZipFile) -> None:
    """The wheel installs one command, `eventstore`."""
    scripts = wheel.read(f"{METADATA}/entry_points.txt").decode().split()
    assert scripts == ["[console_scripts]", "eventstore", "=", "replay.cli:main"]


@pytest.mark.parametrize("needed", [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]])
def test_lock_is_of_this_project(needed: str) -> None:
    """Every dependency in pyproject.toml is locked, to a version it allows."""
    requirement = Requirement(needed)
    assert locked()[canonicalize_name(requirement.name)] in requirement.specifier


def test_lock_says_where() -> None:
    """What cannot be had everywhere is locked with the condition that pyproject.toml gives it."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    found = {Requirement(line.removesuffix(" \\")) for line in lines if line[:1].isalnum() and ";" in line}
    wanted = map(Requirement, PROJECT["optional-dependencies"]["test"])
    assert {(one.name, one.marker) for one in found} == {(one.name, one.marker) for one in wanted if one.marker}


@pytest.mark.parametrize("name", ["aiosqlite", "pystemmer"])
def test_pins_are_exact(name: str) -> None:
    """What we call privately or store the output of is pinned to one version for everyone who installs us."""
    requirements = {canonicalize_name(found.name): found for found in map(Requirement, PROJECT["dependencies"])}
    assert [pin.operator for pin in requirements[canonicalize_name(name)].specifier] == ["=="]


def test_lock_is_hashed() -> None:
    """Every locked distribution comes with the hashes of its files."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [number for number, line in enumerate(lines) if line[:1].isalnum()]
    assert pins
    assert all(lines[number + 1].strip().startswith("--hash=sha256:") for number in pins)
