// Tensors as text, for aclDumpOpTensors.
#pragma once

#include "base/status.h"
#include "tensor/tensor.h"

namespace npuless::tensor {

inline constexpr int kTensorText = 512;

// "FLOAT16 [2, 3]: 1 2 3 4 5 6": type, shape and, in the order of the view, as many values as fit;
// "…" stands for the rest. Types without numbers are written as hexadecimal bytes. 161002 when the
// tensor is not addressable.
Status describe(const aclTensor& tensor, char (&text)[kTensorText]);

// Writes one line per tensor to the log, at level INFO; inputs come first. Null entries are named
// as such. The tensors must not be changing.
Status log_tensors(const char* op_type, const char* op_name, aclTensor* const* tensors,
                   size_t inputs, size_t outputs);

}  // namespace npuless::tensor
