"""Reads what npuless_bench wrote with --benchmark_out."""

import json
import re


class Entry:
    """One measured entry; times in seconds, rates per second."""

    def __init__(self, run):
        self.name = re.sub(r"/iterations:.*", "", run["name"])
        self.family, self.what, self.dtype, self.shape, self.suffix = split_name(self.name)
        self.error = run.get("error_message")
        self.seconds = run.get("seconds")
        self.roof = run.get("roof")
        self.share = run.get("share_of_roof")
        self.baseline_seconds = run.get("baseline_seconds")
        self.added_bytes = run.get("added_bytes")
        amount = (self.seconds or 0) * run.get("rate", 0)
        self.amount = amount or None

    def share_at(self, seconds):
        """The share of the roof that the same work reaches in another time."""
        if not seconds or not self.amount:
            return None
        return self.amount / seconds / self.roof


def split_name(name):
    """family/operator…/type/AxBxC[/suffix]; None for what a name lacks."""
    match = re.fullmatch(r"(\w+)/(.+)/(bf16|fp16|fp32)/(\d+)x(\d+)x(\d+)(/.*)?", name)
    if match is None:
        return name.split("/")[0], name, None, None, ""
    family, what, dtype = match.group(1, 2, 3)
    shape = tuple(int(size) for size in match.group(4, 5, 6))
    return family, what, dtype, shape, match.group(7) or ""


def read(path):
    with open(path, encoding="utf-8") as file:
        return [Entry(run) for run in json.load(file)["benchmarks"]]
