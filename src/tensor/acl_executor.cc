// The façade of aclOpExecutor and of the aclnn library itself: unpack, guard, call.
#include "acl/acl_rt.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "base/guard.h"
#include "tensor/dump.h"
#include "tensor/executor.h"

using npuless::guarded;
using npuless::Status;
using npuless::tensor::require;
namespace tensor = npuless::tensor;

namespace {

// Tensors are told apart by object, so the six setters differ in name only; index and irIndex say
// nothing that the tensor or list does not.
aclnnStatus set_address(const char* api, aclOpExecutor* executor, aclTensor* target, void* addr) {
  return guarded(api, [&] { return tensor::set_address(executor, target, addr); });
}

aclnnStatus set_address(const char* api, aclOpExecutor* executor, aclTensorList* targets,
                        size_t index, void* addr) {
  return guarded(api, [&] { return tensor::set_address(executor, targets, index, addr); });
}

}  // namespace

aclnnStatus aclnnInit(const char*) {
  return ACL_SUCCESS;
}

aclnnStatus aclnnFinalize() {
  return ACL_SUCCESS;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  return guarded("aclSetAclOpExecutorRepeatable", [&] { return tensor::set_repeatable(executor); });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  return guarded("aclDestroyAclOpExecutor", [&] { return tensor::destroy(executor); });
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* target,
                                  void* addr) {
  return set_address("aclSetInputTensorAddr", executor, target, addr);
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* target,
                                   void* addr) {
  return set_address("aclSetOutputTensorAddr", executor, target, addr);
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t, aclTensor* target, void* addr) {
  return set_address("aclSetTensorAddr", executor, target, addr);
}

aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t,
                                         const size_t relativeIndex, aclTensorList* targets,
                                         void* addr) {
  return set_address("aclSetDynamicInputTensorAddr", executor, targets, relativeIndex, addr);
}

aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t,
                                          const size_t relativeIndex, aclTensorList* targets,
                                          void* addr) {
  return set_address("aclSetDynamicOutputTensorAddr", executor, targets, relativeIndex, addr);
}

aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t, const size_t relativeIndex,
                                    aclTensorList* targets, void* addr) {
  return set_address("aclSetDynamicTensorAddr", executor, targets, relativeIndex, addr);
}

aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* target,
                                  void* addr) {
  return aclSetInputTensorAddr(executor, index, target, addr);
}

aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* target,
                                   void* addr) {
  return aclSetOutputTensorAddr(executor, index, target, addr);
}

aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* target,
                             void* addr) {
  return aclSetTensorAddr(executor, index, target, addr);
}

aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                         const size_t relativeIndex, aclTensorList* targets,
                                         void* addr) {
  return aclSetDynamicInputTensorAddr(executor, irIndex, relativeIndex, targets, addr);
}

aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                          const size_t relativeIndex, aclTensorList* targets,
                                          void* addr) {
  return aclSetDynamicOutputTensorAddr(executor, irIndex, relativeIndex, targets, addr);
}

aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex, aclTensorList* targets,
                                    void* addr) {
  return aclSetDynamicTensorAddr(executor, irIndex, relativeIndex, targets, addr);
}

aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream) {
  return guarded("aclDumpOpTensors", [&]() -> Status {
    NPULESS_TRY(require(opType, "opType"));
    NPULESS_TRY(require(opName, "opName"));
    NPULESS_TRY(require(tensors, "tensors"));
    NPULESS_TRY(Status(aclrtSynchronizeStream(stream)));
    return tensor::log_tensors(opType, opName, tensors, inputTensorNum, outputTensorNum);
  });
}
