// The interface of ros2_control's header of this name, as far as tests need it.
#pragma once

#include <stdexcept>

namespace transmission_interface {
struct Exception : std::runtime_error {
  using std::runtime_error::runtime_error;
};
}  // namespace transmission_interface
