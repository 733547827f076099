"""The submissions of bench.py by calls of OpenCL from C, without pyopencl and clgraph."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile


def load(platform):
    """The functions of by_hand.c with the loader that pyopencl uses, and whether the driver has command buffers. None without a C compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    # `import clgraph` says where the loader is.
    loader = os.environ.get("OPENCL_DYLIB_PATH", "libOpenCL.so.1").split(";")[0].encode()
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "by_hand.so"
        source = pathlib.Path(__file__).with_suffix(".c")
        subprocess.run([compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
        functions = ctypes.CDLL(str(library))
    functions.by_hand_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    functions.by_hand_loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    functions.by_hand_record.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    functions.by_hand_record.restype = ctypes.c_void_p
    functions.by_hand_submit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    has = functions.by_hand_open(loader, platform.int_ptr)
    assert has, f"{loader} has no OpenCL"
    return functions, has == 2


def ways(queue, kernel, count):
    """Names, and functions that submit a kernel `count` times; with True they wait."""
    loaded = load(queue.device.platform)
    if loaded is None:
        print("no C compiler, so no rows by hand: install gcc, or name one by CC\n")
        return []
    functions, buffers = loaded
    of_queue, of_kernel = queue.int_ptr, kernel.int_ptr

    def checked(status):
        assert status == 0, f"OpenCL status {status}"

    found = [("C, clEnqueueNDRangeKernel", lambda waits: checked(functions.by_hand_loop(of_queue, of_kernel, count, waits)))]
    buffer = functions.by_hand_record(of_queue, of_kernel, count) if buffers else None
    if buffer:
        found.append(("C, one command buffer", lambda waits: checked(functions.by_hand_submit(of_queue, buffer, waits))))
    return found
