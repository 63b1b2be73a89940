"""Writes the wheel of this package: `python write_wheel.py VERSION FOLDER`. Needs nothing but Python.

The same sources give the same bytes, so anyone can build the wheel of a release again.
"""

import ast
import base64
import hashlib
import sys
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WHEEL = "Wheel-Version: 1.0\nGenerator: gatehouse\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PROJECT = ("name", "description", "readme", "requires-python", "dependencies")


def metadata(version: str) -> str:
    """Returns the core metadata 2.1, from pyproject.toml."""
    lines = (HERE / "pyproject.toml").read_text().splitlines()
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
    return f"{head}\n{(HERE / project['readme']).read_text()}"


def write_wheel(npm_version: str, folder: Path) -> Path:
    # PEP 440 has no other words for what comes before a release.
    version = npm_version.replace("-next", ".dev0")
    name = f"gatehouse_resource_server-{version}"
    info = f"{name}.dist-info"
    sources = [each for each in sorted((HERE / "src/gatehouse").iterdir()) if each.is_file()]
    files = {str(each.relative_to(HERE / "src")): each.read_bytes() for each in sources}
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/licenses/LICENSE"] = (HERE / "../../LICENSE").read_bytes()
    record = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # With the time and the rights of every file, the bytes would not be the same.
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    print(write_wheel(sys.argv[1], Path(sys.argv[2])))
