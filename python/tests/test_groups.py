"""Command groups: several launches, or several host tasks, of which one is active."""

import gc

import numpy as np
import pyopencl as cl
import pyopencl.tools as cl_tools
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import CommandGroup, In, InOut, Launch, Out, Param


def test_one_launch_of_a_group_is_active(graph, buffer, kernels):
    source, out = buffer(np.array([1, 2, 3, 4], np.float32)), buffer(np.zeros(4, np.float32))
    by = Param(np.float32(10))
    group = CommandGroup(graph, [
        Launch(kernels.scale, 4, In(source), Out(out), np.float32(2)),
        Launch(kernels.scale, 4, In(source), Out(out), by, local_size=2),
    ])
    assert len(group) == 2 and group.active == 0 and len(graph) == 0
    node = graph.command_group(group, label="scale")
    read = graph.read(out, np.float32)
    assert node.kind == "kernel" and graph.predecessors(read) == [node] and graph.label(node) == "scale"
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [2, 4, 6, 8]
    group.active = 1
    assert executable.submit()[read].tolist() == [2, 4, 6, 8]  # until it is updated
    executable.update(node)
    assert group.active == 1 and "1" in repr(group)
    assert executable.submit()[read].tolist() == [10, 20, 30, 40]
    by.set(np.float32(100))
    executable.update(node)
    assert executable.submit()[read].tolist() == [100, 200, 300, 400]


def test_a_group_has_several_nodes(graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    group = CommandGroup(graph, [Launch(kernels.add, 4, InOut(memory), np.int32(n), up_to=8) for n in (1, 5)])
    first = graph.command_group(group)
    second = graph.command_group(group, after=first)
    read = graph.read(memory, np.int32)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [2] * 4
    group.active = 1
    executable.update(first, second)
    assert executable.submit()[read].tolist() == [12] * 4
    graph.set_range(second, 2)
    executable.update_from(graph)
    assert executable.submit()[read].tolist() == [22, 22, 12, 12]


def test_one_host_task_of_a_group_is_active(graph, buffer):
    memory, said = buffer(np.array([3], np.int32)), []
    graph.fill(memory, np.int32(4))
    read = graph.read(memory, np.int32)
    group = CommandGroup(graph, [lambda: said.append("left"), lambda task: said.append(int(task[read][0]))], reads=memory)
    node = graph.command_group(group, after=read)
    assert node.kind == "host task" and [node.kind for node in graph.predecessors(node)] == ["fill", "read"]
    executable = graph.finalize(updatable=True)
    executable.submit().wait()
    group.active = 1
    executable.update(node)
    executable.submit().wait()
    assert said == ["left", 4]


def test_a_node_of_a_group_is_recorded(queue, kernels):
    recorder = clgraph.Queue(queue)
    memory = cl_array.zeros(queue, 4, np.int32)
    graph = clgraph.Graph(recorder)
    before = CommandGroup(graph, [Launch(kernels.add, 4, InOut(memory), np.int32(n)) for n in (1, 2)])
    with pytest.raises(clgraph.InvalidError):
        recorder.command_group(before)
    with graph:
        recorder.fill(memory, 10)
        event = recorder.command_group(before)
        inside = CommandGroup(graph, [Launch(kernels.add, 4, InOut(memory), np.int32(n)) for n in (10, 20)])
        node = graph.command_group(inside, after=event)
        read = recorder.read(memory)
        graph.add_edge(node, read)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [21] * 4
    before.active = inside.active = 1
    executable.update(event, node)
    assert executable.submit()[read].tolist() == [32] * 4


def test_a_launch_is_used_by_several_groups(graph, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    launch = Launch(kernels.add, (4,), InOut(memory), np.int32(1), up_to=(8,), prints=False, offset=None)
    for _ in range(2):
        graph.command_group(CommandGroup(graph, iter([launch])))
    read = graph.read(memory, np.int32)
    assert graph.finalize().submit()[read].tolist() == [2] * 4
    assert "add" in repr(launch)


def test_a_group_keeps_memory_of_a_pool(queue, kernels):
    pool = cl_tools.MemoryPool(cl_tools.ImmediateAllocator(queue))
    array = cl_array.zeros(queue, 8, np.int32, allocator=pool)
    pooled = array.base_data.int_ptr
    graph = clgraph.Graph(queue)
    graph.command_group(CommandGroup(graph, [Launch(kernels.add, 8, InOut(array), np.int32(5))]))
    executable = graph.finalize()
    del array, graph
    gc.collect()
    others = [cl_array.zeros(queue, 8, np.int32, allocator=pool) for _ in range(4)]
    assert all(other.base_data.int_ptr != pooled for other in others)
    executable.submit().wait()


def test_what_is_wrong_with_a_group(graph, queue, context, buffer, kernels):
    memory, other = buffer(np.zeros(4, np.int32)), buffer(np.zeros(4, np.int32))
    launch = Launch(kernels.add, 4, InOut(memory), np.int32(1))
    with pytest.raises(clgraph.InvalidError):
        CommandGroup(graph, [])
    with pytest.raises(clgraph.InvalidError):
        CommandGroup(graph, [launch, Launch(kernels.add, 4, InOut(other), np.int32(1))])
    with pytest.raises(clgraph.InvalidError):
        CommandGroup(graph, [launch, Launch(kernels.add, 4, InOut(memory))])
    with pytest.raises(TypeError):
        CommandGroup(graph, [launch, Launch(kernels.add, 4, memory, np.int32(1))])
    with pytest.raises(TypeError):
        CommandGroup(graph, [Launch("add", 4)])
    foreign = cl.Buffer(cl.Context(context.devices), cl.mem_flags.READ_WRITE, 16)
    with pytest.raises(clgraph.InvalidError):
        CommandGroup(graph, [Launch(kernels.add, 4, InOut(foreign), np.int32(1))])
    for wrong in (3, [3], launch, [launch, print], [print, launch]):
        with pytest.raises(TypeError):
            CommandGroup(graph, wrong)
    with pytest.raises(TypeError):
        CommandGroup(graph, [launch], reads=memory)
    with pytest.raises(TypeError):
        CommandGroup(queue, [launch])
    group = CommandGroup(graph, [launch, launch])
    for index in (2, -1, 2**70):
        with pytest.raises(clgraph.InvalidError):
            group.active = index
    with pytest.raises(TypeError):
        group.active = "first"
    with pytest.raises(clgraph.InvalidError):
        clgraph.Graph(queue).command_group(group)
    with pytest.raises(TypeError):
        graph.command_group(launch)
    assert group.active == 0 and len(graph) == 0
    del graph


def test_a_group_whose_graph_is_gone(queue, kernels):
    group = CommandGroup(clgraph.Graph(queue), [Launch(kernels.nothing, 1)])
    gc.collect()
    with pytest.raises(clgraph.InvalidError):
        group.active = 0
    assert "CommandGroup" in repr(group)
