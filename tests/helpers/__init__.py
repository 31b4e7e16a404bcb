"""What several tests share: exact arithmetic, models, files, browsers."""
