"""Loading the system that a config names, of whichever kind."""

from __future__ import annotations

from rag_assets.contracts.cases import Dataset
from rag_assets.contracts.config import Config
from rag_assets.contracts.errors import Problem
from rag_assets.systems.blackbox import BlackBox
from rag_assets.systems.callables import load_callable
from rag_assets.systems.http import load_http
from rag_assets.systems.recorded import load_recorded
from rag_assets.systems.staged import StagedSystem, load_staged


def load_system(
    config: Config, name: str, dataset: Dataset | None, problems: list[Problem]
) -> StagedSystem | BlackBox | None:
    """Load and check the system; nothing of it is called.

    Args:
        config: the parsed config.
        name: how messages name the config file.
        dataset: the cases; None when the dataset is broken.
        problems: what is wrong is appended here.

    Returns:
        The system, or None when anything was wrong with it.
    """
    match config.system.kind:
        case "rag":
            return load_staged(config, name, problems)
        case "callable":
            return load_callable(config, name, problems)
        case "http":
            return load_http(config, name, problems)
        case "recorded":
            return load_recorded(config, name, dataset, problems)
