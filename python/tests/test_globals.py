"""Device globals, and the programs whose kernels use them."""

import itertools

import numpy as np
import pyopencl as cl
import pytest

import clgraph
from clgraph import DeviceGlobal, In, InOut, Out

SOURCE = """
CLG_DEVICE_GLOBAL(uint, hits);
CLG_DEVICE_GLOBAL_ARRAY(float, limits, [2]);
int is_inside(float x CLG_PARAMS) { return x >= CLG_GLOBAL(limits)[0] && x < CLG_GLOBAL(limits)[1]; }
kernel void count(global const float *a, int n CLG_PARAMS) {
    if (get_global_id(0) < n && is_inside(a[get_global_id(0)] CLG_ARGS)) atomic_inc(&CLG_GLOBAL(hits));
}
kernel void hit(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(hits)); }
kernel void widen(CLG_ONLY_PARAMS) { CLG_GLOBAL(limits)[1] = 10; }
kernel void nothing(global int *a) { a[0] = 7; }
"""

numbers = itertools.count()


@pytest.fixture
def named():
    """Makes names: each declares one global."""
    return lambda: f"python::tests::{next(numbers)}"


@pytest.fixture
def counting(context, named):
    hits = DeviceGlobal(named(), np.uint32(100))
    limits = DeviceGlobal(named(), np.array([0.25, 0.75], np.float32))
    program = clgraph.Program(context, SOURCE, {"hits": hits, "limits": limits})
    return program, hits, limits


def test_kernels_and_the_host_share_a_global(queue, graph, buffer, counting):
    program, hits, limits = counting
    samples = buffer(np.array([0, 0.25, 0.5, 0.75], np.float32))
    graph.kernel(program.kernel("count"), 4, In(samples), np.int32(4))
    first = graph.read(hits.on(queue))
    graph.fill(limits.on(queue)[1:], 10)
    graph.kernel(program.kernel("count"), 4, In(samples), 4)  # clgraph's programs report types
    second, ends = graph.read(hits.on(queue)), graph.read(limits.on(queue))
    run = graph.finalize().submit()
    assert run[first] == 102 and run[first].dtype == np.uint32 and run[first].shape == ()
    assert run[second] == 105 and run[ends].tolist() == [0.25, 10]
    # It keeps its value, for queues too.
    executes = clgraph.Queue(queue)
    executes.kernel(program.kernel("hit"), 5)
    assert executes.read(hits.on(executes)).get() == 110


def test_globals_are_recorded(queue, counting):
    program, hits, _ = counting
    recorder = clgraph.Queue(queue)
    with clgraph.Graph(recorder) as graph:
        recorder.fill(hits.on(recorder), 5)
        recorder.kernel(program.kernel("hit"), 3, globals=InOut(hits))
        read = recorder.read(hits.on(graph))
    executable = graph.finalize()
    assert [executable.submit()[read] for _ in range(2)] == [8, 8]


def test_a_kernel_says_which_globals_it_uses(queue, graph, buffer, counting):
    program, hits, limits = counting
    hit, widen = program.kernel("hit"), program.kernel("widen")
    memory = buffer(np.zeros(1, np.int32))

    first = graph.kernel(widen, 1, globals=[Out(limits)])
    read = graph.read(hits.on(queue))
    assert graph.predecessors(read) == []
    second = graph.kernel(hit, 1, globals=In(limits))
    assert graph.predecessors(second) == [first]
    third = graph.kernel(hit, 1, globals=[InOut(hits)])
    assert graph.predecessors(third) == [read]
    fourth = graph.kernel(hit, 1, globals=iter([In(limits), Out(hits)]))
    assert set(graph.predecessors(fourth)) == {first, third}
    assert graph.predecessors(graph.kernel(program.kernel("nothing"), 1, Out(memory), globals=())) == []
    assert set(graph.predecessors(graph.kernel(hit, 1))) == {second, fourth}
    graph.replace_kernel(first, widen, 1, globals=[Out(limits)])
    with pytest.raises(clgraph.InvalidError):
        graph.replace_kernel(first, widen, 1, globals=())


