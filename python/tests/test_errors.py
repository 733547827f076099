"""What is wrong is an exception that says what, where, and what to do, and changes nothing."""

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
        with pytest.raises(clgraph.InvalidError, match="ascontiguousarray"):
            graph.write(memory, wrong)
    write = graph.write(memory, np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError, match="ascontiguousarray"):
        graph.finalize().submit(inputs={write: np.arange(8, dtype=np.int32)[::2]})
    assert len(graph) == 1


def test_numpy_arrays_of_other_types(graph, queue):
    array = cl_array.zeros(queue, 4, np.float32)
    with pytest.raises(TypeError, match="float32.*float64.*astype"):
        graph.write(array, np.zeros(4))
    write = graph.write(array, np.zeros(4, np.float32))
    executable = graph.finalize()
    with pytest.raises(TypeError, match="astype"):
        executable.submit(inputs={write: np.zeros(4, np.int32)})
    with pytest.raises(TypeError, match="Python objects"):
        graph.write(array.base_data, np.array([None] * 2))
    with pytest.raises(TypeError, match="astype"):
        graph.write(array, np.zeros(2, [("a", "i4"), ("b", "f4")]))
    for wrong in ([1, 2, 3, 4], "text", 7):
        with pytest.raises(TypeError, match="buffer protocol"):
            graph.write(array, wrong)
    with pytest.raises(TypeError, match="astype"):
        graph.fill(array, np.int32(1))
    read = graph.read(array)
    run = graph.finalize().submit()
    with pytest.raises(TypeError, match="astype"):
        run.read_into(read, np.zeros(4, np.int32))
    assert len(graph) == 2


def test_wrong_sizes(graph, buffer):
    small, large = buffer(np.zeros(2, np.int32)), buffer(np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError, match="8 bytes.*16|16 bytes.*8"):
        graph.copy(small, large)
    with pytest.raises(clgraph.InvalidError):
        graph.write(small, np.zeros(4, np.int32))
    write, read = graph.write(small, np.zeros(2, np.int32)), graph.read(large, np.int32)
    executable = graph.finalize()
    with pytest.raises(clgraph.InvalidError):
        executable.submit(inputs={write: np.zeros(4, np.int32)})
    with pytest.raises(ValueError, match=r"16 bytes.*\[3\]"):
        graph.read(large, np.int32, 3)
    for wrong in ((-1, 3), (-1, -1), (-4,), (2, -2), (2**62, 4)):
        with pytest.raises(ValueError, match="16 bytes"):
            graph.read(large, np.int32, wrong)
    for makes in (graph.read, clgraph.Memory):
        with pytest.raises(TypeError, match="no Python objects"):
            makes(large, object)
    with pytest.raises(TypeError, match="no Python objects"):
        graph.alloc(4, [("a", "i4"), ("b", "O")])
    with pytest.raises(clgraph.InvalidError, match="`out` has 4"):
        executable.submit().read_into(read, np.zeros(1, np.int32))
    fixed = np.zeros(4, np.int32)
    fixed.flags.writeable = False
    with pytest.raises(clgraph.InvalidError, match="cannot be written"):
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
        with pytest.raises(clgraph.InvalidError, match="context"):
            wrong()
    assert len(graph) == 0


def test_pyopencl_arrays_that_are_not_contiguous(graph, queue, kernels):
    strided = cl_array.zeros(queue, (4, 4), np.int32)[:, 1:3]
    with pytest.raises(clgraph.InvalidError, match="contiguous"):
        graph.kernel(kernels.add, 8, InOut(strided), np.int32(1))
    with pytest.raises(clgraph.InvalidError, match="copy_rect"):
        graph.read(strided)
    with pytest.raises(clgraph.InvalidError, match="no elements"):
        graph.read(cl_array.empty(queue, 0, np.int32))
    assert len(graph) == 0


