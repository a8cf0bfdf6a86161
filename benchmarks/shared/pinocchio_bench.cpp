// Pinocchio's algorithms over a batch of states, for benchmarks/kernels to time.
//
// Pinocchio is header-only here: its templates are compiled with the flags given, not taken from
// the library in the wheel. The collection holds only the joints of the benchmarks, so that this
// compiles in half a minute; if it changes run time at all, it favours Pinocchio.
#include <pinocchio/multibody.hpp>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
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
  typedef pin::JointModelRevoluteUnalignedTpl<S, O> JointModelRevoluteUnaligned;
  typedef pin::JointModelMimicTpl<S, O, Joints> JointModelMimic;
  typedef boost::variant<JointModelFreeFlyer, JointModelRX, JointModelRY, JointModelRZ,
                         JointModelRevoluteUnaligned, boost::recursive_wrapper<JointModelMimic>>
      JointModelVariant;

  typedef pin::JointDataFreeFlyerTpl<S, O> JointDataFreeFlyer;
  typedef pin::JointDataRevoluteTpl<S, O, 0> JointDataRX;
  typedef pin::JointDataRevoluteTpl<S, O, 1> JointDataRY;
  typedef pin::JointDataRevoluteTpl<S, O, 2> JointDataRZ;
  typedef pin::JointDataRevoluteUnalignedTpl<S, O> JointDataRevoluteUnaligned;
  typedef pin::JointDataMimicTpl<S, O, Joints> JointDataMimic;
  typedef boost::variant<JointDataFreeFlyer, JointDataRX, JointDataRY, JointDataRZ,
                         JointDataRevoluteUnaligned, boost::recursive_wrapper<JointDataMimic>>
      JointDataVariant;
};

typedef Joints<double, 0> Collection;
typedef pin::ModelTpl<double, 0, Joints> Model;
typedef pin::DataTpl<double, 0, Joints> Data;
typedef Eigen::Map<const Eigen::VectorXd> Input;
typedef Eigen::Map<Eigen::VectorXd> Output;
typedef Eigen::Map<Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> OutputMatrix;
typedef Eigen::Map<const Eigen::Vector3d> Vector3;
typedef Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>> Matrix3;

typedef Eigen::Map<Eigen::Matrix<double, 6, -1>> OutputColumns;

struct Robot {
  Model model;
  int joint;
  Data *data;
};

// kinds: 0 free flyer, 1 2 3 revolute about x y z, 4 about axes; matrices by rows; inertias about
// centres of mass; joint: whose Jacobian is asked for
extern "C" void *make(int n, int joint, const double *gravity, const int *parents,
                      const int *kinds, const double *axes, const double *rotations,
                      const double *origins, const double *masses, const double *centres,
                      const double *inertias) {
  Robot *robot = new Robot;
  robot->joint = joint;
  robot->model.gravity.linear() = Vector3(gravity);
  for (int i = 0; i < n; i++) {
    Eigen::Matrix3d rotation = Matrix3(rotations + 9 * i);
    Eigen::Matrix3d inertia = Matrix3(inertias + 9 * i);
    pin::SE3 placement(rotation, Vector3(origins + 3 * i));
    Model::JointModel joint;
    switch (kinds[i]) {
      case 0: joint = Collection::JointModelFreeFlyer(); break;
      case 1: joint = Collection::JointModelRX(); break;
      case 2: joint = Collection::JointModelRY(); break;
      case 3: joint = Collection::JointModelRZ(); break;
      default: joint = Collection::JointModelRevoluteUnaligned(Vector3(axes + 3 * i));
    }
    auto index = robot->model.addJoint(parents[i], joint, placement, std::to_string(i));
    robot->model.appendBodyToJoint(index, pin::Inertia(masses[i], Vector3(centres + 3 * i), inertia),
                                   pin::SE3::Identity());
  }
  robot->data = new Data(robot->model);
  return robot;
}

// what: 0 aba (local convention), 1 aba (world convention), 2 rnea, results of nv numbers;
// 3 derivatives of aba, 4 of rnea, results of three matrices of nv by nv, by rows; 5 crba (local
// convention), 6 crba (world convention), one such matrix; 7 a joint's Jacobian, 6 by nv, by
// columns. Branches that do not meet give zeros that are left unwritten: out holds zeros before.
extern "C" void run(const void *at, int what, int64_t n, const double *q, const double *v,
                    const double *x, double *out) {
  const Robot *robot = static_cast<const Robot *>(at);
  const Model &model = robot->model;
  Data &data = *robot->data;
  const int nq = model.nq, nv = model.nv;
  const int size = what < 3 ? nv : what < 5 ? 3 * nv * nv : what < 7 ? nv * nv : 6 * nv;
  for (int64_t i = 0; i < n; i++) {
    Input Q(q + i * nq, nq), V(v + i * nv, nv), X(x + i * nv, nv);
    double *place = out + i * size;
    Output result(place, nv);
    OutputMatrix by_q(place, nv, nv), by_v(place + nv * nv, nv, nv), by_x(place + 2 * nv * nv, nv, nv);
    OutputColumns columns(place, 6, nv);
    switch (what) {
      case 0: result = pin::aba(model, data, Q, V, X, pin::Convention::LOCAL); break;
      case 1: result = pin::aba(model, data, Q, V, X, pin::Convention::WORLD); break;
      case 2: result = pin::rnea(model, data, Q, V, X); break;
      case 3: pin::computeABADerivatives(model, data, Q, V, X, by_q, by_v, by_x); break;
      case 4:
        pin::computeRNEADerivatives(model, data, Q, V, X, by_q, by_v, by_x);
        by_x.triangularView<Eigen::StrictlyLower>() = by_x.transpose();
        break;
      case 5: case 6:
        pin::crba(model, data, Q, what == 5 ? pin::Convention::LOCAL : pin::Convention::WORLD);
        by_q.triangularView<Eigen::Upper>() = data.M;
        by_q.triangularView<Eigen::StrictlyLower>() = by_q.transpose();
        break;
      default:
        columns.setZero();  // as its documentation asks for
        pin::computeJointJacobian(model, data, Q, robot->joint, columns);
    }
  }
}
