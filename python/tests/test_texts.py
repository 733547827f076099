"""The words of errors. Only here: other tests ask for classes and attributes, so that a better sentence changes one file."""

import pathlib
import re
import types

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import CommandGroup, DeviceGlobal, In, InOut, Launch, Local, Out, Param

Invalid = clgraph.InvalidError

RAISES = "OSError: the disk is full (raised in " + __file__


@pytest.fixture
def given(graph, queue, context, buffer, kernels, described):
    """What the calls of the table use."""
    other = cl.Context(context.devices)
    memory, array = buffer(np.zeros(4, np.int32)), cl_array.zeros(queue, 4, np.float32)

    def image(channel=cl.channel_type.UNSIGNED_INT8):
        form = cl.ImageFormat(cl.channel_order.RGBA, channel)
        return cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(4, 3))

    return types.SimpleNamespace(
        graph=graph, queue=queue, context=context, kernels=kernels, described=described, memory=memory, array=array, image=image,
        small=buffer(np.zeros(2, np.int32)), typed=clgraph.Memory(memory, np.int32), recorder=clgraph.Queue(queue),
        foreign=cl.Buffer(other, cl.mem_flags.READ_WRITE, 16), launch=Launch(kernels.add, 4, InOut(memory), np.int32(1)),
    )


def fails():
    raise OSError("the disk is full")


def wait(given, function):
    given.graph.host_task(function, writes=given.memory, label="save")
    given.graph.finalize().submit().wait()


def mapped(given, function):
    given.graph.map(given.memory, function, dtype=np.int32)
    given.graph.finalize().submit().wait()


def native(given, function):
    given.graph.native_command(function)
    given.graph.finalize().submit().wait()


def failed(given, reason):
    event = clgraph.UserEvent(given.queue)
    event.fail(reason)
    event.wait()


def program(given, source, **names):
    names = {name: DeviceGlobal(f"test_texts::{name}", np.uint32(0)) for name in names}
    clgraph.Program(given.context, source, names)


def clash(given):
    for _ in range(2):
        DeviceGlobal("test_texts::twice", np.uint32(0)).on(given.queue)


def of_program(given):
    DeviceGlobal("test_texts::own", np.int32(0), of_program=True).on(given.queue)


def read_into(given, out):
    read = given.graph.read(given.memory, np.int32)
    given.graph.finalize().submit().read_into(read, out)


def fixed():
    array = np.zeros(4, np.int32)
    array.flags.writeable = False
    return array


def after_recording(given):
    recorder = given.recorder
    group = CommandGroup(clgraph.Graph(recorder), [given.launch])
    recorder.command_group(group)


def not_run(given):
    inner = clgraph.Graph(given.queue)
    read = inner.read(given.small)
    branch = given.graph.when(given.memory, inner.finalize())
    given.graph.finalize().submit()[branch.body(0).result(read)]


def too_often(given):
    given.graph.fill(given.memory, np.int32(1))
    given.graph.repeat_while(given.memory, clgraph.Graph(given.queue).finalize(), at_most=3)
    given.graph.finalize().submit().wait()


def queue_too_often(given):
    given.recorder.fill(given.memory, np.int32(1))
    given.recorder.repeat_while(given.memory, lambda queue: None, at_most=3)


def around_body(given):
    with clgraph.Graph(given.recorder):
        given.recorder.repeat(2, lambda queue: given.recorder.fill(given.memory, np.int32(1)))


class Silent(Exception):
    def __str__(self):
        raise ValueError("no")


async def later(): ...


