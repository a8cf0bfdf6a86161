// Inverse dynamics over matrices whose sizes are known at run time, for benchmarks/paper/blocks.py.
//
// One recursion (Newton-Euler over nodes) serves both methods that the cluster paper compares: nodes
// are clusters, each with its own G; or nodes are single bodies, and G is one matrix outside.
// As in the authors' library a node's velocity, acceleration and force are vectors of 6 n numbers,
// its inertia and motion subspace dense matrices; transforms are a rotation and an offset a body.
// Spatial vectors are angular before linear, in the axes of their body.
#include <Eigen/Dense>
#include <Eigen/Sparse>

#include <cstdint>
#include <vector>

using Eigen::Map;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
typedef Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> Rows;

struct Transform {  // of a body in its parent: the parent's axes and origin to its own
  Matrix3d rotation;
  Vector3d offset;

  void motion(const double *from, double *to) const {
    Map<const Vector3d> w(from), v(from + 3);
    Map<Vector3d>{to} = rotation.transpose() * w;
    Map<Vector3d>{to + 3} = rotation.transpose() * (v + w.cross(offset));
  }
  void add_force(const double *from, double *to) const {  // to the parent
    Vector3d f = rotation * Map<const Vector3d>(from + 3);
    Map<Vector3d>{to} += rotation * Map<const Vector3d>(from) + offset.cross(f);
    Map<Vector3d>{to + 3} += f;
  }
  Transform after(const Transform &parent) const {
    return {parent.rotation * rotation, parent.offset + parent.rotation * offset};
  }
};

struct Joint {
  int kind;  // 0: free, 1 2 3: revolute about x y z
  int q, v, count;
  Matrix3d rotation;
  Vector3d offset;

  Transform at(const VectorXd &positions) const {
    const double *x = positions.data() + q;
    if (kind == 0) {
      Eigen::Quaterniond turn(x[6], x[3], x[4], x[5]);
      return {turn.toRotationMatrix(), Map<const Vector3d>(x)};
    }
    Vector3d axis = Vector3d::Unit(kind - 1);
    return {rotation * Eigen::AngleAxisd(*x, axis).toRotationMatrix(), offset};
  }
};

struct Body {
  Joint joint;
  int parent_in_node;  // its place there, or -1
  int parent_outside;  // its place in the parent node, or -1: the world
};

struct Node {
  std::vector<Body> bodies;
  int parent;
  int first, count;   // of its velocities
  int spanning;       // of its joints
  MatrixXd inertia, g;
  // of a state
  std::vector<Transform> within, up;  // in the parent inside; in the body outside of the node
  MatrixXd joints, subspace;
  VectorXd v, a, f, bias, joint_v;
};

typedef Eigen::SparseMatrix<double, Eigen::RowMajor> Sparse;
enum Where { INSIDE, DENSE, SPARSE };  // where G stands: in the nodes, or outside

struct Robot {
  std::vector<Node> nodes;
  Sparse position_matrix, sparse;  // of the independent positions, velocities: all joints'
  MatrixXd g;
  Vector3d gravity;
  int nq, nv;
  Where where;
};

static void cross_motion(const double *v, const double *m, double *to) {
  Map<const Vector3d> w(v), u(v + 3), a(m), b(m + 3);
  Map<Vector3d>{to} += w.cross(a);
  Map<Vector3d>{to + 3} += w.cross(b) + u.cross(a);
}

static void cross_force(const double *v, const double *f, double *to) {
  Map<const Vector3d> w(v), u(v + 3), n(f), l(f + 3);
  Map<Vector3d>{to} += w.cross(n) + u.cross(l);
  Map<Vector3d>{to + 3} += w.cross(l);
}

