"""Branches and loops, in graphs and by queues."""

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

from test_causes import collected


@pytest.fixture
def numbers(queue):
    """Makes an array of int32."""
    return lambda *values: cl_array.to_device(queue, np.array(values, np.int32))


@pytest.fixture
def adding(queue, kernels):
    """Makes an executable that adds numbers to arrays: `adding((data, 1), (left, -1))`."""

    def make(*what, updatable=False):
        graph = clgraph.Graph(queue)
        for memory, number in what:
            graph.kernel(kernels.add, memory.size, InOut(memory), np.int32(number))
        return graph.finalize(updatable=updatable)

    return make


def test_a_loop_goes_on_while_its_number_is_not_zero(graph, numbers, adding):
    data, left = numbers(0, 0), numbers(9)
    turns = graph.write(left, np.array([3], np.int32))
    loop = graph.repeat_while(left, adding((data, 2), (left, -1)), label="round", after="leaves")
    read = graph.read(data)
    assert isinstance(loop, clgraph.Loop) and isinstance(loop, clgraph.Node) and loop.kind == "repeat_while" and "Loop(1" in repr(loop)
    assert graph.nodes == [turns, loop, read] and graph.nodes[1].kind == "repeat_while" and graph.label(loop) == "round"
    assert graph.predecessors(loop) == [turns] and graph.predecessors(read) == [loop]
    total = 0
    for loops in (None, "auto", "host-decided", "ahead"):
        executable = graph.finalize(loops=loops)
        for count in (3, 0, 1, 20):
            run = executable.submit(inputs={turns: np.array([count], np.int32)})
            total += 2 * count
            assert run[read].tolist() == [total] * 2 and run.turns(loop) == count
        if loops == "ahead":
            assert executable.report.loops == ["node 1: turns are enqueued ahead"]
            assert "loop       node 1: turns are enqueued ahead" in str(executable.report)
    with pytest.raises(clgraph.InvalidError):
        graph.finalize(loops="fast")


def test_bounds_of_a_loop(graph, numbers, adding):
    data, left = numbers(0), numbers(0)
    turns = graph.write(left, np.array([0], np.int32))
    loop = graph.repeat_while(left, adding((data, 1), (left, -1)), at_least_once=True, at_most=3)
    graph.repeat(4, adding((data, 10)))
    read, executable = graph.read(data), graph.finalize()
    run = executable.submit(inputs={turns: np.array([1], np.int32)})
    assert run[read].tolist() == [41] and run.turns(loop) == 1
    run = executable.submit(inputs={turns: np.array([4], np.int32)})
    with pytest.raises(clgraph.FailedError):
        run.wait(20)
    assert run.turns(loop) == 3 and data.get().tolist() == [44]


def test_branches_run_one_body_or_none(graph, numbers, adding):
    data, flag = numbers(0), numbers(0)
    number = graph.write(flag, np.array([0], np.int32))
    one, ten, hundred = (adding((data, by)) for by in (1, 10, 100))
    alone = graph.when(flag, one)
    both = graph.when(flag, ten, hundred, label="both")
    cases = graph.switch(flag, (body for body in (one, ten, hundred)))
    nothing = graph.switch(flag, [])
    read = graph.read(data)
    assert [node.kind for node in (alone, both, cases, nothing)] == ["when", "when", "switch", "switch"]
    assert [node.kind for node in graph.nodes[1:5]] == ["when", "when", "switch", "switch"]
    executable, total = graph.finalize(), 0
    for value, added, turns in ((0, 101, (0, 1, 1, 0)), (1, 21, (1, 1, 1, 0)), (2, 111, (1, 1, 1, 0)), (3, 11, (1, 1, 0, 0)), (-1, 11, (1, 1, 0, 0))):
        run = executable.submit(inputs={number: np.array([value], np.int32)})
        total += added
        assert run[read].tolist() == [total]
        assert tuple(run.turns(node) for node in (alone, both, cases, nothing)) == turns


def test_a_number_may_be_in_any_memory(graph, queue, buffer, adding, numbers):
    data = numbers(0)
    body, owned = adding((data, 1)), graph.alloc(4096, np.uint32)
    graph.fill(owned, np.uint32(1))
    switch = clgraph.DeviceGlobal("test_control::on", np.uint32(1))
    plain = buffer(np.array([0, 1], np.uint32))
    for flag in (plain, clgraph.Memory(plain, np.int32)[1:], numbers(0, 1)[1:], owned, owned[2048:], switch.on(queue), numbers(0, 1)):
        graph.when(flag, body)
    read = graph.read(data)
    assert graph.finalize().submit()[read].tolist() == [5]
    recorder = clgraph.Queue(queue)
    for flag in (clgraph.Memory(plain, np.int32)[1:], switch.on(queue), numbers(1)):
        recorder.when(flag, lambda queue: queue.fill(data, 7))
    assert data.get().tolist() == [7]


