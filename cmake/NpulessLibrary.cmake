# The real library. Its exports are the version script's names; tests compare them with the headers.
add_library(npuless SHARED)
add_library(npuless::npuless ALIAS npuless)
target_link_libraries(npuless PRIVATE npuless_objects)
target_include_directories(
  npuless INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/aclnn
                    ${PROJECT_SOURCE_DIR}/include/aclnnop)
set_target_properties(
  npuless PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1 LINKER_LANGUAGE CXX
                     LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/npuless.map)
# nodelete: a stream's worker may still run when a program calls dlclose.
target_link_options(npuless PRIVATE -Wl,-z,nodelete
                                    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/npuless.map
                                    ${NPULESS_NO_UNDEFINED})
