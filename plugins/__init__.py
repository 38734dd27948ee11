"""Plug-ins of Tandem: engines, demo pairs and whatever else can be swapped, each found by name through entry points."""