def test_arguments_that_are_none(graph, queue, buffer, kernels):
    memory, array = buffer(np.zeros(4, np.int32)), cl_array.zeros(queue, 4, np.int32)
    for bare in (memory, array, clgraph.Memory(memory), graph.alloc(4)):
        with pytest.raises(TypeError, match=r"argument 0.*In\(x\), Out\(x\) or InOut\(x\)"):
            graph.kernel(kernels.add, 4, bare, np.int32(1))
    for wrong in (np.zeros(4, np.int32), In(np.zeros(4, np.int32)), In(np.int32(3)), In(Param(np.int32(3))), "text", [1], kernels.add, object()):
        with pytest.raises(TypeError, match="argument 0"):
            graph.kernel(kernels.add, 4, wrong, np.int32(1))
    with pytest.raises(TypeError, match="numpy"):
        graph.kernel(kernels.add, 4, InOut(np.zeros(4, np.int32)), np.int32(1))
    with pytest.raises(clgraph.InvalidError, match="number of arguments is 1.*2 parameters"):
        graph.kernel(kernels.add, 4, InOut(memory))
    for wrong in (4.0, "four", (), (1, 2, 3, 4), (1, "two"), -1, (-1,)):
        with pytest.raises((TypeError, clgraph.InvalidError), match="global_size"):
            graph.kernel(kernels.add, wrong, InOut(memory), np.int32(1))
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, (4, 4), InOut(memory), np.int32(1), local_size=2)
    with pytest.raises(TypeError, match="kernel"):
        graph.kernel("add", 4, InOut(memory), np.int32(1))
    assert len(graph) == 1


def test_checks_of_arguments_need_their_description(graph, buffer, described):
    memory = buffer(np.zeros(4, np.int32))
    for wrong in (np.float32(1), np.int64(1), InOut(memory), Local(4)):
        with pytest.raises(clgraph.InvalidError, match="`n`"):
            graph.kernel(described.add, 4, InOut(memory), wrong)
    assert len(graph) == 0


def test_nodes_that_are_none(graph, queue, buffer):
    other = clgraph.Graph(queue)
    foreign = other.empty()
    with pytest.raises(clgraph.InvalidError, match="graph"):
        graph.empty(after=foreign)
    with pytest.raises(TypeError, match="clgraph.Node"):
        graph.empty(after=[3])
    memory = buffer(np.zeros(4, np.int32))
    read, node = graph.read(memory), graph.fill(memory, np.int32(1))
    run = graph.finalize().submit()
    for wrong in (node, "read", 0):
        with pytest.raises(TypeError, match="read"):
            run[wrong]
    with pytest.raises(clgraph.InvalidError):
        run[other.read(memory)]
    with pytest.raises(clgraph.InvalidError):
        graph.finalize().submit(inputs={read: np.zeros(4, np.int32)})
    with pytest.raises(TypeError, match="Graph.alloc"):
        graph.free(graph.alloc(8192)[4096:])


def test_queues_and_devices_that_are_none(graph, context):
    with pytest.raises(TypeError, match="pyopencl.CommandQueue or a clgraph.Queue, not int"):
        clgraph.Graph(3)
    with pytest.raises(TypeError, match="pyopencl.Context"):
        clgraph.Queue(context)
    with pytest.raises(TypeError, match="device"):
        clgraph.Graph(context, 3)
    with pytest.raises(TypeError, match="submission waits"):
        graph.finalize().submit(wait_for=[3])
    with pytest.raises(TypeError, match="UserEvent"):
        graph.finalize().submit(signals={graph.signal_event(): 3})
    with pytest.raises(TypeError, match="function"):
        graph.host_task(3)
    other = clgraph.Graph(context, context.devices[0]).finalize()
    with pytest.raises(TypeError, match="function"):
        other.submit(cl.CommandQueue(context)).on_complete(3)
    with pytest.raises(ValueError, match="time"):
        other.submit(cl.CommandQueue(context)).wait(-1)


def test_slices_of_memory(buffer):
    memory = clgraph.Memory(buffer(np.zeros(8, np.int32)), np.int32)
    with pytest.raises(IndexError, match="step"):
        memory[::2]
    with pytest.raises(TypeError, match="sliced"):
        memory[3]
    with pytest.raises(clgraph.InvalidError, match="no elements"):
        memory[5:5]
    with pytest.raises(TypeError, match="Memory is made of"):
        clgraph.Memory(np.zeros(4))
    assert memory[2:100].shape == (6,) and memory[-3:].shape == (3,)


def test_an_error_of_opencl_has_its_status(context, graph):
    failed = cl.UserEvent(context)
    failed.set_status(cl.status_code.OUT_OF_RESOURCES)
    with pytest.raises(clgraph.Error, match="CL_OUT_OF_RESOURCES") as raised:
        graph.finalize().submit(wait_for=failed).wait()
    assert raised.value.cl_status == cl.status_code.OUT_OF_RESOURCES
    with pytest.raises(clgraph.OutOfMemoryError, match="split the memory") as raised:
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


