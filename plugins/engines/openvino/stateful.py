"""The past as state of the graph, in the form that the paged-attention transformation recognizes."""

from typing import Any

INPUTS = ("input_ids", "attention_mask", "position_ids", "beam_idx")


def make_stateful(model: Any, layers: int, kv_heads: int, head_dim: int) -> None:
    """Name the traced graph's inputs and outputs and turn past and present into states, in place."""
    import openvino as ov
    from openvino._offline_transformations import apply_make_stateful_transformation

    past, present = _state_names(layers, "past"), _state_names(layers, "present")
    state_shape = [-1, kv_heads, -1, head_dim]
    shapes = [[-1, -1], [-1, -1], [-1, -1], [-1], *(state_shape for _ in past)]
    for port, name, shape in zip(model.inputs, (*INPUTS, *past), shapes, strict=True):
        port.get_tensor().set_names({name})
        port.get_node().set_partial_shape(ov.PartialShape(shape))
    for port, name in zip(model.outputs, ("logits", *present), strict=True):
        port.get_tensor().set_names({name})
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, dict(zip(past, present, strict=True)))
    _initialise_states(model)


def _state_names(layers: int, word: str) -> list[str]:
    return [f"{word}.{i}.{state}" for i in range(layers) for state in ("key", "value")]


def _initialise_states(model: Any) -> None:
    """Give each state a start value (an empty past), without which the paged transformation does not match."""
    from openvino import opset13 as op

    batch = op.gather(op.shape_of(model.input("input_ids"), output_type="i64"), op.constant([0]), op.constant(0))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            sizes = [op.constant([d.min_length], dtype="int64") for d in node.get_output_partial_shape(0)]
            zero = op.constant(0.0, dtype=node.get_output_element_type(0).to_dtype())
            node.set_arguments([op.broadcast(zero, op.concat([batch, *sizes[1:]], axis=0))])
    model.validate_nodes_and_infer_types()
