// The life of an executor: made, launched, used, destroyed, and every way to get that wrong.
#include "tensor/executor.h"

#include <gtest/gtest.h>

#include <thread>

#include "aclnn/aclnn_base.h"
#include "add_fixture.h"
#include "sentence.h"

namespace npuless::tensor {
namespace {

using Executor = StreamTest;

TEST_F(Executor, RunsOnce) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
  expect_error(add.launch(executor, stream), code::kInnerNullptr, kAdd, "used or destroyed");
}

TEST_F(Executor, RunsOnTheDefaultStream) {
  Addition add;
  EXPECT_EQ(add.launch(add.plan(), nullptr), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
  add.expect_added();
}

TEST_F(Executor, NullIsNoExecutor) {
  Addition add;
  add.plan();
  expect_error(add.launch(nullptr, stream), code::kParamNullptr, kAdd, "executor");
  expect_error(aclSetAclOpExecutorRepeatable(nullptr), code::kInnerNullptr, "executor");
  expect_error(aclDestroyAclOpExecutor(nullptr), code::kInnerNullptr, "executor");
}

TEST_F(Executor, DestroyedIsNoExecutor) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  expect_error(add.launch(executor, stream), code::kInnerNullptr, "used or destroyed");
  expect_error(aclSetAclOpExecutorRepeatable(executor), code::kInnerNullptr, "used or destroyed");
  expect_error(aclDestroyAclOpExecutor(executor), code::kInnerNullptr, "used or destroyed");
  EXPECT_EQ(synchronize(), 0);
  add.expect_untouched();
}

TEST_F(Executor, GarbageIsNoExecutor) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  int on_stack = 0;
  const auto bits = reinterpret_cast<uintptr_t>(executor);
  void* const garbage[] = {&on_stack,
                           add.a.data(),
                           add.a_tensor,
                           stream,
                           reinterpret_cast<void*>(uintptr_t{1}),
                           reinterpret_cast<void*>(~uintptr_t{0}),
                           reinterpret_cast<void*>(bits ^ 1),                    // generation
                           reinterpret_cast<void*>(bits ^ uintptr_t{1} << 54)};  // slot number
  for (void* handle : garbage) {
    auto* wrong = static_cast<aclOpExecutor*>(handle);
    expect_error(add.launch(wrong, stream), code::kInnerNullptr);
    expect_error(aclSetAclOpExecutorRepeatable(wrong), code::kInnerNullptr);
    expect_error(aclDestroyAclOpExecutor(wrong), code::kInnerNullptr);
    expect_error(aclSetTensorAddr(wrong, 0, add.a_tensor, add.b.data()), code::kInnerNullptr);
  }
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, AnotherOperatorKeepsIt) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  expect_error(
      tensor::launch("aclnnOther", add.workspace.data(), add.workspace_size, executor, stream),
      code::kParamInvalid, "aclnnOther", "made for aclnnTestAdd");
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, WorkspaceIsJudgedAndKeepsIt) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  const uint64_t planned = add.workspace_size;
  ASSERT_GT(planned, 0u);
  void* space = add.workspace.data();
  const struct {
    void* workspace;
    uint64_t size;
    int32_t code;
  } cases[] = {{nullptr, planned, code::kParamNullptr},
               {nullptr, 0, code::kParamNullptr},
               {space, planned - 1, code::kParamInvalid},
               {space, 0, code::kParamInvalid}};
  for (const auto& c : cases) {
    expect_error(add_phase2(c.workspace, c.size, executor, stream), c.code, "workspace",
                 std::to_string(planned).c_str());
  }
  EXPECT_EQ(add_phase2(space, planned + 1000, executor, stream), 0) << "larger is fine";
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, ChecksRunInOrder) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  // Everything is wrong from here on; each call mends the complaint of the one before.
  const auto phase2 = [&](const char* api, void* workspace, uint64_t size, aclOpExecutor* which,
                          aclrtStream where) {
    taken_sentence();
    return tensor::launch(api, workspace, size, which, where);
  };
  aclrtStream no_stream = &add;
  add.out_tensor->address = nullptr;
  auto* garbage = reinterpret_cast<aclOpExecutor*>(&add);
  void* space = add.workspace.data();
  EXPECT_EQ(phase2("aclnnOther", nullptr, 0, nullptr, no_stream), code::kParamNullptr);
  EXPECT_EQ(phase2("aclnnOther", nullptr, 0, garbage, no_stream), code::kInnerNullptr);
  EXPECT_EQ(phase2("aclnnOther", nullptr, 0, executor, no_stream), code::kParamInvalid);
  EXPECT_EQ(phase2(kAdd, nullptr, 0, executor, no_stream), code::kParamNullptr);
  EXPECT_EQ(phase2(kAdd, space, 1, executor, no_stream), code::kParamInvalid);
  expect_error(phase2(kAdd, space, add.workspace_size, executor, no_stream), code::kParamNullptr,
               "address of out");
  add.out_tensor->address = add.out.data();
  EXPECT_EQ(phase2(kAdd, space, add.workspace_size, executor, no_stream), code::kRtInvalidHandle);
  EXPECT_EQ(phase2(kAdd, space, add.workspace_size, executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, WrongStreamKeepsIt) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  aclrtStream destroyed = nullptr;
  ASSERT_EQ(aclrtCreateStream(&destroyed), 0);
  ASSERT_EQ(aclrtDestroyStream(destroyed), 0);
  expect_error(add.launch(executor, destroyed), code::kRtInvalidHandle, kAdd);
  std::thread([&] {
    expect_error(add.launch(executor, nullptr), code::kRtContextNull, kAdd);
  }).join();
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, RepeatableRunsUntilDestroyed) {
  Addition add;
  aclOpExecutor* executor = add.plan_repeatable();
  const int runs = add_runs.load();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + 5);
  add.expect_added();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  expect_error(add.launch(executor, stream), code::kInnerNullptr);
}

