"""Queues that execute, and queues that record."""

import threading

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import In, InOut, Out, Param


def existing(queue, kernels, source, out):
    """Code that does not know whether the queue records."""
    written = queue.write(source, np.array([1, 2, 3, 4], np.float32))
    queue.kernel(kernels.scale, 4, In(source), Out(out), np.float32(2), after=written)
    queue.copy(out, source)
    queue.fill(out[:2], np.float32(9))
    return written, queue.read(source), queue.read(out)


def test_the_same_code_executes_and_records(queue, kernels):
    recorder = clgraph.Queue(queue)
    source, out = cl_array.zeros(queue, 4, np.float32), cl_array.zeros(queue, 4, np.float32)
    _, first, second = existing(recorder, kernels, source, out)
    assert first.get().tolist() == [2, 4, 6, 8] and second.get().tolist() == [9, 9, 6, 8]
    assert first.done and first.node is None and isinstance(first.event, cl.Event)
    source.fill(0)
    with clgraph.Graph(recorder) as graph:
        assert recorder.recording and "recording" in repr(recorder)
        written, first, second = existing(recorder, kernels, source, out)
        with pytest.raises(clgraph.InvalidError):
            first.wait()
        with pytest.raises(clgraph.InvalidError):
            recorder.finish()
    assert not recorder.recording and len(graph) == 6
    assert source.get().tolist() == [0] * 4
    run = graph.finalize().submit(inputs={written: np.full(4, 5, np.float32)})
    assert run[first].tolist() == [10] * 4 and run[second].tolist() == [9, 9, 10, 10]
    assert first.node.index == 4


def test_an_exception_ends_the_recording(queue):
    recorder = clgraph.Queue(queue)
    memory = cl_array.zeros(queue, 4, np.int32)
    with pytest.raises(KeyError):
        with clgraph.Graph(recorder) as graph:
            recorder.fill(memory, 1)
            raise KeyError
    assert not recorder.recording and len(graph) == 1
    recorder.fill(memory, 2).wait()
    assert memory.get().tolist() == [2] * 4


def test_nodes_and_recorded_commands_are_mixed(queue, kernels):
    recorder = clgraph.Queue(queue)
    memory, number = cl_array.zeros(queue, 4, np.int32), Param(np.int32(1))
    with clgraph.Graph(recorder) as graph:
        recorder.fill(memory, 3)
        event = recorder.kernel(kernels.add, 4, InOut(memory), number)
        read = graph.read(memory, after=event)
    executable = graph.finalize(updatable=True)
    number.set(5)
    executable.update(event)
    assert executable.submit()[read].tolist() == [8] * 4
    with pytest.raises(clgraph.InvalidError):
        recorder.kernel(kernels.add, 4, InOut(memory), number)  # a Param belongs to graphs


def test_a_queue_records_an_executable_as_a_sub_graph(queue, graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    read = graph.read(memory, np.int32)
    inner = graph.finalize()
    recorder = clgraph.Queue(queue)
    with clgraph.Graph(recorder) as outer:
        sub = inner.submit(recorder)
        recorder.submit(inner)
    run = outer.finalize().submit()
    assert run[sub.sub_graph.result(read)].tolist() == [1] * 4
    with pytest.raises(clgraph.InvalidError):
        sub.wait()


def test_commands_wait_for_each_other_over_queues(context, kernels, buffer):
    one, other = clgraph.Queue(cl.CommandQueue(context)), clgraph.Queue(cl.CommandQueue(context))
    memory = buffer(np.zeros(4, np.int32))
    gate = clgraph.UserEvent(context)
    first = one.fill(memory, np.int32(3), after=gate)
    second = other.kernel(kernels.add, 4, InOut(memory), np.int32(1), after=[first])
    ended = cl.enqueue_marker(one.queue)
    third = other.read(memory, np.int32, after=(second, ended))
    assert not third.done
    gate.complete()
    assert third.get().tolist() == [4] * 4
    one.flush()
    one.barrier()
    one.marker().wait()
    one.finish()


def test_a_queue_runs_host_tasks(queue):
    called = threading.Event()
    run = clgraph.Queue(queue).host_task(called.set)
    run.wait()
    assert called.is_set()
    with pytest.raises(clgraph.FailedError) as caught:
        clgraph.Queue(queue).host_task(lambda: 1 / 0).wait()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_rectangles_on_a_queue(queue):
    recorder = clgraph.Queue(queue)
    picture = cl_array.to_device(queue, np.arange(48, dtype=np.int32).reshape(6, 8))
    tile = cl_array.zeros(queue, (2, 3), np.int32)
    recorder.copy_rect(picture, tile, (3, 2), src_origin=(4, 1), src_pitch=8)
    assert recorder.read(tile).get().tolist() == [[12, 13, 14], [20, 21, 22]]


def test_wrong_sizes_on_a_queue(queue, buffer):
    recorder = clgraph.Queue(queue)
    small, large = buffer(np.zeros(2, np.int32)), buffer(np.zeros(4, np.int32))
    with pytest.raises(clgraph.InvalidError):
        recorder.copy(small, large)
    with pytest.raises(clgraph.InvalidError):
        recorder.write(large, np.zeros(1, np.int32))
    with pytest.raises(TypeError):
        recorder.copy_rect(small, large)
    for wrong in (
        lambda: recorder.fill(large, np.int32(1), origin=1),
        lambda: recorder.write(large, np.zeros(4, np.int32), region=1),
        lambda: recorder.read(large, origin=1),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        recorder.fill(large, np.int32(1), after=[7])


def test_a_queue_records_nodes_for_events(queue, buffer):
    recorder, memory = clgraph.Queue(queue), buffer(np.zeros(4, np.int32))
    with clgraph.Graph(recorder) as graph:
        wait = recorder.wait_event()
        filled = recorder.fill(memory, np.int32(3), after=wait)
        signal = recorder.signal_event(after=filled)
    assert [node.kind for node in graph.nodes] == ["wait event", "fill", "signal event"]
    assert graph.successors(wait) == [filled.node]
    begin, end = clgraph.UserEvent(queue), clgraph.UserEvent(queue)
    run = graph.finalize().submit(events={wait: begin}, signals={signal: end})
    assert not run.done and not end.done
    begin.complete()
    end.wait(20)
    run.wait()
    assert recorder.read(memory, np.int32).get().tolist() == [3] * 4

    # As a part of another graph, by the events of the queue or by the nodes.
    outer = clgraph.Graph(queue)
    part = outer.sub_graph(graph.finalize())
    assert part.event(wait).kind == "wait event" and part.event(signal).kind == "signal event"
    assert part.event(wait) == part.event(graph.nodes[0]) and part.event(signal) == part.event(graph.nodes[2])
    with pytest.raises(clgraph.InvalidError):
        part.event(filled)
    begin, end = clgraph.UserEvent(queue), clgraph.UserEvent(queue)
    run = outer.finalize().submit(events={part.event(wait): begin}, signals={part.event(signal): end})
    begin.complete()
    end.wait(20)
    run.wait()

    for record in (recorder.wait_event, recorder.signal_event):
        with pytest.raises(clgraph.InvalidError):
            record()
