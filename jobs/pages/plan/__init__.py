"""The page of a plan: what if weights, caps, windows or slots were others?"""

from jobs.pages.plan.page import plan

__all__ = ["plan"]
