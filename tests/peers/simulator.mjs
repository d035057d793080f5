// The official Node SDK as a client of `samekey sim`. usage: node simulator.mjs SAMEKEY MODULES
// (the folder that has node_modules/stripe). Prints `ok NAME` or `FAILED NAME: why`.

import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';

const [samekey, modules] = process.argv.slice(2);
const loaded = createRequire(`${modules}/x.js`)('stripe');
const Stripe = loaded.default ?? loaded;
const HOME = mkdtempSync(`${tmpdir()}/samekey-peer-`);
const PAYMENT = { payment_intent: 'pi_order_4417', amount: 3800, metadata: { operation_id: 'op_1' } };
let failed = 0;

function check(name, holds, seen) {
  if (holds) return console.log(`ok ${name}`);
  failed += 1;
  console.log(`FAILED ${name}: ${seen instanceof Error ? seen.stack : JSON.stringify(seen)}`);
}

const raised = async (call) => { try { return await call(); } catch (error) { return error; } };

async function withSim(args, run) {
  const child = spawn(samekey, ['sim', ...args], { env: { HOME }, stdio: ['ignore', 'pipe', 'inherit'] });
  const [host, port] = await new Promise((resolve) =>
    createInterface({ input: child.stdout }).once('line', (line) => resolve(line.trim().split(':'))));
  const client = (maxNetworkRetries = 0, timeout = 10_000, key = 'sk_test_peer') =>
    new Stripe(key, { host, port: Number(port), protocol: 'http', maxNetworkRetries, timeout, telemetry: false });
  const base = `http://${host}:${port}`;
  const state = async () => (await fetch(`${base}/_sim/state`)).json();
  const effects = async () => (await state()).refunds.map((r) => r._sim).filter((e) => e.source !== 'external');
  try { await run({ client, state, effects, base }); } finally { child.kill('SIGKILL'); }
}

async function keysAndErrors() {
  await withSim([], async ({ client }) => {
    const stripe = client();
    const options = { idempotencyKey: 'K' };
    const first = await stripe.refunds.create(PAYMENT, options);
    check('create', first.status === 'succeeded' && first.amount === 3800, first);
    const again = await stripe.refunds.create(PAYMENT, options);
    check('replay with the same key', again.id === first.id && again.lastResponse.headers['idempotent-replayed'] === 'true', again.lastResponse);
    const other = await raised(() => stripe.refunds.create({ ...PAYMENT, amount: 1 }, options));
    check('mismatch raises StripeIdempotencyError', other.type === 'StripeIdempotencyError' && other.statusCode === 400, other);
    const over = await raised(() => stripe.refunds.create({ ...PAYMENT, amount: 100_000 }));
    check('too much raises StripeInvalidRequestError', over.type === 'StripeInvalidRequestError' && over.param === 'amount', over);
    const missing = await raised(() => stripe.refunds.retrieve('re_x'));
    check('missing has its code', missing.code === 'resource_missing' && missing.statusCode === 404, missing);
    const live = await raised(() => client(0, 10_000, 'sk_live_x').refunds.list());
    check('a wrong key raises StripeAuthenticationError', live.type === 'StripeAuthenticationError', live);
  });
  for (const [scenario, type] of [
    ['permission-denied', 'StripePermissionError'],
    ['rate-limited', 'StripeRateLimitError'],
    ['saved-500-with-effect', 'StripeAPIError'],
    ['reset-after-commit', 'StripeConnectionError'],
  ]) {
    await withSim(['--scenario', scenario], async ({ client }) => {
      const error = await raised(() => client().refunds.create(PAYMENT, { idempotencyKey: 'K' }));
      check(`${scenario} raises ${type}`, error.type === type, error);
    });
  }
}

