"""Times and retries, as the config file writes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rag_assets.contracts.validation import FileModel, PositiveInt, Reference

Seconds = Annotated[float, Field(gt=0)]
SecondsOrZero = Annotated[float, Field(ge=0)]

HTTP_ATTEMPTS = 4


class Retries(FileModel):
    """When a failed attempt is made again. Waits are in seconds."""

    attempts: PositiveInt = 1
    wait_s: SecondsOrZero = 0.5
    max_wait_s: SecondsOrZero = 30.0
    retry_on: Annotated[tuple[Reference, ...], Field(strict=False)] = ()

    def for_http(self) -> Retries:
        """The same with the attempts of an HTTP system, where the file names none."""
        if "attempts" in self.model_fields_set:
            return self
        return self.model_copy(update={"attempts": HTTP_ATTEMPTS})
