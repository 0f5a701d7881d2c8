// Makes one measurement of plainjob: node bench.mjs drain|enqueue|batch|latency FILE N. Prints {"value": …}, per second or in ms.
import Database from "better-sqlite3";
import { better, defineQueue, defineWorker, JobStatus } from "plainjob";

const [what, file, count, percentile] = process.argv.slice(2);
const n = Number(count);
const connection = better(new Database(file)); // plainjob itself sets WAL and NORMAL
const logger = { error() {}, warn() {}, info() {}, debug() {} };
const queue = defineQueue({ connection, logger });
const payload = (i) => ({ n: i, to: "someone@example.com", subject: "a payload of about one hundred bytes, as tasks have" });
const seconds = (from) => Number(process.hrtime.bigint() - from) / 1e9;
const fail = (why) => { console.error(why); process.exit(1); };

const batch = (from, to) => queue.addMany("noop", Array.from({ length: to - from }, (_, i) => payload(from + i)));
const seen = new Int32Array(n);
let ran = 0;
let onRun = () => {};
const worker = (interval) => defineWorker("noop", async (job) => { onRun(); seen[JSON.parse(job.data).n]++; ran++; }, { queue, logger, pollIntervall: interval });
const settled = async () => { while (queue.countJobs({ status: JobStatus.Done }) < n) await new Promise((r) => setTimeout(r, 1)); };
const once = () => { for (let i = 0; i < n; i++) if (seen[i] !== 1) fail(`job ${i} ran ${seen[i]} times`); };

let value;
switch (what) {
  case "enqueue": {
    const from = process.hrtime.bigint();
    for (let i = 0; i < n; i++) queue.add("noop", payload(i));
    value = n / seconds(from);
    break;
  }
  case "batch": {
    const from = process.hrtime.bigint();
    for (let i = 0; i < n; i += 1000) batch(i, Math.min(i + 1000, n));
    value = n / seconds(from);
    break;
  }
  case "drain": {
    for (let i = 0; i < n; i += 1000) batch(i, Math.min(i + 1000, n));
    const w = worker(1000);
    const from = process.hrtime.bigint();
    w.start();
    while (ran < n) await new Promise((r) => setTimeout(r, 1));
    await settled();
    value = n / seconds(from);
    await w.stop();
    once();
    break;
  }
  case "latency": {
    const w = worker(Number(process.argv[6] ?? 1));
    w.start();
    const took = [];
    for (let i = 0; i < n; i++) {
      await new Promise((r) => setTimeout(r, 5 + (i % 7)));
      const started = new Promise((r) => { onRun = r; });
      const from = process.hrtime.bigint();
      queue.add("noop", payload(i));
      await started;
      took.push(seconds(from) * 1000);
    }
    await settled();
    await w.stop();
    once();
    took.sort((a, b) => a - b);
    value = took[Math.min(Math.floor(Number(percentile) * n), n - 1)];
    break;
  }
}
if (what === "enqueue" || what === "batch") {
  const waiting = queue.countJobs({ status: JobStatus.Pending });
  if (waiting !== n) fail(`${waiting} of ${n} jobs are there`);
}
console.log(JSON.stringify({ value }));
process.exit(0);
