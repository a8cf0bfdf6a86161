"""A header for ros2_control: a robot's actuators and joints as a ``Transmission`` of that library.

Its maps are the robot's C functions (:mod:`robomodel.interop.c`). With B of `actuator_map`, efforts
of joints are B u, and rates of actuators Bᵀ v; the way back takes the inverse of the same B, so
that both ways keep the power.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.model import Model
from robomodel.model.elements import position_names

FUNCTIONS = (
    "from_actuators",
    "actuator_positions",
    "actuator_velocities",
    "actuator_forces",
    "actuator_map",
    "close",
)
"""The functions that the header calls."""


def transmission_header(model: Model, stem: str) -> str:
    """C++ text of the class ``stem::Transmission``; its joints are the independent ones.

    ValueError: no actuators, or an independent joint with several freedoms but a floating base's.
    """
    joints = _joints(model)
    if not model.actuators:
        raise ValueError(f"'{model.name}' has no actuators for a transmission of ros2_control")
    upper = stem.upper()
    first = 6 if model.floating_base is not None else 0
    where = [position_names(model).index(name) for name in joints]
    text = TEMPLATE
    for mark, value in {
        "@ROBOT@": model.name.replace("*/", "* /"),
        "@STEM@": stem,
        "@UPPER@": upper,
        "@JOINTS@": _texts(joints),
        "@ACTUATORS@": _texts([each.name for each in model.actuators]),
        "@JOINT_COUNT@": str(len(joints)),
        "@WHERE@": ", ".join(map(str, where)),
        "@FIRST@": str(first),
    }.items():
        text = text.replace(mark, value)
    return text


def _joints(model: Model) -> Sequence[str]:
    first = 6 if model.floating_base is not None else 0
    names = model.dof_names[first:]
    several = [name for name in names if name not in model.joint_names]
    if several:
        raise ValueError(
            f"joints of ros2_control have one freedom, '{several[0]}' of '{model.name}' is one of "
            "several"
        )
    return names


def _texts(names: Sequence[str]) -> str:
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return ", ".join(f'"{name}"' for name in quoted)


TEMPLATE = """\
/* Transmission of @ROBOT@ for ros2_control, written by robomodel. C++17, with @STEM@.c.

   Joints are the robot's independent ones. Values are read from and written to the handles that
   configure() was given: positions, velocities and efforts. Each is mapped where joints and
   actuators have handles of it, all of them or none. Ratios turn with positions: efforts and
   velocities without positions are mapped at the last ones. Where linkages do not reach a position,
   what is written is not a number, and the last configuration stays. Nothing is allocated but in
   configure().
*/
#ifndef @UPPER@_TRANSMISSION_HPP
#define @UPPER@_TRANSMISSION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "transmission_interface/exception.hpp"
#include "transmission_interface/transmission.hpp"

#include "@STEM@.h"

namespace @STEM@ {

class Transmission : public transmission_interface::Transmission {
 public:
  static constexpr std::size_t JOINTS = @JOINT_COUNT@;
  static constexpr std::size_t ACTUATORS = @UPPER@_NU;
  using JointValues = std::array<double, JOINTS>;
  using ActuatorValues = std::array<double, ACTUATORS>;
  using Configuration = std::array<double, @UPPER@_NQ>;

  static const std::array<std::string, JOINTS> &joint_names() {
    static const std::array<std::string, JOINTS> names{{@JOINTS@}};
    return names;
  }

  static const std::array<std::string, ACTUATORS> &actuator_names() {
    static const std::array<std::string, ACTUATORS> names{{@ACTUATORS@}};
    return names;
  }

  void configure(
      const std::vector<transmission_interface::JointHandle> &joint_handles,
      const std::vector<transmission_interface::ActuatorHandle> &actuator_handles) override {
    using hardware_interface::HW_IF_EFFORT;
    using hardware_interface::HW_IF_POSITION;
    using hardware_interface::HW_IF_VELOCITY;
    const std::array<const char *, 3> kinds{{HW_IF_POSITION, HW_IF_VELOCITY, HW_IF_EFFORT}};
    bool any = false;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      joints_[kind] = ordered(joint_handles, joint_names(), kinds[kind]);
      actuators_[kind] = ordered(actuator_handles, actuator_names(), kinds[kind]);
      any = any || (!joints_[kind].empty() && !actuators_[kind].empty());
    }
    if (!any) {
      throw transmission_interface::Exception(
          "@STEM@: no interface has handles of all joints and all actuators");
    }
  }

  void actuator_to_joint() override {
    ActuatorValues positions, velocities{}, efforts{};
    @STEM@_actuator_positions(q_.data(), positions.data());
    read(actuators_[POSITION], positions);
    read(actuators_[VELOCITY], velocities);
    read(actuators_[EFFORT], efforts);
    std::array<double, @UPPER@_NV> v;
    JointValues position = none<JointValues>(), velocity = position, effort = position;
    if (move_to(positions, velocities, v)) {
      std::array<double, @UPPER@_NV * @UPPER@_NU> map;
      @STEM@_actuator_map(q_.data(), map.data());
      for (std::size_t i = 0; i < JOINTS; ++i) {
        position[i] = q_[AT[i]];
        velocity[i] = v[FIRST + i];
        effort[i] = 0.0;
        for (std::size_t n = 0; n < ACTUATORS; ++n)
          effort[i] += map[(FIRST + i) * ACTUATORS + n] * efforts[n];
      }
    }
    if (!actuators_[POSITION].empty()) write(position, joints_[POSITION]);
    if (!actuators_[VELOCITY].empty()) write(velocity, joints_[VELOCITY]);
    if (!actuators_[EFFORT].empty()) write(effort, joints_[EFFORT]);
  }

