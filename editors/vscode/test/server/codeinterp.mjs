#!/usr/bin/env node
// A scripted server: it speaks the protocol of the real one and does exactly what the question tells it, so that faults and
// outputs of every kind come when a scenario wants them. Runs are kept in the state directory, like the real one's.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { barChart } from './png.mjs';

const [, , command] = process.argv;
if (command === '--version') {
  console.log(`codeinterp ${process.env.SCRIPTED_VERSION ?? '0.1.0'}`);
  process.exit(0);
}
if (command === 'doctor') {
  console.log('Sandbox: process, ready\nModel: playbook');
  process.exit(0);
}
if (process.env.SCRIPTED_DIES === 'always') {
  process.exit(3);
}

const state = path.join(process.env.XDG_STATE_HOME, 'scripted');
mkdirSync(state, { recursive: true });
writeFileSync(path.join(process.env.XDG_STATE_HOME, 'key'), process.env.CODEINTERP_API_KEY ?? '');
const runs = new Map();
for (const name of readdirSync(state).sort()) {
  const run = JSON.parse(readFileSync(path.join(state, name, 'run.json'), 'utf8'));
  runs.set(name, run.text === '' ? { ...run, status: 'failed', text: 'The server ended before the run did.' } : run);
}
const documents = new Map();
const pending = new Map();
const cancels = new Map();
/** Runs that asked for their hints to be told once only, and were told. */
const hinted = new Set();
let lastId = 0;

// ── framing ──
let buffer = Buffer.alloc(0);
process.stdin.on('data', (data) => {
  buffer = Buffer.concat([buffer, data]);
  for (;;) {
    const end = buffer.indexOf('\r\n\r\n');
    const length = end < 0 ? NaN : Number(/Content-Length: (\d+)/i.exec(buffer.toString('ascii', 0, end))[1]);
    if (!(buffer.length >= end + 4 + length)) {
      return;
    }
    const message = JSON.parse(buffer.toString('utf8', end + 4, end + 4 + length));
    buffer = buffer.subarray(end + 4 + length);
    receive(message);
  }
});
process.stdin.on('end', () => process.exit(0));

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
}
const notify = (method, params) => send({ method, params });
function request(method, params) {
  lastId += 1;
  const id = `s${lastId}`;
  send({ id, method, params });
  return new Promise((resolve, reject) => pending.set(id, { resolve, reject }));
}

function receive(message) {
  if (message.method === undefined) {
    const waiting = pending.get(message.id);
    pending.delete(message.id);
    message.error ? waiting?.reject(message.error) : waiting?.resolve(message.result);
    return;
  }
  const handler = handlers[message.method];
  if (message.id === undefined) {
    handler?.(message.params);
    return;
  }
  Promise.resolve()
    .then(() => (handler ? handler(message.params) : null))
    .then(
      (result) => send({ id: message.id, result: result ?? null }),
      (error) => send({ id: message.id, error: { code: -32803, message: error.message } }),
    );
}

// ── runs ──
function event(run) {
  notify('codeinterp/runChanged', { run: run.run, status: run.status, step: run.step, uri: run.uri, document: run.document });
}
function save(run) {
  mkdirSync(path.join(state, run.run), { recursive: true });
  writeFileSync(path.join(state, run.run, 'run.json'), JSON.stringify(run));
}
function artifact(run, name, mime, bytes) {
  const file = path.join(state, run.run, name);
  writeFileSync(file, bytes);
  run.artifacts.push({ name, mime, path: file, step: run.step });
}

function startRun(uri, question, line) {
  const id = `2026-${String(runs.size + 1).padStart(4, '0')}`;
  const run = { run: id, status: 'queued', question, uri, document: `codeinterp:/runs/${id}/report.md`, artifacts: [], step: 0, line, text: '' };
  runs.set(id, run);
  save(run);
  setImmediate(() => perform(run).catch((error) => finish(run, 'failed', `The run failed: ${error.message ?? error}`)));
  return { run: id, document: run.document };
}

function finish(run, status, text) {
  run.status = status;
  run.text = text;
  save(run);
  event(run);
  send({ id: `r${run.run}`, method: 'workspace/inlayHint/refresh' });
}

