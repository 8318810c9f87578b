import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunChanged, RunRow, RunStatus } from '../../src/lsp_ext';
import { Runs, statusIcon } from '../../src/runs';

function row(run: string, status: RunStatus, uri = 'file:///a.csv'): RunRow {
  return { run, status, question: `question of ${run}`, uri, document: `codeinterp:/runs/${run}/report.md`, artifacts: [] };
}

function change(run: string, status: RunStatus, step = 0): RunChanged {
  return { run, status, step, uri: 'file:///a.csv', document: `codeinterp:/runs/${run}/report.md` };
}

test('a run is followed from its start to its end', () => {
  const runs = new Runs();
  runs.add(row('1', 'queued'));
  assert.equal(runs.apply(change('1', 'running', 2)), false);
  assert.equal(runs.active()[0]?.step, 2);
  assert.equal(runs.apply(change('1', 'completed', 3)), true);
  assert.equal(runs.apply(change('1', 'completed', 3)), false);
  assert.deepEqual(runs.active(), []);
  assert.equal(runs.get('1')?.question, 'question of 1');
});

test('a late notification never brings an ended run back', () => {
  const runs = new Runs();
  runs.apply(change('1', 'failed'));
  assert.equal(runs.apply(change('1', 'running', 1)), false);
  assert.equal(runs.get('1')?.status, 'failed');
});

test('when the server is gone nothing stays at work', () => {
  const runs = new Runs();
  runs.add(row('1', 'running'));
  runs.add(row('2', 'completed'));
  runs.interrupted();
  assert.deepEqual(runs.newestFirst().map(({ status }) => status), ['completed', 'cancelled']);
});

test('the newest run of a document is found', () => {
  const runs = new Runs();
  runs.replace([row('1', 'completed'), row('2', 'completed', 'file:///b.csv'), row('3', 'failed')]);
  assert.equal(runs.latest()?.run, '3');
  assert.equal(runs.latest('file:///b.csv')?.run, '2');
  assert.equal(runs.latest('file:///c.csv'), undefined);
});

test('listeners hear of every change until they leave', () => {
  const runs = new Runs();
  const heard: (string | undefined)[] = [];
  const leave = runs.onChange((run) => heard.push(run?.run));
  runs.add(row('1', 'queued'));
  runs.replace([]);
  leave();
  runs.add(row('2', 'queued'));
  assert.deepEqual(heard, ['1', undefined]);
});

test('every status has an icon of its own', () => {
  const all: RunStatus[] = ['queued', 'running', 'completed', 'incomplete', 'failed', 'cancelled'];
  assert.equal(new Set(all.map(statusIcon)).size, all.length);
});
