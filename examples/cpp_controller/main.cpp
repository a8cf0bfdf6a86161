// A complete controller: motor encoders in, motor torques out, a thousand times a second.
//
// Tello's legs move on a given trajectory by computed torques. Ten motors drive them through gears,
// differentials of rods and four-bars; encoders tell where the motors are, and nothing else. The
// robot is simulated here by the same generated functions; on a machine it takes the place of
// `Plant`.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tello.h"

namespace {

constexpr int NQ = TELLO_NQ, NV = TELLO_NV, NU = TELLO_NU;
constexpr double PI = 3.14159265358979323846;
constexpr double STEP = 1e-3;  // [s]

using Positions = std::array<double, NQ>;
using Velocities = std::array<double, NV>;
using Motors = std::array<double, NU>;
using Map = std::array<double, NV * NU>;  // tau = B u, by rows

// Where each independent velocity stands in q, and which number of u its motor has.
constexpr std::array<int, NV> PLACE = {
    TELLO_Q_TORSO_TO_LEFT_HIP_CLAMP,           TELLO_Q_LEFT_HIP_CLAMP_TO_HIP_ROTOR_1,
    TELLO_Q_LEFT_HIP_CLAMP_TO_HIP_ROTOR_2,     TELLO_Q_LEFT_THIGH_TO_KNEE_ANKLE_ROTOR_1,
    TELLO_Q_LEFT_THIGH_TO_KNEE_ANKLE_ROTOR_2,  TELLO_Q_TORSO_TO_RIGHT_HIP_CLAMP,
    TELLO_Q_RIGHT_HIP_CLAMP_TO_HIP_ROTOR_1,    TELLO_Q_RIGHT_HIP_CLAMP_TO_HIP_ROTOR_2,
    TELLO_Q_RIGHT_THIGH_TO_KNEE_ANKLE_ROTOR_1, TELLO_Q_RIGHT_THIGH_TO_KNEE_ANKLE_ROTOR_2};

// x with A x = b: Gaussian elimination with pivots.
Velocities solve(Map a, Velocities b) {
  static_assert(NV == NU, "as many motors as coordinates");
  for (int k = 0; k < NV; ++k) {
    int pivot = k;
    for (int i = k + 1; i < NV; ++i)
      if (std::abs(a[NU * i + k]) > std::abs(a[NU * pivot + k])) pivot = i;
    for (int j = 0; j < NU; ++j) std::swap(a[NU * k + j], a[NU * pivot + j]);
    std::swap(b[k], b[pivot]);
    for (int i = k + 1; i < NV; ++i) {
      const double factor = a[NU * i + k] / a[NU * k + k];
      for (int j = k; j < NU; ++j) a[NU * i + j] -= factor * a[NU * k + j];
      b[i] -= factor * b[k];
    }
  }
  for (int k = NV - 1; k >= 0; --k) {
    for (int j = k + 1; j < NU; ++j) b[k] -= a[NU * k + j] * b[j];
    b[k] /= a[NU * k + k];
  }
  return b;
}

// The robot: motor torques act, encoders tell how far motors have turned since they were zeroed.
class Plant {
 public:
  Motors encoders() const { return turned_; }

  void act(const Motors &u) {
    const Map map = tello::actuator_map(q_);
    Velocities tau{};
    for (int i = 0; i < NV; ++i)
      for (int n = 0; n < NU; ++n) tau[i] += map[NU * i + n] * u[n];
    const Velocities a = tello::aba(q_, v_, tau);
    Velocities motion;
    for (int i = 0; i < NV; ++i) {
      motion[i] = STEP * (v_[i] + 0.5 * STEP * a[i]);
      v_[i] += STEP * a[i];
    }
    for (int i = 0; i < NV; ++i)
      for (int n = 0; n < NU; ++n) turned_[n] += map[NU * i + n] * motion[i];
    q_ = tello::integrate(q_, motion);
  }

 private:
  Positions q_ = TELLO_NEUTRAL;
  Velocities v_{};
  Motors turned_{};
};

// Where the independent joints shall be at a time: it begins at rest.
struct Target {
  explicit Target(double t) {
    const Positions start = TELLO_NEUTRAL;
    const double w = 2.0 * PI * 0.5;
    for (int i = 0; i < NV; ++i) {
      const double swing = 0.15 * (i % 2 ? 1.0 : -1.0);
      position[i] = start[PLACE[i]] + swing * (1.0 - std::cos(w * t));
      velocity[i] = swing * w * std::sin(w * t);
      acceleration[i] = swing * w * w * std::cos(w * t);
    }
  }
  Velocities position, velocity, acceleration;
};

class Controller {
 public:
  // Torques of the motors; all but the encoders is known.
  Motors operator()(double t, const Motors &encoders) {
    // motors' angles are B^T times those of the independent joints, as B is constant where motors
    // are coordinates or drive one through gears
    const Map map = tello::actuator_map(q_);
    Map transposed;
    for (int i = 0; i < NV; ++i)
      for (int n = 0; n < NU; ++n) transposed[NU * n + i] = map[NU * i + n];
    const Velocities moved = solve(transposed, encoders);
    const Positions start = TELLO_NEUTRAL;
    Velocities v;
    for (int i = 0; i < NV; ++i) {
      v[i] = (moved[i] - moved_[i]) / STEP;
      q_[PLACE[i]] = start[PLACE[i]] + moved[i];
    }
    moved_ = moved;
    // the joints without encoders follow, from where they were a millisecond ago
    const auto closed = tello::close(q_);
    if (!(closed.residual[0] < 1e-9)) {
      std::fprintf(stderr, "loops stay open by %g at %g s\n", closed.residual[0], t);
      return {};
    }
    q_ = closed.closed;

    const Target wanted(t);
    Velocities a;
    error = 0.0;
    for (int i = 0; i < NV; ++i) {
      const double off = wanted.position[i] - q_[PLACE[i]];
      error = std::max(error, std::abs(off));
      a[i] = wanted.acceleration[i] + 60.0 * (wanted.velocity[i] - v[i]) + 900.0 * off;
    }
    return solve(map, tello::rnea(q_, v, a));
  }

  double error = 0.0;  // the largest of a joint's [rad]

 private:
  Positions q_ = TELLO_NEUTRAL;
  Velocities moved_{};
};

}  // namespace

int main() {
  Plant plant;
  Controller controller;
  double worst = 0.0, seconds = 0.0;
  const int ticks = 4000;
  for (int tick = 0; tick < ticks; ++tick) {
    const Motors encoders = plant.encoders();
    const auto begin = std::chrono::steady_clock::now();
    const Motors u = controller(tick * STEP, encoders);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    plant.act(u);
    if (tick > 500) worst = std::max(worst, controller.error);
  }
  std::printf("tracking within %.2g rad; %.1f us a tick\n", worst, 1e6 * seconds / ticks);
  return worst < 5e-3 ? 0 : 1;
}
