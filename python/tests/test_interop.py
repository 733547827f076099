"""Objects that clgraph gives pyopencl."""

import gc
import threading
import time

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pyopencl.tools as cl_tools
import pytest

import clgraph


def test_objects_of_pyopencl_have_references_of_their_own(context, queue):
    recorder = clgraph.Queue(queue)
    graph = clgraph.Graph(recorder)
    raw = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
    memory = clgraph.Memory(raw, np.int32)
    gives = [recorder.queue, recorder.context, graph.context, graph.device.device, recorder.device.device, memory.buffer, memory[:2].buffer]
    assert gives == [queue, context, context, context.devices[0], context.devices[0], raw, raw]
    del recorder, graph, memory, raw
    gc.collect()
    cl.enqueue_fill_buffer(gives[0], gives[5], np.int32(7), 0, 16)
    back = np.zeros(4, np.int32)
    cl.enqueue_copy(gives[0], back, gives[6])
    assert back.tolist() == [7] * 4


def test_references_are_given_back(context):
    queue, buffer = cl.CommandQueue(context), cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
    before = buffer.reference_count
    for _ in range(3):
        graph = clgraph.Graph(queue)
        graph.fill(buffer, np.int32(1))
        read = graph.read(buffer, np.int32)
        run = graph.finalize().submit()
        assert run[read].tolist() == [1] * 4 and buffer.reference_count > before
        del graph, read, run
    gc.collect()
    clgraph.Queue(queue).finish()
    wait = clgraph.UserEvent(queue)
    for _ in range(200):  # a thread of clgraph releases what submissions used
        if buffer.reference_count == before:
            break
        with pytest.raises(TimeoutError):
            wait.wait(0.01)
    assert buffer.reference_count == before


def test_memory_without_a_buffer_has_none(graph):
    assert graph.alloc(4).buffer is None


def test_a_program_of_two_contexts_keeps_them_apart(context, kernels, buffer):
    other = cl.Context(context.devices)
    queue = cl.CommandQueue(other)
    program = cl.Program(other, "kernel void add(global int *a, int n) { a[get_global_id(0)] += n; }").build()
    kernel = cl.Kernel(program, "add")
    memory = cl.Buffer(other, cl.mem_flags.READ_WRITE, 16)
    graph = clgraph.Graph(queue)
    graph.fill(memory, np.int32(1))
    graph.kernel(kernel, 4, clgraph.InOut(memory), np.int32(2))
    read = graph.read(memory, np.int32)
    assert graph.finalize().submit()[read].tolist() == [3] * 4
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, 4, clgraph.InOut(memory), np.int32(2))


def test_memory_of_a_pool_does_not_go_back_while_a_graph_uses_it(context, queue, kernels):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
    array = cl_array.zeros(queue, 8, np.int32, allocator=pool)
    pooled = array.base_data.int_ptr

    def taken():
        """Whether the pool has not got the memory back."""
        others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
        return all(other.base_data.int_ptr != pooled for other in others)

    graph = clgraph.Graph(queue)
    graph.kernel(kernels.add, 8, clgraph.InOut(array), np.int32(3))
    graph.kernel(kernels.add, 8, clgraph.InOut(clgraph.Memory(array)), np.int32(4))
    read = graph.read(array)
    with pytest.raises(clgraph.InvalidError):
        clgraph.Param(array)
    inner = graph.finalize()
    outer = clgraph.Graph(queue)
    sub = outer.sub_graph(inner)
    executable = outer.finalize()
    result = sub.result(read)
    del array, graph, outer, inner, sub
    gc.collect()
    assert taken()
    run = executable.submit()
    del executable
    assert run[result].tolist() == [7] * 8
    del run
    gc.collect()
    goes_back(taken)


@pytest.mark.parametrize("joins", [False, True])
def test_memory_of_a_pool_does_not_go_back_while_a_recorded_graph_uses_it(queue, kernels, joins):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
    array = cl_array.zeros(queue, 8, np.int32, allocator=pool)
    pooled = array.base_data.int_ptr

    def taken():
        others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
        return all(other.base_data.int_ptr != pooled for other in others)

    own = clgraph.Queue(queue)
    other = clgraph.Queue(cl.CommandQueue(queue.context))
    with clgraph.Graph(own) as graph:
        first = own.marker()
        used = other if joins else own
        event = used.kernel(kernels.add, 8, clgraph.InOut(array), np.int32(5), after=first)
        read = used.read(array, after=event)
    executable = graph.finalize()
    del array, graph, first, event
    gc.collect()
    assert taken()
    run = executable.submit()
    assert run[read].tolist() == [5] * 8
    del executable, run
    gc.collect()
    goes_back(taken)


def test_memory_of_a_pool_does_not_go_back_while_a_submission_runs_that_nobody_keeps(context, queue, kernels):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
    array = cl_array.zeros(queue, 8, np.int32, allocator=pool)
    pooled = array.base_data.int_ptr
    go = threading.Event()

    def taken():
        others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
        return all(other.base_data.int_ptr != pooled for other in others)

    own = cl.CommandQueue(context)
    graph = clgraph.Graph(own)
    graph.host_task(go.wait, writes=array)
    graph.kernel(kernels.add, 8, clgraph.InOut(array), np.int32(3))
    graph.finalize().submit(own)
    del array, graph
    gc.collect()
    try:
        assert taken()
    finally:
        go.set()
    goes_back(taken)


def test_update_from_keeps_memory_of_a_pool_of_the_other_graph_and_gives_the_old_one_back(queue, kernels):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))

    def build(array):
        graph = clgraph.Graph(queue)
        graph.kernel(kernels.add, 8, clgraph.InOut(array), np.int32(3))
        return graph

    def taken(pooled):
        others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
        return all(other.base_data.int_ptr != pooled for other in others)

    executable = build(cl_array.zeros(queue, 8, np.int32)).finalize(updatable=True)
    arrays = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(2)]
    first, second = (array.base_data.int_ptr for array in arrays)
    executable.update_from(build(arrays[0]))
    last = build(arrays[1])
    with pytest.raises(clgraph.InvalidError):
        executable.update_from(clgraph.Graph(queue))
    del arrays
    gc.collect()
    assert taken(first) and taken(second)
    executable.submit().wait()
    executable.update_from(last)
    del last
    gc.collect()
    goes_back(lambda: taken(first))
    assert taken(second)
    executable.submit().wait()
    del executable
    gc.collect()
    goes_back(lambda: taken(second))


def test_graphs_that_have_executables_of_themselves(queue, kernels):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
    array = cl_array.zeros(queue, 8, np.int32, allocator=pool)
    pooled = array.base_data.int_ptr

    def taken():
        others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
        return all(other.base_data.int_ptr != pooled for other in others)

    first, second = clgraph.Graph(queue), clgraph.Graph(queue)
    first.kernel(kernels.add, 8, clgraph.InOut(array), np.int32(1))
    first.sub_graph(first.finalize())
    executable = first.finalize()
    executable.submit().wait()
    assert array.get(queue).tolist() == [2] * 8
    del array, first
    gc.collect()
    assert taken()
    del executable
    gc.collect()
    goes_back(taken)
    first = clgraph.Graph(queue)
    second.sub_graph(first.finalize())
    first.sub_graph(second.finalize())
    first.finalize().submit().wait()
    second.finalize().submit().wait()


def goes_back(taken):
    """Waits until a pool has got its memory back: a thread of clgraph gives it."""
    end = time.monotonic() + 30
    while taken():
        assert time.monotonic() < end, "the memory does not go back to its pool"
        time.sleep(0.01)
