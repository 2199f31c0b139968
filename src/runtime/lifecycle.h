// Initialisation: who uses the library, with which configuration.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace npuless::runtime {

// Null: no configuration, the same as the file "{}". Codes: 100002 already initialised with the
// same content (one more reference), 100000 with other content, 100003 no such file, 100006 not a
// JSON object.
Status initialize(const char* config_path);
// Drops all references and destroys what is left of every device. 100037 when it was the last
// thing that happened.
Status finalize();
// Drops one reference, the last one finalises; *remaining is how many are left. 100037 for none.
Status finalize_reference(uint64_t* remaining);

}  // namespace npuless::runtime
