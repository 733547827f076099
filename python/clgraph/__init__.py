"""Command graphs for every OpenCL: build once, finalize, submit many times.

    import clgraph, numpy as np, pyopencl as cl
    from clgraph import In, Out, Param

    with clgraph.Graph(queue) as g:                      # a pyopencl.CommandQueue, or a clgraph.Queue, which records
        blur = g.kernel(kernel, (w, h), In(photo), Out(out), radius := Param(np.int32(3)))
        result = g.read(out)                             # after the kernel: both use the same memory
    executable = g.finalize(updatable=True)
    run = executable.submit(queue)
    picture = run[result]                                # waits, and is a numpy array
    radius.set(5)
    executable.update(blur)                              # for later submissions

The guide is docs/guide/from_python.md of the repository.
"""

import importlib.util as _importlib_util
import os as _os
import pathlib as _pathlib


def _use_the_loader_of_pyopencl() -> None:
    """Names the OpenCL library that comes with pyopencl's wheels, for clgraph to load.

    Two loaders in one process do not know each other's objects: with PoCL 7.1 the first call ends the process. That
    library looks for drivers below PYOPENCL_HOME, which `import pyopencl` sets, and without it ends the process too.
    """
    if "OPENCL_DYLIB_PATH" in _os.environ:
        return
    try:
        found = _importlib_util.find_spec("pyopencl")
    except (ImportError, ValueError):
        return
    if found is None or found.origin is None:
        return
    folder = _pathlib.Path(found.origin).parent
    for place in (folder / ".libs", folder / ".dylibs", folder.parent / "pyopencl.libs"):
        for library in sorted(place.glob("*OpenCL*")):
            _os.environ["OPENCL_DYLIB_PATH"] = str(library)
            _os.environ.setdefault("PYOPENCL_HOME", str(folder.absolute()))
            return


_use_the_loader_of_pyopencl()

from ._clgraph import (  # noqa: E402
    Branch,
    Capture,
    CommandGroup,
    Device,
    DeviceGlobal,
    Event,
    Executable,
    Graph,
    HostTask,
    In,
    InOut,
    Launch,
    Local,
    Loop,
    MemoryMap,
    Memory,
    NativeMemory,
    Node,
    NodeProfile,
    Out,
    Param,
    Pending,
    Profile,
    Program,
    Queue,
    Read,
    Report,
    SubGraph,
    Submission,
    UserEvent,
    Write,
    __version__,
    capture,
    devices,
    trace,
)
from ._errors import (
    DriverError,
    Error,
    FailedError,
    InvalidError,
    KernelNotSupportedError,
    NotReadyError,
    NotSupportedError,
    OutOfMemoryError,
    TimedOutError,
)

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


def _let_the_layer_look() -> None:
    """Lets clgraph's layer know that there will be captures.

    From then on it notes the arguments of kernels. Kernels and memory that were made before cannot be captured.
    """
    if _os.environ.get("OPENCL_LAYERS"):
        try:
            devices()
        except Error:
            pass  # Whoever needs a device is told.


_let_the_layer_look()

# Tracebacks and documentation name the classes where programs find them.
for _class in (
    Error,
    InvalidError,
    NotSupportedError,
    KernelNotSupportedError,
    OutOfMemoryError,
    DriverError,
    FailedError,
    NotReadyError,
    TimedOutError,
):
    _class.__module__ = __name__
del _class
