"""Charts: the matplotlib backend of the kernel, fonts for Chinese labels, and what a figure shows, in words.

Loaded as matplotlib's backend `module://codeinterp_inline`. A figure is displayed when `plt.show()` is called
or its cell ends, once, and then closed.
"""

import dataclasses
import glob
import importlib.util
import io
import logging
import os

from matplotlib import font_manager, rcParams
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

# A hostile or mistaken `figsize` must not take the sandbox's memory: 40 million pixels are 160 MB.
MAX_PIXELS = 40_000_000
MAX_AXES = 24
MAX_SERIES = 24
MAX_TEXT = 200
# A wheel that carries WenQuanYi Micro Hei, for machines where no such font is installed.
_FONT_PACKAGE = "paperang_p2_fonts_cjk"
_CJK = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei")
_USUAL = ("SimHei", "SimSun", "Microsoft YaHei", "PingFang SC", "Heiti TC", "STHeiti", "Arial Unicode MS", "Source Han Sans CN")


class FigureManager(FigureManagerBase):
    """Shows all open figures, as `plt.show()` asks."""

    @classmethod
    def pyplot_show(cls, *_args, **_kwargs):
        show_all()


class FigureCanvas(FigureCanvasAgg):
    """Agg, with the manager above."""

    manager_class = FigureManager


def show_all():
    """Displays and closes every open figure, in the order of their numbers."""
    from IPython.display import display

    for manager in sorted(Gcf.get_all_fig_managers(), key=lambda manager: manager.num):
        figure = manager.canvas.figure
        try:
            if figure.axes or figure.texts or figure.images:
                display(figure)
        finally:
            Gcf.destroy(manager)


def set_up():
    """Puts a font with Chinese, Japanese and Korean letters behind the default one, where one is installed."""
    found = _installed() or _from_package()
    # Matplotlib falls back letter by letter along this list, but takes one font only of a generic family.
    rcParams["font.family"] = [*rcParams["font.family"], *found[:1]]
    # The CJK fonts lack the proper minus sign.
    rcParams["axes.unicode_minus"] = not found
    rcParams["figure.dpi"] = 100
    rcParams["figure.max_open_warning"] = 0
    if found:
        _stand_in(found[0])
    # That the font of Chinese letters has no bold face is no news for whoever reads the output.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


def _stand_in(name):
    """Lets the fonts that code for Chinese labels usually names be found: they are other systems' own."""
    fonts = font_manager.fontManager.ttflist
    known = {font.name for font in fonts}
    entry = next(font for font in fonts if font.name == name)
    for wanted in _USUAL:
        if wanted not in known:
            fonts.append(dataclasses.replace(entry, name=wanted))


def _installed():
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _CJK if name in installed]


def _from_package():
    try:
        spec = importlib.util.find_spec(_FONT_PACKAGE)
        for folder in spec.submodule_search_locations if spec else ():
            for path in sorted(glob.glob(os.path.join(folder, "fonts", "*.tt[cf]"))):
                font_manager.fontManager.addfont(path)
    except (OSError, RuntimeError, ValueError, ImportError):
        return []
    return _installed()


def png(figure):
    """The figure as PNG bytes, at a lower resolution where it would be too large."""
    width, height = figure.get_size_inches()
    dpi = float(figure.dpi)
    pixels = width * height * dpi * dpi
    if not pixels < MAX_PIXELS:
        dpi *= (MAX_PIXELS / pixels) ** 0.5
    if not dpi > 1:
        raise ValueError(f"a figure of {width:g} x {height:g} inches is too large to draw")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, bbox_inches="tight", facecolor=figure.get_facecolor())
    return out.getvalue()


def describe(figure):
    """Titles, labels and series of a figure: `{"title", "axes": [{"title", "xlabel", "ylabel", "series"}]}`.

    A series is `{"kind", "label", "count", "x": [min, max], "y": [min, max]}`.
    """
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else ""
    return {"title": _text(title), "axes": [_axes(axes) for axes in figure.axes[:MAX_AXES]]}


def _text(value):
    return str(value)[:MAX_TEXT]


def _axes(axes):
    series = [*_lines(axes), *_bars(axes), *_points(axes), *_images(axes)]
    return {
        "title": _text(axes.get_title()),
        "xlabel": _text(axes.get_xlabel()),
        "ylabel": _text(axes.get_ylabel()),
        "xticks": _ticks(axes.xaxis),
        "series": series[:MAX_SERIES],
        "series_total": len(series),
    }


def _ticks(axis):
    """The names of the categories, where the axis is not numeric."""
    names = [_text(label.get_text()) for label in axis.get_ticklabels()[:30]]
    return names if any(name and not _is_number(name) for name in names) else []


def _is_number(text):
    try:
        float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))
    except ValueError:
        return False
    return True


def _label(artist):
    label = str(artist.get_label() or "")
    # Names with an underscore are matplotlib's own.
    return None if label.startswith("_") else _text(label)


def _range(values):
    import numpy as np

    try:
        values = np.ma.masked_invalid(np.ma.asarray(values, dtype=float).ravel()).compressed()
    except (TypeError, ValueError):
        return None
    return [float(values.min()), float(values.max())] if len(values) else None


def _one(kind, label, count, x, y):
    return {"kind": kind, "label": label, "count": int(count), "x": _range(x), "y": _range(y)}


def _lines(axes):
    for line in axes.lines[: MAX_SERIES * 2]:
        x, y = line.get_xdata(orig=False), line.get_ydata(orig=False)
        yield _one("line", _label(line), len(y), x, y)


def _bars(axes):
    seen = set()
    for container in axes.containers[:MAX_SERIES]:
        patches = [patch for patch in getattr(container, "patches", None) or () if hasattr(patch, "get_height")]
        if not patches:
            continue
        seen.update(map(id, patches))
        along = [patch.get_x() + patch.get_width() / 2 for patch in patches]
        lengths = [patch.get_height() for patch in patches]
        if getattr(container, "orientation", "vertical") == "horizontal":
            along = [patch.get_width() for patch in patches]
            lengths = [patch.get_y() + patch.get_height() / 2 for patch in patches]
        yield _one("bar", _label(container), len(patches), along, lengths)
    wedges = [patch for patch in axes.patches if id(patch) not in seen and hasattr(patch, "theta1")]
    if wedges:
        shares = [(wedge.theta2 - wedge.theta1) / 360 for wedge in wedges]
        names = ", ".join(filter(None, (_label(wedge) for wedge in wedges[:12])))
        yield _one("pie", names[:MAX_TEXT] or None, len(wedges), [], shares)


def _points(axes):
    for collection in axes.collections[:MAX_SERIES]:
        offsets = collection.get_offsets()
        if len(offsets) and hasattr(collection, "get_sizes") and len(collection.get_sizes()):
            yield _one("scatter", _label(collection), len(offsets), offsets[:, 0], offsets[:, 1])
        elif collection.get_array() is not None:
            values = collection.get_array()
            series = _one("mesh", _label(collection), values.size, [], [])
            series["values"] = _range(values)
            yield series


def _images(axes):
    for image in axes.images[:MAX_SERIES]:
        values = image.get_array()
        series = _one("image", _label(image), 0 if values is None else values.size, [], [])
        series["values"] = None if values is None else _range(values)
        yield series
