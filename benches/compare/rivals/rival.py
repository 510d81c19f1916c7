"""deepagents' backends, asked by the comparison: a JSON request a line, a JSON answer a line."""

import gc
import importlib.metadata
import json
import logging
import os
import resource
import subprocess
import sys
import time

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

BACKENDS = {}
CREATED = 0


class Local(BaseSandbox):
    """A shell of this machine as a place; files go in and out by the shortest way there is."""

    # The system's own Python: one that a version manager starts takes several times as long.
    environment = dict(os.environ, PATH="/usr/local/bin:/usr/bin:/bin")

    @property
    def id(self):
        return "local"

    def execute(self, command, *, timeout=None):
        done = subprocess.run(
            ["sh", "-c", command],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        return ExecuteResponse(output=done.stdout, exit_code=done.returncode, truncated=False)

    def upload_files(self, files):
        answers = []
        for path, content in files:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            answers.append(FileUploadResponse(path=path, error=None))
        return answers

    def download_files(self, paths):
        answers = []
        for path in paths:
            with open(path, "rb") as file:
                answers.append(FileDownloadResponse(path=path, content=file.read(), error=None))
        return answers


def backend(request):
    root, is_remote = request["root"], request["op"].startswith("remote_")
    if (root, is_remote) not in BACKENDS:
        BACKENDS[root, is_remote] = Local() if is_remote else FilesystemBackend(root_dir=root, virtual_mode=True)
    return BACKENDS[root, is_remote]


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


def remote_read(files, request):
    return read(files, dict(request, offset=0, limit=2000))


def remote_ls(files, request):
    result = files.ls(request["root"])
    return result.error, len(result.entries or []), False


def remote_create(files, request):
    global CREATED
    CREATED += 1
    return files.write(f"{request['root']}/new/{CREATED}", "new\n").error, 1, False


OPERATIONS = {
    "grep": grep,
    "glob": glob,
    "read": read,
    "edit": edit,
    "remote_read": remote_read,
    "remote_ls": remote_ls,
    "remote_create": remote_create,
    "remote_edit": edit,
}


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
    files, operation, repeat = backend(request), OPERATIONS[request["op"]], request.get("repeat", 1)
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
