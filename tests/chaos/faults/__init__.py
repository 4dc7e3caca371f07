"""What is done to the processes of a run, and when. Begin with `catalog`; `turns` has the single acts."""
