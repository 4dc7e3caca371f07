"""The judgement of a run: an independent recount beside what the workers stored and how long they paused."""
