from __future__ import annotations

from pathlib import Path

import pytest

from eventstore import InvalidArgumentError, NotSupportedError
from sessions import DirectorySkills, FsspecSkills, Session, Store
from sessions.skill_files import SkillFiles


@pytest.fixture(params=["folder", "fsspec"])
def skills(request: pytest.FixtureRequest, tmp_path: Path) -> SkillFiles:
    """Return the skills of a folder, read by itself and by way of fsspec."""
    folder = tmp_path / "skills"
    return DirectorySkills(folder) if request.param == "folder" else FsspecSkills(folder.as_uri())


def names(folder: Path) -> list[str]:
    """Return the names of all files and folders in a folder, at any depth."""
    return sorted(path.name for path in folder.rglob("*"))


async def test_skills_are_read_from_files(skills: SkillFiles, tmp_path: Path) -> None:
    """Keys are the names of files, descriptions stand in the front matter, and bodies are all the rest."""
    assert await skills.get() is None
    folder = tmp_path / "skills"
    (folder / "knots" / "sea").mkdir(parents=True)
    (folder / "tea.md").write_text(
        "---\ndescription: How to make\n  tea\nother: 1\n---\nBoil water.\n", encoding="utf-8"
    )
    (folder / "bike.md").write_text("Check the tyres.\n\n---\n\nThen the brakes.", encoding="utf-8")
    (folder / "knots" / "SKILL.md").write_text(
        "---\nname: knots\ndescription: Knots\n---\nA bowline.", encoding="utf-8"
    )
    (folder / "knots" / "sea" / "reef.md").write_text("---\n: [\n---\nA reef knot.", encoding="utf-8")
    (folder / "notes.txt").write_text("no skill", encoding="utf-8")
    assert await skills.get() == "- bike\n- knots: Knots\n- knots/sea/reef\n- tea: How to make tea"
    assert await skills.load("tea") == "Boil water."
    assert await skills.load("bike") == "Check the tyres.\n\n---\n\nThen the brakes."
    assert await skills.load("knots") == "A bowline."
    assert await skills.load("knots/sea/reef") == "---\n: [\n---\nA reef knot."
    assert await skills.load("notes") is None


async def test_skills_are_written_to_files(skills: SkillFiles) -> None:
    """A skill that is written is read back, keeps its description unless it gets another, and is replaced in place."""
    await skills.set("tea", "Boil water.\nWait.", "Tea: how to")
    await skills.set("deep/down", "Text")
    await skills.set("tea", "Boil more water.")
    assert await skills.load("tea") == "Boil more water."
    assert await skills.get() == "- deep/down\n- tea: Tea: how to"
    await skills.set("tea", "---\nnot: front matter\n---", "Rules")
    assert await skills.load("tea") == "---\nnot: front matter\n---"


@pytest.mark.parametrize(
    "key", ["", "..", "../secret", "a/../../secret", "/etc/secret", ".hidden", "a//b", "a\\b", "a\0b", "c:d"]
)
async def test_keys_stay_in_their_place(skills: SkillFiles, tmp_path: Path, key: str) -> None:
    """No key leads out of the folder, neither to read nor to write."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    await skills.set("tea", "Boil water.")
    assert await skills.load(key) is None
    with pytest.raises(InvalidArgumentError):
        await skills.set(key, "overwritten")
    assert (tmp_path / "secret.md").read_text(encoding="utf-8") == "secret"


async def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    """A link in the folder that leads out of it is no skill, and is not written through."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "link.md").symlink_to(tmp_path / "secret.md")
    skills = DirectorySkills(tmp_path / "skills")
    assert await skills.get() is None
    assert await skills.load("link") is None
    with pytest.raises(InvalidArgumentError):
        await skills.set("link", "overwritten")
    assert (tmp_path / "secret.md").read_text(encoding="utf-8") == "secret"


async def test_skills_of_a_folder_in_a_session(store: Store, skills: SkillFiles) -> None:
    """A session lists, loads and writes the skills of a folder as those of any provider."""
    session = Session.create(store).with_context("skills", provider=skills)
    tools = await session.tools()
    entry = {"title": "Make tea", "description": "Tea"}
    written = await tools["set_context"].execute({"label": "skills", "content": "Boil water.", "metadata": entry})
    assert written == 'Indexed "make-tea" in skills.'
    assert "- make-tea: Tea" in await session.freeze_system_prompt()
    assert await tools["load_context"].execute({"label": "skills", "key": "make-tea"}) == "Boil water."


async def test_skill_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """Where a skill's file cannot be put in its place, what stands there stays, and no part of it is left."""
    skills = DirectorySkills(tmp_path)
    (tmp_path / "tea.md" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"tea\.md"):
        await skills.set("tea", "Boil water.")
    assert names(tmp_path) == ["inside", "tea.md"]


def test_place_without_a_driver() -> None:
    """A URL for which nothing is installed is refused when it is named."""
    with pytest.raises(NotSupportedError):
        FsspecSkills("nowhere://bucket/skills")
