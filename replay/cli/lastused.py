"""The session used last, which `@` stands for, for each store: kept in the user's state folder, never in the store."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Final

REMEMBERED: Final = 100
"""How many stores are remembered; the one not used for longest is forgotten first."""


class LastUsed:
    """The session used last in one store; losing it harms nobody, so that no error comes out of it."""

    def __init__(self, store: Path) -> None:
        import platformdirs

        self._file = platformdirs.user_state_path("eventstore", appauthor=False) / "last-used.json"
        # Paths can be secrets, and the state is not the place for them.
        self._key = hashlib.sha256(os.fsencode(store.resolve())).hexdigest()[:32]

    def read(self) -> str | None:
        """The session's id; None when none was used."""
        return self._all().get(self._key)

    def write(self, session_id: str) -> None:
        """Remember a session."""
        known = self._all()
        if known.get(self._key) == session_id:
            return
        known.pop(self._key, None)
        known[self._key] = session_id
        kept = dict(list(known.items())[-REMEMBERED:])
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False, encoding="utf-8") as file:
                json.dump(kept, file)
            # Two commands at once must not tear the file.
            Path(file.name).replace(self._file)

    def _all(self) -> dict[str, str]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}
