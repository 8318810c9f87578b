import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backoff } from '../../src/backoff';
import { fit, OMITTED, toolSchema, toTurns } from '../../src/chat_messages';
import { remember, sanitize } from '../../src/questions';
import { isMachine, nested, select } from '../../src/settings';
import { artifactPath, baseName, parsePath, reportPath, serverPath } from '../../src/uris';
import { compareVersions, isSupported, parseVersion } from '../../src/version';

test('paths of virtual documents name reports, steps and artifacts, and nothing else', () => {
  const check = (path: string, expected: unknown): void => assert.deepEqual(parsePath(path), expected, path);
  check('/runs/r1/report.md', { kind: 'report', run: 'r1' });
  check('///runs/r1/report.md', { kind: 'report', run: 'r1' });
  check('/runs/r1/销售 2024.csv.md', { kind: 'report', run: 'r1' });
  check('/runs/r1/steps/2.py', { kind: 'step', run: 'r1', path: '2.py' });
  check('/runs/r1/artifacts/out/a b.png', { kind: 'artifact', run: 'r1', name: 'out/a b.png' });
  for (const forged of ['/', '/runs', '/runs/r1', '/runs/r1/secret', '/runs/../report.md', '/runs/r1/artifacts/../../x', '/runs/r1/artifacts/', '/runs//report.md', '/etc/passwd', '/runs/r1/steps/a/b.py']) {
    check(forged, undefined);
  }
});

test('a report is known to the server by one path, whatever its tab is called', () => {
  const path = reportPath('r1', 'a/b.csv');
  assert.equal(path, '/runs/r1/a_b.csv.md');
  const target = parsePath(path);
  assert.ok(target?.kind === 'report');
  assert.equal(serverPath(target), '/runs/r1/report.md');
  assert.equal(reportPath('r1', ''), '/runs/r1/report.md');
  assert.deepEqual(parsePath(artifactPath('r1', 'x.png')), { kind: 'artifact', run: 'r1', name: 'x.png' });
});

test('base names are decoded as far as they can be', () => {
  assert.equal(baseName('file:///d/a%20b%25.csv'), 'a b%.csv');
  assert.equal(baseName('file:///d/100%.csv'), '100%.csv');
  assert.equal(baseName('C:\\d\\a.csv'), 'a.csv');
  assert.equal(baseName('untitled:Untitled-1'), 'Untitled-1');
});

test('a crashed server starts at once, then more slowly, then not at all', () => {
  const backoff = new Backoff();
  const delays = [1, 2, 3, 4, 5, 6].map((now) => backoff.crashed(now));
  assert.deepEqual(delays, [0, 1_000, 2_000, 4_000, 8_000, undefined]);
});

test('a server that lived for a minute starts at once after a crash', () => {
  const backoff = new Backoff();
  backoff.crashed(1);
  backoff.crashed(2);
  backoff.started(10);
  assert.equal(backoff.crashed(60_010), 0);
  backoff.started(60_020);
  assert.equal(backoff.crashed(60_030), 1_000);
});

test('versions compare by number', () => {
  assert.equal(parseVersion('codeinterp 0.10.2 (abc)\n'), '0.10.2');
  assert.equal(parseVersion('hello'), undefined);
  assert.ok(compareVersions('0.10.0', '0.9.9') > 0);
  assert.equal(isSupported('0.0.9'), false);
  assert.equal(isSupported('0.1.0'), true);
});

test('only settings that a person has set are sent, nested, without the client\'s own', () => {
  const set: Record<string, unknown> = { model: 'playbook', 'sandbox.memory': '2g', 'sandbox.cpus': 2, endpoint: '', 'agent.maxTokens': null, 'server.path': '/x', live: false };
  const keys = ['model', 'endpoint', 'sandbox.memory', 'sandbox.cpus', 'agent.maxTokens', 'agent.maxSteps', 'server.path', 'live'];
  const values = nested(keys, (key) => set[key]);
  assert.deepEqual(values, { model: 'playbook', sandbox: { memory: '2g', cpus: 2 }, live: false });
  assert.equal(select(values, 'sandbox.cpus'), 2);
  assert.equal(select(values, 'sandbox.image.name'), undefined);
  assert.deepEqual(select(values, ''), values);
});

test('what a workspace may set is hints, diagnostics and row limits', () => {
  assert.deepEqual(['hints.enabled', 'diagnostics.enabled', 'files.maxRows'].filter(isMachine), []);
  assert.ok(['model', 'endpoint', 'sandbox.image', 'privacy.send', 'live'].every(isMachine));
});

test('recent questions are kept newest first, once each', () => {
  assert.deepEqual(remember(['b', 'a'], ' a '), ['a', 'b']);
  assert.deepEqual(remember(['b'], '  '), ['b']);
  assert.equal(remember(Array.from({ length: 40 }, (_, i) => String(i)), 'x').length, 15);
  assert.deepEqual(sanitize(['a', 3, null, 'b']), ['a', 'b']);
  assert.deepEqual(sanitize({}), []);
});

test('conversations become turns of user and assistant', () => {
  const turns = toTurns([
    { role: 'system', content: 'rules' },
    { role: 'user', content: 'question' },
    { role: 'assistant', content: 'code' },
    { role: 'tool', content: 'result' },
  ]);
  assert.deepEqual(turns, [
    { role: 'user', text: 'rules\n\nquestion' },
    { role: 'assistant', text: 'code' },
    { role: 'user', text: 'result' },
  ]);
});

test('a conversation too long keeps its first and its last turns', () => {
  const turns = ['q', 'a1', 'r1', 'a2', 'r2'].map((text, i) => ({ role: i % 2 === 0 ? ('user' as const) : ('assistant' as const), text }));
  assert.deepEqual(fit(turns, [10, 10, 10, 10, 10], 50), turns);
  assert.deepEqual(fit(turns, [10, 10, 10, 10, 10], 35)?.map(({ text }) => text), [`q\n\n${OMITTED}`, 'a2', 'r2']);
  assert.equal(fit(turns, [10, 10, 10, 10, 100], 50), undefined);
  assert.equal(fit([], [], 0)?.length, 0);
});

test('a tool schema is taken by either name', () => {
  assert.deepEqual(toolSchema({ name: 'python', parameters: { type: 'object' } }), { type: 'object' });
  assert.deepEqual(toolSchema({ name: 'python', inputSchema: { a: 1 }, parameters: null }), { a: 1 });
});
