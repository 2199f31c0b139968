// New addresses for the tensors of an executor: through it, through the tensor, for queued work.
#include <gtest/gtest.h>

#include <vector>

#include "aclnn/aclnn_base.h"
#include "add_fixture.h"
#include "sentence.h"
#include "tensor/executor.h"

namespace npuless::tensor {
namespace {

using Addresses = StreamTest;
using Setter = aclnnStatus (*)(aclOpExecutor*, size_t, aclTensor*, void*);
using ListSetter = aclnnStatus (*)(aclOpExecutor*, size_t, size_t, aclTensorList*, void*);

constexpr Setter kSetters[] = {aclSetInputTensorAddr, aclSetOutputTensorAddr, aclSetTensorAddr,
                               AclSetInputTensorAddr, AclSetOutputTensorAddr, AclSetTensorAddr};
constexpr ListSetter kListSetters[] = {aclSetDynamicInputTensorAddr,  aclSetDynamicOutputTensorAddr,
                                       aclSetDynamicTensorAddr,       AclSetDynamicInputTensorAddr,
                                       AclSetDynamicOutputTensorAddr, AclSetDynamicTensorAddr};

TEST_F(Addresses, QueuedLaunchesKeepTheirOwn) {
  constexpr size_t kSetterCount = std::size(kSetters);
  Addition add;
  std::vector<std::vector<float>> outs(kSetterCount, std::vector<float>(Addition::kSize, -1.0f));
  std::vector<std::vector<float>> ins;
  aclOpExecutor* executor = add.plan_repeatable();
  Gate gate;
  gate.hold(stream);
  for (size_t i = 0; i < kSetterCount; ++i) {
    ins.emplace_back(Addition::kSize, static_cast<float>(i));
    // Any index: the tensor says which one is meant.
    EXPECT_EQ(kSetters[i](executor, 7 * i, add.a_tensor, ins.back().data()), 0);
    EXPECT_EQ(kSetters[kSetterCount - 1 - i](executor, 0, add.out_tensor, outs[i].data()), 0);
    EXPECT_EQ(add.launch(executor, stream), 0);
  }
  gate.open();
  EXPECT_EQ(synchronize(), 0);
  for (size_t i = 0; i < kSetterCount; ++i) {
    EXPECT_EQ(outs[i], std::vector<float>(Addition::kSize, 100.0f + static_cast<float>(i)));
  }
  add.expect_untouched();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(Addresses, MembersOfListsByRelativeIndex) {
  Addition add;
  aclTensor* members[] = {add.a_tensor, add.b_tensor, nullptr};
  aclTensorList* list = aclCreateTensorList(members, 3);
  aclOpExecutor* executor = add.plan_repeatable();
  for (const ListSetter set : kListSetters) {
    std::vector<float> a(Addition::kSize, 3.0f), b(Addition::kSize, 4.0f);
    EXPECT_EQ(set(executor, 9, 0, list, a.data()), 0);
    EXPECT_EQ(set(executor, 9, 1, list, b.data()), 0);
    EXPECT_EQ(add.launch(executor, stream), 0);
    EXPECT_EQ(synchronize(), 0);
    EXPECT_EQ(add.out, std::vector<float>(Addition::kSize, 7.0f));
    EXPECT_EQ(set(executor, 0, 0, list, add.a.data()), 0);
    EXPECT_EQ(set(executor, 0, 1, list, add.b.data()), 0);

    expect_error(set(executor, 0, 3, list, a.data()), code::kParamInvalid, "relativeIndex",
                 "below 3", "got 3");
    expect_error(set(executor, 0, SIZE_MAX, list, a.data()), code::kParamInvalid);
    expect_error(set(executor, 0, 2, list, a.data()), code::kInnerNullptr, "tensor");
    expect_error(set(executor, 0, 0, nullptr, a.data()), code::kInnerNullptr, "tensors");
    expect_error(set(nullptr, 0, 0, list, a.data()), code::kInnerNullptr, "executor");
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  for (aclTensor** tensor : {&add.a_tensor, &add.b_tensor}) *tensor = nullptr;
  EXPECT_EQ(aclDestroyTensorList(list), 0);
}

TEST_F(Addresses, OfTheTensorItself) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  std::vector<float> other(Addition::kSize, 5.0f);
  EXPECT_EQ(aclSetRawTensorAddr(add.a_tensor, other.data()), 0);
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add.out, std::vector<float>(Addition::kSize, 105.0f));
}

TEST_F(Addresses, TheLastSettingCounts) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  std::vector<float> first(Addition::kSize, 1.0f), second(Addition::kSize, 2.0f);
  EXPECT_EQ(aclSetRawTensorAddr(add.a_tensor, first.data()), 0);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, add.a_tensor, second.data()), 0);
  EXPECT_EQ(aclSetRawTensorAddr(add.b_tensor, first.data()), 0);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(add.a_tensor, &address), 0);
  EXPECT_EQ(address, second.data());
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add.out, std::vector<float>(Addition::kSize, 3.0f));
}

