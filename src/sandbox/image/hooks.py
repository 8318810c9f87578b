"""What is set up in a library at the moment it is first imported.

The zygote loads numpy, pandas and matplotlib before a kernel exists; everything else, and these too when the
first cell comes earlier, is imported by a cell itself.
"""

import json
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

# The name under which matplotlib finds its backend; no module of a user is called so.
INLINE = "codeinterp_inline"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _pandas():
    # Pandas takes the kernel for a terminal of 80 columns and would leave out the middle of a table.
    import pandas

    pandas.set_option("display.max_columns", 20, "display.width", 160)


def _matplotlib():
    import codeinterp_inline

    codeinterp_inline.set_up()


def _plotly():
    # Figures as JSON: the other renderers want a browser, or a notebook's own package to be installed.
    import plotly.io
    from IPython.display import display
    from plotly.basedatatypes import BaseFigure
    from plotly.io._base_renderers import ExternalRenderer

    class Json(ExternalRenderer):
        def render(self, fig_dict):
            display(_plotly_bundle(fig_dict), raw=True)

    plotly.io.renderers["codeinterp"] = Json()
    plotly.io.renderers.default = "codeinterp"
    BaseFigure._repr_mimebundle_ = lambda self, *_args, **_kwargs: _plotly_bundle(self.to_dict())
    BaseFigure._ipython_display_ = None
    BaseFigure._repr_html_ = None


def _plotly_bundle(figure):
    from plotly.io import to_json

    data = json.loads(to_json(figure, validate=False))
    data.setdefault("config", {})
    return {"application/vnd.plotly.v1+json": data, "text/plain": "plotly figure"}


def _altair():
    import altair

    mime = f"application/vnd.vegalite.v{altair.SCHEMA_VERSION.lstrip('v').split('.')[0]}+json"
    altair.renderers.register("codeinterp", lambda spec, **_options: {mime: spec, "text/plain": "Vega-Lite chart"})
    altair.renderers.enable("codeinterp")


_AFTER = {"pandas": _pandas, "matplotlib.pyplot": _matplotlib, "plotly.graph_objs": _plotly, "altair": _altair}


class _Finder:
    """A meta path finder that runs the set-up after the module's own code."""

    def find_spec(self, name, path=None, target=None):
        if name == INLINE:
            return spec_from_file_location(INLINE, os.path.join(_FOLDER, "figures.py"))
        action = _AFTER.pop(name, None)
        spec = PathFinder.find_spec(name, path, target) if action else None
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                action()
            except Exception as error:
                sys.stderr.write(f"{name} works, but could not be set up for display here: {error!r}\n")

        spec.loader.exec_module = exec_module
        return spec


def install():
    """Puts the finder before all others, and names the chart backend for matplotlib."""
    os.environ["MPLBACKEND"] = f"module://{INLINE}"
    sys.meta_path.insert(0, _Finder())