  void joint_to_actuator() override {
    JointValues positions, velocities{}, efforts{};
    for (std::size_t i = 0; i < JOINTS; ++i) positions[i] = q_[AT[i]];
    read(joints_[POSITION], positions);
    read(joints_[VELOCITY], velocities);
    read(joints_[EFFORT], efforts);
    ActuatorValues position = none<ActuatorValues>(), velocity = position, effort = position;
    if (move_to(positions)) {
      std::array<double, @UPPER@_NV> v{}, tau{};
      std::copy(velocities.begin(), velocities.end(), v.begin() + FIRST);
      std::copy(efforts.begin(), efforts.end(), tau.begin() + FIRST);
      @STEM@_actuator_positions(q_.data(), position.data());
      @STEM@_actuator_velocities(q_.data(), v.data(), velocity.data());
      @STEM@_actuator_forces(q_.data(), tau.data(), effort.data());
    }
    if (!joints_[POSITION].empty()) write(position, actuators_[POSITION]);
    if (!joints_[VELOCITY].empty()) write(velocity, actuators_[VELOCITY]);
    if (!joints_[EFFORT].empty()) write(effort, actuators_[EFFORT]);
  }

  std::size_t num_actuators() const override { return ACTUATORS; }
  std::size_t num_joints() const override { return JOINTS; }

  /* The configuration that the last positions were, and one to begin with: linkages stay on its
     branch. */
  const Configuration &configuration() const { return q_; }
  void set_configuration(const Configuration &q) { q_ = q; }

 private:
  enum Kind { POSITION, VELOCITY, EFFORT };
  static constexpr std::size_t FIRST = @FIRST@;  /* of the joints in v */
  static constexpr std::array<std::size_t, JOINTS> AT{{@WHERE@}};  /* of the joints in q */
  static constexpr int PARTS = 64;  /* in which a long way is gone at most */

  template <class Handle, std::size_t N>
  static std::vector<Handle> ordered(const std::vector<Handle> &handles,
                                     const std::array<std::string, N> &names,
                                     const char *interface) {
    std::vector<Handle> result;
    for (const Handle &handle : handles)
      if (std::find(names.begin(), names.end(), handle.get_prefix_name()) == names.end())
        throw transmission_interface::Exception("@STEM@: a handle is of '" +
                                                handle.get_prefix_name() + "', which it has not");
    for (const auto &name : names) {
      const auto at = std::find_if(handles.begin(), handles.end(), [&](const Handle &handle) {
        return handle.get_prefix_name() == name && handle.get_interface_name() == interface &&
               handle;
      });
      if (at != handles.end()) result.push_back(*at);
    }
    if (!result.empty() && result.size() != N)
      throw transmission_interface::Exception(std::string("@STEM@: handles of ") + interface +
                                              " are not of all");
    return result;
  }

  template <class Handle, class Values>
  static void read(const std::vector<Handle> &handles, Values &values) {
    for (std::size_t i = 0; i < handles.size(); ++i) values[i] = handles[i].get_value();
  }

  template <class Values, class Handle>
  static void write(const Values &values, std::vector<Handle> &handles) {
    for (std::size_t i = 0; i < handles.size(); ++i) handles[i].set_value(values[i]);
  }

  template <class Values>
  static Values none() {
    Values values;
    values.fill(std::numeric_limits<double>::quiet_NaN());
    return values;
  }

  /* A way in 1, 2, 4 … equal parts, until Newton's method follows it. */
  template <class Step>
  bool follow(Step step) {
    for (int parts = 1; parts <= PARTS; parts *= 2) {
      Configuration q = q_;
      bool good = true;
      for (int part = 1; good && part <= parts; ++part)
        good = step(static_cast<double>(part) / parts, q);
      if (good) {
        q_ = q;
        return true;
      }
    }
    return false;
  }

  bool move_to(const ActuatorValues &target, const ActuatorValues &velocities,
               std::array<double, @UPPER@_NV> &v) {
    ActuatorValues start;
    @STEM@_actuator_positions(q_.data(), start.data());
    return follow([&](double share, Configuration &q) {
      ActuatorValues positions;
      Configuration next;
      for (std::size_t n = 0; n < ACTUATORS; ++n)
        positions[n] = share < 1.0 ? start[n] + share * (target[n] - start[n]) : target[n];
      @STEM@_from_actuators(positions.data(), velocities.data(), q.data(), next.data(), v.data());
      q = next;
      return !std::isnan(q[AT[0]]);
    });
  }

  bool move_to(const JointValues &target) {
    const Configuration start = q_;
    return follow([&](double share, Configuration &q) {
      Configuration wanted = q;
      double residual = 0.0;
      for (std::size_t i = 0; i < JOINTS; ++i) {
        const double from = start[AT[i]];
        wanted[AT[i]] = share < 1.0 ? from + share * (target[i] - from) : target[i];
      }
      @STEM@_close(wanted.data(), q.data(), &residual);
      return residual < 1e-12;
    });
  }

  std::array<std::vector<transmission_interface::JointHandle>, 3> joints_;
  std::array<std::vector<transmission_interface::ActuatorHandle>, 3> actuators_;
  Configuration q_ = @UPPER@_NEUTRAL;
};

}  // namespace @STEM@

#endif  // @UPPER@_TRANSMISSION_HPP
"""
