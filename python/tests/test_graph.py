"""Nodes, their order, and results."""

import gc
import threading

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import clgraph
from clgraph import In, InOut, Local, Out, Param


def test_the_program_of_the_guide_gives_its_result(queue, kernels):
    photo = cl_array.to_device(queue, np.arange(12, dtype=np.float32).reshape(3, 4))
    out = cl_array.empty_like(photo)
    with clgraph.Graph(queue) as g:
        node = g.kernel(kernels.scale, 12, In(photo), Out(out), by := Param(np.float32(3)), label="times")
        result = g.read(out)
    executable = g.finalize(updatable=True)
    run = executable.submit(queue)
    run.wait()
    picture = run[result]
    assert picture.dtype == np.float32 and picture.shape == (3, 4)
    assert np.array_equal(picture, np.arange(12, dtype=np.float32).reshape(3, 4) * 3)
    assert g.predecessors(result) == [node] and g.label(node) == "times" and len(g) == 2
    by.set(np.float32(5))
    executable.update(node)
    assert executable.submit(queue)[result][2, 3] == 55


def test_inputs_replace_the_data_of_a_write(graph, queue, buffer):
    memory = buffer(np.zeros(4, np.int32))
    write = graph.write(memory, np.array([1, 2, 3, 4], np.int32))
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    assert executable.submit()[read].tolist() == [1, 2, 3, 4]
    assert executable.submit(inputs={write: np.array([5, 6, 7, 8], np.int32)})[read].tolist() == [5, 6, 7, 8]
    assert executable.submit(queue)[read].tolist() == [1, 2, 3, 4]


def test_data_is_copied_unless_the_program_lends_it(graph, buffer):
    memory = buffer(np.zeros(4, np.int32))
    data = np.array([1, 2, 3, 4], np.int32)
    graph.write(memory, data)
    read = graph.read(memory, np.int32)
    executable = graph.finalize()
    data[:] = 9
    assert executable.submit()[read].tolist() == [1, 2, 3, 4]

    lent = np.array([1, 2, 3, 4], np.int32)
    write = graph.write(memory, lent, copy=False)
    last = graph.read(memory, np.int32)
    executable = graph.finalize()
    assert executable.submit()[last].tolist() == [1, 2, 3, 4]
    other = bytearray(lent.tobytes()[::-1])
    run = executable.submit(inputs={write: other}, copy=False)
    with pytest.raises(BufferError):
        other.clear()  # its bytes are in use
    assert run[last].view(np.uint8).tolist() == list(other)


@pytest.mark.parametrize("dtype, value", [("i4", -3), ("u1", 255), ("f4", 1.5), ("f4", 2), ("f2", 1.5), ("?", True), ("c8", 2), (">i4", 5)])
def test_a_plain_number_fills_memory_with_elements_of_its_type(graph, dtype, value):
    memory = graph.alloc(16, np.dtype(dtype))
    graph.fill(memory, value)
    read = graph.read(memory)
    assert graph.finalize().submit()[read].tolist() == [value] * 16


def test_copies_fills_and_slices(graph, context):
    memory = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 64), np.int32)
    assert len(memory) == 16 and memory.shape == (16,) and memory.nbytes == 64
    graph.fill(memory, 1)
    graph.fill(memory[4:8], np.array([7, 8], np.int32))
    graph.copy(memory[4:8], memory[12:16])
    read, part = graph.read(memory), graph.read(memory[6:])
    run = graph.finalize().submit()
    assert run[read].tolist() == [1, 1, 1, 1, 7, 8, 7, 8, 1, 1, 1, 1, 7, 8, 7, 8]
    assert run[part].tolist() == [7, 8, 1, 1, 1, 1, 7, 8, 7, 8]
    square = memory.view(shape=(4, -1))
    assert square.shape == (4, 4) and square[1:3].shape == (2, 4)
    assert memory.view(np.uint8).shape == (64,)


def test_a_rectangle_is_copied_in_elements(graph, queue):
    picture = cl_array.to_device(queue, np.arange(48, dtype=np.int32).reshape(6, 8))
    tile = cl_array.zeros(queue, (2, 3), np.int32)
    graph.copy_rect(picture, tile, (3, 2), src_origin=(4, 1), src_pitch=8)
    read = graph.read(tile)
    assert graph.finalize().submit()[read].tolist() == [[12, 13, 14], [20, 21, 22]]


