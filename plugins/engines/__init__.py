"""Engine plug-ins: one folder per `engine.kind`."""
