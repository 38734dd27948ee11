"""Deciding everything that later stages use, and refusing what cannot work, from small files alone."""

from builder.planner.plan import Plan, PlanContext, make_plan

__all__ = ["Plan", "PlanContext", "make_plan"]
