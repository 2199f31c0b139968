// Visibility of operator functions.
#ifndef NPULESS_ACLNNOP_ACLNN_UTIL_H_
#define NPULESS_ACLNNOP_ACLNN_UTIL_H_

#define ACLNN_API __attribute__((visibility("default")))

#endif  // NPULESS_ACLNNOP_ACLNN_UTIL_H_