async function perform(run) {
  run.status = 'running';
  run.step = 1;
  event(run);
  const token = `t${run.run}`;
  await request('window/workDoneProgress/create', { token });
  notify('$/progress', { token, value: { kind: 'begin', title: 'Analyzing', message: 'step 1', cancellable: true } });
  const done = () => notify('$/progress', { token, value: { kind: 'end' } });
  const { question } = run;
  if (question.includes('crash')) {
    process.exit(9);
  }
  if (question.includes('forever')) {
    await new Promise((resolve) => {
      cancels.set(run.run, resolve);
      cancels.set(token, resolve);
    });
    done();
    finish(run, 'cancelled', 'Cancelled.');
    return;
  }
  if (question.includes('chat')) {
    const answer = await request('codeinterp/chat', {
      id: run.run,
      messages: [{ role: 'system', content: 'Write Python.' }, { role: 'user', content: question }],
    }).catch((error) => ({ text: `refused: ${error.message}`, finishReason: 'stop' }));
    done();
    finish(run, 'completed', `# Answer of the model\n\n${answer.text}\n`);
    return;
  }
  mkdirSync(path.join(state, run.run), { recursive: true });
  artifact(run, 'chart_1.png', 'image/png', barChart([0.4, 0.9, 0.6, 0.75]));
  if (question.includes('plotly')) {
    const figure = { data: [{ type: 'bar', x: ['a', 'b'], y: [2, 3], marker: { color: 'rgb(31,119,180)' } }], layout: { title: { text: 'Plotly' } } };
    artifact(run, 'figure.plotly.json', 'application/vnd.plotly.v1+json', JSON.stringify(figure));
    artifact(run, 'table.html', 'text/html', '<script>document.body.textContent="ran"</script><table><tr><th>n</th></tr><tr><td>42</td></tr></table><img src="http://127.0.0.1:9/x.png">');
  }
  done();
  finish(run, 'completed', `# Revenue by region\n\nAsked: ${question}\n\nThe second bar is the highest.\n\n![chart 1](artifacts/chart_1.png)\n`);
}

const started = {
  'codeinterp.analyzeFile': ({ uri, question }) => startRun(uri, question ?? 'Profile the data and plot what matters', 0),
  'codeinterp.askSelection': ({ uri, range, question }) => startRun(uri, question, range.end.line),
  'codeinterp.runSelection': ({ uri, range }) => startRun(uri, 'Run the selected code', range.end.line),
  'codeinterp.followUp': ({ run, question }) => startRun(runs.get(run).uri, question, 0),
  'codeinterp.rerun': ({ run }) => startRun(runs.get(run).uri, runs.get(run).question, 0),
  'codeinterp.cancel': ({ run }) => {
    const cancelled = [...cancels.keys()].filter((key) => run === undefined || key === run);
    cancelled.forEach((key) => cancels.get(key)());
    return { cancelled };
  },
  'codeinterp.listRuns': () => [...runs.values()].map(({ run, status, question, uri, document, artifacts }) => ({ run, status, question, uri, document, artifacts })),
  'codeinterp.variables': () => [{ name: 'df', type: 'DataFrame', shape: [192, 6], bytes: 9344, repr: '   date region\n0  …' }],
  'codeinterp.status': () => ({ version: '0.1.0', model: 'playbook', workspaces: [] }),
};

const handlers = {
  initialize: () => ({
    capabilities: { textDocumentSync: 1, inlayHintProvider: true, hoverProvider: true, executeCommandProvider: { commands: Object.keys(started) } },
    serverInfo: { name: 'codeinterp', version: '0.1.0' },
  }),
  shutdown: () => null,
  exit: () => process.exit(0),
  'textDocument/didOpen': ({ textDocument }) => documents.set(textDocument.uri, textDocument.text),
  'textDocument/didChange': ({ textDocument, contentChanges }) => documents.set(textDocument.uri, contentChanges.at(-1).text),
  'window/workDoneProgress/cancel': ({ token }) => cancels.get(token)?.(),
  'workspace/executeCommand': ({ command: name, arguments: [argument] }) => (started[name] ? started[name](argument) : {}),
  'workspace/textDocumentContent': ({ uri }) => {
    const run = runs.get(/runs\/([^/]+)\/report\.md$/.exec(uri)?.[1]);
    if (run === undefined) {
      throw new Error('no such document');
    }
    return { text: run.text || `# ${run.question}\n\nWorking on it…\n` };
  },
  'textDocument/inlayHint': ({ textDocument }) => {
    const run = [...runs.values()].filter(({ uri, status }) => uri === textDocument.uri && status === 'completed').at(-1);
    if (run === undefined) {
      return [];
    }
    if (run.question.includes('hints once')) {
      if (hinted.has(run.run)) {
        return new Promise(() => undefined);
      }
      hinted.add(run.run);
    }
    return [
      {
        position: { line: run.line, character: 1000 },
        paddingLeft: true,
        label: [
          { value: 'chart 1', command: { title: 'Open', command: 'codeinterp.openArtifact', arguments: [{ run: run.run, name: 'chart_1.png' }] } },
          { value: ' · ' },
          { value: 'report', command: { title: 'Open', command: 'codeinterp.openReport', arguments: [{ run: run.run }] } },
        ],
      },
    ];
  },
  'textDocument/hover': ({ textDocument }) => {
    const lines = (documents.get(textDocument.uri) ?? '').split('\n').length;
    return { contents: { kind: 'markdown', value: `**${lines} lines**` } };
  },
};
