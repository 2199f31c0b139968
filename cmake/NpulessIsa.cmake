# npuless_isa_sources(<target> [PORTABLE f] [AVX2 f] [AVX512 f] [AVX512_BF16 f])
# adds the per-ISA files of a kernel family with their flags. They are the only files compiled
# beyond the baseline, and -O3 since they are all loops.
set(NPULESS_FLAGS_AVX2 -mavx2 -mfma -mf16c)
if(NPULESS_EMULATE_AVX512)
  set(NPULESS_FLAGS_AVX512 ${NPULESS_FLAGS_AVX2} -Wno-conversion -Wno-ignored-attributes -Wno-psabi)
  set(NPULESS_FLAGS_AVX512_BF16 ${NPULESS_FLAGS_AVX512})
else()
  # GCC 12 takes the deliberately undefined registers of its own intrinsics for a mistake.
  set(NPULESS_FLAGS_AVX512 ${NPULESS_FLAGS_AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
                           -mprefer-vector-width=512 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  set(NPULESS_FLAGS_AVX512_BF16 ${NPULESS_FLAGS_AVX512} -mavx512bf16)
endif()
set(NPULESS_FLAGS_PORTABLE "")

# Sanitizers choose their own, see NpulessOptions.cmake.
if(NOT NPULESS_SANITIZE)
  set(NPULESS_LOOP_FLAGS -O3)
endif()

function(npuless_isa_sources target)
  cmake_parse_arguments(ARG "" "PORTABLE;AVX2;AVX512;AVX512_BF16" "" ${ARGN})
  foreach(isa PORTABLE AVX2 AVX512 AVX512_BF16)
    if(NOT ARG_${isa})
      continue()
    endif()
    if(NOT isa STREQUAL PORTABLE AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH ARG_${isa} BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    target_sources(${target} PRIVATE ${ARG_${isa}})
    # Without TARGET_DIRECTORY a property set here is invisible to a target of another folder.
    set_property(SOURCE ${ARG_${isa}} TARGET_DIRECTORY ${target} APPEND
                 PROPERTY COMPILE_OPTIONS ${NPULESS_LOOP_FLAGS} ${NPULESS_FLAGS_${isa}})
  endforeach()
endfunction()
