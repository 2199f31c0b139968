/* Part of the CANN header tree; registering an external allocator, which it would declare, is not
 * offered here. */
#ifndef NPULESS_ACL_ACL_RT_ALLOCATOR_H_
#define NPULESS_ACL_ACL_RT_ALLOCATOR_H_

#endif /* NPULESS_ACL_ACL_RT_ALLOCATOR_H_ */
