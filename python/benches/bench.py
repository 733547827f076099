"""Measures what clgraph costs in Python, beside pyopencl: `python benches/bench.py [--quick]`.

Build the package in release (`pip install ./python` does). Times are medians of rounds that alternate; behind those of empty
kernels stand the times of a quarter and of three quarters of the rounds. Rows "C" make the same submission without Python: what
they take is the driver's.
"""

import argparse
import functools
import statistics
import time

import numpy as np
import pyopencl as cl

import by_hand
import clgraph
from clgraph import In, InOut, Out, Param

SOURCE = """
kernel void nothing(void) {}
kernel void some(global const float *a, global float *b, int n, float f) {}
"""


def median(function, rounds, inner=1):
    """The median time of a call, in microseconds."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(inner):
            function()
        times.append((time.perf_counter() - begun) / inner)
    return statistics.median(times) * 1e6


def alternating(functions, rounds):
    """The times of calls, in microseconds, whose rounds alternate."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, of in zip(functions, times):
            begun = time.perf_counter()
            function()
            of.append((time.perf_counter() - begun) * 1e6)
    return times


def side_by_side(functions, rounds):
    """The median times of calls, in microseconds, whose rounds alternate."""
    return [statistics.median(of) for of in alternating(functions, rounds)]


def print_shares(names, times):
    """Median and quartiles of each way, and the medians of its ratios to the first, round by round; and to those of C, of the last."""

    def ratio(of, to):
        return statistics.median(one / other for one, other in zip(of, to))

    for name, of in zip(names, times):
        low, middle, high = statistics.quantiles(of, n=4)
        share = "" if of is times[0] else f"   {ratio(of, times[0]):.2f} of the first"
        print(f"  {name:40} {middle:8.1f}   {low:.1f} to {high:.1f}{share}")
    for name, of in zip(names, times):
        if name.startswith("C,"):
            print(f"  {names[-1]}: {ratio(times[-1], of):.2f} of {name}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    rounds = 50 if arguments.parse_args().quick else 500
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    nothing, some = cl.Kernel(program, "nothing"), cl.Kernel(program, "some")
    a, b = (cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096) for _ in range(2))
    device = context.devices[0]
    print(f"{device.name}, {device.platform.version}; pyopencl {cl.VERSION_TEXT}, clgraph {clgraph.__version__}\n")

    # 100 empty kernels, submitted and waited for.
    graph = clgraph.Graph(queue)
    for _ in range(100):
        graph.kernel(nothing, 1, local_size=1)
    executable = graph.finalize()
    bare = clgraph.Queue(queue)

    def loop():
        for _ in range(100):
            nothing(queue, (1,), (1,))
        queue.finish()

    def enqueues():
        for _ in range(100):
            cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))
        queue.finish()

    def graph_runs():
        executable.submit(bare).wait()

    for _ in range(200):  # clgraph chooses its way meanwhile
        graph_runs()
    hands = by_hand.ways(queue, nothing, 100)
    names = ["pyopencl, kernel(queue, ...)", "pyopencl, enqueue_nd_range_kernel", *(name for name, _ in hands), "clgraph, submit and wait"]
    ways = [loop, enqueues, *(functools.partial(way, True) for _, way in hands), graph_runs]
    times = alternating(ways, rounds)
    print(f"100 empty kernels, with the wait (us), by the path {executable.device.path[0]}")
    print_shares(names, times)

    # The same with arguments.
    n, f = np.int32(7), np.float32(0.5)
    graph = clgraph.Graph(queue)
    for _ in range(100):
        graph.kernel(some, 1, In(a), InOut(b), n, f, local_size=1)
    with_arguments = graph.finalize()

    def loop_with_arguments():
        for _ in range(100):
            some(queue, (1,), (1,), a, b, n, f)
        queue.finish()

    typed = cl.Kernel(program, "some")
    typed.set_scalar_arg_dtypes([None, None, np.int32, np.float32])  # much faster than numpy scalars

    def typed_loop():
        for _ in range(100):
            typed(queue, (1,), (1,), a, b, 7, 0.5)
        queue.finish()

    def graph_with_arguments():
        with_arguments.submit(bare).wait()

    for _ in range(200):
        graph_with_arguments()
    ways = [loop_with_arguments, typed_loop, graph_with_arguments]
    looped, typed_took, ran = side_by_side(ways, rounds)
    print("100 kernels with four arguments, with the wait (us)")
    print(f"  pyopencl, kernel(queue, ...)             {looped:8.1f}")
    print(f"  pyopencl, the same with scalar dtypes    {typed_took:8.1f}")
    print(f"  clgraph, submit and wait                 {ran:8.1f}   {ran / looped:.2f} and {ran / typed_took:.2f} of them")

    # The host's part of a submission, while the device is kept waiting by an event.
    def host_part(enqueue, end):
        gate = cl.UserEvent(context)
        cl.enqueue_barrier(queue, wait_for=[gate])
        begun = time.perf_counter()
        enqueue()
        took = time.perf_counter() - begun
        gate.set_status(cl.command_execution_status.COMPLETE)
        end()
        return took * 1e6

    def enqueue_loop():
        for _ in range(100):
            nothing(queue, (1,), (1,))

    enqueued_by = [enqueue_loop, *(functools.partial(way, False) for _, way in hands), lambda: executable.submit(bare)]
    hosts = [[] for _ in enqueued_by]
    for _ in range(rounds):
        for enqueue, of in zip(enqueued_by, hosts):
            of.append(host_part(enqueue, queue.finish))
    print("100 empty kernels, the host's time to enqueue them (us)")
    print_shares(["pyopencl, kernel(queue, ...)", *(name for name, _ in hands), "clgraph, submit"], hosts)

    # A parameter.
    radius = Param(np.int32(1))
    graph = clgraph.Graph(queue)
    node = graph.kernel(some, 1, In(a), Out(b), radius, f, local_size=1)
    updatable = graph.finalize(updatable=True)
    values = [np.int32(value) for value in range(2)]
    counter = 0

    def set_and_update():
        nonlocal counter
        counter += 1
        radius.set(values[counter & 1])
        updatable.update(node)

    print("one parameter (us)")
    print(f"  set and updated                          {median(set_and_update, rounds, 100):8.2f}")
    print(f"  set                                      {median(lambda: radius.set(n), rounds, 100):8.2f}")

    # Recording.
    graph = clgraph.Graph(queue)
    recorded = median(lambda: graph.kernel(some, 1, In(a), Out(b), n, f, local_size=1), rounds, 10)
    other = clgraph.Queue(queue)
    with clgraph.Graph(other):
        by_queue = median(lambda: other.kernel(some, 1, In(a), Out(b), n, f, local_size=1), rounds, 10)
    executed = median(lambda: other.kernel(some, 1, In(a), Out(b), n, f, local_size=1), rounds, 10)
    other.finish()
    print("one kernel with four arguments (us)")
    print(f"  added to a graph                         {recorded:8.2f}")
    print(f"  recorded by a clgraph.Queue              {by_queue:8.2f}")
    print(f"  executed by a clgraph.Queue              {executed:8.2f}")


if __name__ == "__main__":
    main()
