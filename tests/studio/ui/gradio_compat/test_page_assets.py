"""Gradio's scripts arrive compressed, as they are in its folder but for mends, and only once."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from studio.ui.gradio_compat.page_assets import FOLDER, PageAssets, opening
from studio.ui.gradio_compat.script_mends import mended

SCRIPT = b"export const answer = 42; // " + bytes(range(128)) * 80


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path = tmp_path / "assets"
    tmp_path.mkdir()
    (tmp_path / "Index-a1B2-_c3.js").write_bytes(SCRIPT)
    (tmp_path / "Index-a1B2-_c3.css").write_bytes(SCRIPT)
    (tmp_path / "Index-A1B2-_c32.js").write_bytes(SCRIPT)
    (tmp_path / "font.ttf").write_bytes(SCRIPT)
    (tmp_path / "favicon.js").write_bytes(SCRIPT)
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    app = FastAPI()
    app.add_middleware(PageAssets, folder=folder)
    with TestClient(app) as client:
        yield client


NAMES = ("Index-a1B2-_c3.js", "Index-a1B2-_c3.css", "Index-A1B2-_c32.js")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_and_may_be_kept(client: TestClient, name: str) -> None:
    for _ in range(2):
        answer = client.get(f"/assets/{name}")
        assert answer.content == SCRIPT
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < len(SCRIPT) / 5
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["vary"] == "Accept-Encoding"


def test_who_refuses_gzip_gets_it_plain(client: TestClient) -> None:
    answer = client.get("/assets/Index-a1B2-_c3.js", headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in answer.headers


def test_what_waited_is_run_again_alone() -> None:
    """Gradio would run all events of its moment again, and these set one another off for ever."""
    [script] = FOLDER.glob("Blocks-*.js")
    again = b"this.queue.delete(%b.id),this.dispatch({...%b,type:`fn`,fn_index:%b.id})"
    form = re.escape(again).replace(b"%b", rb"\w+")
    app = FastAPI()
    app.add_middleware(PageAssets)
    with TestClient(app) as client:
        sent = client.get(f"/assets/{script.name}").content
    assert script.read_bytes().count(b"this.queue.delete(") == 2  # else Gradio does it otherwise
    assert len(re.findall(form, sent)) == 2


def test_the_clock_of_a_loading_sign_ends_with_it() -> None:
    """Gradio's own goes on where the sign is taken away: 60 frames a second, for ever."""
    [script] = FOLDER.glob("statustracker-*.js")
    plain = script.read_bytes()
    changed = mended(plain)
    assert (
        len(re.findall(rb"/1e3\),(\w+)&&(\w+)\.status===`pending`&&(\w+)\(\)\}\)\}", changed)) == 1
    )
    assert len(changed) < len(plain) + 40  # and nothing else


def test_only_components_that_stand_otherwise_are_told() -> None:
    [script] = FOLDER.glob("Blocks-*.js")
    plain = script.read_bytes()
    plain_code = b"Object.entries(this.loading_stati.current).map(([e,t])=>this.update_state_cb("
    assert plain.count(plain_code) == 1  # else Gradio does it otherwise
    assert mended(plain).count(b"this.loading_stati.current).filter(([e,t])=>{let n=this.told") == 1


def test_every_script_of_gradios_has_a_name_by_which_it_is_kept(folder: Path) -> None:
    scripts = [each.name for each in FOLDER.iterdir() if each.suffix in (".js", ".css")]
    assert [name for name in scripts if name not in PageAssets(FastAPI(), FOLDER)._files] == []


def test_tabs_know_whether_one_was_chosen() -> None:
    """One alone of these two mends would change nothing."""
    made = [mended(path.read_bytes()) for path in FOLDER.glob("Index-*.js")]
    assert (
        sum(
            len(re.findall(rb"\{fresh:!0\}.{1,3000}?\.fresh=!1,", each, re.DOTALL)) for each in made
        )
        == 2
    )
    assert sum(each.count(b".fresh&&") for each in made) == 1


def test_the_cross_that_empties_a_menu_is_an_input() -> None:
    [plain] = [b for b in (p.read_bytes() for p in FOLDER.glob("Index-*.js")) if b"remove-all" in b]
    emptied = rb"\.props\.value=\[\],e\.preventDefault\(\)"
    assert len(re.findall(emptied, plain)) == 1  # else Gradio does it otherwise
    assert len(re.findall(emptied + rb",\w+\.dispatch\(`input`\)\}", mended(plain))) == 1


def test_menus_tell_what_was_chosen_and_typed_alone() -> None:
    """What they tell then: test_menus_page.py."""
    [plain] = [b for b in (p.read_bytes() for p in FOLDER.glob("Index-*.js")) if b"remove-all" in b]
    better = mended(plain)
    assert plain.count(b".on_input?.()") == 2  # else Gradio does it otherwise
    assert better.count(b".chosen=") == 3
    assert better.count(b".dispatch(`input`)") == plain.count(b".dispatch(`input`)") + 4


