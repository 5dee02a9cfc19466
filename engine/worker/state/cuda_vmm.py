"""CUDA's virtual memory management: reserves addresses, and maps memory to them later.

The driver is called as a C library, with the types of cuda.h on 64 bits. Knows no slots.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes import POINTER, byref
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.worker.device import load_library, runs_cuda

_FULL = 2  # CUDA_ERROR_OUT_OF_MEMORY
_MAPS_MEMORY = 102  # CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED: the only kind there is for a device
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_MINIMUM = 0  # CU_MEM_ALLOC_GRANULARITY_MINIMUM


class DriverError(RuntimeError):
    """The driver cannot do this."""


class Span:
    """A range of addresses for torch: bytes [size]. Lives as long as a tensor over it."""

    def __init__(self, address: int, size: int) -> None:
        self.size = size
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class Driver(Protocol):
    """All methods but `tensor` are called within `current_context`.

    Sizes and addresses are multiples of `page`.
    """

    page: int

    def current_context(self) -> AbstractContextManager[None]: ...

    def reserve(self, size: int) -> int:
        """Reserve `size` addresses and return the first."""

    def free(self, address: int, size: int) -> None:
        """Free a reservation that has nothing mapped."""

    def create(self, size: int) -> int:
        """Allocate memory and return its handle. Raises torch.OutOfMemoryError, as do `map` and
        `set_access`."""

    def release(self, handle: int) -> None: ...

    def map(self, address: int, size: int, handle: int) -> None:
        """Map a handle's memory to addresses; they are not accessible yet."""

    def set_access(self, address: int, size: int) -> None:
        """Let the device read and write the mapped memory."""

    def unmap(self, address: int, size: int) -> None:
        """Undo a `map`."""

    def zero(self, address: int, size: int) -> None:
        """Set to zero before anything that the calling thread launches later."""

    def wait(self) -> None:
        """Wait for all work on the device."""

    def tensor(self, span: Span) -> Tensor:
        """A tensor of bytes [size] over a span, whose first page is mapped."""


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class AllocationFlags(ctypes.Structure):
    """CUmemAllocationProp::allocFlags."""

    _fields_ = (
        ("compression_type", ctypes.c_ubyte),
        ("gpu_direct_rdma_capable", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )


class Allocation(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("requested_handle_types", ctypes.c_int),
        ("location", Location),
        ("win32_handle_metadata", ctypes.c_void_p),
        ("flags", AllocationFlags),
    )


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", Location), ("flags", ctypes.c_int))


_Address = _Handle = _Flags = ctypes.c_ulonglong
_Size, _Device, _Context, _Stream = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p

# cuda.h defines cuCtxPushCurrent and cuCtxPopCurrent as the _v2 functions.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuGetErrorString": (ctypes.c_int, POINTER(ctypes.c_char_p)),
    "cuDeviceGet": (POINTER(_Device), ctypes.c_int),
    "cuDeviceGetAttribute": (POINTER(ctypes.c_int), ctypes.c_int, _Device),
    "cuDevicePrimaryCtxRetain": (POINTER(_Context), _Device),
    "cuCtxPushCurrent_v2": (_Context,),
    "cuCtxPopCurrent_v2": (POINTER(_Context),),
    "cuCtxSynchronize": (),
    "cuMemGetAllocationGranularity": (POINTER(_Size), POINTER(Allocation), ctypes.c_int),
    "cuMemAddressReserve": (POINTER(_Address), _Size, _Size, _Address, _Flags),
    "cuMemAddressFree": (_Address, _Size),
    "cuMemCreate": (POINTER(_Handle), _Size, POINTER(Allocation), _Flags),
    "cuMemRelease": (_Handle,),
    "cuMemMap": (_Address, _Size, _Size, _Handle, _Flags),
    "cuMemSetAccess": (_Address, _Size, POINTER(Access), _Size),
    "cuMemUnmap": (_Address, _Size),
    "cuMemsetD8Async": (_Address, ctypes.c_ubyte, _Size, _Stream),
}


