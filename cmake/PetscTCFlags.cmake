# Flags of our own code (not of those who link with us): target petsctc_flags
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)

add_library(petsctc_flags INTERFACE)
target_compile_options(petsctc_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(PETSCTC_WERROR)
  target_compile_options(petsctc_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
endif()
# Line tables make up most of a kernel object: only in Debug
target_compile_options(petsctc_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:Debug>>:-lineinfo>)
# CUDA unpacks the code of a file when its first kernel is launched: packed for size, to a quarter, a first solve takes 4 to 10 ms longer (nvcc 12.8 and newer)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  if(PETSCTC_QUICK)
    set(packed size)
  else()
    set(packed speed)
  endif()
  target_compile_options(petsctc_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=${packed}>)
endif()

if(PETSCTC_QUICK AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.9) # which has that flag
  target_compile_options(petsctc_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Ofc=max>)
endif()

# The largest kernels take minutes for each GPU architecture: two architectures side by side
target_compile_options(petsctc_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--threads=2>)

if(PETSCTC_SANITIZE)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_compile_options(petsctc_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:${sanitize}>)
  target_link_options(petsctc_flags INTERFACE -fsanitize=address,undefined)
endif()