TEST_F(Executor, MayBeDestroyedWhileItsWorkIsQueued) {
  Addition add;
  Gate gate;
  gate.hold(stream);
  aclOpExecutor* executor = add.plan_repeatable();
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  add.destroy_tensors();
  add.expect_untouched();
  gate.open();
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, TensorsMayBeDestroyedBetweenThePhases) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  add.destroy_tensors();
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, HoldsAReferencePerBindingWhileItLives) {
  Addition add;
  const aclTensor& a = *add.a_tensor;
  aclOpExecutor* used = add.plan();
  EXPECT_EQ(a.references.load(), 2);
  aclOpExecutor* destroyed = add.plan();
  EXPECT_EQ(a.references.load(), 3);
  EXPECT_EQ(aclDestroyAclOpExecutor(destroyed), 0);
  EXPECT_EQ(a.references.load(), 2);
  EXPECT_EQ(add.launch(used, stream), 0);
  EXPECT_EQ(a.references.load(), 1);
  EXPECT_EQ(synchronize(), 0);
}

TEST_F(Executor, StaleHandlesDoNotReachTheNextOneInTheSlot) {
  Addition add;
  aclOpExecutor* old = add.plan();
  EXPECT_EQ(aclDestroyAclOpExecutor(old), 0);
  aclOpExecutor* next = add.plan();
  ASSERT_EQ(reinterpret_cast<uintptr_t>(old) >> 32, reinterpret_cast<uintptr_t>(next) >> 32)
      << "the slot is taken again, so that only the generation differs";
  ASSERT_NE(old, next);
  expect_error(aclDestroyAclOpExecutor(old), code::kInnerNullptr);
  expect_error(add.launch(old, stream), code::kInnerNullptr);
  EXPECT_EQ(add.launch(next, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Executor, ManyMayWaitAtOnce) {
  constexpr int kMany = 1000;
  Addition add;
  std::vector<aclOpExecutor*> executors;
  for (int i = 0; i < kMany; ++i) executors.push_back(add.plan());
  const int runs = add_runs.load();
  for (aclOpExecutor* executor : executors) ASSERT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + kMany);
}

struct NoWork {
  int32_t code;
};
Status end_with(const NoWork& plan, void*) {
  return plan.code == 0 ? Status() : fail(plan.code, "the operator gave up");
}
aclOpExecutor* plan_no_work(int32_t code, const aclTensor* tensor = nullptr) {
  const NoWork plan{code};
  const Binding bindings[] = {{tensor, nullptr}};
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  EXPECT_TRUE(make_executor("aclnnNoWork", plan, &end_with, 0, bindings, &size, &executor).ok());
  EXPECT_EQ(size, 0u);
  return executor;
}

TEST_F(Executor, ErrorsOfTheRunAppearAtSynchronise) {
  EXPECT_EQ(tensor::launch("aclnnNoWork", nullptr, 0, plan_no_work(code::kRtInternal), stream), 0);
  expect_error(synchronize(), code::kRtInternal, "aclnnNoWork: the operator gave up");
}

TEST_F(Executor, NoWorkspacePlannedNeedsNone) {
  char space[8];
  EXPECT_EQ(tensor::launch("aclnnNoWork", nullptr, 0, plan_no_work(0), stream), 0);
  EXPECT_EQ(tensor::launch("aclnnNoWork", space, 0, plan_no_work(0), stream), 0);
  EXPECT_EQ(tensor::launch("aclnnNoWork", space, 8, plan_no_work(0), stream), 0);
  aclOpExecutor* executor = plan_no_work(0);
  expect_error(tensor::launch("aclnnNoWork", nullptr, 8, executor, stream), code::kParamNullptr,
               "workspace");
  EXPECT_EQ(tensor::launch("aclnnNoWork", nullptr, 0, executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
}

TEST_F(Executor, EmptyOneIsConsumedWithoutRunning) {
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  ASSERT_TRUE(make_empty_executor("aclnnEmpty", &size, &executor).ok());
  EXPECT_EQ(size, 0u);
  expect_error(tensor::launch("aclnnEmpty", nullptr, 0, executor, &size), code::kRtInvalidHandle);
  EXPECT_EQ(tensor::launch("aclnnEmpty", nullptr, 0, executor, stream), 0);
  expect_error(tensor::launch("aclnnEmpty", nullptr, 0, executor, stream), code::kInnerNullptr);
  ASSERT_TRUE(make_empty_executor("aclnnEmpty", &size, &executor).ok());
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(tensor::launch("aclnnEmpty", nullptr, 0, executor, stream), 0);
  EXPECT_EQ(tensor::launch("aclnnEmpty", nullptr, 0, executor, stream), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST(PhaseOne, NeedsItsOutputsBeforeAnythingElse) {
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  expect_error(add_phase1(nullptr, nullptr, nullptr, nullptr, &executor), code::kParamNullptr,
               "aclnnTestAddGetWorkspaceSize: workspaceSize must not be null");
  expect_error(add_phase1(nullptr, nullptr, nullptr, &size, nullptr), code::kParamNullptr,
               "executor must not be null");
  expect_error(add_phase1(nullptr, nullptr, nullptr, &size, &executor), code::kParamNullptr,
               "a must not be null");
  EXPECT_EQ(size, 99u);
  EXPECT_EQ(executor, nullptr);
}

TEST(PhaseOne, RefusesViewsOutsideThePlan) {
  struct Plan {
    Vector view;
  } plan;
  Vector elsewhere;
  Addition add;
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  const Binding bindings[] = {{add.a_tensor, &plan.view}, {add.a_tensor, &elsewhere}};
  const RunFn<Plan> run = [](const Plan&, void*) { return Status(); };
  expect_error(make_executor("aclnnWrong", plan, run, 8, bindings, &size, &executor).code(),
               code::kInner, "view 1 lies outside the plan");
  EXPECT_EQ(size, 99u);
  EXPECT_EQ(executor, nullptr);
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST(Library, InitAndFinalizeAlwaysSucceed) {
  EXPECT_EQ(aclnnInit(nullptr), 0);
  EXPECT_EQ(aclnnInit("no such file.json"), 0);
  EXPECT_EQ(aclnnFinalize(), 0);
  EXPECT_EQ(aclnnFinalize(), 0);
}

}  // namespace
}  // namespace npuless::tensor
