"""Code that loads a file, as text for people and models, and its execution here so that the profile is of exactly that.

A load is zero or more import lines and, as its last line, one expression whose value is the table. The name `pd`
(pandas) is taken as imported.
"""

import warnings as python_warnings

import pandas as pd

PATH = "\0path\0"


class Load:
    """An expression with the place of the path left open, and the imports it needs."""

    def __init__(self, expression, imports=()):
        self.expression = expression
        self.imports = list(imports)

    def code(self, name):
        """The code for a person, with the file's name in it."""
        lines = [f"import {module}" for module in self.imports]
        return "\n".join([*lines, self.expression.replace(PATH, literal(name))])

    def run(self, path):
        """The value of the expression on the file at `path`."""
        space = {"pd": pd}
        for module in self.imports:
            exec(f"import {module}", space)  # noqa: S102 - module names are ours
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore")
            return eval(self.expression.replace(PATH, literal(path)), space)  # noqa: S307 - the expression is built here


def literal(value):
    """A value as Python source; strings with double quotes as people write them."""
    if isinstance(value, str):
        quoted = repr(value)
        if quoted[0] == "'" and '"' not in value:
            return '"' + quoted[1:-1].replace("\\'", "'") + '"'
        return quoted
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    return repr(value)


def call(function, first, options):
    """A call as source: function, first argument as source, keyword options as values (None left out).

    A value that is a `Code` goes in as it is.
    """
    parts = [first]
    for key, value in options.items():
        if value is None and key != "header":
            continue
        parts.append(f"{key}={value.text if isinstance(value, Code) else literal(value)}")
    return f"{function}({', '.join(parts)})"


class Code:
    """A piece of source that stands for itself among the options of a call."""

    def __init__(self, text):
        self.text = text
