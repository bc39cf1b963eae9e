"""An ONNX graph that is built operator by operator."""

from __future__ import annotations

from typing import Any

import numpy as np

_OPSET, _ML_OPSET, _IR = 13, 2, 8
"""Old ones, so that old runtimes read the file; all operators are in them."""

_ML = "ai.onnx.ml"


class Graph:
    """The operators, constants and outputs of a graph.

    Its inputs are ``features``, float64 (n, d), and ``texts``, strings (n, columns of text), unless
    there are none.
    """

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "exporting to ONNX needs the package onnx: pip install 'streamsvm[onnx]'"
            ) from error
        self._onnx = onnx
        self.float32, self.float64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
        self.int64 = onnx.TensorProto.INT64
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        array = np.asarray(value)
        name = f"constant{len(self._constants)}"
        if array.dtype.kind in "US":
            array = array.astype(object)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        name = f"value{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, list(inputs), [name], name, **attributes)
        self._nodes.append(node)
        return name

    def codes(self, texts: str, values: list[str], of_empty: int, of_others: int) -> str:
        """Add the places of texts in a list; return the name of the result, int64."""
        keys, places = list(values), list(range(len(values)))
        if "" not in values:
            keys, places = [*keys, ""], [*places, of_empty]
        return self.add(
            "LabelEncoder",
            texts,
            domain=_ML,
            keys_strings=keys,
            values_int64s=places,
            default_int64=of_others,
        )

    def affine(self, x: str, matrix: np.ndarray, bias: Any) -> str:
        """Add x @ matrix + bias."""
        product = self.add("MatMul", x, self.constant(np.ascontiguousarray(matrix)))
        return self.add("Add", product, self.constant(bias))

    def output(self, name: str, value: str, kind: Any, *shape: int) -> None:
        """Give a value the name of an output of n rows, of `shape` each.

        Its `kind` is a type, or the name of a constant of that type.
        """
        if isinstance(kind, str):
            kind = next(c.data_type for c in self._constants if c.name == kind)
        helper = self._onnx.helper
        self._nodes.append(helper.make_node("Identity", [value], [name], name))
        self._outputs.append(helper.make_tensor_value_info(name, kind, [None, *shape]))

    def model(self, n_features: int, n_texts: int, about: dict[str, str]) -> Any:
        """Return the model, checked; `about` are its metadata."""
        helper = self._onnx.helper
        of_input = helper.make_tensor_value_info
        text, opsets = self._onnx.TensorProto.STRING, [helper.make_opsetid("", _OPSET)]
        given = [of_input("features", self.float64, [None, n_features])] if n_features else []
        if n_texts:
            given.append(of_input("texts", text, [None, n_texts]))
            opsets.append(helper.make_opsetid(_ML, _ML_OPSET))
        graph = helper.make_graph(self._nodes, "streamsvm", given, self._outputs, self._constants)
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR, producer_name="streamsvm"
        )
        helper.set_model_props(model, about)
        self._onnx.checker.check_model(model)
        return model
