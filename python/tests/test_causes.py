"""Exceptions of functions are the causes of the exceptions of submissions."""

import asyncio
import gc
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

import clgraph


class Lost(Exception):
    pass


def cause_of(error):
    """The cause, which has the function in its traceback."""
    assert "clgraph" in type(error).__module__ and error.__suppress_context__
    assert not any(ord(letter) > 0xFFFF for letter in str(error))
    return error.__cause__, [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)]


@pytest.fixture
def failing(graph, buffer):
    """An executable whose task raises what is in a list, and a read after it."""
    memory = buffer(np.zeros(4, np.int32))
    raised = []

    def save():
        raised.append(Lost(f"number {len(raised)}"))
        raise raised[-1]

    graph.host_task(save, writes=memory, label="save")
    read = graph.read(memory, np.int32)
    return graph.finalize(), read, raised


def test_a_task_is_the_cause_of_the_failure(failing):
    executable, read, raised = failing
    run = executable.submit()
    for look in (run.wait, run.wait, lambda: run.wait(20), lambda: run[read]):
        with pytest.raises(clgraph.FailedError) as caught:
            look()
        assert cause_of(caught.value) == (raised[0], ["save"])
    assert not any(ord(letter) > 0xFFFF for letter in repr(run))


def test_each_submission_has_its_own_cause(failing):
    executable, _, raised = failing
    runs = [executable.submit() for _ in range(100)]
    causes = []
    for run in reversed(runs):
        with pytest.raises(clgraph.FailedError) as caught:
            run.wait()
        causes.append(cause_of(caught.value)[0])
    assert causes[::-1] == raised


def test_causes_wait_for_a_callback_that_takes_long(failing, graph, queue):
    """Callbacks run one after the other, and a submission takes its exception by one."""
    executable, _, raised = failing
    inside, go_on = threading.Event(), threading.Event()
    other = clgraph.Graph(queue)
    other.empty()
    other.finalize().submit().on_complete(lambda outcome: (inside.set(), go_on.wait(20)))
    assert inside.wait(20)
    try:
        runs = [executable.submit() for _ in range(200)]
        for run in reversed(runs):
            with pytest.raises(clgraph.FailedError) as caught:
                run.wait()
            assert cause_of(caught.value)[0] is raised[runs.index(run)]
    finally:
        go_on.set()


def test_an_exception_that_is_not_the_failure_is_dropped(graph):
    """Of two that fail at a time, a submission has one."""
    gone = []

    def task():
        error = Lost()
        gone.append(weakref.ref(error))
        raise error

    graph.host_task(task)
    graph.host_task(task)
    executable = graph.finalize()
    for _ in range(100):
        with pytest.raises(clgraph.FailedError):
            executable.submit().wait()
    assert len(gone) >= 100
    collected(*gone)


def test_callbacks_and_asyncio_get_the_cause(failing):
    executable, _, raised = failing
    outcomes, called = [], threading.Event()

    def tell(outcome):
        outcomes.append(outcome)
        called.set()

    executable.submit().on_complete(tell)  # nobody keeps the submission
    assert called.wait(20) and cause_of(outcomes[0]) == (raised[0], ["save"])

    async def waits():
        await executable.submit()

    with pytest.raises(clgraph.FailedError) as caught:
        asyncio.run(waits())
    assert cause_of(caught.value)[0] is raised[1]


def test_what_waits_for_a_submission_has_its_cause(failing, graph, queue):
    executable, _, raised = failing
    gate = clgraph.UserEvent(queue)
    first = executable.submit(wait_for=gate)
    other = clgraph.Graph(queue)
    other.empty()
    second = other.finalize().submit(wait_for=first)
    gate.complete()
    for run in (second, first):
        with pytest.raises(clgraph.FailedError) as caught:
            run.wait()
        assert cause_of(caught.value)[0] is raised[0]


def test_native_commands_and_tasks_of_queues_are_causes(graph, queue):
    thrown = Lost("no command")

    def enqueue(_):
        raise thrown

    graph.native_command(enqueue)
    executable = graph.finalize()
    with pytest.raises(clgraph.FailedError) as caught:
        executable.submit().wait()
    assert cause_of(caught.value) == (thrown, ["enqueue"])
    bare = clgraph.Queue(queue)
    with pytest.raises(clgraph.FailedError) as caught:
        bare.native_command(enqueue).wait()
    assert cause_of(caught.value)[0] is thrown
    with pytest.raises(clgraph.FailedError) as caught:
        bare.host_task(lambda: enqueue(None)).wait()
    error, frames = cause_of(caught.value)
    assert error is thrown and frames[0] == "<lambda>"


def test_a_function_of_mapped_memory_is_the_cause(graph, buffer):
    keeps = False

    def change(numbers):
        raise Lost("mapped", numbers if keeps else len(numbers))

    memory = buffer(np.arange(4, dtype=np.int32))
    graph.map(memory, change, dtype=np.int32)
    executable = graph.finalize()
    with pytest.raises(clgraph.FailedError) as caught:
        executable.submit().wait()
    cause, frames = cause_of(caught.value)
    assert cause.args == ("mapped", 4) and frames == ["change"]
    keeps = True  # an exception with the memory itself is dropped with it
    with pytest.raises(clgraph.FailedError) as caught:
        executable.submit().wait()
    assert caught.value.__cause__ is None


def test_an_exception_that_fails_a_user_event_is_the_cause(graph, queue):
    wait = graph.wait_event()
    event, thrown = clgraph.UserEvent(queue), Lost("not today")
    run = graph.finalize().submit(events={wait: event})
    event.fail(thrown)
    for look in (run.wait, event.wait, lambda: event.wait(1)):
        with pytest.raises(clgraph.FailedError) as caught:
            look()
        assert caught.value.__cause__ is thrown
    text = clgraph.UserEvent(queue)
    text.fail("a text")
    with pytest.raises(clgraph.FailedError) as caught:
        text.wait()
    assert caught.value.__cause__ is None


def test_an_exception_is_dropped_with_its_submission(graph):
    gone = []

    def task():
        error = Lost()
        gone.append(weakref.ref(error))
        raise error

    graph.host_task(task)
    executable = graph.finalize()
    looked_at, ignored = executable.submit(), executable.submit()
    for run in (looked_at, ignored):
        while not run.done:
            run.event.wait()
    with pytest.raises(clgraph.FailedError):
        looked_at.wait()
    assert len(gone) == 2
    del looked_at, ignored, run
    executable.submit().on_complete(lambda outcome: None)  # nobody looks at this one
    collected(*gone)


def collected(*gone):
    """Waits until the garbage collector and the threads of clgraph have dropped objects."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        gc.collect()
        if all(one() is None for one in gone):
            return
        threading.Event().wait(0.001)
    assert not [one() for one in gone if one() is not None]
