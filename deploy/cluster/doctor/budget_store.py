"""Try the database with the budgets, as a producer would use it."""

from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deniable.producers.budget.postgres.connection import AwayError
from deniable.producers.budget.postgres.tables import examine
from deniable.producers.opening.from_file import producer_config
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import SecretError, secret_of

AWAY_REMEDY = "see that it runs, and that host, port, user and password (PGPASSWORD) are right"


def budget_store(case: Case, _seconds: float) -> StepAnswer:
    """Connect, and check secret, tables and permissions; writes nothing."""
    if case.role is not Role.PRODUCER:
        raise NotUsedError("only producers charge clients")
    settings = producer_config(case.configuration, connects=False)
    if settings.budget_store is None:
        raise NotUsedError(f"not configured: budgets are in {settings.data_dir}")
    try:
        secret = secret_of(settings.data_dir, settings.secret_file)
        return StepAnswer([], examine(settings.budget_store, secret))
    except AwayError as error:
        return StepAnswer([Finding(str(error), AWAY_REMEDY)])
    except (SecretError, StoreError) as error:  # the message says the remedy
        return StepAnswer([Finding(str(error), "")])
