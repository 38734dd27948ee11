"""The served side: start and stop a Triton server, and talk to it over gRPC."""
