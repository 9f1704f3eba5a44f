"""Long work in threads, with a progress bar; Ctrl-C ends it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
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
    progress: bool,
) -> bool:
    """Run every task in a thread, and pass its result to ``keep`` in this thread.

    ``progress`` shows a bar. The first error is raised. After Ctrl-C running tasks finish, no other
    task begins, and False is returned; a second Ctrl-C ends the waiting too.

    >>> squares = {}
    >>> run_all([1, 2, 3], lambda task: task**2, squares.__setitem__, n_jobs=2, progress=False)
    True
    >>> sorted(squares.items())
    [(1, 1), (2, 4), (3, 9)]
    """
    # Threads, not processes: kernels let other threads run while they work, and threads share the
    # data, which processes would have to copy.
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="omma-run")
    waiting: dict[Future[Result], Task] = {}

    def pass_on(done: Iterable[Future[Result]]) -> None:
        for future in done:
            keep(waiting.pop(future), future.result())
            if advance is not None:
                advance(1)

    with progress_bar(len(tasks), "runs") if progress and tasks else nullcontext() as advance:
        try:
            waiting = {pool.submit(run, task): task for task in tasks}
            while waiting:
                # The timeout lets Windows see Ctrl-C.
                wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
                pass_on([future for future in waiting if future.done()])
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            # Running tasks cannot be stopped: their results are kept.
            begun = [future for future in waiting if not future.cancelled()]
            while wait(begun, timeout=0.5).not_done:
                pass
            pass_on([future for future in begun if future.exception() is None])
            return False
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return True


@contextmanager
def progress_bar(total: int, title: object) -> Iterator[Progress]:
    """A progress bar on standard error."""
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
