"""Draws the edges of a photograph: two passes of a blur, and Sobel's edges, as a graph.

    python examples/edges.py [PICTURE]

The graph has memory of its own between the kernels, and a host task that finds how bright the edges are and sets the
scale of the last kernel. The blur's radius is a parameter that changes between submissions. The pictures are compared
with those of numpy; the time is shown beside that of the same commands by pyopencl. It needs pyopencl and Pillow.
"""

import pathlib
import statistics
import sys
import time

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
from PIL import Image

import clgraph
from clgraph import In, Out, Param

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 21

SOURCE = """
// One pass of a blur: the mean of 2 r + 1 pixels along x or y. The picture's edge is repeated.
kernel void blur(global const float *in, global float *out, int r, int along_x) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    float sum = 0;
    for (int d = -r; d <= r; ++d) {
        int i = along_x ? clamp(x + d, 0, w - 1) : x, j = along_x ? y : clamp(y + d, 0, h - 1);
        sum += in[j * w + i];
    }
    out[y * w + x] = sum / (2 * r + 1);
}

kernel void sobel(global const float *in, global float *out) {
    int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
    int l = max(x - 1, 0), r = min(x + 1, w - 1), u = max(y - 1, 0) * w, d = min(y + 1, h - 1) * w, m = y * w;
    float gx = in[u + r] + 2 * in[m + r] + in[d + r] - in[u + l] - 2 * in[m + l] - in[d + l];
    float gy = in[d + l] + 2 * in[d + x] + in[d + r] - in[u + l] - 2 * in[u + x] - in[u + r];
    out[m + x] = sqrt(gx * gx + gy * gy);
}

kernel void to_bytes(global const float *in, global uchar *out, global const float *scale) {
    int i = get_global_id(1) * get_global_size(0) + get_global_id(0);
    out[i] = convert_uchar_sat_rte(255 - in[i] * scale[0]);
}
"""


def scale_of(edges):
    """The scale that makes all but the brightest hundredth of the edges visible."""
    return np.array([255 / max(np.partition(edges.ravel(), -edges.size // 100)[-edges.size // 100], 1e-6)], np.float32)


def by_numpy(photo, radius):
    """The same picture on the host."""

    def mean(picture, axis):
        padded = np.pad(picture, [(radius, radius) if of == axis else (0, 0) for of in (0, 1)], "edge").astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis)
        return windows.sum(-1, dtype=np.float32) / np.float32(2 * radius + 1)

    p = np.pad(mean(mean(photo, 1), 0), 1, "edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    edges = np.sqrt(gx * gx + gy * gy)
    return np.clip(np.rint(255 - edges * scale_of(edges)), 0, 255).astype(np.uint8)


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples/data/rocket.jpg"
    photo = np.asarray(Image.open(path).convert("L"), np.float32) / 255
    height, width = photo.shape
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    print(f"device     {context.devices[0].name}")
    print(f"picture    {path} ({width} x {height})")
    program = cl.Program(context, SOURCE).build()
    blur, sobel, to_bytes = (cl.Kernel(program, name) for name in ("blur", "sobel", "to_bytes"))
    source = cl_array.to_device(queue, photo)
    drawing = cl_array.empty(queue, photo.shape, np.uint8)
    scale = cl_array.empty(queue, 1, np.float32)

    size, radius = (width, height), Param(np.int32(1))
    with clgraph.Graph(queue) as g:
        photograph = g.write(source, photo, label="photograph")
        rows = g.alloc(photo.shape, np.float32, label="rows")
        passes = [g.kernel(blur, size, In(source), Out(rows), radius, np.int32(1), label="blur rows")]
        blurred = g.alloc(photo.shape, np.float32, label="blurred")
        passes += [g.kernel(blur, size, In(rows), Out(blurred), radius, np.int32(0), label="blur columns")]
        freed = g.free(rows)
        edges = g.alloc(photo.shape, np.float32, label="edges", after=freed)  # in the bytes of the rows
        g.kernel(sobel, size, In(blurred), Out(edges), label="edges")
        g.free(blurred)
        found = g.read(edges)
        scaling = g.write(scale, np.ones(1, np.float32))

        def find_scale(task):
            task[scaling] = scale_of(task[found])

        g.add_edge(g.host_task(find_scale, after=found, label="find scale"), scaling)
        g.kernel(to_bytes, size, In(edges), Out(drawing), In(scale), label="draw")
        g.free(edges)
        result = g.read(drawing)
    executable = g.finalize(updatable=True)
    print(f"memory     {executable.required_memory} bytes for {executable.memory_map.nbytes_apart} bytes of allocations")

    folder = ROOT / "target/edges"
    folder.mkdir(parents=True, exist_ok=True)
    for blurred_by in (1, 3):
        radius.set(blurred_by)
        executable.update(*passes)
        picture = executable.submit()[result]
        difference = np.abs(picture.astype(int) - by_numpy(photo, blurred_by)).max()
        print(f"radius {blurred_by}   differs from numpy by {difference} of 255 at most")
        if difference > 1:
            sys.exit("edges: more than 1 is no rounding")
        Image.fromarray(picture).save(folder / f"radius_{blurred_by}.png")
    (folder / "graph.svg").write_text(g.to_svg())
    print(f"written    {folder}/radius_1.png, radius_3.png, graph.svg")

    first, second = cl_array.empty_like(source), cl_array.empty_like(source)
    host, drawn, again = np.empty_like(photo), np.empty(photo.shape, np.uint8), photo * np.float32(0.9)

    def by_loop():
        cl.enqueue_copy(queue, source.data, again, is_blocking=False)
        blur(queue, size, None, source.data, first.data, np.int32(3), np.int32(1))
        blur(queue, size, None, first.data, second.data, np.int32(3), np.int32(0))
        sobel(queue, size, None, second.data, first.data)
        cl.enqueue_copy(queue, host, first.data)
        cl.enqueue_copy(queue, scale.data, scale_of(host), is_blocking=False)
        to_bytes(queue, size, None, first.data, drawing.data, scale.data)
        cl.enqueue_copy(queue, drawn, drawing.data)
        return drawn

    def by_graph():
        return executable.submit(inputs={photograph: again}, copy=False)[result]

    times = {by_loop: [], by_graph: []}
    for _ in range(ROUNDS):
        pictures = []
        for way, took in times.items():
            begun = time.perf_counter()
            pictures.append(way())
            took.append(time.perf_counter() - begun)
        if not np.array_equal(*pictures):
            sys.exit("edges: the graph and the loop draw different pictures")
    loop, graph = (statistics.median(took) * 1e3 for took in times.values())
    print("           the same to the last bit by the graph and by pyopencl")
    print(f"pyopencl   {loop:.2f} ms (median of {ROUNDS})\ngraph      {graph:.2f} ms (median of {ROUNDS})")


if __name__ == "__main__":
    main()