def test_globals_of_every_sort(context, queue, named):
    record = np.dtype([("hits", np.uint32), ("misses", np.uint32)])
    for given, dtype, shape in [
        ((np.float32(2),), np.float32, ()),
        ((np.arange(6, dtype=np.int16).reshape(2, 3),), np.int16, (2, 3)),
        ((np.array((1, 2), record),), record, ()),
        ((b"abcd",), np.uint8, (4,)),
        ((7, np.int64), np.int64, ()),
        (([1, 2], "i4"), np.int32, (2,)),
        ((0.25, np.float32, (4, 16)), np.float32, (4, 16)),
        ((None, np.uint32), np.uint32, ()),
        ((None, np.uint32, 5), np.uint32, (5,)),
        ((None, None, (2, 2)), np.uint8, (2, 2)),
    ]:
        name = named()
        variable = DeviceGlobal(name, *given)
        assert variable.name == name and variable.dtype == dtype and variable.shape == shape
        assert variable.nbytes == variable.dtype.itemsize * np.prod(shape, dtype=int) and name in repr(variable)
        memory = variable.on(queue)
        assert memory.dtype == dtype and memory.shape == shape and memory.buffer is None
        initial = np.frombuffer(b"abcd", np.uint8) if type(given[0]) is bytes else np.asarray(0 if given[0] is None else given[0], dtype)
        assert np.array_equal(clgraph.Queue(queue).read(memory).get(), np.broadcast_to(initial, shape))


def test_memory_of_a_global_is_memory(context, queue, graph, buffer, kernels, named):
    table = DeviceGlobal(named(), np.arange(4, dtype=np.int32))
    memory, copied = table.on(graph), buffer(np.zeros(2, np.int32))
    number = clgraph.Param(memory)
    node = graph.kernel(kernels.add, 4, InOut(number), np.int32(10))
    graph.copy(memory[1:3], copied)
    graph.host_task(lambda task: None, reads=memory)
    with pytest.raises(clgraph.InvalidError):
        graph.map(memory, print)
    write = graph.write(memory[2:], np.array([5, 6], np.int32))
    read, part = graph.read(memory), graph.read(copied, np.int32)
    executable = graph.finalize(updatable=True)
    executable.update(node)
    run = executable.submit(inputs={write: np.array([8, 9], np.int32)})
    assert run[read].tolist() == [10, 11, 8, 9] and run[part].tolist() == [11, 12]


def test_programs_share_a_global_or_own_it(context, queue, named):
    source = "CLG_DEVICE_GLOBAL(int, a); kernel void add(CLG_ONLY_PARAMS) { CLG_GLOBAL(a) += 1; }"
    shared, own = DeviceGlobal(named(), np.int32(0)), DeviceGlobal(named(), np.int32(3), of_program=True)
    executes = clgraph.Queue(queue)
    for _ in range(2):
        program = clgraph.Program(queue, source, {"a": shared})
        executes.kernel(program.kernel("add"), 1)
    assert executes.read(shared.on(queue)).get() == 2
    with pytest.raises(clgraph.KernelNotSupportedError):
        own.on(queue)
    program = clgraph.Program(context, source, {"a": own})
    executes.kernel(program.kernel("add"), 1)
    assert executes.read(own.on(queue)).get() == 4
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, source, {"a": own})


def test_a_program_gives_objects_of_pyopencl(context, queue, counting):
    program, hits, _ = counting
    assert sorted(program.kernel_names) == ["count", "hit", "nothing", "widen"]
    kernel = program.kernel("hit")
    assert isinstance(kernel, cl.Kernel) and kernel.function_name == "hit"
    assert isinstance(program.program, cl.Program) and "hit" in program.program.kernel_names
    assert len(program.globals) == 2 and "`hits`" in program.globals[0] and hits.name in program.globals[0]
    # A kernel keeps its program, and what it reaches.
    del program, counting
    cl.enqueue_nd_range_kernel(queue, kernel, (4,), None)
    assert clgraph.Queue(queue).read(hits.on(queue)).get() == 104


