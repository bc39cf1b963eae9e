"""Solvers: one algorithm a file, arrays in, arrays out.

Arguments that functions of kernel solvers share: `state`; `kernel`, bound or not (see
`kernel_rows.bound_kernels`); the slots s, i and j; n, the number of slots in use; d, the number of
features; `row`, float32 (capacity,), the kernel values of one example with all slots. Those of
`learn_rows` are in `registry`.
"""
