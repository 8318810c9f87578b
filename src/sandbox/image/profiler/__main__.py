"""`python -m profiler FILE... [--json]`: profiles on standard output, one object for a file, an array for several."""

import json
import sys

from . import profile_file


def main(arguments):
    """Profile the named files; the exit code is 2 when one of them cannot be read."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    profiles = [profile_file(name) for name in names]
    json.dump(profiles[0] if len(profiles) == 1 else profiles, sys.stdout, ensure_ascii=False, indent=2)
    print()
    return 2 if any("error" in profile for profile in profiles) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