def test_sources_and_options(context, queue, buffer):
    sources = ["int twice(int x) { return 2 * x; }", "kernel void k(global int *a) { a[0] = twice(STEP); }"]
    for options in ("-DSTEP=4 -cl-std=CL1.2", ["-DSTEP=4", "-cl-std=CL1.2"]):
        kernel = clgraph.Program(context, sources, options=options).kernel("k")
        memory = buffer(np.zeros(1, np.int32))
        executes = clgraph.Queue(queue)
        executes.kernel(kernel, 1, Out(memory))
        assert executes.read(memory, np.int32).get() == [8]


def test_what_is_wrong_with_a_declaration(named):
    for given in ((3,), ([1, 2],), (), (np.array([None]),), (np.array(3, ">i4"),), (3, object), (None, np.int32, "four")):
        with pytest.raises(TypeError):
            DeviceGlobal(named(), *given)
    with pytest.raises(ValueError):
        DeviceGlobal(named(), [1, 2], np.int32, (3,))
    with pytest.raises(ValueError):
        DeviceGlobal(named(), None, np.int32, (-1,))
    with pytest.raises(clgraph.InvalidError):
        DeviceGlobal(named(), dtype=np.int32, shape=0)


def test_what_is_wrong_with_a_program(context, queue, graph, named, kernels):
    hits = DeviceGlobal(named(), np.uint32(0))
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, "kernel void broken(")
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, "kernel void k(CLG_ONLY_PARAMS) { CLG_GLOBAL(hits) = 1; }", {"hits": hits})
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, "CLG_DEVICE_GLOBAL(ulong, hits); kernel void k(CLG_ONLY_PARAMS) { CLG_GLOBAL(hits) = 1; }", {"hits": hits})
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, "kernel void k() {}", {"1": hits})
    again = DeviceGlobal(hits.name, np.uint32(0))
    hits.on(queue)
    with pytest.raises(clgraph.InvalidError):
        again.on(queue)
    for wrong in (
        lambda: clgraph.Program(context, 3),
        lambda: clgraph.Program(context, "kernel void k() {}", {"hits": 3}),
        lambda: clgraph.Program(context, "kernel void k() {}", [hits]),
        lambda: clgraph.Program(3, "kernel void k() {}"),
        lambda: clgraph.Program(context, "kernel void k() {}", options=3),
        lambda: hits.on(3),
        lambda: graph.read(hits),
        lambda: graph.kernel(kernels.add, 1, hits, np.int32(1)),
        lambda: graph.kernel(kernels.add, 1, InOut(hits), np.int32(1)),
        lambda: graph.kernel(kernels.nothing, 1, globals=hits),
        lambda: graph.kernel(kernels.nothing, 1, globals=[In(3)]),
        lambda: graph.kernel(kernels.nothing, 1, globals=3),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        graph.fill(hits, 1)
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.nothing, 1, globals=In(hits))
    program = clgraph.Program(context, SOURCE, {"hits": hits, "limits": DeviceGlobal(named(), dtype=np.float32, shape=2)})
    with pytest.raises(clgraph.Error):
        program.kernel("absent")
    assert len(graph) == 0


ONE = "CLG_DEVICE_GLOBAL(uint, hits); kernel void hit(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(hits)); }"


def test_a_program_chooses_how_kernels_reach_globals(queue, graph, named, context):
    best, hits = graph.device.caps["global_access"], DeviceGlobal(named(), np.uint32(100))
    names = {"named-write": "named", "kernel": "kernel", "argument": "argument"}
    for way in best:
        program = clgraph.Program(context, ONE, {"hits": hits}, global_access=names[way])
        graph.kernel(program.kernel("hit"), 1)
    read = graph.read(hits.on(queue))
    assert graph.finalize().submit()[read] == 100 + len(best)
    with pytest.raises(clgraph.InvalidError):
        clgraph.Program(context, ONE, {"hits": hits}, global_access="by hand")
