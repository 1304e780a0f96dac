"""Minima of functions, and of assignments: `scipy.optimize`."""

from mixtrain.lazy_names import serve_names
from mixtrain.scipy.optimize.line_search import line_search
from mixtrain.scipy.optimize.linear_sum_assignment import linear_sum_assignment
from mixtrain.scipy.optimize.minimize import minimize

__all__ = ["line_search", "linear_sum_assignment", "minimize"]

serve_names(__name__)
