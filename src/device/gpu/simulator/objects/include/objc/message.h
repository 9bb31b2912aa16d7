#pragma once
// In the place of Apple's <objc/message.h>. metal-cpp sends every message in one template,
//   template <typename _Ret, typename... _Args> _Ret sendMessage(const void*, SEL, _Args...),
// which casts the address of objc_msgSend. Here that name becomes a function that knows both types, so the stand-in
// needs no assembly, and each message is compared with the signature of the method that answers it.
#include <objc/runtime.h>
#include "device/gpu/simulator/objects/send.h"

#define objc_msgSend russet::objects::Send<_Ret, _Args...>::message
#define objc_msgSend_fpret russet::objects::Send<_Ret, _Args...>::message
#define objc_msgSend_stret russet::objects::Send<_Ret, _Args...>::message_into
