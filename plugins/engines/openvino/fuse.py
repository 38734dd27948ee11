"""Fewer and larger matrix products: projections of one input become one.

A pass over few rows is bound by reading weights, and every product costs a quantization of its input and a meeting of the threads
besides. Query, key and value, or the gate and up projections of an MLP, need that once.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Projection:
    """A product with constant weights, and the addition of its bias if it has one."""

    product: Any
    weight: Any
    bias: Any | None
    add: Any | None

    @property
    def by_rows(self) -> bool:
        """Whether the weights are [outputs, inputs]; they are [inputs, outputs] otherwise."""
        return bool(self.product.get_attributes()["transpose_b"])

    @property
    def outputs(self) -> int:
        return int(self.weight.get_output_shape(0)[0 if self.by_rows else 1])

    @property
    def key(self) -> tuple[object, ...]:
        """What projections must have in common to be merged."""
        source = self.product.input_value(0)
        kind = self.weight.get_output_element_type(0).get_type_name()
        bias_rank = None if self.bias is None else len(self.bias.get_output_shape(0))
        return source.get_node().get_name(), source.get_index(), self.by_rows, kind, bias_rank


def merge_projections(model: Any) -> None:
    """Replace products that share their input by one product and a split, in place.

    `model` is an `openvino.Model` whose weights are not compressed yet. Products whose weights are no constant, and those that differ in
    layout, element type or in having a bias, stay apart.
    """
    groups: dict[tuple[object, ...], list[_Projection]] = {}
    for node in model.get_ordered_ops():
        if (found := _projection(node)) is not None:
            groups.setdefault(found.key, []).append(found)
    for group in groups.values():
        if len(group) > 1:
            _merge(group)
    model.validate_nodes_and_infer_types()


def _projection(node: Any) -> _Projection | None:
    if node.get_type_name() != "MatMul" or node.get_attributes()["transpose_a"]:
        return None
    weight = node.input_value(1).get_node()
    if weight.get_type_name() == "Convert":  # weights kept in 16 bits are widened on the way
        weight = weight.input_value(0).get_node()
    if weight.get_type_name() != "Constant" or len(weight.get_output_shape(0)) != 2:
        return None
    return _Projection(node, weight, *_bias(node))


def _bias(product: Any) -> tuple[Any, Any] | tuple[None, None]:
    """The constant row that is added to a product, and the addition, when that is all the product is used for."""
    users = [port.get_node() for port in product.output(0).get_target_inputs()]
    if len(users) == 1 and users[0].get_type_name() == "Add":
        for node in (value.get_node() for value in users[0].input_values()):
            shape = node.get_output_partial_shape(0)
            if node.get_type_name() == "Constant" and len(shape) and shape[-1] == node.data.size == product.get_output_partial_shape(0)[-1]:
                return node, users[0]
    return None, None


def _merge(group: list[_Projection]) -> None:
    from openvino import opset13 as op

    first = group[0]
    weight = _joined([p.weight for p in group], axis=0 if first.by_rows else 1)
    widened = first.product.input_value(1).get_node().get_type_name() == "Convert"
    source = first.product.input_value(0)
    merged = op.matmul(source, op.convert(weight, source.get_element_type()) if widened else weight, False, first.by_rows)
    if first.bias is not None:
        merged = op.add(merged, _joined([p.bias for p in group], axis=-1))
    parts = op.variadic_split(merged, op.constant(-1), op.constant([p.outputs for p in group]))
    for place, projection in enumerate(group):
        for port in (projection.add or projection.product).output(0).get_target_inputs():
            port.replace_source_output(parts.output(place))


def _joined(constants: list[Any], axis: int) -> Any:
    """One constant; element types that numpy does not have are copied bit by bit."""
    import numpy as np
    import openvino as ov
    from openvino import opset13 as op

    shape = list(constants[0].get_output_shape(0))
    shape[axis] = sum(c.get_output_shape(0)[axis] for c in constants)
    tensor = ov.Tensor(constants[0].get_output_element_type(0), ov.Shape(shape))
    np.concatenate([c.data for c in constants], axis=axis, out=tensor.data)
    return op.constant(tensor)
