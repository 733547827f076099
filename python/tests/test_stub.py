"""The types in `__init__.pyi` are those of the package."""

import ast
import inspect
import pathlib
import subprocess
import sys

import clgraph

STUB = ast.parse(pathlib.Path(clgraph.__file__).with_name("__init__.pyi").read_text())


def parameters(function):
    of = function.args
    positional = [argument.arg for argument in of.posonlyargs + of.args]
    return positional, of.vararg and of.vararg.arg, [argument.arg for argument in of.kwonlyargs]


def shown(function):
    kinds = inspect.Parameter
    given = inspect.signature(function).parameters.values()
    positional = [one.name for one in given if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    several = next((one.name for one in given if one.kind is kinds.VAR_POSITIONAL), None)
    return positional, several, [one.name for one in given if one.kind is kinds.KEYWORD_ONLY]


def test_every_name_and_signature_is_in_the_stub():
    classes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
    names = {"__version__", *classes, *functions}
    assert names == set(clgraph.__all__)
    for name, function in functions.items():
        assert shown(getattr(clgraph, name)) == parameters(function), name
    for name, node in classes.items():
        actual = getattr(clgraph, name)
        assert actual.__doc__, name
        if issubclass(actual, Exception):
            continue
        stubs = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        public = {key for key in vars(actual) if not key.startswith("_") or key == "_repr_svg_"}
        assert public == {key for key in stubs if not key.startswith("_") or key == "_repr_svg_"}, name
        for key in public:
            member, stub = vars(actual)[key], stubs[key]
            is_property = any(ast.unparse(one) in ("property", f"{key}.setter") for one in stub.decorator_list)
            assert is_property == inspect.isgetsetdescriptor(member), (name, key)
            assert member.__doc__ or key == "_repr_svg_", (name, key)
            if not is_property:
                assert shown(member) == parameters(stub), (name, key)
        if "__new__" in stubs:
            positional, several, keywords = parameters(stubs["__new__"])
            assert shown(actual) == (positional[1:], several, keywords), name


PROGRAM = """
from collections.abc import Callable
import numpy as np
import clgraph
from clgraph import Graph, In, InOut, Param

def build(queue: clgraph.Queue, kernel: object, data: clgraph.Memory) -> clgraph.Executable:
    with Graph(queue) as graph:
        graph.kernel(kernel, (4, 4), InOut(data), radius := Param(np.int32(3)), local_size=4, label="blur")
        read = graph.read(data)
        return graph.finalize(updatable=True)

def names(queue: clgraph.Queue) -> int:
    with Graph(queue) as graph:
        node = graph.empty()
    return node.index

def run(executable: clgraph.Executable, read: clgraph.Read) -> np.float32:
    run = executable.submit()
    run.on_complete(lambda error: print(error))
    result: np.float32 = run[read][0]
    return result
"""


def test_a_program_has_types(tmp_path):
    """What `with` blocks return and assign is known after them."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for command in (["mypy", "--strict", str(program)], ["mypy.stubtest", "clgraph"]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