TEXTS = [
    # Arrays and their types.
    (Invalid, "ascontiguousarray", lambda t: t.graph.write(t.memory, np.arange(8, dtype=np.int32)[::2])),
    (TypeError, "float32.*float64.*astype", lambda t: t.graph.write(t.array, np.zeros(4))),
    (TypeError, "Python objects", lambda t: t.graph.write(t.memory, np.array([None] * 2))),
    (TypeError, "Python objects", lambda t: t.graph.write(t.memory, np.zeros(1, [("a", "O")]))),
    (TypeError, "no Python objects", lambda t: t.graph.read(t.memory, object)),
    (TypeError, "no Python objects", lambda t: t.graph.alloc(4, [("a", "i4"), ("b", "O")])),
    (TypeError, "buffer protocol", lambda t: t.graph.write(t.array, [1, 2, 3, 4])),
    (TypeError, "astype", lambda t: t.graph.fill(t.array, np.int32(1))),
    (TypeError, "1.5 is of type float", lambda t: t.graph.fill(t.typed, 1.5)),
    (TypeError, "1.5 is of type float", lambda t: t.recorder.fill(t.typed, 1.5)),
    (TypeError, "True is of type bool", lambda t: t.graph.fill(t.typed, True)),
    (TypeError, "2 is of type int, and the memory of bool", lambda t: t.graph.fill(t.graph.alloc(4, np.bool_), 2)),
    (Invalid, "is no int32", lambda t: t.graph.fill(t.typed, 2**40)),
    (Invalid, "is no float32", lambda t: t.graph.fill(t.array, 1e300)),
    (Invalid, "8 bytes.*16|16 bytes.*8", lambda t: t.graph.copy(t.small, t.memory)),
    (Invalid, "8 bytes to 16", lambda t: t.recorder.copy(t.small, t.memory)),
    (Invalid, "16 bytes, and the data 4", lambda t: t.recorder.write(t.memory, np.zeros(1, np.int32))),
    (Invalid, r"16 bytes.*\[3\]", lambda t: t.graph.read(t.memory, np.int32, 3)),
    (Invalid, "have no bytes", lambda t: t.graph.read(t.memory, "V0")),
    (Invalid, "16 bytes", lambda t: t.graph.read(t.memory, np.int32, (2**62, 4))),
    (Invalid, "`out` has 4", lambda t: read_into(t, np.zeros(1, np.int32))),
    (TypeError, "astype", lambda t: read_into(t, np.zeros(4, np.float32))),
    (Invalid, "cannot be written", lambda t: read_into(t, fixed())),
    (Invalid, "contiguous", lambda t: t.graph.kernel(t.kernels.add, 8, InOut(cl_array.zeros(t.queue, (4, 4), np.int32)[:, 1:3]), np.int32(1))),
    (Invalid, "copy_rect", lambda t: t.graph.read(cl_array.zeros(t.queue, (4, 4), np.int32)[:, 1:3])),
    (Invalid, "no elements", lambda t: t.graph.read(cl_array.empty(t.queue, 0, np.int32))),
    # Arguments of kernels, and their ranges.
    (TypeError, r"argument 0.*In\(x\), Out\(x\) or InOut\(x\)", lambda t: t.graph.kernel(t.kernels.add, 4, t.memory, np.int32(1))),
    (TypeError, "argument 0.*numpy", lambda t: t.graph.kernel(t.kernels.add, 4, InOut(np.zeros(4, np.int32)), np.int32(1))),
    (TypeError, "argument 0", lambda t: t.graph.kernel(t.kernels.add, 4, "text", np.int32(1))),
    (TypeError, "In", lambda t: t.graph.kernel(t.kernels.add, 4, Param(t.memory), np.int32(1))),
    (Invalid, "number of arguments is 1.*2 parameters", lambda t: t.graph.kernel(t.kernels.add, 4, InOut(t.memory))),
    (Invalid, "`n`", lambda t: t.graph.kernel(t.described.add, 4, InOut(t.memory), Local(4))),
    (Invalid, "a `numpy.float32` was given: give a `numpy.int32`", lambda t: t.graph.kernel(t.described.add, 4, InOut(t.memory), np.float32(3))),
    (TypeError, "integer", lambda t: t.graph.kernel(t.described.add, 4, InOut(t.memory), 3.5)),
    (ValueError, "int32", lambda t: t.graph.kernel(t.described.add, 4, InOut(t.memory), 2**31)),
    (TypeError, "a kernel is a pyopencl.Kernel", lambda t: t.graph.kernel("add", 4, InOut(t.memory), np.int32(1))),
    (Invalid, "`global_size`", lambda t: t.graph.kernel(t.kernels.add, -1, InOut(t.memory), np.int32(1))),
    (TypeError, "`global_size`", lambda t: t.graph.kernel(t.kernels.add, 1.5, InOut(t.memory), np.int32(1))),
    (Invalid, "context", lambda t: t.graph.kernel(t.kernels.add, 4, InOut(t.foreign), np.int32(1))),
    (TypeError, r"on\(queue\)", lambda t: t.graph.fill(DeviceGlobal("test_texts::off", np.uint32(0)), 1)),
    # Parameters.
    (TypeError, "numpy.int32", lambda t: Param(3)),
    (TypeError, "or_null", lambda t: Param(np.int32(3), or_null=True)),
    (TypeError, "byte order", lambda t: Param(np.array(3, ">i4"))),
    (TypeError, "Python object", lambda t: Param(np.zeros((), [("a", "O")]))),
    (TypeError, "type bool", lambda t: Param(np.int32(1)).set(True)),
    (ValueError, "int32", lambda t: Param(np.int32(1)).set(2**40)),
    (Invalid, "float32", lambda t: Param(np.float32(1)).set(1e300)),
    (Invalid, r"with `Param\(memory, or_null=True\)` if each kernel", lambda t: Param(t.memory).set(None)),
    (TypeError, "a sampler", lambda t: Param(cl.Sampler(t.context, False, cl.addressing_mode.CLAMP, cl.filter_mode.NEAREST)).set(np.int32(1))),
    (Invalid, "0", lambda t: Param(Local(0))),
    # Nodes, queues, devices, slices.
    (Invalid, "graph", lambda t: t.graph.empty(after=clgraph.Graph(t.queue).empty())),
    (TypeError, "clgraph.Node", lambda t: t.graph.empty(after=[3])),
    (Invalid, '"leaves"', lambda t: t.graph.empty(after="roots")),
    (TypeError, "read", lambda t: t.graph.finalize().submit()["read"]),
    (TypeError, "Graph.alloc", lambda t: t.graph.free(t.graph.alloc(8192)[4096:])),
    (TypeError, "pyopencl.CommandQueue or a clgraph.Queue, not int", lambda t: clgraph.Graph(3)),
    (TypeError, "device", lambda t: clgraph.Graph(t.context)),
    (TypeError, "pyopencl.Context", lambda t: clgraph.Queue(t.context)),
    (TypeError, "submission waits", lambda t: t.graph.finalize().submit(wait_for=[3])),
    (TypeError, "waits for", lambda t: t.recorder.fill(t.memory, np.int32(1), after=[7])),
    (TypeError, "has no queue", lambda t: clgraph.Graph(t.context, t.context.devices[0]).finalize().submit()),
    (TypeError, "UserEvent", lambda t: t.graph.finalize().submit(signals={t.graph.signal_event(): 3})),
    (ValueError, "time", lambda t: t.graph.finalize().submit().wait(-1)),
    (IndexError, "step", lambda t: t.typed[::2]),
    (TypeError, "sliced", lambda t: t.typed[3]),
    (Invalid, "no elements", lambda t: t.typed[3:3]),
    (TypeError, "Memory is made of", lambda t: clgraph.Memory(np.zeros(4))),
    (Invalid, "named.*kernel.*argument", lambda t: clgraph.Program(t.context, "kernel void k() {}", global_access="by hand")),
    (Invalid, "does not record|not recording", lambda t: t.recorder.wait_event()),
    (Invalid, "does not record|not recording", lambda t: t.recorder.signal_event()),
    (Invalid, "another graph", lambda t: t.graph.set_label(clgraph.Graph(t.queue).empty(), "a")),
    (TypeError, "address.*copy it to a buffer", lambda t: t.graph.fill(cl.SVM(np.zeros(4, np.int32)), np.int32(1))),
    (Invalid, "no path", lambda t: t.graph.finalize(path="fast")),
    (Invalid, "no way of loops", lambda t: t.graph.finalize(loops="fast")),
    (Invalid, "profiling=True", lambda t: t.graph.finalize().submit().profile()),
    (Invalid, r"finalize\(updatable=True\)", lambda t: t.graph.finalize().update()),
    (Invalid, r"updatable=True", lambda t: t.graph.finalize().update_from(t.graph)),
    (clgraph.OutOfMemoryError, "split the memory", lambda t: t.graph.alloc(t.context.devices[0].max_mem_alloc_size * 4)),
    # Images.
    (TypeError, "four numbers", lambda t: t.graph.fill(t.image(), 7)),
    (TypeError, "four numbers", lambda t: t.graph.fill(t.image(), (0.5, 0.5, 0.5, 0.5))),
    (TypeError, "four numbers of its kind", lambda t: t.graph.fill(t.image(), np.full(4, 0.5, np.float32))),
    (TypeError, "floating-point numbers.*uint8", lambda t: t.graph.fill(t.image(cl.channel_type.UNORM_INT8), np.full(4, 255, np.uint8))),
    (TypeError, "float32.*int32.*astype", lambda t: t.graph.write(t.image(cl.channel_type.FLOAT), np.zeros((3, 4, 4), np.int32))),
    (TypeError, "pitch", lambda t: t.graph.copy_rect(t.image(), t.image(), (1, 1), src_pitch=4)),
    (TypeError, "part of an image", lambda t: t.graph.fill(t.memory, np.int32(1), origin=(1,))),
    (TypeError, "region", lambda t: t.recorder.copy_rect(t.small, t.memory)),
    # Functions of the program.
    (TypeError, "function", lambda t: t.graph.host_task(3)),
    (TypeError, "plain function", lambda t: t.graph.host_task(later)),
    (TypeError, "function", lambda t: t.graph.finalize().submit().on_complete(3)),
    (TypeError, "a native command is a function, not int", lambda t: t.graph.native_command(3)),
    (TypeError, "`reads` and `writes`", lambda t: t.graph.native_command(print, reads=3)),
    (TypeError, "memory that a native command uses", lambda t: t.graph.native_command(print, writes=[3])),
    (Invalid, "mode", lambda t: t.graph.map(t.memory, print, "append")),
    (clgraph.FailedError, "save.*" + re.escape(RAISES) + r", line \d+\)", lambda t: wait(t, fails)),
    (clgraph.FailedError, r"node 0 \(native command\).*" + re.escape(RAISES) + r", line \d+\)", lambda t: native(t, lambda _: fails())),
    (clgraph.FailedError, "InvalidError.*native command cannot submit", lambda t: native(t, lambda _: clgraph.Graph(t.queue).finalize().submit())),
    (clgraph.FailedError, "InvalidError.*has returned", lambda t: wait(t, lambda task, kept=[]: kept.append(task) or native(t, lambda _: kept[0][t.graph.read(t.memory)]))),
    (clgraph.FailedError, "read-only", lambda t: mapped(t, lambda numbers: numbers.fill(1))),
    (clgraph.FailedError, "array.copy()", lambda t: mapped(t, [].append)),
    (clgraph.FailedError, "^a user event failed: no permission$", lambda t: failed(t, ValueError("no permission"))),
    (clgraph.FailedError, "^a user event failed: lost$", lambda t: failed(t, "lost")),
    (clgraph.FailedError, "no text", lambda t: failed(t, Silent())),
    # Command groups.
    (Invalid, "command group", lambda t: CommandGroup(t.graph, [])),
    (Invalid, "launch 1.*memory", lambda t: CommandGroup(t.graph, [t.launch, Launch(t.kernels.add, 4, InOut(t.small), np.int32(1), up_to=4)])),
    (Invalid, "launch 1.*2 parameters", lambda t: CommandGroup(t.graph, [t.launch, Launch(t.kernels.add, 4, InOut(t.memory))])),
    (TypeError, r"launch 1: argument 0.*InOut\(x\)", lambda t: CommandGroup(t.graph, [t.launch, Launch(t.kernels.add, 4, t.memory, np.int32(1))])),
    (TypeError, "launch 0: a kernel is a pyopencl.Kernel", lambda t: CommandGroup(t.graph, [Launch("add", 4)])),
    (Invalid, "launch 0: .*context", lambda t: CommandGroup(t.graph, [Launch(t.kernels.add, 4, InOut(t.foreign), np.int32(1))])),
    (TypeError, "launches|host tasks", lambda t: CommandGroup(t.graph, [t.launch, print])),
    (TypeError, "In, Out or InOut", lambda t: CommandGroup(t.graph, [t.launch], reads=t.memory)),
    (Invalid, "2", lambda t: setattr(CommandGroup(t.graph, [t.launch, t.launch]), "active", 2)),
    (Invalid, "index", lambda t: setattr(CommandGroup(t.graph, [t.launch]), "active", -1)),
    (Invalid, "graph", lambda t: t.graph.command_group(CommandGroup(clgraph.Graph(t.queue), [t.launch]))),
    (Invalid, "record", after_recording),
    # Branches and loops.
    (TypeError, "condition is of integers of 32 bits.*float32", lambda t: t.graph.when(t.array, t.graph.finalize())),
    (TypeError, "an index is a pyopencl.Buffer", lambda t: t.graph.switch(3, [])),
    (TypeError, "a case is a clgraph.Executable, not", lambda t: t.graph.switch(t.memory, [print])),
    (TypeError, "cases are a list of functions", lambda t: t.recorder.switch(t.memory, print)),
    (TypeError, "plain function", lambda t: t.recorder.when(t.memory, later)),
    (TypeError, "replaces a clgraph.Loop, not clgraph.Node", lambda t: t.graph.repeat(2, t.graph.finalize(), replaces=t.graph.empty())),
    (TypeError, "turns are those of", lambda t: t.graph.finalize().submit().turns(t.graph.empty())),
    (Invalid, "2 bytes", lambda t: t.graph.when(cl.Buffer(t.context, cl.mem_flags.READ_WRITE, 2), t.graph.finalize())),
    (Invalid, "no branch or loop", lambda t: t.graph.finalize().submit().turns(t.graph.repeat(2, t.graph.finalize()))),
    (Invalid, "`Submission.turns`", not_run),
    (clgraph.FailedError, "`at_most=`", too_often),
    (clgraph.FailedError, "a loop of a queue would go on after 3 turns", queue_too_often),
    (Invalid, "use the queue that the function of the body is given", around_body),
    (IndexError, "no body 2", lambda t: t.graph.when(t.memory, t.graph.finalize()).body(2)),
    # Device globals.
    (TypeError, r"numpy.int32\(3\)", lambda t: DeviceGlobal("test_texts::a", 3)),
    (TypeError, "dtype", lambda t: DeviceGlobal("test_texts::a", [1, 2])),
    (TypeError, "initial value or a dtype", lambda t: DeviceGlobal("test_texts::a")),
    (TypeError, "byte order", lambda t: DeviceGlobal("test_texts::a", np.array(3, ">i4"))),
    (TypeError, "shape", lambda t: DeviceGlobal("test_texts::a", None, np.int32, "four")),
    (Invalid, "0 bytes", lambda t: DeviceGlobal("test_texts::a", dtype=np.int32, shape=0)),
    (Invalid, "(?s)does not build.*error", lambda t: program(t, "kernel void broken(")),
    (Invalid, r"CLG_DEVICE_GLOBAL\(type, a\)", lambda t: program(t, "kernel void k(CLG_ONLY_PARAMS) { CLG_GLOBAL(a) = 1; }", a=1)),
    (Invalid, "letters", lambda t: program(t, "kernel void k() {}", **{"1": 1})),
    (Invalid, "two device globals are named", clash),
    (clgraph.KernelNotSupportedError, "keep the program", of_program),
]


