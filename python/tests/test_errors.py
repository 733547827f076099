"""What is wrong is an exception of the right class, and changes nothing. What it says is in test_texts.py."""

import functools

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import In, InOut, Local, Out, Param


def test_the_classes_of_exceptions():
    assert issubclass(clgraph.InvalidError, ValueError) and issubclass(clgraph.OutOfMemoryError, MemoryError)
    assert issubclass(clgraph.TimedOutError, TimeoutError) and issubclass(clgraph.TimedOutError, clgraph.NotReadyError)
    for name in clgraph.__all__:
        one = getattr(clgraph, name)
        if isinstance(one, type) and issubclass(one, Exception):
            assert issubclass(one, clgraph.Error) and one.__module__ == "clgraph" and one.__doc__


def test_numpy_arrays_that_are_not_contiguous(graph, buffer):
    memory = buffer(np.zeros(4, np.int32))
    for wrong in (np.arange(8, dtype=np.int32)[::2], np.arange(4, dtype=np.int32).reshape(2, 2).T):
        with pytest.raises(clgraph.InvalidError):
            graph.write(memory, wrong)
    write = graph.write(memory, np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError):
        graph.finalize().submit(inputs={write: np.arange(8, dtype=np.int32)[::2]})
    assert len(graph) == 1


def test_numpy_arrays_of_other_types(graph, queue):
    array = cl_array.zeros(queue, 4, np.float32)
    with pytest.raises(TypeError):
        graph.write(array, np.zeros(4))
    write = graph.write(array, np.zeros(4, np.float32))
    executable = graph.finalize()
    with pytest.raises(TypeError):
        executable.submit(inputs={write: np.zeros(4, np.int32)})
    with pytest.raises(TypeError):
        graph.write(array.base_data, np.array([None] * 2))
    with pytest.raises(TypeError):
        graph.write(array, np.zeros(2, [("a", "i4"), ("b", "f4")]))
    for wrong in ([1, 2, 3, 4], "text", 7):
        with pytest.raises(TypeError):
            graph.write(array, wrong)
    with pytest.raises(TypeError):
        graph.fill(array, np.int32(1))
    read = graph.read(array)
    run = graph.finalize().submit()
    with pytest.raises(TypeError):
        run.read_into(read, np.zeros(4, np.int32))
    assert len(graph) == 2


def test_wrong_sizes(graph, buffer):
    small, large = buffer(np.zeros(2, np.int32)), buffer(np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError):
        graph.copy(small, large)
    with pytest.raises(clgraph.InvalidError):
        graph.write(small, np.zeros(4, np.int32))
    write, read = graph.write(small, np.zeros(2, np.int32)), graph.read(large, np.int32)
    executable = graph.finalize()
    with pytest.raises(clgraph.InvalidError):
        executable.submit(inputs={write: np.zeros(4, np.int32)})
    with pytest.raises(ValueError):
        graph.read(large, np.int32, 3)
    for wrong in ((-1, 3), (-1, -1), (-4,), (2, -2), (2**62, 4)):
        with pytest.raises(ValueError):
            graph.read(large, np.int32, wrong)
    for makes in (graph.read, clgraph.Memory):
        with pytest.raises(TypeError):
            makes(large, object)
    with pytest.raises(TypeError):
        graph.alloc(4, [("a", "i4"), ("b", "O")])
    with pytest.raises(clgraph.InvalidError):
        executable.submit().read_into(read, np.zeros(1, np.int32))
    fixed = np.zeros(4, np.int32)
    fixed.flags.writeable = False
    with pytest.raises(clgraph.InvalidError):
        executable.submit().read_into(read, fixed)


