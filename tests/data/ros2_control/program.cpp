// Both ways through a robot's transmission, one state a line: joint positions, velocities and
// efforts come in; what they are at the actuators, and back at the joints, goes out.
#include TRANSMISSION

#include <cstdio>
#include <memory>

using transmission_interface::ActuatorHandle;
using transmission_interface::JointHandle;
using Maps = ROBOT::Transmission;

template <class Handle, class Names, class Values>
std::vector<Handle> handles(const Names &names, Values &values) {
  static const char *const kinds[] = {"position", "velocity", "effort"};
  std::vector<Handle> result;
  for (std::size_t i = names.size(); i-- > 0;)  // in another order than the robot's
    for (int kind = 0; kind < 3; ++kind)
      result.emplace_back(names[i], kinds[kind], &values[kind][i]);
  return result;
}

int main() {
  double joints[3][Maps::JOINTS], actuators[3][Maps::ACTUATORS];
  const auto joint_handles = handles<JointHandle>(Maps::joint_names(), joints);
  const auto actuator_handles = handles<ActuatorHandle>(Maps::actuator_names(), actuators);
  std::shared_ptr<transmission_interface::Transmission> maps = std::make_shared<Maps>();
  auto some = joint_handles;
  some.pop_back();
  auto others = joint_handles;
  others.emplace_back("nobody", "position", &joints[0][0]);
  for (const auto &wrong : {std::vector<JointHandle>(), some, others}) {
    try {
      maps->configure(wrong, actuator_handles);
      return 1;
    } catch (const transmission_interface::Exception &) {
    }
  }
  maps->configure(joint_handles, actuator_handles);
  if (maps->num_joints() != Maps::JOINTS || maps->num_actuators() != Maps::ACTUATORS) return 1;
  for (;;) {
    for (auto &values : joints)
      for (double &x : values)
        if (std::scanf("%lf", &x) != 1) return 0;
    maps->joint_to_actuator();
    for (auto &values : actuators)
      for (double x : values) std::printf("%.17g ", x);
    maps->actuator_to_joint();
    for (auto &values : joints)
      for (double x : values) std::printf("%.17g ", x);
    std::printf("\n");
  }
}
