# cmake -DHEADER=assets/assets.h -DNAMESPACE=shardscope::assets "-DTEXTS=NAME=FILE|NAME=FILE..." -DOUTPUT=FILE.cpp -P
# writes a C++ file that defines each NAME as a std::string_view of its file's text.
set(code "// Made from assets/ by cmake/EmbedText.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
string(REPLACE "|" ";" texts "${TEXTS}")
foreach(entry IN LISTS texts)
  string(FIND "${entry}" "=" at)
  string(SUBSTRING "${entry}" 0 ${at} name)
  math(EXPR at "${at} + 1")
  string(SUBSTRING "${entry}" ${at} -1 file)
  file(READ "${file}" text)
  string(APPEND code "\nconst std::string_view ${name} = R\"embedded(${text})embedded\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${code}\n}  // namespace ${NAMESPACE}\n")
