# torchkeeper.cmake - how every folder becomes a library, a program or a test.
#
# Each folder is one static library. Its headers are reached as "folder/name.h" and only by targets that link it:
# the include root of a library holds a single link to its own folder, so code with a dependency that is not in DEPS
# does not compile.

# Compiler flags: OpenSSF's hardening guide for C; flags that gcc 12 and clang 14 do not have are set for compilers that have them.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fstrict-flex-arrays=3 TK_STRICT_FLEX_ARRAYS) # gcc 13, clang 16
add_library(tk_flags INTERFACE)
target_compile_definitions(tk_flags INTERFACE _GNU_SOURCE)
target_compile_options(tk_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wmissing-prototypes -Wstrict-prototypes -Wvla
    -Wformat=2 -Wimplicit-fallthrough -Wswitch-enum -Wpointer-arith -Wundef
    -Werror=format-security -Werror=implicit -Werror=incompatible-pointer-types -Werror=int-conversion
    -fno-common -fno-strict-aliasing -fno-delete-null-pointer-checks
    -fstack-protector-strong -ftrivial-auto-var-init=zero
    # Messages and paths are bounded on purpose: snprintf's cut is the bound, not a mistake.
    $<$<C_COMPILER_ID:GNU>:-Wjump-misses-init -Wtrampolines -Wno-format-truncation>
    $<$<C_COMPILER_ID:Clang>:-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang>
    $<$<C_COMPILER_ID:Clang>:-Wno-unused-command-line-argument>)
# A cancelled thread runs its cleanups; musl does not unwind it (cmake/musl.cmake).
if(NOT TK_MUSL_ARCH)
  target_compile_options(tk_flags INTERFACE -fexceptions)
endif()
# With it UndefinedBehaviorSanitizer would not report a signed overflow.
if(NOT TK_SANITIZE MATCHES "undefined")
  target_compile_options(tk_flags INTERFACE -fno-strict-overflow)
endif()
if(TK_WERROR)
  target_compile_options(tk_flags INTERFACE -Werror)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(tk_flags INTERFACE -fcf-protection=full)
endif()
target_compile_options(tk_flags INTERFACE -fstack-clash-protection)
if(TK_STRICT_FLEX_ARRAYS)
  target_compile_options(tk_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fstrict-flex-arrays=3>)
endif()
target_link_options(tk_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(TK_SANITIZE)
  # gcc's own documentation: with sanitizers -Wmaybe-uninitialized has false positives. The other builds have it.
  target_compile_options(tk_flags INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_options(tk_flags INTERFACE -fsanitize=${TK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tk_flags INTERFACE -fsanitize=${TK_SANITIZE})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(tk_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  # The same bytes wherever it is built: debug information names files relative to the top of the tree. Later options win.
  target_compile_options(tk_flags INTERFACE
      $<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>
      $<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=./build>)
endif()
if(TK_COVERAGE)
  # Counts may lie in a mapped file while a program runs (scripts/coverage.sh).
  target_compile_options(tk_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation")
  target_link_options(tk_flags INTERFACE -fprofile-instr-generate)
endif()

# tk_library(NAME DIR folder SOURCES a.c ... DEPS lib ...)
#   folder is relative to the top of the tree and is also the include prefix.
function(tk_library name)
  cmake_parse_arguments(A "" "DIR" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  list(TRANSFORM A_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/${A_DIR}/")
  add_library(${name} STATIC ${A_SOURCES})
  set(root "${PROJECT_BINARY_DIR}/include-roots/${name}")
  get_filename_component(parent "${root}/${A_DIR}" DIRECTORY)
  file(MAKE_DIRECTORY "${parent}")
  if(NOT EXISTS "${root}/${A_DIR}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${A_DIR}" "${root}/${A_DIR}" SYMBOLIC)
  endif()
  target_include_directories(${name} PUBLIC "${root}")
  target_link_libraries(${name} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS} tk_flags)
endfunction()

# tk_embed(NAME HEADER folder/texts.h [TABLE declaration] FILES ...): these files become arrays in the library NAME (cmake/embed.cmake).
function(tk_embed name)
  cmake_parse_arguments(A "" "HEADER;TABLE" "FILES" ${ARGN})
  set(made "${CMAKE_CURRENT_BINARY_DIR}/${name}_texts.c")
  add_custom_command(
    OUTPUT "${made}"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${made}" "-DHEADER=${A_HEADER}" "-DTABLE=${A_TABLE}" "-DFILES=${A_FILES}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS ${A_FILES} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
    COMMENT "Embedding the texts of ${name}"
    VERBATIM)
  target_sources(${name} PRIVATE "${made}")
endfunction()

# tk_program(NAME SOURCES main.c ... DEPS lib ...): sources relative to the calling folder.
function(tk_program name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPS} tk_flags)
  if(TK_STATIC)
    target_link_options(${name} PRIVATE -static-pie -Wl,--gc-sections)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

# Tests of what threads share: those with the label "threads", run under ThreadSanitizer as well.
add_custom_target(threads_tests)

# tk_test(name DEPS lib ... [SOURCES extra.c ...]): builds test_<name>.c of the calling folder as a cmocka program.
# The ctest name carries the path, e.g. unit/common/test_buf.
function(tk_test name)
  cmake_parse_arguments(A "" "" "DEPS;SOURCES;ARGS;LABELS" ${ARGN})
  file(RELATIVE_PATH rel "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" target "${rel}_test_${name}")
  add_executable(${target} test_${name}.c ${A_SOURCES})
  target_link_libraries(${target} PRIVATE ${A_DEPS} tk_flags ${CMOCKA_LIBRARIES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit")
  target_compile_definitions(${target} PRIVATE TK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if("threads" IN_LIST A_LABELS)
    add_dependencies(threads_tests ${target})
  endif()
  add_test(NAME ${rel}/test_${name} COMMAND ${target} ${A_ARGS})
  set_tests_properties(${rel}/test_${name} PROPERTIES LABELS "unit;${A_LABELS}" SKIP_RETURN_CODE 77)
endfunction()

# tk_needs(test target ...): what a test that is a script needs built, as a target of the test's name, by which `make check T=` builds.
function(tk_needs test)
  string(REPLACE "/" "_" target "${test}")
  add_custom_target(${target})
  foreach(need ${ARGN})
    if(TARGET ${need})
      add_dependencies(${target} ${need})
    endif()
  endforeach()
endfunction()

# Which tests run side by side (scripts/side-by-side.sh). Call these in the folder that adds the tests. A test in none of them is short.
# tk_busy(test ...): each keeps a core busy for seconds. As many run at once as there are cores, and they start before all others.
function(tk_busy)
  set_property(TEST ${ARGN} PROPERTY RESOURCE_GROUPS "cores:1")
  set_property(TEST ${ARGN} PROPERTY COST 30)
endfunction()

# tk_long(test ...): the busy tests that take longest. They start first, so that none of them runs alone at the end.
function(tk_long)
  set_property(TEST ${ARGN} PROPERTY COST 40)
endfunction()

# tk_slow(test ...): `make test-long` runs them, `make test` does not.
function(tk_slow)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS long)
endfunction()

# tk_once(test ...): `make test` runs them only in the sanitized build, with the same checks. Other tests of the same code run in the
# release build and find what only that build can show. `make test-long` and `make check T=` run these in the release build too.
function(tk_once)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS once)
endfunction()

# tk_waits(test ...): each takes ten seconds or more and mostly waits. They start next, beside the busy ones.
function(tk_waits)
  set_property(TEST ${ARGN} PROPERTY COST 20)
endfunction()
