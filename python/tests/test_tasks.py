"""Host tasks, maps, callbacks, events, threads and asyncio."""

import asyncio
import ctypes
import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import InOut


def test_a_task_reads_results_and_sets_inputs(graph, buffer):
    samples, scale = buffer(np.array([1, 4, 2], np.float32)), buffer(np.zeros(1, np.float32))
    read = graph.read(samples, np.float32)
    write = graph.write(scale, np.zeros(1, np.float32))

    def normalise(task):
        task[write] = np.array([1 / task[read].max()], np.float32)

    node = graph.host_task(normalise, after=read)
    graph.add_edge(node, write)
    result = graph.read(scale, np.float32)
    assert graph.finalize().submit()[result].tolist() == [0.25]


def test_a_task_runs_between_nodes_with_the_same_memory(graph, buffer, kernels):
    memory, order = buffer(np.zeros(4, np.int32)), []
    graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    graph.host_task(lambda: order.append(threading.current_thread() is threading.main_thread()), writes=memory)
    last = graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    assert [node.kind for node in graph.predecessors(last)] == ["host task"]
    executable = graph.finalize()
    for _ in range(3):
        executable.submit().wait()
    assert order == [False] * 3


def test_an_exception_in_a_task_fails_the_submission(graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    fails = True

    def save():
        if fails:
            raise OSError("the disk is full")

    graph.host_task(save, writes=[memory], label="save")
    graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    run = executable.submit()
    for look in (run.wait, lambda: run[read]):
        with pytest.raises(clgraph.FailedError) as caught:
            look()
        assert isinstance(caught.value.__cause__, OSError)
    assert run.done and issubclass(clgraph.FailedError, RuntimeError)
    fails = False
    assert executable.submit()[read].tolist() == [1] * 4


def test_a_task_object_is_of_no_use_after_its_function(graph):
    kept = []
    graph.host_task(kept.append)
    read = graph.finalize().submit()
    read.wait()
    with pytest.raises(clgraph.InvalidError):
        kept[0][graph.read(graph.alloc(4))]


def test_functions_are_dropped_with_the_graph(queue):
    class Callable:
        def __call__(self):
            pass

    graph = clgraph.Graph(queue)
    function = Callable()
    gone = weakref.ref(function)
    graph.host_task(function)
    executable = graph.finalize()
    executable.submit().wait()
    del function, graph, executable
    until = time.monotonic() + 20
    while gone() is not None and time.monotonic() < until:
        gc.collect()
        threading.Event().wait(0.001)
    assert gone() is None


def test_mapped_memory_is_worked_on_in_place(graph, queue):
    array = cl_array.to_device(queue, np.array([[3, 1], [2, 0]], np.int32))
    seen = []
    graph.map(array, lambda numbers: seen.append(numbers.copy()))

    def double(numbers):
        numbers *= 2

    graph.map(array, double, "write", label="double")
    read = graph.read(array)

    def overwrite(numbers):
        numbers[...] = 9

    graph.map(array, overwrite, "discard")
    last = graph.read(array)
    run = graph.finalize().submit()
    assert run[read].tolist() == [[6, 2], [4, 0]] and run[last].tolist() == [[9, 9], [9, 9]]
    assert seen[0].tolist() == [[3, 1], [2, 0]]
    with pytest.raises(clgraph.InvalidError):
        graph.map(array, double, "append")


def test_memory_that_is_mapped_for_reading_cannot_be_written(graph, buffer):
    def write(numbers):
        numbers[0] = 1

    graph.map(buffer(np.zeros(4, np.int32)), write, dtype=np.int32)
    with pytest.raises(clgraph.FailedError) as caught:
        graph.finalize().submit().wait()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_mapped_array_that_is_kept_fails_the_submission_and_stays_valid(graph, buffer):
    kept = []
    graph.map(buffer(np.array([7, 8], np.int32)), kept.append, dtype=np.int32)
    with pytest.raises(clgraph.FailedError):
        graph.finalize().submit().wait()
    assert kept[0].tolist() == [7, 8]


def test_user_events_hold_and_release_nodes(graph, queue, context, buffer):
    memory = buffer(np.zeros(4, np.int32))
    half = graph.signal_event(after=graph.fill(memory, np.int32(1)))
    go_on = graph.wait_event(after=half)
    graph.fill(memory, np.int32(2), after=go_on)
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    filled, granted = clgraph.UserEvent(queue), clgraph.UserEvent(context)
    run = executable.submit(signals={half: filled}, events={go_on: granted})
    filled.wait(20)
    assert filled.done and not granted.done and not run.done
    with pytest.raises(clgraph.TimedOutError):
        run.wait(0.01)
    with pytest.raises(TimeoutError):
        granted.wait(0.01)
    granted.complete()
    assert run[read].tolist() == [2] * 4

    failed = clgraph.UserEvent(queue)
    run = executable.submit(signals={half: clgraph.UserEvent(queue)}, events={go_on: failed})
    failed.fail(ValueError("no permission"))
    with pytest.raises(clgraph.FailedError) as caught:
        run.wait()
    assert isinstance(caught.value.__cause__, ValueError)


def test_submissions_wait_for_events_of_pyopencl_and_give_some(graph, queue, context, buffer):
    memory = buffer(np.zeros(4, np.int32))
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    other = cl.CommandQueue(context)
    gate = cl.UserEvent(context)
    filled = cl.enqueue_fill_buffer(other, memory, np.int32(5), 0, 16, wait_for=[gate])
    other.flush()
    run = executable.submit(queue, wait_for=[filled])
    after = executable.submit(other, wait_for=run)
    assert not run.done
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert run[read].tolist() == [5] * 4 and after[read].tolist() == [5] * 4
    event = run.event
    assert isinstance(event, cl.Event)
    event.wait()
    cl.enqueue_marker(queue, wait_for=[event]).wait()


def test_callbacks_get_the_outcome(graph, monkeypatch):
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda given: ignored.append(str(given.exc_value)))
    fails = False

    def task():
        if fails:
            raise KeyError("lost")

    graph.host_task(task)
    executable = graph.finalize()
    outcomes, called = [], threading.Event()

    def tell(outcome):
        outcomes.append(outcome)
        called.set()

    executable.submit().on_complete(tell)
    assert called.wait(20) and outcomes == [None]
    fails = True
    called.clear()
    executable.submit().on_complete(tell)
    assert called.wait(20) and isinstance(outcomes[1], clgraph.FailedError) and isinstance(outcomes[1].__cause__, KeyError)
    called.clear()

    def breaks(outcome):
        try:
            raise ArithmeticError("in the callback")
        finally:
            called.set()

    run = executable.submit()
    run.on_complete(breaks)
    assert called.wait(20)
    called.clear()
    run.on_complete(tell)
    assert called.wait(20)  # callbacks run one after the other, so the first has been reported
    assert ignored == ["in the callback"]


