"""Native commands: Python functions that enqueue OpenCL commands of their own."""

import gc
import threading
import time
import weakref

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import InOut


def test_a_function_enqueues_between_nodes(graph, buffer, kernels):
    source, target = buffer(np.zeros(4, np.int32)), buffer(np.zeros(4, np.int32))
    graph.fill(source, np.int32(5))
    queues = []

    def copy(queue, reads, writes):
        queues.append(queue)
        cl.enqueue_copy(queue, writes.buffer, reads.buffer)

    node = graph.native_command(copy, source, target, label="copy")
    last = graph.kernel(kernels.add, 4, InOut(target), np.int32(1))
    read = graph.read(target, np.int32)
    assert node.kind == "native command" and graph.label(node) == "copy"
    assert [node.kind for node in graph.predecessors(node)] == ["fill"] and graph.predecessors(last) == [node]
    executable = graph.finalize()
    for _ in range(3):
        assert executable.submit()[read].tolist() == [6] * 4
    assert len(queues) == 3 and all(isinstance(queue, cl.CommandQueue) for queue in queues)


def test_a_function_takes_the_memory_or_not(graph, queue, buffer):
    whole = buffer(np.arange(64, dtype=np.int32))
    part, own = clgraph.Memory(whole, np.int32)[16:24], graph.alloc(16, np.int32)
    image = cl.create_image(queue.context, cl.mem_flags.READ_WRITE, cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8), shape=(4, 4))
    seen = {}
    graph.native_command(lambda *all: seen.update(all=all), [whole, part], [image, own])
    graph.native_command(lambda queue: seen.update(one=queue), whole)
    graph.native_command(lambda queue, memory=3: seen.update(two=memory), whole)
    graph.native_command(lambda queue: seen.update(three=queue))
    graph.finalize().submit().wait()
    native, first, second, third, fourth = seen["all"]
    assert all(isinstance(one, cl.CommandQueue) for one in (native, seen["one"], seen["three"])) and seen["two"] == 3
    assert (first.buffer, first.offset, first.nbytes, first.address, first.image) == (whole, 0, 256, None, None)
    assert (second.buffer, second.offset, second.nbytes) == (whole, 64, 32)
    assert (third.image, third.buffer, third.address) == (image, None, None)
    assert fourth.nbytes == 64 and fourth.image is None and (fourth.buffer is None) != (fourth.address is None)
    assert "NativeMemory(64 bytes" in repr(fourth)


def test_an_exception_fails_the_submission(graph, buffer):
    memory = buffer(np.zeros(4, np.int32))
    fails = True

    def native(queue):
        if fails:
            raise OSError("the disk is full")
        cl.enqueue_fill_buffer(queue, memory, np.int32(3), 0, 16)

    graph.native_command(native, writes=memory, label="save")
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    with pytest.raises(clgraph.FailedError) as caught:
        executable.submit()
    assert isinstance(caught.value.__cause__, OSError)
    fails = False
    assert executable.submit()[read].tolist() == [3] * 4


def test_an_exception_after_a_host_task_fails_the_wait(graph, queue):
    fill = graph.host_task(lambda: None)
    graph.native_command(lambda queue: 1 / 0, after=fill)
    run = graph.finalize().submit()
    with pytest.raises(clgraph.FailedError) as caught:
        run.wait()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_queue_executes_and_records_native_commands(queue):
    recorder = clgraph.Queue(queue)
    memory = cl_array.zeros(queue, 4, np.int32)

    def fill(queue, memory):
        cl.enqueue_fill_buffer(queue, memory.buffer, np.int32(3), memory.offset, memory.nbytes)

    gate = clgraph.UserEvent(queue)
    run = recorder.native_command(fill, writes=memory, after=gate)
    assert not run.done
    gate.complete()
    run.wait()
    assert memory.get().tolist() == [3] * 4
    with clgraph.Graph(recorder) as graph:
        recorder.fill(memory, 1)
        recorded = recorder.native_command(fill, writes=clgraph.Memory(memory)[:2])
        read = recorder.read(memory, after=recorded)
    assert graph.finalize().submit()[read].tolist() == [3, 3, 1, 1]
    with pytest.raises(clgraph.FailedError) as caught:
        recorder.native_command(lambda queue: {}["lost"])
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_function_uses_no_graph(graph, queue):
    other = clgraph.Graph(queue).finalize()
    graph.native_command(lambda _: other.submit(queue))
    with pytest.raises(clgraph.FailedError) as caught:
        graph.finalize().submit()
    assert isinstance(caught.value.__cause__, clgraph.InvalidError)


