"""Writes simnpu/csrc/ops/types.inc: the types that a device takes for each argument of an aclnn operator.

Exists so that the table can be made anew from newer pages. It reads checkouts of CANN's open operator repositories
(ops-math, ops-nn, ops-cv, ops-transformer), whose docs/aclnn*.md have one table of arguments per operator.
"""
# ruff: noqa: RUF001 - the pages are Chinese

from __future__ import annotations

import argparse
import html
import re
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "simnpu" / "csrc" / "ops" / "types.inc"
DEVICES = {"910b", "A3"}  # two names for the same cores: what a page adds for one holds for both
TYPES = {
    "FLOAT": "float32 FLOAT FLOAT32 FP32",
    "FLOAT16": "float16 FLOAT16 FP16",
    "BF16": "bfloat16 BFLOAT16 BF16",
    "DOUBLE": "float64 DOUBLE FLOAT64",
    "INT8": "INT8",
    "INT16": "INT16",
    "INT32": "INT32",
    "INT64": "INT64",
    "UINT8": "UINT8",
    "UINT16": "UINT16",
    "UINT32": "UINT32",
    "UINT64": "UINT64",
    "BOOL": "BOOL",
    "COMPLEX32": "COMPLEX32",
    "COMPLEX64": "COMPLEX64",
    "COMPLEX128": "COMPLEX128",
}
SPELLED = {spelling.upper(): name for name, spellings in TYPES.items() for spelling in spellings.split()}


def types_in(text: str) -> set[str]:
    """The types that a text names."""
    return {SPELLED[word] for word in re.findall(r"[A-Z][A-Z0-9_]+", text.upper()) if word in SPELLED}


def without_tags(text: str) -> str:
    """The text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]+>", " ", text)).strip()


def documented(section: str) -> dict[str, set[str]]:
    """The types of each argument in the first table of an operator's section."""
    found: dict[str, set[str]] = {}
    column = None
    for row in re.findall(r"<tr.*?>(.*?)</tr>", section, re.DOTALL):
        cells = [without_tags(cell) for cell in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row, re.DOTALL)]
        if "参数名" in cells[0:1]:
            column = next((i for i, cell in enumerate(cells) if "数据类型" in cell), None)
        elif column is not None and len(cells) > column and (name := re.match(r"\w+", cells[0])):
            found[name[0].lower()] = types_in(cells[column])
    return found


def apply_notes(section: str, types: dict[str, set[str]]) -> None:
    """Changes the types as the notes on the devices behind the table say."""
    for devices, note in re.findall(r'<!--\s*npu="([^"]*)".*?-->(.*?)<!--\s*end', section, re.DOTALL):
        if not DEVICES & set(devices.split(",")):
            continue
        for clause in re.split(r"[。；\n]|，当|，(?=\w+额外)", without_tags(note)):
            found = re.match(r"(.*?)(不支持|额外支持)(.*)", clause)
            if not found or "当" in clause or "时" in clause:
                continue
            subject, verb, named = found.groups()
            words = {word.lower() for word in re.findall(r"[A-Za-z_]\w*", subject.rpartition("：")[2])}
            for name in words & set(types) or set(types):
                if verb == "额外支持" and types[name]:
                    types[name] |= types_in(named)
                elif verb == "不支持" and "910b" in devices.split(","):
                    types[name] -= types_in(named)


def operators_of(page: str) -> Iterator[tuple[str, list[set[str]]]]:
    """Each operator of a page, with the types of each argument as the C function has them; an empty set is unknown."""
    for name, prototype in re.findall(r"(aclnn\w+)GetWorkspaceSize\s*\(([^)]*)\)", page):
        if "aclOpExecutor" not in prototype:
            continue  # a call in the example
        section = re.search(rf"^#+ +\**{name}GetWorkspaceSize.*?$(.*?)(?=^#+ |\Z)", page, re.DOTALL | re.MULTILINE)
        if not section:
            continue
        types = documented(section[1])
        apply_notes(section[1], types)
        arguments = [argument.strip() for argument in prototype.split(",")][:-2]
        yield name, [types.get(a.split()[-1].strip("*").lower(), set()) if "Tensor" in a else set() for a in arguments]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, help="directories with the repositories' docs")
    options = parser.parse_args()
    table: dict[str, list[set[str]]] = {}
    for directory in options.pages:
        for page in sorted(directory.rglob("aclnn*.md")):
            if "experimental" not in page.parts:
                table |= dict(operators_of(page.read_text("utf-8")))
    lines = [
        "// Written by tools/simnpu/operator_types.py from the pages of CANN's open operator repositories (ops-math,",
        "// ops-nn, ops-cv, ops-transformer: docs/aclnn*.md, August 2026), for Atlas A2 and A3 (Ascend 910B).",
        "// kAny: no tensor, or nothing is documented. Of operators that are missing nothing is known.",
    ]
    for name, arguments in sorted(table.items()):
        if any(arguments):
            sets = ["|".join(t for t in TYPES if t in types) or "kAny" for types in arguments]
            lines.append(f"TYPES({name}, {', '.join(sets)})")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines) - 3} operators")


if __name__ == "__main__":
    main()
