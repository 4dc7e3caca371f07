"""Points of an export where it can be killed; runs in its process."""

from typing import Any

from deniable.analysis.export import local_folder
from deniable.analysis.export.bucket_prefix import BucketPrefix
from deniable.analysis.export.local_folder import LocalFolder
from tests.support.processes import FaultPoints


def install(points: FaultPoints) -> None:
    """Patch the points into folders and buckets.

    `written`: the content of a file of a folder is written, under another name; `replaced`: a file has its
    new content; `kept`: the progress is kept, or what else is kept beside the files.
    """
    write_table = local_folder.write_table

    def written(*arguments: Any) -> None:
        write_table(*arguments)
        points.at("written")

    local_folder.write_table = written
    for place in (LocalFolder, BucketPrefix):
        _after(place, "replace", "replaced", points)
        _after(place, "keep", "kept", points)


def _after(owner: type, name: str, point: str, points: FaultPoints) -> None:
    method = getattr(owner, name)

    def wrapped(self: Any, *arguments: Any) -> Any:
        result = method(self, *arguments)
        points.at(point)
        return result

    setattr(owner, name, wrapped)