def test_functions_are_dropped_with_the_graph(queue):
    class Callable:
        def __call__(self, queue):
            pass

    graph = clgraph.Graph(queue)
    function = Callable()
    gone = weakref.ref(function)
    graph.native_command(function)
    executable = graph.finalize()
    executable.submit().wait()
    del function, graph, executable
    until = time.monotonic() + 20
    while gone() is not None and time.monotonic() < until:
        gc.collect()
        threading.Event().wait(0.001)
    assert gone() is None


def test_what_is_wrong_with_a_native_command(graph, queue, context):
    with pytest.raises(TypeError):
        graph.native_command(3)
    with pytest.raises(TypeError):
        graph.native_command(print, reads=3)
    with pytest.raises(TypeError):
        graph.native_command(print, writes=[3])
    foreign = cl.Buffer(cl.Context(context.devices), cl.mem_flags.READ_WRITE, 16)
    with pytest.raises(clgraph.InvalidError):
        graph.native_command(print, writes=foreign)
    with pytest.raises(TypeError):
        clgraph.Queue(queue).native_command(None)
    assert len(graph) == 0


def test_other_threads_use_and_drop_what_a_submission_has_while_its_function_runs(queue, buffer):
    """clgraph holds locks while the function runs, and the function needs the interpreter's."""
    memory = buffer(np.zeros(4, np.int32))
    inside, go_on = threading.Event(), threading.Event()
    graph = clgraph.Graph(queue)
    calls = []

    def native(queue):
        calls.append(1)
        if len(calls) == 2:
            inside.set()
            assert go_on.wait(20)

    node = graph.native_command(native, writes=memory)
    hold = graph.wait_event()
    number = clgraph.Param(np.int32(1))
    executable = graph.finalize(updatable=True)
    recorder = clgraph.Queue(queue)
    done, held = clgraph.UserEvent(queue), clgraph.UserEvent(queue)
    done.complete()
    first = executable.submit(events={hold: done})
    first.wait()
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(executable.submit(events={hold: done})))
    thread.start()
    assert inside.wait(20)
    # Each of these gives up the interpreter's lock, or needs none of clgraph's.
    helper = threading.Timer(0.2, go_on.set)
    helper.start()
    while not go_on.is_set():
        other = clgraph.Graph(queue)
        late = clgraph.UserEvent(queue)
        waits = other.finalize().submit(queue, wait_for=late)
        repr(first), repr(executable.device), repr(recorder), repr(graph), repr(held), repr(node)
        assert first.done and not held.done and not recorder.recording
        first.event, held.event, recorder.queue, executable.required_memory, len(graph)
        number.set(2)
        graph.empty(after=graph.read(memory))
        del other, late  # the event fails, and what waited for it
        with pytest.raises(clgraph.FailedError):
            waits.wait()
        gc.collect()
    thread.join(20)
    assert not thread.is_alive() and len(calls) == 2
    outcome[0].wait()


def test_an_executable_is_dropped_while_a_function_of_its_nodes_runs(queue):
    """The submission holds the lock of the executable, and the function needs the interpreter's."""
    inside, go_on = threading.Event(), threading.Event()

    def native(queue):
        inside.set()
        assert go_on.wait(20)

    graph = clgraph.Graph(queue)
    graph.native_command(native)
    inner, outer = graph.finalize(), clgraph.Graph(queue)
    outer.sub_graph(inner)
    executable = outer.finalize()
    del outer, graph
    thread = threading.Thread(target=lambda: executable.submit().wait())
    thread.start()
    assert inside.wait(20)
    threading.Timer(0.1, go_on.set).start()
    del inner
    thread.join(20)
    assert not thread.is_alive()
