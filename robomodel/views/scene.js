// Solids in a canvas by WebGL, turned by dragging; lines and arrows on a canvas above, a grid below.
class Scene {
  // stage: an element that the canvases fill. data: solids (link, colour, at, faces), size, centre,
  // ground (height of the grid), turn, tilt, far (of the camera). grab(x, y): true where a drag that
  // starts there is not the camera's; then drag(x, y) and drop() are called.
  constructor(stage, data) {
    this.stage = stage; this.data = data;
    this.turn = data.turn ?? -0.9; this.tilt = data.tilt ?? 0.35; this.far = data.far ?? 2.2 * data.size;
    this.centre = data.centre.slice();
    this.poses = []; this.rods = []; this.arrows = []; this.lit = -1;
    this.grab = () => false; this.drag = () => {}; this.drop = () => {};
    this.floor = stage.querySelector(".floor"); this.body = stage.querySelector(".solids");
    this.top = stage.querySelector(".top");
    this.gl = this.body.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
    if (this.gl) this.prepare();
    else stage.append("This browser has no WebGL, which the picture needs.");
    this.listen();
    new ResizeObserver(() => this.draw()).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }
  prepare() {
    const gl = this.gl, program = gl.createProgram();
    const shader = (kind, text) => {
      const it = gl.createShader(kind);
      gl.shaderSource(it, text); gl.compileShader(it); gl.attachShader(program, it);
    };
    shader(gl.VERTEX_SHADER, `
      attribute vec3 at, normal; uniform mat4 pose; uniform vec3 centre; uniform vec4 angles;
      uniform vec4 lens; varying float bright;
      void main() {
        vec3 p = (pose * vec4(at, 1.0)).xyz - centre, n = normalize((pose * vec4(normal, 0.0)).xyz);
        vec3 eye = vec3(angles.z * angles.x, angles.z * angles.y, angles.w);
        bright = 0.62 + 0.2 * dot(n, vec3(0.4, -0.5, 0.77)) + 0.18 * abs(dot(n, eye));
        float ahead = angles.x * p.x + angles.y * p.y, depth = angles.z * ahead + angles.w * p.z;
        float right = -angles.y * p.x + angles.x * p.y, up = angles.z * p.z - angles.w * ahead;
        float away = lens.z - depth, near = 0.02 * lens.z, far = 100.0 * lens.z;
        gl_Position = vec4(lens.x * right, lens.y * up,
                           ((far + near) * away - 2.0 * far * near) / (far - near), away);
      }`);
    shader(gl.FRAGMENT_SHADER, `
      precision mediump float; uniform vec3 colour; varying float bright;
      void main() { gl_FragColor = vec4(colour * bright, 1.0); }`);
    gl.linkProgram(program); gl.useProgram(program); gl.enable(gl.DEPTH_TEST);
    this.where = Object.fromEntries(["pose", "centre", "angles", "lens", "colour"].map(
      name => [name, gl.getUniformLocation(program, name)]));
    this.slots = ["at", "normal"].map(name => gl.getAttribLocation(program, name));
    this.solids = this.data.solids.map(solid => this.load(solid));
    this.rod = this.load(cylinder());
  }
  load(solid) {
    const gl = this.gl, numbers = [];
    for (const face of solid.faces) {
      const [p, q, r] = face.map(i => solid.at[i]);
      const [e, f] = [q.map((x, n) => x - p[n]), r.map((x, n) => x - p[n])];
      const normal = cross(e, f);
      for (const corner of [p, q, r]) numbers.push(...corner, ...normal);
    }
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STATIC_DRAW);
    return { buffer, count: numbers.length / 6, link: solid.link, colour: shares(solid.colour), solid };
  }
  // poses: twelve numbers a link, rows of rotation and origin; rods: pairs of points; arrows: [from, to]
  show(poses, rods = [], arrows = []) {
    this.poses = poses; this.rods = rods; this.arrows = arrows;
    this.draw();
  }
  ink(name) { return getComputedStyle(this.stage).getPropertyValue(name).trim(); }
  see(p) {  // pixels of the canvas, and the distance from the eye
    const [ct, st, ce, se] = [Math.cos(this.turn), Math.sin(this.turn), Math.cos(this.tilt), Math.sin(this.tilt)];
    const [x, y, z] = p.map((each, n) => each - this.centre[n]);
    const right = -st * x + ct * y, ahead = ct * x + st * y;
    const up = ce * z - se * ahead, away = this.far - (ce * ahead + se * z);
    const s = 1.2 * Math.min(this.top.width, this.top.height) / Math.max(away, 0.02 * this.far);
    return [this.top.width / 2 + s * right, this.top.height / 2 - s * up, away];
  }
  axes() {  // right and up of the picture, in the world
    const [ct, st, ce, se] = [Math.cos(this.turn), Math.sin(this.turn), Math.cos(this.tilt), Math.sin(this.tilt)];
    return [[-st, ct, 0], [-se * ct, -se * st, ce]];
  }
  placed(solid, at) {
    const m = this.poses, o = 12 * solid.link;
    return [0, 4, 8].map(r => m[o + r] * at[0] + m[o + r + 1] * at[1] + m[o + r + 2] * at[2] + m[o + r + 3]);
  }
  pick(x, y) {  // what is drawn at a place of the canvas: its link and the point, or null
    let best = null;
    for (const { solid } of this.solids ?? []) {
      const world = solid.at.map(at => this.placed(solid, at)), seen = world.map(p => this.see(p));
      for (const face of solid.faces) {
        const [a, b, c] = face.map(i => seen[i]);
        const area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        if (Math.abs(area) < 1e-9) continue;
        const u = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / area;
        const v = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / area;
        if (u < 0 || v < 0 || u + v > 1) continue;
        const away = a[2] + u * (b[2] - a[2]) + v * (c[2] - a[2]);
        if (best && away >= best.away) continue;
        const corners = face.map(i => solid.at[i]);
        const at = [0, 1, 2].map(n => corners[0][n] + u * (corners[1][n] - corners[0][n]) + v * (corners[2][n] - corners[0][n]));
        best = { away, link: solid.link, at };
      }
    }
    return best;
  }
  draw() {
    const wide = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(this.stage.clientWidth * wide), Math.round(this.stage.clientHeight * wide)];
    for (const each of [this.floor, this.body, this.top])
      if (each.width !== w || each.height !== h) { each.width = w; each.height = h; }
    if (!w || !h) return;
    this.drawFloor(wide);
    if (this.gl && this.poses.length) this.drawSolids(w, h);
    const pen = this.top.getContext("2d");
    pen.clearRect(0, 0, w, h);
    for (const [from, to] of this.arrows) this.arrow(pen, from, to, wide, this.ink("--force"));
  }
  drawFloor(wide) {
    const pen = this.floor.getContext("2d"), cell = this.data.size / 4;
    const [x0, y0] = [Math.round(this.data.centre[0] / cell), Math.round(this.data.centre[1] / cell)];
    pen.clearRect(0, 0, this.floor.width, this.floor.height);
    for (let i = -8; i <= 8; i++) {
      const at = (x, y) => this.see([(x0 + x) * cell, (y0 + y) * cell, this.data.ground]);
      stroke(pen, [at(i, -8), at(i, 8)], this.ink("--line"), wide);
      stroke(pen, [at(-8, i), at(8, i)], this.ink("--line"), wide);
    }
  }
  drawSolids(w, h) {
    const gl = this.gl, where = this.where, scale = 2.4 * Math.min(w, h), m = this.poses;
    gl.viewport(0, 0, w, h);
    gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniform3fv(where.centre, this.centre);
    gl.uniform4f(where.angles, Math.cos(this.turn), Math.sin(this.turn), Math.cos(this.tilt), Math.sin(this.tilt));
    gl.uniform4f(where.lens, scale / w, scale / h, this.far, 0);
    for (const each of this.solids) {
      const o = 12 * each.link, lit = each.link === this.lit ? 0.35 : 0;
      this.drawSolid(each, [0, 1, 2, 3].flatMap(c => [m[o + c], m[o + 4 + c], m[o + 8 + c], c === 3 ? 1 : 0]),
                     each.colour.map(c => c + lit * (1 - c)));
    }
    for (const [from, to, colour = this.rod.colour, r = 0.006 * this.data.size] of this.rods) {
      const z = to.map((x, n) => x - from[n]), long = Math.hypot(...z);
      if (long < 1e-9) continue;
      const x = unit(cross(z, Math.abs(z[2]) < 0.9 * long ? [0, 0, 1] : [1, 0, 0])), y = unit(cross(z, x));
      this.drawSolid(this.rod, [...x.map(e => r * e), 0, ...y.map(e => r * e), 0, ...z, 0, ...from, 1], colour);
    }
  }
  drawSolid({ buffer, count }, pose, colour) {
    const gl = this.gl;
    gl.uniformMatrix4fv(this.where.pose, false, pose);
    gl.uniform3fv(this.where.colour, colour);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    this.slots.forEach((slot, k) => {
      gl.enableVertexAttribArray(slot);
      gl.vertexAttribPointer(slot, 3, gl.FLOAT, false, 24, 12 * k);
    });
    gl.drawArrays(gl.TRIANGLES, 0, count);
  }
  arrow(pen, from, to, wide, colour) {
    const [a, b] = [this.see(from), this.see(to)], [x, y] = [b[0] - a[0], b[1] - a[1]], long = Math.hypot(x, y);
    if (long < 1) return;
    stroke(pen, [a, b], colour, 2.5 * wide);
    const [u, v, s] = [x / long, y / long, Math.min(9 * wide, long)];
    stroke(pen, [[b[0] - s * (u - 0.5 * v), b[1] - s * (v + 0.5 * u)], b,
                 [b[0] - s * (u + 0.5 * v), b[1] - s * (v - 0.5 * u)]], colour, 2.5 * wide);
  }
  listen() {
    const top = this.top, pointers = new Map();
    let held = false, spread = 0;
    const at = e => {
      const box = top.getBoundingClientRect(), wide = top.width / box.width;
      return [(e.clientX - box.left) * wide, (e.clientY - box.top) * wide];
    };
    top.onpointerdown = e => {
      top.setPointerCapture(e.pointerId); pointers.set(e.pointerId, [e.clientX, e.clientY]); spread = 0;
      held = pointers.size === 1 && e.button === 0 && !e.shiftKey && this.grab(...at(e));
      top.style.cursor = "grabbing";
    };
    top.onpointerup = top.onpointercancel = e => {
      pointers.delete(e.pointerId);
      if (held) this.drop();
      held = false; top.style.cursor = "";
    };
    top.onpointermove = e => {
      const before = pointers.get(e.pointerId);
      if (!before) return;
      const [dx, dy] = [e.clientX - before[0], e.clientY - before[1]];
      pointers.set(e.pointerId, [e.clientX, e.clientY]);
      if (held) return this.drag(...at(e));
      if (pointers.size > 1) {  // two fingers: nearer and further
        const [p, q] = [...pointers.values()], now = Math.hypot(p[0] - q[0], p[1] - q[1]);
        if (spread) this.far *= spread / Math.max(now, 1);
        spread = now;
      } else if (e.shiftKey || e.buttons > 1) {
        const s = this.far / (1.2 * Math.min(top.clientWidth, top.clientHeight)), [right, up] = this.axes();
        this.centre = this.centre.map((x, n) => x - s * (dx * right[n] - dy * up[n]));
      } else {
        this.turn -= 0.008 * dx;
        this.tilt = Math.min(1.5708, Math.max(-1.5708, this.tilt + 0.008 * dy));
      }
      this.draw();
    };
    top.onwheel = e => { this.far *= Math.exp(0.001 * e.deltaY); e.preventDefault(); this.draw(); };
  }
}
const shares = code => [1, 3, 5].map(i => parseInt(code.slice(i, i + 2), 16) / 255);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = a => { const n = Math.hypot(...a); return a.map(x => x / n); };
function stroke(pen, points, colour, width) {
  pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
  points.forEach((p, i) => i ? pen.lineTo(p[0], p[1]) : pen.moveTo(p[0], p[1]));
  pen.stroke();
}
function cylinder(n = 14) {  // about z, from 0 to 1, of radius 1
  const at = [], faces = [];
  for (let i = 0; i < n; i++)
    for (const z of [0, 1]) at.push([Math.cos(2 * Math.PI * i / n), Math.sin(2 * Math.PI * i / n), z]);
  for (let i = 0; i < n; i++) {
    const [a, b] = [2 * i, 2 * ((i + 1) % n)];
    faces.push([a, b, b + 1], [a, b + 1, a + 1]);
  }
  return { link: -1, colour: "%GREY%", at, faces };
}
