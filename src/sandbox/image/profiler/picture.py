"""Images: the upright size (EXIF orientation applied), mode, frames and brightness of each channel."""

import warnings as python_warnings

import numpy as np

from . import columns
from .faults import Fault, one_line
from .loading import PATH, Load

# Modes of one byte a channel; others are measured by their own values.
EIGHT_BITS = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV", "La", "RGBa"}
MAX_PIXELS = 120_000_000
# EXIF tag 274, values 5 to 8: the picture is stored turned by a quarter.
ORIENTATION, TURNED = 274, (5, 6, 7, 8)


def profile(source):
    """The profile of an image."""
    try:
        from PIL import Image, ImageStat
    except ImportError as error:
        raise Fault("unsupported", f"{source.name} is an image, and this sandbox has no image reader", "Add the package pillow to the sandbox.") from error
    Image.MAX_IMAGE_PIXELS = None
    notes = []
    try:
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore")
            with Image.open(source.path) as image:
                width, height = image.size
                kind, mode = image.format, image.mode
                frames = getattr(image, "n_frames", 1)
                orientation = image.getexif().get(ORIENTATION, 1)
                if width * height > MAX_PIXELS:
                    raise Fault("too_large", f"{source.name} has {width} × {height} pixels; at most {MAX_PIXELS:,} are opened",
                                "Scale it down first.")
                statistics = _statistics(image, ImageStat)
    except Fault:
        raise
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, IndexError, EOFError, OverflowError, ZeroDivisionError, AttributeError) as error:
        raise Fault("corrupt", f"{source.name} is not a readable image: {one_line(error)}", "Save or download it again.") from error
    # The TIFF reader gives the upright size itself.
    if orientation in TURNED and kind != "TIFF":
        width, height = height, width
    if orientation not in (0, 1):
        notes.append(f"stored turned or mirrored (EXIF orientation {orientation}); width and height are upright")
    return {
        "file": source.name,
        "format": "image",
        "image_format": kind,
        "width": width,
        "height": height,
        "mode": mode,
        "frames": frames,
        "orientation": orientation,
        "bytes": source.size,
        "statistics": statistics,
        "warnings": notes,
        "load": Load(f"PIL.ImageOps.exif_transpose(PIL.Image.open({PATH}))", ["PIL.Image", "PIL.ImageOps"]).code(source.name),
    }


def _statistics(image, stat):
    """Minimum, maximum and mean of each channel, on at most about a million pixels."""
    image.draft("RGB", (1024, 1024)) if image.format == "JPEG" else None
    plain = image.convert("RGBA" if "transparency" in image.info else "RGB") if image.mode in ("P", "CMYK", "YCbCr") else image
    if plain.width * plain.height > 4_000_000:
        plain = plain.resize((max(1, plain.width // 4), max(1, plain.height // 4)))
    if plain.mode not in EIGHT_BITS:
        values = np.asarray(plain)
        return [{"channel": plain.mode, "min": columns.plain(values.min()), "max": columns.plain(values.max()), "mean": columns.plain(values.mean())}]
    measured = stat.Stat(plain)
    return [{"channel": band, "min": low, "max": high, "mean": round(mean, 2)}
            for band, (low, high), mean in zip(plain.getbands(), measured.extrema, measured.mean)]
