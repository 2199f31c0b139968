#include "tensor/executor.h"

#include <cmath>

#include "base/guard.h"
#include "base/handle_table.h"

namespace npuless::tensor {
namespace {

using detail::ExecutorSpec;
using detail::TaskHeader;

struct Slot {
  aclTensor* tensor;
  const char* name;
  uint64_t offset_bytes;
  size_t view_offset;  // of the address inside the plan
  bool read;           // by the operator, so the address goes into the plan
  bool empty;          // needs no address

  void* address() const { return address_of(*tensor, offset_bytes); }
};

// Moved in about 10 microseconds, a fraction of what it takes to wake a thread.
constexpr double kBriefBytes = 131072;

// What is touched: the elements, or the stretch of memory over which strides spread them.
double bytes_of(const aclTensor& tensor) {
  double stretch = 1;
  for (int i = 0; i < tensor.view.rank; ++i) {
    stretch += std::fabs(static_cast<double>(tensor.view.dims[i] - 1)) *
               std::fabs(static_cast<double>(tensor.strides[i]));
  }
  return std::fmax(static_cast<double>(element_count(tensor)), stretch) *
         static_cast<double>(dtype_size(tensor.dtype));
}

struct Executor {
  explicit Executor(const ExecutorSpec& spec) noexcept;
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  bool binds(const aclTensor* tensor) const;

