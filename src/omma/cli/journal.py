"""``omma journal check``: whether a journal is sound; salvages a damaged one up to the damage."""

from pathlib import Path

import click

import omma
from omma.cli.learners import content_of
from omma.cli.options import work

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("journal")
@click.argument("action", type=click.Choice(["check"]))
@click.argument("folder", type=FOLDER)
@click.option(
    "--salvage",
    type=FOLDER,
    metavar="NEW",
    help="Recover all records before the damage into a journal in this new folder.",
)
def command(action: str, folder: Path, salvage: Path | None) -> None:
    """Check the folder of a --journal: read every record, and change nothing.

    If the journal is damaged, the command names the file and the byte, and exits with 1. With
    --salvage it also says what was lost.

    \b
    Examples:
        omma journal check served/
        omma journal check served/ --salvage saved/
    """  # noqa: D301
    from omma.online.journal import DamagedError, Follower, Reader

    with work():
        follower = Follower(folder)
        try:
            learner = follower.look()
        except DamagedError as damage:
            if salvage is None or damage.byte == 0:  # then nothing is before it
                raise
            # All records before the damage are sound.
            learner = Follower(folder, stop=damage.byte).look()
            omma.Journal(salvage, learner).close()
            click.echo(f"{salvage} has {content_of(learner)}.")
            # Records behind the damage can be read, but not applied: those between are lost.
            sound = sum(1 for _ in Reader(damage.path).sound_behind(damage.byte - 1))
            size = damage.path.stat().st_size - damage.byte
            click.echo(
                f"Left out: {damage.path} from byte {damage.byte:,} on, {size:,} bytes with "
                f"{sound:,} sound records."
            )
            return
        click.echo(f"{folder} is sound: {content_of(learner)}.")
        unfinished = follower.reader.unfinished()
        if unfinished:
            click.echo(
                f"It ends in an unfinished record of {len(unfinished):,} bytes, which is moved to "
                "another file when the journal is resumed."
            )
        if salvage is not None:
            raise ValueError(f"nothing was written to {salvage}: there is no damage in {folder}")
