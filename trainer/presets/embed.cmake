# embed.cmake - write a C file that holds the given files as byte arrays.
#   cmake -DOUT=presets.c -DFILES="a.yaml;b.yaml" -P embed.cmake
set(arrays "")
set(rows "")
list(SORT FILES)
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME_WE)
  string(MAKE_C_IDENTIFIER "${name}" id)
  file(READ "${path}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "static const char ${id}[] = {\n${bytes}0};\n\n")
  string(APPEND rows "    {\"${name}\", ${id}, sizeof(${id}) - 1},\n")
endforeach()
file(WRITE "${OUT}.new" "/* Generated from trainer/presets. */
#include \"trainer/presets/presets.h\"

${arrays}const struct preset presets[] = {
${rows}    {0}};
")
file(COPY_FILE "${OUT}.new" "${OUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUT}.new")
file(TOUCH "${OUT}")
