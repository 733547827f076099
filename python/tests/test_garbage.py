"""The garbage collector finds functions that hold the graph or the executable that keeps them."""

import gc
import threading
import weakref

import numpy as np
import pyopencl as cl
import pyopencl.array  # noqa: F401
import pyopencl.tools  # noqa: F401
import pytest

import clgraph

from test_causes import collected


class Owner:
    """Has a graph whose tasks are methods of it, as programs have them."""

    def __init__(self, queue, memory, add):
        self.calls = 0
        self.queue = queue
        self.graph = clgraph.Graph(queue)
        add(self, memory)
        self.executable = self.graph.finalize(updatable=True)

    def task(self, *_):
        self.calls += 1


def add_recorded(owner, memory):
    queue = clgraph.Queue(owner.queue)
    owner.graph = clgraph.Graph(queue)
    with owner.graph:
        queue.host_task(owner.task)
        queue.native_command(owner.task, reads=memory)


def add_group(owner, memory):
    owner.group = clgraph.CommandGroup(owner.graph, [owner.task, lambda: owner.task()], reads=memory)
    owner.graph.command_group(owner.group)


def add_nested(owner, memory):
    inner = clgraph.Graph(owner.queue)
    inner.host_task(owner.task)
    owner.graph.sub_graph(inner.finalize())


def add_loop(owner, memory):
    inner = clgraph.Graph(owner.queue)
    inner.host_task(owner.task)
    owner.graph.repeat(2, inner.finalize())


def add_recorded_loop(owner, memory):
    queue = clgraph.Queue(owner.queue)
    owner.graph = clgraph.Graph(queue)
    with owner.graph:
        queue.repeat(2, lambda queue: queue.host_task(owner.task))


def add_update(owner, memory):
    # The executable takes its function from another graph.
    other = clgraph.Graph(owner.queue)
    other.host_task(owner.task)
    owner.graph.host_task(lambda: None)
    executable = owner.graph.finalize(updatable=True)
    executable.update_from(other)
    owner.graph = other


KINDS = {
    "host task": lambda owner, memory: owner.graph.host_task(owner.task),
    "closure": lambda owner, memory: owner.graph.host_task(lambda: owner.task(owner.executable)),
    "map": lambda owner, memory: owner.graph.map(memory, owner.task),
    "native command": lambda owner, memory: owner.graph.native_command(owner.task, reads=memory),
    "command group": add_group,
    "recorded": add_recorded,
    "sub-graph": add_nested,
    "loop": add_loop,
    "recorded loop": add_recorded_loop,
    "update": add_update,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_holds_its_executable_is_collected(queue, buffer, kind):
    owner = Owner(queue, buffer(np.zeros(4, np.int32)), KINDS[kind])
    owner.executable.submit().wait()
    owner.executable.submit()  # nobody waits for it
    assert owner.calls >= 1
    parts = [weakref.ref(part) for part in (owner, owner.graph, owner.executable)]
    del owner
    collected(*parts)


def test_what_runs_is_not_collected(queue):
    gate = clgraph.UserEvent(queue)

    def submit():
        owner = Owner(queue, None, KINDS["closure"])
        owner.executable.submit(wait_for=gate)
        return owner.calls, weakref.ref(owner), weakref.finalize(owner, list)

    calls, owner, _ = submit()
    for _ in range(5):
        gc.collect()
    assert calls == 0 and owner() is not None
    gate.complete()
    collected(owner)


def test_a_task_runs_after_everything_else_is_gone(queue):
    gate, ran = clgraph.UserEvent(queue), threading.Event()

    def submit():
        graph = clgraph.Graph(queue)
        graph.host_task(lambda: ran.set())
        outer = clgraph.Graph(queue)
        outer.sub_graph(graph.finalize())
        outer.finalize().submit(wait_for=gate)

    submit()
    gc.collect()
    gate.complete()
    assert ran.wait(20)


def test_a_failed_submission_that_its_own_exception_holds_is_collected(queue):
    def fails():
        graph = clgraph.Graph(queue)
        runs, go_on = [], threading.Event()

        def task():
            mine = runs  # in the frame of the traceback
            assert go_on.wait(20) and mine
            raise ValueError

        graph.host_task(task)
        runs.append(graph.finalize().submit())
        go_on.set()
        with pytest.raises(clgraph.FailedError) as caught:
            runs[0].wait()
        assert caught.value.__cause__ is not None
        return weakref.ref(task), weakref.ref(graph)

    collected(*fails())


def test_a_graph_that_is_used_is_not_collected(queue, context):
    owner = Owner(queue, None, KINDS["closure"])
    executable = owner.executable
    graph = weakref.ref(owner.graph)
    del owner
    for _ in range(5):
        gc.collect()
    assert graph() is not None  # by the closure
    executable.submit().wait()
    del executable
    collected(graph)


def test_collections_while_threads_build_and_submit(queue):
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect()

    def work():
        for _ in range(20):
            owner = Owner(queue, None, KINDS["closure"])
            runs = [owner.executable.submit() for _ in range(3)]
            runs[-1].wait()
            assert owner.calls == 3

    threads = [threading.Thread(target=work) for _ in range(3)]
    collector = threading.Thread(target=collect)
    collector.start()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    stop.set()
    collector.join()


def test_memory_of_a_pool_goes_back_when_the_cycle_is_collected(queue, context):
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))

    def build():
        array = cl.array.zeros(queue, 1024, np.int32, allocator=pool)
        queue.finish()
        graph = clgraph.Graph(queue)
        graph.fill(array, np.int32(1))
        graph.host_task(lambda: graph)
        graph.finalize().submit().wait()
        return weakref.ref(graph)

    gone = build()
    assert pool.active_blocks == 1
    collected(gone)
    assert pool.active_blocks == 0


