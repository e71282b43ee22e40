"""`RagEvaluation`: a project as a component of someone's Dagster project."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from rag_assets.assets.definitions import build_definitions


class RagEvaluation(dg.Component, dg.Model, dg.Resolvable):
    """The evaluation of a RAG system: stages partitioned by case, checks, schedule and sensor.

    Attributes:
        project: the project's folder or its config file, relative to the component's folder.
        key_prefix: what every asset key begins with.
    """

    project: str
    key_prefix: Sequence[str] = ()

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of the project.

        Raises:
            InputError: the project is wrong.
        """
        return build_definitions(context.path / self.project, key_prefix=self.key_prefix)
