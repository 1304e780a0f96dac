"""Names and order of the arguments of MindSpore's `numpy`, which are not always those of NumPy or Keras."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np

# The arguments, then the functions that take them. Functions with any number of arrays are not listed.
_ROWS: Final = """
x dtype: abs absolute arccosh arcsin arcsinh arctan arctanh bitwise_not cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs
x dtype: floor invert isfinite isinf isnan log log10 log1p log2 rad2deg radians reciprocal rint sign signbit sin sinh
x dtype: sqrt square tan tanh trunc
x1 x2 dtype: add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod equal float_power floor_divide fmod
x1 x2 dtype: gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp logaddexp2 logical_and logical_or
x1 x2 dtype: logical_xor matmul maximum minimum mod multiply not_equal power remainder subtract true_divide
input dtype: arccos
a dtype: logical_not negative positive
a axis: argmax argmin expand_dims size squeeze
a axis keepdims initial where: amax amin max min
a axis dtype keepdims: nanmax nanmean nanmin nansum
a axis dtype keepdims initial: sum
a axis keepdims dtype: mean
a axis keepdims: sometrue
a axis dtype: cumprod cumsum nancumsum
a axis dtype ddof keepdims: nanstd nanvar
x axis ddof keepdims: std var
x axis keepdims: count_nonzero ptp
x axis weights returned: average
a1 a2: array_equiv polyadd polymul polysub
a1 a2 equal_nan: array_equal
M: bartlett blackman hamming hanning
a b: dot inner kron outer
a b axes: tensordot
a b axisa axisb axisc axis: cross
x: fix isneginf isposinf ravel
a: argwhere array_str copy
tup: column_stack dstack hstack
x indices_or_sections: dsplit hsplit vsplit
x indices_or_sections axis: array_split split
a v mode: convolve correlate
v k: diag diagflat
m: fliplr flipud
m axis: flip
m k: tril triu
n k m: tril_indices triu_indices
arr k: tril_indices_from triu_indices_from
a dtype shape: ones_like zeros_like
prototype dtype shape: empty_like
a fill_value dtype shape: full_like
arr values axis: append
func a axes: apply_over_axes
arrays axis: concatenate stack
x weights minlength length: bincount
array shape: broadcast_to
a choices mode: choose
x y rowvar dtype: corrcoef
m y rowvar bias ddof fweights aweights dtype: cov
n ndim: diag_indices
a offset axis1 axis2: diagonal
a offset axis1 axis2 dtype: trace
a n axis prepend append: diff
x bins right: digitize
ary to_end to_begin: ediff1d
x y bins range weights density: histogram2d
a bins range weights: histogram_bin_edges
sample bins range weights density: histogramdd
ar1 ar2 invert: in1d
element test_elements invert: isin
element: isscalar
dimensions dtype sparse: indices
x xp fp left right: interp
ar1 ar2 assume_unique return_indices: intersect1d
ar1 ar2 assume_unique: setdiff1d
a n: matrix_power
a source destination: moveaxis
p m: polyder
p m k: polyint
p x: polyval
multi_index dims mode order: ravel_multi_index
indices shape order: unravel_index
a repeats axis: repeat
x new_shape: reshape
a shift axis: roll
x axis start: rollaxis
condlist choicelist default: select
x axis1 axis2: swapaxes
a indices axis mode: take
arr indices axis: take_along_axis
a reps: tile
a axes: transpose
x return_inverse: unique
p discont axis: unwrap
x N increasing: vander
condition x y: where
"""
_ARGUMENTS: Final = {
    function: tuple(names.split())
    for names, functions in (row.split(":") for row in _ROWS.strip().splitlines()) for function in functions.split()
}


@functools.cache
def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names by which a function takes arguments."""
    if isinstance(function, np.ufunc):
        return ("dtype",)
    arguments = inspect.signature(function).parameters.values()
    return tuple(each.name for each in arguments if each.kind is not each.POSITIONAL_ONLY)


def bound(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], function: Callable[..., Any], arrays: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call of MindSpore's function `name` as those of the function that computes it.

    `arrays`: How many come first, as arrays, by position. Others are passed by name; those that `function` names
    otherwise by position, which is the same.

    Raises: TypeError if there are too many, or one is given twice.
    """
    names = _ARGUMENTS.get(name)
    if names is None:
        return args, kwargs
    twice = {*names[: len(args)]} & kwargs.keys()
    if len(args) > len(names) or twice:
        reason = f"{min(twice)} is given twice" if twice else f"{len(args)} arguments are given"
        raise TypeError(f"{reason}: the arguments are {', '.join(names)}")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    own = names_of(function)
    by_position: list[Any] = []
    for index, argument in enumerate(names):
        if argument in given and index == len(by_position) and (index < arrays or argument not in own):
            if argument != "dtype":
                by_position.append(given.pop(argument))
    return tuple(by_position), given
