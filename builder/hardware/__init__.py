"""Chips as data: memory, bandwidth, rates, number formats."""
