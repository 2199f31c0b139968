// Executors: what phase 1 returns and phase 2 consumes.
//
// A plan is a trivially copyable struct: views, scalars, workspace pieces, kernel table. Phase 1
// stores it in an executor; phase 2 copies it into a task, writes the tensors' current addresses
// into its views and queues it, so that launches queued with different addresses keep their own.
// Everything else about a tensor is frozen in phase 1. The handle given to the client is never
// dereferenced: it names a table slot and a generation, so a used or destroyed executor is
// recognised (561103).
//
// Whatever is wrong with a launch is found before the executor is consumed, so the caller can
// mend it and launch again; the exception is 207001 from a stream that has no memory for a task.
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

// Executes a plan. `workspace` has at least the planned bytes.
template <class Plan>
using RunFn = Status (*)(const Plan& plan, void* workspace);

// Ties a tensor to the view (Vector or Matrix, whose first member is the address) of a plan.
struct Binding {
  const aclTensor* tensor;     // null: an optional that was not given; ignored
  void* view;                  // inside the plan passed to make_executor; null: given but not read,
                               // so that setting its address is no error
  const char* name = nullptr;  // a literal, for the sentence about a null address at launch
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
  bool moves_bytes;
};

Status make_executor(const ExecutorSpec& spec, uint64_t* workspace_size, aclOpExecutor** executor);

// What a queued operator looks like; the plan's bytes follow.
struct alignas(16) TaskHeader {
  const char* api;
  void (*run)();
  void* workspace;
};

template <class Plan>
Status run_task(void* payload) {
  auto* header = static_cast<TaskHeader*>(payload);
  const ApiScope scope(header->api);
  const auto& plan = *reinterpret_cast<const Plan*>(header + 1);
  return reinterpret_cast<RunFn<Plan>>(header->run)(plan, header->workspace);
}

template <class Plan, class = void>
struct MovesBytes : std::false_type {};
template <class Plan>
struct MovesBytes<Plan, std::void_t<decltype(Plan::kMovesBytes)>>
    : std::bool_constant<Plan::kMovesBytes> {};

}  // namespace detail

// 161001 when either output pointer of phase 1 is null. Comes before every other check.
Status require_phase1_outputs(const uint64_t* workspace_size, aclOpExecutor* const* executor);

// Writes *workspace_size and *executor; called only after every check passed.
// `api` is the name of the phase-2 function and must be the literal that launch() is given.
// A Plan with a static member kMovesBytes says that its run takes about as long as moving the bytes
// of its tensors; where those are few, the launching thread runs it at once.
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
                                  workspace_bytes,
                                  detail::MovesBytes<Plan>::value};
  return detail::make_executor(spec, workspace_size, executor);
}

// An executor whose phase 2 succeeds without doing anything (empty tensors): workspace 0.
Status make_empty_executor(const char* api, uint64_t* workspace_size, aclOpExecutor** executor);

// The whole of a phase-2 function. Codes, in this order: 161001 executor null; 561103 used,
// destroyed or no executor at all; 161002 executor of another operator; 161001 workspace null
// where phase 1 or the caller says a size above 0; 161002 a workspace smaller than phase 1 said;
// 161001 a non-empty tensor whose address is null by now; stream errors as runtime::launch.
// Of several threads launching one executor that is not repeatable, one wins and the others get
// 561103. Allocates nothing beyond what runtime::launch does.
int32_t launch(const char* api, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
               aclrtStream stream) noexcept;

// --- what the façade offers beyond launching; 561103 for null and stale executors ----------------

Status set_repeatable(aclOpExecutor* executor);
Status destroy(aclOpExecutor* executor);
// Gives `tensor` a new storage address. The tensor object identifies the slot: 561103 when it is
// null, 161002 when phase 1 did not bind it to this executor; empty executors take any. The address
// belongs to the tensor, so other executors bound to it see it too, and the last setting counts.
Status set_address(aclOpExecutor* executor, aclTensor* tensor, void* address);
// The same for member `index` of a list; 161002 when there is none.
Status set_address(aclOpExecutor* executor, aclTensorList* tensors, size_t index, void* address);

}  // namespace npuless::tensor
