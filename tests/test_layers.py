"""Layers point one way, heavy libraries load where they are needed, and the SDK is what it says."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rag_assets

PACKAGE = Path(rag_assets.__file__).parent
LAYERS = [
    {"contracts"},
    {"formats"},
    {"statistics"},
    {"evaluators"},
    {"systems"},
    {"store"},
    {"evaluation"},
    {"assets"},
    {"reports"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Independent of each other, although both rank below what imports them.
NEVER = {
    ("systems", "evaluators"),
    ("store", "systems"),
    ("store", "evaluators"),
    ("reports", "assets"),
}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE]


def imported_layers(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rag_assets" and len(parts) > 1:
                found.add(parts[1])
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0]
    for other in imported_layers(path):
        assert RANK[other] <= RANK[layer], f"{layer} imports {other}"
        assert (layer, other) not in NEVER, f"{layer} imports {other}"


def test_dagster_stays_in_its_layer() -> None:
    for path in modules():
        layer = path.relative_to(PACKAGE).parts[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [
            name
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        ]
        assert layer == "assets" or not any(name.split(".")[0] == "dagster" for name in names), path


def test_the_sdk_loads_no_heavy_library() -> None:
    heavy = ("dagster", "duckdb", "numpy", "scipy", "rich", "click")
    code = f"import sys, rag_assets; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_is_what_there_is() -> None:
    for name in rag_assets.__all__:
        assert getattr(rag_assets, name) is not None
    public = {name for name in vars(rag_assets) if not name.startswith("_")}
    submodules = {path.stem for path in PACKAGE.iterdir()} | {
        "Any",
        "TYPE_CHECKING",
        "annotations",
        "import_module",
    }
    assert public - submodules <= set(rag_assets.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'rag_sytem'"):
        _ = rag_assets.rag_sytem