async function overlap() {
  await withSim(['--scenario', 'overlap-409'], async ({ client, state, effects }) => {
    const options = { idempotencyKey: 'K' };
    const first = raised(() => client(0, 8_000).refunds.create(PAYMENT, options));
    while ((await state()).requests.length === 0) await new Promise((r) => setTimeout(r, 10));
    const second = await raised(() => client().refunds.create(PAYMENT, options));
    check('overlap is 409', second.statusCode === 409 && second.code === 'idempotency_key_in_use', second);
    const third = await raised(() => client(10).refunds.create(PAYMENT, options));
    const made = await effects();
    check('overlap ends in the same refund', made.length === 1 && third.id === made[0].refund_id, third);
    await first;
  });
}

async function paging() {
  await withSim([], async ({ client }) => {
    const stripe = client();
    for (let n = 0; n < 120; n += 1) await stripe.refunds.create({ payment_intent: 'pi_order_1', amount: 100 });
    const list = await stripe.refunds.list({ payment_intent: 'pi_order_1', limit: 50 });
    check('list', list.data.length === 50 && list.has_more, list.has_more);
    const ids = new Set();
    for await (const refund of stripe.refunds.list({ payment_intent: 'pi_order_1', limit: 50 })) ids.add(refund.id);
    check('page through 120 refunds', ids.size === 120, ids.size);
    const events = await stripe.events.list({ type: 'refund.created', limit: 3 });
    check('list events', events.data.length === 3 && events.data[0].data.object.object === 'refund', events.data);
  });
}

// Takes webhooks on loopback; one for each simulator, whose last one may still be on its way.
async function withReceiver(run) {
  const waiting = [];
  const arrived = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const got = [Buffer.concat(parts), request.headers['stripe-signature']];
      const waiter = waiting.shift();
      if (waiter) waiter(got); else arrived.push(got);
      response.end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const next = () => new Promise((resolve) => (arrived.length ? resolve(arrived.shift()) : waiting.push(resolve)));
  const url = `http://127.0.0.1:${server.address().port}/webhooks/stripe`;
  await run(['--webhook', url, '--webhook-secret', 'whsec_one'], next);
  server.closeAllConnections();
  server.close();
}

async function webhooks() {
  await withReceiver((hook, next) => withSim([...hook, '--webhook-secret', 'whsec_two'], async ({ client }) => {
    const stripe = client();
    await stripe.refunds.create(PAYMENT);
    const [body, signature] = await next();
    for (const secret of ['whsec_one', 'whsec_two']) {
      const event = await raised(() => stripe.webhooks.constructEvent(body, signature, secret));
      check(`the verifier takes ${secret}`, event.type === 'refund.created', event);
    }
    const wrong = await raised(() => stripe.webhooks.constructEvent(body, signature, 'whsec_three'));
    check('the verifier refuses another secret', wrong.type === 'StripeSignatureVerificationError', wrong);
  }));
  for (const scenario of ['webhook-wrong-secret', 'webhook-old-timestamp']) {
    await withReceiver((hook, next) => withSim(['--scenario', scenario, ...hook], async ({ client }) => {
      const stripe = client();
      await stripe.refunds.create(PAYMENT);
      const [body, signature] = await next();
      const wrong = await raised(() => stripe.webhooks.constructEvent(body, signature, 'whsec_one'));
      check(`the verifier refuses ${scenario}`, wrong.type === 'StripeSignatureVerificationError', wrong);
    }));
  }
}

async function retries() {
  for (const scenario of ['reset-after-commit:1', 'timeout-after-effect:1', 'bad-gateway:1', 'lock-timeout:1']) {
    await withSim(['--scenario', scenario], async ({ client, effects }) => {
      const made = await raised(() => client(2, 2_000).refunds.create(PAYMENT));
      const all = await effects();
      check(`one refund under ${scenario} with automatic retries`, all.length === 1 && made.id === all[0].refund_id, made);
    });
  }
}

console.log(`stripe ${Stripe.PACKAGE_VERSION ?? ''} node ${process.version}`);
for (const part of [keysAndErrors, overlap, paging, webhooks, retries]) await part();
process.exit(failed ? 1 : 0);
