"""`system.code_paths`: files that count as code of the system."""

from __future__ import annotations

from pathlib import Path

from rag_assets.contracts.config import Config
from rag_assets.contracts.loading import is_project_file
from rag_assets.systems.reporting import Report


def code_files(config: Config, report: Report) -> list[Path]:
    """The files that `system.code_paths` names, sorted; what is wrong with a glob is reported."""
    found: list[Path] = []
    for index, pattern in enumerate(config.system.code_paths):
        key = f"code_paths.{index}"
        if Path(pattern).is_absolute():
            report(key, f'"{pattern}" must be relative to the config file.')
            continue
        try:
            files = [path.resolve() for path in config.root.glob(pattern) if path.is_file()]
        except (ValueError, IndexError):
            report(key, f'"{pattern}" is not a pattern for files; write one like prompts/*.txt.')
            continue
        own = [path for path in files if is_project_file(path, config.root)]
        if not all(path.is_relative_to(config.root) for path in files):
            report(key, f'"{pattern}" reaches outside the project folder.')
        elif not own:
            report(key, f'"{pattern}" matches no file of the project.')
        found += own
    return sorted(set(found))
