"""Windows of so many characters of many texts, found by their hash.

NumPy is imported where it is needed: commands that only read records never come here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import uint64
    from numpy.typing import NDArray

_BASE = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of long texts: of those that are alike, one for each group.

    Attributes:
        hashes: sorted.
        places: where each of them begins in the joined texts, parallel to `hashes`.
        starts: where each long text begins in the joined texts.
        numbers: which text that is.
    """

    hashes: NDArray[uint64]
    places: NDArray[Any]
    starts: NDArray[Any]
    numbers: list[int]

    @classmethod
    def of(cls, texts: Sequence[str], groups: Sequence[Hashable], size: int) -> Windows:
        """The windows of so many characters of the texts that are that long."""
        import numpy as np

        known = {group: code for code, group in enumerate(dict.fromkeys(groups))}
        # By group: a stable sort by hash then leaves equal windows of a group side by side.
        numbers = sorted(
            (number for number, text in enumerate(texts) if len(text) >= size),
            key=lambda number: known[groups[number]],
        )
        lengths = np.array([len(texts[number]) for number in numbers], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        codes = codes_of("".join(texts[number] for number in numbers))
        if not numbers:
            return cls(codes.astype(np.uint64), starts[:0], starts[:0], [])
        of_text = np.array([known[groups[number]] for number in numbers], dtype=np.uint32)
        hashes = window_hashes(codes, size)
        # No window reaches over the end of its text.
        inside = np.ones(len(hashes), dtype=bool)
        for end in starts[1:-1]:
            inside[end - size + 1 : end] = False
        places = np.flatnonzero(inside).astype(np.uint32)
        hashes = hashes[places]
        group_codes = np.repeat(of_text, lengths)[places]
        order = np.argsort(hashes, kind="stable")
        hashes, group_codes, places = hashes[order], group_codes[order], places[order]
        is_new = np.ones(len(hashes), dtype=bool)
        is_new[1:] = (hashes[1:] != hashes[:-1]) | (group_codes[1:] != group_codes[:-1])
        return cls(hashes[is_new], places[is_new], starts[:-1], numbers)

    def document_at(self, place: int) -> tuple[int, int]:
        """Which text a place of the joined texts belongs to, and where in it that is."""
        import numpy as np

        index = int(np.searchsorted(self.starts, place, "right")) - 1
        return self.numbers[index], place - int(self.starts[index])


def codes_of(text: str) -> NDArray[Any]:
    """The code points of a text."""
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def window_hashes(codes: NDArray[Any], size: int) -> NDArray[uint64]:
    """The polynomial hash of every window, modulo 2**64, by doubling the size of the windows."""
    import numpy as np

    whole = 1 << 64
    power, width = codes.astype(np.uint64) + np.uint64(1), 1
    done, length = None, 0
    while True:
        if size & width:
            if done is None:
                done = power
            else:
                shift = np.uint64(pow(_BASE, width, whole))
                count = len(codes) - length - width + 1
                done = done[:count] * shift + power[length : length + count]
            length += width
        if 2 * width > size:
            return done  # type: ignore[return-value]
        shift = np.uint64(pow(_BASE, width, whole))
        power = power[:-width] * shift + power[width:]
        width *= 2
