"""What a run will cost before it starts: its jobs, their times, the shortest schedule, disk and downloads."""
