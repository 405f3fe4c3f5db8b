"""Work of several threads that begin together."""

import threading
from concurrent.futures import ThreadPoolExecutor


def run_in_threads(work, arguments):
    """``work(argument)`` in a thread of its own for each argument: the results. An exception of one of them is raised
    here, when all have ended."""
    arguments = list(arguments)
    start = threading.Barrier(len(arguments))

    def begin(argument):
        start.wait()
        return work(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(begin, arguments))