def test_inputs_results_and_loops_inside_of_bodies(graph, queue, numbers, kernels, adding):
    data, flag = numbers(0), numbers(1)
    inner = clgraph.Graph(queue)
    start = inner.write(data, np.array([1], np.int32))
    twice = inner.repeat(2, adding((data, 1)))
    maybe = inner.when(flag, adding((data, 10)))
    end = inner.read(data)
    body = inner.finalize()
    three = graph.repeat(3, body)
    branch = graph.when(flag, body, body)
    then, otherwise, inside = branch.body(0), branch.body(1), three.body
    assert isinstance(then, clgraph.SubGraph) and then == branch == graph.nodes[1] and then.kind == "when" and inside == three
    with pytest.raises(IndexError):
        branch.body(2)
    with pytest.raises(OverflowError):
        branch.body(-1)
    run = graph.finalize().submit(inputs={then.input(start): np.array([5], np.int32)})
    assert run[then.result(end)].tolist() == [17] and run[inside.result(end)].tolist() == [13]
    with pytest.raises(clgraph.InvalidError):
        run[otherwise.result(end)]
    part, other = inside.loop(twice), inside.branch(maybe)
    assert isinstance(part, clgraph.Loop) and part.kind == "repeat" and isinstance(other, clgraph.Branch) and other.kind == "when"
    assert run.turns(three) == 3 and run.turns(part) == 6 and run.turns(other) == 3 and run.turns(then.loop(twice)) == 2
    with pytest.raises(clgraph.InvalidError):
        part.body
    with pytest.raises(IndexError):
        other.body(0)
    for wrong in (lambda: run.turns(twice), lambda: inside.loop(three)):
        with pytest.raises(clgraph.InvalidError):
            wrong()
    with pytest.raises(TypeError):
        run.turns(graph.nodes[0])
    outer = clgraph.Graph(queue)
    sub = outer.sub_graph(body)
    run = outer.finalize().submit()
    run.wait()
    assert run.turns(sub.loop(twice)) == 2


def test_a_node_replaces_another_one(graph, numbers, adding):
    data, flags = numbers(0), (numbers(0), numbers(1))
    body, other = adding((data, 1)), adding((data, 5))
    branch = graph.when(flags[0], body)
    cases = graph.switch(flags[0], [body, other])
    loop = graph.repeat_while(flags[0], body, at_most=2)
    rounds = graph.repeat(2, body)
    read, executable = graph.read(data), graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [3]
    assert graph.when(flags[1], body, replaces=branch) is branch
    assert graph.switch(flags[1], [body, other], replaces=cases) == cases
    assert graph.repeat(3, body, replaces=rounds) == rounds
    assert executable.submit()[read].tolist() == [6], "not before the update"
    executable.update(branch, cases, rounds)
    assert executable.submit()[read].tolist() == [15]
    graph.repeat_while(flags[0], body, at_least_once=True, replaces=loop)
    executable.update(loop)
    assert executable.submit()[read].tolist() == [25]
    for wrong in (
        lambda: graph.when(flags[0], other, replaces=branch),
        lambda: graph.when(flags[0], body, replaces=cases),
        lambda: graph.repeat(2, body, replaces=loop),
    ):
        with pytest.raises(clgraph.InvalidError):
            wrong()
    for wrong in (lambda: graph.when(flags[0], body, replaces=loop), lambda: graph.repeat(2, body, replaces=graph.nodes[3])):
        with pytest.raises(TypeError):
            wrong()
    assert len(graph) == 5