def test_asyncio_awaits_submissions(graph, queue):
    gate = clgraph.UserEvent(queue)
    wait = graph.wait_event()
    executable = graph.finalize()

    async def both():
        run = executable.submit(events={wait: gate})
        ticks = []

        async def tick():
            while not run.done:
                ticks.append(1)
                if len(ticks) == 3:
                    gate.complete()
                await asyncio.sleep(0)

        await asyncio.gather(waits(run), tick())
        await run  # again
        failed = clgraph.UserEvent(queue)
        run = executable.submit(events={wait: failed})
        failed.fail("lost")
        with pytest.raises(clgraph.FailedError):
            await run
        run = executable.submit(events={wait: clgraph.UserEvent(queue)})  # dropped, so it fails
        task = asyncio.ensure_future(waits(run))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(ticks)

    async def waits(run):
        await run

    assert asyncio.run(both()) >= 3


def test_other_threads_run_while_one_waits(graph, queue):
    gate = clgraph.UserEvent(queue)
    run = None
    wait = graph.wait_event()
    executable = graph.finalize()
    run = executable.submit(events={wait: gate})
    threading.Thread(target=gate.complete).start()
    run.wait()  # the other thread needs the interpreter's lock to get here


def test_many_threads_use_one_executable(graph, queue, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    calls = []
    graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    graph.host_task(lambda: calls.append(1), reads=memory)
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    results = []

    def submit():
        for _ in range(20):
            results.append(executable.submit(queue)[read][0])

    threads = [threading.Thread(target=submit) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(results) == list(range(1, 81)) and len(calls) == 80


UNMAP = """
typedef int (*call)(void *, void *, void *, unsigned, const void *, void *);
call driver;
int (*has_lock)(void);
int calls, locked;
int unmap(void *queue, void *memory, void *pointer, unsigned count, const void *list, void *event) {
    ++calls;
    locked += has_lock();
    return driver(queue, memory, pointer, count, list, event);
}
"""


@pytest.fixture
def unmaps(queue, tmp_path):
    """Looks at calls of clEnqueueUnmapMemObject: each object of OpenCL begins with the address of its driver's functions."""
    (tmp_path / "unmap.c").write_text(UNMAP)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "unmap.so", tmp_path / "unmap.c"], check=True)
    library = ctypes.CDLL(str(tmp_path / "unmap.so"))
    place = ctypes.c_void_p.from_address(queue.int_ptr).value + 58 * ctypes.sizeof(ctypes.c_void_p)  # by cl_icd.h
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(place & -4096), ctypes.c_size_t(2 * 4096), 3)
    entry, driver = ctypes.c_void_p.from_address(place), ctypes.c_void_p.in_dll(library, "driver")
    driver.value = entry.value
    ctypes.c_void_p.in_dll(library, "has_lock").value = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    entry.value = ctypes.cast(library.unmap, ctypes.c_void_p).value
    yield lambda: [ctypes.c_int.in_dll(library, name).value for name in ("calls", "locked")]
    entry.value = driver.value


def test_memory_is_unmapped_without_the_lock_of_the_interpreter(queue, buffer, unmaps):
    """Also if the function fails: other threads run while the driver works."""
    works, fails = clgraph.Graph(queue), clgraph.Graph(queue)
    works.map(buffer(np.zeros(4, np.int32)), lambda array: None)
    fails.map(buffer(np.zeros(4, np.int32)), lambda array: 1 / 0)
    works.finalize().submit().wait()
    assert unmaps() == [1, 0]
    with pytest.raises(clgraph.FailedError):
        fails.finalize().submit().wait()
    assert unmaps() == [2, 0]
