"""Replay the seeds and past findings of each target: python -m tests.fuzz.replay."""

from tests.fuzz.targets import TARGETS, found, target_of


def main() -> None:
    """Let the first failure through."""
    for name in TARGETS:
        target, kept = target_of(name), found(name)
        for data in [*target.SEEDS, *(path.read_bytes() for path in kept)]:
            target.check(data)
        print(f"{name}: {len(target.SEEDS)} seeds, {len(kept)} found once")  # noqa: T201


if __name__ == "__main__":
    main()
