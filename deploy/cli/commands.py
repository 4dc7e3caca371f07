"""The commands of `deniable`, imported only when called, so `--help` and Ctrl-C do not wait for Faust."""

import signal
from importlib import import_module

import click

from deniable.deploy.cli.extras import EXTRAS, extra_missing
from deniable.deploy.cli.signals import handle

#: By task: where each command is defined, and its line in `--help`.
TASKS: dict[str, dict[str, tuple[str, str]]] = {
    "Try it": {
        "init": ("deniable.deploy.start.init:init", "Write a collection file and a sample of events."),
        "dev": (
            "deniable.deploy.start.dev:dev",
            "Run Kafka, a worker, its page and what else the file asks for.",
        ),
        "demo": ("deniable.deploy.demo.command:demo", "Stream a year of flights through an embedded Kafka."),
        "broker": ("deniable.deploy.broker.command:broker", "Run a real Apache Kafka on this machine."),
    },
    "Set up": {
        "check": (
            "deniable.deploy.offline.check:check",
            "Check the collection file and show what reports cost.",
        ),
        "plan": (
            "deniable.deploy.offline.plan:plan_command",
            "Compare mechanisms by error, before any report is sent.",
        ),
        "generate": (
            "deniable.deploy.start.generate:generate",
            "Write typed functions for the events of the collection file.",
        ),
        "account": (
            "deniable.deploy.offline.account:account",
            "Show what reports cost, or how many a budget allows.",
        ),
        "topics": (
            "deniable.deploy.cluster.topics.command:topics",
            "Create or check topics and permissions.",
        ),
        "doctor": (
            "deniable.deploy.cluster.doctor.command:doctor",
            "Find what is wrong between this machine and Kafka.",
        ),
    },
    "Send reports": {
        "produce": (
            "deniable.deploy.produce.command:produce",
            "Randomize the values of a file or pipe and send reports.",
        ),
        "backfill": (
            "deniable.deploy.backfill.command:backfill",
            "Randomize and count past events into files, without Kafka.",
        ),
        "canary": (
            "deniable.deploy.produce.canary_command:canary",
            "Send values with a known distribution, to detect defects.",
        ),
        "spent": (
            "deniable.deploy.offline.spent:spent",
            "Show how much of their budgets clients have spent.",
        ),
    },
    "Collect from devices": {
        "edge": (
            "deniable.deploy.services.edge.command:edge",
            "Take uploads of devices over HTTP and write them to Kafka.",
        ),
    },
    "Count": {
        "aggregate": (
            "deniable.deploy.services.aggregate.command:aggregate",
            "Run a worker: count reports, publish estimates, serve the page.",
        ),
        "relay": (
            "deniable.deploy.services.relay.command:relay",
            "Run a relay: shuffle and pack what devices upload.",
        ),
        "ready": (
            "deniable.deploy.services.aggregate.ready:ready",
            "Ask a worker, relay, edge or producer whether it is ready.",
        ),
        "replay": (
            "deniable.deploy.services.aggregate.replay:replay",
            "Recount the log and compare with the stored counts.",
        ),
        "retire": (
            "deniable.deploy.services.aggregate.retire:retire_command",
            "End a collection that was removed from the file.",
        ),
    },
    "Read estimates": {
        "watch": ("deniable.deploy.query.watch:watch", "Follow estimates, as a live table or as JSON lines."),
        "rollup": ("deniable.deploy.query.rollup:rollup", "Estimate over a day or a month."),
        "decode": (
            "deniable.deploy.query.decoding.decode:decode",
            "Look for other strings in the past of a collection of any text.",
        ),
        "compare": ("deniable.deploy.query.compare:compare", "Find which shares differ between two periods."),
        "export": (
            "deniable.deploy.query.export:export",
            "Write final estimates or windows to Parquet or CSV files.",
        ),
        "changes": (
            "deniable.deploy.query.detectors.changes:changes",
            "Find which shares changed, and when; intervals for every look.",
        ),
        "detect": (
            "deniable.deploy.query.detectors.detect:detect",
            "Look for forged reports in past windows.",
        ),
        "inspect": (
            "deniable.deploy.query.inspection.command:inspect",
            "Print the records of a topic, decoded.",
        ),
        "estimate": (
            "deniable.deploy.offline.estimate_rappor:estimate",
            "Estimate from counts in files, without Kafka.",
        ),
    },
}
COMMANDS = {name: command for commands in TASKS.values() for name, command in commands.items()}


class LazyGroup(click.Group):
    """A group that lists COMMANDS without importing them."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the commands' names, in the order of the tasks."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Import a command; None if the name is unknown.

        Raises
        ------
        click.ClickException if it needs an extra that is not installed.
        """
        if name not in COMMANDS:
            return None
        module, _colon, attribute = COMMANDS[name][0].partition(":")
        try:
            command: click.Command = getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            if name not in EXTRAS:
                raise
            raise click.ClickException(extra_missing(name, error.name)) from None
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and line of each command, by task."""
        width = max(map(len, COMMANDS))
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name.ljust(width), line) for name, (_where, line) in commands.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="deniable")
@click.option("--verbose", is_flag=True, help="Show the libraries' log messages, too, from level INFO.")
def deniable(verbose: bool) -> None:
    """Locally private telemetry on Kafka.

    Producers randomize every value before it leaves them; workers count the randomized reports exactly and
    publish estimates with error bars.

    Example: deniable demo
    """
    from deniable.deploy.cli.logs import configure_logs

    configure_logs(verbose)
    # The command is imported: from here on Ctrl-C shuts it down cleanly.
    handle(signal.SIGINT, signal.default_int_handler)
