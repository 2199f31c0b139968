/* Part of acl_base.h: sizes of element types, fp16 helpers, data buffers, logging.
 *
 * Functions that return aclError return ACL_SUCCESS or one of the codes in acl/error_codes/. After
 * an error aclGetRecentErrMsg() gives one sentence about it. */
#ifndef NPULESS_ACL_ACL_BASE_RT_H_
#define NPULESS_ACL_ACL_BASE_RT_H_

#include "acl_base_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of one element: 0 for ACL_STRING and ACL_DT_UNDEFINED, 1 for sub-byte integers, 8 for the
 * FLOAT6 and FLOAT4 types and for values that name no type. */
ACL_FUNC_VISIBILITY size_t aclDataTypeSize(aclDataType dataType);

/* Exact for finite values. Infinity and NaN are read as if they were numbers (0x7C00 gives 65536),
 * as CANN does; operators convert by IEEE rules. */
ACL_FUNC_VISIBILITY float aclFloat16ToFloat(aclFloat16 value);
/* Rounds to nearest even. Overflow, infinity and NaN give the largest finite value of that sign
 * (0x7BFF, 0xFBFF), as CANN does. */
ACL_FUNC_VISIBILITY aclFloat16 aclFloatToFloat16(float value);

/* A pair of address and size in bytes; owns only itself, never the memory. */
typedef struct aclDataBuffer aclDataBuffer;

/* NULL when out of memory. `data` may be NULL. */
ACL_FUNC_VISIBILITY aclDataBuffer* aclCreateDataBuffer(void* data, size_t size);
/* NULL: 100000. */
ACL_FUNC_VISIBILITY aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer);
/* Replaces address and size. dataBuffer NULL: 100000. */
ACL_FUNC_VISIBILITY aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data,
                                                 size_t size);
/* NULL for a NULL buffer. */
ACL_FUNC_VISIBILITY void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer);
/* Size in bytes, 0 for a NULL buffer. */
ACL_FUNC_VISIBILITY size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer);
/* The size cut to 32 bits; aclGetDataBufferSizeV2 replaces it. */
ACL_FUNC_VISIBILITY uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer);

/* Writes one printf-style line to the library's log; use ACL_APP_LOG. */
ACL_FUNC_VISIBILITY void aclAppLog(aclLogLevel level, const char* func, const char* file,
                                   uint32_t line, const char* fmt, ...);

/* ACL_APP_LOG(level, fmt, ...) logs with the place of the call. */
#define ACL_APP_LOG(level, ...) aclAppLog((level), __func__, __FILE__, __LINE__, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_ACL_ACL_BASE_RT_H_ */
