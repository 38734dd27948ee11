"""CPU engine: OpenVINO paged attention behind a small runtime."""
