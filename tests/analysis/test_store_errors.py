"""Texts of a store's client that no server here gives."""

from functools import partial

from deniable.analysis.export.bucket_prefix import reason_of
from tests.support.messages import PinMessages

HEAD = "Generic S3 error: Error performing PUT http://h:1/b/x in 4.03s, after 5 retries, max_retries: 5, "


def test_messages(pin_messages: PinMessages) -> None:
    """Each in one line, in words, and without what was signed."""
    texts = {
        "an unknown reason": f"{HEAD}retry_timeout: 3s  - HTTP error: odd\n\nDebug",
        "no answer": f"{HEAD}\n\nkind: TimedOut",
        "an unknown host": f"{HEAD}\n\ndns error",
        "an unknown certificate": f"{HEAD}\n\nInvalidCertificate(UnknownIssuer)",
        "a status": "Error performing GET http://h:1/b in 1.2µs - Server returned non-2xx status code: "
        "502 Bad Gateway: ",
        "no credentials": "Error performing PUT http://169.254.169.254/latest/api/token in 3.9ms - "
        "Server returned",
        "XML of the store": "<Code>A</Code><Message>x &#34;y&#34;.\nz.</Message>"
        "<StringToSign>s</StringToSign>",
        "XML without a message": "<Code>Odd</Code>",
        "400 characters": "y" * 400,
    }
    pin_messages({what: partial(reason_of, text) for what, text in texts.items()})
