"""Prints how many bytes the wheels of a locked set are, for each Python and machine.

Reads pylock.toml files (PEP 751), which tell the size of every wheel, and chooses among the wheels the way an
installer does: markers first, then the order of the compatibility tags. The first file is the core set, the second
the full one; what both have is counted with the core set.
"""

import sys

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib
from packaging.markers import Marker
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

# glibc 2.36 is Debian 12's; wheels for a newer one are not counted on.
GLIBC = range(36, 4, -1)
LEGACY = {17: "2014", 12: "2010", 5: "1"}


def platforms(machine):
    for minor in GLIBC:
        yield f"manylinux_2_{minor}_{machine}"
        if minor in LEGACY:
            yield f"manylinux{LEGACY[minor]}_{machine}"
    yield f"linux_{machine}"


def wheel_size(package, tags):
    best = None
    for wheel in package.get("wheels", []):
        name = wheel.get("name") or wheel["url"].rsplit("/", 1)[1]
        ranks = [tags[tag] for tag in parse_wheel_filename(name)[3] if tag in tags]
        if ranks and (best is None or min(ranks) < best[0]):
            best = (min(ranks), wheel["size"])
    if best is None:
        raise SystemExit(f"no wheel of {package['name']} {package['version']} fits")
    return best[1]


def main():
    locks = [tomllib.load(open(path, "rb"))["packages"] for path in sys.argv[1:3]]
    print("# Bytes of the wheels of each set by Python and machine. Written by tests/setup/lock.sh.")
    rows = {"core": [], "full": []}
    for machine in ("x86_64", "aarch64"):
        for minor in range(10, 15):
            version = (3, minor)
            environment = {
                "python_version": f"3.{minor}",
                "python_full_version": f"3.{minor}.1",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": machine,
                "os_name": "posix",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
            }
            supported = list(platforms(machine))
            order = list(cpython_tags(version, platforms=supported)) + list(
                compatible_tags(version, f"cp3{minor}", supported)
            )
            tags = {tag: rank for rank, tag in reversed(list(enumerate(order)))}
            counted = set()
            for name, packages in zip(rows, locks):
                total = 0
                for package in packages:
                    key = (package["name"], package["version"])
                    if "marker" in package and not Marker(package["marker"]).evaluate(environment):
                        continue
                    if key not in counted:
                        counted.add(key)
                        total += wheel_size(package, tags)
                rows[name].append(f'"3.{minor}-{machine}" = {total}')
    for name, lines in rows.items():
        print(f"\n[{name}]")
        print("\n".join(lines))


main()
