"""What Ray reads from the environment when it is imported and when it is started.

Processes that Ray starts inherit it. What is set already stays. On a cluster that is there, each
node has its own (docs/cluster.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from studio.layout import SEARCHED
from studio.settings import ClusterSettings

DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A chunk on its way from replica to proxy costs both of them half as much as with Ray's calls.
    "RAY_SERVE_PROXY_USE_GRPC": "1",
    # A proxy that misses three of these is started again: 30 seconds without.
    "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
    # On a busy machine one starts for longer than 5 seconds, and would be started again for that.
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "30",
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": f"{__package__}.proxy_retry:middlewares",
    "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response",  # the same in HAProxy's words
}


def ray_environment(cluster: ClusterSettings, before: Mapping[str, str]) -> dict[str, str]:
    """What is to be set before Ray is imported, beside what is set."""
    paths = [str(SEARCHED), *before.get("PYTHONPATH", "").split(os.pathsep)]
    wanted = dict(DEFAULTS)
    if cluster.haproxy:
        wanted["RAY_SERVE_ENABLE_HA_PROXY"] = "1"
    if not cluster.address:
        # Ray runs what it is sent. Its token is made at the first start (~/.ray/auth_token).
        wanted["RAY_AUTH_MODE"] = "token"
    unset = {name: value for name, value in wanted.items() if name not in before}
    return {**unset, "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, paths)))}
