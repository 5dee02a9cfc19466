"""Faults of Gradio's scripts that are mended on their way to the browser, by their compiled form.

Another version has another form and is left as it is; tests/studio/ui/gradio_compat says so then.
"""

from __future__ import annotations

import re

MENDS = (
    # An event that came while its function ran (`always_last`) is run again with all that the same
    # moment sets off: two of them go on for ever where answers are slow. Only it runs again.
    (
        re.compile(rb"(this\.queue\.delete\((\w+)\.id\),this\.dispatch\()(\w+)\)"),
        rb"\1{...\3,type:`fn`,fn_index:\2.id})",
    ),
    # The clock of the page's own loading sign is never stopped: it asks for 60 frames a second for
    # as long as the page is open. A clock ends with what it times.
    (
        re.compile(
            rb"(function (\w+)\(\)\{\w+\(\(\)=>\{\w+\(\w+,"
            rb"\(performance\.now\(\)-\w+\(\w+\)\)/1e3\),\w+)"
            rb"(?=&&\2\(\)\}\)\}.*?\b(\w+)\.status===`pending`\?)",
            re.DOTALL,
        ),
        rb"\1&&\3.status===`pending`",
    ),
)


def mended(script: bytes) -> bytes:
    for fault, better in MENDS:
        script = fault.sub(better, script)
    return script
