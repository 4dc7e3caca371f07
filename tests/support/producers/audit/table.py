"""Print the audit's results: `python -m tests.support.producers.audit.table`, half a minute."""

import click

from tests.support.producers.audit.bits import SAMPLES
from tests.support.producers.audit.suite import AUDITS, FALSE_ALARM, FEW

ROW = "{:<46} {:>8} {:>8} {:>6} {:>9}"


def main() -> None:
    click.echo(ROW.format("audited", "epsilon", "at least", "ratio", "events"))
    for audit in AUDITS:
        bounds = audit.bounds()
        shown = f"{audit.epsilon:.4f}", f"{bounds.most:.4f}", f"{bounds.most / audit.epsilon:.3f}"
        click.echo(ROW.format(audit.subject, *shown, f"{bounds.events:,}"))
    click.echo(
        f"With probability 1 - {FALSE_ALARM:g} all bounds hold together. 2 million outputs of each input;"
    )
    click.echo(f"{FEW:,} from clients of two values, and of 7 hashed reports;")
    click.echo(f"{2 * SAMPLES:,} reports where bits are paired.")


if __name__ == "__main__":
    main()
