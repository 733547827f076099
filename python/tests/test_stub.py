"""The types in `__init__.pyi` are those of the package."""

import ast
import inspect
import pathlib

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
        if "__init__" in stubs:
            positional, several, keywords = parameters(stubs["__init__"])
            assert shown(actual) == (positional[1:], several, keywords), name
