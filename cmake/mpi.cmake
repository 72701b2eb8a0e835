# mpi.cmake - finds an MPI library for --backend mpi.
#
# WITH_MPI=auto takes one that is installed (Debian: libopenmpi-dev). on: without one that is an error. off: not even looked
# for. Sanitizers know nothing of it, so their builds go without.
#
# Sets TK_MPI (is there one).
set(WITH_MPI auto CACHE STRING "MPI support: auto, on or off")
set(TK_MPI OFF)
if(NOT WITH_MPI MATCHES "^(auto|on|off|ON|OFF)$")
  message(FATAL_ERROR "WITH_MPI=${WITH_MPI}: expected auto, on or off")
endif()
if(NOT WITH_MPI MATCHES "^(off|OFF)$" AND NOT TK_SANITIZE AND NOT TK_STATIC)
  find_package(MPI QUIET COMPONENTS C)
  set(TK_MPI ${MPI_C_FOUND})
  if(WITH_MPI MATCHES "^(on|ON)$" AND NOT TK_MPI)
    message(FATAL_ERROR "WITH_MPI=on, but no MPI library is installed (Debian: libopenmpi-dev and openmpi-bin)")
  endif()
endif()
