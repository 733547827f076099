"""Captures: what other code enqueues on a queue becomes nodes. A test runs once more, in a process that has clgraph's layer."""

import functools
import os
import subprocess
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph


def with_layer(test):
    """Runs a test in a process that has the layer, which ci/python has built."""

    @functools.wraps(test)
    def run(*fixtures, **named):
        if "OPENCL_LAYERS" in os.environ:
            return test(*fixtures, **named)
        environment = {**os.environ, "OPENCL_LAYERS": os.environ["CLGRAPH_TEST_LAYER"], "CLGRAPH_LAYER": "always"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test.__name__}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr

    return run


@with_layer
def test_what_pyopencl_enqueues_becomes_nodes(queue, kernels):
    memory = cl_array.zeros(queue, 4, np.int32)
    kernels.add(queue, (4,), None, memory.data, np.int32(0)).wait()
    written, back = np.array([1, 2, 3, 4], np.int32), np.zeros(4, np.int32)
    queue.finish()
    with clgraph.capture(queue) as graph:
        # pyopencl waits for the event of a copy when it is dropped.
        events = [cl.enqueue_copy(queue, memory.data, written, is_blocking=False)]
        kernels.add(queue, (4,), None, memory.data, np.int32(10))
        events.append(cl.enqueue_copy(queue, back, memory.data, is_blocking=False))
    for event in events:
        event.wait()
    written[:] = 0
    assert [node.kind for node in graph.nodes] == ["copy", "kernel", "native command"]
    assert memory.get().tolist() == [0] * 4 and back.tolist() == [0] * 4
    executable = graph.finalize(updatable=True)
    executable.submit(queue).wait()
    assert back.tolist() == [11, 12, 13, 14]
    add = graph.nodes[1]
    graph.set_arg(add, 1, np.int32(20))
    executable.update(add)
    executable.submit(queue).wait()
    assert memory.get().tolist() == [21, 22, 23, 24]
    with pytest.raises(clgraph.InvalidError):
        graph.set_arg(add, 2, np.int32(1))


@with_layer
def test_a_capture_into_a_graph_has_its_nodes(queue, kernels):
    memory = cl_array.zeros(queue, 4, np.int32)
    queue.finish()
    graph = clgraph.Graph(queue)
    fill = graph.fill(memory, np.int32(5))
    capture = graph.capture()
    with pytest.raises(RuntimeError):
        capture.nodes
    with capture as same:
        assert same is graph
        kernels.add(queue, (4,), None, memory.data, np.int32(1))
    (node,) = capture.nodes
    assert node.kind == "kernel" and [before.index for before in graph.predecessors(node)] == [fill.index]
    graph.finalize().submit(queue).wait()
    assert memory.get().tolist() == [6] * 4


@with_layer
def test_what_spoils_a_capture_is_named(queue, kernels):
    memory = cl_array.zeros(queue, 4, np.int32)
    queue.finish()
    graph = clgraph.Graph(queue)
    with pytest.raises(clgraph.InvalidError) as raised:
        with graph.capture(queue):
            memory.get()
    assert isinstance(raised.value.__cause__, cl.Error)
    with pytest.raises(KeyError):
        with graph.capture(queue):
            kernels.add(queue, (4,), None, memory.data, np.int32(1))
            raise KeyError
    with pytest.raises(clgraph.InvalidError):
        with graph.capture(queue):
            queue.finish()
    with graph.capture(queue, relaxed=True):
        queue.finish()
    assert len(graph) == 0 and memory.get().tolist() == [0] * 4


def test_without_the_layer_there_is_an_error(queue):
    if "OPENCL_LAYERS" in os.environ:
        return
    with pytest.raises(clgraph.NotSupportedError):
        with clgraph.capture(queue):
            pass
