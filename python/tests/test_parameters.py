"""Parameters and plain numbers."""

import gc
import weakref

import numpy as np
import pyopencl as cl
import pytest

import clgraph
from clgraph import In, InOut, Local, Out, Param


def test_values_of_every_type(graph, context):
    types = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
             "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "float": np.float32}
    if context.devices[0].double_fp_config:
        types["double"] = np.float64
    source = "".join(f"kernel void k_{name}(global {name} *out, {name} x) {{ out[0] = x; }}" for name in types)
    program = cl.Program(context, source).build(options=["-cl-kernel-arg-info"])
    params, nodes, reads = {}, [], {}
    for name, dtype in types.items():
        memory = clgraph.Memory(cl.Buffer(context, cl.mem_flags.READ_WRITE, 8), dtype)
        params[name] = Param(dtype(3))
        kernel = cl.Kernel(program, f"k_{name}")
        nodes.append(graph.kernel(kernel, 1, InOut(memory), params[name]))
        reads[name] = graph.read(memory[:1])
        nodes.append(graph.kernel(kernel, 1, InOut(memory), dtype(4)))
        graph.kernel(kernel, 1, InOut(memory), 5)
        reads[name + "!"] = graph.read(memory[:1])
    executable = graph.finalize(updatable=True)
    run = executable.submit()
    assert {name: run[read][0] for name, read in reads.items()} == {name: 5 if "!" in name else 3 for name in reads}
    for name, dtype in types.items():
        params[name].set(dtype(6))
        assert str(np.dtype(dtype)) in repr(params[name]) and "6" in repr(params[name])
        params[name].set(7)
    executable.update(*nodes)
    run = executable.submit()
    assert all(run[reads[name]][0] == 7 for name in types)


def test_a_parameter_keeps_its_type():
    param = Param(np.int32(3))
    for wrong in (np.float32(3), np.int64(3), "three", 2.5, np.array([1, 2], np.int32)):
        with pytest.raises(TypeError):
            param.set(wrong)
    with pytest.raises(ValueError):
        param.set(2**40)
    assert repr(param) == "Param(int32: 3)"
    with pytest.raises(TypeError):
        Param(3)
    with pytest.raises(TypeError):
        Param(np.int32(3), or_null=True)


def test_memory_changes_between_submissions(graph, buffer, kernels):
    first, second = buffer(np.full(4, 1, np.float32)), buffer(np.full(4, 2, np.float32))
    out = buffer(np.zeros(4, np.float32))
    source = Param(first)
    node = graph.kernel(kernels.scale, 4, In(source), Out(out), np.float32(10))
    read = graph.read(out, np.float32)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read].tolist() == [10] * 4
    source.set(second)
    executable.update([node])
    assert executable.submit()[read].tolist() == [20] * 4
    with pytest.raises(clgraph.InvalidError):
        source.set(None)
    with pytest.raises(TypeError):
        graph.kernel(kernels.scale, 4, source, Out(out), np.float32(10))


def test_memory_can_become_a_null_pointer(graph, buffer, kernels):
    maybe, out = Param(buffer(np.zeros(4, np.int32)), or_null=True), buffer(np.zeros(1, np.int32))
    node = graph.kernel(kernels.is_null, 1, InOut(out), In(maybe))
    read = graph.read(out, np.int32)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read][0] == 0
    maybe.set(None)
    executable.update(node)
    assert executable.submit()[read][0] == 1


def test_local_memory_and_bytes_change(graph, buffer, kernels):
    numbers, out = buffer(np.arange(8, dtype=np.int32)), buffer(np.zeros(2, np.int32))
    size = Param(Local(16))
    pair = Param(np.array((3, 4.0), [("a", np.int32), ("b", np.float32)]))
    first = graph.kernel(kernels.local_sum, 4, In(numbers), Out(out), size, local_size=4, up_to=8)
    sums = graph.read(out, np.int32)
    second = graph.kernel(kernels.record, 1, InOut(out), pair)
    pairs = graph.read(out, np.int32)
    executable = graph.finalize(updatable=True)
    run = executable.submit()
    assert run[sums][0] == 6 and run[pairs].tolist() == [3, 4]
    size.set(Local(32))
    graph.set_range(first, 8, local_size=8)
    pair.set(np.array((5, 6.0), [("a", np.int32), ("b", np.float32)]))
    executable.update(first, second)
    run = executable.submit()
    assert run[sums][0] == 28 and run[pairs].tolist() == [5, 6]


