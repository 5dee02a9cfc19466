"""Compiled kernels placed into memory without a compiler: object files of x86-64 for Linux.

A kernel's object holds all that it calls but a few functions of the C library. What wraps it for
Python asks for more; nobody calls that, so it is placed with a trap. An object of which anything
else asks for more is refused. LLVM would need 90 MB and a third of a second to do the same. Knows
no kernel.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"
LIBRARIES = {None: ("memcpy", "memmove", "memset", "sched_yield"), "libm.so.6": ("expf", "floorf")}
# what may ask for other functions: nobody calls these, or with nothing that has to be freed
UNUSED = ("_ZN7cpython", "cfunc.", "NRT_decref")
_MAGIC = b"\x7fELF\x02\x01"
_HEADER, _SECTION, _SYMBOL, _MOVED = "<40xQ10xHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"
_PROGRAM, _SYMBOLS, _MOVES, _EMPTY = 1, 2, 4, 8  # kinds of sections
_WRITTEN, _LOADED = 1, 2  # flags of them
_COMMON = (0xFFF2, 0xFF02)  # "sections" of symbols that only need memory
_WHOLE, _RELATIVE = 1, 24  # R_X86_64_64, R_X86_64_PC64: all that the large code model has
_UNWINDING = ".eh_frame"
_TRAP = b"\x0f\x0b"


class UnknownObject(Exception):
    """An object file of another form, or one that calls what is not here."""


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    align: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    size: int


class MachineCode:
    """An object file in memory, and where one of its functions begins."""

    def __init__(self, code: bytes, function: str) -> None:
        """Raises UnknownObject."""
        try:
            self._place(code, function)
        except (struct.error, ArithmeticError, LookupError, StopIteration, ValueError) as error:
            raise UnknownObject(str(error)) from error

    def _place(self, code: bytes, function: str) -> None:
        sections = list(_sections(code))
        table = next(each for each in sections if each.kind == _SYMBOLS)
        symbols = list(_symbols(code, table, sections[table.link]))
        placed = [_is_placed(each) for each in sections]
        ends = [0, 0]  # of what is only read, and of what is written
        places: dict[int, tuple[int, int]] = {}
        for number, each in enumerate(sections):
            if placed[number]:
                places[number] = _next(ends, each.flags & _WRITTEN, each.size, each.align)
        common = {
            number: _next(ends, 1, size, value)
            for number, (_, section, value, size) in enumerate(symbols)
            if section in _COMMON
        }
        trap = _next(ends, 0, len(_TRAP), 1)
        self._memories = [_memory(end) for end in ends]
        bases = [_address(each) for each in self._memories]
        for number, (written, at) in places.items():
            each = sections[number]
            if each.kind != _EMPTY:
                self._memories[written][at : at + each.size] = _bytes(code, each)
        self._memories[0][trap[1] : trap[1] + len(_TRAP)] = _TRAP
        addresses: list[int | None] = []  # None: it is not here
        for number, (name, section, value, _) in enumerate(symbols):
            found = common.get(number) or places.get(section)
            if section == 0 or found is None:
                addresses.append(_outside(name) if section == 0 else None)
                continue
            addresses.append(bases[found[0]] + found[1] + (0 if number in common else value))
        for each in sections:
            if each.kind == _MOVES and placed[each.info]:
                written, start = places[each.info]
                unused = _unused(symbols, each.info)
                for at, symbol, kind, more in _moves(code, each):
                    address = addresses[symbol]
                    if address is None and any(at in own for own in unused):
                        address = bases[0] + trap[1]
                    if address is None:
                        raise UnknownObject(f"it calls {symbols[symbol][0]}")
                    place = self._memories[written], bases[written], start + at
                    _relocate(*place, kind, address + more)
        begin = addresses[[name for name, *_ in symbols].index(function)]
        if begin is None:
            raise UnknownObject(f"it has no {function}")
        self.start = begin
        size = len(self._memories[0])
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        if protect(bases[0], size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise UnknownObject("this system runs no code that was placed by a program")


def _sections(code: bytes) -> Iterator[_Section]:
    if not code.startswith(_MAGIC):
        raise UnknownObject("no object file of 64 bits")
    start, each_size, count, names = struct.unpack_from(_HEADER, code)
    heads = [struct.unpack_from(_SECTION, code, start + each_size * n) for n in range(count)]
    texts = heads[names][4]
    for name, kind, flags, _, at, size, link, info, align, _ in heads:
        yield _Section(_text(code, texts + name), kind, flags, at, size, link, info, align)


def _symbols(code: bytes, table: _Section, names: _Section) -> Iterator[_Symbol]:
    for name, _, _, section, value, size in struct.iter_unpack(_SYMBOL, _bytes(code, table)):
        yield _Symbol(_text(code, names.start + name), section, value, size)


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


def _bytes(code: bytes, section: _Section) -> bytes:
    return code[section.start : section.start + section.size]


def _is_placed(section: _Section) -> bool:
    loaded = bool(section.flags & _LOADED) and section.kind in (_PROGRAM, _EMPTY)
    return loaded and section.name != _UNWINDING


def _next(ends: list[int], written: int, size: int, align: int) -> tuple[int, int]:
    at = ends[written] + -ends[written] % max(align, 1)
    ends[written] = at + size
    return written, at


def _memory(size: int) -> mmap.mmap:
    return mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _outside(name: str) -> int | None:
    """The address of a function that is not in the object; None: not known here."""
    for library, functions in LIBRARIES.items():
        if name in functions:
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    return None


def _unused(symbols: Sequence[_Symbol], section: int) -> list[range]:
    """Where functions of a section are that nobody calls."""
    return [
        range(each.value, each.value + each.size)
        for each in symbols
        if each.section == section and each.name.startswith(UNUSED)
    ]


def _moves(code: bytes, moves: _Section) -> Iterator[tuple[int, int, int, int]]:
    """Place, symbol, kind and what is added, of each."""
    for at, info, more in struct.iter_unpack(_MOVED, _bytes(code, moves)):
        yield at, info >> 32, info & 0xFFFFFFFF, more


def _relocate(memory: mmap.mmap, base: int, at: int, kind: int, value: int) -> None:
    if kind not in (_WHOLE, _RELATIVE):
        raise UnknownObject(f"relocation {kind}")
    relative = base + at if kind == _RELATIVE else 0
    struct.pack_into("<Q", memory, at, (value - relative) % (1 << 64))
