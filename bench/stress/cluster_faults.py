"""kill -9 of the processes of a cluster under load, many times, with the account of what was lost.

    python -m bench.stress.cluster_faults --kills 20 --kinds replica proxy controller front

Two twins behind Ray Serve speak to eight listeners of the API all the time, and voices are saved
over the API. Every stream must be whole or plainly broken off; every voice that was told to be
saved must be there. For each kind of process: streams broken off, refused, and the seconds until a
whole text is spoken again, and until everything is there again.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from bench.stress.cluster_load import open_front, open_twin
from bench.stress.cluster_processes import CONTROLLER, FRONT, HAPROXY, PROXY, SPEECH, processes
from engine import FRAME_SAMPLES, Library
from engine.testing import Costs
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cluster.ray_environment import ray_environment
from studio.settings import ClusterSettings, StudioSettings

TEXT = "x" * 300
WHOLE = 2 * FRAME_SAMPLES * len(TEXT)
KINDS = {"replica": SPEECH, "proxy": PROXY, "controller": CONTROLLER, "front": FRONT}
REPLICAS, LISTENERS = 2, 8
LONGEST = 120.0  # seconds until everything must be there again


def speak(url: str, seconds: float = 30) -> str:
    """How a stream ends. `seconds`: without anything from the server."""
    body = {"input": TEXT, "voice": "ryan", "response_format": "pcm", "stream": True}
    heard = 0
    try:
        with (
            client(seconds) as http,
            http.stream("POST", f"{url}/v1/audio/speech", json=body) as answer,
        ):
            if answer.status_code != 200:
                return _refusal(answer)
            for piece in answer.iter_bytes():
                heard += len(piece)
    except httpx.ConnectError:
        return "not connected"
    except httpx.HTTPError:
        return "broken while heard" if heard else "broken unheard"
    return "whole" if heard == WHOLE else "SHORT AND NOT SAID"


def _refusal(answer: httpx.Response) -> str:
    """Replicas name the reason, Serve does not."""
    try:
        reason = answer.read() and answer.json()["error"]["code"]
    except (ValueError, KeyError, TypeError):
        reason = "by Serve"
    return f"refused {answer.status_code} {reason}"


def client(seconds: float) -> httpx.Client:
    """For one request. Reading certificates, which nobody needs here, takes 20 ms of a core."""
    return httpx.Client(timeout=seconds, verify=False)


class Load:
    """Listeners and a saver of voices, until it is stopped."""

    def __init__(self, url: str) -> None:
        self.url, self.over = url, threading.Event()
        self.ends: Counter[str] = Counter()
        self.saved: list[str] = []
        works = [self._listen] * LISTENERS + [self._save]
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)

    def _listen(self) -> None:
        while not self.over.is_set():
            end = speak(self.url)
            self.ends[end] += 1
            if end != "whole":
                time.sleep(0.5)

    def _save(self) -> None:
        vector = [0.1] * 16
        for number in range(1_000_000):
            if self.over.is_set():
                return
            name = f"Voice {os.getpid()} {number}"
            fields = {"name": name, "consent": "true", "embedding": str(vector)}
            form = {key: (None, value) for key, value in fields.items()}
            try:
                with client(10) as http:
                    answer = http.post(f"{self.url}/v1/audio/voices", files=form)
                if answer.status_code == 200:
                    self.saved.append(name)
            except httpx.HTTPError:
                pass
            time.sleep(0.1)


def wait(true: Callable[[], bool]) -> float:
    """Seconds until it is true. Raises TimeoutError."""
    start = time.monotonic()
    while not true():
        if time.monotonic() - start > LONGEST:
            raise TimeoutError(f"not within {LONGEST:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - start


def there(url: str) -> bool:
    """Whether every process runs, and the front says that replicas are ready."""
    if [len(processes(title)) for title in (SPEECH, FRONT, CONTROLLER)] != [REPLICAS, 1, 1]:
        return False
    try:
        with client(3) as http:
            return http.get(f"{url}/ready").status_code == 200
    except httpx.HTTPError:
        return False


def kill(url: str, title: str, times: int) -> tuple[str, list[str]]:
    load = Load(url)
    spoken, back = [], []
    for number in range(times):
        time.sleep(1.5)
        wait(lambda: bool(processes(title)))
        os.kill(processes(title)[0], signal.SIGKILL)
        spoken.append(wait(lambda: speak(url, 10) == "whole"))
        back.append(spoken[-1] + wait(lambda: there(url)))
        seconds = f"spoken again after {spoken[-1]:.1f} s, all there after {back[-1]:.1f} s"
        print(f"  {title} {number + 1}: {seconds}; load {os.getloadavg()[0]:.0f}", flush=True)
    load.stop()
    ends = ", ".join(f"{count} {end}" for end, count in sorted(load.ends.items()))
    summary = (
        f"{title}: {times} kills; {ends}; {len(load.saved)} voices saved; spoken again after "
        f"{statistics.median(spoken):.1f} s (worst {max(spoken):.1f}), all there after "
        f"{statistics.median(back):.1f} s (worst {max(back):.1f})"
    )
    return summary, load.saved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--port", type=int, default=7893)
    parser.add_argument("--haproxy", action="store_true")
    given = parser.parse_args()
    os.environ.update(ray_environment(ClusterSettings(haproxy=given.haproxy), os.environ))
    from studio.cluster.deployments import Engines
    from studio.cluster.run import running

    engines = Engines(partial(open_twin, Costs(step=0.005), 1.0), open_front)
    with tempfile.TemporaryDirectory() as data:
        settings = StudioSettings.model_validate({
            "data": Path(data), "port": given.port, "page": False,
            "engine": {"max_num_seqs": 16}, "api": {"saved_voices": 100_000},
            "cluster": {"replicas": REPLICAS, "gpus": 0, "cpus": 0.1, "haproxy": given.haproxy},
        })  # fmt: skip
        with running(AppContext(settings, Console()), engines):
            url = f"http://127.0.0.1:{given.port}"
            for kind in given.kinds:
                title = HAPROXY if kind == "proxy" and given.haproxy else KINDS[kind]
                summary, saved = kill(url, title, given.kills)
                names = {voice.name for voice in Library(Path(data) / "voices").list()}
                print(f"{summary}; {len(set(saved) - names)} voices lost", flush=True)


if __name__ == "__main__":
    main()
