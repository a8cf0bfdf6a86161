// Pages of a built site that its search finds, best first: by the worker that the site itself runs.
//
//   node search.mjs SITE QUERY…   prints one list of addresses for each query, as JSON
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [site, ...queries] = process.argv.slice(2);
const folder = join(site, "assets/javascripts/workers");
const worker = readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const { config, docs } = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf-8"));

let ask;
let answer;
const scope = {
  console,
  document: {},
  addEventListener: (_, listener) => { ask = listener; },
  postMessage: (message) => answer(message),
};
scope.self = scope;
vm.runInNewContext(readFileSync(join(folder, worker), "utf-8"), scope);
const sent = (type, data) => new Promise((resolve) => { answer = resolve; ask({ data: { type, data } }); });

await sent(0, { config, docs, options: { suggest: false } });
const found = [];
for (const query of queries) {
  const { data } = await sent(2, query);
  found.push(data.items.map(([first]) => first.location.split("#")[0]));
}
console.log(JSON.stringify(found));
