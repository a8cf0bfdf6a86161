# find_package(robomodel CONFIG REQUIRED), with -Drobomodel_DIR of what `robomodel --cmake-dir` prints
#
#   robomodel_generate(TARGET ROBOT [FUNCTIONS a b …] [DTYPE float32] [OPTIONS …] [DEPENDS files …])
#
# makes a static library of C functions of a robot: a file, or the name of a shipped robot. It is
# written anew when the file, or one of DEPENDS (meshes, extensions), changes. FUNCTIONS are as of
# `robomodel code`, OPTIONS are any of its options. Names in C begin with the target's.
include_guard(GLOBAL)

if(NOT ROBOMODEL)
  find_program(ROBOMODEL robomodel)
endif()
if(NOT ROBOMODEL)
  set(robomodel_FOUND FALSE)
  set(robomodel_NOT_FOUND_MESSAGE "the command robomodel was not found; give -DROBOMODEL=PATH")
  return()
endif()

function(robomodel_generate target robot)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DTYPE" "FUNCTIONS;OPTIONS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "robomodel_generate: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(options ${arg_OPTIONS})
  if(arg_FUNCTIONS)
    list(JOIN arg_FUNCTIONS "," functions)
    list(APPEND options --functions ${functions})
  endif()
  if(arg_DTYPE)
    list(APPEND options --dtype ${arg_DTYPE})
  endif()
  get_filename_component(file "${robot}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(EXISTS "${file}")
    set(robot "${file}")
    list(APPEND arg_DEPENDS "${file}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_generated")
  set(written "${folder}/${target}.c" "${folder}/${target}.h")
  add_custom_command(
    OUTPUT ${written}
    COMMAND "${ROBOMODEL}" code "${robot}" -o "${folder}" --stem ${target} ${options}
    DEPENDS ${arg_DEPENDS}
    COMMENT "writing the dynamics of ${robot}"
    VERBATIM
  )
  add_library(${target} STATIC ${written})
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_include_directories(${target} PUBLIC "${folder}")
  if(UNIX)
    target_link_libraries(${target} PUBLIC m)
  endif()
endfunction()
