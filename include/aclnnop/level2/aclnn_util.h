// The place of aclnn_util.h in older CANN trees.
#ifndef NPULESS_ACLNNOP_LEVEL2_ACLNN_UTIL_H_
#define NPULESS_ACLNNOP_LEVEL2_ACLNN_UTIL_H_

#include "../aclnn_util.h"

#endif  // NPULESS_ACLNNOP_LEVEL2_ACLNN_UTIL_H_