@pytest.mark.parametrize("kind, words, call", TEXTS, ids=[re.sub(r"\W+", " ", words).strip() for _, words, _ in TEXTS])
def test_an_error_says_what_to_do(given, kind, words, call):
    with pytest.raises(kind) as raised:
        call(given)
    text = str(raised.value)
    assert re.search(words, text), text
    # A program in Python knows nothing of Rust.
    assert "::" not in re.sub("test_texts::", "", text) and "unwrap" not in text, text


def test_texts_name_things_of_python(graph, buffer, kernels):
    node = graph.kernel(kernels.add, 4, InOut(buffer(np.zeros(4, np.int32))), np.int32(1))
    with pytest.raises(Invalid) as raised:
        graph.finalize().update(node)
    assert "finalize(updatable=True)" in str(raised.value)
    with pytest.raises(Invalid) as raised:
        graph.set_range(node, 2)
    assert "`up_to`" in str(raised.value)
    graph.wait_event()
    with pytest.raises(Invalid) as raised:
        graph.finalize().submit()
    assert "`submit(events=)`" in str(raised.value)


def test_words_of_the_program_are_not_changed(context, queue, graph, kernels):
    words = "bad `std::vector` of a `Parameter`, `reads` and `usize`"

    def fails():
        raise ValueError(words)

    graph.host_task(fails, label="`launch` of a::b")
    event = clgraph.UserEvent(queue)
    event.fail(words)
    for call, text in [
        (lambda: graph.finalize().submit().wait(), f"ValueError: {words} (raised in"),
        (lambda: graph.finalize().submit().wait(), "`launch` of a::b"),
        (event.wait, f"a user event failed: {words}"),
        (lambda: clgraph.Program(context, "#error `Parameter`\n"), "`Parameter`"),
        (lambda: clgraph.Graph(queue).kernel(kernels.add, 1, label="`reads` of b::c"), '"`reads` of b::c"'),
        (lambda: graph.finalize().update(), "finalize(updatable=True)"),
        (lambda: graph.finalize().memory_map.write_svg("/no::where/`usize`"), "/no::where/`usize`"),
    ]:
        with pytest.raises(clgraph.Error) as raised:
            call()
        assert text in str(raised.value)


