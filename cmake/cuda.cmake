# cuda.cmake - finds or fetches the CUDA toolkit, and compiles kernels with it.
#
# WITH_CUDA=auto uses an installed toolkit, else downloads NVIDIA's wheels (scripts/cuda-kit.py) into build/tools, where all
# presets share them. If that fails, cmake prints a line and builds the trainer for CPUs only; with WITH_CUDA=on it stops with
# an error. off: cmake looks for no toolkit.
#
# CMake's own CUDA language is not used: it knows neither the wheels' layout nor, at Debian's version, CUDA 13.
#
# Sets TK_CUDA (there is a toolkit) and TK_CUDA_KERNELS (this build compiles kernels; builds with sanitizers do not, since
# sanitizers cannot check them). Targets: tk_cuda_headers, tk_cudart (the runtime, static: it loads the driver when first used).
set(WITH_CUDA auto CACHE STRING "GPU support: auto, on or off")
set(TK_CUDA_MIN 12.8) # the first that knows sm_100
set(TK_NCCL_MIN 2.30) # of the header: its windows and its errors; the library's version is checked at run time
set(TK_CUDA_ARCHITECTURES 80 90 100 CACHE STRING "GPU architectures; those the compiler does not know are left out")
set(TK_CUDA_KIT "${PROJECT_SOURCE_DIR}/build/tools/cuda" CACHE PATH "where the fetched toolkit lies")

function(tk_cuda_installed)
  find_package(CUDAToolkit ${TK_CUDA_MIN} QUIET)
  find_path(TK_NCCL_INCLUDE nccl.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(TK_CUBLAS_INCLUDE cublasLt.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT TARGET CUDA::cudart_static OR NOT TK_NCCL_INCLUDE OR NOT TK_CUBLAS_INCLUDE)
    return()
  endif()
  file(STRINGS "${TK_NCCL_INCLUDE}/nccl.h" nccl REGEX "^#define NCCL_(MAJOR|MINOR) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]+" "" nccl "${nccl}")
  string(REPLACE ";" "." nccl "${nccl}")
  if(nccl VERSION_LESS TK_NCCL_MIN)
    message(STATUS "CUDA: ${TK_NCCL_INCLUDE}/nccl.h is NCCL ${nccl}, expected ${TK_NCCL_MIN} or newer")
    return()
  endif()
  get_target_property(runtime CUDA::cudart_static IMPORTED_LOCATION)
  set(TK_NVCC "${CUDAToolkit_NVCC_EXECUTABLE}" PARENT_SCOPE)
  set(TK_CUDART "${runtime}" PARENT_SCOPE)
  set(TK_CUDA_INCLUDE ${CUDAToolkit_INCLUDE_DIRS} ${TK_NCCL_INCLUDE} ${TK_CUBLAS_INCLUDE} PARENT_SCOPE)
endfunction()

function(tk_cuda_fetched)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(TK_CUDA_WHY "no toolkit is installed, and the pinned one is for x86-64" PARENT_SCOPE)
    return()
  endif()
  find_program(TK_PYTHON python3)
  execute_process(COMMAND "${TK_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/cuda-kit.py" compiler "${TK_CUDA_KIT}"
    RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET ERROR_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(TK_CUDA_WHY "no toolkit is installed, and fetching one failed: ${why}" PARENT_SCOPE)
    return()
  endif()
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/cuda-wheels.txt)
  set(TK_NVCC "${TK_CUDA_KIT}/bin/nvcc" PARENT_SCOPE)
  set(TK_CUDART "${TK_CUDA_KIT}/lib/libcudart_static.a" PARENT_SCOPE)
  set(TK_CUDA_INCLUDE "${TK_CUDA_KIT}/include" PARENT_SCOPE)
endfunction()

# -gencode for every architecture the compiler knows, and the newest one's portable form (PTX) for GPUs to come: a driver takes it
# if it is as new as the compiler.
function(tk_cuda_targets)
  execute_process(COMMAND "${TK_NVCC}" --list-gpu-arch RESULT_VARIABLE failed OUTPUT_VARIABLE known)
  set(flags)
  foreach(arch IN LISTS TK_CUDA_ARCHITECTURES)
    if(known MATCHES "compute_${arch}(\n|$)")
      list(APPEND flags -gencode "arch=compute_${arch},code=sm_${arch}")
      set(newest ${arch})
    endif()
  endforeach()
  if(failed OR NOT flags)
    set(TK_CUDA_WHY "${TK_NVCC} does not run, or knows none of ${TK_CUDA_ARCHITECTURES}" PARENT_SCOPE)
    return()
  endif()
  list(APPEND flags -gencode "arch=compute_${newest},code=compute_${newest}")
  set(TK_CUDA_TARGETS "${flags}" PARENT_SCOPE)
endfunction()

set(TK_CUDA OFF)
set(TK_CUDA_KERNELS OFF)
if(NOT WITH_CUDA MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "WITH_CUDA=${WITH_CUDA}: expected auto, on or off")
endif()
if(NOT WITH_CUDA STREQUAL "off")
  tk_cuda_installed()
  if(NOT TK_NVCC)
    tk_cuda_fetched()
  endif()
  if(TK_NVCC)
    tk_cuda_targets()
  endif()
  if(TK_CUDA_TARGETS)
    set(TK_CUDA ON)
    message(STATUS "CUDA: ${TK_NVCC}")
  elseif(WITH_CUDA STREQUAL "on")
    message(FATAL_ERROR "WITH_CUDA=on: ${TK_CUDA_WHY}")
  else()
    message(STATUS "CUDA: none, the trainer is built for CPUs alone (${TK_CUDA_WHY})")
  endif()
endif()
if(TK_CUDA)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT TK_SANITIZE)
    set(TK_CUDA_KERNELS ON)
  endif()
  add_library(tk_cuda_headers INTERFACE)
  target_include_directories(tk_cuda_headers SYSTEM INTERFACE ${TK_CUDA_INCLUDE})
  add_library(tk_cudart INTERFACE)
  target_link_libraries(tk_cudart INTERFACE tk_cuda_headers "${TK_CUDART}" Threads::Threads rt ${CMAKE_DL_LIBS})
endif()

# tk_cuda_library(NAME DIR folder SOURCES a.cu ... DEPS lib ...): as tk_library, of kernels. What a .cu file offers is
# extern "C": it is linked into C, and so has neither exceptions nor type information.
set(TK_NVCC_EXTRA "" CACHE STRING "more options for nvcc")
set(TK_NVCC_FLAGS -std=c++17 -O3 -lineinfo --Werror all-warnings
    -Xcompiler=-Wall,-Wextra,-Werror,-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics)
function(tk_cuda_library name)
  cmake_parse_arguments(A "" "DIR" "SOURCES;DEPS" ${ARGN})
  set(includes "$<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>")
  set(objects)
  foreach(source IN LISTS A_SOURCES)
    set(from "${PROJECT_SOURCE_DIR}/${A_DIR}/${source}")
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.dir/${source}.o")
    get_filename_component(folder "${object}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${object}" DEPENDS "${from}" DEPFILE "${object}.d"
      COMMAND "${TK_NVCC}" -ccbin g++ ${TK_NVCC_FLAGS} ${TK_NVCC_EXTRA} ${TK_CUDA_TARGETS} "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>"
              -MD -MF "${object}.d" -MT "${object}" -c "${from}" -o "${object}"
      COMMENT "Compiling kernels ${A_DIR}/${source}" COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_library(${name} STATIC ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(${name} PUBLIC ${A_DEPS} tk_cuda_headers)
endfunction()
