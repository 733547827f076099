"""Images and samplers of pyopencl."""

import numpy as np
import pyopencl as cl
import pytest

import clgraph
from clgraph import In, Out, Param

PIXELS = np.arange(48, dtype=np.uint8).reshape(3, 4, 4)


@pytest.fixture
def image(context):
    def make(channel=cl.channel_type.UNSIGNED_INT8):
        form = cl.ImageFormat(cl.channel_order.RGBA, channel)
        return cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(4, 3))

    return make


def test_a_kernel_reads_and_writes_images(graph, image, kernels):
    source, out = image(), image()
    write = graph.write(source, PIXELS)
    graph.kernel(kernels.invert, (4, 3), In(source), Out(out))
    read = graph.read(out)
    executable = graph.finalize()
    picture = executable.submit()[read]
    assert picture.shape == (3, 4, 4) and np.array_equal(picture, 255 - PIXELS)
    assert np.array_equal(executable.submit(inputs={write: 255 - PIXELS})[read], PIXELS)


def test_parts_of_images(graph, image, buffer):
    source, out, packed = image(), image(), buffer(np.zeros(16, np.uint8))
    graph.write(source, PIXELS)
    graph.fill(out, (1, 2, 3, 4))
    graph.fill(out, (9, 9, 9, 9), origin=(3, 2), region=(1, 1))
    graph.copy_rect(source, out, (2, 1), src_origin=(1, 1), dst_origin=(0, 0))
    graph.copy_rect(out, packed, (2, 2), src_origin=(0, 0))
    graph.write(out, np.full((1, 1, 4), 7, np.uint8), origin=(2, 0), region=(1, 1))
    part, whole = graph.read(packed, np.uint8, (2, 2, 4)), graph.read(out)
    row = graph.read(out, origin=(0, 2), region=(4, 1))
    run = graph.finalize().submit()
    expected = np.tile(np.array([1, 2, 3, 4], np.uint8), (3, 4, 1))
    expected[2, 3] = 9
    expected[0, :2] = PIXELS[1, 1:3]
    assert np.array_equal(run[part], expected[:2, :2])
    expected[0, 2] = 7
    assert np.array_equal(run[whole], expected) and np.array_equal(run[row], expected[2])


def test_whole_images_are_copied(graph, image, buffer):
    source, out = image(), image()
    packed = buffer(PIXELS)
    graph.copy(packed, source)
    graph.copy(source, out)
    read = graph.read(out)
    assert np.array_equal(graph.finalize().submit()[read], PIXELS)


def test_an_image_changes_between_submissions(graph, image, kernels):
    first, second, out = image(), image(), image()
    graph.fill(first, (1, 1, 1, 1))
    graph.fill(second, (2, 2, 2, 2))
    source = Param(first)
    node = graph.kernel(kernels.invert, (4, 3), In(source), Out(out), after=graph.empty())
    read = graph.read(out)
    executable = graph.finalize(updatable=True, allow_conflicts=True)
    assert executable.submit()[read].max() == 254
    source.set(second)
    executable.update(node)
    assert executable.submit()[read].max() == 253
    with pytest.raises(TypeError):
        source.set(np.int32(3))


def test_samplers_are_arguments(graph, context, image, buffer, kernels):
    source, out = image(), buffer(np.zeros(1, np.uint32))
    graph.fill(source, (5, 5, 5, 5))
    reads = []
    for mode in (cl.addressing_mode.CLAMP_TO_EDGE, cl.addressing_mode.CLAMP):
        graph.kernel(kernels.sampled, 1, In(source), cl.Sampler(context, False, mode, cl.filter_mode.NEAREST), Out(out))
        reads.append(graph.read(out, np.uint32))
    run = graph.finalize().submit()
    assert [run[read][0] for read in reads] == [5, 0]


def test_images_on_a_queue(queue, image, buffer, kernels):
    recorder = clgraph.Queue(queue)
    source, out, packed = image(), image(), buffer(np.zeros(48, np.uint8))
    recorder.write(source, PIXELS)
    recorder.kernel(kernels.invert, (4, 3), In(source), Out(out))
    recorder.copy(out, packed)
    assert np.array_equal(recorder.read(out).get(), 255 - PIXELS)
    assert np.array_equal(recorder.read(packed, np.uint8, (3, 4, 4)).get(), 255 - PIXELS)
    recorder.copy(packed, source)
    recorder.fill(out, (3, 3, 3, 3))
    recorder.copy(source, out)
    assert np.array_equal(recorder.read(out).get(), 255 - PIXELS)


def test_wrong_uses_of_images(graph, image, buffer):
    with pytest.raises(TypeError):
        graph.fill(image(), 7)
    with pytest.raises(TypeError):
        graph.fill(image(), (0.5, 0.5, 0.5, 0.5))
    graph.fill(image(cl.channel_type.UNORM_INT8), (0.5, 0.5, 0.5, 0.5))
    with pytest.raises(TypeError):
        graph.copy_rect(image(), image(), (1, 1), src_pitch=4)
    with pytest.raises(clgraph.InvalidError):
        graph.read(image(), region=(5, 1))
    with pytest.raises(TypeError):
        graph.fill(buffer(np.zeros(4, np.int32)), np.int32(1), origin=(1,))
    assert len(graph) == 1


def test_data_of_another_dtype_than_the_channels_is_refused(graph, image, queue):
    floats = image(cl.channel_type.FLOAT)
    right, wrong = np.zeros((3, 4, 4), np.float32), np.zeros((3, 4, 4), np.int32)
    write = graph.write(floats, right)
    recorder = clgraph.Queue(queue)
    executable = graph.finalize()
    for call in (
        lambda: graph.write(floats, wrong),
        lambda: recorder.write(floats, wrong),
        lambda: executable.submit(inputs={write: wrong}),
    ):
        with pytest.raises(TypeError):
            call()
    graph.write(floats, right.tobytes())
    normalized = image(cl.channel_type.UNORM_INT8)
    # 255 would be more than white.
    for call in (graph.fill, recorder.fill):
        with pytest.raises(TypeError):
            call(normalized, np.full(4, 255, np.uint8))
    graph.fill(normalized, (1, 0, 0.5, 1))
    graph.fill(normalized, np.full(4, 0.5, np.float32))
    with pytest.raises(TypeError):
        graph.fill(image(), np.full(4, 0.5, np.float32))
    assert len(graph) == 4
