"""Work shared out among threads, with a progress bar; Ctrl-C leaves what has finished."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import TypeVar

from omma._progress import progress_bar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_all(
    tasks: Sequence[Task],
    run: Callable[[Task], Result],
    keep: Callable[[Task, Result], None],
    *,
    n_jobs: int,
    progress: bool | Callable[[int, int], None],
) -> bool:
    """Run every task in a thread and hand what comes of it to ``keep``, in this thread.

    ``progress`` shows a bar, or is a function that is told how many of all are done, a few times a
    second. The first error is raised. After Ctrl-C what runs may finish, no other task begins, and
    the answer is False; a second Ctrl-C ends the waiting too.

    >>> found = {}
    >>> run_all([1, 2, 3], lambda task: task**2, found.__setitem__, n_jobs=2, progress=False)
    True
    >>> sorted(found.items())
    [(1, 1), (2, 4), (3, 9)]
    """
    # Threads, not processes: kernels let other threads run while they work, and threads share the
    # data, which processes would have to copy.
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="omma-run")
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    waiting: dict[Future[Result], Task] = {}
    done = 0

    def look() -> None:
        if callable(progress):
            progress(done, len(tasks))

    with progress_bar(len(tasks), "runs", progress is True and bool(tasks)) as advance:

        def pass_on(future: Future[Result]) -> None:
            nonlocal done
            keep(waiting.pop(future), future.result())
            done += 1
            if advance is not None:
                advance(1)

        try:
            for task in tasks:
                future = pool.submit(run, task)
                waiting[future] = task
                future.add_done_callback(finished.put)
            while waiting:
                try:
                    future = finished.get(timeout=0.5)  # without it Windows would not see Ctrl-C
                except Empty:
                    look()
                    continue
                pass_on(future)
                look()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            begun = [future for future in waiting if not future.cancelled()]
            while wait(begun, timeout=0.5).not_done:
                pass
            for future in begun:
                if future.exception() is None:
                    pass_on(future)
            return False
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return True
