#include "tensor/dump.h"

#include <cstdio>
#include <cstring>

#include "base/half.h"
#include "base/log.h"

namespace npuless::tensor {
namespace {

constexpr int kValueText = 48;  // 16 bytes in hexadecimal, and more than any number needs

template <class T>
T load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  return value;
}

void print_float(char (&text)[kValueText], double value) {
  std::snprintf(text, kValueText, "%.9g", value);
}

void print_integer(char (&text)[kValueText], int64_t value) {
  std::snprintf(text, kValueText, "%lld", static_cast<long long>(value));
}

void print_bytes(char (&text)[kValueText], const void* element, int64_t count) {
  int used = std::snprintf(text, kValueText, "0x");
  for (int64_t i = 0; i < count; ++i) {
    used += std::snprintf(text + used, static_cast<size_t>(kValueText - used), "%02x",
                          static_cast<const unsigned char*>(element)[i]);
  }
}

void print_value(char (&text)[kValueText], const void* element, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return print_float(text, load<float>(element));
    case DType::kFloat16:
      return print_float(text, widen(load<f16>(element)));
    case DType::kBfloat16:
      return print_float(text, widen(load<bf16>(element)));
    case DType::kInt8:
      return print_integer(text, load<int8_t>(element));
    case DType::kUint8:
    case DType::kBool:
      return print_integer(text, load<uint8_t>(element));
    case DType::kInt32:
      return print_integer(text, load<int32_t>(element));
    case DType::kInt64:
      return print_integer(text, load<int64_t>(element));
    default:
      return print_bytes(text, element, dtype_size(dtype));
  }
}

// Address of element `index` in the order of the view.
const void* element_at(const aclTensor& tensor, const void* data, int64_t index) {
  int64_t distance = 0;
  for (int axis = tensor.view.rank - 1; axis >= 0; --axis) {
    distance += index % tensor.view.dims[axis] * tensor.strides[axis];
    index /= tensor.view.dims[axis];
  }
  return static_cast<const char*>(data) + distance * dtype_size(tensor.dtype);
}

void append_values(const aclTensor& tensor, const void* data, char (&text)[kTensorText]) {
  constexpr size_t kRest = sizeof(" …");
  size_t used = std::strlen(text);
  const int64_t count = element_count(tensor);
  for (int64_t i = 0; i < count; ++i) {
    char value[kValueText];
    print_value(value, element_at(tensor, data, i), tensor.dtype);
    if (used + 1 + std::strlen(value) + kRest > kTensorText) {
      std::snprintf(text + used, kTensorText - used, " …");
      return;
    }
    used += static_cast<size_t>(std::snprintf(text + used, kTensorText - used, " %s", value));
  }
}

}  // namespace

Status describe(const aclTensor& tensor, char (&text)[kTensorText]) {
  NPULESS_TRY(require_addressable(&tensor, "tensor"));
  char shape[kShapeText];
  const void* data = data_of(tensor);
  std::snprintf(text, kTensorText, "%s %s%s", dtype_name(tensor.dtype), shape_text(tensor, shape),
                data == nullptr ? " without an address" : ":");
  if (data != nullptr) append_values(tensor, data, text);
  return {};
}

Status log_tensors(const char* op_type, const char* op_name, aclTensor* const* tensors,
                   size_t inputs, size_t outputs) {
  for (size_t i = 0; i < inputs + outputs; ++i) {
    const bool input = i < inputs;
    char text[kTensorText] = "null";
    if (tensors[i] != nullptr) NPULESS_TRY(describe(*tensors[i], text));
    log(LogLevel::kInfo, "%s %s %s %zu: %s", op_type, op_name, input ? "input" : "output",
        input ? i : i - inputs, text);
  }
  return {};
}

}  // namespace npuless::tensor