class CudaDriver:
    """The driver of one GPU."""

    def __init__(self, index: int) -> None:
        torch.cuda.init()
        self._library, self._device = _library(), torch.device("cuda", index)
        number, context, page = _number(index), _Context(), _Size()
        # Torch's context of this GPU, which lives as long as the process.
        self._call("cuDevicePrimaryCtxRetain", byref(context), number)
        place = Location(_ON_DEVICE, number.value)
        self._context, self._access = context, Access(place, _READ_WRITE)
        self._kind = Allocation(type=_PINNED, location=place)
        self._call("cuMemGetAllocationGranularity", byref(page), byref(self._kind), _MINIMUM)
        self.page = page.value

    @contextmanager
    def current_context(self) -> Iterator[None]:
        """Set the context: a thread that has not used this GPU has none, or another one."""
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", byref(_Context()))

    def reserve(self, size: int) -> int:
        address = _Address()
        self._call("cuMemAddressReserve", byref(address), size, self.page, 0, 0)
        return address.value

    def free(self, address: int, size: int) -> None:
        self._call("cuMemAddressFree", address, size)

    def create(self, size: int) -> int:
        if torch.cuda.is_current_stream_capturing():
            # `zero` would be captured and clear the memory in every replay
            raise DriverError("Memory cannot grow during a graph capture.")
        handle = _Handle()
        self._call("cuMemCreate", byref(handle), size, byref(self._kind), 0)
        return handle.value

    def release(self, handle: int) -> None:
        self._call("cuMemRelease", handle)

    def map(self, address: int, size: int, handle: int) -> None:
        self._call("cuMemMap", address, size, 0, handle, 0)  # offsets are not supported yet

    def set_access(self, address: int, size: int) -> None:
        self._call("cuMemSetAccess", address, size, byref(self._access), 1)

    def unmap(self, address: int, size: int) -> None:
        self._call("cuMemUnmap", address, size)

    def zero(self, address: int, size: int) -> None:
        """Runs on the thread's current stream, so it precedes later launches and replays. The
        variant without a stream is asynchronous too, and torch's streams do not wait for it."""
        stream = torch.cuda.current_stream(self._device).cuda_stream
        self._call("cuMemsetD8Async", address, 0, size, stream)

    def wait(self) -> None:
        self._call("cuCtxSynchronize")

    def tensor(self, span: Span) -> Tensor:
        torch.cuda.current_stream(self._device).synchronize()  # other streams may use the tensor
        return torch.as_tensor(span, device=self._device)

    def _call(self, name: str, *arguments: Any) -> None:
        _check(self._library, name, getattr(self._library, name)(*arguments))


def cuda_driver(device: torch.device) -> CudaDriver:
    """The driver of a device. Raises DriverError where it cannot map memory."""
    if not growable(device):
        raise DriverError(f"{device} cannot map memory to addresses.")
    return _driver(_index(device))


def growable(device: torch.device) -> bool:
    """Whether this device supports virtual memory management."""
    if not runs_cuda(device) or not torch.cuda.is_available():
        return False
    try:
        library, known = _library(), ctypes.c_int()
        number = _number(_index(device))
        found = library.cuDeviceGetAttribute(byref(known), _MAPS_MEMORY, number)
        _check(library, "cuDeviceGetAttribute", found)
    except DriverError:
        return False
    return known.value != 0


@cache
def _driver(index: int) -> CudaDriver:
    return CudaDriver(index)


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def _number(index: int) -> ctypes.c_int:
    """The driver's CUdevice; it numbers the visible GPUs as torch does."""
    library, number = _library(), _Device()
    _check(library, "cuDeviceGet", library.cuDeviceGet(byref(number), index))
    return number


@cache
def _library() -> ctypes.CDLL:
    library = load_library(DriverError, "libcuda.so.1", "nvcuda.dll")
    for name, types in PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise DriverError(f"The CUDA driver is too old: it has no {name}.") from None
        function.argtypes, function.restype = types, ctypes.c_int
    _check(library, "cuInit", library.cuInit(0))
    return library


def _check(library: ctypes.CDLL, name: str, result: int) -> None:
    if not result:
        return
    text = ctypes.c_char_p()
    library.cuGetErrorString(result, byref(text))
    reason = f"{name}: {(text.value or b'unknown').decode()} ({result})"
    raise torch.OutOfMemoryError(reason) if result == _FULL else DriverError(reason)
