"""The same work in PyTorch, eager, on the same number of threads.

Usage: torch_bench.py RESULTS.json TORCH.json THREADS

Takes shapes and types from the entries that npuless_bench measured, prints a table and writes
{entry: {"seconds", "added_bytes"}}.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F

import results

# Seconds that one run may take, judged by smaller runs of its kind.
PATIENCE = 30.0
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def loss_step(dtype, shape):
    tokens, hidden, vocab = shape
    x = (torch.rand(tokens, hidden) * 2 - 1).to(dtype).requires_grad_()
    w = (torch.rand(vocab, hidden) * 0.1 - 0.05).to(dtype).requires_grad_()
    target = torch.arange(tokens) * 7919 % vocab

    def run():
        x.grad = w.grad = None
        F.cross_entropy(F.linear(x, w), target).backward()

    return run, size(x, w)


def size(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Routing:
    """Tokens sent to 64 experts drawn evenly; `rows` as sortedIndices; probabilities of the rows'
    type, which keeps PyTorch from widening everything."""

    def __init__(self, dtype, shape):
        self.tokens, self.topk, self.hidden = shape
        slots = self.tokens * self.topk
        self.experts = torch.randint(0, 64, (slots,), dtype=torch.int32)
        order = torch.argsort(self.experts, stable=True)
        self.rows = torch.empty_like(order)
        self.rows[order] = torch.arange(slots)
        self.x = torch.rand(self.tokens, self.hidden).to(dtype)
        self.permuted = torch.rand(slots, self.hidden).to(dtype)
        self.probs = torch.rand(self.tokens, self.topk).to(dtype)

    def gathered(self, source):
        return source.index_select(0, self.rows).view(self.tokens, self.topk, self.hidden)


def permute(dtype, shape):
    r = Routing(dtype, shape)

    def run():
        order = torch.argsort(r.experts, stable=True)
        rows = torch.empty_like(order)
        rows[order] = torch.arange(len(order))
        r.x.index_select(0, torch.div(order, r.topk, rounding_mode="floor"))

    return run, size(r.permuted, r.rows)


def permute_grad(dtype, shape):
    r = Routing(dtype, shape)
    return lambda: r.gathered(r.permuted).sum(1), size(r.x)


def unpermute(dtype, shape):
    r = Routing(dtype, shape)
    return lambda: (r.gathered(r.permuted) * r.probs.unsqueeze(-1)).sum(1), size(r.x)


def unpermute_grad(dtype, shape):
    r = Routing(dtype, shape)
    r.permuted.requires_grad_()
    r.probs.requires_grad_()
    out = (r.gathered(r.permuted) * r.probs.unsqueeze(-1)).sum(1)
    grad = torch.rand(r.tokens, r.hidden).to(dtype)
    outputs = size(r.permuted, r.probs)
    return lambda: torch.autograd.grad(out, (r.permuted, r.probs), grad, retain_graph=True), outputs


MAKERS = {
    "step/saving": loss_step,
    "step/softmax": loss_step,
    "permute": permute,
    "permute_grad": permute_grad,
    "unpermute": unpermute,
    "unpermute_grad": unpermute_grad,
}


def resident(field):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def added_memory(run, outputs):
    """What the first run adds to the resident memory beyond its results."""
    before = resident("VmRSS")
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    run()
    return max(0, resident("VmHWM") - before - outputs)


def median_seconds(run):
    times = []
    while len(times) < 3 or (sum(times) < 1.0 and len(times) < 100):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
        if times[0] > 5.0:
            break
    return sorted(times)[len(times) // 2]


def main():
    source, target, threads = sys.argv[1:]
    torch.manual_seed(1)
    torch.set_num_threads(int(threads))
    print(f"\nPyTorch {torch.__version__}, {threads} threads, run after npuless, not in turns with it")
    print(f"{'':58} {'npuless':>10} {'torch':>10} {'faster':>8} {'memory':>16}")
    measured = {}
    pace = {}  # kind → seconds per unit of work, of the run before
    entries = [e for e in results.read(source)
               if e.what in MAKERS and not e.suffix and e.amount and e.seconds]
    for e in sorted(entries, key=lambda entry: entry.amount):
        kind = (MAKERS[e.what], e.dtype)
        if pace.get(kind, 0) * e.amount > PATIENCE:
            print(f"{e.name:58} left out: about {pace[kind] * e.amount:.0f} s a run in PyTorch")
            continue
        try:
            MAKERS[e.what](DTYPES[e.dtype], (1, 2, 128))[0]()  # what the library sets up once
            run, outputs = MAKERS[e.what](DTYPES[e.dtype], e.shape)
            memory = added_memory(run, outputs)
        except RuntimeError as error:  # half precision lacks operators on older versions
            print(f"{e.name:58} {str(error).splitlines()[0]}")
            continue
        seconds = median_seconds(run)
        pace[kind] = seconds / e.amount
        measured[e.name] = {"seconds": seconds, "added_bytes": memory}
        print(f"{e.name:58} {e.seconds * 1e3:8.2f}ms {seconds * 1e3:8.2f}ms "
              f"{seconds / e.seconds:7.2f}x {e.added_bytes / 2**20:6.0f}/{memory / 2**20:.0f} MiB",
              flush=True)
        with open(target, "w", encoding="utf-8") as file:
            json.dump(measured, file, indent=1)


if __name__ == "__main__":
    main()