def test_what_is_no_branch_or_loop_is_refused(graph, queue, buffer, numbers, adding, context):
    data, flag = numbers(0), numbers(1)
    body = adding((data, 1))
    recorder = clgraph.Queue(queue)
    for wrong in (
        cl_array.zeros(queue, 1, np.float32), cl_array.zeros(queue, 1, np.int64), cl_array.zeros(queue, 4, np.int8), cl_array.zeros(queue, 1, ">i4"),
        np.ones(1, np.int32), 1, None,
    ):
        for call in (
            lambda: graph.when(wrong, body), lambda: graph.repeat_while(wrong, body), lambda: graph.switch(wrong, [body]),
            lambda: recorder.when(wrong, print), lambda: recorder.repeat_while(wrong, print), lambda: recorder.switch(wrong, [print]),
        ):
            with pytest.raises(TypeError):
                call()
    events = clgraph.Graph(queue)
    events.wait_event()
    small = cl.Buffer(context, cl.mem_flags.READ_WRITE, 2)
    foreign = cl.Buffer(cl.Context(context.devices), cl.mem_flags.READ_WRITE, 4)
    for call in (
        lambda: graph.when(small, body), lambda: graph.when(foreign, body), lambda: graph.when(clgraph.Memory(buffer(np.zeros(8, np.int8)))[2:6].view(np.int32), body),
        lambda: graph.repeat(2, events.finalize()), lambda: recorder.when(small, print),
    ):
        with pytest.raises(clgraph.InvalidError):
            call()
    for call in (
        lambda: graph.when(flag, print), lambda: graph.when(flag, body, 3), lambda: graph.switch(flag, body), lambda: graph.switch(flag, [body, print]),
        lambda: graph.repeat(1.5, body), lambda: recorder.when(flag, body), lambda: recorder.when(flag, print, 3), lambda: recorder.switch(flag, print),
        lambda: recorder.switch(flag, [print, 3]), lambda: recorder.repeat(2, None),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: graph.repeat(-1, body), lambda: graph.repeat(2**64, body), lambda: recorder.repeat(-1, print)):
        with pytest.raises(OverflowError):
            call()
    assert len(graph) == 0


def test_a_loop_is_cancelled(graph, numbers, adding):
    data, on = numbers(0), numbers(1)
    loop = graph.repeat_while(on, adding((data, 1)))
    executable = graph.finalize()
    run = executable.submit()
    while run.turns(loop) < 5:
        time.sleep(0.001)
    assert not run.done
    run.cancel()
    with pytest.raises(clgraph.FailedError):
        run.wait(20)
    assert run.progress == "failed" and data.get().tolist() == [run.turns(loop)]


def test_tasks_of_a_body_run_in_each_turn_and_may_fail(graph, queue, numbers):
    data, seen = numbers(0), []
    inner = clgraph.Graph(queue)
    read = inner.read(data)

    def task(task):
        seen.append(int(task[read][0]))
        if len(seen) == 5:
            raise KeyError("enough")

    inner.host_task(task, after=read)
    loop = graph.repeat(3, inner.finalize())
    executable = graph.finalize()
    del inner, task
    gc.collect()
    executable.submit().wait(20)
    assert seen == [0] * 3
    run = executable.submit()
    with pytest.raises(clgraph.FailedError) as caught:
        run.wait(20)
    assert isinstance(caught.value.__cause__, KeyError) and run.turns(loop) == 2


@pytest.mark.parametrize("add", ["when", "switch", "repeat_while", "repeat", "recorded"])
def test_functions_of_bodies_are_kept_and_collected(queue, numbers, add):
    ran, on, go_on = [], numbers(1), clgraph.UserEvent(queue)

    def submit():
        recorder = clgraph.Queue(queue)
        outer, inner = clgraph.Graph(recorder), clgraph.Graph(queue)

        def task():
            ran.append(outer)  # a cycle

        inner.host_task(task)
        body = inner.finalize()
        if add == "recorded":
            with outer:
                recorder.repeat(2, lambda queue: queue.repeat(2, lambda queue: queue.host_task(task)))
        elif add == "when":
            outer.when(on, body)
        elif add == "switch":
            outer.switch(on, [body, body])
        elif add == "repeat_while":
            with pytest.raises(clgraph.FailedError):
                outer.repeat_while(on, body, at_most=1)
                outer.finalize().submit().wait(20)
        else:
            outer.repeat(2, body)
        if add != "repeat_while":
            outer.finalize().submit(wait_for=go_on).on_complete(lambda error: done.set())
        else:
            done.set()
        return weakref.ref(task), weakref.ref(outer)

    done = threading.Event()
    parts = submit()
    gc.collect()
    go_on.complete()
    assert done.wait(20)
    assert len(ran) == {"when": 1, "switch": 1, "repeat_while": 1, "repeat": 2, "recorded": 4}[add]
    ran.clear()
    collected(*parts)