def test_objects_of_other_contexts(graph, queue, context, buffer, kernels):
    other = cl.Context(context.devices)
    foreign = cl.Buffer(other, cl.mem_flags.READ_WRITE, 16)
    mine = buffer(np.zeros(4, np.int32))
    program = cl.Program(other, "kernel void add(global int *a, int n) {}").build()
    for wrong in (
        lambda: graph.kernel(kernels.add, 4, InOut(foreign), np.int32(1)),
        lambda: graph.copy(foreign, mine),
        lambda: graph.read(foreign),
        lambda: graph.fill(clgraph.Memory(foreign, np.int32), 1),
        lambda: graph.kernel(cl.Kernel(program, "add"), 4, InOut(mine), np.int32(1)),
        lambda: clgraph.Queue(queue).fill(foreign, np.int32(1)),
        lambda: graph.finalize().submit(cl.CommandQueue(other)),
        lambda: graph.finalize().submit(queue, wait_for=cl.enqueue_marker(cl.CommandQueue(other))),
    ):
        with pytest.raises(clgraph.InvalidError):
            wrong()
    assert len(graph) == 0


def test_pyopencl_arrays_that_are_not_contiguous(graph, queue, kernels):
    strided = cl_array.zeros(queue, (4, 4), np.int32)[:, 1:3]
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, 8, InOut(strided), np.int32(1))
    with pytest.raises(clgraph.InvalidError):
        graph.read(strided)
    with pytest.raises(clgraph.InvalidError):
        graph.read(cl_array.empty(queue, 0, np.int32))
    assert len(graph) == 0


def test_arguments_that_are_none(graph, queue, buffer, kernels):
    memory, array = buffer(np.zeros(4, np.int32)), cl_array.zeros(queue, 4, np.int32)
    for bare in (memory, array, clgraph.Memory(memory), graph.alloc(4)):
        with pytest.raises(TypeError):
            graph.kernel(kernels.add, 4, bare, np.int32(1))
    for wrong in (np.zeros(4, np.int32), In(np.zeros(4, np.int32)), In(np.int32(3)), In(Param(np.int32(3))), "text", [1], kernels.add, object()):
        with pytest.raises(TypeError):
            graph.kernel(kernels.add, 4, wrong, np.int32(1))
    with pytest.raises(TypeError):
        graph.kernel(kernels.add, 4, InOut(np.zeros(4, np.int32)), np.int32(1))
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, 4, InOut(memory))
    for wrong in (4.0, "four", (), (1, 2, 3, 4), (1, "two"), -1, (-1,)):
        with pytest.raises((TypeError, clgraph.InvalidError)):
            graph.kernel(kernels.add, wrong, InOut(memory), np.int32(1))
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, (4, 4), InOut(memory), np.int32(1), local_size=2)
    with pytest.raises(TypeError):
        graph.kernel("add", 4, InOut(memory), np.int32(1))
    assert len(graph) == 1


def test_checks_of_arguments_need_their_description(graph, buffer, described):
    memory = buffer(np.zeros(4, np.int32))
    for wrong in (np.float32(1), np.int64(1), InOut(memory), Local(4)):
        with pytest.raises(clgraph.InvalidError):
            graph.kernel(described.add, 4, InOut(memory), wrong)
    assert len(graph) == 0


def test_nodes_that_are_none(graph, queue, buffer):
    other = clgraph.Graph(queue)
    foreign = other.empty()
    with pytest.raises(clgraph.InvalidError):
        graph.empty(after=foreign)
    with pytest.raises(TypeError):
        graph.empty(after=[3])
    memory = buffer(np.zeros(4, np.int32))
    read, node = graph.read(memory), graph.fill(memory, np.int32(1))
    run = graph.finalize().submit()
    for wrong in (node, "read", 0):
        with pytest.raises(TypeError):
            run[wrong]
    with pytest.raises(clgraph.InvalidError):
        run[other.read(memory)]
    with pytest.raises(clgraph.InvalidError):
        graph.finalize().submit(inputs={read: np.zeros(4, np.int32)})
    with pytest.raises(TypeError):
        graph.free(graph.alloc(8192)[4096:])


