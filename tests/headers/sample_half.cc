#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnn/opdev/fp16_t.h"

std::vector<op::fp16_t> ones(int64_t count) {
  return std::vector<op::fp16_t>(count, 1.0);
}

std::vector<op::fp16_t> zeros(int64_t count) {
  std::vector<op::fp16_t> values(count, 0);
  for (auto& value : values) value = 0;
  return values;
}

void print(const std::vector<op::fp16_t>& values) {
  for (const op::fp16_t value : values) std::cout << value << " " << float(value) << "\n";
}