// Velocities y and accelerations z are those of the nodes.
static void newton_euler(Robot &robot, const VectorXd &positions, const VectorXd &y,
                         const VectorXd &z, VectorXd &tau) {
  for (Node &node : robot.nodes) {
    const int n = node.bodies.size();
    node.joints.setZero();
    node.bias.setZero();
    for (int i = 0; i < n; i++) {
      const Body &body = node.bodies[i];
      node.within[i] = body.joint.at(positions);
      const int inside = body.parent_in_node;
      node.up[i] = inside < 0 ? node.within[i] : node.within[i].after(node.up[inside]);
      if (inside >= 0)
        for (int k = 0; k < node.joints.cols(); k++)
          node.within[i].motion(&node.joints(6 * inside, k), &node.joints(6 * i, k));
      const int at = body.joint.v - node.spanning;
      if (body.joint.kind == 0)
        node.joints.block(6 * i, at, 6, 6).setIdentity();
      else
        node.joints(6 * i + body.joint.kind - 1, at) = 1.0;
    }
    node.subspace.noalias() = node.joints * node.g;
    VectorXd own = node.g * y.segment(node.first, node.count);
    node.joint_v.noalias() = node.subspace * y.segment(node.first, node.count);
    VectorXd zero = VectorXd::Zero(6), still = zero;
    zero.tail<3>() = -robot.gravity;
    VectorXd v_up(6 * n), a_up(6 * n);
    for (int i = 0; i < n; i++) {
      const int outside = node.bodies[i].parent_outside;
      const Node *parent = node.parent < 0 ? nullptr : &robot.nodes[node.parent];
      const double *v = parent ? &parent->v[6 * outside] : still.data();
      const double *a = parent ? &parent->a[6 * outside] : zero.data();
      node.up[i].motion(v, &v_up[6 * i]);
      node.up[i].motion(a, &a_up[6 * i]);
    }
    node.v = v_up + node.joint_v;
    for (int i = 0; i < n; i++) {
      const Body &body = node.bodies[i];
      if (body.parent_in_node >= 0)
        node.within[i].motion(&node.bias[6 * body.parent_in_node], &node.bias[6 * i]);
      const int at = body.joint.v - node.spanning, count = body.joint.count;
      VectorXd relative = VectorXd::Zero(6);
      if (body.joint.kind == 0)
        relative = own.segment(at, count);
      else
        relative[body.joint.kind - 1] = own[at];
      cross_motion(&node.v[6 * i], relative.data(), &node.bias[6 * i]);
    }
    node.a = a_up + node.subspace * z.segment(node.first, node.count) + node.bias;
    VectorXd momentum = node.inertia * node.v;
    node.f.noalias() = node.inertia * node.a;
    for (int i = 0; i < n; i++) cross_force(&node.v[6 * i], &momentum[6 * i], &node.f[6 * i]);
  }
  for (int k = int(robot.nodes.size()) - 1; k >= 0; k--) {
    Node &node = robot.nodes[k];
    tau.segment(node.first, node.count).noalias() = node.subspace.transpose() * node.f;
    if (node.parent < 0) continue;
    Node &parent = robot.nodes[node.parent];
    for (size_t i = 0; i < node.bodies.size(); i++)
      node.up[i].add_force(&node.f[6 * i], &parent.f[6 * node.bodies[i].parent_outside]);
  }
}

// Of each body: its node, its parent's place in the node or -1, and in the parent node or -1, its
// joint's kind, first position and velocity; rotation and offset; inertia (6 by 6). Of each node:
// its parent, its first velocity and how many, its first joint velocity and how many. Matrices by
// rows. where: if outside, nodes' velocities are the joints'; else each has its part of g.
extern "C" void *make(int bodies, const int *body, const double *placement, const double *inertia,
                      int nodes, const int *node, int nq, int nv, int positions, int velocities,
                      const double *position_matrix, const double *g, const double *gravity,
                      int where) {
  Robot *robot = new Robot;
  robot->nq = nq, robot->nv = nv, robot->where = Where(where);
  robot->g = Rows(g, velocities, nv);
  robot->sparse = robot->g.sparseView();
  robot->position_matrix = MatrixXd(Rows(position_matrix, positions, nq)).sparseView();
  robot->gravity = Map<const Vector3d>(gravity);
  for (int k = 0; k < nodes; k++, node += 5) {
    Node one;
    one.parent = node[0], one.first = node[1], one.count = node[2], one.spanning = node[3];
    if (where != INSIDE)
      one.g = MatrixXd::Identity(node[4], node[2]);
    else
      one.g = robot->g.block(node[3], node[1], node[4], node[2]);
    std::vector<int> own;
    for (int i = 0; i < bodies; i++)
      if (body[6 * i] == k) own.push_back(i);
    const int n = own.size();
    one.inertia = MatrixXd::Zero(6 * n, 6 * n);
    for (int j = 0; j < n; j++) {
      const int *b = body + 6 * own[j];
      const double *p = placement + 12 * own[j];
      Joint joint{b[3], b[4], b[5], b[3] ? 1 : 6, Rows(p, 3, 3), Map<const Vector3d>(p + 9)};
      one.bodies.push_back({joint, b[1], b[2]});
      one.inertia.block(6 * j, 6 * j, 6, 6) = Rows(inertia + 36 * own[j], 6, 6);
    }
    one.within.resize(n), one.up.resize(n);
    one.joints = MatrixXd::Zero(6 * n, node[4]);
    one.subspace = MatrixXd::Zero(6 * n, node[2]);
    one.v = one.a = one.f = one.bias = one.joint_v = VectorXd::Zero(6 * n);
    robot->nodes.push_back(one);
  }
  return robot;
}

extern "C" void rnea(void *at, int64_t count, const double *q, const double *v, const double *a,
                     double *out) {
  Robot &robot = *static_cast<Robot *>(at);
  for (int64_t i = 0; i < count; i++) {
    Map<const VectorXd> Q(q + i * robot.nq, robot.nq), V(v + i * robot.nv, robot.nv),
        A(a + i * robot.nv, robot.nv);
    Map<VectorXd> result(out + i * robot.nv, robot.nv);
    VectorXd positions = robot.position_matrix * Q, tau(robot.g.rows());
    if (robot.where == INSIDE) {
      VectorXd y = V, z = A, own(robot.nv);
      newton_euler(robot, positions, y, z, own);
      result = own;
    } else if (robot.where == DENSE) {
      VectorXd y = robot.g * V, z = robot.g * A;
      newton_euler(robot, positions, y, z, tau);
      result.noalias() = robot.g.transpose() * tau;
    } else {
      VectorXd y = robot.sparse * V, z = robot.sparse * A;
      newton_euler(robot, positions, y, z, tau);
      result = robot.sparse.transpose() * tau;
    }
  }
}
