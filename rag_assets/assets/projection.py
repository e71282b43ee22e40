"""Dagster's event log as a projection of the store: which events a run has to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from rag_assets.assets.events import instance_id, last_record, write_events
from rag_assets.assets.keys import INDEX, asset_key
from rag_assets.assets.serialization import AssetEvent
from rag_assets.contracts.canonical import digest
from rag_assets.evaluation.session import Session
from rag_assets.evaluation.words import PARENTS, Stage
from rag_assets.store import Head

UNPARTITIONED = ""
_DATA_VERSION = "dagster/data_version"
_INPUT_VERSION = "dagster/input_data_version/"
_INPUT_POINTER = "dagster/input_event_pointer/"


class Projection:
    """Writes an event for each (asset, case) whose content or provenance differs from its head.

    Args:
        session: the run.
        instance: where events go; heads are kept for each instance.
        suite: the suite's name.
        code_versions: stage → code version of its asset.
        always: an event for everything that is asked for, changed or not.
    """

    def __init__(
        self,
        session: Session,
        instance: dg.DagsterInstance,
        suite: str,
        code_versions: Mapping[Stage, str],
        *,
        always: bool,
    ) -> None:
        self._session = session
        self._instance_id = instance_id(instance)
        self._suite = suite
        self._code_versions = code_versions
        self._always = always
        with session.store.reading() as reader:
            self._heads = reader.heads(self._instance_id, [self._name(stage) for stage in PARENTS])

    def project_cases(self, context: dg.OpExecutionContext, stage: Stage) -> int:
        """Write the events of a case stage that the session has gone through.

        Returns:
            The number of events written.
        """
        pointer = last_record(context.instance)
        events: list[AssetEvent] = []
        for case_id, result in self._session.results[stage].items():
            if result.digest is None:
                self._forget(stage, case_id)
                continue
            metadata = {"cache": result.source, "latency_ms": round(result.latency_ms, 3)}
            inputs = self._inputs(stage, case_id)
            events += self._event(stage, case_id, result.digest, inputs, pointer, metadata)
        write_events(context, events)
        return len(events)

    def project_whole(
        self,
        context: dg.OpExecutionContext,
        stage: Stage,
        data_version: str,
        inputs: Mapping[str, str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Write the event of an unpartitioned asset, when it is due.

        Args:
            context: of its op.
            stage: metrics or gate.
            data_version: digest of its content.
            inputs: parent stage → digest of what was read of it.
            metadata: what the UI shows.
        """
        pointer = last_record(context.instance)
        events = self._event(stage, UNPARTITIONED, data_version, inputs, pointer, metadata)
        write_events(context, list(events))

    def _event(
        self,
        stage: Stage,
        case_id: str,
        data_version: str,
        inputs: Mapping[str, str],
        pointer: str,
        metadata: Mapping[str, Any],
    ) -> Iterable[AssetEvent]:
        """The event of one asset partition and its new head; nothing when nothing has changed."""
        tags = {
            _DATA_VERSION: data_version,
            "dagster/code_version": self._code_versions[stage],
            "dagster/data_version_is_user_provided": "true",
        }
        for name, version in inputs.items():
            tags[_INPUT_VERSION + asset_key(self._suite, name).to_user_string()] = version
        fingerprint = digest(tags)
        name = self._name(stage)
        head = self._heads.get((name, case_id))
        if head is not None and head.fingerprint == fingerprint and not self._always:
            return
        head = Head(self._instance_id, name, case_id, fingerprint, data_version)
        self._heads[name, case_id] = head
        self._session.head_changes[self._instance_id, name, case_id] = head
        for name in inputs:
            tags[_INPUT_POINTER + asset_key(self._suite, name).to_user_string()] = pointer
        yield AssetEvent(asset_key(self._suite, stage), case_id or None, tags, metadata)

    def _forget(self, stage: Stage, case_id: str) -> None:
        if self._heads.pop((self._name(stage), case_id), None) is not None:
            self._session.head_changes[self._instance_id, self._name(stage), case_id] = None

    def _inputs(self, stage: Stage, case_id: str) -> dict[str, str]:
        inputs: dict[str, str] = {
            parent: str(self._session.results[parent][case_id].digest) for parent in PARENTS[stage]
        }
        if stage == "retrieval":
            inputs[INDEX] = str(self._session.project.system.index_version)
        return inputs

    def _name(self, stage: str) -> str:
        return asset_key(self._suite, stage).to_user_string()
