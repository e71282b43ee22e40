"""`make docs`: run the commands of every page, and write the generated parts anew."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from docs.outputs import PAGES, ROOT, with_outputs
from docs.reference import REFERENCE


def main() -> None:
    """Write every page whose content has changed, and name it."""
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    for page, text in pages.items():
        with TemporaryDirectory() as folder:
            _write(page, with_outputs(text, folder))
    for page, generate in REFERENCE.items():
        _write(page, generate())


def _write(page: str, text: str) -> None:
    path = ROOT / page
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