def test_memory_of_a_graph_lives_between_nodes(graph, queue, kernels):
    out = cl_array.zeros(queue, 4, np.float32)
    first = graph.alloc(4, np.float32)
    graph.fill(first, 2)
    second = graph.alloc((2, 2), np.float32, zeroed=True)
    graph.kernel(kernels.scale, 4, In(first), Out(second), np.float32(3))
    graph.free(first)
    graph.copy(second, out)
    graph.free(second)
    read = graph.read(out)
    executable = graph.finalize()
    assert executable.submit()[read].tolist() == [6] * 4
    assert executable.required_memory == executable.memory_map.nbytes > 0
    assert executable.memory_map._repr_svg_().startswith("<svg")
    assert second.node in graph.predecessors(graph.empty(after=second))


def test_an_array_with_an_offset_is_used_from_its_offset_on(graph, queue, kernels):
    align = queue.device.mem_base_addr_align // 8 // 4
    whole = cl_array.zeros(queue, 3 * align, np.int32)
    middle = whole[align : 2 * align]
    assert middle.offset > 0
    graph.kernel(kernels.add, align, InOut(middle), np.int32(5))
    read, part = graph.read(whole), graph.read(middle)
    run = graph.finalize().submit()
    assert run[read].tolist() == [0] * align + [5] * align + [0] * align
    assert run[part].tolist() == [5] * align


def test_an_array_that_starts_between_alignments_is_refused_by_kernels_only(graph, queue, kernels):
    odd = cl_array.zeros(queue, 64, np.int32)[1:5]
    graph.fill(odd, 3)
    read = graph.read(odd)
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(kernels.add, 4, InOut(odd), np.int32(5))
    assert graph.finalize().submit()[read].tolist() == [3] * 4


def test_kinds_of_arguments(graph, context, kernels):
    out = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 64), np.int32)
    floats = out.view(np.float32)
    pair = np.dtype([("a", np.int32), ("b", np.float32)])
    graph.kernel(kernels.record, 1, InOut(out), np.array((3, 4.0), pair))
    first = graph.read(out[:2])
    graph.kernel(kernels.record, 1, InOut(out), np.array((5, 6.0), pair).tobytes())
    second = graph.read(out[:2])
    graph.kernel(kernels.vector, 1, InOut(floats), cl.cltypes.make_float4(1, 2, 3, 4))
    third = graph.read(floats[:1])
    graph.kernel(kernels.is_null, 1, InOut(out), None)
    fourth = graph.read(out[:1])
    graph.fill(out, 2)
    sums = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 4), np.int32)
    graph.kernel(kernels.local_sum, 8, In(out), Out(sums), Local(32), local_size=8)
    fifth = graph.read(sums)
    graph.kernel(kernels.local_sum, 4, In(out), Out(sums), cl.LocalMemory(16), local_size=(4,))
    sixth = graph.read(sums)
    run = graph.finalize().submit()
    assert [run[of].tolist() for of in (first, second, third, fourth, fifth, sixth)] == [[3, 4], [5, 6], [10.0], [1], [16], [8]]


def test_ranges_offsets_and_their_change(graph, context, kernels):
    out = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 64), np.int32)
    graph.fill(out, -1)
    node = graph.kernel(kernels.ids, 4, InOut(out), offset=2, up_to=16)
    read = graph.read(out)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [-1, -1, 2, 3, 4, 5] + [-1] * 10
    graph.set_range(node, 3, offset=8)
    executable.update(node)
    assert executable.submit()[read].tolist() == [-1] * 8 + [8, 9, 10] + [-1] * 5
    with pytest.raises(clgraph.InvalidError):
        graph.set_range(node, 17)



def test_ranges_of_two_dimensions(graph, context, kernels):
    out = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 48), np.int32, (3, 4))
    graph.kernel(kernels.where, (4, 3), InOut(out), local_size=(2, 1))
    read = graph.read(out)
    assert graph.finalize().submit()[read].tolist() == [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]


