#include "runtime/soc.h"

#include <cstdlib>
#include <string>

namespace npuless::runtime {

const char* soc_name() {
  // A copy: later changes of the environment may move the variable's text.
  static const std::string& name = *[] {
    const char* text = std::getenv("NPULESS_SOC_NAME");
    return new std::string(text == nullptr || text[0] == '\0' ? "Ascend910B1" : text);
  }();
  return name.c_str();
}

}  // namespace npuless::runtime
