// Executors: what phase 1 returns and phase 2 consumes.
//
// A plan is a trivially copyable struct: views, scalars, workspace pieces, kernel table. Phase 1
// stores it in an executor; phase 2 copies it into a task, writes the tensors' current addresses
// into its views and queues it. The handle given to the client is never dereferenced: it names a
// table slot and a generation, so a used or destroyed executor is recognised (561103).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "aclnn/acl_meta.h"
#include "base/status.h"
#include "runtime/launch.h"
#include "tensor/tensor.h"

namespace npuless::tensor {

// Executes a plan on the stream's worker. `workspace` has at least the planned bytes.
template <class Plan>
using RunFn = Status (*)(const Plan& plan, void* workspace);

// Ties a tensor to the view (Vector or Matrix, whose first member is the address) of a plan.
struct Binding {
  const aclTensor* tensor;  // null: an optional that was not given; ignored
  void* view;               // inside the plan passed to make_executor
};

inline constexpr int kMaxBindings = 16;
// The payload carries the run function and the workspace pointer beside the plan.
inline constexpr size_t kMaxPlanBytes = runtime::kMaxTaskPayload - 64;

namespace detail {

struct ExecutorSpec {
  const char* api;  // the phase-2 function's name; identity of the operator
  runtime::TaskFn task;
  const void* plan;
  size_t plan_bytes;
  void (*run)();
  const Binding* bindings;
  int binding_count;
  int64_t workspace_bytes;
};

Status make_executor(const ExecutorSpec& spec, uint64_t* workspace_size, aclOpExecutor** executor);

// What a queued operator looks like; the plan's bytes follow.
struct alignas(16) TaskHeader {
  void (*run)();
  void* workspace;
};

template <class Plan>
Status run_task(void* payload) {
  auto* header = static_cast<TaskHeader*>(payload);
  const auto& plan = *reinterpret_cast<const Plan*>(header + 1);
  return reinterpret_cast<RunFn<Plan>>(header->run)(plan, header->workspace);
}

}  // namespace detail

// 161001 when either output pointer of phase 1 is null. Comes before every other check.
Status require_phase1_outputs(const uint64_t* workspace_size, aclOpExecutor* const* executor);

// Writes *workspace_size and *executor; called only after every check passed.
// `api` is the name of the phase-2 function and must be the literal that launch() is given.
template <class Plan, size_t N>
Status make_executor(const char* api, const Plan& plan, RunFn<Plan> run, int64_t workspace_bytes,
                     const Binding (&bindings)[N], uint64_t* workspace_size,
                     aclOpExecutor** executor) {
  static_assert(std::is_trivially_copyable_v<Plan> && sizeof(Plan) <= kMaxPlanBytes);
  static_assert(alignof(Plan) <= alignof(detail::TaskHeader) && N <= kMaxBindings);
  const detail::ExecutorSpec spec{api,
                                  &detail::run_task<Plan>,
                                  &plan,
                                  sizeof(Plan),
                                  reinterpret_cast<void (*)()>(run),
                                  bindings,
                                  static_cast<int>(N),
                                  workspace_bytes};
  return detail::make_executor(spec, workspace_size, executor);
}

// An executor whose phase 2 succeeds without doing anything (empty tensors): workspace 0.
Status make_empty_executor(const char* api, uint64_t* workspace_size, aclOpExecutor** executor);

// The whole of a phase-2 function. Codes: 161001 executor null, or workspace null with a size
// above 0; 561103 used or destroyed executor; 161002 executor of another operator, or a workspace
// smaller than phase 1 said (executor kept); stream errors as runtime::launch.
int32_t launch(const char* api, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
               aclrtStream stream) noexcept;

}  // namespace npuless::tensor