def task_in(graph):
    """Adds a task, and returns a weak reference to its function."""

    def task():
        pass

    graph.host_task(task)
    return weakref.ref(task)


def holders(of):
    """The objects that own what is kept, of what an object refers to."""
    return [one for one in gc.get_referents(of) if type(one).__name__ == "Holder"]


def test_a_recording_keeps_nothing_of_what_runs_beside_it(queue):
    recorder, other = clgraph.Queue(queue), clgraph.Queue(queue)
    recording, inner = clgraph.Graph(recorder), clgraph.Graph(queue)
    task = task_in(inner)
    executable = inner.finalize(updatable=True)
    with recording:
        for run in (executable.submit(), executable.submit(other), other.submit(executable)):
            run.wait()
        del inner, executable, run
        collected(task)
    assert len(recording) == 0


def test_a_recording_keeps_what_it_has_got_as_a_sub_graph(queue):
    recorder, other, ran = clgraph.Queue(queue), clgraph.Queue(queue), []
    recording, inner = clgraph.Graph(recorder), clgraph.Graph(queue)
    inner.host_task(lambda: ran.append(1))
    executable = inner.finalize()
    with recording:
        executable.submit(recorder)
        recorder.submit(executable)
        # A queue joins the recording by what it waits for.
        executable.submit(other, wait_for=recorder.marker())
    del inner, executable
    gc.collect()
    recording.finalize().submit().wait()
    assert ran == [1] * 3


def test_a_recording_keeps_a_sub_graph_once(queue):
    recorder, inner = clgraph.Queue(queue), clgraph.Graph(queue)
    recording = clgraph.Graph(recorder)
    inner.host_task(lambda: None)
    executable = inner.finalize()
    with recording:
        for _ in range(100):
            executable.submit(recorder)
    [held] = holders(recording)
    assert len(recording) == 100 and len(holders(held)) == 1


def test_an_update_gives_up_old_graphs_also_after_submissions_beside_a_recording(queue):
    recorder, graph = clgraph.Queue(queue), clgraph.Graph(queue)
    task_in(graph)
    executable, old = graph.finalize(updatable=True), clgraph.Graph(queue)
    task = task_in(old)
    with clgraph.Graph(recorder):
        executable.submit().wait()
    executable.update_from(old)
    del old
    executable.submit().wait()
    assert task() is not None
    executable.update_from(graph)
    collected(task)


def test_an_update_that_comes_again_and_again_keeps_its_graph_once(queue):
    graph, other = clgraph.Graph(queue), clgraph.Graph(queue)
    task_in(graph)
    task_in(other)
    executable = graph.finalize(updatable=True)
    for _ in range(50):
        executable.update_from(other)
        executable.update_from(graph)
        executable.update_from(graph)
    _, everything = holders(executable)
    assert len(holders(everything)) == 1
