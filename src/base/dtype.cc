#include "base/dtype.h"

namespace npuless {

int64_t dtype_size(DType dtype) {
  switch (static_cast<int32_t>(dtype)) {
    case -1:  // undefined
    case 13:  // string
      return 0;
    case 2:   // int8
    case 4:   // uint8
    case 12:  // bool
    case 29:  // int4, unpacked
    case 30:  // uint1, unpacked
    case 34:  // hifloat8
    case 35:  // float8_e5m2
    case 36:  // float8_e4m3fn
    case 37:  // float8_e8m0
      return 1;
    case 1:   // float16
    case 6:   // int16
    case 7:   // uint16
    case 27:  // bfloat16
      return 2;
    case 0:   // float32
    case 3:   // int32
    case 8:   // uint32
    case 33:  // complex32
      return 4;
    case 17:  // complex128
      return 16;
    default:
      return 8;
  }
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kUndefined:
      return "DT_UNDEFINED";
    case DType::kFloat32:
      return "FLOAT32";
    case DType::kFloat16:
      return "FLOAT16";
    case DType::kInt8:
      return "INT8";
    case DType::kInt32:
      return "INT32";
    case DType::kUint8:
      return "UINT8";
    case DType::kInt64:
      return "INT64";
    case DType::kBool:
      return "BOOL";
    case DType::kBfloat16:
      return "BFLOAT16";
  }
  return "another type";
}

}  // namespace npuless
