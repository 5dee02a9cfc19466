"""How components and events of Gradio call the studio's JavaScript modules.

Gradio takes JavaScript as text: the body of a function where a component appears (`js_on_load`), a
function where an event runs (`js`). Both import a module (studio/ui/static_files.py) and call it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from studio.ui.static_files import FILES, address

ON_LOAD: Final = FILES["gradio_compat/on_load.js"].decode()
ON_EVENT: Final = FILES["gradio_compat/on_event.js"].decode()


def on_load(module: str, events: Sequence[str] = (), **options: object) -> str:
    """`js_on_load` of a gr.HTML: `mount(component, options)` of a module.

    `events`: the component's custom events; Gradio looks for their names in this text.
    """
    given = json.dumps({"events": list(events), **options})
    return ON_LOAD.replace("MODULE", address(module)).replace("OPTIONS", given)


def on_event(module: str, function: str, *arguments: object) -> str:
    """`js` of an event: a function of a module, with these arguments before the event's values."""
    call = ON_EVENT.replace("MODULE", address(module)).replace("NAME", function)
    return call.replace("ARGUMENTS", json.dumps(arguments)).strip()