def test_memory_of_a_pool_stays_with_a_recorded_body(queue, numbers):
    pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
    recorder, on = clgraph.Queue(queue), numbers(1)

    def record():
        array = cl_array.zeros(queue, 1024, np.int32, allocator=pool)
        queue.finish()
        graph = clgraph.Graph(recorder)
        with graph:
            recorder.when(on, lambda queue: queue.fill(array, 1))
        return graph.finalize()

    executable = record()
    gc.collect()
    assert pool.active_blocks == 1
    executable.submit().wait()
    del executable
    gc.collect()
    assert pool.active_blocks == 0


@pytest.mark.parametrize("out_of_order", [False, True])
def test_a_queue_decides_or_records(context, kernels, numbers, out_of_order):
    properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE if out_of_order else 0
    queue = clgraph.Queue(cl.CommandQueue(context, properties=properties))
    data, left, given = numbers(0), numbers(0), []

    def add(memory, number):
        def function(queue):
            given.append(queue)
            queue.kernel(kernels.add, 1, InOut(memory), np.int32(number))
            queue.barrier()

        return function

    def turn(queue):
        add(data, 1)(queue)
        queue.repeat(2, add(data, 10))
        add(left, -1)(queue)

    def program(turns):
        queue.fill(data, 0)
        queue.fill(left, turns)
        queue.barrier()
        loop = queue.repeat_while(left, turn)
        alone = queue.when(left, add(data, 5000))
        both = queue.when(left, lambda queue: None, add(data, 1000))
        branch = queue.switch(left, [add(data, 10000), print])
        return loop, alone, both, branch

    assert program(3) == (None,) * 4
    queue.finish()
    assert data.get().tolist() == [11063] and all(one is queue for one in given)
    data.fill(0).finish()
    given.clear()
    with clgraph.Graph(queue) as graph:
        loop, alone, both, branch = program(4)
        assert queue.recording
    assert isinstance(loop, clgraph.Loop) and isinstance(branch, clgraph.Branch) and [loop.kind, both.kind, branch.kind] == ["repeat_while", "when", "switch"]
    assert [node.kind for node in graph.nodes if node.kind in ("repeat_while", "when", "switch")] == ["repeat_while", "when", "when", "switch"]
    assert not any(one is queue for one in given) and len(given) == 6 and data.get().tolist() == [0]
    run = graph.finalize().submit()
    run.wait(20)
    assert data.get().tolist() == [11084] and [run.turns(node) for node in (loop, alone, both, branch)] == [4, 0, 1, 1]


def test_bounds_of_a_loop_of_a_queue(queue, numbers):
    recorder, on, calls = clgraph.Queue(queue), numbers(1), []
    with pytest.raises(clgraph.FailedError):
        recorder.repeat_while(on, calls.append, at_most=3)
    recorder.fill(on, 0)
    recorder.repeat_while(on, calls.append, at_least_once=True, at_most=3)
    assert len(calls) == 4
    with clgraph.Graph(recorder) as graph:
        loop = recorder.repeat_while(on, calls.append, True, 3)
    run = graph.finalize().submit()
    run.wait(20)
    assert len(calls) == 5 and run.turns(loop) == 1


def test_a_body_has_a_queue_of_its_own(queue, numbers):
    recorder, data = clgraph.Queue(queue), numbers(0)

    def body(queue):
        for wrong in (lambda: recorder.fill(data, 1), lambda: recorder.repeat(2, print)):
            with pytest.raises(clgraph.InvalidError):
                wrong()
        queue.fill(data, 2)

    with clgraph.Graph(recorder) as graph:
        recorder.repeat(2, body)
    graph.finalize().submit().wait(20)
    assert len(graph.nodes) == 1 and data.get().tolist() == [2]


def test_results_of_recorded_bodies(queue, numbers):
    recorder, data, made, inner = clgraph.Queue(queue), numbers(0), [], []

    def body(queue):
        inner.append(queue.repeat(3, lambda queue: queue.fill(data, 2)))
        inner.append(queue.when(data, lambda queue: None))
        made.append(queue.write(data, np.array([1], np.int32)))
        made.append(queue.read(data))
        assert queue.recording and queue is not recorder
        with pytest.raises(clgraph.InvalidError):
            queue.finish()

    with clgraph.Graph(recorder) as graph:
        loop = recorder.repeat(2, body)
    written, read = made
    run = graph.finalize().submit(inputs={loop.body.input(written): np.array([5], np.int32)})
    assert run[loop.body.result(read)].tolist() == [5]
    rounds, branch = inner
    assert run.turns(loop.body.loop(rounds)) == 6 and run.turns(loop.body.branch(branch)) == 2