def test_names_of_rust_have_names_of_python(graph, buffer, described, queue):
    node = graph.kernel(described.add, 4, InOut(buffer(np.zeros(4, np.int32))), np.int32(3))
    with pytest.raises(Invalid) as raised:
        graph.set_range(node, 2)
    assert "`Graph.replace_kernel`" in str(raised.value)
    first, second = (DeviceGlobal("test_texts::again", np.int32(1)) for _ in range(2))
    first.on(queue)
    with pytest.raises(Invalid) as raised:
        second.on(queue)
    assert "module" not in str(raised.value) and "at run time" not in str(raised.value)


def test_the_child_of_a_fork_and_a_program_without_pyopencl_are_told_why(run_python):
    output = run_python("""
import os, sys
sys.modules["pyopencl"] = None  # as if it were not installed
import clgraph
queue = clgraph.Queue(clgraph.devices()[0])
for needs in (lambda: queue.queue, lambda: clgraph.Graph(3)):
    try:
        needs()
    except (ImportError, TypeError) as error:
        print(error, flush=True)
child = os.fork()
if child == 0:
    try:
        clgraph.Graph(queue)
    except clgraph.InvalidError as error:
        print(error, flush=True)
    os._exit(7)
os.waitpid(child, 0)
""")
    lines = output.splitlines()
    assert len(lines) == 3 and "pip install pyopencl" in lines[0] and "CommandQueue" in lines[1] and "fork" in lines[2], output


def test_a_capture_without_the_layer_says_how_to_have_it(queue):
    with pytest.raises(clgraph.NotSupportedError, match="OPENCL_LAYERS"):
        with clgraph.capture(queue):
            pass


def test_words_are_asked_for_in_this_file_only():
    for other in pathlib.Path(__file__).parent.glob("test_*.py"):
        if other.name != pathlib.Path(__file__).name:
            asks = re.findall(r".*(?:\bmatch=|str\((?:raised|caught|wrong|failed)\.value\)).*", other.read_text())
            assert not asks, f"{other.name}: {asks}"
