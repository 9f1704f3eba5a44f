"""Long work in threads, with a progress bar; Ctrl-C ends it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

Progress = Callable[[int], None]
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
    """Run every task in a thread, and pass its result to ``keep`` in this thread.

    ``progress`` shows a bar, or is a function that gets (done, total) a few times a second. The
    first error is raised. After Ctrl-C running tasks finish, no other task begins, and False is
    returned; a second Ctrl-C ends the waiting too.

    >>> squares = {}
    >>> run_all([1, 2, 3], lambda task: task**2, squares.__setitem__, n_jobs=2, progress=False)
    True
    >>> sorted(squares.items())
    [(1, 1), (2, 4), (3, 9)]
    """
    # Threads, not processes: kernels let other threads run while they work, and threads share the
    # data, which processes would have to copy.
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="omma-run")
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    waiting: dict[Future[Result], Task] = {}

    def pass_on(future: Future[Result]) -> None:
        keep(waiting.pop(future), future.result())
        if advance is not None:
            advance(1)

    with progress_bar(len(tasks), "runs", progress is True and bool(tasks)) as advance:
        try:
            for task in tasks:
                future = pool.submit(run, task)
                waiting[future] = task
                future.add_done_callback(finished.put)
            while waiting:
                # The timeout lets Windows see Ctrl-C.
                with suppress(Empty):
                    pass_on(finished.get(timeout=0.5))
                if callable(progress):
                    progress(len(tasks) - len(waiting), len(tasks))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            # Running tasks cannot be stopped: their results are kept.
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


@contextmanager
def progress_bar(total: int, title: object, show: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, if it is to be shown."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bar,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=total)

        def advance(count: int) -> None:
            bar.update(task, description=str(title), advance=count)

        yield advance
