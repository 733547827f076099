"""Memory lives as long as a graph, an executable or a submission uses it, and no longer."""

import gc
import threading
import time

import numpy as np
import pyopencl as cl
import pyopencl.array  # noqa: F401
import pyopencl.tools  # noqa: F401
import pytest

import clgraph
from clgraph import In, InOut, Out

NUMBERS = np.arange(64, dtype=np.int32)


@pytest.fixture
def new(context):
    """Makes buffers that nothing uses."""
    return lambda: cl.Buffer(context, cl.mem_flags.READ_WRITE, NUMBERS.nbytes)


@pytest.fixture
def pool(queue):
    return cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))


@pytest.fixture
def pooled(queue, pool):
    """Makes arrays of the pool."""
    return lambda: cl.array.empty(queue, NUMBERS.shape, NUMBERS.dtype, allocator=pool)


def unused(buffers):
    """Whether nothing but its own object has a reference to each of these buffers: drivers drop theirs a moment after a command."""
    until = time.monotonic() + 20
    while any(buffer.reference_count > 1 for buffer in buffers):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def active(pool, count, meanwhile=lambda: None):
    """Whether so many blocks of a pool are in use: some go back on a thread of clgraph, or when clgraph looks next."""
    until = time.monotonic() + 20
    while pool.active_blocks != count:
        if time.monotonic() > until:
            return False
        meanwhile()
        time.sleep(0.01)
    return True


COMMANDS = {
    "write": lambda graph, memory, **how: graph.write(memory, NUMBERS, **how),
    "fill": lambda graph, memory, **how: graph.fill(memory, np.int32(1), **how),
    "read": lambda graph, memory, **how: graph.read(memory, **how),
    "copy": lambda graph, memory, **how: graph.copy(memory, OTHER[0], **how),
    "copy_rect": lambda graph, memory, **how: graph.copy_rect(memory, OTHER[0], (16, 1), **how),
}
OTHER = []


@pytest.fixture
def command(request, buffer):
    OTHER[:] = [buffer(NUMBERS)]
    yield COMMANDS[request.param]
    OTHER.clear()


@pytest.mark.parametrize("command", COMMANDS, indirect=True)
def test_a_replaced_node_gives_up_its_memory(graph, new, command):
    buffers = [new() for _ in range(40)]
    node = command(graph, buffers[0])
    for buffer in buffers[1:]:
        assert command(graph, buffer, replaces=node) == node
    assert unused(buffers[:-1])
    executable = graph.finalize(updatable=True)
    assert buffers[-1].reference_count > 1
    executable.submit().wait()


def test_a_replaced_launch_gives_up_its_memory(graph, new, described):
    buffers = [new() for _ in range(40)]
    node = graph.kernel(described.add, 64, InOut(buffers[0]), 1)
    for buffer in buffers[1:]:
        graph.replace_kernel(node, described.add, 64, InOut(buffer), 1)
    assert unused(buffers[:-1]) and buffers[-1].reference_count > 1


def test_an_image_of_a_replaced_node_is_given_up(graph, context):
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    images = [cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(4, 4)) for _ in range(10)]
    node = graph.fill(images[0], (1, 2, 3, 4))
    for image in images[1:]:
        graph.fill(image, (1, 2, 3, 4), replaces=node)
    assert unused(images[:-1]) and images[-1].reference_count > 1


def test_a_call_that_fails_keeps_nothing(graph, new, described, context):
    small, group = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4), clgraph.CommandGroup
    calls = [
        lambda memory: graph.write(memory, NUMBERS[1:]),
        lambda memory: graph.fill(memory, 1),
        lambda memory: graph.copy(memory, small),
        lambda memory: graph.kernel(described.scale, 64, In(memory), Out(memory)),
        lambda memory: graph.kernel(described.scale, 64, In(memory), Out(None)),
        lambda memory: graph.host_task(print, reads=[memory, None]),
        lambda memory: graph.map(memory, print, "no"),
        lambda memory: group(graph, [clgraph.Launch(described.add, 64, InOut(memory), InOut(memory))]),
    ]
    for call in calls:
        memory = new()
        with pytest.raises((clgraph.Error, TypeError)):
            call(memory)
        assert unused([memory])
    assert len(graph) == 0


