"""Many engines behind one address: replicas, the studio in front of them, and Ray Serve between.

Nothing else imports Ray (requirements-ray.txt), and it is imported when a cluster is started.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from engine import InvalidSetting
from studio.cli.app_context import AppContext
from studio.cluster.ray_environment import ray_environment

MISSING = (
    "Replicas are served by Ray, which is not installed: "
    "pip install 'timbre-studio[cluster]' (in a checkout: -r requirements-ray.txt). "
    "Without --replicas it is not needed."
)


__all__ = ["application", "ray_environment", "serve"]


def serve(context: AppContext) -> None:
    """Serve until Ctrl-C or SIGTERM, with `ray_environment` set. Raises InvalidSetting: no Ray."""
    _check_installed()
    from studio.cluster.run import serve

    serve(context)


def application(context: AppContext, name: str) -> Any:
    """One of the applications of `serve run` and `serve deploy`: timbre-speech, timbre-studio."""
    _check_installed()
    from studio.cluster.deployments import build

    return build(context.settings)[name]


def _check_installed() -> None:
    if importlib.util.find_spec("ray") is None:
        raise InvalidSetting(MISSING)
