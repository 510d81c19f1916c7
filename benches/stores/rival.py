"""Times deepagents' StoreBackend over LangGraph's in-memory store, in milliseconds, as one line of JSON.

Its first argument is how many files there are. It runs outside of a graph, where its namespace function is called without a
runtime.
"""

import json
import statistics
import sys
import time

from deepagents.backends.store import StoreBackend
from langgraph.store.memory import InMemoryStore


def path(number):
    return f"/d{number // 1000}/s{number // 10 % 100}/f{number}.md"


def content(number, files):
    rare = "needle_in_a_haystack\n" if number == files // 2 else ""
    lines = "".join(f"line {line} of file {number}: nothing of note is said here\n" for line in range(20))
    return lines + rare


def median(work):
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


files = int(sys.argv[1])
backend = StoreBackend(store=InMemoryStore(), namespace=lambda _runtime: ("filesystem",))
for start in range(0, files, 500):
    numbers = range(start, min(start + 500, files))
    backend.upload_files([(path(number), content(number, files).encode()) for number in numbers])
middle = path(files // 2)
directory = middle.rsplit("/", 1)[0]
assert len(backend.ls(directory).entries) == 10
assert len(backend.glob("*.md", directory).matches) == 10
assert len(backend.grep("needle_in_a_haystack", "/").matches) == 1
print(
    json.dumps(
        {
            "ls": median(lambda: backend.ls(directory)),
            "glob": median(lambda: backend.glob("*.md", directory)),
            "grep": median(lambda: backend.grep("needle_in_a_haystack", "/")),
            "read": median(lambda: backend.read(middle)),
        }
    )
)
