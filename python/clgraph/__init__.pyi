"""Command graphs for every OpenCL: build once, finalize, submit many times."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from os import PathLike
from typing import Any, Final, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from typing_extensions import disjoint_base

__all__ = [
    "Branch",
    "Capture",
    "CommandGroup",
    "Device",
    "DeviceGlobal",
    "DriverError",
    "Error",
    "Event",
    "Executable",
    "FailedError",
    "Graph",
    "HostTask",
    "In",
    "InOut",
    "InvalidError",
    "KernelNotSupportedError",
    "Launch",
    "Local",
    "Loop",
    "Memory",
    "MemoryMap",
    "NativeMemory",
    "Node",
    "NodeProfile",
    "NotReadyError",
    "NotSupportedError",
    "Out",
    "OutOfMemoryError",
    "Param",
    "Pending",
    "Profile",
    "Program",
    "Queue",
    "Read",
    "Report",
    "SubGraph",
    "Submission",
    "TimedOutError",
    "UserEvent",
    "Write",
    "__version__",
    "capture",
    "devices",
    "trace",
]

__version__: Final[str]

# Objects of pyopencl, which need not be installed.
_Buffer: TypeAlias = Any  # pyopencl.Buffer
_Array: TypeAlias = Any  # pyopencl.array.Array
_Image: TypeAlias = Any  # pyopencl.Image
_Kernel: TypeAlias = Any  # pyopencl.Kernel
_Sampler: TypeAlias = Any  # pyopencl.Sampler
_Program: TypeAlias = Any  # pyopencl.Program
_CommandQueue: TypeAlias = Any  # pyopencl.CommandQueue
_Context: TypeAlias = Any  # pyopencl.Context
_ClDevice: TypeAlias = Any  # pyopencl.Device
_ClEvent: TypeAlias = Any  # pyopencl.Event

_Memory: TypeAlias = Memory | _Buffer | _Array
_Data: TypeAlias = NDArray[Any] | bytes | bytearray | memoryview
_Shape: TypeAlias = int | tuple[int, ...]
_Triple: TypeAlias = int | tuple[int, ...]
_Value: TypeAlias = np.generic | NDArray[Any] | bytes | int | float
_Argument: TypeAlias = In | Out | InOut | Param | Local | _Value | Any | None
_Uses: TypeAlias = _Memory | _Image | Iterable[_Memory | _Image]
_GlobalUse: TypeAlias = In | Out | InOut
_Globals: TypeAlias = _GlobalUse | Iterable[_GlobalUse]
_NodeLike: TypeAlias = Node | Event | Memory | Submission
_Nodes: TypeAlias = _NodeLike | Iterable[_NodeLike]
_After: TypeAlias = _Nodes | Literal["leaves"]
_EventLike: TypeAlias = Event | UserEvent | Submission | _ClEvent
_Events: TypeAlias = _EventLike | Iterable[_EventLike]
_Detail: TypeAlias = Literal["brief", "full", "verbose"]
_Path: TypeAlias = Literal["auto", "native", "replay", "gated", "queues"]
_Loops: TypeAlias = Literal["auto", "host-decided", "ahead"]
_Fuse: TypeAlias = Literal["off", "auto", "now"]
_MapMode: TypeAlias = Literal["read", "write", "discard"]

class Error(Exception):
    cl_status: int | None

class InvalidError(Error, ValueError): ...
class NotSupportedError(Error): ...
class KernelNotSupportedError(Error): ...
class OutOfMemoryError(Error, MemoryError): ...
class DriverError(Error, RuntimeError): ...
class FailedError(Error, RuntimeError): ...
class NotReadyError(Error): ...
class TimedOutError(NotReadyError, TimeoutError): ...

@final
class In:
    def __new__(cls, memory: _Memory | _Image | Param | DeviceGlobal) -> Self: ...
    @property
    def memory(self) -> Any: ...

@final
class Out:
    def __new__(cls, memory: _Memory | _Image | Param | DeviceGlobal) -> Self: ...
    @property
    def memory(self) -> Any: ...

@final
class InOut:
    def __new__(cls, memory: _Memory | _Image | Param | DeviceGlobal) -> Self: ...
    @property
    def memory(self) -> Any: ...

@final
class Local:
    def __new__(cls, nbytes: int) -> Self: ...
    @property
    def nbytes(self) -> int: ...

@final
class Param:
    def __new__(
        cls, value: np.generic | NDArray[Any] | bytes | Local | _Memory | _Image | _Sampler, *, or_null: bool = False
    ) -> Self: ...
    def set(self, value: _Value | Local | _Memory | _Image | _Sampler | None) -> None: ...
    def get(self) -> Any: ...

@final
class Memory:
    def __new__(
        cls, buffer: _Buffer | _Array, dtype: DTypeLike | None = None, shape: _Shape | None = None
    ) -> Self: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def node(self) -> Node | None: ...
    @property
    def buffer(self) -> _Buffer | None: ...
    def view(self, dtype: DTypeLike | None = None, shape: _Shape | None = None) -> Memory: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> Memory: ...

@disjoint_base
class Node:
    @property
    def index(self) -> int: ...
    @property
    def kind(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Write(Node): ...
@final
class Read(Node): ...

@final
class SubGraph(Node):
    def input(self, write: Write | Event) -> Write: ...
    def result(self, read: Read | Pending) -> Read: ...
    def branch(self, branch: Branch) -> Branch: ...
    def loop(self, node: Loop) -> Loop: ...
    def event(self, node: Node | Event) -> Node: ...

@final
class Branch(Node):
    def body(self, index: int) -> SubGraph: ...

@final
class Loop(Node):
    @property
    def body(self) -> SubGraph: ...

@final
class HostTask:
    def __getitem__(self, key: Read | Pending, /) -> NDArray[Any]: ...
    def __setitem__(self, key: Write | Event, value: _Data, /) -> None: ...

@final
class NativeMemory:
    @property
    def buffer(self) -> _Buffer | None: ...
    @property
    def image(self) -> _Image | None: ...
    @property
    def address(self) -> int | None: ...
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class DeviceGlobal:
    def __new__(
        cls,
        name: str,
        initial: Any = None,
        dtype: DTypeLike | None = None,
        shape: _Shape | None = None,
        *,
        of_program: bool = False,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def on(self, queue: Queue | _CommandQueue | Graph) -> Memory: ...

@final
class Program:
    def __new__(
        cls,
        context: _Context | Queue | _CommandQueue,
        source: str | Sequence[str],
        globals: dict[str, DeviceGlobal] | None = None,
        *,
        options: str | Sequence[str] | None = None,
        global_access: Literal["named", "kernel", "argument"] | None = None,
    ) -> Self: ...
    def kernel(self, name: str) -> _Kernel: ...
    @property
    def kernel_names(self) -> list[str]: ...
    @property
    def globals(self) -> list[str]: ...
    @property
    def program(self) -> _Program: ...

@final
class Launch:
    def __new__(
        cls,
        kernel: _Kernel,
        global_size: _Triple,
        *args: _Argument,
        local_size: _Triple | None = None,
        offset: _Triple | None = None,
        up_to: _Triple | None = None,
        prints: bool = False,
        globals: _Globals | None = None,
        elementwise: dict[int, int] | None = None,
    ) -> Self: ...

@final
class CommandGroup:
    def __new__(
        cls,
        graph: Graph,
        members: Iterable[Launch] | Iterable[Callable[[HostTask], object] | Callable[[], object]],
        reads: _Uses | None = None,
        writes: _Uses | None = None,
    ) -> Self: ...
    @property
    def active(self) -> int: ...
    @active.setter
    def active(self, index: int) -> None: ...
    def __len__(self) -> int: ...

@final
class Graph:
    def __new__(cls, queue: Queue | _CommandQueue | _Context, device: Device | _ClDevice | None = None) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def kernel(
        self,
        kernel: _Kernel,
        global_size: _Triple,
        *args: _Argument,
        local_size: _Triple | None = None,
        offset: _Triple | None = None,
        up_to: _Triple | None = None,
        prints: bool = False,
        globals: _Globals | None = None,
        elementwise: dict[int, int] | None = None,
        label: str | None = None,
        after: _After | None = None,
    ) -> Node: ...
    def replace_kernel(
        self,
        node: _NodeLike,
        kernel: _Kernel,
        global_size: _Triple,
        *args: _Argument,
        local_size: _Triple | None = None,
        offset: _Triple | None = None,
        up_to: _Triple | None = None,
        prints: bool = False,
        globals: _Globals | None = None,
        elementwise: dict[int, int] | None = None,
    ) -> None: ...
    def set_arg(self, node: _NodeLike, index: int, value: _Argument) -> None: ...
    def capture(self, queue: Queue | _CommandQueue | None = None, *, relaxed: bool = False) -> Capture: ...
    def set_range(
        self, node: _NodeLike, global_size: _Triple, *, local_size: _Triple | None = None, offset: _Triple | None = None
    ) -> None: ...
    def copy(
        self,
        src: _Memory | _Image,
        dst: _Memory | _Image,
        *,
        label: str | None = None,
        after: _After | None = None,
        replaces: _NodeLike | None = None,
    ) -> Node: ...
    def copy_rect(
        self,
        src: _Memory | _Image,
        dst: _Memory | _Image,
        region: _Triple | None = None,
        *,
        src_origin: _Triple | None = None,
        dst_origin: _Triple | None = None,
        src_pitch: _Triple | None = None,
        dst_pitch: _Triple | None = None,
        label: str | None = None,
        after: _After | None = None,
        replaces: _NodeLike | None = None,
    ) -> Node: ...
    def fill(
        self,
        dst: _Memory | _Image,
        pattern: _Value | tuple[float, float, float, float],
        *,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        label: str | None = None,
        after: _After | None = None,
        replaces: _NodeLike | None = None,
    ) -> Node: ...
    def write(
        self,
        dst: _Memory | _Image,
        data: _Data,
        *,
        copy: bool = True,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        label: str | None = None,
        after: _After | None = None,
        replaces: _NodeLike | None = None,
    ) -> Write: ...
    def read(
        self,
        src: _Memory | _Image,
        dtype: DTypeLike | None = None,
        shape: _Shape | None = None,
        *,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        label: str | None = None,
        after: _After | None = None,
        replaces: _NodeLike | None = None,
    ) -> Read: ...
    def alloc(
        self,
        shape: _Shape,
        dtype: DTypeLike | None = None,
        *,
        zeroed: bool = False,
        label: str | None = None,
        after: _After | None = None,
    ) -> Memory: ...
    def free(self, memory: Memory, *, label: str | None = None, after: _After | None = None) -> Node: ...
    def sub_graph(
        self, executable: Executable, *, label: str | None = None, after: _After | None = None
    ) -> SubGraph: ...
    def when(
        self,
        flag: _Memory,
        then: Executable,
        otherwise: Executable | None = None,
        *,
        label: str | None = None,
        after: _After | None = None,
        replaces: Branch | None = None,
    ) -> Branch: ...
    def switch(
        self,
        index: _Memory,
        cases: Iterable[Executable],
        *,
        label: str | None = None,
        after: _After | None = None,
        replaces: Branch | None = None,
    ) -> Branch: ...
    def repeat_while(
        self,
        flag: _Memory,
        body: Executable,
        at_least_once: bool = False,
        at_most: int | None = None,
        *,
        label: str | None = None,
        after: _After | None = None,
        replaces: Loop | None = None,
    ) -> Loop: ...
    def repeat(
        self,
        n: int,
        body: Executable,
        *,
        label: str | None = None,
        after: _After | None = None,
        replaces: Loop | None = None,
    ) -> Loop: ...
    def host_task(
        self,
        function: Callable[[HostTask], object] | Callable[[], object],
        reads: _Uses | None = None,
        writes: _Uses | None = None,
        *,
        label: str | None = None,
        after: _After | None = None,
    ) -> Node: ...
    def map(
        self,
        memory: _Memory,
        function: Callable[[NDArray[Any]], object],
        mode: _MapMode = "read",
        *,
        dtype: DTypeLike | None = None,
        shape: _Shape | None = None,
        label: str | None = None,
        after: _After | None = None,
    ) -> Node: ...
    def native_command(
        self,
        function: Callable[..., object],
        reads: _Uses | None = None,
        writes: _Uses | None = None,
        *,
        label: str | None = None,
        after: _After | None = None,
    ) -> Node: ...
    def command_group(self, group: CommandGroup, *, label: str | None = None, after: _After | None = None) -> Node: ...
    def wait_event(self, *, label: str | None = None, after: _After | None = None) -> Node: ...
    def signal_event(self, *, label: str | None = None, after: _After | None = None) -> Node: ...
    def empty(self, *, label: str | None = None, after: _After | None = None) -> Node: ...
    def add_edge(self, before: _NodeLike, after: _NodeLike) -> None: ...
    @property
    def context(self) -> _Context: ...
    @property
    def device(self) -> Device: ...
    @property
    def nodes(self) -> list[Node]: ...
    @property
    def roots(self) -> list[Node]: ...
    def predecessors(self, node: _NodeLike) -> list[Node]: ...
    def successors(self, node: _NodeLike) -> list[Node]: ...
    def set_label(self, node: _NodeLike, label: str | None) -> None: ...
    def label(self, node: _NodeLike) -> str | None: ...
    def finalize(
        self,
        *,
        updatable: bool = False,
        profiling: bool = False,
        path: _Path | None = None,
        result_slots: int | None = None,
        commands_per_buffer: int | None = None,
        tuning_cache: str | PathLike[str] | None = None,
        autotune: bool = True,
        allow_conflicts: bool = False,
        separate_memory: bool = False,
        loops: _Loops | None = None,
        fuse: _Fuse | None = None,
    ) -> Executable: ...
    def to_dot(self, detail: _Detail = "brief") -> str: ...
    def to_svg(self, detail: _Detail = "brief") -> str: ...
    def _repr_svg_(self) -> str: ...

@final
class Executable:
    def submit(
        self,
        queue: Queue | _CommandQueue | None = None,
        *,
        inputs: dict[Write | Event, _Data] | None = None,
        wait_for: _Events | None = None,
        events: dict[Node | Event, _EventLike] | None = None,
        signals: dict[Node | Event, UserEvent] | None = None,
        copy: bool = True,
    ) -> Submission: ...
    def submit_detached(
        self,
        queue: Queue | _CommandQueue | None = None,
        *,
        inputs: dict[Write | Event, _Data] | None = None,
        wait_for: _Events | None = None,
        events: dict[Node | Event, _EventLike] | None = None,
        signals: dict[Node | Event, UserEvent] | None = None,
        copy: bool = True,
    ) -> None: ...
    def update(self, *nodes: _Nodes) -> None: ...
    def update_from(self, graph: Graph) -> None: ...
    @property
    def report(self) -> Report: ...
    @property
    def memory_map(self) -> MemoryMap: ...
    @property
    def required_memory(self) -> int: ...
    @property
    def command_buffers(self) -> list[int]: ...
    @property
    def device(self) -> Device: ...
    def to_svg(self, run: Submission | None = None, detail: _Detail = "brief") -> str: ...
    def _repr_svg_(self) -> str: ...

@final
class Submission(Awaitable[None]):
    def wait(self, timeout: float | None = None) -> None: ...
    @property
    def progress(self) -> Literal["waiting", "running", "complete", "failed"]: ...
    @property
    def done(self) -> bool: ...
    @property
    def event(self) -> _ClEvent: ...
    @property
    def sub_graph(self) -> SubGraph | None: ...
    def __getitem__(self, key: Read | Pending, /) -> NDArray[Any]: ...
    def read_into(self, read: Read | Pending, out: NDArray[Any]) -> None: ...
    def on_complete(self, function: Callable[[Exception | None], object]) -> None: ...
    def __await__(self) -> Generator[Any, None, None]: ...
    def turns(self, node: Branch | Loop) -> int: ...
    def cancel(self) -> None: ...
    def profile(self) -> Profile: ...
    def trace(self, path: str | PathLike[str] | None = None) -> str: ...

@final
class Capture:
    def __enter__(self) -> Graph: ...
    def __exit__(self, *exception: object) -> None: ...
    @property
    def nodes(self) -> list[Node]: ...

@disjoint_base
class Event:
    def wait(self) -> None: ...
    @property
    def done(self) -> bool: ...
    @property
    def event(self) -> _ClEvent: ...
    @property
    def node(self) -> Node | None: ...

@final
class Pending(Event):
    def get(self) -> NDArray[Any]: ...

@final
class UserEvent:
    def __new__(cls, queue: Queue | _CommandQueue | _Context) -> Self: ...
    def complete(self) -> None: ...
    def fail(self, reason: str | BaseException) -> None: ...
    def wait(self, timeout: float | None = None) -> None: ...
    @property
    def done(self) -> bool: ...
    @property
    def event(self) -> _ClEvent: ...

@final
class Queue:
    def __new__(cls, queue: _CommandQueue | Device) -> Self: ...
    @property
    def recording(self) -> bool: ...
    @property
    def device(self) -> Device: ...
    @property
    def context(self) -> _Context: ...
    @property
    def queue(self) -> _CommandQueue: ...
    def kernel(
        self,
        kernel: _Kernel,
        global_size: _Triple,
        *args: _Argument,
        local_size: _Triple | None = None,
        offset: _Triple | None = None,
        up_to: _Triple | None = None,
        prints: bool = False,
        globals: _Globals | None = None,
        elementwise: dict[int, int] | None = None,
        after: _Events | None = None,
    ) -> Event: ...
    def copy(self, src: _Memory | _Image, dst: _Memory | _Image, *, after: _Events | None = None) -> Event: ...
    def copy_rect(
        self,
        src: _Memory | _Image,
        dst: _Memory | _Image,
        region: _Triple | None = None,
        *,
        src_origin: _Triple | None = None,
        dst_origin: _Triple | None = None,
        src_pitch: _Triple | None = None,
        dst_pitch: _Triple | None = None,
        after: _Events | None = None,
    ) -> Event: ...
    def fill(
        self,
        dst: _Memory | _Image,
        pattern: _Value | tuple[float, float, float, float],
        *,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        after: _Events | None = None,
    ) -> Event: ...
    def write(
        self,
        dst: _Memory | _Image,
        data: _Data,
        *,
        copy: bool = True,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        after: _Events | None = None,
    ) -> Event: ...
    def read(
        self,
        src: _Memory | _Image,
        dtype: DTypeLike | None = None,
        shape: _Shape | None = None,
        *,
        origin: _Triple | None = None,
        region: _Triple | None = None,
        after: _Events | None = None,
    ) -> Pending: ...
    def when(
        self,
        flag: _Memory,
        then: Callable[[Queue], object],
        otherwise: Callable[[Queue], object] | None = None,
    ) -> Branch | None: ...
    def switch(self, index: _Memory, cases: Iterable[Callable[[Queue], object]]) -> Branch | None: ...
    def repeat_while(
        self,
        flag: _Memory,
        function: Callable[[Queue], object],
        at_least_once: bool = False,
        at_most: int | None = None,
    ) -> Loop | None: ...
    def repeat(self, n: int, function: Callable[[Queue], object]) -> Loop | None: ...
    def host_task(
        self, function: Callable[[HostTask], object] | Callable[[], object], *, after: _Events | None = None
    ) -> Submission: ...
    def native_command(
        self,
        function: Callable[..., object],
        reads: _Uses | None = None,
        writes: _Uses | None = None,
        *,
        after: _Events | None = None,
    ) -> Submission: ...
    def command_group(self, group: CommandGroup, *, after: _Events | None = None) -> Event: ...
    def wait_event(self, *, after: _Events | None = None) -> Event: ...
    def signal_event(self, *, after: _Events | None = None) -> Event: ...
    def marker(self, *, after: _Events | None = None) -> Event: ...
    def barrier(self, *, after: _Events | None = None) -> Event: ...
    def submit(self, executable: Executable) -> Submission: ...
    def flush(self) -> None: ...
    def finish(self) -> None: ...

@final
class Report:
    @property
    def device(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def commands(self) -> int: ...
    @property
    def segments(self) -> list[str]: ...
    @property
    def loops(self) -> list[str]: ...
    @property
    def command_buffers(self) -> int: ...
    @property
    def tuning(self) -> str: ...
    @property
    def unchecked_kernels(self) -> list[str]: ...
    @property
    def memory(self) -> MemoryMap: ...
    @property
    def warnings(self) -> list[str]: ...

@final
class MemoryMap:
    @property
    def nbytes(self) -> int: ...
    @property
    def nbytes_apart(self) -> int: ...
    def to_svg(self) -> str: ...
    def write_svg(self, path: str | PathLike[str]) -> None: ...
    def _repr_svg_(self) -> str: ...

@final
class Profile:
    @property
    def clock(self) -> str: ...
    @property
    def submit(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def duration(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def nodes(self) -> list[NodeProfile]: ...

@final
class NodeProfile:
    @property
    def node(self) -> Node: ...
    @property
    def inside(self) -> int | None: ...
    @property
    def turn(self) -> int | None: ...
    @property
    def queued(self) -> int: ...
    @property
    def title(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def duration(self) -> int: ...

@final
class Device:
    @property
    def name(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def path(self) -> tuple[str, str]: ...
    @property
    def is_gpu(self) -> bool: ...
    @property
    def caps(self) -> dict[str, Any]: ...
    @property
    def device(self) -> _ClDevice: ...

def capture(queue: Queue | _CommandQueue, *, relaxed: bool = False) -> Capture: ...
def devices() -> list[Device]: ...
def trace(*runs: Submission, path: str | PathLike[str] | None = None) -> str: ...