def test_ctrl_c_ends_a_loop_that_looks_for_no_signal(run_python):
    output = run_python("""
import os, signal, threading
import numpy as np
import pyopencl as cl
import clgraph
context = cl.create_some_context(interactive=False)
queue = clgraph.Queue(cl.CommandQueue(context))
on = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.ones(1, np.int32))
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    queue.repeat_while(on, type)
except KeyboardInterrupt:
    print("ended", flush=True)

# The function forks, and the child leaves it.
children = []
queue.when(on, lambda queue: children.append(os.fork()))
_, status = os.waitpid(children[0], 0)
print(children[0] > 0, os.waitstatus_to_exitcode(status))
""")
    assert output == "ended\nTrue 0\n"


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [KeyError, Stop, KeyboardInterrupt, SystemExit])
def test_exceptions_of_functions_come_out_as_they_are(queue, numbers, kind):
    recorder, on, data, error = clgraph.Queue(queue), numbers(1), numbers(0), kind("no")

    def fails(queue):
        queue.fill(data, 9)
        raise error

    calls = (
        lambda: recorder.when(on, fails), lambda: recorder.when(on, fails, print), lambda: recorder.switch(on, [lambda queue: None, fails]),
        lambda: recorder.repeat_while(on, fails), lambda: recorder.repeat(2, lambda queue: queue.repeat(2, fails)),
    )
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value is error
    with clgraph.Graph(recorder) as graph:
        for call in calls:
            with pytest.raises(kind) as caught:
                call()
            assert caught.value is error and recorder.recording
        recorder.fill(data, 4)
    assert len(graph) == 1


def test_a_function_adds_nodes_to_the_graph_and_other_threads_run(queue, numbers):
    recorder, data, ticks, stop = clgraph.Queue(queue), numbers(0), [], threading.Event()
    graph = clgraph.Graph(recorder)

    def body(queue):
        graph.fill(numbers(0), np.int32(1))
        thread = threading.Thread(target=lambda: graph.empty(label="beside"))
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        queue.fill(data, 3)

    with graph:
        recorder.repeat(2, body)
    assert [node.kind for node in graph.nodes] == ["fill", "empty", "repeat"]
    graph.finalize().submit().wait(20)
    assert data.get().tolist() == [3]

    # While the call waits for the queue, other threads run.
    gate, on = clgraph.UserEvent(queue), numbers(0)
    recorder.fill(on, 1, after=gate)

    def complete():
        ticks.append(1)
        graph.empty()  # nor does it keep nodes away from the graph
        gate.complete()

    timer = threading.Timer(0.05, complete)
    timer.start()
    recorder.when(on, lambda queue: ticks.append(2))
    timer.join()
    assert ticks == [1, 2]


def test_small_launches_are_fused(graph, numbers, adding):
    data = numbers(0)
    for amount in (1, 2, 3):
        graph.sub_graph(adding((data, amount)))
    read = graph.read(data)
    for fuse in (None, "off", "auto", "now"):
        executable = graph.finalize(fuse=fuse)
        run = executable.submit()
        assert run[read][0] % 6 == 0
        assert ("fused      3 commands by one work-" in str(executable.report)) == (fuse == "now")
    with pytest.raises(clgraph.InvalidError):
        graph.finalize(fuse="fast")


def test_profiles_say_in_which_turn_a_node_ran(graph, numbers, adding):
    data = numbers(0)
    loop = graph.repeat(3, adding((data, 1)))
    fill = graph.fill(data, np.int32(1))
    run = graph.finalize(profiling=True).submit()
    run.wait()
    of = lambda node: [(one.turn, one.inside) for one in run.profile().nodes if one.node == node]
    assert [turn for turn, _ in of(loop)] == [0, 1, 2] and None not in [inside for _, inside in of(loop)]
    assert of(fill) == [(None, None)]
    assert all(one.queued <= one.start for one in run.profile().nodes)


def test_updates_reach_bodies_conditions_and_turns(graph, queue, kernels, numbers):
    data, by = numbers(0), clgraph.Param(np.int32(2))
    inner = clgraph.Graph(queue)
    launch = inner.kernel(kernels.add, 1, InOut(data), by)
    body = inner.finalize(updatable=True)
    loop = graph.repeat(3, body)
    read = graph.read(data)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [6]
    by.set(np.int32(5))
    body.update(launch)
    assert executable.submit()[read].tolist() == [12]
    executable.update(loop)
    assert executable.submit()[read].tolist() == [27]
    graph.repeat(2, body, replaces=loop)
    executable.update(loop)
    assert executable.submit()[read].tolist() == [37]