FINDS = """
const leaf = (id) => ({ id });
const inner = { id: 2, children: [leaf(3), { id: 4, children: [leaf(5)] }] };
const root = { id: 0, children: [leaf(1), inner] };
const other = { id: 0, children: [leaf(9)] };
const expect = (found, id) => { if ((found?.id ?? null) !== id) throw new Error(`not ${id}`); };
for (const again of [1, 2]) {
  for (const id of [0, 1, 2, 3, 4, 5]) expect(find(root, id), id);
  expect(find(root, 9), null);
  expect(find(other, 9), 9);
  expect(find(other, 5), null);
}
root.children.push(leaf(9));
expect(find(root, 9), 9);
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("better", [False, True])
def test_nodes_are_found_as_gradio_finds_them(better: bool) -> None:
    [script] = FOLDER.glob("core-*.js")
    text = mended(script.read_bytes()) if better else script.read_bytes()
    function = re.search(
        rb"function (\w+)\(e,t\)\{(?:function f\(e\)\{)?if\(e\.id===t\).*?(?=function )", text
    )
    assert function
    assert (b".k??=new WeakMap" in function[0]) == better
    code = f"{function[0].decode()}; const find = {function[1].decode()}; {FINDS}"
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


ATTACHED = """
const events = [
  { targets: [[1, 'click'], [2, 'change']] },
  { targets: [[1, 'click']] },
  { targets: [[2, 'load'], [2, 'submit'], [null, 'load']] },
  { targets: [[3, '']] },
];
const of = (id, given) => {
  const node = { id, props: { shared_props: {} } };
  if (page.find_attached_events(node, given) !== node) throw new Error('another node');
  return node.props.shared_props.attached_events.join();
};
const wanted = { 1: 'click,click', 2: 'change,load', 3: '', 4: '' };
for (const id of [1, 2, 3, 4]) if (of(id, events) !== wanted[id]) throw new Error(of(id, events));
if (of(1, [...events, events[0]]) !== 'click,click,click') throw new Error('not looked for again');
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("better", [False, True])
def test_a_component_has_the_events_that_gradio_finds_for_it(better: bool) -> None:
    [script] = FOLDER.glob("core-*.js")
    text = mended(script.read_bytes()) if better else script.read_bytes()
    method = re.search(rb"find_attached_events\(e,t\)\{.*?,e\}(?=traverse)", text)
    assert method
    assert (b"new WeakMap" in method[0]) == better
    code = f"const page = {{ {method[0].decode()} }}; {ATTACHED}"
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_what_is_rendered_anew_is_looked_for_again() -> None:
    [script] = FOLDER.glob("core-*.js")
    plain = script.read_bytes()
    assert plain.count(b"rerender(e,t){") == 1
    assert re.search(rb"rerender\(e,t\)\{\w+\.k=null;", mended(plain))


def test_a_mended_script_is_asked_for_again_and_sent_once() -> None:
    [script] = FOLDER.glob("Blocks-*.js")
    app = FastAPI()
    app.add_middleware(PageAssets)
    with TestClient(app) as client:
        first = client.get(f"/assets/{script.name}")
        assert first.headers["cache-control"] == "public, no-cache"
        seen = {"if-none-match": first.headers["etag"]}
        again = client.get(f"/assets/{script.name}", headers=seen)
        other = client.get(f"/assets/{script.name}", headers={"if-none-match": '"other"'})
    assert (again.status_code, again.content) == (304, b"")
    assert (other.status_code, other.content) == (200, first.content)


def test_it_is_compressed_once(client: TestClient, folder: Path) -> None:
    first = client.get("/assets/Index-a1B2-_c3.js")
    (folder / "Index-a1B2-_c3.js").write_bytes(b"another")
    assert client.get("/assets/Index-a1B2-_c3.js").content == first.content


@pytest.mark.parametrize(
    "path",
    [
        "/assets/font.ttf",
        "/assets/favicon.js",
        "/assets/none-a1B2-_c3.js",
        "/assets/../Index-a1B2-_c3.js",
        "/assets/x/Index-a1B2-_c3.js",
        "/Index-a1B2-_c3.js",
        "/assets/%2e%2e/Index-a1B2-_c3.js",
    ],
)
def test_everything_else_is_left_to_gradio(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_who_takes_it_plain_is_left_to_gradio(client: TestClient) -> None:
    plain = {"accept-encoding": "identity"}
    assert client.get("/assets/Index-a1B2-_c3.js", headers=plain).status_code == 404
    assert client.post("/assets/Index-a1B2-_c3.js").status_code == 404


def test_the_page_names_what_it_will_load(client: TestClient, folder: Path) -> None:
    (folder.parent / "index.html").write_text('<script src="./assets/Index-a1B2-_c3.js"></script>')
    base = '<base href="./" />'
    page = f"<html><head><title>é</title>{base}</head></html>"
    app = FastAPI()
    app.add_api_route("/", lambda: HTMLResponse(page))
    app.add_middleware(PageAssets, folder=folder)
    with TestClient(app) as client:
        answer = client.get("/")
    link = '<link rel="modulepreload" crossorigin href="./assets/Index-a1B2-_c3.js">'
    assert answer.text == page.replace(base, f"{base}{link}")
    assert int(answer.headers["content-length"]) == len(answer.content)


def test_gradios_own_scripts_are_understood() -> None:
    names = opening(FOLDER)
    assert all((FOLDER / name).is_file() for name in names)
    assert {name.partition("-")[0] for name in names} >= {"index", "core", "Blocks", "HTML"}
    assert 40 < len(names) < 120
