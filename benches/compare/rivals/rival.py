"""deepagents' FilesystemBackend, asked by the comparison: a JSON request a line, a JSON answer a line."""

import gc
import importlib.metadata
import json
import logging
import resource
import sys
import time

from deepagents.backends.filesystem import FilesystemBackend

BACKENDS = {}


def backend(root):
    if root not in BACKENDS:
        BACKENDS[root] = FilesystemBackend(root_dir=root, virtual_mode=True)
    return BACKENDS[root]


def grep(files, request):
    result = files.grep(request["pattern"])
    return result.error, len(result.matches or []), result.truncated


def glob(files, request):
    result = files.glob(request["pattern"])
    return result.error, len(result.matches or []), result.truncated


def read(files, request):
    result = files.read(request["path"], offset=request["offset"], limit=request["limit"])
    text = result.file_data["content"] if result.file_data else ""
    return result.error, len(text.splitlines()), False


def edit(files, request):
    result = files.edit(request["path"], request["old"], request["new"])
    request["old"], request["new"] = request["new"], request["old"]
    return result.error, result.occurrences or 0, False


OPERATIONS = {"grep": grep, "glob": glob, "read": read, "edit": edit}


def memory(key):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def answer(request):
    if request["op"] == "hello":
        return {"version": "deepagents " + importlib.metadata.version("deepagents")}
    files, operation, repeat = backend(request["root"]), OPERATIONS[request["op"]], request.get("repeat", 1)
    gc.collect()
    resident, cpu_before, before = memory("VmRSS"), cpu(), time.perf_counter()
    for _ in range(repeat):
        error, count, cut = operation(files, request)
    wall, used = time.perf_counter() - before, cpu() - cpu_before
    if error:
        return {"error": error}
    return {
        "wall": wall / repeat,
        "cpu": used / repeat,
        "grown": max(0, memory("VmHWM") - resident),
        "answer": {"count": count, "end": "cut" if cut else "complete"},
    }


def main():
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # The one who asked decides what a failure means.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
