"""Faults of Gradio's scripts that are mended on their way to the browser, by their compiled form.

Another version has another form and is left as it is; tests/studio/ui/gradio_compat says so then.
"""

from __future__ import annotations

import re

# How a node of the page is found by its id: through all of the tree, for each state that changes.
_FIND = re.compile(
    rb"function (\w+)\(e,t\)\{if\(e\.id===t\)return e;if\(e\.children\)for\(let n of e\.children\)"
    rb"\{let e=\1\(n,t\);if\(e\)return e\}return null\}"
)
_FIND_ONCE = (
    rb"function \1(e,t){function f(e){if(e.id===t)return e;if(e.children)for(let n of e.children)"
    rb"{let r=f(n);if(r)return r}return null}let k=\1.k??=new WeakMap,m=k.get(e);"
    rb"m||k.set(e,m=new Map);let n=m.get(t);n||(n=f(e))&&m.set(t,n);return n??null}"
)
_RERENDER = b"rerender(e,t){"

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
    # While the page opens, each component looks through the targets of all events for its own, and
    # every look goes through a proxy. They are sorted by component once.
    (
        re.compile(
            rb"(find_attached_events\(e,t\)\{)let n=t\.filter\(t=>t\.targets\.find\(\(\[t\]\)=>"
            rb"t===e\.id\)\)\.map\(t=>\{let n=t\.targets\.find\(\(\[t\]\)=>t===e\.id\);"
            rb"return n\?n\[1\]:null\}\)\.filter\(Boolean\);"
        ),
        rb"\1let k=this.attached??=new WeakMap,m=k.get(t);"
        rb"if(!m){k.set(t,m=new Map);for(let n of t){let s=new Set;"
        rb"for(let[r,i]of n.targets)s.has(r)||(s.add(r),"
        rb"i&&(m.get(r)??m.set(r,[]).get(r)).push(i))}}let n=m.get(e.id)??[];",
    ),
    # A tab that is open from the start tells that it is chosen, though nobody did: what the page's
    # opening or the tab around has asked for would be asked for twice. Tabs know whether one was.
    (
        re.compile(
            rb"(\b(\w+)=)(\w+\(\w+\(\)\?\?\w+\[0\]\?\.id\?\?!1\))"
            rb"(.{0,3000}?\w+\(\2,e\),)(?=\w+\(\w+,\w+\.findIndex)",
            re.DOTALL,
        ),
        rb"\1Object.assign(\3,{fresh:!0})\4\2.fresh=!1,",
    ),
    (
        re.compile(
            rb"(selected_tab:(\w+),selected_tab_index:\w+\}=.*?\(\)===e&&)"
            rb"(?=\w+\(\)\.then\(\(\)=>\w+\.onselect)",
            re.DOTALL,
        ),
        rb"\1!\2.fresh&&",
    ),
    # What a browser keeps is told as a change once the page has read it, enciphered and written
    # anew. Events of the opening find it there.
    (
        re.compile(
            rb"(let (\w+)=(\w+)\.props\.value;\w+\(\(\)=>\{\2!==\3\.props\.value&&\(\2=.*?"
            rb"\w+\(\(\)=>\{\w+\(\))(?=\}\))",
            re.DOTALL,
        ),
        rb"\1,\2=\3.props.value",
    ),
    # The cross that empties a menu of several tells a change alone; a single cross tells an input.
    (
        re.compile(
            rb"(function \w+\(e\)\{\w+\(\w+,\[\]\),\w+\(\w+,``\),"
            rb"(\w+)\.props\.value=\[\],e\.preventDefault\(\))(?=\})"
        ),
        rb"\1,\2.dispatch(`input`)",
    ),
    # So does Backspace, and a word that is typed into such a menu by Enter or by leaving it.
    (
        re.compile(
            rb"(e\.key===`Backspace`&&\w+\(\w+\)===``)(\)\{let e=(\w+\(\w+\))\.slice\(0,-1\);"
            rb"(\w+)\.props\.value=e\.map\([^{}]+\))(?=\})"
        ),
        rb"\1&&\3.length\2,\4.dispatch(`input`)",
    ),
    (
        re.compile(
            rb"(\b(\w+)\.props\.allow_custom_value&&(?:\w+\(\w+\)!==``&&)?"
            rb"\(\w+\(\w+\(\w+\)\),\w+\(\w+,``\))(?=\))"
        ),
        rb"\1,\2.dispatch(`input`)",
    ),
    # A menu of one tells an input whenever it is left. It does so where a value was chosen there
    # by Enter or typed; a choice by the pointer was told before.
    (
        re.compile(
            rb"(\b(\w+)=)(\w+\(\w+,`value`,15\))(,\w+=\w+\(\w+,`choices`,.{0,3000}?)"
            rb"(\w+\.on_input\?\.\(\),\w+\.blur\(\)\}.{0,1000}?\.on_blur\?\.\(\),)"
            rb"(\w+\.on_input\?\.\(\))(?=\})",
            re.DOTALL,
        ),
        rb"\1(s=>(...e)=>e.length?(\2.chosen=!0,s(...e)):s())(\3)\4\2.chosen=!1,\5"
        rb"\2.chosen&&(\2.chosen=!1,\6)",
    ),
    # Every press tells every component that ever waited how it stands, before its request is sent.
    # Only components whose state has changed are updated.
    (
        re.compile(
            rb"(Object\.entries\(this\.loading_stati\.current\))"
            rb"(\.map\(\(\[e,t\]\)=>this\.update_state_cb)"
        ),
        rb"\1.filter(([e,t])=>{let n=this.told??={},r=JSON.stringify(t),i=n[e]!==r;"
        rb"n[e]=r;return i})\2",
    ),
)


def mended(script: bytes) -> bytes:
    for fault, better in MENDS:
        script = fault.sub(better, script)
    return _indexed(script)


def _indexed(script: bytes) -> bytes:
    """Nodes are looked for once; what is rendered anew is looked for again."""
    found = _FIND.search(script)
    if not found or _RERENDER not in script:
        return script
    forget = _RERENDER + found[1] + b".k=null;"
    return _FIND.sub(_FIND_ONCE, script).replace(_RERENDER, forget, 1)
