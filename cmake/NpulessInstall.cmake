# Installs a CANN root: the layout, library names and environment scripts that programs written
# against CANN look for. Everything in it is relative, so the root may be moved.
#
#   <prefix>/set_env.sh, bin/setenv.bash        environment
#   <prefix>/<arch>-linux/{include,lib64}       headers and libraries
#   <prefix>/{include,lib64}                    links to the two
#   <prefix>/opp/lib64                          link to lib64, for -L$ASCEND_OPP_PATH/lib64
#   <prefix>/share/info/<package>/version.info  versions
#   <prefix>/share/cmake/npuless                find_package(npuless); Debian's CMake skips lib64
include(CMakePackageConfigHelpers)

set(NPULESS_ROOT_ARCH ${CMAKE_SYSTEM_PROCESSOR}-linux)
set(NPULESS_ROOT_INCLUDE ${NPULESS_ROOT_ARCH}/include)
set(NPULESS_ROOT_LIB ${NPULESS_ROOT_ARCH}/lib64)
set(NPULESS_ROOT_STAGE ${PROJECT_BINARY_DIR}/root)

install(TARGETS npuless LIBRARY DESTINATION ${NPULESS_ROOT_LIB})
install(DIRECTORY include/ DESTINATION ${NPULESS_ROOT_INCLUDE} FILES_MATCHING PATTERN "*.h")
# Operator headers include "aclnn_util.h", and CANN has it beside its level-2 operators too.
install(FILES include/aclnnop/aclnn_util.h DESTINATION ${NPULESS_ROOT_INCLUDE}/aclnnop/level2)

# Links are made here and copied as links. One real library under CANN's names: its soname is what
# a program records, so linking several of the names loads it once.
function(npuless_install_link name target destination)
  file(MAKE_DIRECTORY ${NPULESS_ROOT_STAGE}/${destination})
  set(link ${NPULESS_ROOT_STAGE}/${destination}/${name})
  file(CREATE_LINK ${target} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${destination})
endfunction()

foreach(name ascendcl acl_rt nnopbase opapi opapi_math opapi_nn opapi_transformer)
  npuless_install_link(lib${name}.so libnpuless.so.1 ${NPULESS_ROOT_LIB})
endforeach()
npuless_install_link(include ${NPULESS_ROOT_INCLUDE} .)
npuless_install_link(lib64 ${NPULESS_ROOT_LIB} .)
npuless_install_link(lib64 ../lib64 opp)

install(FILES ${PROJECT_SOURCE_DIR}/scripts/set_env.sh DESTINATION .)
install(FILES ${PROJECT_SOURCE_DIR}/scripts/setenv.bash DESTINATION bin)

# Those that aclsysGetCANNVersion can name, whatever of them exists here, and the operators' own.
foreach(package cann runtime compiler hccl toolkit opp opp_kernel driver opbase ops_math ops_nn
                ops_transformer)
  set(info ${NPULESS_ROOT_STAGE}/share/info/${package}/version.info)
  file(CONFIGURE OUTPUT ${info} CONTENT "Version=@PROJECT_VERSION@\n" @ONLY)
  install(FILES ${info} DESTINATION share/info/${package})
endforeach()

configure_file(cmake/npulessConfig.cmake.in ${NPULESS_ROOT_STAGE}/npulessConfig.cmake @ONLY)
write_basic_package_version_file(${NPULESS_ROOT_STAGE}/npulessConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${NPULESS_ROOT_STAGE}/npulessConfig.cmake
              ${NPULESS_ROOT_STAGE}/npulessConfigVersion.cmake
        DESTINATION share/cmake/npuless)