def test_a_launch_can_be_replaced(graph, buffer, kernels):
    first, second = buffer(np.zeros(4, np.int32)), buffer(np.zeros(4, np.int32))
    node = graph.kernel(kernels.add, 4, InOut(first), np.int32(1))
    reads = graph.read(first, np.int32), graph.read(second, np.int32)
    graph.add_edge(node, reads[1])
    executable = graph.finalize(updatable=True)
    graph.replace_kernel(node, kernels.add, 4, InOut(second), np.int32(7))
    executable.update(node)
    run = executable.submit()
    assert run[reads[0]].tolist() == [0] * 4 and run[reads[1]].tolist() == [7] * 4


def test_sub_graphs_have_inputs_and_results(graph, queue, buffer, kernels):
    memory = buffer(np.zeros(4, np.int32))
    write = graph.write(memory, np.zeros(4, np.int32))
    graph.kernel(kernels.add, 4, InOut(memory), np.int32(1))
    read = graph.read(memory, np.int32)
    inner = graph.finalize()
    outer = clgraph.Graph(queue)
    sub = outer.sub_graph(inner, label="inner")
    again = outer.sub_graph(inner, after=sub)
    run = outer.finalize().submit(inputs={sub.input(write): np.full(4, 5, np.int32)})
    assert run[sub.result(read)].tolist() == [6] * 4 and run[again.result(read)].tolist() == [1] * 4


def test_edges_by_hand(graph):
    first, second = graph.empty(label="one"), graph.empty()
    third = graph.empty(after=[first, second])
    assert graph.predecessors(third) == [first, second]
    graph.add_edge(first, second)
    assert graph.predecessors(second) == [first] and {first: 1}[graph.predecessors(second)[0]] == 1
    with pytest.raises(clgraph.InvalidError):
        graph.add_edge(third, first)


def test_drawings_and_reports_are_shown(graph, context, kernels, buffer):
    graph.kernel(kernels.add, 4, InOut(buffer(np.zeros(4, np.int32))), np.int32(1), label="sum <up>")
    assert graph.to_dot().startswith("digraph")
    assert graph._repr_svg_().startswith("<svg") and graph.to_svg(detail="verbose") != graph.to_svg()
    executable = graph.finalize(profiling=True)
    assert executable._repr_svg_().startswith("<svg")
    report = executable.report
    assert report.nodes == 1 and report.commands == 1 and report.segments and report.device in repr(report)
    try:
        kernels.add.get_arg_info(0, cl.kernel_arg_info.TYPE_NAME)
        unchecked = []
    except cl.RuntimeError:
        unchecked = ["add"]
    assert report.unchecked_kernels == unchecked and "segment" in repr(executable)
    run = executable.submit()
    profile = run.profile()
    assert profile.nodes[0].title == "sum <up>" and profile.end >= profile.start > 0
    assert "sum" in repr(profile) and "sum" in executable.to_svg(run) and "sum" in run.trace()
    assert clgraph.trace(run, run).count("sum") > run.trace().count("sum")
    assert repr(graph).startswith("Graph(1 node ")
    with pytest.raises(clgraph.InvalidError):
        graph.finalize().submit().profile()


def test_a_trace_is_written_to_a_file(graph, buffer, tmp_path):
    graph.fill(buffer(np.zeros(4, np.int32)), np.int32(1))
    run = graph.finalize(profiling=True).submit()
    text = run.trace(tmp_path / "run.json")
    assert (tmp_path / "run.json").read_text().strip() == text.strip()


def test_every_path_gives_the_same_bytes(graph, buffer, kernels):
    memory = buffer(np.arange(8, dtype=np.int32))
    for number in range(5):
        graph.kernel(kernels.add, 8, InOut(memory), np.int32(number))
    write = graph.write(buffer(np.zeros(1, np.int32)), np.zeros(1, np.int32))
    read = graph.read(memory, np.int32)
    total = 0
    for path in ("auto", "native", "replay", "gated", "queues"):
        total += 10
        assert graph.finalize(path=path).submit()[read].tolist() == [number + total for number in range(8)], path
    assert write.index == 5
    with pytest.raises(clgraph.InvalidError):
        graph.finalize(path="fast")


def test_results_stay_when_all_else_is_gone(graph, buffer):
    read = graph.read(buffer(np.arange(4, dtype=np.int32)), np.int32, (2, 2))
    run = graph.finalize().submit()
    array = run[read]
    assert not array.flags.writeable
    into = np.zeros((2, 2), np.int32)
    run.read_into(read, into)
    del run, graph
    assert array.tolist() == into.tolist() == [[0, 1], [2, 3]]


