"""A pack as an upload: the same reports as one group, under the pack's id.

Pure. The bytes depend on the pack alone, so a repeated pack is a repeated upload.
"""

from deniable.protocol.uploads.upload import (
    CRC_BYTES,
    GROUP_BYTES,
    HEADER_BYTES,
    MAX_UPLOAD_BYTES,
    Upload,
    UploadGroup,
    encode_upload,
)
from deniable.protocol.wire import Pack

#: The most bytes of reports that one upload holds.
MOST_REPORT_BYTES = MAX_UPLOAD_BYTES - HEADER_BYTES - GROUP_BYTES - CRC_BYTES


def upload_of(pack: Pack) -> bytes:
    """Encode a pack as an upload.

    Raises
    ------
    UploadError if it has more than MOST_REPORT_BYTES of reports.
    """
    group = UploadGroup(
        pack.fingerprint,
        pack.mechanism,
        pack.cohort,
        pack.window_start,
        pack.reports,
        pack.width,
        pack.payload,
    )
    return encode_upload(Upload(pack.pack_id, (group,)))
