"""Misuse is an exception that a program can catch: no crash, no panic and no hang."""

import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

import clgraph


class Long:
    """A sequence that says it is longer than any memory."""

    def __len__(self):
        return 2**62

    def __getitem__(self, index):
        return index


def test_what_a_sequence_says_of_its_length_is_not_believed(graph, context, buffer):
    memory, long = clgraph.Memory(buffer(np.zeros(4, np.int32)), np.int32), Long()
    for wrong in (
        lambda: graph.alloc(long),
        lambda: memory.view(shape=long),
        lambda: graph.read(memory, np.int32, long),
        lambda: graph.copy_rect(memory, memory, long),
        lambda: graph.copy_rect(memory, memory, (1, 1), src_origin=long),
        lambda: graph.kernel(None, long),
        lambda: clgraph.Program(context, "kernel void k() {}", options=long),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    assert len(graph) == 0


@pytest.mark.parametrize("calls, threads", [(1500, 1), (1500, 1), (300, 4)])
def test_random_calls_end_in_exceptions_only(calls, threads):
    seed = random.randrange(10_000)
    program = [sys.executable, "-X", "faulthandler", str(pathlib.Path(__file__).with_name("misuse.py")), str(seed), str(calls), str(threads)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "ok" in done.stdout.split("\n") and "panicked" not in done.stderr and "Exception:" not in done.stdout, (
        f"seed {seed}: status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    )
