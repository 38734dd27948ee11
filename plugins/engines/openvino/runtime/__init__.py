"""Runtime of the CPU engine: block tables, prefix reuse and roll-back are ours, the kernels are OpenVINO's."""
