# musl.cmake - a toolchain file for static programs with musl. They need no file of the system that they run on, not even to resolve
# host names. It needs Debian's packages gcc and musl-dev; for another architecture its cross compiler and its musl-dev.
#
#   cmake --toolchain cmake/musl.cmake -DTK_STATIC=ON -DTK_MUSL_ARCH=aarch64 ...     default: this machine's
#
# Debian's own musl-gcc makes no position-independent static programs, and knows one architecture.
if(NOT TK_MUSL_ARCH)
  cmake_host_system_information(RESULT TK_MUSL_ARCH QUERY OS_PLATFORM)
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TK_MUSL_ARCH)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TK_MUSL_ARCH})
set(CMAKE_C_COMPILER ${TK_MUSL_ARCH}-linux-gnu-gcc)
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=include
  OUTPUT_VARIABLE own OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(lib /usr/lib/${TK_MUSL_ARCH}-linux-musl)
set(CMAKE_C_FLAGS_INIT "-nostdinc -isystem /usr/include/${TK_MUSL_ARCH}-linux-musl -isystem ${own} -ffunction-sections -fdata-sections")
# musl gives a thread a stack of 128 KiB unless the program requests more.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostdlib -L${lib} ${lib}/rcrt1.o ${lib}/crti.o -Wl,-z,stack-size=1048576")
set(CMAKE_C_STANDARD_LIBRARIES "-lc -lgcc -lc ${lib}/crtn.o")