def test_update_from_takes_all_of_a_graph(graph, buffer, kernels):
    memory, number = buffer(np.zeros(4, np.int32)), Param(np.int32(1))
    graph.kernel(kernels.add, 4, InOut(memory), number)
    read = graph.read(memory, np.int32)
    executable = graph.finalize(updatable=True)
    number.set(4)
    executable.update_from(graph)
    assert executable.submit()[read].tolist() == [4] * 4
    with pytest.raises(clgraph.InvalidError):
        graph.finalize().update_from(graph)


def test_plain_numbers_need_the_type_of_the_parameter(graph, buffer, described):
    memory, silent = buffer(np.zeros(4, np.int32)), cl.Kernel(described.program, "add")

    def reports_nothing(*_):
        raise cl.RuntimeError("clGetKernelArgInfo failed: KERNEL_ARG_INFO_NOT_AVAILABLE")

    silent.get_arg_info = reports_nothing  # as without the option on most drivers
    with pytest.raises(TypeError):
        graph.kernel(silent, 4, InOut(memory), 3)
    graph.kernel(described.add, 4, InOut(memory), 3)
    with pytest.raises(TypeError):
        graph.kernel(described.add, 4, InOut(memory), 3.5)
    with pytest.raises(ValueError):
        graph.kernel(described.add, 4, InOut(memory), 2**31)
    with pytest.raises(clgraph.InvalidError):
        graph.kernel(described.add, 4, InOut(memory), np.float32(3))
    assert len(graph) == 1


def test_names_of_fields_may_have_any_letters(graph, buffer, kernels):
    memory = buffer(np.zeros(2, np.float32))
    for name in ("Origin", "a>b", "no!", "<", "x=y"):
        record = np.zeros((), [(name, "f4"), ("y", "f4")])
        Param(record)
        clgraph.Graph(graph.context, graph.device).write(memory, record)
        read = graph.read(memory, record.dtype)
        run = graph.finalize().submit()
        run.read_into(read, np.zeros(1, record.dtype))
        clgraph.DeviceGlobal(f"test_parameters::{name}", record)
    for foreign in (np.zeros((), [("a", ">f4")]), np.zeros((), ">i4")):
        with pytest.raises(TypeError):
            Param(foreign)
    with pytest.raises(TypeError):
        Param(np.zeros((), [("a", "O")]))
    with pytest.raises(TypeError):
        graph.write(memory, np.zeros(1, [("a", "O")]))


def test_cycles_through_arguments_are_collected():
    class Memory:
        pass

    for wrap in (clgraph.In, clgraph.Out, clgraph.InOut, lambda memory: clgraph.Launch(memory, memory, memory)):
        memory = Memory()
        memory.argument = wrap(memory)
        gone = weakref.ref(memory)
        del memory
        gc.collect()
        assert gone() is None


def test_parameters_give_their_value(context, buffer):
    for value in (np.int8(-1), np.uint64(2**63), np.float32(0.5), np.float64(1e300)):
        given = Param(value).get()
        assert type(given) is type(value) and given == value
    number = Param(np.int32(3))
    number.set(5)
    assert number.get() == 5 and Param(b"abc").get() == b"abc" and Param(Local(48)).get().nbytes == 48
    assert Param(buffer(np.zeros(1, np.int32))).get() is None


def test_a_sampler_changes(graph, context, kernels):
    form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    image = cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(2, 1))
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4)
    clamp, zero = (cl.Sampler(context, False, mode, cl.filter_mode.NEAREST)
                   for mode in (cl.addressing_mode.CLAMP_TO_EDGE, cl.addressing_mode.CLAMP))
    how = Param(clamp)
    graph.fill(image, (7, 7, 7, 7))
    node = graph.kernel(kernels.sampled, 1, In(image), how, Out(out))
    read = graph.read(out, np.uint32)
    executable = graph.finalize(updatable=True)
    assert executable.submit()[read][0] == 7
    how.set(zero)
    executable.update(node)
    assert executable.submit()[read][0] == 0
    with pytest.raises(TypeError):
        how.set(np.int32(1))
    assert how.get() is None and "sampler" in repr(how)
