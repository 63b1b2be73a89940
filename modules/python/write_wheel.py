"""Writes the wheel of this package: `python write_wheel.py VERSION FOLDER`. Needs nothing but Python.

The same sources give the same bytes on every machine, so anyone can build the wheel of a release again.
"""

import ast
import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WHEEL = "Wheel-Version: 1.0\nGenerator: gatehouse\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PROJECT = ("name", "description", "readme", "requires-python", "dependencies")


def metadata(version: str) -> str:
    """Returns the core metadata 2.1, from pyproject.toml."""
    lines = (HERE / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    # Python reads TOML only from 3.11 on; what is needed here are lines with a literal of both.
    pairs = [line.partition(" = ") for line in lines]
    project: dict[str, Any] = {k: ast.literal_eval(v) for k, _, v in pairs if k in PROJECT}
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("License", "MIT"),
        ("Requires-Python", project["requires-python"]),
        *(("Requires-Dist", each) for each in project["dependencies"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    readme = (HERE / project["readme"]).read_text(encoding="utf-8")
    return f"{head}\n{readme}"


def wheel_version(npm_version: str) -> str:
    """Returns a version of PEP 440, which knows no `-next`: that is the development of a release."""
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+(-next)?", npm_version):
        sys.exit(f"{npm_version} is neither like 1.0.0 nor like 1.0.0-next.")
    return npm_version.replace("-next", ".dev0")


def write_wheel(npm_version: str, folder: Path) -> Path:
    name = f"gatehouse_resource_server-{wheel_version(npm_version)}"
    info = f"{name}.dist-info"
    package = HERE / "src/gatehouse"
    sources = sorted(each.name for each in (*package.glob("*.py"), package / "py.typed"))
    files = {f"gatehouse/{each}": (package / each).read_bytes() for each in sources}
    files[f"{info}/METADATA"] = metadata(wheel_version(npm_version)).encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/licenses/LICENSE"] = (HERE / "../../LICENSE").read_bytes()
    record = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / f"{name}-py3-none-any.whl"
    # Not compressed: each version of zlib writes other bytes.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in files.items():
            # With the time, the rights and the system of every file, the bytes would not be the same.
            entry = zipfile.ZipInfo(path)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return wheel


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    print(write_wheel(sys.argv[1], Path(sys.argv[2])))
