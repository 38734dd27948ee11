"""The engine against its peers: what is measured, in which order, how it is compared, how it is shown."""
