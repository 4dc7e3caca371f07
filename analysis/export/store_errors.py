"""Says in words why a store refused a request: its client's texts are of its own objects, over many lines.

Rule: of a store's answer, only code and message are repeated. The rest has what was signed.
"""

import html
import re
from urllib.parse import urlsplit

MOST_CHARACTERS = 300
#: What the client's text has where no connection came about, and what that means.
CAUSES = (
    (r"ConnectionRefused", "connection refused"),
    (r"dns error", "the name of the host is not known"),
    (r"InvalidContentType|InvalidMessage", "the server does not speak TLS; is the endpoint one of http://"),
    (r"InvalidCertificate|UnknownIssuer|CertificateError", "the certificate of the server is not trusted"),
    (r"AlertReceived|HandshakeFailure", "the server ended the TLS handshake"),
    (r"TimedOut|operation timed out", "no answer in time"),
    (r"ConnectionReset|IncompleteMessage|UnexpectedEof", "the server closed the connection"),
    (r"NetworkUnreachable|HostUnreachable", "the host cannot be reached"),
)


def reason_of(text: str) -> str:
    """Return the cause in one line, at most 300 characters.

    Parameters
    ----------
    text : of an exception of obstore.
    """
    address = re.search(r"(?:performing \w+ |uri: Some\(\s*)(https?://[^\s,]+)", text)
    place = "" if address is None else "{0.scheme}://{0.netloc}".format(urlsplit(address[1]))
    if place == "http://169.254.169.254":
        return "there are no credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor of this machine"
    code, message = (re.search(rf"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message"))
    if code is not None:
        parts = [html.unescape(each[1]).strip().rstrip(".") for each in (code, message) if each is not None]
        return " ".join(": ".join(each for each in parts if each).split())[:MOST_CHARACTERS]
    for pattern, words in CAUSES:
        if re.search(pattern, text):
            return f"{place}: {words}" if place else words
    status = re.search(r"non-2xx status code: (\d+ ?[A-Za-z ]*)", text)
    if status is not None:
        return f"{place} answered {status[1].strip()}"
    first = re.sub(r" in [\d.]+[mµn]?s\b(?:, after .*?retry_timeout: \S+)?", "", text.partition("\n")[0])
    return re.sub(r"^Generic \w+ error: ", "", first)[:MOST_CHARACTERS]
