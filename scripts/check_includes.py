#!/usr/bin/env python3
"""Checks that includes point downwards: aclnn.cc, checks -> op -> kernels -> isa, gemm -> base;
runtime, tensor -> base; tensor -> runtime/launch.h. Usage: check_includes.py ROOT | --self-test"""
import pathlib
import re
import sys

PUBLIC = r"(acl|aclnn|aclnnop|npuless)/"
ISA_FILE = r"(portable|avx2|avx512|avx512_bf16)\.cc"

# The first rule whose pattern matches a file's path tells what it may include; FAMILY stands for
# the operator family's folder. Standard headers are free except where STANDARD limits them.
RULES = [
    (r"src/base/", r"base/"),
    (r"src/isa/", r"(base|isa|simde/x86)/"),
    (rf"src/gemm/({ISA_FILE}|.*\.inl|engine\.h)$", r"(isa|gemm)/"),
    (r"src/gemm/", r"(base|isa|gemm)/"),
    (r"src/runtime/", rf"(base/|runtime/|{PUBLIC})"),
    (r"src/tensor/", rf"(base/|tensor/|runtime/launch\.h|{PUBLIC})"),
    (r"src/api/", rf"(base/|isa/|runtime/|{PUBLIC})"),
    (r"ops/[^/]+/([^/]*(test|bench)|ref|cases)[^/]*$", r""),
    # The façade, with the checks and the unpacking of its arguments, speaks of tensors.
    (r"ops/[^/]+/(aclnn|unpack|[^/]*check)[^/]*$",
     rf"(FAMILY/|tensor/|base/|isa/|runtime/(launch|soc)\.h|{PUBLIC})"),
    (rf"ops/[^/]+/({ISA_FILE}|kernels[^/]*|[^/]*\.inl)$",
     r"(FAMILY/kernels|FAMILY/.*\.inl|isa/|gemm/)"),
    (r"ops/[^/]+/", r"(FAMILY/(?!aclnn|unpack|.*check)|gemm/|isa/|base/)"),
    (r"include/", rf"({PUBLIC}|error_codes/|[^/]+$)"),
]

# (header, the only files that may include it)
STANDARD = [
    (r"(tbb|oneapi)/", r"src/base/parallel\.cc"),
    (r"(immintrin|x86intrin)\.h", r"src/isa/"),
    # A kernel file is compiled for one processor. Inline functions of other headers compiled in it
    # could be picked by the linker for all processors.
    (r"(?!c?(stdint|stddef)|(immintrin|x86intrin)\.h)", rf"(?!.*/{ISA_FILE}$)"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def violations(path, text):
    """Yields the includes of the file at `path` (relative to the root) that point upwards."""
    for pattern, allowed in RULES:
        if re.match(pattern, path):
            break
    else:
        return
    family = path.split("/")[1]
    allowed = allowed.replace("FAMILY", re.escape(family))
    for bracket, header in INCLUDE.findall(text):
        is_ours = bracket == '"' or re.match(PUBLIC, header)
        if is_ours:
            # Naming a neighbour without its folder would hide the arrow.
            legal = re.match(allowed, header)
        else:
            legal = all(re.match(files, path) for standard, files in STANDARD
                        if re.match(standard, header))
        if not legal:
            yield header


def check(root):
    root = pathlib.Path(root)
    files = [f for folder in ("src", "ops", "include") for f in sorted((root / folder).rglob("*"))
             if f.suffix in (".h", ".cc", ".inl")]
    if not files:
        sys.exit(f"check_includes: no sources below {root}")
    bad = [(f.relative_to(root), header) for f in files
           for header in violations(str(f.relative_to(root)), f.read_text(encoding="utf-8"))]
    for path, header in bad:
        print(f"{path} must not include {header}")
    print(f"{len(files)} files, {len(bad)} includes that do not point downwards")
    return 1 if bad else 0


def self_test():
    must_fail = [
        ("src/base/a.cc", '#include "tensor/tensor.h"'),
        ("src/base/status.cc", "#include <tbb/task_arena.h>"),
        ("src/base/a.cc", "#include <immintrin.h>"),
        ("src/base/a.cc", "#include <acl/acl.h>"),
        ("src/gemm/engines.cc", '#include "runtime/launch.h"'),
        ("src/gemm/avx2.cc", '#include "base/status.h"'),
        ("src/gemm/avx2.cc", "#include <algorithm>"),
        ("src/runtime/stream.cc", '#include "tensor/tensor.h"'),
        ("src/tensor/tensor.cc", '#include "runtime/stream.h"'),
        ("ops/a/op.cc", '#include "tensor/tensor.h"'),
        ("ops/a/op.cc", '#include "b/op.h"'),
        ("ops/a/op.cc", '#include "a/aclnn.h"'),
        ("ops/a/op.cc", '#include "a/grad_check.h"'),
        ("ops/a/aclnn.cc", '#include "runtime/stream.h"'),
        ("ops/a/kernels.h", '#include "a/op.h"'),
        ("ops/a/avx2.cc", ' #  include "base/parallel.h"'),
        ("include/acl/acl.h", '#include "base/status.h"'),
    ]
    must_pass = [
        ("src/base/parallel.cc", "#include <tbb/task_arena.h>"),
        ("src/base/a.cc", '#include "base/status.h"\n#include <algorithm>'),
        ("src/tensor/executor.cc", '#include "runtime/launch.h"'),
        ("ops/a/aclnn.cc", '#include "aclnnop/aclnn_a.h"\n#include "a/op.h"'),
        ("ops/a/op.cc", '#include "a/kernels.h"\n#include "gemm/engine.h"'),
        ("ops/a/avx512.cc", '#include "a/kernels.h"\n#include "isa/simd_avx512.h"\n#include <cstdint>'),
        ("ops/a/test.cc", '#include "tensor/tensor.h"\n#include "a/ref.h"'),
    ]
    wrong = [case for case in must_fail if not list(violations(*case))]
    wrong += [case for case in must_pass if list(violations(*case))]
    for path, text in wrong:
        print(f"wrong verdict on {path}: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else check(sys.argv[1]))