def test_a_graph_of_a_context_and_a_device(context, buffer):
    graph = clgraph.Graph(context, context.devices[0])
    read = graph.read(buffer(np.arange(4, dtype=np.int32)), np.int32)
    executable = graph.finalize()
    with pytest.raises(TypeError):
        executable.submit()
    assert executable.submit(cl.CommandQueue(context))[read].tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        clgraph.Graph(context)


def test_copies_fills_writes_and_reads_are_replaced(graph, buffer):
    first, second, third = (buffer(np.full(4, value, np.int32)) for value in (1, 2, 3))
    write = graph.write(first, np.full(4, 5, np.int32), label="input")
    fill = graph.fill(second, np.int32(6))
    copy = graph.copy(first, third)
    read = graph.read(third, np.int32)
    executable = graph.finalize(updatable=True, allow_conflicts=True)
    assert executable.submit()[read].tolist() == [5] * 4
    assert graph.write(first, np.full(4, 7, np.int32), replaces=write) == write
    assert graph.fill(second, np.int32(8), replaces=fill) == fill
    assert graph.copy(second, third, replaces=copy) == copy
    executable.update(write, fill, copy)
    assert executable.submit()[read].tolist() == [8] * 4
    other = graph.read(first, np.int32, (2, 2), replaces=read)
    executable.update(read)
    assert other == read and executable.submit()[other].tolist() == [[7, 7]] * 2
    rectangle = graph.copy_rect(first, second, (8, 1))
    graph.copy_rect(first, second, (4, 1), replaces=rectangle)
    for wrong in (lambda: graph.copy(first, third, replaces=fill), lambda: graph.fill(first, np.int32(1), replaces=fill, after=write)):
        with pytest.raises(clgraph.InvalidError):
            wrong()
    assert len(graph) == 5 and graph.label(write) == "input"


def test_a_node_waits_for_all_leaves(graph):
    first, second = graph.empty(), graph.empty()
    third = graph.empty(after=first)
    last = graph.empty(after="leaves")
    assert graph.predecessors(last) == [second, third]
    with pytest.raises(clgraph.InvalidError):
        graph.empty(after="roots")


def test_progress_and_command_buffers_are_shown(graph, queue, buffer):
    memory = buffer(np.zeros(4, np.int32))
    graph.fill(memory, np.int32(1))
    executable, event = graph.finalize(), clgraph.UserEvent(queue)
    run = executable.submit(wait_for=event)
    assert run.progress == "waiting"
    event.complete()
    run.wait()
    assert run.progress == "complete"
    event = clgraph.UserEvent(queue)
    failed = executable.submit(wait_for=event)
    event.fail("no")
    with pytest.raises(clgraph.FailedError):
        failed.wait()
    assert failed.progress == "failed"
    buffers = executable.command_buffers
    assert len(buffers) == executable.report.command_buffers and all(buffers)
    name, why = graph.device.path
    assert name in ("native", "replay") and why


def test_a_graph_lists_its_nodes(graph, buffer):
    memory = buffer(np.zeros(4, np.int32))
    assert graph.nodes == graph.roots == []
    first, second = graph.fill(memory, np.int32(1)), graph.empty()
    third = graph.read(memory, after=second)
    assert graph.nodes == [first, second, third] and [node.kind for node in graph.nodes] == ["fill", "empty", "read"]
    assert graph.roots == [first, second]
    assert graph.successors(first) == graph.successors(second) == [third] and graph.successors(third) == []
    with pytest.raises(clgraph.InvalidError):
        graph.successors(clgraph.Graph(graph.context, graph.device).empty())


def test_labels_are_given_later_and_to_recorded_nodes(queue, graph, buffer):
    memory, node = buffer(np.zeros(4, np.int32)), graph.empty(label="before")
    graph.set_label(node, "after")
    assert graph.label(node) == "after" and "after" in graph.to_dot()
    graph.set_label(node, None)
    assert graph.label(node) is None
    recorder = clgraph.Queue(queue)
    with clgraph.Graph(recorder) as recording:
        event = recorder.fill(memory, np.int32(1))
        recording.set_label(event, "fill it")
    assert recording.label(event) == "fill it" and "fill it" in recording.to_svg()
    with pytest.raises(clgraph.InvalidError):
        graph.set_label(event, "of another graph")