def test_texts_name_things_of_python(graph, buffer, kernels):
    node = graph.kernel(kernels.add, 4, InOut(buffer(np.zeros(4, np.int32))), np.int32(1))
    with pytest.raises(clgraph.InvalidError) as raised:
        graph.finalize().update(node)
    assert "finalize(updatable=True)" in str(raised.value) and "::" not in str(raised.value)
    with pytest.raises(clgraph.InvalidError) as raised:
        graph.set_range(node, 2)
    assert "`up_to`" in str(raised.value)
    graph.wait_event()
    with pytest.raises(clgraph.InvalidError) as raised:
        graph.finalize().submit()
    assert "`submit(events=)`" in str(raised.value)


def test_objects_and_foreign_byte_orders_are_no_values(queue):
    """Pointers of Python inside memory, and numbers whose bytes are the other way round."""
    with_object = cl_array.empty(queue, 8, np.dtype([("x", "O")]))
    with pytest.raises(TypeError):
        clgraph.Graph(queue).read(with_object)
    with pytest.raises(TypeError, match="byte order"):
        clgraph.Param(np.array(3, ">i4"))
    with pytest.raises(TypeError, match="type bool"):
        clgraph.Param(np.int32(1)).set(True)


def test_an_event_fails_by_what_has_no_text(queue):
    class Silent(Exception):
        def __str__(self):
            raise ValueError("no")

    event = clgraph.UserEvent(queue)
    event.fail(Silent())
    assert event.done
    with pytest.raises(clgraph.FailedError, match="no text"):
        event.wait()


def test_words_of_the_program_are_not_changed(context, queue, graph, buffer, kernels):
    words = "bad `std::vector` of a `Parameter`, `reads` and `usize`"

    def fails():
        raise ValueError(words)

    graph.host_task(fails, label="`launch` of a::b")
    with pytest.raises(clgraph.FailedError) as failed:
        graph.finalize().submit().wait()
    assert f"ValueError: {words} (raised in" in str(failed.value) and "`launch` of a::b" in str(failed.value)
    event = clgraph.UserEvent(queue)
    event.fail(words)
    with pytest.raises(clgraph.FailedError) as failed:
        event.wait()
    assert str(failed.value) == f"a user event failed: {words}"
    with pytest.raises(clgraph.Error, match="`Parameter`"):
        clgraph.Program(context, "#error `Parameter`\n")
    with pytest.raises(clgraph.InvalidError, match="\"`reads` of b::c\""):
        clgraph.Graph(queue).kernel(kernels.add, 1, label="`reads` of b::c")
    with pytest.raises(clgraph.InvalidError, match=r"finalize\(updatable=True\)"):
        graph.finalize().update()
    with pytest.raises(clgraph.Error, match="/no::where/`usize`"):
        graph.finalize().memory_map.write_svg("/no::where/`usize`")


def test_names_of_rust_have_names_of_python(graph, buffer, described, context, queue):
    memory = buffer(np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError) as wrong:
        graph.kernel(described.add, 4, InOut(memory), np.float32(3))
    assert "a `numpy.float32` was given: give a `numpy.int32`" in str(wrong.value)
    param = Param(memory)
    with pytest.raises(clgraph.InvalidError, match=r"with `Param\(memory, or_null=True\)` if each kernel"):
        param.set(None)
    node = graph.kernel(described.add, 4, InOut(memory), np.int32(3))
    with pytest.raises(clgraph.InvalidError, match="`Graph.replace_kernel`"):
        graph.set_range(node, 2)
    first, second = (clgraph.DeviceGlobal("test_errors::twice", np.int32(1)) for _ in range(2))
    first.on(queue)
    with pytest.raises(clgraph.InvalidError, match="two device globals are named") as clash:
        second.on(queue)
    assert "module" not in str(clash.value) and "at run time" not in str(clash.value)


def test_numbers_that_do_not_fit(graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    for wrong in (-1, 2**64, 10**30, (1, -1), np.int64(-1)):
        with pytest.raises(clgraph.InvalidError, match="`global_size`"):
            graph.kernel(kernels.add, wrong, InOut(memory), np.int32(3))
    with pytest.raises(TypeError, match="`global_size`"):
        graph.kernel(kernels.add, 1.5, InOut(memory), np.int32(3))
    number = Param(np.float32(1))
    with pytest.raises(clgraph.InvalidError, match="float32"):
        number.set(1e300)
    number.set(float("inf"))
    with pytest.raises(clgraph.InvalidError, match="0"):
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
            with pytest.raises(TypeError, match="plain function"):
                call(wrong)
        with pytest.raises(TypeError, match="plain function"):
            clgraph.CommandGroup(graph, [lambda: None, wrong])
    assert len(graph) == 0