def test_an_executable_keeps_what_it_uses_until_it_is_updated(graph, new, queue):
    old, other = new(), new()
    node = graph.write(old, NUMBERS)
    executable = graph.finalize(updatable=True)
    graph.write(other, NUMBERS, replaces=node)
    assert old.reference_count > 1
    executable.update(node)
    executable.submit().wait()
    assert unused([old]) and other.reference_count > 1
    read = np.empty_like(NUMBERS)
    cl.enqueue_copy(queue, read, other)
    assert (read == NUMBERS).all()


def test_memory_of_a_pool_goes_back_when_its_node_has_other_memory(queue, pool, pooled):
    graph = clgraph.Graph(queue)
    node = graph.write(pooled(), NUMBERS)
    executable = graph.finalize(updatable=True)
    for _ in range(30):
        array = pooled()
        graph.write(array, NUMBERS, replaces=node)
        assert pool.active_blocks >= 2  # of the executable, and of the graph
        executable.update(node)
        executable.submit().wait()
        assert (array.get() == NUMBERS).all()
        del array
        assert active(pool, 1, lambda: executable.update(node))
    del graph
    gc.collect()
    executable.submit().wait()
    assert pool.active_blocks == 1
    del executable
    assert active(pool, 0)


def test_memory_of_a_pool_goes_back_among_much_memory(queue, pool, pooled):
    graph = clgraph.Graph(queue)
    nodes = [graph.fill(pooled(), np.int32(number)) for number in range(50)]
    for node in nodes * 3:
        graph.fill(last := pooled(), np.int32(1), replaces=node)
    # Each call looks at some of them.
    assert active(pool, 50, lambda: graph.fill(last, np.int32(1), replaces=node))
    del graph, last
    gc.collect()
    assert active(pool, 0)


def test_a_call_that_fails_keeps_no_memory_of_a_pool(graph, pool, pooled):
    for _ in range(20):
        with pytest.raises(TypeError):
            graph.write(pooled(), NUMBERS.astype(np.float32))
    kept = pooled()
    node = graph.fill(kept, np.int32(1))
    assert active(pool, 1, lambda: graph.fill(kept, np.int32(1), replaces=node))


@pytest.mark.parametrize("nested", [False, True])
def test_a_submission_keeps_memory_of_a_pool_that_a_graph_has_given_up(graph, queue, pool, pooled, nested):
    inside, go_on = threading.Event(), threading.Event()
    node = graph.fill(pooled(), np.int32(1))
    graph.host_task(lambda: (inside.set(), go_on.wait(20)))
    executable = outer = graph.finalize(updatable=True)
    if nested:
        around = clgraph.Graph(queue)
        sub = around.sub_graph(executable)
        outer = around.finalize(updatable=True)
    run = outer.submit()
    assert inside.wait(20)
    graph.fill(pooled(), np.int32(1), replaces=node)
    executable.update(node)
    if nested:
        outer.update(sub)
    for _ in range(3):
        graph.fill(last := pooled(), np.int32(1), replaces=node)
    assert pool.active_blocks >= 3  # of the submission, the executable and the graph
    go_on.set()
    run.wait()
    executable = outer = around = sub = run = None
    gc.collect()
    assert active(pool, 1, lambda: graph.fill(last, np.int32(1), replaces=node))


def test_what_runs_beside_a_recording_is_given_up(queue, pool, pooled):
    recorded, other = clgraph.Queue(queue), clgraph.Queue(queue)
    graph = clgraph.Graph(recorded)
    with graph:
        for _ in range(20):
            other.fill(pooled(), np.int32(1))
            other.finish()
        recorded.fill(pooled(), np.int32(2))
    executable = graph.finalize()
    assert active(pool, 1, lambda: executable.submit().wait())
    del graph, executable
    gc.collect()
    assert active(pool, 0)


def test_the_buffer_of_memory_of_a_pool_keeps_it(queue, pool, pooled):
    array = pooled()
    of_pool = clgraph.Memory(array).buffer
    assert of_pool is array.base_data and clgraph.Memory(array)[:4].buffer is of_pool
    graph = clgraph.Graph(queue)
    graph.fill(of_pool, np.uint8(1))
    del array, of_pool
    gc.collect()
    assert pool.active_blocks == 1
    graph.finalize().submit().wait()
