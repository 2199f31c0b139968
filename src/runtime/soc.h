// Which chip the library says it is.
#pragma once

namespace npuless::runtime {

// "Ascend910B1", or NPULESS_SOC_NAME; read once.
const char* soc_name();

}  // namespace npuless::runtime