def test_a_device_says_what_it_can(graph):
    caps = graph.device.caps
    assert caps["name"] == graph.device.name and caps["platform"] == graph.device.platform
    assert caps["global_memory"] >= caps["max_allocation"] > 0 and isinstance(caps["extensions"], list)
    assert "buffer" in caps["memory"] and caps["global_access"][-1] == "argument"
    assert caps["commands"]["kernel"] is None or isinstance(caps["commands"]["kernel"], str)
    assert (caps["commands"]["kernel"] is None) <= (caps["command_buffers"] is not None)
    assert "abi" in caps


def test_a_detached_submission_returns_nothing(queue, graph, buffer):
    memory, wrapped = buffer(np.zeros(4, np.int32)), clgraph.Queue(queue)
    write = graph.write(memory, np.zeros(4, np.int32))
    executable = graph.finalize()
    for number, to in enumerate((None, queue, wrapped)):
        assert executable.submit_detached(to, inputs={write: np.full(4, number, np.int32)}) is None
        wrapped.finish()
        assert wrapped.read(memory, np.int32).get().tolist() == [number] * 4
    with pytest.raises(TypeError):
        executable.submit_detached(inputs={write: np.zeros(4, np.float32)})


def test_a_detached_submission_keeps_its_functions(queue):
    gate, ran = clgraph.UserEvent(queue), threading.Event()
    graph = clgraph.Graph(queue)
    graph.host_task(lambda: ran.set())
    graph.finalize().submit_detached(wait_for=gate)
    del graph
    gc.collect()
    gate.complete()
    assert ran.wait(20)


def test_a_detached_submission_is_recorded(queue, graph, buffer):
    memory = buffer(np.zeros(4, np.int32))
    graph.fill(memory, np.int32(7))
    executable, recorder = graph.finalize(), clgraph.Queue(queue)
    with clgraph.Graph(recorder) as recording:
        assert executable.submit_detached(recorder) is None
        read = recorder.read(memory, np.int32)
    assert len(recording) == 2 and recording.finalize().submit()[read].tolist() == [7] * 4


def test_promises_of_work_items_are_part_of_a_launch(graph, queue, kernels, buffer):
    memory = buffer(np.ones(64, np.float32))
    out = buffer(np.zeros(64, np.float32))
    for by in (2, 3, 4):
        graph.kernel(kernels.scale, 64, In(memory), Out(out), np.float32(by), elementwise={0: 4, 1: 4})
        graph.kernel(kernels.scale, 64, In(out), Out(memory), np.float32(by), elementwise={1: 4, 0: 4})
    read = graph.read(memory, np.float32)
    assert graph.finalize(fuse="now").submit()[read].tolist() == [24.0**2] * 64
    recorder = clgraph.Queue(queue)
    with clgraph.Graph(recorder) as recording:
        recorder.kernel(kernels.scale, 64, In(memory), Out(out), np.float32(2), elementwise={0: 4, 1: 4})
    assert len(recording) == 1
    launch = (kernels.scale, 64, In(memory), Out(out), np.float32(2))
    for wrong in ({2: 4}, {0: 0}, {5: 4}, {-1: 4}, {0: -4}):
        with pytest.raises(clgraph.InvalidError):
            graph.kernel(*launch, elementwise=wrong)
        with pytest.raises(clgraph.InvalidError):
            recorder.kernel(*launch, elementwise=wrong)
        with pytest.raises(clgraph.InvalidError):
            clgraph.CommandGroup(graph, [clgraph.Launch(*launch, elementwise=wrong)])
    for wrong in ([0, 4], {0: "4"}, {"out": 4}, 4):
        with pytest.raises(TypeError):
            graph.kernel(*launch, elementwise=wrong)
        with pytest.raises(TypeError):
            recorder.kernel(*launch, elementwise=wrong)
    assert len(graph) == 7
    graph.command_group(clgraph.CommandGroup(graph, [clgraph.Launch(*launch, elementwise={0: 4, 1: 4})]))
    graph.finalize(fuse="now").submit().wait()
    assert cl_array.Array(queue, 64, np.float32, data=out).get().tolist() == [2 * 24.0**4] * 64
