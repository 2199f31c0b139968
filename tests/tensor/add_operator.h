// The smallest operator: out = a + b through a workspace, as a family would write it. Drives the
// executor in tests.
#pragma once

#include <atomic>
#include <cstdint>

#include "aclnn/acl_meta.h"

namespace npuless::tensor {

inline constexpr const char* kAdd = "aclnnTestAdd";

aclnnStatus add_phase1(const aclTensor* a, const aclTensor* b, aclTensor* out,
                       uint64_t* workspace_size, aclOpExecutor** executor);
aclnnStatus add_phase2(void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
                       aclrtStream stream);

// How often the operator ran to its end.
extern std::atomic<int> add_runs;

}  // namespace npuless::tensor
