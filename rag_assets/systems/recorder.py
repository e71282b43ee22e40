"""What a system that is called as a whole has recorded of one case."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from rag_assets.contracts.kinds import recorded_artifact


class Recorder:
    """Artifacts by kind. A kind that is recorded twice is kept apart: neither of the two counts.

    Attributes:
        is_denied: whether the system reported that access was refused.
    """

    def __init__(self) -> None:
        self.is_denied = False
        self._artifacts: dict[str, Any] = {}
        self._repeated: set[str] = set()
        # A system may record from several threads that it gave its context to.
        self._lock = threading.Lock()

    def record(self, kind: str, value: Any) -> None:
        """Keep an artifact.

        Raises:
            ArtifactError: it is malformed, or not JSON.
        """
        artifact = recorded_artifact(kind, value)
        with self._lock:
            if kind in self._artifacts:
                self._repeated.add(kind)
            self._artifacts[kind] = artifact

    @property
    def artifacts(self) -> Mapping[str, Any]:
        """Kind → artifact, for what was recorded exactly once."""
        with self._lock:
            return {
                kind: artifact
                for kind, artifact in self._artifacts.items()
                if kind not in self._repeated
            }

    @property
    def repeated(self) -> frozenset[str]:
        """The kinds that were recorded more than once."""
        with self._lock:
            return frozenset(self._repeated)
