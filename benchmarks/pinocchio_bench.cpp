// Pinocchio's algorithms over a batch of states, for benchmarks/kernels.py to time.
//
// Pinocchio is header-only here: its templates are compiled with the flags given, not taken from
// the library in the wheel. The collection holds only the joints of the benchmarks, so that this
// compiles in half a minute; if it changes run time at all, it favours Pinocchio.
#include <pinocchio/multibody.hpp>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <cstdint>
#include <string>

namespace pin = pinocchio;

template <typename S, int O>
struct Joints {
  typedef S Scalar;
  static constexpr int Options = O;

  typedef pin::JointModelFreeFlyerTpl<S, O> JointModelFreeFlyer;
  typedef pin::JointModelRevoluteTpl<S, O, 0> JointModelRX;
  typedef pin::JointModelRevoluteTpl<S, O, 1> JointModelRY;
  typedef pin::JointModelRevoluteTpl<S, O, 2> JointModelRZ;
  typedef pin::JointModelMimicTpl<S, O, Joints> JointModelMimic;
  typedef boost::variant<JointModelFreeFlyer, JointModelRX, JointModelRY, JointModelRZ,
                         boost::recursive_wrapper<JointModelMimic>>
      JointModelVariant;

  typedef pin::JointDataFreeFlyerTpl<S, O> JointDataFreeFlyer;
  typedef pin::JointDataRevoluteTpl<S, O, 0> JointDataRX;
  typedef pin::JointDataRevoluteTpl<S, O, 1> JointDataRY;
  typedef pin::JointDataRevoluteTpl<S, O, 2> JointDataRZ;
  typedef pin::JointDataMimicTpl<S, O, Joints> JointDataMimic;
  typedef boost::variant<JointDataFreeFlyer, JointDataRX, JointDataRY, JointDataRZ,
                         boost::recursive_wrapper<JointDataMimic>>
      JointDataVariant;
};

typedef Joints<double, 0> Collection;
typedef pin::ModelTpl<double, 0, Joints> Model;
typedef pin::DataTpl<double, 0, Joints> Data;
typedef Eigen::Map<const Eigen::VectorXd> Input;
typedef Eigen::Map<Eigen::VectorXd> Output;
typedef Eigen::Map<const Eigen::Vector3d> Vector3;
typedef Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> Matrix3;

struct Robot {
  Model model;
  Data *data;
};

// kinds: 0 free flyer, 1 2 3 revolute about x y z; matrices by rows; inertias about centres of mass
extern "C" void *make(int n, const int *parents, const int *kinds, const double *rotations,
                      const double *origins, const double *masses, const double *centres,
                      const double *inertias) {
  Robot *robot = new Robot;
  for (int i = 0; i < n; i++) {
    Eigen::Matrix3d rotation = Matrix3(rotations + 9 * i);
    Eigen::Matrix3d inertia = Matrix3(inertias + 9 * i);
    pin::SE3 placement(rotation, Vector3(origins + 3 * i));
    Model::JointModel joint;
    switch (kinds[i]) {
      case 0: joint = Collection::JointModelFreeFlyer(); break;
      case 1: joint = Collection::JointModelRX(); break;
      case 2: joint = Collection::JointModelRY(); break;
      default: joint = Collection::JointModelRZ();
    }
    auto index = robot->model.addJoint(parents[i], joint, placement, std::to_string(i));
    robot->model.appendBodyToJoint(index, pin::Inertia(masses[i], Vector3(centres + 3 * i), inertia),
                                   pin::SE3::Identity());
  }
  robot->data = new Data(robot->model);
  return robot;
}

// what: 0 aba (local convention), 1 aba (world convention), 2 rnea
extern "C" void run(const void *at, int what, int64_t n, const double *q, const double *v,
                    const double *x, double *out) {
  const Robot *robot = static_cast<const Robot *>(at);
  const Model &model = robot->model;
  Data &data = *robot->data;
  const int nq = model.nq, nv = model.nv;
  for (int64_t i = 0; i < n; i++) {
    Input Q(q + i * nq, nq), V(v + i * nv, nv), X(x + i * nv, nv);
    Output result(out + i * nv, nv);
    switch (what) {
      case 0: result = pin::aba(model, data, Q, V, X, pin::Convention::LOCAL); break;
      case 1: result = pin::aba(model, data, Q, V, X, pin::Convention::WORLD); break;
      default: result = pin::rnea(model, data, Q, V, X);
    }
  }
}