def test_queues_and_devices_that_are_none(graph, context):
    with pytest.raises(TypeError):
        clgraph.Graph(3)
    with pytest.raises(TypeError):
        clgraph.Queue(context)
    with pytest.raises(TypeError):
        clgraph.Graph(context, 3)
    with pytest.raises(TypeError):
        graph.finalize().submit(wait_for=[3])
    with pytest.raises(TypeError):
        graph.finalize().submit(signals={graph.signal_event(): 3})
    with pytest.raises(TypeError):
        graph.host_task(3)
    other = clgraph.Graph(context, context.devices[0]).finalize()
    with pytest.raises(TypeError):
        other.submit(cl.CommandQueue(context)).on_complete(3)
    with pytest.raises(ValueError):
        other.submit(cl.CommandQueue(context)).wait(-1)


def test_slices_of_memory(buffer):
    memory = clgraph.Memory(buffer(np.zeros(8, np.int32)), np.int32)
    with pytest.raises(IndexError):
        memory[::2]
    with pytest.raises(TypeError):
        memory[3]
    with pytest.raises(clgraph.InvalidError):
        memory[5:5]
    with pytest.raises(TypeError):
        clgraph.Memory(np.zeros(4))
    assert memory[2:100].shape == (6,) and memory[-3:].shape == (3,)


def test_an_error_of_opencl_has_its_status(context, graph):
    failed = cl.UserEvent(context)
    failed.set_status(cl.status_code.OUT_OF_RESOURCES)
    with pytest.raises(clgraph.Error) as raised:
        graph.finalize().submit(wait_for=failed).wait()
    assert raised.value.cl_status == cl.status_code.OUT_OF_RESOURCES
    with pytest.raises(clgraph.OutOfMemoryError) as raised:
        graph.alloc(context.devices[0].max_mem_alloc_size * 4)
    assert isinstance(raised.value, MemoryError) and raised.value.cl_status is None


def test_memory_of_numpy_in_a_buffer_is_kept_alive(graph, context):
    import gc
    import weakref

    host = np.arange(1024, dtype=np.int32)
    gone = weakref.ref(host)
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=host)
    graph.fill(clgraph.Memory(memory, np.int32)[:4], 7)
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    del host, memory
    gc.collect()
    assert gone() is not None
    assert executable.submit()[read].tolist() == [7] * 4 + list(range(4, 1024))


def test_objects_and_foreign_byte_orders_are_no_values(queue):
    """Pointers of Python inside memory, and numbers whose bytes are the other way round."""
    with_object = cl_array.empty(queue, 8, np.dtype([("x", "O")]))
    with pytest.raises(TypeError):
        clgraph.Graph(queue).read(with_object)
    with pytest.raises(TypeError):
        clgraph.Param(np.array(3, ">i4"))
    with pytest.raises(TypeError):
        clgraph.Param(np.int32(1)).set(True)


def test_an_event_fails_by_what_has_no_text(queue):
    class Silent(Exception):
        def __str__(self):
            raise ValueError("no")

    event = clgraph.UserEvent(queue)
    event.fail(silent := Silent())
    assert event.done
    with pytest.raises(clgraph.FailedError) as raised:
        event.wait()
    assert raised.value.__cause__ is silent


def test_numbers_that_do_not_fit(graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    for wrong in (-1, 2**64, 10**30, (1, -1), np.int64(-1)):
        with pytest.raises(clgraph.InvalidError):
            graph.kernel(kernels.add, wrong, InOut(memory), np.int32(3))
    with pytest.raises(TypeError):
        graph.kernel(kernels.add, 1.5, InOut(memory), np.int32(3))
    number = Param(np.float32(1))
    with pytest.raises(clgraph.InvalidError):
        number.set(1e300)
    number.set(float("inf"))
    with pytest.raises(clgraph.InvalidError):
        Param(Local(0))
    assert len(graph) == 0


def test_functions_that_would_run_nothing_are_refused(graph, queue):
    async def later(): ...

    def generates():
        yield

    async def both():
        yield

    class Called:
        async def __call__(self): ...

    for wrong in (later, generates, both, Called(), functools.partial(later)):
        for call in (graph.host_task, graph.native_command, clgraph.Queue(queue).host_task):
            with pytest.raises(TypeError):
                call(wrong)
        with pytest.raises(TypeError):
            clgraph.CommandGroup(graph, [lambda: None, wrong])
    assert len(graph) == 0