TEST_F(Addresses, AreOfTheStorageSoTheOffsetStays) {
  Addition add;
  std::vector<float> storage(Addition::kSize + 3, 0.0f), moved(Addition::kSize + 3, 9.0f);
  std::fill_n(moved.begin(), 3, -1000.0f);
  aclDestroyTensor(add.a_tensor);
  add.a_tensor = Addition::tensor_over(storage.data(), 3);
  aclOpExecutor* executor = add.plan();
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, add.a_tensor, moved.data()), 0);
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add.out, std::vector<float>(Addition::kSize, 109.0f));
}

TEST_F(Addresses, OneTensorInTwoPlacesMovesBoth) {
  Addition add;
  aclDestroyTensor(add.b_tensor);
  retain(add.a_tensor);
  add.b_tensor = add.a_tensor;
  aclOpExecutor* executor = add.plan();
  std::vector<float> other(Addition::kSize, 6.0f);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, add.a_tensor, other.data()), 0);
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add.out, std::vector<float>(Addition::kSize, 12.0f));
}

// CANN's own example of repeatable executors.
TEST_F(Addresses, MayAllBeNullUntilTheLaunch) {
  Addition add;
  for (aclTensor* tensor : {add.a_tensor, add.b_tensor, add.out_tensor}) tensor->address = nullptr;
  aclOpExecutor* executor = add.plan_repeatable();
  expect_error(add.launch(executor, stream), code::kParamNullptr, kAdd, "address of a ");
  EXPECT_EQ(aclSetTensorAddr(executor, 0, add.a_tensor, add.a.data()), 0);
  expect_error(add.launch(executor, stream), code::kParamNullptr, "address of tensor 1 ");
  EXPECT_EQ(aclSetTensorAddr(executor, 1, add.b_tensor, add.b.data()), 0);
  expect_error(add.launch(executor, stream), code::kParamNullptr, "address of out ");
  EXPECT_EQ(aclSetTensorAddr(executor, 2, add.out_tensor, add.out.data()), 0);
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(Addresses, EmptyTensorsNeedNone) {
  Addition add;
  add.destroy_tensors();
  add.a_tensor = Addition::tensor_over(nullptr, 0, 0);
  add.b_tensor = Addition::tensor_over(nullptr, 0, 0);
  add.out_tensor = Addition::tensor_over(nullptr, 0, 0);
  EXPECT_EQ(add.launch(add.plan(), stream), 0);
  EXPECT_EQ(synchronize(), 0);
}

TEST_F(Addresses, GeometryIsFrozenInPhaseOne) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  const int64_t dim = 1;
  EXPECT_EQ(aclInitTensor(add.a_tensor, &dim, 1, ACL_INT8, nullptr, 5, ACL_FORMAT_ND, &dim, 1,
                          add.a.data()),
            0);
  EXPECT_EQ(add.launch(executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
}

TEST_F(Addresses, WrongArguments) {
  Addition add;
  aclOpExecutor* executor = add.plan();
  aclTensor* stranger = Addition::tensor_over(add.b.data());
  for (const Setter set : kSetters) {
    expect_error(set(nullptr, 0, add.a_tensor, add.b.data()), code::kInnerNullptr, "executor");
    expect_error(set(executor, 0, nullptr, add.b.data()), code::kInnerNullptr, "tensor");
    expect_error(set(executor, 0, stranger, add.a.data()), code::kParamInvalid,
                 "not given to aclnnTestAddGetWorkspaceSize");
  }
  EXPECT_EQ(data_of(*stranger), add.b.data());
  EXPECT_EQ(add.launch(executor, stream), 0);
  for (const Setter set : kSetters) {
    expect_error(set(executor, 0, add.a_tensor, add.b.data()), code::kInnerNullptr,
                 "used or destroyed");
  }
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
  aclDestroyTensor(stranger);
}

TEST_F(Addresses, OfTensorsThatAreNotRead) {
  Addition add;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  struct Plan {
    Vector read;
  } plan;
  const Binding bindings[] = {{add.a_tensor, &plan.read}, {add.b_tensor, nullptr}};
  const RunFn<Plan> run = [](const Plan&, void*) { return Status(); };
  ASSERT_TRUE(make_executor("aclnnHalf", plan, run, 0, bindings, &size, &executor).ok());
  EXPECT_EQ(aclSetInputTensorAddr(executor, 1, add.b_tensor, nullptr), 0);
  EXPECT_EQ(tensor::launch("aclnnHalf", nullptr, 0, executor, stream), 0);
  ASSERT_TRUE(make_empty_executor("aclnnEmpty", &size, &executor).ok());
  EXPECT_EQ(aclSetInputTensorAddr(executor, 1, add.b_tensor, add.a.data()), 0);
  EXPECT_EQ(data_of(*add.b_tensor), add.a.data());
  EXPECT_EQ(tensor::launch("aclnnEmpty", nullptr, 0, executor, stream), 0);
  EXPECT_EQ(synchronize(), 0);
}

}  // namespace
}  // namespace npuless::tensor
