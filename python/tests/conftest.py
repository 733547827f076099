"""What the tests share: a device, a queue, and kernels."""

import os
import sys
import types

# Programs from a cache of binaries do not report the types of parameters on every driver.
os.environ["PYOPENCL_NO_CACHE"] = "1"

SET_BY_IMPORTS = {"OPENCL_DYLIB_PATH", "PYOPENCL_HOME"} - os.environ.keys()

import numpy as np
import pyopencl as cl
import pytest

import clgraph

SOURCE = """
kernel void scale(global const float *a, global float *b, float by) {
    size_t i = get_global_id(0);
    b[i] = a[i] * by;
}
kernel void add(global int *a, int n) { a[get_global_id(0)] += n; }
kernel void record(global int *out, struct { int a; float b; } x) { out[0] = x.a; out[1] = (int)x.b; }
kernel void vector(global float *out, float4 v) { out[0] = v.x + v.y + v.z + v.w; }
kernel void is_null(global int *out, global const int *maybe) { out[0] = maybe == 0; }
kernel void local_sum(global const int *a, global int *out, local int *memory) {
    size_t i = get_local_id(0);
    memory[i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 0) { int sum = 0; for (size_t k = 0; k < get_local_size(0); ++k) sum += memory[k]; out[0] = sum; }
}
kernel void ids(global int *out) { out[get_global_id(0)] = (int)get_global_id(0); }
kernel void where(global int *out) { out[get_global_id(1) * 4 + get_global_id(0)] = (int)(get_global_id(1) * 10 + get_global_id(0)); }
kernel void invert(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(to, at, 255 - read_imageui(from, at));
}
kernel void sampled(read_only image2d_t from, sampler_t how, global uint *out) {
    out[0] = read_imageui(from, how, (int2)(-1, 0)).x;
}
kernel void nothing(void) {}
"""


@pytest.fixture(scope="session")
def context():
    return cl.create_some_context(interactive=False)


@pytest.fixture
def queue(context):
    return cl.CommandQueue(context)


def kernels_of(context, options=()):
    program = cl.Program(context, SOURCE).build(options=list(options))
    # Intel's CPU runtime forgets a program of which only kernels are left.
    return types.SimpleNamespace(program=program, **{kernel.function_name: kernel for kernel in program.all_kernels()})


@pytest.fixture(scope="session")
def kernels(context):
    """Kernels whose program does not report the types of parameters."""
    return kernels_of(context)


@pytest.fixture(scope="session")
def described(context):
    """Kernels whose program reports the types of parameters."""
    return kernels_of(context, ["-cl-kernel-arg-info"])


@pytest.fixture
def buffer(context):
    """Makes a buffer with the content of an array."""

    def make(array):
        array = np.ascontiguousarray(array)
        return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=array)

    return make


@pytest.fixture
def graph(queue):
    return clgraph.Graph(queue)


@pytest.fixture
def run_python():
    """Runs a program in another interpreter, and returns its output. It must end well within a minute."""
    import subprocess

    # What `import clgraph` and `import pyopencl` set here: the program finds it itself, as programs of users do.
    env = {name: value for name, value in os.environ.items() if name not in SET_BY_IMPORTS}

    def run(source, *, status=0):
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", source], capture_output=True, text=True, timeout=60, env=env)
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
