#!/usr/bin/env python3
"""Checks that a library exports exactly the functions that its public headers declare.
Usage: symbols.py CXX INCLUDE_DIR LIBRARY | symbols.py CXX --self-test"""
import pathlib
import re
import subprocess
import sys
import tempfile

NOT_A_DECLARATION = re.compile(
    r"(typedef|using|enum|struct|class|template|static|inline|constexpr|friend|static_assert)\b")


def preprocessed(cxx, include_dir):
    """The text that the headers below include_dir contribute themselves."""
    headers = sorted(pathlib.Path(include_dir).rglob("*.h"))
    if not headers:
        sys.exit(f"symbols: no headers below {include_dir}")
    source = "".join(f'#include "{h.resolve()}"\n' for h in headers)
    roots = [f"-I{include_dir}{sub}" for sub in ("", "/aclnn", "/aclnnop")]
    out = subprocess.run([cxx, "-std=c++11", "-E", "-x", "c++", *roots, "-"], input=source,
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    ours = str(pathlib.Path(include_dir).resolve())
    lines, keep = [], False
    for line in out.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            keep = str(pathlib.Path(marker.group(1)).resolve()).startswith(ours)
        elif keep:
            lines.append(line)
    return "\n".join(lines)


def statements(text):
    """Declarations at namespace level, without bodies."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    text = re.sub(r'extern\s*""\s*\{|namespace\s+\w+\s*\{', "", text)
    depth, current = 0, ""
    for char in text:
        if char == "{":
            depth += 1
        elif char == "}":
            # What closes below zero opened with a linkage block or a namespace.
            depth = max(depth - 1, 0)
            current = "" if depth == 0 else current
        elif depth == 0 and char == ";":
            yield " ".join(current.split())
            current = ""
        elif depth == 0:
            current += char


def declared(text):
    names = set()
    for statement in statements(text):
        plain = re.sub(r'__attribute__\s*\(\(.*?\)\)|extern\s*""', "", statement).strip()
        name = re.search(r"([A-Za-z_]\w*)\s*\(", plain)
        if name and not NOT_A_DECLARATION.match(plain):
            names.add(name.group(1))
    return names


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def compare(cxx, include_dir, library):
    promised, present = declared(preprocessed(cxx, include_dir)), exported(library)
    for name in sorted(promised - present):
        print(f"declared but not exported: {name}")
    for name in sorted(present - promised):
        print(f"exported but not declared: {name}")
    print(f"{len(promised)} functions declared, {len(present)} symbols exported")
    return bool(promised) and promised == present


SELF_TEST_HEADER = """
#include <stdlib.h>
namespace op { struct Half { int bits; int value() const { return convert(bits); } }; }
extern "C" {
typedef void (*Callback)(void *data);
typedef struct Thing Thing;
enum Kind { KIND_A, KIND_B };
static inline int helper(int x) { if (x) { return abs(x); } return 0; }
__attribute__((visibility("default"))) int one(const char *text,
                                               Callback callback);
}
extern "C" int two(void) __attribute__((deprecated("use one(3)")));
"""


def self_test(cxx):
    """Declarations of every form are found, and both directions of a mismatch are reported."""
    cases = [("one two", True), ("one", False), ("one two three", False)]
    for names, equal in cases:
        with tempfile.TemporaryDirectory() as folder:
            include = pathlib.Path(folder, "include")
            include.mkdir()
            (include / "api.h").write_text(SELF_TEST_HEADER, encoding="utf-8")
            source = "".join(f'extern "C" void {name}() {{}}\n' for name in names.split())
            library = f"{folder}/lib.so"
            subprocess.run([cxx, "-shared", "-fPIC", "-x", "c++", "-", "-o", library],
                           input=source, text=True, check=True)
            if compare(cxx, str(include), library) != equal:
                sys.exit(f"symbols: wrong verdict on a library that exports {names}")
    return True


if __name__ == "__main__":
    if sys.argv[2:] == ["--self-test"]:
        good = self_test(sys.argv[1])
    elif len(sys.argv) == 4:
        good = compare(*sys.argv[1:])
    else:
        sys.exit(__doc__)
    sys.exit(0 if good else 1)
