"""SASL PLAIN of kafka-python with a password that may change: its own class takes text alone."""

from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.plain import SaslMechanismPlain

from deniable.cluster.logins.passwords import CurrentPassword


class CurrentPlain(SaslMechanismPlain):  # type: ignore[misc] # kafka-python has no types
    """Logs one connection in with the present password."""

    def __init__(self, **config: object) -> None:
        password = config.get("sasl_plain_password")
        if isinstance(password, CurrentPassword):
            config["sasl_plain_password"] = password.encode().decode()
        super().__init__(**config)


def read_passwords_again() -> None:
    """Log further connections of this process in with present passwords; others are as before."""
    register_sasl_mechanism("PLAIN", CurrentPlain, overwrite=True)
