"""A cluster that cannot start says why in a sentence, which Serve keeps in its log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine import EngineError
from studio.cli.app_context import AppContext
from studio.settings import ClusterSettings


def test_why_no_replica_starts_is_told(context: AppContext, address: str) -> None:
    from ray import serve

    from studio.cluster.deployments import SPEECH, build
    from studio.cluster.run import start
    from tests.support.cluster.twins import TWINS, open_nothing

    one = ClusterSettings(replicas=1, gpus=0, cpus=0.1)
    settings = context.settings.model_copy(update={"cluster": one})
    speech = build(settings, replace(TWINS, replica=open_nothing))[SPEECH]
    with pytest.raises(EngineError) as told:
        start(speech, "broken", "/broken")
    serve.delete("broken")
    reason = "This model's file is cut short. Download it again."
    assert str(told.value) == f"The cluster cannot start. {reason}"
