# Compile options of every target, carried by two interface libraries:
#   npuless_options        language level, warnings, sanitizers
#   npuless_internal       what the library's own sources and white-box tests add
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(npuless_options INTERFACE)
target_compile_options(npuless_options INTERFACE -Wall -Wextra -Wconversion
                                                 $<$<BOOL:${NPULESS_WERROR}>:-Werror>)
if(NPULESS_SANITIZE)
  # A C program may pass any integer where the API has an enumeration, and gets a code for it.
  # -O1: instrumented code compiles several times faster so, and what it finds is the same.
  target_compile_options(npuless_options INTERFACE -O1 -fsanitize=${NPULESS_SANITIZE}
                                                   -fno-sanitize=enum
                                                   -fno-omit-frame-pointer
                                                   -fno-sanitize-recover=all)
  target_link_options(npuless_options INTERFACE -fsanitize=${NPULESS_SANITIZE})
  # Sanitizers need their own standard library hooks resolved at load time.
  set(NPULESS_NO_UNDEFINED "")
else()
  set(NPULESS_NO_UNDEFINED -Wl,-z,defs)
endif()

add_library(npuless_internal INTERFACE)
target_compile_features(npuless_internal INTERFACE cxx_std_20)
# -ffp-contract=off: a sum is bit-identical on every ISA level only if no compiler fuses it.
target_compile_options(npuless_internal INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden
                                                  -ffp-contract=off)
target_compile_definitions(
  npuless_internal INTERFACE FUNC_VISIBILITY
                             $<$<BOOL:${NPULESS_EMULATE_AVX512}>:NPULESS_EMULATE_AVX512>)
target_include_directories(
  npuless_internal INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/aclnnop
                             ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/ops)
target_link_libraries(npuless_internal INTERFACE npuless_options)