  const char* api;
  runtime::TaskFn task;
  void (*run)();
  uint64_t workspace_bytes;
  size_t plan_bytes;
  std::atomic<bool> repeatable{false};
  bool brief = false;
  int slot_count = 0;
  Slot slots[kMaxBindings];
  alignas(TaskHeader) unsigned char plan[kMaxPlanBytes];
};

Executor::Executor(const ExecutorSpec& spec) noexcept
    : api(spec.api),
      task(spec.task),
      run(spec.run),
      workspace_bytes(static_cast<uint64_t>(spec.workspace_bytes)),
      plan_bytes(spec.plan_bytes) {
  if (plan_bytes > 0) std::memcpy(plan, spec.plan, plan_bytes);
  const auto base = reinterpret_cast<uintptr_t>(spec.plan);
  double bytes = 0;
  for (int i = 0; i < spec.binding_count; ++i) {
    const Binding& binding = spec.bindings[i];
    if (binding.tensor == nullptr) continue;
    bytes += bytes_of(*binding.tensor);
    retain(binding.tensor);
    slots[slot_count++] = {const_cast<aclTensor*>(binding.tensor),
                           binding.name,
                           offset_bytes(*binding.tensor),
                           reinterpret_cast<uintptr_t>(binding.view) - base,
                           binding.view != nullptr,
                           is_empty(*binding.tensor)};
  }
  brief = spec.moves_bytes && bytes <= kBriefBytes;
}

Executor::~Executor() {
  for (int i = 0; i < slot_count; ++i) release(slots[i].tensor);
}

bool Executor::binds(const aclTensor* tensor) const {
  if (task == nullptr) return true;
  for (int i = 0; i < slot_count; ++i) {
    if (slots[i].tensor == tensor) return true;
  }
  return false;
}

constinit HandleTable<Executor, 'x'> executors;
using Pin = decltype(executors)::Pin;

struct Payload {
  TaskHeader header;
  unsigned char plan[kMaxPlanBytes];
};
static_assert(offsetof(Payload, plan) == sizeof(TaskHeader));
static_assert(sizeof(Payload) <= runtime::kMaxTaskPayload);

Status fail_stale() {
  return fail(code::kInnerNullptr, "executor was used or destroyed before, or never was one");
}

Status find(aclOpExecutor* handle, int32_t null_code, Pin& pin) {
  if (handle == nullptr) return fail(null_code, "executor must not be null");
  pin = executors.find(handle);
  return pin ? Status() : fail_stale();
}

Status check_operator(const Executor& executor, const char* api) {
  if (std::strcmp(executor.api, api) == 0) return {};
  return fail(code::kParamInvalid, "executor was made for %s", executor.api);
}

Status check_workspace(const Executor& executor, const void* workspace, uint64_t size) {
  if (workspace == nullptr && (executor.workspace_bytes > 0 || size > 0)) {
    return fail(code::kParamNullptr, "workspace must not be null: phase 1 asked for %llu bytes",
                static_cast<unsigned long long>(executor.workspace_bytes));
  }
  if (size >= executor.workspace_bytes) return {};
  return fail(code::kParamInvalid, "workspaceSize must be at least %llu as phase 1 said, got %llu",
              static_cast<unsigned long long>(executor.workspace_bytes),
              static_cast<unsigned long long>(size));
}

Status fail_address(const Slot& slot, int index) {
  if (slot.name != nullptr) {
    return fail(code::kParamNullptr, "the address of %s must not be null", slot.name);
  }
  return fail(code::kParamNullptr, "the address of tensor %d must not be null", index);
}

Status fill_payload(const Executor& executor, void* workspace, Payload& payload) {
  payload.header = {executor.api, executor.run, workspace};
  std::memcpy(payload.plan, executor.plan, executor.plan_bytes);
  for (int i = 0; i < executor.slot_count; ++i) {
    const Slot& slot = executor.slots[i];
    if (!slot.read) continue;
    void* address = slot.address();
    if (address == nullptr && !slot.empty) return fail_address(slot, i);
    std::memcpy(payload.plan + slot.view_offset, &address, sizeof(address));
  }
  return {};
}

// Makes the executor unusable for everybody else unless it may be launched again.
Status consume(const Executor& executor, aclOpExecutor* handle) {
  if (executor.repeatable.load(std::memory_order_acquire)) return {};
  return executors.take(handle) ? Status() : fail_stale();
}

Status try_launch(const char* api, void* workspace, uint64_t workspace_size, aclOpExecutor* handle,
                  aclrtStream stream) {
  Pin executor;
  NPULESS_TRY(find(handle, code::kParamNullptr, executor));
  NPULESS_TRY(check_operator(*executor, api));
  NPULESS_TRY(check_workspace(*executor, workspace, workspace_size));
  Payload payload;
  NPULESS_TRY(fill_payload(*executor, workspace, payload));
  NPULESS_TRY(runtime::check_stream(stream));
  NPULESS_TRY(consume(*executor, handle));
  if (executor->task == nullptr) return {};
  return runtime::launch(stream, executor->task, &payload,
                         sizeof(TaskHeader) + executor->plan_bytes, executor->brief);
}

// A view outside the plan would make every launch write over something else.
Status check_bindings(const ExecutorSpec& spec) {
  const auto base = reinterpret_cast<uintptr_t>(spec.plan);
  for (int i = 0; i < spec.binding_count; ++i) {
    const Binding& binding = spec.bindings[i];
    const uintptr_t offset = reinterpret_cast<uintptr_t>(binding.view) - base;
    if (binding.tensor == nullptr || binding.view == nullptr) continue;
    if (offset > spec.plan_bytes || spec.plan_bytes - offset < sizeof(void*)) {
      return fail(code::kInner, "view %d lies outside the plan", i);
    }
  }
  return {};
}

}  // namespace

Status detail::make_executor(const ExecutorSpec& spec, uint64_t* workspace_size,
                             aclOpExecutor** executor) {
  NPULESS_TRY(check_bindings(spec));
  const Pin made = executors.insert(spec);
  if (!made) return fail(code::kMemoryAllocation, "out of host memory for an executor");
  *workspace_size = static_cast<uint64_t>(spec.workspace_bytes);
  *executor = static_cast<aclOpExecutor*>(made.handle());
  return {};
}

Status require_phase1_outputs(const uint64_t* workspace_size, aclOpExecutor* const* executor) {
  NPULESS_TRY(require(workspace_size, "workspaceSize"));
  return require(executor, "executor");
}

Status make_empty_executor(const char* api, uint64_t* workspace_size, aclOpExecutor** executor) {
  const detail::ExecutorSpec spec{api, nullptr, nullptr, 0, nullptr, nullptr, 0, 0, false};
  return detail::make_executor(spec, workspace_size, executor);
}

int32_t launch(const char* api, void* workspace, uint64_t workspace_size, aclOpExecutor* executor,
               aclrtStream stream) noexcept {
  return guarded(api, [&] { return try_launch(api, workspace, workspace_size, executor, stream); });
}

Status set_repeatable(aclOpExecutor* executor) {
  Pin pin;
  NPULESS_TRY(find(executor, code::kInnerNullptr, pin));
  pin->repeatable.store(true, std::memory_order_release);
  return {};
}

Status destroy(aclOpExecutor* executor) {
  if (executor == nullptr) return fail(code::kInnerNullptr, "executor must not be null");
  return executors.take(executor) ? Status() : fail_stale();
}

Status set_address(aclOpExecutor* executor, aclTensor* tensor, void* address) {
  Pin pin;
  NPULESS_TRY(find(executor, code::kInnerNullptr, pin));
  if (tensor == nullptr) return fail(code::kInnerNullptr, "tensor must not be null");
  if (!pin->binds(tensor)) {
    return fail(code::kParamInvalid, "tensor was not given to %sGetWorkspaceSize for this executor",
                pin->api);
  }
  tensor->address.store(address, std::memory_order_release);
  return {};
}

Status set_address(aclOpExecutor* executor, aclTensorList* tensors, size_t index, void* address) {
  Pin pin;
  NPULESS_TRY(find(executor, code::kInnerNullptr, pin));
  if (tensors == nullptr) return fail(code::kInnerNullptr, "tensors must not be null");
  if (index >= static_cast<size_t>(tensors->size)) {
    return fail(code::kParamInvalid, "relativeIndex must be below %lld, the list's size, got %zu",
                static_cast<long long>(tensors->size), index);
  }
  return set_address(executor, const_cast<aclTensor*>(tensors->values[index]), address);
}

}  // namespace npuless::tensor
